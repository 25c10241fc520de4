/* fetch_session.c -- what a fetch request says: to a session only what has changed (KIP-227).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Broker and link share a list of partitions with what is wanted of each. A request changes entries, adds
 * and forgets; all others are asked again silently. The broker forgets after it has added: a partition
 * that has gone and come back must not do both in one request, so what has gone is forgotten first, in a
 * request that adds nothing and does not wait.
 */
#include "kafka/fetch_link.h"

#include "base/log.h"

/* Marks a request that opens a session; the next ones count from 1 and skip 0 and below. */
#define SESSION_NEW 0

static void clear_forgotten(struct fetch_link *k)
{
    for (size_t i = 0; i < k->forgotten_n; i++)
        mem_free(k->forgotten[i].topic);
    k->forgotten_n = 0;
}

/* Everything on the list goes where it belongs without a session. */
static void relist(struct fetch_link *k, struct list_node *list)
{
    struct list_node due, *n;

    list_init(&due);
    while ((n = list_first(list))) {
        list_remove(n);
        list_add_tail(&due, n);
    }
    while ((n = list_first(&due))) {
        struct fetch_part *p = container_of(n, struct fetch_part, node);

        list_remove(n);
        p->in_session = false;
        if (p->state == FETCH_ASKED)
            p->state = FETCH_WANTED;
        fetch_put(k, p);
    }
}

void fetch_session_lost(struct fetch_link *k)
{
    struct list_node given;

    clear_forgotten(k);
    k->session_no++;
    k->session_epoch = SESSION_NEW;
    k->session_bytes = 0;
    /* Who gave nothing stands before who gave: then all have their turn without a session too. */
    list_init(&given);
    while (!list_is_empty(&k->wanted)) {
        struct list_node *n = list_first(&k->wanted);

        list_remove(n);
        list_add_tail(&given, n);
    }
    relist(k, &k->asked);
    relist(k, &given);
    relist(k, &k->leaving);
}

static bool needs_names(const struct fetch_link *k)
{
    struct list_node *n;

    LIST_EACH(n, &k->wanted)
    if (uuid_is_zero(&container_of(n, struct fetch_part, node)->topic_parts->id))
        return true;
    return false;
}

/* Some share of what is asked of the broker, in whole batches: the broker cuts at the byte, and what it sends of
 * a batch that is cut off is of no use. */
static int32_t part_bytes(const struct fetch_link *k, const struct fetch_part *p)
{
    int64_t most = MAX(k->f->config->max_partition_fetch_bytes, 1);
    int64_t share = (int64_t)(k->ask_bytes / MAX(k->behind_n, 1));

    share = MAX(share, FETCH_PART_LEAST);
    if (p->batch_bytes > 0)
        share = MAX(share / p->batch_bytes, 1) * p->batch_bytes;
    return (int32_t)MIN(share, most);
}

static void fill_part(const struct fetch_link *k, struct fetch_part *p, int version,
                      struct kafka_fetch_request_partition *out)
{
    const struct topic_meta *t = p->topic;

    codec_init(&kafka_fetch_request_partition_msg, out);
    out->partition = p->partition;
    /* Where the newest metadata lacks the partition, the leader that was meant before is meant. */
    out->current_leader_epoch = p->partition < t->parts_n ? t->parts[p->partition].leader_epoch : p->session_epoch;
    out->fetch_offset = p->offset;
    out->last_fetched_epoch = version >= 12 ? p->last_epoch : -1;
    out->partition_max_bytes = part_bytes(k, p);
}

/* Sessions add nothing in a request that forgets by name what has gone. */
static bool is_listed(const struct fetch_link *k, const struct fetch_part *p)
{
    return p->in_session || !k->forgotten_n;
}

static void build_topics(struct fetch_link *k, int version)
{
    struct part_table *t = &k->f->table;
    struct kafka_fetch_request *q = &k->request;
    struct list_node *n;
    int32_t topics = 0;

    ++t->turn;
    LIST_EACH(n, &k->wanted)
    {
        struct fetch_part *p = container_of(n, struct fetch_part, node);

        if (is_listed(k, p) && part_topic_count(t, p->topic_parts))
            p->topic_parts->at = topics++;
    }
    q->topics.at = arena_array(&k->arena, (size_t)topics, sizeof(*q->topics.at));
    q->topics.n = topics;
    LIST_EACH(n, &k->wanted)
    {
        struct fetch_part *p = container_of(n, struct fetch_part, node);
        struct part_topic *pt = p->topic_parts;
        struct kafka_fetch_request_topic *out;

        if (!is_listed(k, p))
            continue;
        out = &q->topics.at[pt->at];
        if (!out->partitions.at) {
            out->topic = pt->meta->name;
            out->topic_id = pt->id;
            out->partitions.at = arena_array(&k->arena, (size_t)pt->n, sizeof(*out->partitions.at));
        }
        fill_part(k, p, version, &out->partitions.at[out->partitions.n++]);
    }
}

