/* broker_offsets.c -- ListOffsets, OffsetForLeaderEpoch and DescribeProducers of a simulated broker.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "broker.h"

#include "wire/record.h"

#include <string.h>

/* A follower answers replica -2 with its own, older end and no error (rules 5.5); a leader with all that it has. */
static int64_t debug_end(const struct sim_broker *b, const struct sim_part *p)
{
    return p->leader == b->id ? p->end : sim_between(p->start, p->high_watermark);
}

/* The first record at or behind a time, or with the largest one; only below the high watermark (rules 4.7). */
static void find_time(const struct sim_part *p, int64_t least, bool largest,
                      struct kafka_list_offsets_response_partition *out)
{
    bool done = false;

    out->timestamp = out->offset = out->leader_epoch = -1;
    for (size_t i = 0; i < p->batches_n && !done; i++) {
        const struct sim_batch *e = &p->batches[i];
        struct record_reader in;
        struct record r;
        struct batch b;
        struct buf area;

        if (e->gone || e->last < p->start || e->last >= p->high_watermark ||
            batch_peek(str_of(e->bytes, e->n), &b) != BATCH_V2 || b.attributes & BATCH_CONTROL)
            continue;
        if (broker_unpack(str_of(e->bytes, e->n), &b, &area, &in)) {
            while (!done && record_next(&in, &r)) {
                int64_t at = b.base_timestamp + r.timestamp_delta;

                if (b.attributes & BATCH_LOG_APPEND_TIME)
                    at = b.max_timestamp;
                if (at < least || e->base + r.offset_delta < p->start || (largest && at <= out->timestamp))
                    continue;
                out->timestamp = at;
                out->offset = e->base + r.offset_delta;
                out->leader_epoch = e->epoch;
                done = !largest;
            }
        }
        buf_fini(&area);
    }
}

/* What a negative time means depends on the version; an old broker takes any other for a time (rules 4.7). */
static void find_special(const struct sim_request *q, const struct sim_part *p, int64_t timestamp,
                         struct kafka_list_offsets_response_partition *out)
{
    if (timestamp >= 0 || q->broker->cluster->newness == 0)
        find_time(p, timestamp, false, out);
    else if (timestamp == -3 && q->head.version >= 7)
        find_time(p, INT64_MIN, true, out);
    else
        out->error_code = KERR_UNSUPPORTED_VERSION;
    if (out->error_code)
        out->leader_epoch = -1;
}

static bool is_named_twice(const struct kafka_list_offsets_request_topic *t, int32_t partition)
{
    int n = 0;

    for (int32_t i = 0; i < t->partitions.n; i++)
        n += t->partitions.at[i].partition_index == partition;
    return n > 1;
}

/* Of a partition that is named twice a broker of today tells once. */
static bool is_named_before(const struct sim_request *q, const struct kafka_list_offsets_request_topic *t, int32_t i)
{
    for (int32_t k = 0; q->broker->cluster->newness >= 2 && k < i; k++)
        if (t->partitions.at[k].partition_index == t->partitions.at[i].partition_index)
            return true;
    return false;
}

static void list_one(struct sim_request *q, const struct kafka_list_offsets_request_topic *in,
                     const struct kafka_list_offsets_request_partition *want,
                     struct kafka_list_offsets_response_partition *out)
{
    const struct kafka_list_offsets_request *m = q->msg;
    struct sim_topic *t = broker_topic_find(q->broker->cluster, in->name);
    struct sim_part *p = NULL;

    codec_init(&kafka_list_offsets_response_partition_msg, out);
    out->partition_index = want->partition_index;
    out->error_code = (int16_t)broker_leader_error(q->broker, t, want->partition_index,
                                                   want->current_leader_epoch, &p);
    if (out->error_code == KERR_NOT_LEADER_OR_FOLLOWER && m->replica_id == -2)
        out->error_code = KERR_NONE;
    if (is_named_twice(in, want->partition_index))
        out->error_code = KERR_INVALID_REQUEST;
    if (out->error_code)
        return;
    out->leader_epoch = p->epoch;
    if (want->timestamp == -2)
        out->offset = p->start;
    else if (m->replica_id == -2)
        out->offset = debug_end(q->broker, p);
    else if (want->timestamp == -1)
        out->offset = m->isolation_level ? log_last_stable(p) : p->high_watermark;
    else
        find_special(q, p, want->timestamp, out);
    if (want->timestamp == -1 && m->replica_id != -2 && p->departs_asked)
        sim_event_set(&p->depart, 0);
}

