/* dns.c -- the system's resolver, on libuv's helper threads.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A look-up that a helper thread has begun cannot be taken back: a cancelled query stays allocated until
 * the answer comes, tells nobody and frees itself. loop_free waits for such answers.
 */
#include "net/dns.h"

#include "base/alloc.h"
#include "base/must.h"
#include "loop/loop_uv.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HOST_MAX 256 /* RFC 1035: 253, and a NUL */

struct dns_query {
    union {
        uv_getaddrinfo_t request;
        uv_getnameinfo_t backwards;
    };
    struct task answer; /* of a literal, or of a name that needs no asking */
    struct loop *loop;
    dns_fn *fn;           /* one of the two; */
    dns_name_fn *name_fn; /* both NULL: cancelled */
    void *arg;
    enum err error;
    bool asking; /* libuv holds the request */
    int count;
    struct net_addr addrs[DNS_ADDRS_MAX];
};

static void note_addrs(struct dns_query *q, const struct addrinfo *list)
{
    for (const struct addrinfo *a = list; a && q->count < DNS_ADDRS_MAX; a = a->ai_next) {
        struct net_addr *to = &q->addrs[q->count];

        if (a->ai_addrlen > sizeof(to->u.bytes))
            continue;
        memcpy(to->u.bytes, a->ai_addr, a->ai_addrlen);
        to->size = a->ai_addrlen;
        q->count++;
    }
    q->error = q->count ? E_OK : E_RESOLVE;
}

static void finish(struct dns_query *q)
{
    if (q->fn)
        q->fn(q->arg, q->error, q->addrs, q->count);
    else if (q->name_fn)
        q->name_fn(q->arg, q->error, STR_NULL);
    mem_free(q);
}

static void on_name(uv_getnameinfo_t *request, int status, const char *host, const char *service)
{
    struct dns_query *q = container_of(request, struct dns_query, backwards);

    (void)service;
    if (q->name_fn)
        q->name_fn(q->arg, status ? E_RESOLVE : E_OK, status ? STR_NULL : str_c(host));
    mem_free(q);
}

static void on_answer(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct dns_query *q = container_of(request, struct dns_query, request);

    note_addrs(q, status == 0 ? list : NULL);
    uv_freeaddrinfo(list);
    finish(q);
}

static void answer(struct task *t)
{
    finish(container_of(t, struct dns_query, answer));
}

/* The numbers of a literal, without asking anybody. */
static bool is_literal(struct dns_query *q, const char *host, const char *port)
{
    static const struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
        .ai_socktype = SOCK_STREAM,
    };
    struct addrinfo *list;

    if (getaddrinfo(host, port, &hints, &list) != 0)
        return false;
    note_addrs(q, list);
    freeaddrinfo(list);
    return true;
}

struct dns_query *dns_resolve(struct loop *l, struct str host, int port, dns_fn *fn, void *arg)
{
    /* Not AI_ADDRCONFIG: it hides localhost from a machine that has no other address. An address of a
     * kind that the machine cannot reach costs one failed connect. */
    static const struct addrinfo hints = {
        .ai_flags = AI_NUMERICSERV,
        .ai_socktype = SOCK_STREAM,
    };
    struct dns_query *q = mem_new(sizeof(*q));
    char name[HOST_MAX], service[16];

    loop_check(l);
    q->loop = l;
    q->fn = fn;
    q->arg = arg;
    q->error = E_RESOLVE;
    task_init(&q->answer, answer);
    snprintf(name, sizeof(name), "%.*s", STR_ARG(host));
    snprintf(service, sizeof(service), "%d", port);
    if (host.n > 0 && host.n < sizeof(name) && strlen(name) == host.n &&
        !is_literal(q, name, service))
        q->asking = uv_getaddrinfo(loop_uv(l), &q->request, on_answer, name, service, &hints) == 0;
    if (!q->asking)
        task_wake(l, &q->answer);
    return q;
}

struct dns_query *dns_reverse(struct loop *l, const struct net_addr *a, dns_name_fn *fn, void *arg)
{
    struct dns_query *q = mem_new(sizeof(*q));
    struct sockaddr_storage address = { 0 };

    loop_check(l);
    q->loop = l;
    q->name_fn = fn;
    q->arg = arg;
    q->error = E_RESOLVE;
    task_init(&q->answer, answer);
    memcpy(&address, a->u.bytes, MIN(a->size, sizeof(a->u.bytes)));
    q->asking = uv_getnameinfo(loop_uv(l), &q->backwards, on_name, (const struct sockaddr *)&address,
                               NI_NAMEREQD) == 0;
    if (!q->asking)
        task_wake(l, &q->answer);
    return q;
}

void dns_cancel(struct dns_query **query)
{
    struct dns_query *q = *query;

    if (!q)
        return;
    loop_check(q->loop);
    *query = NULL;
    q->fn = NULL;
    q->name_fn = NULL;
    if (q->asking) {
        (void)uv_cancel((uv_req_t *)&q->request); /* may be too late; on_answer comes either way */
    } else {
        task_cancel(&q->answer);
        mem_free(q);
    }
}
