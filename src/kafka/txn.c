/* txn.c -- entering partitions, committing and aborting, one call at a time.
 * SPDX-License-Identifier: Apache-2.0
 *
 *          open --txn_commit--> ending --committed--> open
 *           |  |                   +----refused-----> fenced
 *           |  +--partitions refused--> broken
 *           |                             |
 *           +--------txn_abort------------+--> aborting --protocol 2--> open
 *                                                 |  +--> renewing --> open
 *                                                 +--> fenced <--+
 *
 *   I-1  an end whose answer was lost is asked for again with the same identity: the coordinator gives the same answer
 *   I-2  partitions are forgotten with the end of the transaction they entered
 *   I-3  after an abort the epoch is another one, so what is still on its way of the aborted transaction is refused
 *
 * InitProducerId alone would not do for an abort: of an open transaction it raises the epoch twice, and refuses our own
 * second attempt as somebody else's.
 */
#include "kafka/txn.h"

#include "base/alloc.h"
#include "base/must.h"
#include "loop/backoff.h"

#include <stdio.h>
#include <string.h>

#define uthash_malloc(size)  mem_new(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

#define CALL_TIMEOUT_MS 5000 /* then the coordinator is looked for anew */
#define ADD_VERSION_MAX 3    /* later ones are between brokers */
#define END_VERSION_OLD 4    /* the last of protocol 1 */
#define KEY_MAX         512

struct txn_part {
    UT_hash_handle hh;
    enum { WANTED, ASKED, IN, REFUSED } state;
    int32_t kerr;
    int32_t partition;
    struct str topic; /* in key */
    size_t key_n;
    char key[];
};

enum txn_state { TXN_OPEN, TXN_ENDING, TXN_BROKEN, TXN_ABORTING, TXN_RENEWING, TXN_FENCED };

struct txn {
    struct cluster *cluster;
    struct loop *loop;
    struct txn_who who;
    char *id;
    struct txn_ops ops;
    enum txn_state state;
    struct txn_part *parts;
    int32_t wanted; /* parts in that state */
    struct task step;
    struct timer retry;
    struct backoff backoff;
    struct call call;
    struct arena arena;
    union {
        struct kafka_add_partitions_to_txn_request add;
        struct kafka_end_txn_request end;
        struct kafka_init_producer_id_request init;
    } request;
};

static struct route route_of(const struct txn *t)
{
    return (struct route){ .kind = ROUTE_TXN, .key = t->who.id };
}

static void wake(struct txn *t)
{
    task_wake(t->loop, &t->step);
}

static void try_again(struct txn *t, const char *code, const char *text)
{
    timer_set_ms(t->loop, &t->retry, backoff_next_ms(&t->backoff, loop_rand(t->loop)));
    if (code && t->ops.on_waiting)
        t->ops.on_waiting(t->ops.arg, code, text);
}

static void broken(struct txn *t, int32_t kerr)
{
    t->state = t->state == TXN_OPEN ? TXN_BROKEN : TXN_FENCED;
    t->ops.on_broken(t->ops.arg, kerr, kerr_text(kerr));
}

/* What the coordinator said to the whole request; true when it is settled here. */
static bool take_error(struct txn *t, int api, int32_t kerr)
{
    struct route route = route_of(t);

    switch (kerr_class(api, kerr)) {
    case K_OK:
        return false;
    case K_REFRESH:
        cluster_reroute(t->cluster, &route);
        try_again(t, kerr_name(kerr), kerr_text(kerr));
        return true;
    case K_AGAIN:
    case K_UNSURE:
        try_again(t, kerr == KERR_CONCURRENT_TRANSACTIONS ? NULL : kerr_name(kerr), kerr_text(kerr));
        return true;
    case K_DENIED:
        try_again(t, kerr_name(kerr), "grant Write and Describe on the transactional id to the principal of "
                                      "this connection");
        return true;
    default:
        broken(t, kerr);
        return true;
    }
}

static bool take_failure(struct txn *t)
{
    struct route route = route_of(t);

    if (!t->call.error)
        return false;
    cluster_reroute(t->cluster, &route);
    try_again(t, err_name(t->call.error), t->call.text);
    return true;
}

static void forget_parts(struct txn *t)
{
    struct txn_part *p, *next;

    HASH_ITER(hh, t->parts, p, next)
    {
        HASH_DEL(t->parts, p);
        mem_free(p);
    }
    t->wanted = 0;
}

/* --- entering --- */

static void take_part(struct txn *t, struct txn_part *p, int32_t kerr)
{
    switch (kerr_class(API_ADD_PARTITIONS_TO_TXN, kerr)) {
    case K_OK:
        p->state = IN;
        break;
    case K_GONE:
    case K_DENIED:
        p->state = REFUSED;
        p->kerr = kerr;
        break;
    default:
        p->state = WANTED;
        t->wanted++;
        break;
    }
}

static struct txn_part *find_part(struct txn *t, struct str topic, int32_t partition)
{
    char key[KEY_MAX];
    size_t n = MIN(topic.n, sizeof(key) - sizeof(partition));
    struct txn_part *p;

