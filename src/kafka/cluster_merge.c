/* cluster_merge.c -- what a metadata answer changes in brokers, topics and partitions.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Brokers lag behind each other, so an answer may be older than what is known: a partition whose leader
 * epoch would fall keeps what it had, and a topic that would shrink under the same id is left alone. A new
 * topic id means that the topic was deleted and made anew: then nothing of before counts. An answer may also be
 * wrong: one that names a partition twice changes nothing, and a lower epoch that is told for EPOCH_DOUBT_MS is
 * believed (a topic made anew where there are no ids, or an epoch that never was).
 */
#include "base/alloc.h"
#include "kafka/cluster_int.h"

#include <string.h>

/* The largest topic of a Kafka cluster has far fewer; a length that a peer chose ends here. */
#define PARTITIONS_MAX 1000000
#define EPOCH_DOUBT_MS 30000

static void merge_brokers(struct cluster *cl, const struct kafka_metadata_response *r)
{
    int32_t *ids = mem_array((size_t)r->brokers.n, sizeof(*ids));
    int32_t controller = r->controller_id;

    for (int32_t i = 0; i < r->brokers.n; i++) {
        const struct kafka_metadata_response_broker *b = &r->brokers.at[i];
        struct broker_meta m = {
            .id = b->node_id, .host = b->host, .port = b->port, .rack = b->rack
        };

        ids[i] = b->node_id;
        cl->changed |= cluster_put_broker(cl, &m);
    }
    cluster_keep_brokers(cl, ids, (size_t)r->brokers.n);
    mem_free(ids);
    cl->changed |= cl->controller != controller;
    cl->controller = controller;
}

static bool is_zero(const struct uuid *u)
{
    static const struct uuid zero;

    return !memcmp(u, &zero, sizeof(zero));
}

static bool is_same_ints(const int32_t *a, int32_t a_n, const int32_t *b, int32_t b_n)
{
    return a_n == b_n && (!a_n || !memcmp(a, b, (size_t)a_n * sizeof(*a)));
}

static bool is_same_part(const struct part_meta *a, const struct part_meta *b)
{
    return a->leader == b->leader && a->leader_epoch == b->leader_epoch && a->error == b->error &&
           is_same_ints(a->replicas, a->replicas_n, b->replicas, b->replicas_n) &&
           is_same_ints(a->isr, a->isr_n, b->isr, b->isr_n);
}

/* A leader epoch that would fall: not believed at once. */
static bool is_doubted(struct part_meta *old, int32_t leader_epoch, int64_t now_ms)
{
    if (leader_epoch < 0 || old->leader_epoch <= leader_epoch) {
        old->doubt_ms = 0;
        return false;
    }
    if (!old->doubt_ms)
        old->doubt_ms = MAX(now_ms, 1);
    return now_ms - old->doubt_ms < EPOCH_DOUBT_MS;
}

/* Partition i as it shall be, still pointing into the answer or the old block. */
static struct part_meta merged_part(const struct topic_meta *old,
                                    const struct kafka_metadata_response_partition *r, int32_t i, int64_t now_ms)
{
    struct part_meta p = { .leader = r->leader_id,
                           .leader_epoch = r->leader_epoch,
                           .error = r->error_code,
                           .replicas = r->replica_nodes.at,
                           .replicas_n = MAX(r->replica_nodes.n, 0),
                           .isr = r->isr_nodes.at,
                           .isr_n = MAX(r->isr_nodes.n, 0) };

    return i < old->parts_n && is_doubted(&old->parts[i], r->leader_epoch, now_ms) ? old->parts[i] : p;
}

static const int32_t *copy_ints(int32_t **room, const int32_t *from, int32_t n)
{
    int32_t *to = *room;

    if (n)
        memcpy(to, from, (size_t)n * sizeof(*to));
    *room += n;
    return to;
}