static void forget(struct fetch_link *k, struct str topic, const struct uuid *id, int32_t partition)
{
    struct kafka_fetch_request *q = &k->request;
    struct kafka_fetch_request_forgotten *out =
        &q->forgotten_topics_data.at[q->forgotten_topics_data.n++];

    out->topic = topic;
    out->topic_id = *id;
    out->partitions.at = arena_alloc(&k->arena, sizeof(*out->partitions.at));
    out->partitions.at[0] = partition;
    out->partitions.n = 1;
}

static void build_forgotten(struct fetch_link *k)
{
    struct kafka_fetch_request *q = &k->request;
    size_t room = k->forgotten_n;
    struct list_node *n;

    LIST_EACH(n, &k->leaving)
    room++;
    q->forgotten_topics_data.at =
        arena_array(&k->arena, room, sizeof(*q->forgotten_topics_data.at));
    for (size_t i = 0; i < k->forgotten_n; i++)
        forget(k, str_c(k->forgotten[i].topic), &k->forgotten[i].id, k->forgotten[i].partition);
    LIST_EACH(n, &k->leaving)
    {
        struct fetch_part *p = container_of(n, struct fetch_part, node);

        forget(k, p->topic->name, &p->topic_parts->id, p->partition);
    }
}

/* A poll must not keep a partition waiting that comes back meanwhile. */
static int32_t max_wait_ms(const struct fetch_link *k)
{
    int64_t most = CLAMP(k->f->config->fetch_max_wait_ms, 0, INT32_MAX);
    int64_t rested = loop_now_ms(k->f->loop) - k->rested_ms;
    bool resting = !list_is_empty(&k->resting) && rested < FETCH_RESUME_FOR_MS;

    if (k->forgotten_n)
        return 0;
    if (resting || !list_is_empty(&k->leaving) || !list_is_empty(&k->delayed) ||
        k->session_epoch == SESSION_NEW)
        most = MIN(most, FETCH_RESUME_MS);
    return (int32_t)most;
}

/* A broker would wait in vain for more than the partitions may give. */
static int32_t min_bytes(struct fetch_link *k, int64_t may_give)
{
    int64_t most = MIN(may_give, (int64_t)k->ask_bytes);
    int32_t want = MAX(k->f->config->fetch_min_bytes, 0);

    if (want <= most || !may_give)
        return (int32_t)MIN(want, most);
    if (!k->f->min_bytes_told)
        log_event(EV_FETCH_MIN_BYTES, kv_str("cluster", cluster_name(k->f->cluster)),
                  kv_int("broker", k->broker), kv_int("asked", want), kv_int("most", most));
    k->f->min_bytes_told = true;
    return (int32_t)most;
}

static int64_t may_give(const struct fetch_link *k)
{
    int64_t sum = k->session_bytes;

    for (int32_t i = 0; i < k->request.topics.n; i++)
        for (int32_t j = 0; j < k->request.topics.at[i].partitions.n; j++)
            sum += k->request.topics.at[i].partitions.at[j].partition_max_bytes;
    return sum;
}

void fetch_session_build(struct fetch_link *k, int version)
{
    struct kafka_fetch_request *q = &k->request;

    if (k->by_id && k->session_epoch != SESSION_NEW && needs_names(k))
        fetch_session_lost(k);
    if (k->session_epoch == SESSION_NEW)
        k->by_id = version >= 13 && !needs_names(k);
    if (!k->by_id)
        version = MIN(version, 12);
    arena_reset(&k->arena);
    codec_init(&kafka_fetch_request_msg, q);
    build_topics(k, version);
    if (version >= 7)
        build_forgotten(k);
    q->max_wait_ms = max_wait_ms(k);
    q->min_bytes = min_bytes(k, may_give(k));
    q->max_bytes = (int32_t)k->ask_bytes;
    q->isolation_level = k->f->isolation_level;
    q->session_id = k->session_id;
    q->session_epoch = k->session_epoch;
    q->rack_id = k->f->config->client_rack.p ? k->f->config->client_rack : STR("");
}

static void told(struct fetch_link *k, struct fetch_part *p,
                 const struct kafka_fetch_request_partition *as)
{
    k->session_bytes += as->partition_max_bytes - (p->in_session ? p->session_max_bytes : 0);
    p->in_session = true;
    p->session_offset = as->fetch_offset;
    p->session_epoch = as->current_leader_epoch;
    p->session_last_epoch = as->last_fetched_epoch;
    p->session_max_bytes = as->partition_max_bytes;
    p->state = FETCH_ASKED;
    list_remove(&p->node);
    fetch_put(k, p);
}

void fetch_session_sent(struct fetch_link *k)
{
    struct list_node *n, *after;

    LIST_EACH_SAFE(n, after, &k->leaving)
    {
        struct fetch_part *p = container_of(n, struct fetch_part, node);

        k->session_bytes -= p->session_max_bytes;
        p->in_session = false;
        list_remove(n);
        fetch_put(k, p);
    }
    clear_forgotten(k);
    for (int32_t i = 0; i < k->request.topics.n; i++) {
        const struct kafka_fetch_request_topic *t = &k->request.topics.at[i];
        struct part_topic *pt = part_table_find(&k->f->table, t->topic, &(struct uuid){ 0 });

        for (int32_t j = 0; j < t->partitions.n; j++)
            told(k, part_topic_find(pt, t->partitions.at[j].partition), &t->partitions.at[j]);
    }
}
