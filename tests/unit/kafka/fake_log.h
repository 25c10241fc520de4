/* fake_log.h -- a fake cluster of two brokers that keeps logs: leaders, produce with sequences, faults by order.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both brokers (ids 1 and 2) stand over one set of logs. A partition's faults are used up one by one, in the
 * order in which they were put there. Fetch is in fake_fetch.h, start and metadata in fake_cluster.h.
 */
#ifndef TESTS_UNIT_KAFKA_FAKE_LOG_H
#define TESTS_UNIT_KAFKA_FAKE_LOG_H

#include "unit/kafka/fake_broker.h"
#include "unit/kafka/kafka_test.h"
#include "wire/batch_builder.h"

#define LOG_BROKERS    2
#define LOG_PARTS      64
#define LOG_FAULTS     32
#define LOG_PIDS       4
#define LOG_REMEMBERED 5

struct log_batch {
    int64_t base, last;
    char *bytes;
    size_t n;
};

struct log_pid {
    int64_t id;
    int16_t epoch;
    struct {
        int32_t first, last;
        int64_t base;
    } seen[LOG_REMEMBERED]; /* newest last */
    int seen_n;
};

/* What happens to a produced batch. */
struct log_fault {
    int32_t kerr;
    bool append; /* all the same */
};

struct log_part {
    int32_t leader, epoch;
    struct log_batch *batches;
    size_t batches_n, batches_room;
    int64_t end, start;
    struct log_pid pids[LOG_PIDS];
    int pids_n;
    struct log_fault faults[LOG_FAULTS];
    int faults_n;
    int32_t fetch_errors[LOG_FAULTS];
    int fetch_errors_n;
    uint32_t produced; /* requests with this partition */
};

struct fake_log {
    struct loop *l;
    struct fake brokers[LOG_BROKERS];
    const char *topic;
    struct uuid id;
    int32_t topic_error;
    struct log_part parts[LOG_PARTS];
    int32_t parts_n;
    struct arena arena; /* of one answer */

    /* Produce. */
    bool hold;        /* produce requests get no answer */
    uint32_t held;    /* how many did not */
    int cut_in;       /* hang up instead of answering the n-th produce request from now; 0: never */
    bool cut_appends; /* having written it */
    int produce_version;
    int64_t next_pid;
    int32_t pid_error; /* of InitProducerId */
    uint32_t pids_given;
    bool tell_leader; /* errors name the new leader */

    struct fetch_fake *fetch;
};

static inline struct log_part *log_part(struct fake_log *g, int32_t i)
{
    CHECK(i >= 0 && i < g->parts_n);
    return &g->parts[i];
}

static inline int64_t log_append(struct log_part *p, const char *bytes, size_t n)
{
    struct batch b;
    struct log_batch *e;

    CHECK_EQ(batch_peek(str_of(bytes, n), &b), BATCH_V2);
    CHECK_EQ(b.size, n);
    if (p->batches_n == p->batches_room) {
        p->batches_room = MAX(p->batches_room * 2, 16);
        p->batches = mem_resize(p->batches, p->batches_room, sizeof(*p->batches));
    }
    e = &p->batches[p->batches_n++];
    *e = (struct log_batch){ .base = p->end, .last = p->end + b.last_offset_delta, .n = n };
    e->bytes = mem_copy_str(bytes, n);
    store_u64(e->bytes, (uint64_t)e->base);
    store_u32(e->bytes + 12, (uint32_t)p->epoch);
    p->end = e->last + 1;
    return e->base;
}

static inline void log_fail(struct log_part *p, int32_t kerr, bool append)
{
    CHECK(p->faults_n < LOG_FAULTS);
    p->faults[p->faults_n++] = (struct log_fault){ .kerr = kerr, .append = append };
}

static inline bool log_take_fault(struct log_part *p, struct log_fault *out)
{
    if (!p->faults_n)
        return false;
    *out = p->faults[0];
    p->faults_n--;
    memmove(p->faults, p->faults + 1, (size_t)p->faults_n * sizeof(p->faults[0]));
    return true;
}

static inline struct log_pid *log_pid(struct log_part *p, int64_t id)
{
    for (int i = 0; i < p->pids_n; i++)
        if (p->pids[i].id == id)
            return &p->pids[i];
    CHECK(p->pids_n < LOG_PIDS);
    p->pids[p->pids_n] = (struct log_pid){ .id = id, .epoch = -1 };
    return &p->pids[p->pids_n++];
}

