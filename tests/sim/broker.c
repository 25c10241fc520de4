/* broker.c -- the life of brokers and of the requests that they get.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A connection serves one request at a time, in order (rules 5.3). A request that may have to wait (a fetch
 * without data, a produce that is not replicated) is a step function that is called again when something moves.
 */
#include "broker.h"

#include "base/alloc.h"
#include "base/must.h"
#include "tally.h"

#include <stdio.h>
#include <string.h>

#define REQUEST_MAX  (100 * MiB) /* socket.request.max.bytes */
#define ANNOUNCED_MOST (320 * MiB) /* beyond this an answer is refused at its length (CONN_POOL_SLACK) */
#define SERVE_US     400
#define ELECTION_US  (800 * SIM_MS)

struct sim_link {
    struct sim_broker *broker;
    struct sim_conn *conn;
    struct sim_request *busy;
};

static const struct {
    int api;
    bool (*step)(struct sim_request *q);
} steps[] = {
    { API_PRODUCE, broker_produce },
    { API_FETCH, broker_fetch },
    { API_LIST_OFFSETS, broker_list_offsets },
    { API_METADATA, broker_metadata },
    { API_FIND_COORDINATOR, broker_find_coordinator },
    { API_JOIN_GROUP, broker_join_group },
    { API_HEARTBEAT, broker_heartbeat },
    { API_LEAVE_GROUP, broker_leave_group },
    { API_SYNC_GROUP, broker_sync_group },
    { API_API_VERSIONS, broker_api_versions },
    { API_CREATE_TOPICS, broker_create_topics },
    { API_OFFSET_COMMIT, broker_offset_commit },
    { API_OFFSET_FETCH, broker_offset_fetch },
    { API_DELETE_TOPICS, broker_delete_topics },
    { API_DELETE_RECORDS, broker_delete_records },
    { API_OFFSET_FOR_LEADER_EPOCH, broker_offset_for_leader_epoch },
    { API_ADD_PARTITIONS_TO_TXN, broker_add_partitions_to_txn },
    { API_END_TXN, broker_end_txn },
    { API_INIT_PRODUCER_ID, broker_init_producer_id },
    { API_DESCRIBE_ACLS, broker_describe_acls },
    { API_DESCRIBE_CONFIGS, broker_describe_configs },
    { API_CREATE_PARTITIONS, broker_create_partitions },
    { API_DESCRIBE_PRODUCERS, broker_describe_producers },
};

/* --- requests --- */

static void look_for_request(struct sim_link *k);

static void request_free(struct sim_request *q)
{
    list_remove(&q->node);
    sim_event_cancel(&q->wake);
    arena_fini(&q->arena);
    if (q->link)
        q->link->busy = NULL;
    mem_free(q);
}

static void request_step(struct sim_request *q)
{
    struct sim_link *k;

    if (!q->broker->up) { /* it went down with the request in hand */
        request_free(q);
        return;
    }
    if (sim_now_us() < q->broker->stuck_until_us && (!q->broker->stuck_writes || q->head.key == API_PRODUCE)) {
        sim_event_set(&q->wake, q->broker->stuck_until_us - sim_now_us() + sim_between(0, SERVE_US));
        return;
    }
    if (!q->step(q))
        return;
    k = q->link;
    request_free(q);
    if (k)
        look_for_request(k);
}

static void on_wake(struct sim_event *e)
{
    request_step(container_of(e, struct sim_request, wake));
}

void broker_wait(struct sim_request *q, int64_t for_us)
{
    if (q->until_us)
        return;
    q->until_us = sim_now_us() + for_us;
    list_add_tail(&q->broker->cluster->waiting, &q->node);
    sim_event_set(&q->wake, for_us);
}

void broker_poke(struct sim_cluster *c)
{
    struct list_node *n;

    LIST_EACH(n, &c->waiting)
        sim_event_hurry(&container_of(n, struct sim_request, node)->wake, 0);
}

static bool decode(struct sim_request *q, struct str frame)
{
    struct reader r;
    char *copy = arena_alloc(&q->arena, frame.n + 1);

    memcpy(copy, frame.p, frame.n);
    r = reader_of(copy, frame.n);
    if (frame_request_read(&r, &q->head))
        return q->head.key == API_API_VERSIONS; /* answered with error 35 */
    q->api = api_find(q->head.key);
    q->msg = arena_alloc(&q->arena, q->api->request->size);
    for (size_t i = 0; i < COUNT(steps); i++)
        if (steps[i].api == q->head.key)
            q->step = steps[i].step;
    return q->step && codec_decode(q->api->request, q->head.version, &r, &q->arena, q->msg) == E_OK;
}

