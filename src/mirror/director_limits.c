/* director_limits.c -- tells partitions what the topic that they write to takes, and raises its limit when asked to.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Partitions ask when the target has refused something; one topic is asked about at a time, with a call of its own, so a
 * refresh under way does not wait. Every answer goes to all workers, also one that says that nothing is known: who waits
 * for it goes on by guesses. Thread: control.
 */
#include "mirror/director_limits.h"

#include "base/alloc.h"
#include "base/log.h"
#include "mirror/director_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define ASKS_MAX 10000 /* topics that wait for their turn */

struct limit_ask {
    struct list_node node;
    struct str topic; /* own memory */
    int64_t raise_to; /* 0: only tell */
    int32_t raise_kerr; /* the outcome */
};

static void ask_next(struct director_limits *l);

static struct limit_ask *first(struct director_limits *l)
{
    struct list_node *n = list_first(&l->asks);

    return n ? container_of(n, struct limit_ask, node) : NULL;
}

static void ask_free(struct director_limits *l, struct limit_ask *a)
{
    list_remove(&a->node);
    mem_free((char *)(uintptr_t)a->topic.p);
    mem_free(a);
    l->asks_n--;
}

static void answer(struct director_limits *l, struct topic_limits *limits)
{
    struct director *d = container_of(l, struct director, limits);
    struct limit_ask *a = first(l);

    if (!limits->kerr)
        limits->kerr = a->raise_kerr;
    for (int32_t i = 0; i < d->ports_n; i++)
        flow_port_tell_limits(d->ports[i], a->topic, limits);
    ask_free(l, a);
    ask_next(l);
}

static void on_described(struct call *call)
{
    struct director_limits *l = container_of(call, struct director_limits, call);
    const struct kafka_describe_configs_response *r = call->response;
    struct topic_limits limits;

    if (call->error == E_CANCELED)
        return;
    topic_limits_init(&limits);
    limits.kerr = call->error ? KERR_NETWORK_EXCEPTION : 0;
    for (int32_t i = 0; !call->error && i < r->results.n; i++)
        topic_limits_take(&limits, &r->results.at[i]);
    answer(l, &limits);
}

/* The call with the request that was filled in; a start that fails is an answer too, from the loop. */
static void send(struct director_limits *l, int api, enum route_kind kind, void (*done)(struct call *c))
{
    struct director *d = container_of(l, struct director, limits);
    struct route route = { .kind = kind };

    call_fini(&l->call);
    call_init(&l->call, api, &l->request, done);
    if (cluster_call(d->target, &route, &l->call)) {
        struct topic_limits none;

        topic_limits_init(&none);
        none.kerr = KERR_NETWORK_EXCEPTION;
        answer(l, &none);
    }
}

static void describe(struct director_limits *l, const struct limit_ask *a)
{
    struct kafka_describe_configs_request *q = &l->request.configs;

    arena_reset(&l->arena);
    codec_init(&kafka_describe_configs_request_msg, q);
    q->resources.at = arena_array(&l->arena, 1, sizeof(*q->resources.at));
    q->resources.n = 1;
    q->resources.at[0].resource_type = 2;
    q->resources.at[0].resource_name = a->topic;
    q->resources.at[0].configuration_keys.n = -1;
    send(l, API_DESCRIBE_CONFIGS, ROUTE_ANY, on_described);
}

static void on_altered(struct call *call)
{
    struct director_limits *l = container_of(call, struct director_limits, call);
    struct director *d = container_of(l, struct director, limits);
    const struct kafka_incremental_alter_configs_response *r = call->response;
    struct limit_ask *a = first(l);

    if (call->error == E_CANCELED)
        return;
    a->raise_kerr = call->error ? KERR_NETWORK_EXCEPTION : r->responses.n ? r->responses.at[0].error_code : 0;
    if (call->error == E_VERSION)
        a->raise_kerr = KERR_UNSUPPORTED_VERSION;
    if (!a->raise_kerr)
        log_event(EV_LIMIT_RAISED, kv_str("flow", d->config->name), kv_str("topic", a->topic),
                  kv_int("bytes", a->raise_to));
    describe(l, a);
}

static void raise_limit(struct director_limits *l, const struct limit_ask *a)
{
    struct kafka_incremental_alter_configs_request *q = &l->request.alter;
    struct kafka_incremental_alter_configs_request_resource *r;
    char *number;

    arena_reset(&l->arena);
    codec_init(&kafka_incremental_alter_configs_request_msg, q);
    q->resources.at = r = arena_array(&l->arena, 1, sizeof(*r));
    q->resources.n = 1;
    r->resource_type = 2;
    r->resource_name = a->topic;
    r->configs.at = arena_array(&l->arena, 1, sizeof(*r->configs.at));
    r->configs.n = 1;
    number = arena_alloc(&l->arena, 24);
    snprintf(number, 24, "%" PRId64, a->raise_to);
    r->configs.at[0].name = STR("max.message.bytes");
    r->configs.at[0].config_operation = 0;
    r->configs.at[0].value = str_c(number);
    send(l, API_INCREMENTAL_ALTER_CONFIGS, ROUTE_CONTROLLER, on_altered);
}

static void ask_next(struct director_limits *l)
{
    if (first(l))
        task_wake(container_of(l, struct director, limits)->loop, &l->step);
}

static void on_step(struct task *t)
{
    struct director_limits *l = container_of(t, struct director_limits, step);
    struct limit_ask *a = first(l);

    if (!a || call_is_busy(&l->call))
        return;
    if (a->raise_to)
        raise_limit(l, a);
    else
        describe(l, a);
}

void director_limits_ask(struct director *d, struct str topic, int64_t raise_to)
{
    struct director_limits *l = &d->limits;
    struct limit_ask *a;
    struct list_node *n;

    if (d->state == DIRECTOR_STOPPING || d->state == DIRECTOR_STOPPED || l->asks_n >= ASKS_MAX)
        return;
    LIST_EACH(n, &l->asks)
    {
        a = container_of(n, struct limit_ask, node);
        if (n != list_first(&l->asks) && str_eq(a->topic, topic)) { /* the first is being answered */
            a->raise_to = MAX(a->raise_to, raise_to);
            return;
        }
    }
    a = mem_new(sizeof(*a));
    a->topic = str_of(mem_copy_str(topic.p, topic.n), topic.n);
    a->raise_to = raise_to;
    list_add_tail(&l->asks, &a->node);
    l->asks_n++;
    ask_next(l);
}

void director_limits_init(struct director_limits *l)
{
    list_init(&l->asks);
    task_init(&l->step, on_step);
    arena_init(&l->arena, 1 * MiB);
    call_init(&l->call, 0, NULL, NULL);
}

void director_limits_stop(struct director_limits *l)
{
    struct limit_ask *a;

    task_cancel(&l->step);
    call_drop(&l->call);
    while ((a = first(l)))
        ask_free(l, a);
}

void director_limits_fini(struct director_limits *l)
{
    director_limits_stop(l);
    call_fini(&l->call);
    arena_fini(&l->arena);
}
