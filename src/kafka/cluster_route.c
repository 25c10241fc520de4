/* cluster_route.c -- calls by route: a waiting line in front of one link per broker.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A waiting call asks for a broker (any, the controller, a leader, a coordinator) each time the line is
 * walked, so it follows what metadata and coordinator look-ups bring. The line is walked in one task, woken by
 * whatever may help: a new call, a link that came up or went down, an answer. Once sent, a call belongs to its
 * connection. Its deadline counts from the start, waiting included.
 */
#include "base/alloc.h"
#include "base/must.h"
#include "kafka/cluster_int.h"

#include <stdio.h>
#include <string.h>

struct route_wait {
    struct list_node node;
    struct cluster *cluster;
    struct route route;
    struct call *call;
    int64_t deadline_ms;
};

void cluster_route_wake(struct cluster *cl)
{
    task_wake(cl->loop, &cl->route_task);
}

static void wait_free(struct route_wait *w)
{
    list_remove(&w->node);
    mem_free(w);
}

static void let_go(struct call *c)
{
    wait_free(c->holder);
}

static void end_wait(struct route_wait *w, enum err e, const char *text)
{
    struct call *c = w->call;

    wait_free(w);
    call_end(c, e, text);
}

/* --- links for calls --- */

static void on_link(struct link *k, enum link_event ev, void *arg)
{
    struct cluster *cl = arg;

    /* An unreachable broker is tried on only while a call still wants it; calls for any move on. */
    if (ev == LINK_DOWN) {
        link_want(k, false);
        if (cl->brokers_n && cl->brokers[cl->any_at % cl->brokers_n].id == link_broker(k))
            cl->any_at = (cl->any_at + 1) % cl->brokers_n;
    }
    cluster_route_wake(cl);
}

static struct link *find_link(const struct cluster *cl, int32_t broker_id)
{
    for (size_t i = 0; i < cl->call_links_n; i++)
        if (link_broker(cl->call_links[i]) == broker_id)
            return cl->call_links[i];
    return NULL;
}

static struct link *get_link(struct cluster *cl, int32_t broker_id)
{
    struct link *k = find_link(cl, broker_id);

    if (k)
        return k;
    k = link_new(cl, broker_id, "calls", on_link, cl);
    cl->call_links = mem_resize(cl->call_links, cl->call_links_n + 1, sizeof(struct link *));
    cl->call_links[cl->call_links_n++] = k;
    return k;
}

/* Links to brokers that the cluster has no more. */
static void free_old_links(struct cluster *cl)
{
    size_t kept = 0;

    for (size_t i = 0; i < cl->call_links_n; i++) {
        struct link *k = cl->call_links[i];

        if (cluster_find_broker(cl, link_broker(k)) || link_conn(k))
            cl->call_links[kept++] = k;
        else
            link_free(&k);
    }
    cl->call_links_n = kept;
}

/* --- where to --- */

static int32_t any_broker(struct cluster *cl)
{
    for (size_t i = 0; i < cl->call_links_n; i++)
        if (cl->call_links[i]->state == LINK_READY && link_conn(cl->call_links[i]))
            return link_broker(cl->call_links[i]);
    return cl->brokers_n ? cl->brokers[cl->any_at % cl->brokers_n].id : CLUSTER_UNKNOWN;
}

static int32_t leader_of(const struct route *r)
{
    if (!r->topic || r->partition < 0 || r->partition >= r->topic->parts_n)
        return CLUSTER_UNKNOWN;
    return r->topic->parts[r->partition].leader;
}

static int32_t target_of(struct cluster *cl, const struct route *r)
{
    switch (r->kind) {
    case ROUTE_ANY:
        return any_broker(cl);
    case ROUTE_CONTROLLER:
        return cl->controller;
    case ROUTE_BROKER:
        return r->broker;
    case ROUTE_LEADER:
        return leader_of(r);
    case ROUTE_GROUP:
    case ROUTE_TXN:
        return cluster_coordinator(cl, r->kind, r->key);
    }
    return CLUSTER_UNKNOWN;
}

/* --- the line --- */

static void send(struct route_wait *w, struct conn *conn)
{
    struct cluster *cl = w->cluster;
    struct call *c = w->call;
    int64_t timeout_ms = c->timeout_ms;
    int64_t left_ms = MAX(w->deadline_ms - loop_now_ms(cl->loop), 1);
    char text[CALL_TEXT_MAX];
    enum err e;

    wait_free(w);
    call_undo(c);
    c->timeout_ms = left_ms;
    e = conn_send(conn, c);
    c->timeout_ms = timeout_ms;
    if (!e)
        return;
    snprintf(text, sizeof(text), "%s: %s: %s", conn_peer(conn), api_find(c->api)->name,
             err_text(e));
    call_begin(c, cl->loop, NULL, NULL);
    call_end(c, e, text);
}

