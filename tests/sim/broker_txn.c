/* broker_txn.c -- the coordinator of transactions of a simulated broker, and the markers that it writes.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   empty --a partition enters--> open --EndTxn--> committed | aborted --a partition enters--> open
 *                                   +--InitProducerId: aborted, with the next epoch
 *
 * Both protocols (rules 5.6): with the first, partitions enter by AddPartitionsToTxn and the epoch stays; with the
 * second, they enter by being written to (Produce 12) and each end gives the next epoch (EndTxn 5). Markers are there
 * when the end is answered.
 */
#include "broker.h"

#include "base/must.h"
#include "wire/prim.h"
#include "wire/record.h"

#include <string.h>

static struct sim_txn *find(struct sim_cluster *c, struct str name, bool make)
{
    for (int i = 0; i < SIM_TXNS; i++) {
        struct sim_txn *x = &c->txns[i];

        if (str_eq(name, str_c(x->name)))
            return x;
        if (x->name[0] || !make)
            continue;
        must(name.n < sizeof(x->name));
        memcpy(x->name, name.p, name.n);
        x->producer_id = c->next_pid++;
        x->epoch = -1;
        return x;
    }
    must(!make);
    return NULL;
}

/* --- markers --- */

/* Rules 1.3: one record, whose key is version and type. */
static void mark(struct sim_part *p, int64_t id, int16_t epoch, bool commit)
{
    struct batch b = { .magic = 2, .attributes = BATCH_TRANSACTIONAL | BATCH_CONTROL, .producer_id = id,
                       .producer_epoch = epoch, .base_sequence = -1, .count = 1, .base_timestamp = sim_wall_ms(),
                       .max_timestamp = sim_wall_ms() };
    struct record r = { .key = commit ? STR("\0\0\0\1") : STR("\0\0\0\0"), .value = STR("\0\0\0\0\0\0"),
                        .headers = STR("") };
    struct sim_pid *pid = log_pid(p, id, false);
    int64_t first = pid ? pid->txn_first : -1;
    unsigned char header[BATCH_HEADER_SIZE];
    struct buf area, whole;
    int64_t at;

    buf_init(&area, 1 * KiB);
    buf_init(&whole, 1 * KiB);
    record_put(&area, &r);
    batch_seal(&b, buf_str(&area), header);
    buf_put(&whole, header, sizeof(header));
    buf_put(&whole, area.p, area.n);
    at = log_append(p, buf_str(&whole));
    if (!commit && first >= 0)
        log_abort(p, id, first, at);
    buf_fini(&area);
    buf_fini(&whole);
}

static void end(struct sim_txn *x, int16_t epoch, bool commit)
{
    for (int i = 0; i < x->parts_n; i++)
        mark(x->parts[i], x->producer_id, epoch, commit);
    x->parts_n = 0;
    x->state = commit ? TXN_COMMITTED : TXN_ABORTED;
    sim_say("transaction %s: %s", x->name, commit ? "committed" : "aborted");
}

/* --- InitProducerId --- */

/* KERR_NONE, and the id that goes on with the next epoch. */
static int32_t begin(struct sim_txn *x)
{
    if (x->state == TXN_OPEN) { /* who had it is shut out, and what it had open is aborted */
        x->epoch++;
        end(x, x->epoch, false);
        return KERR_CONCURRENT_TRANSACTIONS;
    }
    x->epoch++;
    x->last_epoch = -1;
    x->state = TXN_EMPTY;
    return KERR_NONE;
}

/* Without a transactional id always a new one, with epoch 0 (rules 5.2). */
bool broker_init_producer_id(struct sim_request *q)
{
    const struct kafka_init_producer_id_request *m = q->msg;
    struct sim_cluster *c = q->broker->cluster;
    struct kafka_init_producer_id_response r;

    codec_init(&kafka_init_producer_id_response_msg, &r);
    if (broker_luck(c, 20)) /* just after a start there is no block of ids yet (rules 5.2) */
        r.error_code = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    else if (m->transactional_id.p)
        r.error_code = (int16_t)begin(find(c, m->transactional_id, true));
    if (r.error_code) {
        r.producer_epoch = -1;
    } else if (m->transactional_id.p) {
        r.producer_id = find(c, m->transactional_id, false)->producer_id;
        r.producer_epoch = find(c, m->transactional_id, false)->epoch;
    } else {
        r.producer_id = c->next_pid++;
    }
    broker_answer(q, &r);
    return true;
}

/* --- AddPartitionsToTxn --- */

static int32_t check_owner(const struct sim_txn *x, int64_t id, int16_t epoch, int32_t fenced)
{
    if (!x || x->producer_id != id)
        return KERR_INVALID_PRODUCER_ID_MAPPING;
    return x->epoch != epoch ? fenced : KERR_NONE;
}

static void enter(struct sim_txn *x, struct sim_part *p)
{
    for (int i = 0; i < x->parts_n; i++)
        if (x->parts[i] == p)
            return;
    must(x->parts_n < SIM_PARTS);
    x->parts[x->parts_n++] = p;
    x->state = TXN_OPEN;
}

