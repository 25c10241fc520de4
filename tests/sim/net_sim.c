/* net_sim.c -- sock.h and dns.h over pipes in virtual time.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   client  sock --write--> [ under way | arrived ] up ----> server
 *           sock <--read--- [ arrived | under way ] down <-- server
 *
 * W-1  A pipe has one event, so its bytes arrive in order whatever the seed says.
 * W-2  The client's end goes with sock_close, the server's with the last byte that the client wrote.
 */
#include "net_sim.h"

#include "base/alloc.h"
#include "base/must.h"
#include "loop_sim.h"
#include "net/sock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define PORT       9092
#define NAMES_MAX  64
#define SOCKS_MAX  256
#define ROOM_LEAST (4 * KiB) /* of what a client may have under way */
#define ROOM_MOST  (512 * KiB)

struct pipe {
    struct sim_event deliver;
    struct buf bytes;
    size_t taken, arrived; /* taken <= arrived <= bytes.n */
    bool ended; /* nothing more is written */
};

struct sim_conn {
    struct list_node node;
    struct sim_listener *listener;
    struct pipe up, down;
    struct sock *client; /* NULL: closed, or its process has died */
    void *server;
    size_t room;
    bool gone; /* the server's end */
    struct sim_event reap;
};

struct sock {
    struct list_node node; /* on its loop */
    struct loop *loop;
    struct sim_conn *conn;
    struct sim_event dial;
    struct sim_listener *to; /* NULL: nobody lives there */
    bool connecting, announce, closed, broken;
    enum err error;
    unsigned want;
    sock_ready_fn *on_ready;
    void *arg;
    char peer[NET_PEER_MAX];
};

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

static void pipe_compact(struct pipe *p)
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
static void conn_free(struct sim_conn *c)
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
        conn_free(c);
}

static void schedule(struct sim_conn *c, struct pipe *p)
{
    if (!sim_event_is_set(&p->deliver))
        sim_event_set(&p->deliver, c->listener->latency_us + sim_between(0, c->listener->latency_us));
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

static struct sim_conn *conn_new(struct sock *s)
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
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(PORT) };

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
    pipe_compact(&c->up);
}

void sim_conn_send(struct sim_conn *c, const void *p, size_t n)
{
    must(!c->gone);
    if (!c->client)
        return; /* nobody reads it any more */
    buf_put(&c->down.bytes, p, n);
    schedule(c, &c->down);
}

