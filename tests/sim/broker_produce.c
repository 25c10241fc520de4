/* broker_produce.c -- Produce of a simulated broker: checks, sequences, and the wait for replicas.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "broker.h"

#include "base/must.h"
#include "tally.h"

#include <string.h>

/* What became of one partition of a request. */
struct outcome {
    struct sim_part *part;
    int32_t index, kerr, epoch;
    uint32_t births; /* of the topic */
    int64_t base, need; /* acknowledged once the high watermark is there */
    int64_t append_ms;  /* -1: none is told */
    bool in_log;        /* it was the log that found fault with it */
    struct sim_wrong_records wrong;
};

struct produce_note {
    struct outcome *at;
    int32_t n;
};

/* Rules 2.5. o->base is set for a duplicate. */
static int32_t check_sequence(struct sim_part *p, const struct batch *b, struct outcome *o)
{
    struct sim_pid *pid = b->producer_id >= 0 ? log_pid(p, b->producer_id, false) : NULL;
    int32_t last = (int32_t)(((int64_t)b->base_sequence + b->last_offset_delta) & INT32_MAX);

    if (!pid)
        return KERR_NONE; /* an unknown id: any sequence, any epoch */
    if (b->producer_epoch < pid->epoch)
        return KERR_INVALID_PRODUCER_EPOCH;
    if (pid->txn_first >= 0 && !(b->attributes & BATCH_TRANSACTIONAL))
        return KERR_INVALID_TXN_STATE;
    if (b->producer_epoch > pid->epoch || pid->seen_n == 0)
        return b->base_sequence == 0 ? KERR_NONE : KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    for (int i = 0; i < pid->seen_n; i++) {
        if (pid->seen[i].first != b->base_sequence || pid->seen[i].last != last)
            continue;
        o->base = pid->seen[i].base;
        o->append_ms = pid->seen[i].timestamp; /* rules 3 */
        return KERR_NONE;
    }
    if (((pid->seen[pid->seen_n - 1].last + INT64_C(1)) & INT32_MAX) != b->base_sequence)
        return KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    return KERR_NONE;
}

/* What a mirror never sends. */
static void accuse(const struct outcome *o, const struct sim_topic *t, int32_t index)
{
    if (t && !t->cluster->plain && (o->kerr == KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED || o->kerr == KERR_INVALID_RECORD || o->kerr == KERR_INVALID_TIMESTAMP ||
                               o->kerr == KERR_UNKNOWN_SERVER_ERROR))
        sim_fail("%s-%d was sent what no broker takes: %s", t->name, index, kerr_name(o->kerr));
}

/* Whether there are enough replicas for acks=-1; a partition of one needs no second one from 3.x on (rules 2.1). */
static bool has_replicas(const struct sim_topic *t, const struct sim_part *p)
{
    return p->not_enough_until_us <= sim_now_us() && (t->min_isr <= 1 || t->cluster->newness > 0 || !t->cluster->plain);
}

static int32_t judge(struct sim_request *q, struct sim_topic *t, struct str bytes, struct batch *b, struct outcome *o)
{
    const struct kafka_produce_request *m = q->msg;
    int32_t kerr;

    if (m->acks < -1 || m->acks > 1)
        return KERR_INVALID_REQUIRED_ACKS;
    kerr = broker_leader_error(q->broker, t, o->index, -1, &o->part);
    if (kerr)
        return kerr;
    o->epoch = o->part->epoch;
    o->births = o->part->topic->births;
    if (m->acks == -1 && (!has_replicas(t, o->part) || (t->cluster->flaps && sim_chance(t->cluster->flaps)))) {
        o->in_log = true;
        return KERR_NOT_ENOUGH_REPLICAS; /* before duplicates are looked for (rules 2.1) */
    }
    kerr = broker_txn_error(q, o->part, b);
    if (kerr)
        return kerr;
    if (t->cluster->forgets && sim_chance(t->cluster->forgets))
        log_expire(o->part);
    kerr = broker_check_batch(t, bytes, b, &o->wrong);
    if (!kerr)
        kerr = check_sequence(o->part, b, o);
    o->in_log = kerr && kerr != KERR_MESSAGE_TOO_LARGE && kerr != KERR_CORRUPT_MESSAGE &&
                kerr != KERR_RECORD_LIST_TOO_LARGE;
    return kerr;
}

static void produce_one(struct sim_request *q, struct sim_topic *t, struct str bytes, struct outcome *o)
{
    const struct kafka_produce_request *m = q->msg;
    struct batch b;

    o->base = o->append_ms = -1;
    if (t && sim_now_us() < t->known_us && q->broker->id != t->cluster->controller)
        t = NULL;
    o->kerr = !t || o->index < 0 || o->index >= t->parts_n ? KERR_UNKNOWN_TOPIC_OR_PARTITION
                                                          : broker_check_form(bytes, q->head.version, &b);
    if (!o->kerr)
        o->kerr = judge(q, t, bytes, &b, o);
    accuse(o, t, o->index);
    if (o->kerr)
        return;
    if (o->base < 0) {
        bytes = arena_str(&q->arena, str_part(bytes, 0, b.size));
        broker_stamp_time(t, (char *)(uintptr_t)bytes.p, bytes.n);
        o->base = log_append(o->part, bytes);
        if (t->log_append_time)
            o->append_ms = sim_wall_ms();
    }
    o->need = m->acks == -1 ? o->base + b.last_offset_delta + 1 : 0;
}

