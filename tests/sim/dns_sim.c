/* dns_sim.c -- net/dns.h: the names that the world has given.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net_sim_int.h"

#include "base/alloc.h"
#include "loop/loop.h"

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
    while (port == SIM_PORT && q->count < DNS_ADDRS_MAX && net_sim_lookup(host, q->count, &q->addrs[q->count]))
        q->count++;
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
    q->name = net_sim_name_of(a);
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
