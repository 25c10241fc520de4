/* check_limits.c -- asks both sides for the configs that decide what copies would meet, and says what will hurt.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  broker of the target -> topics of the source -> copies at the target
 *
 * What a copy to come will have is its broker's default under what it is created with. What cannot be asked (no right
 * to, too old a broker) is left out of the judgement, which is topics_warnings. One call at a time.
 */
#include "base/alloc.h"
#include "daemon/check_int.h"
#include "kafka/cluster.h"

#include <string.h>

#define ASK_MAX 200 /* topics in one request */
#define RESOURCE_TOPIC 2
#define RESOURCE_BROKER 4
#define SAID_MAX 200 /* different warnings of a flow */

/* A topic's config and the broker's default of it. */
static const struct {
    struct str topic, broker;
} keys[] = {
    { STR("max.message.bytes"), STR("message.max.bytes") },
    { STR("segment.bytes"), STR("log.segment.bytes") },
    { STR("message.timestamp.type"), STR("log.message.timestamp.type") },
    { STR("message.timestamp.after.max.ms"), STR("log.message.timestamp.after.max.ms") },
    { STR("message.timestamp.before.max.ms"), STR("log.message.timestamp.before.max.ms") },
    { STR("message.timestamp.difference.max.ms"), STR("log.message.timestamp.difference.max.ms") },
    { STR("compression.type"), STR("compression.type") },
    { STR("min.insync.replicas"), STR("min.insync.replicas") },
    { STR("retention.ms"), STR("log.retention.ms") },
    { STR("retention.bytes"), STR("log.retention.bytes") },
    { STR("cleanup.policy"), STR("log.cleanup.policy") },
    { STR("default.replication.factor"), STR("default.replication.factor") }, /* of brokers only */
};
#define KEYS COUNT(keys)
#define KEY_FACTOR (KEYS - 1)

enum step { BROKER, SOURCE, TARGET, DONE };

struct values {
    struct str at[KEYS]; /* null: not known */
};

/* Topics that the same is to be said of. */
struct said {
    struct str text, first;
    size_t more;
};

struct check_limits {
    struct check_flow *flow;
    void (*done)(struct check_flow *f);
    struct call call;
    struct kafka_describe_configs_request request;
    struct arena arena; /* of one request */
    enum step step;
    size_t at; /* first topic of the request */
    struct values broker;
    struct values *source, *target; /* by number of the topic in the plan */
    struct said said[SAID_MAX];
    size_t said_n;
};

static void ask(struct check_limits *l);

static struct str key_of(const struct check_limits *l, size_t k)
{
    return l->step == BROKER ? keys[k].broker : keys[k].topic;
}

static struct str name_of(const struct check_limits *l, size_t i)
{
    const struct topic_want *w = &l->flow->plan->wants[i];

    return l->step == SOURCE ? w->name : w->target_name;
}

static void take_values(struct check_limits *l, struct values *into,
                        const struct kafka_describe_configs_response_result *r)
{
    for (int32_t i = 0; i < r->configs.n; i++)
        for (size_t k = 0; k < KEYS; k++)
            if (str_eq(r->configs.at[i].name, key_of(l, k)))
                into->at[k] = arena_str(&l->flow->check->arena, r->configs.at[i].value);
}

static void take_result(struct check_limits *l, const struct kafka_describe_configs_response_result *r)
{
    size_t end = MIN(l->at + ASK_MAX, l->flow->plan->wants_n);

    if (l->step == BROKER)
        take_values(l, &l->broker, r);
    for (size_t i = l->at; l->step != BROKER && i < end; i++)
        if (str_eq(name_of(l, i), r->resource_name))
            take_values(l, l->step == SOURCE ? &l->source[i] : &l->target[i], r);
}

static void on_answer(struct call *c)
{
    struct check_limits *l = container_of(c, struct check_limits, call);
    const struct kafka_describe_configs_response *r = c->response;

    for (int32_t i = 0; c->error == E_OK && i < r->results.n; i++)
        if (!r->results.at[i].error_code)
            take_result(l, &r->results.at[i]);
    l->at = l->step == BROKER ? 0 : l->at + ASK_MAX;
    if (l->step == BROKER || l->at >= l->flow->plan->wants_n) {
        l->step++;
        l->at = 0;
    }
    ask(l);
}