void sim_conn_cut(struct sim_conn *c)
{
    struct pipe *down = &c->down, *up = &c->up;

    up->arrived += (size_t)sim_between(0, (int64_t)(up->bytes.n - up->arrived));
    up->bytes.n = up->arrived;
    down->arrived += (size_t)sim_between(0, (int64_t)(down->bytes.n - down->arrived));
    down->bytes.n = down->arrived;
    sim_event_cancel(&down->deliver);
    if (c->client && sim_chance(50))
        c->client->broken = true; /* a reset: what has arrived is not read either */
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

/* --- the client's side --- */

static void end_dial(struct sim_event *e)
{
    struct sock *s = container_of(e, struct sock, dial);

    if (s->to && s->to->silent) {
        sim_event_set(e, 100 * SIM_MS);
        return;
    }
    s->connecting = false;
    s->announce = true;
    s->error = !s->to ? E_UNREACHABLE : s->to->up ? E_OK : E_REFUSED;
    if (s->error == E_OK) {
        s->conn = conn_new(s);
        s->to->on_accept(s->to, s->conn);
    }
    loop_sim_kick(s->loop);
}

static struct sim_listener *find_listener(const struct net_addr *addr)
{
    for (int i = 0; i < net.listeners_n; i++)
        if (memcmp(&net.listeners[i]->addr, addr, sizeof(*addr)) == 0)
            return net.listeners[i];
    return NULL;
}

enum err sock_connect(struct loop *l, const struct net_addr *addr, int send_buffer,
                      int receive_buffer, sock_ready_fn *on_ready, void *arg, struct sock **out)
{
    struct sock *s = mem_new(sizeof(*s));

    (void)send_buffer;
    (void)receive_buffer;
    loop_check(l);
    s->loop = l;
    s->to = find_listener(addr);
    s->connecting = true;
    s->on_ready = on_ready;
    s->arg = arg;
    s->dial.fn = end_dial;
    net_addr_format(addr, s->peer, sizeof(s->peer));
    list_add_tail(loop_sim_socks(l), &s->node);
    sim_event_set(&s->dial, s->to ? 2 * s->to->latency_us : SIM_MS);
    *out = s;
    return E_OK;
}

enum err sock_connected(struct sock *s)
{
    must(!s->connecting);
    return s->error;
}

void sock_want(struct sock *s, unsigned what)
{
    loop_check(s->loop);
    s->want = what;
}

static unsigned ready(const struct sock *s)
{
    const struct sim_conn *c = s->conn;
    unsigned what = 0;

    if (s->closed || s->connecting)
        return 0;
    if (s->announce)
        return SOCK_WRITABLE;
    if (!c)
        return 0;
    if (s->broken || c->down.arrived > c->down.taken || (c->down.ended && !sim_event_is_set(&c->down.deliver)))
        what |= SOCK_READABLE;
    if (s->broken || c->gone || c->up.bytes.n - c->up.arrived < c->room)
        what |= SOCK_WRITABLE;
    return what & s->want;
}

bool net_sim_is_ready(struct loop *l)
{
    struct list_node *n;

    LIST_EACH(n, loop_sim_socks(l))
        if (ready(container_of(n, struct sock, node)))
            return true;
    return false;
}

void net_sim_sweep(struct loop *l)
{
    struct list_node *n, *after;

    LIST_EACH_SAFE(n, after, loop_sim_socks(l)) {
        struct sock *s = container_of(n, struct sock, node);

        if (!s->closed)
            continue;
        list_remove(n);
        mem_free(s);
    }
}

bool net_sim_deliver(struct loop *l)
{
    struct sock *all[SOCKS_MAX];
    struct list_node *n;
    size_t count = 0;

    net_sim_sweep(l);
    LIST_EACH(n, loop_sim_socks(l)) {
        must(count < SOCKS_MAX);
        all[count++] = container_of(n, struct sock, node);
    }
    while (count > 0) {
        size_t i = (size_t)sim_between(0, (int64_t)count - 1);
        struct sock *s = all[i];
        unsigned what = ready(s);

        all[i] = all[--count];
        if (!what)
            continue;
        s->announce = false;
        s->on_ready(s, what, s->arg);
    }
    net_sim_sweep(l);
    return net_sim_is_ready(l);
}

enum err sock_readv(struct sock *s, const struct iovec *iov, int count, size_t *got)
{
    struct pipe *p = &s->conn->down;
    size_t n = 0;

    if (s->broken)
        return E_CLOSED;
    for (int i = 0; i < count && p->taken < p->arrived; i++) {
        size_t part = MIN(iov[i].iov_len, p->arrived - p->taken);

        memcpy(iov[i].iov_base, p->bytes.p + p->taken, part);
        p->taken += part;
        n += part;
    }
    if (n == 0 && p->ended && !sim_event_is_set(&p->deliver))
        return E_CLOSED;
    pipe_compact(p);
    *got = n;
    return E_OK;
}

enum err sock_writev(struct sock *s, const struct iovec *iov, int count, size_t *put)
{
    struct sim_conn *c = s->conn;
    size_t room, n = 0;

    if (s->broken || c->gone)
        return E_CLOSED;
    room = c->room - MIN(c->room, c->up.bytes.n - c->up.arrived);
    if (room > 1 && sim_chance(20))
        room = (size_t)sim_between(1, (int64_t)room);
    for (int i = 0; i < count && n < room; i++) {
        size_t part = MIN(iov[i].iov_len, room - n);

        buf_put(&c->up.bytes, iov[i].iov_base, part);
        n += part;
    }
    if (n)
        schedule(c, &c->up);
    *put = n;
    return E_OK;
}

static void hang_up(struct sock *s)
{
    struct sim_conn *c = s->conn;

    sim_event_cancel(&s->dial);
    s->conn = NULL;
    if (!c)
        return;
    c->client = NULL;
    if (c->gone) {
        conn_free(c);
        return;
    }
    c->up.ended = true;
    schedule(c, &c->up);
}

void sock_close(struct sock **sp)
{
    struct sock *s = *sp;

    if (!s)
        return;
    loop_check(s->loop);
    *sp = NULL;
    hang_up(s);
    s->closed = true;
}

void net_sim_kill(struct loop *l)
{
    struct list_node *n;

    LIST_EACH(n, loop_sim_socks(l)) {
        struct sock *s = container_of(n, struct sock, node);

        if (!s->closed)
            hang_up(s);
        s->closed = true;
    }
}

const char *sock_peer(const struct sock *s)
{
    return s->peer;
}

/* --- names --- */

struct dns_query {
    struct timer timer;
    struct loop *loop;
    dns_fn *fn;
    dns_name_fn *name_fn;
    void *arg;
    int count;
    struct net_addr addrs[DNS_ADDRS_MAX];
    struct str name;
};

static void answer(struct timer *t)
{
    struct dns_query *q = container_of(t, struct dns_query, timer);

    if (q->name_fn)
        q->name_fn(q->arg, q->name.n ? E_OK : E_RESOLVE, q->name);
    else
        q->fn(q->arg, q->count ? E_OK : E_RESOLVE, q->addrs, q->count);
    mem_free(q);
}

struct dns_query *dns_resolve(struct loop *l, struct str host, int port, dns_fn *fn, void *arg)
{
    struct dns_query *q = mem_new(sizeof(*q));

    q->loop = l;
    q->fn = fn;
    q->arg = arg;
    for (int i = 0; port == PORT && i < net.names_n && q->count < DNS_ADDRS_MAX; i++)
        if (str_eq(host, str_c(net.names[i].host)))
            q->addrs[q->count++] = net.names[i].addr;
    timer_init(&q->timer, answer);
    timer_set_ms(l, &q->timer, sim_between(0, 3));
    return q;
}

struct dns_query *dns_reverse(struct loop *l, const struct net_addr *a, dns_name_fn *fn, void *arg)
{
    struct dns_query *q = mem_new(sizeof(*q));

    q->loop = l;
    q->name_fn = fn;
    q->arg = arg;
    for (int i = 0; i < net.names_n; i++)
        if (a->size == net.names[i].addr.size && !memcmp(a->u.bytes, net.names[i].addr.u.bytes, a->size))
            q->name = str_c(net.names[i].host);
    timer_init(&q->timer, answer);
    timer_set_ms(l, &q->timer, sim_between(0, 3));
    return q;
}

void dns_cancel(struct dns_query **qp)
{
    struct dns_query *q = *qp;

    if (!q)
        return;
    timer_cancel(q->loop, &q->timer);
    mem_free(q);
    *qp = NULL;
}
