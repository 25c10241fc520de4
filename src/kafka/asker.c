/* asker.c -- gathers questions per broker and sends them together.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A question belongs to the leader of its partition: when metadata names another one while it is on its way, or waits
 * for a broker that has gone, it is taken back and goes there.
 */
#include "kafka/asker.h"

#include "base/alloc.h"
#include "base/must.h"

#include <stdio.h>
#include <string.h>

#define ASK_BATCH_MAX 1000

/* One request on its way, with the questions that it carries. */
struct ask_batch {
    struct list_node node;
    struct asker *asker;
    struct call call;
    struct arena arena;
    struct list_node asks;
    int32_t broker;
    union {
        struct kafka_list_offsets_request offsets;
        struct kafka_describe_producers_request producers;
    } request;
};

struct asker {
    struct cluster *cluster;
    struct list_node waiting; /* struct ask */
    struct list_node batches; /* struct ask_batch on their way */
    struct cluster_listener listener;
    struct task send;
};

void asker_init_ask(struct ask *q)
{
    *q = (struct ask){ .replica_id = -1, .timestamp = ASK_LATEST };
    list_init(&q->node);
}

static bool alike(const struct ask *a, const struct ask *b)
{
    return a->kind == b->kind && a->timestamp == b->timestamp && a->replica_id == b->replica_id;
}

static const struct part_meta *part_of(const struct ask *q)
{
    return q->partition < q->topic->parts_n ? &q->topic->parts[q->partition] : NULL;
}

static void answer(struct ask *q, enum err e, const char *text)
{
    list_remove(&q->node);
    q->batch = NULL;
    q->error = e;
    snprintf(q->text, sizeof(q->text), "%s", text);
    q->done(q);
}

static void batch_free(struct ask_batch *b)
{
    list_remove(&b->node);
    call_fini(&b->call);
    arena_fini(&b->arena);
    mem_free(b);
}

/* The question about topic and partition, from the batch; they come back in the order they went. */
static struct ask *next_ask(struct ask_batch *b, struct str topic, int32_t partition)
{
    struct list_node *n;

    LIST_EACH(n, &b->asks) {
        struct ask *q = container_of(n, struct ask, node);

        if (q->partition == partition && str_eq(q->topic->name, topic))
            return q;
    }
    return NULL;
}

static void take_offsets(struct ask_batch *b)
{
    const struct kafka_list_offsets_response *r = b->call.response;

    for (int32_t i = 0; i < r->topics.n; i++) {
        for (int32_t j = 0; j < r->topics.at[i].partitions.n; j++) {
            const struct kafka_list_offsets_response_partition *p =
                &r->topics.at[i].partitions.at[j];
            struct ask *q = next_ask(b, r->topics.at[i].name, p->partition_index);

            if (!q)
                continue;
            q->kerr = p->error_code;
            q->offset = p->offset;
            if (!q->kerr && q->offset < 0 && q->timestamp < 0)
                answer(q, E_MALFORMED, "the broker tells an end of the log below zero");
            else
                answer(q, E_OK, "");
        }
    }
}

static void take_producers(struct ask_batch *b)
{
    const struct kafka_describe_producers_response *r = b->call.response;

    for (int32_t i = 0; i < r->topics.n; i++) {
        for (int32_t j = 0; j < r->topics.at[i].partitions.n; j++) {
            const struct kafka_describe_producers_response_partition *p =
                &r->topics.at[i].partitions.at[j];
            struct ask *q = next_ask(b, r->topics.at[i].name, p->partition_index);

            if (!q)
                continue;
            q->kerr = p->error_code;
            q->found = false;
            for (int32_t k = 0; k < p->active_producers.n; k++) {
                if (p->active_producers.at[k].producer_id != q->producer_id)
                    continue;
                q->found = true;
                q->last_sequence = p->active_producers.at[k].last_sequence;
                q->producer_epoch = (int16_t)p->active_producers.at[k].producer_epoch;
            }
            answer(q, E_OK, "");
        }
    }
}

static void on_answer(struct call *c)
{
    struct ask_batch *b = container_of(c, struct ask_batch, call);
    struct list_node *n;

    if (c->error == E_OK && b->call.api == API_LIST_OFFSETS)
        take_offsets(b);
    else if (c->error == E_OK)
        take_producers(b);
    while ((n = list_first(&b->asks)))
        answer(container_of(n, struct ask, node), c->error ? c->error : E_MALFORMED,
               c->error ? c->text : "the broker left a partition out of its answer");
    batch_free(b);
}

/* Topics of the batch in the order of its questions; neighbours of one topic share an entry. */
static void fill_offsets(struct ask_batch *b, size_t count)
{
    struct kafka_list_offsets_request *r = &b->request.offsets;
    struct kafka_list_offsets_request_topic *t = NULL;
    struct list_node *n;

    codec_init(&kafka_list_offsets_request_msg, r);
    r->topics.at = arena_array(&b->arena, count, sizeof(*r->topics.at));
    r->topics.n = 0;
    LIST_EACH(n, &b->asks) {
        struct ask *q = container_of(n, struct ask, node);
        struct kafka_list_offsets_request_partition *p;

        r->replica_id = q->replica_id;
        if (!t || !str_eq(t->name, q->topic->name)) {
            t = &r->topics.at[r->topics.n++];
            t->name = arena_str(&b->arena, q->topic->name); /* the asker may go before the request does */
            t->partitions.at = arena_array(&b->arena, count, sizeof(*t->partitions.at));
        }
        p = &t->partitions.at[t->partitions.n++];
        p->partition_index = q->partition;
        p->current_leader_epoch = q->leader_epoch;
        p->timestamp = q->timestamp;
    }
}