/* Sends if a connection is ready; else sees to it that one is made. */
static void walk_one(struct cluster *cl, struct route_wait *w)
{
    int32_t id = target_of(cl, &w->route);
    struct link *k;
    struct conn *conn;
    int64_t until_ms;

    if (id < 0) {
        if (w->route.kind != ROUTE_GROUP && w->route.kind != ROUTE_TXN)
            cluster_refresh(cl);
        return;
    }
    if (!cluster_find_broker(cl, id) && !find_link(cl, id)) {
        cluster_refresh(cl); /* a link to nowhere would fail at once, wake the line and be made again */
        return;
    }
    k = get_link(cl, id);
    link_want(k, true);
    conn = link_conn(k);
    if (!conn)
        return;
    until_ms = conn_throttled_until_ms(conn);
    if (until_ms) {
        timer_set_ms(cl->loop, &cl->route_timer, until_ms - loop_now_ms(cl->loop) + 1);
        return;
    }
    send(w, conn);
}

static void on_route_task(struct task *t)
{
    struct cluster *cl = container_of(t, struct cluster, route_task);
    struct list_node line, *n;

    if (cl->seat.state == SEAT_HALTED)
        return; /* deadlines tell why */
    free_old_links(cl);
    /* Look-ups may add to the line while it is walked: they come in the next turn. */
    list_init(&line);
    while ((n = list_first(&cl->waits))) {
        list_remove(n);
        list_add_tail(&line, n);
    }
    while ((n = list_first(&line))) {
        list_remove(n);
        list_add_tail(&cl->waits, n);
        walk_one(cl, container_of(n, struct route_wait, node));
    }
}

static void on_route_timer(struct timer *t)
{
    cluster_route_wake(container_of(t, struct cluster, route_timer));
}

static void on_deadline(struct timer *t)
{
    struct call *c = container_of(t, struct call, deadline);
    struct route_wait *w = c->holder;
    struct cluster *cl = w->cluster;
    int32_t id = target_of(cl, &w->route);
    struct link *k = id < 0 ? NULL : find_link(cl, id);
    char text[CALL_TEXT_MAX];

    if (fault_is_set(&cl->fault))
        snprintf(text, sizeof(text), "%.*s", CALL_TEXT_MAX - 1, cl->fault.text);
    else if (k && link_error(k))
        snprintf(text, sizeof(text), "%s", link_error_text(k));
    else if (id < 0)
        snprintf(text, sizeof(text), "no broker is known yet that %s could be sent to",
                 api_find(c->api)->name);
    else
        snprintf(text, sizeof(text), "broker %d could not be reached in time", id);
    end_wait(w, E_TIMEOUT, text);
}

enum err cluster_call(struct cluster *cl, const struct route *r, struct call *c)
{
    struct route_wait *w = mem_new(sizeof(*w));
    int64_t timeout_ms = c->timeout_ms ? c->timeout_ms : cl->config->request_timeout_ms;

    loop_check(cl->loop);
    *w = (struct route_wait){ .cluster = cl, .route = *r, .call = c };
    w->deadline_ms = loop_now_ms(cl->loop) + timeout_ms;
    call_begin(c, cl->loop, w, let_go);
    c->deadline.fn = on_deadline;
    timer_set_ms(cl->loop, &c->deadline, timeout_ms);
    list_init(&w->node);
    list_add_tail(&cl->waits, &w->node);
    cluster_route_wake(cl);
    return E_OK;
}

int cluster_version(const struct cluster *cl, int api)
{
    int least = -1;

    for (size_t i = 0; i < cl->call_links_n; i++) {
        struct conn *c = link_conn(cl->call_links[i]);
        int version = c ? conn_version(c, api, -1) : -1;

        if (c && (least < 0 || version < least))
            least = version;
    }
    return least;
}

int cluster_feature(const struct cluster *cl, struct str name)
{
    for (size_t i = 0; i < cl->call_links_n; i++) {
        struct conn *c = link_conn(cl->call_links[i]);

        if (c && conn_feature(c, name) >= 0)
            return conn_feature(c, name);
    }
    return -1;
}

void cluster_reroute(struct cluster *cl, const struct route *r)
{
    if (r->kind == ROUTE_CONTROLLER)
        cl->controller = -1;
    if (r->kind == ROUTE_GROUP || r->kind == ROUTE_TXN)
        cluster_coordinator_forget(cl, r->kind, r->key);
    else
        cluster_refresh(cl);
}

void cluster_route_refuse(struct cluster *cl, enum route_kind kind, struct str key, int32_t kerr,
                          const char *text)
{
    struct list_node *n, *next;

    LIST_EACH_SAFE(n, next, &cl->waits)
    {
        struct route_wait *w = container_of(n, struct route_wait, node);

        if (w->route.kind != kind || !str_eq(w->route.key, key))
            continue;
        w->call->kerr = kerr;
        end_wait(w, E_KAFKA, text);
    }
}

void cluster_route_init(struct cluster *cl)
{
    list_init(&cl->waits);
    task_init(&cl->route_task, on_route_task);
    timer_init(&cl->route_timer, on_route_timer);
}

void cluster_route_fini(struct cluster *cl)
{
    struct list_node *n;

    cluster_coordinators_fini(cl);
    while ((n = list_first(&cl->waits)))
        end_wait(container_of(n, struct route_wait, node), E_CANCELED, NULL);
    for (size_t i = 0; i < cl->call_links_n; i++)
        link_free(&cl->call_links[i]);
    mem_free(cl->call_links);
    task_cancel(&cl->route_task);
    timer_cancel(cl->loop, &cl->route_timer);
}
