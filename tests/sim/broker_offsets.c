/* broker_offsets.c -- ListOffsets, InitProducerId and DescribeProducers of a simulated broker.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "broker.h"

#include <string.h>

/* A follower answers replica -2 with its own, older end and no error (rules 5.5); a leader with all that it has. */
static int64_t debug_end(const struct sim_broker *b, const struct sim_part *p)
{
    return p->leader == b->id ? p->end : sim_between(p->start, p->high_watermark);
}

static void list_one(struct sim_request *q, struct sim_topic *t,
                     const struct kafka_list_offsets_request_partition *want,
                     struct kafka_list_offsets_response_partition *out)
{
    const struct kafka_list_offsets_request *m = q->msg;
    struct sim_part *p = NULL;

    codec_init(&kafka_list_offsets_response_partition_msg, out);
    out->partition_index = want->partition_index;
    out->error_code = (int16_t)broker_leader_error(q->broker, t, want->partition_index,
                                                   want->current_leader_epoch, &p);
    if (out->error_code == KERR_NOT_LEADER_OR_FOLLOWER && m->replica_id == -2)
        out->error_code = KERR_NONE;
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
        out->error_code = KERR_UNSUPPORTED_VERSION;
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
        struct sim_topic *t = broker_topic_find(q->broker->cluster, in->name);

        out->name = in->name;
        out->partitions.at = arena_array(&q->arena, (size_t)in->partitions.n, sizeof(*out->partitions.at));
        out->partitions.n = in->partitions.n;
        for (int32_t j = 0; j < in->partitions.n; j++)
            list_one(q, t, &in->partitions.at[j], &out->partitions.at[j]);
    }
    broker_answer(q, &r);
    return true;
}

/* Always a new id, with epoch 0 (rules 5.2). */
bool broker_init_producer_id(struct sim_request *q)
{
    struct kafka_init_producer_id_response r;

    codec_init(&kafka_init_producer_id_response_msg, &r);
    if (sim_chance(20)) { /* just after a start there is no block of ids yet (rules 5.2) */
        r.error_code = KERR_COORDINATOR_LOAD_IN_PROGRESS;
        r.producer_epoch = -1;
    } else {
        r.producer_id = q->broker->cluster->next_pid++;
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
            if (t && number >= 0 && number < t->parts_n)
                describe_one(q, &t->parts[number], po);
            else
                po->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        }
    }
    broker_answer(q, &r);
    return true;
}