/* The broker's rules for sequences (relay rules 2.5); gives the error, and where the batch is. */
static inline int32_t log_sequence(struct log_pid *s, const struct batch *b, int64_t *base)
{
    int32_t last = b->base_sequence + b->count - 1;

    if (b->producer_epoch < s->epoch)
        return KERR_INVALID_PRODUCER_EPOCH;
    if (b->producer_epoch > s->epoch && s->seen_n) {
        s->seen_n = 0;
        if (b->base_sequence)
            return KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    }
    for (int i = 0; i < s->seen_n; i++)
        if (s->seen[i].first == b->base_sequence && s->seen[i].last == last) {
            *base = s->seen[i].base;
            return KERR_DUPLICATE_SEQUENCE_NUMBER;
        }
    if (s->seen_n && b->base_sequence != s->seen[s->seen_n - 1].last + 1)
        return KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    return 0;
}

static inline void log_remember(struct log_pid *s, const struct batch *b, int64_t base)
{
    if (s->seen_n == LOG_REMEMBERED) {
        memmove(s->seen, s->seen + 1, sizeof(s->seen[0]) * (LOG_REMEMBERED - 1));
        s->seen_n--;
    }
    s->epoch = b->producer_epoch;
    s->seen[s->seen_n].first = b->base_sequence;
    s->seen[s->seen_n].last = b->base_sequence + b->count - 1;
    s->seen[s->seen_n++].base = base;
}

/* 0, or why not; *base is where the batch is. */
static inline int32_t log_write_batch(struct log_part *p, struct str bytes, int64_t *base)
{
    struct batch b;
    struct log_pid *s;
    int32_t kerr;

    CHECK_EQ(batch_peek(bytes, &b), BATCH_V2);
    CHECK(batch_crc_ok(bytes.p, bytes.n));
    CHECK_EQ(b.base_offset, 0);
    if (b.producer_id < 0) {
        *base = log_append(p, bytes.p, bytes.n);
        return 0;
    }
    s = log_pid(p, b.producer_id);
    kerr = log_sequence(s, &b, base);
    if (kerr)
        return kerr == KERR_DUPLICATE_SEQUENCE_NUMBER ? 0 : kerr;
    *base = log_append(p, bytes.p, bytes.n);
    log_remember(s, &b, *base);
    return 0;
}

static inline int32_t log_broker_id(const struct fake_log *g, const struct fake *f)
{
    return (int32_t)(f - g->brokers) + 1;
}

static inline void log_produce_one(struct fake_log *g, int32_t broker, int32_t index,
                                   struct str bytes, struct kafka_produce_response_partition *out)
{
    struct log_part *p = log_part(g, index);
    struct log_fault fault = { 0 };
    bool faulty;

    codec_init(&kafka_produce_response_partition_msg, out);
    out->index = index;
    out->base_offset = -1;
    p->produced++;
    if (p->leader != broker) {
        out->error_code = KERR_NOT_LEADER_OR_FOLLOWER;
        if (g->tell_leader) {
            out->current_leader.leader_id = p->leader;
            out->current_leader.leader_epoch = p->epoch;
        }
        return;
    }
    faulty = log_take_fault(p, &fault);
    if (!faulty || fault.append)
        out->error_code = (int16_t)log_write_batch(p, bytes, &out->base_offset);
    if (faulty)
        out->error_code = (int16_t)fault.kerr;
}

static inline void log_produce(struct fake_log *g, struct fake *f, struct fake_request *q)
{
    const struct kafka_produce_request *in = q->body;
    struct kafka_produce_response r;
    bool cut = g->cut_in && --g->cut_in == 0;

    CHECK_EQ(in->acks, -1);
    g->produce_version = q->version;
    codec_init(&kafka_produce_response_msg, &r);
    r.responses.at = arena_array(&g->arena, (size_t)in->topic_data.n, sizeof(*r.responses.at));
    r.responses.n = in->topic_data.n;
    for (int32_t i = 0; i < in->topic_data.n; i++) {
        const struct kafka_produce_request_topic *t = &in->topic_data.at[i];
        struct kafka_produce_response_topic *out = &r.responses.at[i];

        out->name = t->name;
        out->topic_id = t->topic_id;
        out->partition_responses.n = t->partition_data.n;
        out->partition_responses.at = arena_array(&g->arena, (size_t)t->partition_data.n,
                                                  sizeof(*out->partition_responses.at));
        for (int32_t j = 0; j < t->partition_data.n && (!cut || g->cut_appends); j++)
            /* Backwards: the order of an answer is the broker's. */
            log_produce_one(g, log_broker_id(g, f), t->partition_data.at[j].index,
                            t->partition_data.at[j].records.body,
                            &out->partition_responses.at[t->partition_data.n - 1 - j]);
    }
    if (cut)
        fake_hang_up(q->conn);
    else if (g->hold)
        g->held++;
    else
        fake_answer(q, q->version, &r);
}

#endif
