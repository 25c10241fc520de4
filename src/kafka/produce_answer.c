/* produce_answer.c -- takes a produce answer apart: each batch is acknowledged or has failed.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks may send and take back, so each partition is looked up when its turn comes.
 */
#include "kafka/produce_link.h"

/* The batch that the answer speaks of; NULL: none of ours any more. */
static struct outgoing *find_batch(struct produce_request *r,
                                   const struct kafka_produce_response_topic *t, int32_t partition)
{
    static const struct uuid none;
    struct part_topic *pt =
        part_table_find(&r->k->p->table, t->name, r->call.version >= 13 ? &t->topic_id : &none);
    struct produce_part *part = pt ? part_topic_find(pt, partition) : NULL;
    struct list_node *n;

    if (!part)
        return NULL;
    LIST_EACH(n, &part->in_flight)
    {
        struct outgoing *o = container_of(n, struct outgoing, node);

        if (o->request == r)
            return o;
    }
    return NULL;
}

static void learn_leader(struct produce_request *r, const struct produce_part *part,
                         const struct kafka_produce_response_partition *a)
{
    const struct kafka_produce_response *response = r->call.response;
    struct str host = STR_NULL;
    int32_t port = -1;

    if (a->current_leader.leader_id < 0)
        return;
    for (int32_t i = 0; i < response->node_endpoints.n; i++) {
        if (response->node_endpoints.at[i].node_id != a->current_leader.leader_id)
            continue;
        host = response->node_endpoints.at[i].host;
        port = response->node_endpoints.at[i].port;
    }
    cluster_learn_leader(r->k->p->cluster, part->topic, part->partition,
                         a->current_leader.leader_id, a->current_leader.leader_epoch, host, port);
}

/* What the broker says about it in words. */
static struct str text_of(const struct kafka_produce_response_partition *a)
{
    if (a->error_message.n)
        return a->error_message;
    for (int32_t i = 0; i < a->record_errors.n; i++)
        if (a->record_errors.at[i].batch_index_error_message.n)
            return a->record_errors.at[i].batch_index_error_message;
    return str_c(kerr_text(a->error_code));
}

static void take_part(struct produce_request *r, struct outgoing *o,
                      const struct kafka_produce_response_partition *a)
{
    struct producer *p = r->k->p;
    enum kerr_class class = kerr_class(API_PRODUCE, a->error_code);
    const struct produced result = {
        .base_offset = class == K_OK ? a->base_offset : -1,
        .log_append_time_ms = a->log_append_time_ms,
        .log_start_offset = a->log_start_offset,
    };
    struct produce_failure failure;

    if (class == K_OK || a->error_code == KERR_DUPLICATE_SEQUENCE_NUMBER) {
        produce_part_acked(p, o, &result);
        return;
    }
    if (class == K_REFRESH || class == K_GONE) {
        cluster_refresh(p->cluster);
        learn_leader(r, o->part, a);
    }
    failure =
        (struct produce_failure){ .kerr = a->error_code, .error = E_KAFKA, .text = text_of(a) };
    produce_part_failed(p, o, &failure);
}

static void take_response(struct produce_request *r)
{
    const struct kafka_produce_response *response = r->call.response;
    const struct produce_failure unsaid = { .error = E_MALFORMED,
                                            .text = STR("the answer says nothing of the batch") };

    for (int32_t i = 0; i < response->responses.n; i++) {
        const struct kafka_produce_response_topic *t = &response->responses.at[i];

        for (int32_t j = 0; j < t->partition_responses.n; j++) {
            struct outgoing *o = find_batch(r, t, t->partition_responses.at[j].index);

            if (o)
                take_part(r, o, &t->partition_responses.at[j]);
        }
    }
    /* What the answer does not mention may or may not have been written. */
    produce_unpack(r, &unsaid);
}

void produce_answer(struct produce_request *r)
{
    const struct produce_failure lost = { .error = r->call.error, .text = str_c(r->call.text) };
    struct produce_link *k = r->k;

    if (r->call.error)
        produce_unpack(r, &lost);
    else
        take_response(r);
    call_fini(&r->call);
    r->busy = false;
    task_wake(k->p->loop, &k->step);
}
