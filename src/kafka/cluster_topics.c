/* cluster_topics.c -- the watched topics by name, and leaders learned from other answers.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/alloc.h"
#include "base/must.h"
#include "kafka/cluster_int.h"

#include <string.h>

struct topic *cluster_find_topic(const struct cluster *cl, struct str name, size_t *at)
{
    size_t low = 0, high = cl->topics_n;

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = str_cmp(cl->topics[mid]->meta.name, name);

        if (order == 0) {
            *at = mid;
            return cl->topics[mid];
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *at = low;
    return NULL;
}

void cluster_topic_free(struct topic *t)
{
    mem_free((char *)(uintptr_t)t->meta.name.p);
    mem_free(t->meta.parts);
    mem_free(t);
}

static void insert_topic(struct cluster *cl, struct topic *t, size_t at)
{
    must_say(cl->topics_n < CLUSTER_TOPICS_MAX, "more topics are watched than any cluster has");
    if (cl->topics_n == cl->topics_room) {
        cl->topics_room = MAX(cl->topics_room * 2, 64);
        cl->topics = mem_resize(cl->topics, cl->topics_room, sizeof(*cl->topics));
    }
    memmove(cl->topics + at + 1, cl->topics + at, (cl->topics_n - at) * sizeof(*cl->topics));
    cl->topics[at] = t;
    cl->topics_n++;
}

struct topic_meta *cluster_watch(struct cluster *cl, struct str name)
{
    size_t at;
    struct topic *t = cluster_find_topic(cl, name, &at);

    loop_check(cl->loop);
    if (!t) {
        t = mem_new(sizeof(*t));
        t->meta.name = str_of(mem_copy_str(name.p, name.n), name.n);
        t->due = true;
        insert_topic(cl, t, at);
        task_wake(cl->loop, &cl->meta_task);
    }
    t->meta.refs++;
    return &t->meta;
}

void cluster_unwatch(struct cluster *cl, struct topic_meta **tp)
{
    struct topic_meta *m = *tp;
    struct topic *t;
    size_t at;

    if (!m)
        return;
    *tp = NULL;
    must(m->refs > 0);
    if (--m->refs)
        return;
    t = cluster_find_topic(cl, m->name, &at);
    must(t && &t->meta == m);
    memmove(cl->topics + at, cl->topics + at + 1, (cl->topics_n - at - 1) * sizeof(*cl->topics));
    cl->topics_n--;
    cluster_topic_free(t);
}

/* Long because the answers that teach it have just these fields. */
void cluster_learn_leader(struct cluster *cl, struct topic_meta *m, int32_t partition,
                          int32_t leader, int32_t leader_epoch, struct str host, int32_t port)
{
    struct part_meta *p;

    cluster_refresh(cl); /* the answer that taught it tells nothing of replicas */
    if (partition < 0 || partition >= m->parts_n || leader < 0)
        return;
    p = &m->parts[partition];
    if (leader_epoch <= p->leader_epoch)
        return;
    if (host.n && port > 0) {
        struct broker_meta b = { .id = leader, .host = host, .port = port };
        const struct broker_meta *have = cluster_find_broker(cl, leader);

        if (have)
            b.rack = have->rack;
        if (!have || !str_eq(have->host, host) || have->port != port)
            cluster_put_broker(cl, &b);
    }
    if (!cluster_find_broker(cl, leader))
        return;
    p->leader = leader;
    p->leader_epoch = leader_epoch;
    cl->changed = true;
    task_wake(cl->loop, &cl->meta_task);
    cluster_route_wake(cl);
}