bool broker_list_offsets(struct sim_request *q)
{
    const struct kafka_list_offsets_request *m = q->msg;
    struct kafka_list_offsets_response r;

    codec_init(&kafka_list_offsets_response_msg, &r);
    r.topics.at = arena_array(&q->arena, (size_t)m->topics.n, sizeof(*r.topics.at));
    r.topics.n = m->topics.n;
    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct kafka_list_offsets_request_topic *in = &m->topics.at[i];
        struct kafka_list_offsets_response_topic *out = &r.topics.at[i];

        out->name = in->name;
        out->partitions.at = arena_array(&q->arena, (size_t)in->partitions.n, sizeof(*out->partitions.at));
        for (int32_t j = 0; j < in->partitions.n; j++)
            if (!is_named_before(q, in, j))
                list_one(q, in, &in->partitions.at[j], &out->partitions.at[out->partitions.n++]);
    }
    broker_answer(q, &r);
    return true;
}

/* Where an epoch ends, for who asks the leader (rules 4.5). */
static void epoch_end(struct sim_request *q, struct sim_topic *t,
                      const struct kafka_offset_for_leader_epoch_request_partition *want,
                      struct kafka_offset_for_leader_epoch_response_partition *out)
{
    struct sim_part *p = NULL;
    int32_t found;
    int64_t end;

    codec_init(&kafka_offset_for_leader_epoch_response_partition_msg, out);
    out->partition = want->partition;
    out->error_code = (int16_t)broker_leader_error(q->broker, t, want->partition, want->current_leader_epoch, &p);
    if (out->error_code || want->leader_epoch < 0)
        return;
    end = log_epoch_end(p, want->leader_epoch, &found);
    if (found < 0)
        return;
    out->leader_epoch = found;
    out->end_offset = end;
}

bool broker_offset_for_leader_epoch(struct sim_request *q)
{
    const struct kafka_offset_for_leader_epoch_request *m = q->msg;
    struct kafka_offset_for_leader_epoch_response r;

    codec_init(&kafka_offset_for_leader_epoch_response_msg, &r);
    r.topics.at = arena_array(&q->arena, (size_t)m->topics.n, sizeof(*r.topics.at));
    r.topics.n = m->topics.n;
    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct kafka_offset_for_leader_epoch_request_topic *in = &m->topics.at[i];
        struct kafka_offset_for_leader_epoch_response_topic *out = &r.topics.at[i];
        struct sim_topic *t = broker_topic_find(q->broker->cluster, in->topic);

        out->topic = in->topic;
        out->partitions.at = arena_array(&q->arena, (size_t)in->partitions.n, sizeof(*out->partitions.at));
        out->partitions.n = in->partitions.n;
        for (int32_t j = 0; j < in->partitions.n; j++)
            epoch_end(q, t, &in->partitions.at[j], &out->partitions.at[j]);
    }
    broker_answer(q, &r);
    return true;
}

/* A follower tells what it has replicated, with no error (rules 5.5). */
static void describe_one(struct sim_request *q, struct sim_part *p,
                         struct kafka_describe_producers_response_partition *out)
{
    bool leads = p->leader == q->broker->id;

    out->active_producers.at = arena_array(&q->arena, SIM_PIDS, sizeof(*out->active_producers.at));
    out->active_producers.n = 0;
    for (int i = 0; i < p->pids_n; i++) {
        const struct sim_pid *pid = &p->pids[i];
        struct kafka_describe_producers_response_producer *o =
            &out->active_producers.at[out->active_producers.n];

        if (!leads && sim_chance(50))
            continue;
        out->active_producers.n++;
        codec_init(&kafka_describe_producers_response_producer_msg, o);
        o->producer_id = pid->id;
        o->producer_epoch = pid->epoch;
        o->last_sequence = pid->seen_n ? pid->seen[leads ? pid->seen_n - 1 : 0].last : -1;
        o->last_timestamp = pid->timestamp;
        o->current_txn_start_offset = pid->txn_first;
    }
}

bool broker_describe_producers(struct sim_request *q)
{
    const struct kafka_describe_producers_request *m = q->msg;
    struct kafka_describe_producers_response r;

    codec_init(&kafka_describe_producers_response_msg, &r);
    r.topics.at = arena_array(&q->arena, (size_t)m->topics.n, sizeof(*r.topics.at));
    r.topics.n = m->topics.n;
    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct kafka_describe_producers_request_topic *in = &m->topics.at[i];
        struct kafka_describe_producers_response_topic *out = &r.topics.at[i];
        struct sim_topic *t = broker_topic_find(q->broker->cluster, in->name);
        int32_t n = in->partition_indexes.n;

        out->name = in->name;
        out->partitions.at = arena_array(&q->arena, (size_t)n, sizeof(*out->partitions.at));
        out->partitions.n = n;
        for (int32_t j = 0; j < n; j++) {
            struct kafka_describe_producers_response_partition *po = &out->partitions.at[j];
            int32_t number = in->partition_indexes.at[j];

            codec_init(&kafka_describe_producers_response_partition_msg, po);
            po->partition_index = number;
            po->error_message = STR_NULL;
            if (q->broker->cluster->secretive)
                po->error_code = KERR_TOPIC_AUTHORIZATION_FAILED;
            else if (t && number >= 0 && number < t->parts_n)
                describe_one(q, &t->parts[number], po);
            else
                po->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        }
    }
    broker_answer(q, &r);
    return true;
}