/* A transactional batch without a transactional id ends the whole request (rules 2.1). */
static bool is_unauthorised(const struct kafka_produce_request *m)
{
    struct batch b;

    for (int32_t i = 0; !m->transactional_id.p && i < m->topic_data.n; i++)
        for (int32_t j = 0; j < m->topic_data.at[i].partition_data.n; j++)
            if (batch_peek(m->topic_data.at[i].partition_data.at[j].records.body, &b) == BATCH_V2 &&
                b.attributes & BATCH_TRANSACTIONAL)
                return true;
    return false;
}

static void produce_all(struct sim_request *q, struct produce_note *note)
{
    const struct kafka_produce_request *m = q->msg;
    bool refused = is_unauthorised(m);
    int32_t n = 0;

    for (int32_t i = 0; i < m->topic_data.n; i++)
        n += m->topic_data.at[i].partition_data.n;
    note->at = arena_array(&q->arena, (size_t)n, sizeof(*note->at));
    for (int32_t i = 0; i < m->topic_data.n; i++) {
        const struct kafka_produce_request_topic *topic = &m->topic_data.at[i];
        struct sim_topic *t = q->head.version >= 13
                                  ? broker_topic_by_id(q->broker->cluster, &topic->topic_id)
                                  : broker_topic_find(q->broker->cluster, topic->name);

        for (int32_t j = 0; j < topic->partition_data.n; j++) {
            struct outcome *o = &note->at[note->n++];

            o->index = topic->partition_data.at[j].index;
            if (refused) {
                o->kerr = KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
                accuse(o, t, o->index);
                continue;
            }
            produce_one(q, t, topic->partition_data.at[j].records.body, o);
            if (!t && q->head.version >= 13)
                o->kerr = KERR_UNKNOWN_TOPIC_ID;
            for (int32_t k = 0; o->part && k < note->n - 1; k++)
                if (note->at[k].part == o->part) /* the later silently replaces the earlier (rules 2.1) */
                    sim_fail("a request names %s-%d twice", o->part->topic->name, o->part->number);
        }
    }
}

/* acks=-1: all replicas have it, or the leader has changed, or time is up. */
static bool is_settled(struct outcome *o, bool late)
{
    if (!o->kerr && o->births != o->part->topic->births)
        o->kerr = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (o->kerr || o->part->high_watermark >= o->need) {
        if (!o->kerr && o->part->epoch == o->epoch)
            o->need = 0;
        if (!o->kerr && o->part->epoch != o->epoch)
            o->kerr = KERR_NOT_LEADER_OR_FOLLOWER;
        return true;
    }
    if (o->part->epoch != o->epoch)
        o->kerr = KERR_NOT_LEADER_OR_FOLLOWER; /* it may be in the log or not */
    else if (late && (tally(TALLY_TIMED_OUT), true))
        o->kerr = KERR_REQUEST_TIMED_OUT;
    return o->kerr != 0;
}

/* Which records are to blame (rules 2.1); structural errors name none. */
static void name_wrong(struct sim_request *q, const struct outcome *o, struct kafka_produce_response_partition *out)
{
    out->record_errors.at = arena_array(&q->arena, (size_t)o->wrong.n, sizeof(*out->record_errors.at));
    for (int32_t i = 0; o->kerr && i < o->wrong.n; i++) {
        out->record_errors.at[i].batch_index = o->wrong.at[i];
        out->record_errors.at[i].batch_index_error_message = STR_NULL;
        out->record_errors.n = i + 1;
    }
}

static void answer_all(struct sim_request *q, const struct produce_note *note)
{
    const struct kafka_produce_request *m = q->msg;
    struct kafka_produce_response r;
    int32_t k = 0;

    codec_init(&kafka_produce_response_msg, &r);
    r.throttle_time_ms = q->broker->throttle_ms;
    r.responses.at = arena_array(&q->arena, (size_t)m->topic_data.n, sizeof(*r.responses.at));
    r.responses.n = m->topic_data.n;
    for (int32_t i = 0; i < m->topic_data.n; i++) {
        const struct kafka_produce_request_topic *in = &m->topic_data.at[i];
        struct kafka_produce_response_topic *t = &r.responses.at[i];

        t->name = in->name;
        t->topic_id = in->topic_id;
        t->partition_responses.n = in->partition_data.n;
        t->partition_responses.at =
            arena_array(&q->arena, (size_t)in->partition_data.n, sizeof(*t->partition_responses.at));
        for (int32_t j = 0; j < in->partition_data.n; j++) {
            struct kafka_produce_response_partition *out = &t->partition_responses.at[j];
            const struct outcome *o = &note->at[k++];

            codec_init(&kafka_produce_response_partition_msg, out);
            out->index = in->partition_data.at[j].index;
            out->error_code = (int16_t)o->kerr;
            out->base_offset = o->kerr && o->kerr != KERR_REQUEST_TIMED_OUT ? -1 : o->base;
            out->log_append_time_ms = o->kerr ? -1 : o->append_ms;
            out->log_start_offset = o->kerr && !o->in_log ? -1 : o->part->start;
            out->error_message = STR_NULL;
            name_wrong(q, o, out);
        }
    }
    broker_answer(q, &r);
}

bool broker_produce(struct sim_request *q)
{
    const struct kafka_produce_request *m = q->msg;
    struct produce_note *note = q->note;
    bool settled = true;

    if (m->acks != -1 && !q->broker->cluster->plain)
        sim_fail("a mirror writes with acks=%d", m->acks);
    if (q->stage == 0) {
        q->stage = 1;
        note = q->note = arena_alloc(&q->arena, sizeof(*note));
        produce_all(q, note);
    }
    for (int32_t i = 0; i < note->n; i++)
        settled = is_settled(&note->at[i], q->until_us && sim_now_us() >= q->until_us) && settled;
    if (!settled) {
        broker_wait(q, m->timeout_ms * SIM_MS);
        return false;
    }
    if (m->acks != 0)
        answer_all(q, note);
    return true;
}