static void take_request(struct sim_link *k, struct str frame)
{
    struct sim_request *q = mem_new(sizeof(*q));

    list_init(&q->node);
    arena_init(&q->arena, 256 * MiB);
    q->broker = k->broker;
    q->link = k;
    q->wake.fn = on_wake;
    q->step = broker_api_versions;
    k->busy = q;
    k->broker->cluster->requests++;
    if (!decode(q, frame))
        sim_fail("a broker of %s cannot read a request (api %d version %d)", k->broker->cluster->name,
                 q->head.key, q->head.version);
    sim_say("%s-%d: %s %d", k->broker->cluster->name, k->broker->id, q->api ? q->api->name : "?", q->head.version);
    sim_event_set(&q->wake, sim_between(20, SERVE_US) + sim_between(0, k->broker->slow_us));
}

static void look_for_request(struct sim_link *k)
{
    struct str in = sim_conn_arrived(k->conn);
    uint32_t size;

    if (k->busy || in.n < 4)
        return;
    size = load_u32(in.p);
    if (size > REQUEST_MAX)
        sim_fail("a request of %u bytes", size);
    if (in.n - 4 < size)
        return;
    take_request(k, str_of(in.p + 4, size));
    sim_conn_take(k->conn, 4 + size);
}

/* --- answers --- */

static void corrupt(struct sim_request *q, struct buf *out, size_t records_at)
{
    struct sim_cluster *c = q->broker->cluster;
    size_t at;

    if (sim_chance(c->corrupt_any)) {
        tally(TALLY_CORRUPT_ANY);
        at = (size_t)sim_between(0, (int64_t)out->n - 1);
    } else if (records_at && sim_chance(c->corrupt_payload)) {
        tally(TALLY_CORRUPT_PAYLOAD);
        at = records_at;
    } else {
        return;
    }
    out->p[at] = (char)(out->p[at] ^ (char)sim_between(1, 255));
    c->corrupted++;
    if (at < 4 && load_u32(out->p) < ANNOUNCED_MOST) /* its length: memory is taken for as much as it announces */
        c->announced += load_u32(out->p);
    sim_say("%s: byte %zu of an answer to %s is wrong now", c->name, at, q->api ? q->api->name : "?");
}

/* A place in the records of the answer that a checksum covers; 0: none. broker_fetch.c notes a batch. */
static size_t find_payload(const struct sim_request *q, const struct buf *out)
{
    struct str batch;
    const char *at;

    if (!q->api || q->api->key != API_FETCH || !q->note)
        return 0;
    batch = *(struct str *)q->note;
    at = batch.n ? memmem(out->p, out->n, batch.p, batch.n) : NULL;
    if (!at)
        return 0;
    return (size_t)(at - out->p) + (size_t)sim_between(BATCH_CRC_FROM, (int64_t)batch.n - 1);
}

void broker_answer(struct sim_request *q, void *response)
{
    struct buf out;
    struct encoding to = { .head = &out };
    const struct api *api = q->api ? q->api : api_find(API_API_VERSIONS);
    int version = q->api ? q->head.version : 0;

    if (!q->link)
        return;
    buf_init(&out, 256 * MiB);
    put_i32(&out, 0);
    frame_response_write(&out, api, version, q->head.correlation_id);
    must(codec_encode(api->response, version, response, &to) == E_OK);
    store_u32(out.p, (uint32_t)out.n - 4);
    corrupt(q, &out, find_payload(q, &out));
    sim_conn_send(q->link->conn, out.p, out.n);
    buf_fini(&out);
}

static void on_hang_up(struct sim_event *e)
{
    struct sim_request *q = container_of(e, struct sim_request, wake);

    if (q->link)
        sim_conn_cut(q->link->conn);
    request_free(q);
}

void broker_hang_up(struct sim_request *q)
{
    q->wake.fn = on_hang_up;
    sim_event_set(&q->wake, 0);
}

/* --- connections --- */