static void fill_producers(struct ask_batch *b, size_t count)
{
    struct kafka_describe_producers_request *r = &b->request.producers;
    struct kafka_describe_producers_request_topic *t = NULL;
    struct list_node *n;

    codec_init(&kafka_describe_producers_request_msg, r);
    r->topics.at = arena_array(&b->arena, count, sizeof(*r->topics.at));
    r->topics.n = 0;
    LIST_EACH(n, &b->asks) {
        struct ask *q = container_of(n, struct ask, node);

        if (!t || !str_eq(t->name, q->topic->name)) {
            t = &r->topics.at[r->topics.n++];
            t->name = arena_str(&b->arena, q->topic->name); /* the asker may go before the request does */
            t->partition_indexes.at =
                arena_array(&b->arena, count, sizeof(*t->partition_indexes.at));
        }
        t->partition_indexes.at[t->partition_indexes.n++] = q->partition;
    }
}

static void send_batch(struct asker *a, struct ask *first, int32_t broker)
{
    struct ask_batch *b = mem_new(sizeof(*b));
    bool offsets = first->kind == ASK_OFFSET;
    struct route route = { .kind = ROUTE_BROKER, .broker = broker };
    struct list_node *n, *after;
    size_t count = 0;

    b->asker = a;
    b->broker = broker;
    list_init(&b->asks);
    list_add_tail(&a->batches, &b->node);
    arena_init(&b->arena, 256 * MiB);
    LIST_EACH_SAFE(n, after, &a->waiting) {
        struct ask *q = container_of(n, struct ask, node);
        const struct part_meta *p = part_of(q);

        if (!p || p->leader != broker || !alike(q, first))
            continue;
        q->leader_epoch = p->leader_epoch;
        q->batch = b;
        list_remove(n);
        list_add_tail(&b->asks, n);
        if (++count == ASK_BATCH_MAX)
            break;
    }
    if (offsets)
        fill_offsets(b, count);
    else
        fill_producers(b, count);
    call_init(&b->call, offsets ? API_LIST_OFFSETS : API_DESCRIBE_PRODUCERS, &b->request, on_answer);
    if (cluster_call(a->cluster, &route, &b->call)) {
        while ((n = list_first(&b->asks)))
            answer(container_of(n, struct ask, node), E_NO_BROKER, "the leader is not known any more");
        batch_free(b);
    }
}

static bool has_moved(const struct ask_batch *b)
{
    struct list_node *n;

    LIST_EACH(n, &b->asks) {
        const struct part_meta *p = part_of(container_of(n, struct ask, node));

        if (p && p->leader >= 0 && p->leader != b->broker)
            return true;
    }
    return false;
}

static void take_back_moved(struct asker *a)
{
    struct list_node *n, *next, *q;

    LIST_EACH_SAFE(n, next, &a->batches) {
        struct ask_batch *b = container_of(n, struct ask_batch, node);

        if (!has_moved(b))
            continue;
        while ((q = list_first(&b->asks))) {
            container_of(q, struct ask, node)->batch = NULL;
            list_remove(q);
            list_add_tail(&a->waiting, q);
        }
        call_drop(&b->call);
        batch_free(b);
    }
}

static void on_changed(struct cluster_listener *ls)
{
    struct asker *a = container_of(ls, struct asker, listener);

    if (!list_is_empty(&a->batches))
        task_wake(cluster_loop(a->cluster), &a->send);
}

static void on_send(struct task *t)
{
    struct asker *a = container_of(t, struct asker, send);
    struct list_node *n;

    take_back_moved(a);
    while ((n = list_first(&a->waiting))) {
        struct ask *q = container_of(n, struct ask, node);
        const struct part_meta *p = part_of(q);

        if (p && p->leader >= 0) {
            send_batch(a, q, p->leader);
            continue;
        }
        cluster_refresh(a->cluster);
        answer(q, E_NO_BROKER, "the partition has no leader at the moment");
    }
}

struct asker *asker_new(struct cluster *cl)
{
    struct asker *a = mem_new(sizeof(*a));

    a->cluster = cl;
    list_init(&a->waiting);
    list_init(&a->batches);
    task_init(&a->send, on_send);
    a->listener.changed = on_changed;
    cluster_listen(cl, &a->listener);
    return a;
}

void asker_free(struct asker **ap)
{
    struct asker *a = *ap;
    struct list_node *n;

    if (!a)
        return;
    task_cancel(&a->send);
    cluster_unlisten(&a->listener);
    while ((n = list_first(&a->waiting)))
        asker_cancel(container_of(n, struct ask, node));
    while ((n = list_first(&a->batches))) {
        struct ask_batch *b = container_of(n, struct ask_batch, node);
        struct list_node *q;

        while ((q = list_first(&b->asks)))
            asker_cancel(container_of(q, struct ask, node));
        call_drop(&b->call);
        batch_free(b);
    }
    mem_free(a);
    *ap = NULL;
}

void asker_put(struct asker *a, struct ask *q)
{
    must(!list_is_linked(&q->node));
    q->kerr = 0;
    q->found = false;
    q->offset = -1;
    list_add_tail(&a->waiting, &q->node);
    task_wake(cluster_loop(a->cluster), &a->send);
}

void asker_cancel(struct ask *q)
{
    list_remove(&q->node);
    q->batch = NULL;
}
