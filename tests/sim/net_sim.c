/* net_sim.c -- pipes in virtual time, and the servers' ends of them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net_sim_int.h"

#include "base/alloc.h"
#include "base/must.h"
#include "loop_sim.h"
#include "tally.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define NAMES_MAX  64
#define ROOM_LEAST (4 * KiB) /* of what a client may have under way */
#define ROOM_MOST  (512 * KiB)

static struct {
    struct sim_listener *listeners[NAMES_MAX];
    int listeners_n;
    struct {
        const char *host;
        struct net_addr addr;
    } names[NAMES_MAX];
    int names_n;
} net;

/* --- pipes --- */

void net_sim_compact(struct pipe *p)
{
    if (p->taken < 64 * KiB && p->taken < p->bytes.n)
        return;
    buf_shift(&p->bytes, p->taken);
    p->arrived -= p->taken;
    p->taken = 0;
}

static void on_reap(struct sim_event *e)
{
    struct sim_conn *c = container_of(e, struct sim_conn, reap);

    sim_event_cancel(&c->up.deliver);
    sim_event_cancel(&c->down.deliver);
    buf_fini(&c->up.bytes);
    buf_fini(&c->down.bytes);
    mem_free(c);
}

/* Nobody holds it any more, but callers may still stand in it. */
void net_sim_conn_free(struct sim_conn *c)
{
    c->reap.fn = on_reap;
    sim_event_set(&c->reap, 0);
}

/* The server's end goes; the client may still read what has arrived. */
static void end_server(struct sim_conn *c)
{
    if (c->gone)
        return;
    c->gone = true;
    c->down.ended = true;
    list_remove(&c->node);
    if (c->server)
        c->listener->on_gone(c);
    sim_event_cancel(&c->up.deliver);
    if (c->client)
        loop_sim_kick(c->client->loop);
    else
        net_sim_conn_free(c);
}

void net_sim_schedule(struct sim_conn *c, struct pipe *p)
{
    if (!sim_event_is_set(&p->deliver))
        sim_event_set(&p->deliver, c->listener->latency_us + sim_between(0, c->listener->latency_us));
}

/* Bytes that were sent after those of another connection of the same broker, and arrive before them. */
static void note_order(const struct sim_conn *c, const struct pipe *p)
{
    struct list_node *n;

    if (p->arrived < p->bytes.n)
        tally(TALLY_READ_TORN);
    LIST_EACH(n, &c->listener->conns) {
        const struct pipe *other = &container_of(n, struct sim_conn, node)->down;

        if (other != p && other->arrived < other->bytes.n && other->sent_us < p->sent_us) {
            tally(TALLY_REORDERED);
            return;
        }
    }
}

static void deliver_down(struct sim_event *e)
{
    struct sim_conn *c = container_of(e, struct sim_conn, down.deliver);
    struct pipe *p = &c->down;
    size_t most = (size_t)c->listener->bytes_per_ms * (size_t)sim_between(1, 4);

    if (c->listener->silent) {
        sim_event_set(e, 100 * SIM_MS);
        return;
    }
    p->arrived += (size_t)sim_between(1, (int64_t)MIN(p->bytes.n - p->arrived, most));
    note_order(c, p);
    if (p->arrived < p->bytes.n)
        sim_event_set(e, sim_between(1, SIM_MS));
    if (c->client)
        loop_sim_kick(c->client->loop);
}

static void deliver_up(struct sim_event *e)
{
    struct sim_conn *c = container_of(e, struct sim_conn, up.deliver);
    struct pipe *p = &c->up;
    size_t left = p->bytes.n - p->arrived;
    size_t most = (size_t)c->listener->bytes_per_ms * (size_t)sim_between(1, 4);

    if (c->listener->silent) {
        sim_event_set(e, 100 * SIM_MS);
        return;
    }
    if (left)
        p->arrived += (size_t)sim_between(1, (int64_t)MIN(left, most));
    if (p->arrived < p->bytes.n || (p->ended && left))
        sim_event_set(e, sim_between(1, SIM_MS));
    if (p->ended && !left) {
        end_server(c);
        return;
    }
    c->listener->on_bytes(c);
    if (c->gone)
        return;
    if (c->client)
        loop_sim_kick(c->client->loop);
}

