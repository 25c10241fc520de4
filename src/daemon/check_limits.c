/* check_limits.c -- asks both sides how large a batch may be, and says where copies take less than their source.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  broker of the target -> topics of the source -> copies at the target
 *
 * What cannot be asked (no right to, too old a broker) is left out of the judgement. One call at a time.
 */
#include "base/alloc.h"
#include "daemon/check_int.h"
#include "kafka/cluster.h"

#include <inttypes.h>
#include <string.h>

#define ASK_MAX 200 /* topics in one request */
#define RESOURCE_TOPIC 2
#define RESOURCE_BROKER 4

enum step { BROKER, SOURCE, TARGET, DONE };

struct check_limits {
    struct check_flow *flow;
    void (*done)(struct check_flow *f);
    struct call call;
    struct kafka_describe_configs_request request;
    struct arena arena; /* of one request */
    enum step step;
    size_t at; /* first topic of the request */
    int64_t broker;            /* message.max.bytes of the target; -1: not known, as below */
    int64_t *source, *target;  /* max.message.bytes by number of the topic in the plan */
};

static void ask(struct check_limits *l);

static struct str name_of(const struct check_limits *l, size_t i)
{
    const struct topic_want *w = &l->flow->plan->wants[i];

    return l->step == SOURCE ? w->name : w->target_name;
}

static void take_topic(struct check_limits *l, struct str name, int64_t bytes)
{
    int64_t *into = l->step == SOURCE ? l->source : l->target;
    size_t end = MIN(l->at + ASK_MAX, l->flow->plan->wants_n);

    for (size_t i = l->at; i < end; i++)
        if (str_eq(name_of(l, i), name))
            into[i] = bytes;
}

static void on_answer(struct call *c)
{
    struct check_limits *l = container_of(c, struct check_limits, call);
    const struct kafka_describe_configs_response *r = c->response;

    for (int32_t i = 0; c->error == E_OK && i < r->results.n; i++) {
        int64_t bytes;

        if (r->results.at[i].error_code || r->results.at[i].configs.n < 1 ||
            !str_to_i64(r->results.at[i].configs.at[0].value, &bytes))
            continue;
        if (l->step == BROKER)
            l->broker = bytes;
        else
            take_topic(l, r->results.at[i].resource_name, bytes);
    }
    l->at = l->step == BROKER ? 0 : l->at + ASK_MAX;
    if (l->step == BROKER || l->at >= l->flow->plan->wants_n) {
        l->step++;
        l->at = 0;
    }
    ask(l);
}

static void add(struct check_limits *l, int type, struct str name, struct str *key)
{
    struct kafka_describe_configs_request_resource *r = &l->request.resources.at[l->request.resources.n++];

    r->resource_type = (int8_t)type;
    r->resource_name = name;
    r->configuration_keys.at = key;
    r->configuration_keys.n = 1;
}

static void ask(struct check_limits *l)
{
    static struct str topic_key = { "max.message.bytes", 17 }, broker_key = { "message.max.bytes", 17 };
    struct cluster *cl = director_cluster(l->flow->director, l->step != SOURCE);
    struct route route = { .kind = ROUTE_ANY };
    const struct broker_meta *brokers;
    size_t n = l->flow->plan->wants_n;

    if (l->step == DONE) {
        l->done(l->flow);
        return;
    }
    arena_reset(&l->arena);
    codec_init(&kafka_describe_configs_request_msg, &l->request);
    l->request.resources.at = arena_array(&l->arena, ASK_MAX, sizeof(*l->request.resources.at));
    l->request.resources.n = 0;
    if (l->step == BROKER && cluster_brokers(cl, &brokers)) {
        route.kind = ROUTE_BROKER;
        route.broker = brokers[0].id;
        add(l, RESOURCE_BROKER, arena_fmt(&l->arena, "%d", brokers[0].id), &broker_key);
    }
    for (size_t i = l->at; l->step != BROKER && i < MIN(l->at + ASK_MAX, n); i++)
        add(l, RESOURCE_TOPIC, name_of(l, i), &topic_key);
    call_fini(&l->call);
    call_init(&l->call, API_DESCRIBE_CONFIGS, &l->request, on_answer);
    if (cluster_call(cl, &route, &l->call)) {
        l->step = DONE;
        l->done(l->flow);
    }
}

struct check_limits *check_limits_ask(struct check_flow *f, void (*done)(struct check_flow *f))
{
    struct check_limits *l;
    size_t n = f->plan->wants_n;

    if (n == 0)
        return NULL;
    l = mem_new(sizeof(*l));
    l->flow = f;
    l->done = done;
    l->broker = -1;
    l->source = arena_array(&f->check->arena, n, sizeof(*l->source));
    l->target = arena_array(&f->check->arena, n, sizeof(*l->target));
    for (size_t i = 0; i < n; i++)
        l->source[i] = l->target[i] = -1;
    arena_init(&l->arena, 64 * MiB);
    call_init(&l->call, 0, NULL, NULL);
    ask(l);
    return l;
}

void check_limits_free(struct check_limits **lp)
{
    struct check_limits *l = *lp;

    if (!l)
        return;
    if (call_is_busy(&l->call))
        call_drop(&l->call);
    call_fini(&l->call);
    arena_fini(&l->arena);
    mem_free(l);
    *lp = NULL;
}

/* What the copy takes, or will take once it is created. */
static int64_t target_limit(const struct check_limits *l, const struct check_topic *t)
{
    const struct plan_create *c = t->create;
    int64_t bytes;

    if (!c)
        return l->target[t->want - l->flow->plan->wants];
    for (size_t k = 0; k < c->configs_n; k++)
        if (str_eq(c->configs[k].name, STR("max.message.bytes")) && str_to_i64(c->configs[k].value, &bytes))
            return bytes;
    return l->broker;
}

void check_limits_judge(struct check_flow *f)
{
    const struct check_limits *l = f->limits;
    size_t n;
    struct check_topic *t = check_topics(f, &n);

    for (size_t i = 0; l && i < n; i++) {
        int64_t source = l->source[t[i].want - f->plan->wants], target = target_limit(l, &t[i]);

        if (source < 0 || target < 0 || target >= source)
            continue;
        check_add(f, CONFIG_WARNING,
                  "topic %.*s: its copy takes batches of %" PRId64 " bytes, the source %" PRId64
                  "; a larger one would halt its partition: raise max.message.bytes at the target",
                  STR_ARG(t[i].want->name), target, source);
    }
}
