/* cluster.c -- one cluster seen from one loop: the object, its brokers, what it tells.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two activities share the object: metadata (meta_task: cluster_boot.c finds a connection, the "seat", and
 * cluster_meta.c asks on it) and calls by route (route_task: cluster_route.c). They use connections of their
 * own, so a slow call never holds up a leader change.
 *
 *   I-1  a broker id has one address at a time; a change resets the links to it
 *   I-2  the leader epoch of a partition never falls while the topic keeps its id
 *   I-3  another cluster id than the first ends everything: no address is given out any more
 */
#include "kafka/cluster.h"

#include "base/alloc.h"
#include "base/must.h"
#include "kafka/cluster_int.h"

#include <stdlib.h>
#include <string.h>

struct cluster *cluster_new(struct loop *l, const struct client_config *config, struct str name)
{
    struct cluster *cl = mem_new(sizeof(*cl));

    loop_check(l);
    must_say(config->bootstrap_count > 0, "a cluster without bootstrap addresses");
    cl->loop = l;
    cl->config = config;
    cl->name = mem_copy_str(name.p ? name.p : "", name.n);
    cl->controller = -1;
    list_init(&cl->listeners);
    list_init(&cl->links);
    cluster_seat_init(cl);
    cluster_meta_init(cl);
    cluster_route_init(cl);
    return cl;
}

static void free_brokers(struct cluster *cl)
{
    for (size_t i = 0; i < cl->brokers_n; i++) {
        mem_free((char *)(uintptr_t)cl->brokers[i].host.p);
        mem_free((char *)(uintptr_t)cl->brokers[i].rack.p);
    }
    mem_free(cl->brokers);
}

void cluster_free(struct cluster **clp)
{
    struct cluster *cl = *clp;

    if (!cl)
        return;
    *clp = NULL;
    cluster_route_fini(cl);
    cluster_meta_fini(cl);
    cluster_seat_fini(cl);
    must_say(list_is_empty(&cl->links), "a link outlives its cluster");
    while (!list_is_empty(&cl->listeners))
        list_remove(list_first(&cl->listeners));
    for (size_t i = 0; i < cl->topics_n; i++)
        cluster_topic_free(cl->topics[i]);
    mem_free(cl->topics);
    free_brokers(cl);
    mem_free(cl->name);
    mem_free(cl->id);
    mem_free(cl);
}

struct loop *cluster_loop(struct cluster *cl)
{
    return cl->loop;
}

const struct client_config *cluster_config(const struct cluster *cl)
{
    return cl->config;
}

struct str cluster_name(const struct cluster *cl)
{
    return str_c(cl->name);
}

struct str cluster_id(const struct cluster *cl)
{
    return str_c(cl->id);
}

bool cluster_is_up(const struct cluster *cl)
{
    return cl->answering;
}

const struct fault *cluster_fault(const struct cluster *cl)
{
    return &cl->fault;
}

int32_t cluster_controller(const struct cluster *cl)
{
    return cl->controller;
}

/* --- brokers --- */

size_t cluster_brokers(const struct cluster *cl, const struct broker_meta **out)
{
    *out = cl->brokers;
    return cl->brokers_n;
}

