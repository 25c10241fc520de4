/* bootstrap.c -- resolves each name forwards, and each of its addresses backwards, one question after the other.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/bootstrap.h"

#include "base/alloc.h"

static void ask_next(struct bootstrap *b);

static void free_list(struct bootstrap *b)
{
    for (size_t i = 0; i < b->n; i++)
        mem_free((char *)(uintptr_t)b->list[i].host.p);
    mem_free(b->list);
    b->list = NULL;
    b->n = 0;
}

static uint16_t port_of(const struct bootstrap *b)
{
    return b->config->bootstrap[b->asked - 1].port;
}

static void add(struct bootstrap *b, struct str host)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].port == port_of(b) && str_eq_nocase(b->list[i].host, host))
            return;
    if (b->n == BOOTSTRAP_MAX)
        return;
    b->list = mem_resize(b->list, b->n + 1, sizeof(*b->list));
    b->list[b->n++] = (struct client_endpoint){ .host = str_of(mem_copy_str(host.p, host.n), host.n),
                                                .port = port_of(b) };
}

/* An address without a name stands for itself. */
static void add_number(struct bootstrap *b, const struct net_addr *a)
{
    char text[NET_PEER_MAX], host[NET_PEER_MAX];
    uint16_t port;

    net_addr_format(a, text, sizeof(text));
    if (net_addr_split(str_c(text), host, sizeof(host), &port))
        add(b, str_c(host));
}

static void on_addrs(void *arg, enum err e, const struct net_addr *addrs, int count)
{
    struct bootstrap *b = arg;

    b->query = NULL;
    b->addrs_n = e ? 0 : MIN(count, DNS_ADDRS_MAX);
    for (int i = 0; i < b->addrs_n; i++)
        b->addrs[i] = addrs[i];
    b->addr_at = 0;
    ask_next(b);
}

static void on_name(void *arg, enum err e, struct str name)
{
    struct bootstrap *b = arg;

    b->query = NULL;
    if (e || name.n == 0)
        add_number(b, &b->addrs[b->addr_at]);
    else
        add(b, name);
    b->addr_at++;
    ask_next(b);
}

static void on_limit(struct timer *t)
{
    struct bootstrap *b = container_of(t, struct bootstrap, limit);

    dns_cancel(&b->query);
    if (b->addr_at < b->addrs_n)
        add_number(b, &b->addrs[b->addr_at++]);
    ask_next(b);
}

static void ask_next(struct bootstrap *b)
{
    const struct client_endpoint *e = &b->config->bootstrap[b->asked];

    timer_cancel(b->loop, &b->limit);
    if (b->addr_at == b->addrs_n && b->asked == b->config->bootstrap_count) {
        b->done(b);
        return;
    }
    timer_set_ms(b->loop, &b->limit, MAX(b->config->socket_connection_setup_timeout_ms, 1));
    if (b->addr_at < b->addrs_n) {
        b->query = dns_reverse(b->loop, &b->addrs[b->addr_at], on_name, b);
        return;
    }
    b->asked++;
    b->query = dns_resolve(b->loop, e->host, e->port, on_addrs, b);
}

void bootstrap_init(struct bootstrap *b, struct loop *l, const struct client_config *config,
                    void (*done)(struct bootstrap *b))
{
    *b = (struct bootstrap){ .loop = l, .config = config, .done = done };
    timer_init(&b->limit, on_limit);
}

void bootstrap_start(struct bootstrap *b)
{
    bootstrap_cancel(b);
    free_list(b);
    b->asked = 0;
    b->addrs_n = b->addr_at = 0;
    ask_next(b);
}

void bootstrap_cancel(struct bootstrap *b)
{
    dns_cancel(&b->query);
    timer_cancel(b->loop, &b->limit);
}

void bootstrap_fini(struct bootstrap *b)
{
    bootstrap_cancel(b);
    free_list(b);
}
