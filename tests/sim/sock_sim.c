/* sock_sim.c -- net/sock.h over simulated pipes: the clients' ends.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net_sim_int.h"

#include "base/alloc.h"
#include "base/must.h"
#include "loop_sim.h"
#include "tally.h"

#include <string.h>

#define SOCKS_MAX 256

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
        s->conn = net_sim_conn_new(s);
        s->to->on_accept(s->to, s->conn);
    }
    loop_sim_kick(s->loop);
}

static uint64_t dials;

uint64_t net_sim_dials(void)
{
    return dials;
}

enum err sock_connect(struct loop *l, const struct net_addr *addr, int send_buffer,
                      int receive_buffer, sock_ready_fn *on_ready, void *arg, struct sock **out)
{
    struct sock *s = mem_new(sizeof(*s));

    (void)send_buffer;
    (void)receive_buffer;
    loop_check(l);
    s->loop = l;
    s->to = net_sim_find(addr);
    s->connecting = true;
    s->on_ready = on_ready;
    s->arg = arg;
    s->dial.fn = end_dial;
    dials++;
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
    net_sim_compact(p);
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
        net_sim_schedule(c, &c->up);
    if (n == room)
        tally(TALLY_WRITE_TORN);
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
        net_sim_conn_free(c);
        return;
    }
    c->up.ended = true;
    net_sim_schedule(c, &c->up);
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