    memcpy(key, &partition, sizeof(partition));
    memcpy(key + sizeof(partition), topic.p, n);
    HASH_FIND(hh, t->parts, key, n + sizeof(partition), p);
    return p;
}

static void on_added(struct call *c)
{
    struct txn *t = container_of(c, struct txn, call);
    const struct kafka_add_partitions_to_txn_response *r = c->response;
    struct txn_part *p, *next;
    int32_t whole = 0;

    for (int32_t i = 0; !c->error && i < r->results_by_topic_v3_and_below.n; i++) {
        const struct kafka_add_partitions_to_txn_response_topic *rt = &r->results_by_topic_v3_and_below.at[i];

        for (int32_t j = 0; j < rt->results_by_partition.n; j++) {
            int32_t kerr = rt->results_by_partition.at[j].partition_error_code;

            p = find_part(t, rt->name, rt->results_by_partition.at[j].partition_index);
            if (p && p->state == ASKED)
                take_part(t, p, kerr);
            if (p && p->state == WANTED && kerr != KERR_OPERATION_NOT_ATTEMPTED)
                whole = kerr;
        }
    }
    HASH_ITER(hh, t->parts, p, next)
    {
        if (p->state == ASKED) { /* not spoken of */
            p->state = WANTED;
            t->wanted++;
        }
    }
    if (take_failure(t) || (whole && take_error(t, API_ADD_PARTITIONS_TO_TXN, whole)))
        return;
    backoff_reset(&t->backoff);
    wake(t);
    t->ops.on_entered(t->ops.arg);
}

static void add_asked(struct txn *t, struct txn_part *p, size_t room)
{
    struct kafka_add_partitions_to_txn_request *q = &t->request.add;
    struct kafka_add_partitions_to_txn_request_topic *to = NULL;

    for (int32_t i = 0; i < q->v3_and_below_topics.n; i++)
        if (str_eq(q->v3_and_below_topics.at[i].name, p->topic))
            to = &q->v3_and_below_topics.at[i];
    if (!to) {
        to = &q->v3_and_below_topics.at[q->v3_and_below_topics.n++];
        to->name = arena_str(&t->arena, p->topic);
        to->partitions.at = arena_array(&t->arena, room, sizeof(*to->partitions.at));
    }
    to->partitions.at[to->partitions.n++] = p->partition;
    p->state = ASKED;
}

static void start_call(struct txn *t, int api, int16_t version_max, void (*done)(struct call *c))
{
    struct route route = route_of(t);
    enum err e;

    call_fini(&t->call);
    call_init(&t->call, api, &t->request, done);
    t->call.version_max = version_max;
    t->call.timeout_ms = CALL_TIMEOUT_MS;
    e = cluster_call(t->cluster, &route, &t->call);
    if (e)
        try_again(t, err_name(e), err_text(e));
}

static void ask_parts(struct txn *t)
{
    struct kafka_add_partitions_to_txn_request *q = &t->request.add;
    struct txn_part *p, *next;
    size_t room = (size_t)t->wanted;

    arena_reset(&t->arena);
    codec_init(&kafka_add_partitions_to_txn_request_msg, q);
    q->v3_and_below_transactional_id = t->who.id;
    q->v3_and_below_producer_id = t->who.producer_id;
    q->v3_and_below_producer_epoch = t->who.epoch;
    q->v3_and_below_topics.at = arena_array(&t->arena, room, sizeof(*q->v3_and_below_topics.at));
    HASH_ITER(hh, t->parts, p, next)
    {
        if (p->state == WANTED)
            add_asked(t, p, room);
    }
    t->wanted = 0;
    start_call(t, API_ADD_PARTITIONS_TO_TXN, ADD_VERSION_MAX, on_added);
}

enum txn_part_state txn_enter(struct txn *t, struct str topic, int32_t partition, int32_t *kerr)
{
    struct txn_part *p;

    if (t->state != TXN_OPEN)
        return TXN_PART_WAIT;
    if (t->who.implicit)
        return TXN_PART_IN;
    p = find_part(t, topic, partition);
    if (!p) {
        p = mem_new(sizeof(*p) + sizeof(partition) + topic.n);
        p->partition = partition;
        p->key_n = sizeof(partition) + MIN(topic.n, KEY_MAX - sizeof(partition));
        memcpy(p->key, &partition, sizeof(partition));
        memcpy(p->key + sizeof(partition), topic.p, topic.n);
        p->topic = str_of(p->key + sizeof(partition), topic.n);
        HASH_ADD_KEYPTR(hh, t->parts, p->key, p->key_n, p);
        t->wanted++;
        wake(t);
    }
    if (p->state == REFUSED && kerr)
        *kerr = p->kerr;
    return p->state == IN ? TXN_PART_IN : p->state == REFUSED ? TXN_PART_REFUSED : TXN_PART_WAIT;
}

/* --- the end --- */