static void on_accept(struct sim_listener *l, struct sim_conn *c)
{
    struct sim_link *k = mem_new(sizeof(*k));

    k->broker = container_of(l, struct sim_broker, listener);
    k->conn = c;
    sim_conn_set_server(c, k);
}

static void on_bytes(struct sim_conn *c)
{
    look_for_request(sim_conn_server(c));
}

/* A request that has begun is done all the same: nobody hears of it. */
static void on_gone(struct sim_conn *c)
{
    struct sim_link *k = sim_conn_server(c);

    if (k->busy)
        k->busy->link = NULL;
    mem_free(k);
    sim_conn_set_server(c, NULL);
}

/* --- clusters --- */

static void on_boot(struct sim_event *e)
{
    struct sim_broker *b = container_of(e, struct sim_broker, boot);
    struct sim_cluster *c = b->cluster;

    sim_say("%s: broker %d is back", c->name, b->id);
    b->up = true;
    b->listener.up = true;
    for (int32_t t = 0; t < c->topics_n; t++)
        for (int32_t i = 0; i < c->topics[t]->parts_n; i++)
            if (c->topics[t]->parts[i].leader < 0)
                broker_move_leader(&c->topics[t]->parts[i], b->id);
    if (!c->brokers[c->controller - 1].up)
        c->controller = b->id;
}

struct sim_cluster *broker_cluster_new(const char *name, int sub, int32_t brokers, int64_t latency_us)
{
    struct sim_cluster *c = mem_new(sizeof(*c));

    c->name = name;
    snprintf(c->id, sizeof(c->id), "cluster-of-%s", name);
    list_init(&c->waiting);
    c->brokers_n = brokers;
    c->controller = (int32_t)sim_between(1, brokers);
    c->next_pid = sim_between(1, 1000000);
    c->newness = (int32_t)sim_between(0, 2);
    c->replicate_us = (sim_chance(30) ? sim_between(50, 400) : sim_between(1, 5)) * SIM_MS;
    for (int32_t i = 0; i < brokers; i++) {
        struct sim_broker *b = &c->brokers[i];

        b->cluster = c;
        b->id = i + 1;
        b->up = true;
        b->boot.fn = on_boot;
        b->sessions = mem_array(SIM_SESSIONS, sizeof(*b->sessions));
        b->listener = (struct sim_listener){ .up = true, .latency_us = latency_us,
                                             .bytes_per_ms = sim_between(1000, 200000),
                                             .on_accept = on_accept, .on_bytes = on_bytes,
                                             .on_gone = on_gone };
        snprintf(b->host, sizeof(b->host), "%s-%d", name, b->id);
        net_sim_addr(&b->listener.addr, sub, b->id);
        net_sim_listen(&b->listener);
        net_sim_name(b->host, &b->listener.addr);
        net_sim_name(name, &b->listener.addr);
    }
    return c;
}

bool broker_luck(const struct sim_cluster *c, int64_t percent)
{
    return !c->plain && sim_chance(percent);
}

bool broker_topic_is_there(const struct sim_topic *t)
{
    return sim_now_us() >= t->absent_until_us;
}

struct sim_topic *broker_topic_find(struct sim_cluster *c, struct str name)
{
    for (int32_t i = 0; i < c->topics_n; i++)
        if (broker_topic_is_there(c->topics[i]) && str_eq(name, str_c(c->topics[i]->name)))
            return c->topics[i];
    return NULL;
}

struct sim_topic *broker_topic_by_id(struct sim_cluster *c, const struct uuid *id)
{
    for (int32_t i = 0; i < c->topics_n; i++)
        if (broker_topic_is_there(c->topics[i]) && memcmp(&c->topics[i]->id, id, sizeof(*id)) == 0)
            return c->topics[i];
    return NULL;
}

static int32_t some_broker(struct sim_cluster *c)
{
    int32_t up[SIM_BROKERS], n = 0;

    for (int32_t i = 0; i < c->brokers_n; i++)
        if (c->brokers[i].up)
            up[n++] = i + 1;
    return n ? up[sim_between(0, n - 1)] : -1;
}

void broker_topic_grow(struct sim_topic *t, int32_t parts)
{
    must(parts <= SIM_PARTS);
    for (; t->parts_n < parts; t->parts_n++) {
        struct sim_part *p = &t->parts[t->parts_n];

        log_init(p, t, t->parts_n);
        p->leader = p->old_leader = some_broker(t->cluster);
    }
}