/* Partitions and their replica lists become one block of memory. */
static void set_parts(struct topic_meta *m, const struct part_meta *parts, int32_t n)
{
    size_t ints = 0;
    struct part_meta *to;
    int32_t *room;

    for (int32_t i = 0; i < n; i++)
        ints += (size_t)parts[i].replicas_n + (size_t)parts[i].isr_n;
    to = mem_new((size_t)n * sizeof(*to) + ints * sizeof(int32_t));
    room = (int32_t *)(void *)(to + n);
    for (int32_t i = 0; i < n; i++) {
        to[i] = parts[i];
        to[i].replicas = copy_ints(&room, parts[i].replicas, parts[i].replicas_n);
        to[i].isr = copy_ints(&room, parts[i].isr, parts[i].isr_n);
    }
    mem_free(m->parts); /* parts may have pointed into it until here */
    m->parts = to;
    m->parts_n = n;
}

/* True when anything changed. */
static bool merge_parts(struct topic *t, const struct kafka_metadata_response_topic *r, int64_t now_ms)
{
    struct topic_meta *m = &t->meta;
    int32_t n = r->partitions.n;
    struct part_meta *parts = mem_array((size_t)n, sizeof(*parts));
    bool same = n == m->parts_n;

    for (int32_t i = 0; i < n; i++)
        parts[i] = (struct part_meta){ .leader = -1, .leader_epoch = -1 };
    for (int32_t k = 0; k < n; k++) {
        int32_t i = r->partitions.at[k].partition_index;

        if (i >= 0 && i < n)
            parts[i] = merged_part(m, &r->partitions.at[k], i, now_ms);
    }
    for (int32_t i = 0; i < n; i++) {
        t->trouble |= parts[i].leader < 0;
        same = same && is_same_part(&parts[i], &m->parts[i]);
    }
    if (!same)
        set_parts(m, parts, n);
    mem_free(parts);
    return !same;
}

static bool note_error(struct topic *t, int32_t error)
{
    bool changed = t->meta.error != error || !t->meta.known;

    t->meta.error = error;
    t->meta.known = true;
    return changed;
}

/* An error that may pass is asked about again; what is denied or invalid waits for the next full request. */
static bool may_pass(int32_t error)
{
    switch (kerr_class(API_METADATA, error)) {
    case K_AGAIN:
    case K_REFRESH:
    case K_UNSURE:
    case K_GONE:
        return true;
    default:
        return false;
    }
}

static bool is_named_twice(const struct kafka_metadata_response_topic *r)
{
    int32_t n = r->partitions.n;
    bool *seen = mem_array((size_t)MAX(n, 1), sizeof(*seen)), twice = false;

    for (int32_t k = 0; k < n && !twice; k++) {
        int32_t i = r->partitions.at[k].partition_index;

        twice = i >= 0 && i < n && seen[i];
        if (i >= 0 && i < n)
            seen[i] = true;
    }
    mem_free(seen);
    return twice;
}

static bool merge_topic(struct topic *t, const struct kafka_metadata_response_topic *r, int64_t now_ms)
{
    struct topic_meta *m = &t->meta;
    int32_t n = r->partitions.n;
    bool changed = false;

    t->trouble = false;
    if (r->error_code) {
        t->trouble = may_pass(r->error_code);
        return note_error(t, r->error_code);
    }
    if (n > 0 && n <= PARTITIONS_MAX && is_named_twice(r)) {
        t->trouble = true;
        return false;
    }
    if (!is_zero(&r->topic_id) && memcmp(&m->id, &r->topic_id, sizeof(m->id)) != 0) {
        changed = true;
        if (!is_zero(&m->id))
            m->parts_n = 0; /* made anew: its epochs begin again */
        m->id = r->topic_id;
    } else if (!is_zero(&m->id) && n < m->parts_n) {
        t->trouble = true; /* an old answer: partitions never become fewer */
        return false;
    }
    if (n <= 0 || n > PARTITIONS_MAX) {
        t->trouble = true;
        return changed;
    }
    changed |= m->internal != r->is_internal;
    m->internal = r->is_internal;
    changed |= note_error(t, 0);
    changed |= merge_parts(t, r, now_ms);
    return changed;
}

void cluster_merge(struct cluster *cl, const struct kafka_metadata_response *r)
{
    merge_brokers(cl, r);
    for (int32_t i = 0; i < r->topics.n; i++) {
        struct topic *t;
        size_t at;

        if (!r->topics.at[i].name.p)
            continue;
        t = cluster_find_topic(cl, r->topics.at[i].name, &at);
        if (t)
            cl->changed |= merge_topic(t, &r->topics.at[i], loop_now_ms(cl->loop));
    }
}