static void begin_anew(struct txn *t, int64_t producer_id, int16_t epoch, bool committed)
{
    if (producer_id >= 0) {
        t->who.producer_id = producer_id;
        t->who.epoch = epoch;
    }
    forget_parts(t);
    t->state = TXN_OPEN;
    backoff_reset(&t->backoff);
    t->ops.on_ended(t->ops.arg, committed);
}

/* The next epoch, so that what is still on its way of this one is refused. */
static void renew(struct txn *t)
{
    t->state = TXN_RENEWING;
    wake(t);
}

static void on_end(struct call *c)
{
    struct txn *t = container_of(c, struct txn, call);
    const struct kafka_end_txn_response *r = c->response;

    if (take_failure(t))
        return;
    /* There is nothing to abort: it ended, or never began. */
    if (t->state == TXN_ABORTING && r->error_code == KERR_INVALID_TXN_STATE) {
        renew(t);
        return;
    }
    if (take_error(t, API_END_TXN, r->error_code))
        return;
    if (t->state == TXN_ABORTING && !t->who.implicit)
        renew(t);
    else
        begin_anew(t, r->producer_id, r->producer_epoch, t->state == TXN_ENDING);
}

static void ask_end(struct txn *t)
{
    struct kafka_end_txn_request *q = &t->request.end;

    codec_init(&kafka_end_txn_request_msg, q);
    q->transactional_id = t->who.id;
    q->producer_id = t->who.producer_id;
    q->producer_epoch = t->who.epoch;
    q->committed = t->state == TXN_ENDING;
    start_call(t, API_END_TXN, t->who.implicit ? -1 : END_VERSION_OLD, on_end);
}

void txn_commit(struct txn *t)
{
    must(t->state == TXN_OPEN);
    t->state = TXN_ENDING;
    wake(t);
}

void txn_fill_init(struct kafka_init_producer_id_request *q, const struct txn_who *who)
{
    codec_init(&kafka_init_producer_id_request_msg, q);
    q->transactional_id = who->id;
    q->transaction_timeout_ms = who->timeout_ms;
    q->producer_id = who->producer_id;
    q->producer_epoch = who->producer_id < 0 ? -1 : who->epoch;
}

static void on_init(struct call *c)
{
    struct txn *t = container_of(c, struct txn, call);
    const struct kafka_init_producer_id_response *r = c->response;

    if (take_failure(t) || take_error(t, API_INIT_PRODUCER_ID, r->error_code))
        return;
    begin_anew(t, r->producer_id, r->producer_epoch, false);
}

static void ask_init(struct txn *t)
{
    txn_fill_init(&t->request.init, &t->who);
    start_call(t, API_INIT_PRODUCER_ID, -1, on_init);
}

void txn_abort(struct txn *t)
{
    must(t->state != TXN_ENDING); /* nobody knows what became of it */
    if (t->state == TXN_ABORTING || t->state == TXN_RENEWING || t->state == TXN_FENCED)
        return;
    call_drop(&t->call);
    timer_cancel(t->loop, &t->retry);
    forget_parts(t);
    backoff_reset(&t->backoff);
    t->state = TXN_ABORTING;
    wake(t);
}

/* --- the whole --- */

static void on_step(struct task *task)
{
    struct txn *t = container_of(task, struct txn, step);

    if (call_is_busy(&t->call) || timer_is_set(&t->retry))
        return;
    switch (t->state) {
    case TXN_OPEN:
        if (t->wanted)
            ask_parts(t);
        break;
    case TXN_ENDING:
    case TXN_ABORTING:
        ask_end(t);
        break;
    case TXN_RENEWING:
        ask_init(t);
        break;
    case TXN_BROKEN:
    case TXN_FENCED:
        break;
    }
}

static void on_retry(struct timer *timer)
{
    wake(container_of(timer, struct txn, retry));
}

struct txn *txn_new(struct cluster *cl, const struct txn_who *who, const struct txn_ops *ops)
{
    struct txn *t = mem_new(sizeof(*t));

    loop_check(cluster_loop(cl));
    t->cluster = cl;
    t->loop = cluster_loop(cl);
    t->who = *who;
    t->id = mem_copy_str(who->id.p, who->id.n);
    t->who.id = str_of(t->id, who->id.n);
    t->ops = *ops;
    task_init(&t->step, on_step);
    timer_init(&t->retry, on_retry);
    backoff_init(&t->backoff, 20, 1000);
    call_init(&t->call, API_END_TXN, &t->request, on_end);
    arena_init(&t->arena, 64 * MiB);
    return t;
}

void txn_free(struct txn **tp)
{
    struct txn *t = *tp;

    if (!t)
        return;
    *tp = NULL;
    call_drop(&t->call);
    call_fini(&t->call);
    timer_cancel(t->loop, &t->retry);
    task_cancel(&t->step);
    forget_parts(t);
    arena_fini(&t->arena);
    mem_free(t->id);
    mem_free(t);
}

const struct txn_who *txn_who(const struct txn *t)
{
    return &t->who;
}