struct sim_conn *net_sim_conn_new(struct sock *s)
{
    struct sim_conn *c = mem_new(sizeof(*c));

    c->listener = s->to;
    c->client = s;
    c->room = (size_t)sim_between(ROOM_LEAST, ROOM_MOST);
    buf_init(&c->up.bytes, (size_t)1 << 30);
    buf_init(&c->down.bytes, (size_t)1 << 30);
    c->up.deliver.fn = deliver_up;
    c->down.deliver.fn = deliver_down;
    list_add_tail(&s->to->conns, &c->node);
    return c;
}

/* --- the server's side --- */

void net_sim_addr(struct net_addr *out, int sub, int host)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(SIM_PORT) };

    in.sin_addr.s_addr = htonl((uint32_t)(10 << 24 | sub << 16 | host));
    memset(out, 0, sizeof(*out));
    memcpy(out->u.bytes, &in, sizeof(in));
    out->size = sizeof(in);
}

void net_sim_listen(struct sim_listener *l)
{
    must(net.listeners_n < NAMES_MAX);
    list_init(&l->conns);
    net.listeners[net.listeners_n++] = l;
}

void net_sim_name(const char *host, const struct net_addr *addr)
{
    must(net.names_n < NAMES_MAX);
    net.names[net.names_n].host = host;
    net.names[net.names_n++].addr = *addr;
}

void sim_conn_set_server(struct sim_conn *c, void *server)
{
    c->server = server;
}

void *sim_conn_server(const struct sim_conn *c)
{
    return c->server;
}

struct sim_listener *sim_conn_listener(const struct sim_conn *c)
{
    return c->listener;
}

struct str sim_conn_arrived(const struct sim_conn *c)
{
    return str_of(c->up.bytes.p + c->up.taken, c->up.arrived - c->up.taken);
}

void sim_conn_take(struct sim_conn *c, size_t n)
{
    must(n <= c->up.arrived - c->up.taken);
    c->up.taken += n;
    net_sim_compact(&c->up);
}

void sim_conn_send(struct sim_conn *c, const void *p, size_t n)
{
    must(!c->gone);
    if (!c->client)
        return; /* nobody reads it any more */
    buf_put(&c->down.bytes, p, n);
    c->down.sent_us = sim_now_us();
    net_sim_schedule(c, &c->down);
}

void sim_conn_cut(struct sim_conn *c)
{
    struct pipe *down = &c->down, *up = &c->up;

    up->arrived += (size_t)sim_between(0, (int64_t)(up->bytes.n - up->arrived));
    up->bytes.n = up->arrived;
    down->arrived += (size_t)sim_between(0, (int64_t)(down->bytes.n - down->arrived));
    down->bytes.n = down->arrived;
    sim_event_cancel(&down->deliver);
    tally(TALLY_CUT);
    if (c->client && sim_chance(50)) {
        c->client->broken = true; /* a reset: what has arrived is not read either */
        tally(TALLY_RESET);
    }
    if (!c->gone && c->server && up->arrived > up->taken)
        c->listener->on_bytes(c);
    end_server(c);
}

void sim_conn_cut_node(struct list_node *n)
{
    sim_conn_cut(container_of(n, struct sim_conn, node));
}

void sim_listener_cut_all(struct sim_listener *l)
{
    struct list_node *n;

    while ((n = list_first(&l->conns)))
        sim_conn_cut_node(n);
}

struct sim_listener *net_sim_find(const struct net_addr *addr)
{
    for (int i = 0; i < net.listeners_n; i++)
        if (memcmp(&net.listeners[i]->addr, addr, sizeof(*addr)) == 0)
            return net.listeners[i];
    return NULL;
}

bool net_sim_lookup(struct str host, int n, struct net_addr *out)
{
    for (int i = 0; i < net.names_n; i++) {
        if (!str_eq(host, str_c(net.names[i].host)) || n-- > 0)
            continue;
        *out = net.names[i].addr;
        return true;
    }
    return false;
}

struct str net_sim_name_of(const struct net_addr *addr)
{
    struct str name = STR_NULL;

    for (int i = 0; i < net.names_n; i++)
        if (memcmp(&net.names[i].addr, addr, sizeof(*addr)) == 0)
            name = str_c(net.names[i].host);
    return name;
}