static void add(struct check_limits *l, int type, struct str name)
{
    struct kafka_describe_configs_request_resource *r = &l->request.resources.at[l->request.resources.n++];

    r->resource_type = (int8_t)type;
    r->resource_name = name;
    r->configuration_keys.at = arena_array(&l->arena, KEYS, sizeof(struct str));
    r->configuration_keys.n = 0;
    for (size_t k = 0; k < KEYS; k++)
        if (l->step == BROKER || k != KEY_FACTOR)
            r->configuration_keys.at[r->configuration_keys.n++] = key_of(l, k);
}

static void ask(struct check_limits *l)
{
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
        add(l, RESOURCE_BROKER, arena_fmt(&l->arena, "%d", brokers[0].id));
    }
    for (size_t i = l->at; l->step != BROKER && i < MIN(l->at + ASK_MAX, n); i++)
        add(l, RESOURCE_TOPIC, name_of(l, i));
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
    l->source = arena_array(&f->check->arena, n, sizeof(*l->source));
    l->target = arena_array(&f->check->arena, n, sizeof(*l->target));
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

static size_t list_known(const struct values *v, struct topic_config *out)
{
    size_t n = 0;

    for (size_t k = 0; k < KEY_FACTOR; k++)
        if (!str_is_null(v->at[k]))
            out[n++] = (struct topic_config){ .name = keys[k].topic, .value = v->at[k] };
    return n;
}

/* What the copy has, or will have once it is created. */
static void copy_values(const struct check_limits *l, const struct check_topic *t, struct values *out, int32_t *replicas)
{
    const struct plan_create *c = t->create;
    int64_t factor = l->flow->config->replication_factor;

    *out = c ? l->broker : l->target[t->want - l->flow->plan->wants];
    *replicas = t->replicas;
    if (!c)
        return;
    for (size_t i = 0; i < c->configs_n; i++)
        for (size_t k = 0; k < KEY_FACTOR; k++)
            if (str_eq(c->configs[i].name, keys[k].topic))
                out->at[k] = c->configs[i].value;
    if (factor < 0 && (str_is_null(l->broker.at[KEY_FACTOR]) || !str_to_i64(l->broker.at[KEY_FACTOR], &factor)))
        factor = 0;
    *replicas = (int32_t)factor;
}

static void say(struct check_limits *l, struct str topic, struct str text)
{
    for (size_t i = 0; i < l->said_n; i++) {
        if (!str_eq(l->said[i].text, text))
            continue;
        l->said[i].more++;
        return;
    }
    if (l->said_n < SAID_MAX)
        l->said[l->said_n++] = (struct said){ .text = text, .first = topic };
}

static void judge_topic(struct check_limits *l, const struct check_topic *t)
{
    struct topic_config source[KEYS], target[KEYS];
    struct topic_sides sides = { .source = source, .target = target };
    struct topic_warning w[TOPIC_WARNINGS_MAX];
    struct values copy;
    size_t n;

    sides.source_n = list_known(&l->source[t->want - l->flow->plan->wants], source);
    if (sides.source_n == 0 || t->fault)
        return;
    copy_values(l, t, &copy, &sides.replicas);
    sides.target_n = list_known(&copy, target);
    n = topics_warnings(&sides, &l->flow->check->arena, w);
    for (size_t i = 0; i < n; i++)
        say(l, t->want->name, w[i].text);
}

void check_limits_judge(struct check_flow *f)
{
    struct check_limits *l = f->limits;
    size_t n;
    struct check_topic *t = check_topics(f, &n);

    for (size_t i = 0; l && i < n; i++)
        judge_topic(l, &t[i]);
    for (size_t i = 0; l && i < l->said_n; i++) {
        const struct said *s = &l->said[i];

        if (s->more)
            check_add(f, CONFIG_WARNING, "topic %.*s and %zu more: %.*s", STR_ARG(s->first), s->more,
                      STR_ARG(s->text));
        else
            check_add(f, CONFIG_WARNING, "topic %.*s: %.*s", STR_ARG(s->first), STR_ARG(s->text));
    }
}