/* The place of id, or where it would stand. */
static size_t broker_place(const struct cluster *cl, int32_t id)
{
    size_t low = 0, high = cl->brokers_n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (cl->brokers[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct broker_meta *cluster_find_broker(const struct cluster *cl, int32_t id)
{
    size_t at = broker_place(cl, id);

    return at < cl->brokers_n && cl->brokers[at].id == id ? &cl->brokers[at] : NULL;
}

bool cluster_address(const struct cluster *cl, struct conn_address *to)
{
    const struct broker_meta *b = cluster_find_broker(cl, to->broker_id);

    if (!b || cl->seat.state == SEAT_HALTED)
        return false;
    to->host = b->host;
    to->port = b->port;
    return true;
}

static void readdress_links(struct cluster *cl, int32_t broker_id)
{
    struct list_node *n;

    LIST_EACH(n, &cl->links)
    {
        struct link *k = container_of(n, struct link, node);

        if (k->broker_id == broker_id)
            link_readdress(k);
    }
}

static void replace_str(struct str *to, struct str from)
{
    mem_free((char *)(uintptr_t)to->p);
    *to = from.p ? str_of(mem_copy_str(from.p, from.n), from.n) : STR_NULL;
}

bool cluster_put_broker(struct cluster *cl, const struct broker_meta *b)
{
    size_t at = broker_place(cl, b->id);
    bool known = at < cl->brokers_n && cl->brokers[at].id == b->id;
    struct broker_meta *have;

    if (!known) {
        if (cl->brokers_n == CLUSTER_BROKERS_MAX)
            return false;
        cl->brokers = mem_resize(cl->brokers, cl->brokers_n + 1, sizeof(*cl->brokers));
        memmove(cl->brokers + at + 1, cl->brokers + at,
                (cl->brokers_n - at) * sizeof(*cl->brokers));
        cl->brokers_n++;
        cl->brokers[at] = (struct broker_meta){ .id = b->id };
    }
    have = &cl->brokers[at];
    if (known && str_eq(have->host, b->host) && have->port == b->port) {
        bool same = str_eq(have->rack, b->rack);

        if (!same)
            replace_str(&have->rack, b->rack);
        return !same;
    }
    replace_str(&have->host, b->host);
    replace_str(&have->rack, b->rack);
    have->port = b->port;
    readdress_links(cl, b->id);
    return true;
}

static int by_id(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

void cluster_keep_brokers(struct cluster *cl, int32_t *ids, size_t n)
{
    size_t kept = 0;

    qsort(ids, n, sizeof(*ids), by_id);
    for (size_t i = 0; i < cl->brokers_n; i++) {
        struct broker_meta *b = &cl->brokers[i];

        if (bsearch(&b->id, ids, n, sizeof(*ids), by_id)) {
            cl->brokers[kept++] = *b;
            continue;
        }
        replace_str(&b->host, STR_NULL);
        replace_str(&b->rack, STR_NULL);
        cl->changed = true;
    }
    cl->brokers_n = kept;
}

void cluster_add_link(struct cluster *cl, struct link *k)
{
    list_add_tail(&cl->links, &k->node);
}

static size_t add_silent(struct broker_silence *out, size_t n, size_t room, int32_t id, int64_t ms)
{
    for (size_t i = 0; i < n; i++) {
        if (out[i].id != id)
            continue;
        out[i].ms = MAX(out[i].ms, ms);
        return n;
    }
    if (!ms || id < 0 || n == room)
        return n;
    out[n] = (struct broker_silence){ id, ms };
    return n + 1;
}

size_t cluster_silent(const struct cluster *cl, struct broker_silence *out, size_t room)
{
    const struct list_node *node;
    size_t n = 0;

    if (cl->seat.conn)
        n = add_silent(out, n, room, cl->seat.broker_id, conn_silent_ms(cl->seat.conn));
    LIST_EACH(node, &cl->links)
    {
        const struct link *k = container_of(node, const struct link, node);

        n = add_silent(out, n, room, k->broker_id, link_silent_ms(k));
    }
    return n;
}

static bool is_silent(const struct cluster *cl, int32_t id)
{
    const struct list_node *n;

    if (cl->seat.conn && cl->seat.broker_id == id && conn_silent_ms(cl->seat.conn))
        return true;
    LIST_EACH(n, &cl->links)
    {
        const struct link *k = container_of(n, const struct link, node);

        if (k->broker_id == id && link_silent_ms(k))
            return true;
    }
    return false;
}

const char *cluster_broker_state(const struct cluster *cl, int32_t id, int64_t *rtt_us)
{
    const char *state = "idle";
    const struct list_node *n;

    *rtt_us = -1;
    if (is_silent(cl, id))
        return "slow";
    if (cl->seat.conn && cl->seat.broker_id == id && conn_is_ready(cl->seat.conn)) {
        *rtt_us = conn_rtt_us(cl->seat.conn);
        return "up";
    }
    LIST_EACH(n, &cl->links)
    {
        const struct link *k = container_of(n, const struct link, node);

        if (k->broker_id != id)
            continue;
        if (k->state == LINK_READY) {
            *rtt_us = conn_rtt_us(k->conn);
            return "up";
        }
        if (k->state != LINK_OFF)
            state = k->error ? "down" : "connecting";
    }
    return state;
}

/* --- listeners --- */

void cluster_listen(struct cluster *cl, struct cluster_listener *ls)
{
    list_init(&ls->node);
    list_add_tail(&cl->listeners, &ls->node);
}

void cluster_unlisten(struct cluster_listener *ls)
{
    list_remove(&ls->node);
}

/* Listeners move to a list of this call and back one by one, so each may leave, or make others leave. */
void cluster_tell(struct cluster *cl)
{
    struct list_node round, *n;

    if (!cl->changed)
        return;
    cl->changed = false;
    list_init(&round);
    while ((n = list_first(&cl->listeners))) {
        list_remove(n);
        list_add_tail(&round, n);
    }
    while ((n = list_first(&round))) {
        struct cluster_listener *ls = container_of(n, struct cluster_listener, node);

        list_remove(n);
        list_add_tail(&cl->listeners, n);
        ls->changed(ls);
    }
}