static void new_id(struct sim_topic *t)
{
    for (size_t i = 0; i < sizeof(t->id.b); i++)
        t->id.b[i] = (unsigned char)sim_between(1, 255);
}

void broker_topic_anew(struct sim_topic *t, int64_t after_us)
{
    sim_say("%s: topic %s is deleted and made anew", t->cluster->name, t->name);
    t->births++;
    new_id(t);
    for (int32_t i = 0; i < t->parts_n; i++)
        log_clear(&t->parts[i]);
    t->absent_until_us = sim_now_us() + after_us;
    t->max_message_bytes = SIM_MESSAGE_MAX;
    broker_poke(t->cluster);
}

struct sim_topic *broker_topic_new(struct sim_cluster *c, struct str name, int32_t parts)
{
    struct sim_topic *t = mem_new(sizeof(*t));

    must(c->topics_n < SIM_TOPICS_ALL && name.n < sizeof(t->name));
    c->topics[c->topics_n++] = t;
    t->cluster = c;
    t->max_message_bytes = SIM_MESSAGE_MAX;
    memcpy(t->name, name.p, name.n);
    new_id(t);
    broker_topic_grow(t, parts);
    return t;
}

int32_t broker_leader_error(struct sim_broker *b, struct sim_topic *t, int32_t partition, int32_t epoch,
                            struct sim_part **out)
{
    struct sim_part *p;

    if (!t || !broker_topic_is_there(t) || partition < 0 || partition >= t->parts_n)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    p = *out = &t->parts[partition];
    if (p->leader != b->id)
        return KERR_NOT_LEADER_OR_FOLLOWER;
    if (epoch >= 0 && epoch < p->epoch)
        return KERR_FENCED_LEADER_EPOCH;
    if (epoch > p->epoch)
        return KERR_UNKNOWN_LEADER_EPOCH;
    return KERR_NONE;
}

/* --- faults --- */

/* A clean election: the new leader has all that is below the high watermark, and more or less of the rest. */
void broker_move_leader(struct sim_part *p, int32_t to)
{
    struct sim_cluster *c = p->topic->cluster;

    sim_say("%s: %s-%d moves from broker %d to %d", c->name, p->topic->name, p->number, p->leader, to);
    if (p->leader >= 0) {
        p->old_leader = p->leader;
        p->old_epoch = p->epoch;
    }
    tally(TALLY_LEADER_MOVE);
    if (!p->topic->keep_tail && to >= 0 && p->old_leader != to) {
        int64_t end = p->end;

        log_truncate(p, sim_between(p->high_watermark, p->end));
        if (p->end < end)
            tally(TALLY_TRUNCATED);
    }
    p->leader = to;
    p->epoch += !(c->plain && c->newness < 2); /* before 4.0 one that is alone does not notice that it was away */
    p->news_us = sim_now_us() + sim_between(0, ELECTION_US);
    if (to >= 0)
        sim_event_hurry(&p->replicate, sim_between(0, c->replicate_us));
    broker_poke(c);
}

/* Its partitions go to others, or stand without a leader until it is back; then it knows one batch of each
 * producer (rules 2.5). */
void broker_stop(struct sim_broker *b, int64_t for_us)
{
    struct sim_cluster *c = b->cluster;

    if (!b->up)
        return;
    tally(TALLY_RESTART);
    sim_say("%s: broker %d stops", c->name, b->id);
    b->up = b->listener.up = false;
    sim_listener_cut_all(&b->listener);
    memset(b->sessions, 0, SIM_SESSIONS * sizeof(*b->sessions));
    for (int32_t t = 0; t < c->topics_n; t++) {
        for (int32_t i = 0; i < c->topics[t]->parts_n; i++) {
            struct sim_part *p = &c->topics[t]->parts[i];
            int32_t to = some_broker(c);

            if (p->leader != b->id)
                continue;
            if (to < 0) {
                log_forget(p, 1);
                log_expire(p); /* also when snapshots are loaded (rules 2.6) */
            }
            broker_move_leader(p, to);
        }
    }
    if (c->controller == b->id && some_broker(c) >= 0)
        c->controller = some_broker(c);
    sim_event_set(&b->boot, for_us);
}
