/* produce_pack.c -- one batch of each partition that is ready, into one request, by reference.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/produce_link.h"

#include "base/must.h"

/* The batches that go, one per partition; counts their topics. */
static int32_t choose(struct produce_link *k, struct produce_request *r)
{
    struct part_table *t = &k->p->table;
    size_t most = (size_t)CLAMP(k->p->config->max_request_size, 1, PRODUCE_BYTES_MAX);
    size_t bytes = 0;
    int32_t topics = 0;
    struct list_node *n;

    ++t->turn;
    r->n = 0;
    while (r->n < PRODUCE_BATCHES_MAX && (n = list_first(&k->ready))) {
        struct produce_part *part = container_of(n, struct produce_part, node);
        struct outgoing *o = container_of(list_first(&part->queue), struct outgoing, node);

        if (r->n && bytes + outgoing_size(o) > most)
            break;
        bytes += outgoing_size(o);
        o = produce_part_take(part);
        o->request = r;
        o->slot = r->n;
        r->batches[r->n++] = o;
        if (part_topic_count(t, part->topic_parts))
            part->topic_parts->at = topics++;
    }
    return topics;
}

static void fill(struct produce_request *r, struct outgoing *o)
{
    struct part_topic *pt = o->part->topic_parts;
    struct kafka_produce_request_topic *t = &r->body.topic_data.at[pt->at];
    struct kafka_produce_request_partition *out;

    if (!t->partition_data.at) {
        t->name = pt->meta->name;
        t->topic_id = pt->id;
        t->partition_data.at = arena_array(&r->arena, (size_t)pt->n, sizeof(*t->partition_data.at));
        if (uuid_is_zero(&pt->id) && r->call.version_max < 0)
            r->call.version_max = PRODUCE_VERSION_NAMES;
    }
    out = &t->partition_data.at[t->partition_data.n++];
    out->index = o->part->partition;
    out->records.head = str_of((const char *)o->header, BATCH_HEADER_SIZE);
    out->records.body = str_of(o->payload.p, o->payload.n);
}

static void on_done(struct call *c)
{
    produce_answer(container_of(c, struct produce_request, call));
}

bool produce_pack(struct produce_link *k, struct produce_request *r)
{
    const struct client_config *config = k->p->config;
    int32_t topics = choose(k, r);

    if (!topics)
        return false;
    arena_reset(&r->arena);
    codec_init(&kafka_produce_request_msg, &r->body);
    r->body.transactional_id = k->p->transactional_id;
    r->body.acks = -1;
    r->body.timeout_ms = (int32_t)config->request_timeout_ms;
    r->body.topic_data.at = arena_array(&r->arena, (size_t)topics, sizeof(*r->body.topic_data.at));
    r->body.topic_data.n = topics;
    call_init(&r->call, API_PRODUCE, &r->body, on_done);
    r->call.version_max = k->p->version_max;
    r->call.timeout_ms = config->request_timeout_ms + PRODUCE_GRACE_MS;
    for (int32_t i = 0; i < r->n; i++)
        fill(r, r->batches[i]);
    /* Only now, for no partition may be in the request twice (I-1). */
    for (int32_t i = 0; i < r->n; i++)
        produce_part_place(k->p, r->batches[i]->part);
    return true;
}

void produce_unpack(struct produce_request *r, const struct produce_failure *f)
{
    for (int32_t i = 0; i < r->n; i++) {
        struct outgoing *o = r->batches[i];

        if (!o)
            continue;
        r->batches[i] = NULL;
        o->request = NULL;
        if (o->part)
            produce_part_failed(r->k->p, o, f);
        else
            outgoing_free(&o); /* forgotten meanwhile */
    }
}