bool broker_add_partitions_to_txn(struct sim_request *q)
{
    const struct kafka_add_partitions_to_txn_request *m = q->msg;
    struct sim_cluster *c = q->broker->cluster;
    struct kafka_add_partitions_to_txn_response r;
    struct sim_txn *x = find(c, m->v3_and_below_transactional_id, false);
    int32_t kerr = check_owner(x, m->v3_and_below_producer_id, m->v3_and_below_producer_epoch,
                               q->head.version < 2 ? KERR_INVALID_PRODUCER_EPOCH : KERR_PRODUCER_FENCED);
    bool unknown = false;

    codec_init(&kafka_add_partitions_to_txn_response_msg, &r);
    r.results_by_topic_v3_and_below.n = m->v3_and_below_topics.n;
    r.results_by_topic_v3_and_below.at =
        arena_array(&q->arena, (size_t)m->v3_and_below_topics.n, sizeof(*r.results_by_topic_v3_and_below.at));
    for (int pass = 0; pass < 2; pass++) { /* one unknown partition, and none enters */
        for (int32_t i = 0; i < m->v3_and_below_topics.n; i++) {
            const struct kafka_add_partitions_to_txn_request_topic *in = &m->v3_and_below_topics.at[i];
            struct kafka_add_partitions_to_txn_response_topic *out = &r.results_by_topic_v3_and_below.at[i];
            struct sim_topic *t = broker_topic_find(c, in->name);

            out->name = in->name;
            if (pass == 0)
                out->results_by_partition.at =
                    arena_array(&q->arena, (size_t)in->partitions.n, sizeof(*out->results_by_partition.at));
            out->results_by_partition.n = in->partitions.n;
            for (int32_t j = 0; j < in->partitions.n; j++) {
                bool there = t && in->partitions.at[j] >= 0 && in->partitions.at[j] < t->parts_n;

                out->results_by_partition.at[j].partition_index = in->partitions.at[j];
                out->results_by_partition.at[j].partition_error_code =
                    (int16_t)(!there ? KERR_UNKNOWN_TOPIC_OR_PARTITION : unknown ? KERR_OPERATION_NOT_ATTEMPTED : kerr);
                unknown = unknown || !there;
                if (pass == 1 && !unknown && !kerr)
                    enter(x, &t->parts[in->partitions.at[j]]);
            }
        }
    }
    broker_answer(q, &r);
    return true;
}

/* --- EndTxn --- */

static int32_t end_error(const struct sim_txn *x, const struct kafka_end_txn_request *m, int version)
{
    int32_t fenced = version < 2 ? KERR_INVALID_PRODUCER_EPOCH : KERR_PRODUCER_FENCED;
    bool again = version >= 5 && x && m->producer_epoch == x->last_epoch; /* of the one that has ended */
    int32_t kerr = check_owner(x, m->producer_id, again ? x->epoch : m->producer_epoch, fenced);

    if (kerr || x->state == TXN_OPEN)
        return again && !kerr ? fenced : kerr;
    if (version >= 5 && !again)
        return m->committed ? KERR_INVALID_TXN_STATE : KERR_NONE;
    if (x->state == TXN_EMPTY)
        return KERR_INVALID_TXN_STATE;
    return (x->state == TXN_COMMITTED) == m->committed ? KERR_NONE : KERR_INVALID_TXN_STATE;
}

bool broker_end_txn(struct sim_request *q)
{
    const struct kafka_end_txn_request *m = q->msg;
    struct kafka_end_txn_response r;
    struct sim_txn *x = find(q->broker->cluster, m->transactional_id, false);

    codec_init(&kafka_end_txn_response_msg, &r);
    r.error_code = (int16_t)end_error(x, m, q->head.version);
    if (!r.error_code && x->state == TXN_OPEN) {
        bool second = q->head.version >= 5;

        x->last_epoch = x->epoch;
        x->epoch = (int16_t)(x->epoch + second);
        end(x, x->epoch, m->committed);
    }
    if (!r.error_code && q->head.version >= 5) {
        r.producer_id = x->producer_id;
        r.producer_epoch = x->epoch;
    }
    if (r.error_code)
        r.producer_epoch = -1;
    broker_answer(q, &r);
    return true;
}

/* --- writing --- */

/* Brokers of 3.6 and later ask the coordinator before a partition's first batch of a transaction (rules 5.6). */
int32_t broker_txn_error(struct sim_request *q, struct sim_part *p, const struct batch *b)
{
    const struct kafka_produce_request *m = q->msg;
    struct sim_cluster *c = q->broker->cluster;
    struct sim_pid *pid = log_pid(p, b->producer_id, false);
    struct sim_txn *x;
    int32_t kerr;

    if (!(b->attributes & BATCH_TRANSACTIONAL) || c->newness < 1 || (pid && pid->txn_first >= 0))
        return KERR_NONE;
    x = find(c, m->transactional_id, false);
    kerr = check_owner(x, b->producer_id, b->producer_epoch, KERR_INVALID_PRODUCER_EPOCH);
    if (kerr)
        return kerr;
    if (q->head.version >= 12)
        enter(x, p);
    for (int i = 0; i < x->parts_n; i++)
        if (x->parts[i] == p)
            return KERR_NONE;
    return q->head.version >= 11 ? KERR_TRANSACTION_ABORTABLE : KERR_INVALID_TXN_STATE;
}
