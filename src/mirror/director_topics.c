/* director_topics.c -- looks for topics, makes and grows their copies, hands partitions to workers.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  list source -> list target -> configs of new ones -> create -> grow -> adopt and release
 *
 * What is to be done is decided by topics_plan (pure); this file asks and applies. A topic that cannot be described,
 * created or grown has a fault of its own and is tried again at the next refresh, or sooner; the others go on.
 * Everything of one refresh lies in plan_arena. Thread: control.
 */
#include "mirror/director_internal.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"

#include <string.h>

#define CREATE_MAX 100       /* topics in one request */
#define RETRY_FAULTY_MS 10000 /* topics with a fault are tried again this soon, whatever the refresh interval */

struct kafka_metadata_request *director_ask_names(struct director *d, size_t most)
{
    struct kafka_metadata_request *q = &d->request.metadata;

    codec_init(&kafka_metadata_request_msg, q);
    q->allow_auto_topic_creation = false;
    q->topics.at = arena_array(&d->arena, most, sizeof(*q->topics.at));
    q->topics.n = 0;
    return q;
}

static void next_step(struct director *d, enum refresh_step to)
{
    d->refresh_step = to;
    director_wake(d);
}

/* This process carries it, or an earlier one has. */
static bool is_ours(void *arg, struct str topic)
{
    struct director *d = arg;
    const struct mirrored *m;

    HASH_FIND(hh, d->topics, topic.p, topic.n, m);
    return (m && m->partitions > 0) || director_has_stored(d, topic);
}

static struct transforms *get_transforms(struct director *d)
{
    struct transforms_fault fault;

    if (d->config->transforms.n && !d->transforms)
        must_say(transforms_new(d->config, &d->arena, &d->transforms, &fault) == E_OK, "a transform that was not checked");
    return d->transforms;
}

static void on_source_listed(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_metadata_response *r = call->response;
    struct plan *p;

    if (director_call_failed(d, "listing the topics of the source"))
        return;
    if (r->error_code) {
        director_fail(d, kerr_name(r->error_code), "the topics of the source cannot be listed: %s",
                      kerr_text(r->error_code));
        return;
    }
    arena_reset(&d->plan_arena);
    p = d->plan = plan_new(&d->plan_arena, (size_t)r->topics.n, loop_wall_ms(d->loop));
    for (int32_t i = 0; i < r->topics.n; i++)
        plan_add_source(p, d->policy, d->topic_filter, &r->topics.at[i]);
    director_tell_chosen(d);
    plan_route(p, get_transforms(d));
    plan_refuse_collisions(p, is_ours, d);
    next_step(d, REFRESH_LIST_TARGET);
}

static void list_source(struct director *d)
{
    struct kafka_metadata_request *q = &d->request.metadata;

    codec_init(&kafka_metadata_request_msg, q);
    q->allow_auto_topic_creation = false;
    q->topics.at = NULL;
    q->topics.n = -1; /* all */
    director_call(d, d->source, API_METADATA, ROUTE_ANY, on_source_listed);
}

static void on_target_listed(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_metadata_response *r = call->response;

    if (director_call_failed(d, "looking for the copies at the target"))
        return;
    for (int32_t i = 0; i < r->topics.n; i++)
        plan_add_target(d->plan, &r->topics.at[i]);
    plan_decide(d->plan);
    next_step(d, REFRESH_CONFIGS);
}

static void list_target(struct director *d)
{
    struct kafka_metadata_request *q = director_ask_names(d, d->plan->wants_n * 2);

    for (size_t i = 0; i < d->plan->wants_n; i++) {
        const struct topic_want *w = &d->plan->wants[i];

        if (!w->unnameable)
            q->topics.at[q->topics.n++].name = w->target_name;
        if (!w->unnameable && !str_eq(w->route, w->target_name))
            q->topics.at[q->topics.n++].name = w->route;
    }
    if (q->topics.n)
        director_call(d, d->target, API_METADATA, ROUTE_ANY, on_target_listed);
    else
        next_step(d, d->plan_only ? REFRESH_DONE : REFRESH_GONE);
}

static void on_configs(struct call *call)
{
    struct director *d = container_of(call, struct director, call);

    if (director_call_failed(d, "reading the configs of new topics at the source"))
        return;
    plan_add_configs(d->plan, call->response, d->config);
    next_step(d, REFRESH_CONFIGS);
}

/* The configs of topics that will be created, CREATE_MAX at a time. */
static void ask_configs(struct director *d)
{
    struct kafka_describe_configs_request *q = &d->request.configs;

    codec_init(&kafka_describe_configs_request_msg, q);
    q->resources.at = arena_array(&d->arena, CREATE_MAX, sizeof(*q->resources.at));
    q->resources.n = 0;
    for (size_t i = 0; i < d->plan->creates_n && q->resources.n < CREATE_MAX; i++) {
        struct kafka_describe_configs_request_resource *r = &q->resources.at[q->resources.n];

        if (d->plan->creates[i].described)
            continue;
        r->resource_type = 2;
        r->resource_name = d->plan->creates[i].want->name;
        r->configuration_keys.n = -1;
        q->resources.n++;
    }
    if (q->resources.n)
        director_call(d, d->source, API_DESCRIBE_CONFIGS, ROUTE_ANY, on_configs);
    else
        next_step(d, d->plan_only ? REFRESH_DONE : REFRESH_CREATE);
}

static void on_created(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_create_topics_response *r = call->response;
    bool again = false;

    if (director_call_failed(d, "creating topics at the target"))
        return;
    for (int32_t i = 0; i < r->topics.n; i++) {
        struct plan_create *c = plan_find_create(d->plan, r->topics.at[i].name);

        if (c && kerr_class(API_CREATE_TOPICS, r->topics.at[i].error_code) == K_REFRESH)
            again = true; /* not the controller */
        else if (c)
            plan_take_created(d->plan, c, &r->topics.at[i], d->config);
    }
    if (again) {
        struct route route = { .kind = ROUTE_CONTROLLER };

        cluster_reroute(d->target, &route);
        director_fail(d, kerr_name(KERR_NOT_CONTROLLER), "the target's controller has moved");
        return;
    }
    next_step(d, REFRESH_CREATE);
}

static void create_topics(struct director *d)
{
    struct kafka_create_topics_request *q = &d->request.create;

    codec_init(&kafka_create_topics_request_msg, q);
    q->timeout_ms = 30000;
    q->topics.at = arena_array(&d->arena, CREATE_MAX, sizeof(*q->topics.at));
    q->topics.n = 0;
    for (size_t i = 0; i < d->plan->creates_n && q->topics.n < CREATE_MAX; i++) {
        struct plan_create *c = &d->plan->creates[i];
        struct kafka_create_topics_request_topic *t = &q->topics.at[q->topics.n];

        if (c->done || fault_is_set(&c->fault))
            continue;
        q->topics.n++;
        t->name = c->want->target_name;
        t->num_partitions = c->want->partitions;
        t->replication_factor = (int16_t)d->config->replication_factor;
        t->configs.at = arena_array(&d->arena, c->configs_n, sizeof(*t->configs.at));
        t->configs.n = (int32_t)c->configs_n;
        for (size_t j = 0; j < c->configs_n; j++) {
            t->configs.at[j].name = c->configs[j].name;
            t->configs.at[j].value = c->configs[j].value;
        }
    }
    if (q->topics.n)
        director_call(d, d->target, API_CREATE_TOPICS, ROUTE_CONTROLLER, on_created);
    else
        next_step(d, REFRESH_GROW);
}

static void on_routes(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_metadata_response *r = call->response;

    if (director_call_failed(d, "looking for the topics that transforms send records to"))
        return;
    for (int32_t i = 0; i < r->topics.n; i++)
        plan_take_route(d->plan, r->topics.at[i].name, r->topics.at[i].error_code);
    next_step(d, REFRESH_GONE);
}

/* As MirrorMaker 2's producer does: it creates no topic, but its question may make the broker do so. */
static void ask_routes(struct director *d)
{
    struct kafka_metadata_request *q = director_ask_names(d, d->plan->wants_n);

    q->allow_auto_topic_creation = true;
    for (size_t i = 0; i < d->plan->wants_n; i++)
        if (plan_misses_route(d->plan, &d->plan->wants[i]))
            q->topics.at[q->topics.n++].name = d->plan->wants[i].route;
    if (q->topics.n)
        director_call(d, d->target, API_METADATA, ROUTE_ANY, on_routes);
    else
        next_step(d, REFRESH_GONE);
}

static void on_grown(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_create_partitions_response *r = call->response;

    if (director_call_failed(d, "adding partitions at the target"))
        return;
    for (int32_t i = 0; i < r->results.n; i++) {
        struct plan_grow *g = plan_find_grow(d->plan, r->results.at[i].name);

        if (g)
            plan_take_grown(d->plan, g, r->results.at[i].error_code, r->results.at[i].error_message,
                            d->config);
    }
    next_step(d, REFRESH_ROUTES);
}

static void grow_topics(struct director *d)
{
    struct kafka_create_partitions_request *q = &d->request.grow;

    codec_init(&kafka_create_partitions_request_msg, q);
    q->timeout_ms = 30000;
    q->topics.at = arena_array(&d->arena, d->plan->grows_n, sizeof(*q->topics.at));
    q->topics.n = 0;
    for (size_t i = 0; i < d->plan->grows_n; i++) {
        struct kafka_create_partitions_request_topic *t = &q->topics.at[q->topics.n++];

        t->name = d->plan->grows[i].want->target_name;
        t->count = d->plan->grows[i].want->partitions;
        t->assignments.n = -1;
    }
    if (q->topics.n)
        director_call(d, d->target, API_CREATE_PARTITIONS, ROUTE_CONTROLLER, on_grown);
    else
        next_step(d, REFRESH_ROUTES);
}

struct flow_port *director_port_of(struct director *d, struct str topic, int32_t partition)
{
    uint64_t slot = (str_hash(topic) + (uint64_t)partition * 0x9e3779b97f4a7c15u) >> 7;

    return d->ports[slot % 1024 % (uint64_t)d->ports_n];
}

static void adopt(struct director *d, struct mirrored *m, int32_t partition)
{
    struct relay_start start = { .next = -1 };

    (void)director_take_stored(d, m->name, partition, m->route, &start);
    start.from_earliest = d->ready;
    flow_port_adopt(director_port_of(d, m->name, partition), m->name, m->route, partition, &start);
    d->partitions_n++;
}

static void release_from(struct director *d, struct mirrored *m, int32_t first)
{
    for (int32_t i = first; i < m->partitions; i++)
        flow_port_release(director_port_of(d, m->name, i), m->name, i);
    d->partitions_n -= MAX(m->partitions - first, 0);
    m->partitions = MIN(m->partitions, first);
}

static struct str own(struct str s)
{
    return str_of(mem_copy_str(s.p, s.n), s.n);
}

static struct mirrored *get_mirrored(struct director *d, const struct topic_want *w)
{
    struct mirrored *m;

    HASH_FIND(hh, d->topics, w->name.p, w->name.n, m);
    if (m)
        return m;
    m = mem_new(sizeof(*m));
    m->name = own(w->name);
    m->target_name = own(w->target_name);
    m->route = own(w->route);
    HASH_ADD_KEYPTR(hh, d->topics, m->name.p, m->name.n, m);
    return m;
}

static void free_mirrored(struct director *d, struct mirrored *m)
{
    HASH_DEL(d->topics, m);
    mem_free((char *)(uintptr_t)m->name.p);
    mem_free((char *)(uintptr_t)m->target_name.p);
    mem_free((char *)(uintptr_t)m->route.p);
    mem_free(m);
}

/* Each look has faults of its own; what was there at the last one keeps its time. */
static void take_fault(struct director *d, struct mirrored *m, const struct fault *f)
{
    if (!f || !fault_is_set(f)) {
        fault_clear(&m->fault);
        return;
    }
    fault_set(&m->fault, f->since_ms, f->code, "%s", f->text);
    log_event(EV_TOPIC_FAULT, kv_str("flow", d->config->name), kv_str("topic", m->name),
              kv_c("code", f->code), kv_c("text", f->text));
}

/* The topic as it is now: new partitions go to workers; one made anew is looked at by those that have it. */
static void take_want(struct director *d, size_t i)
{
    const struct topic_want *w = &d->plan->wants[i];
    struct mirrored *m = get_mirrored(d, w);
    const struct fault *f = plan_fault(d->plan, w);
    const struct topic_have *have = plan_find_have(d->plan, w->target_name);
    struct uuid none = { 0 };
    bool anew = m->partitions && memcmp(&m->id, &none, sizeof(none)) != 0 &&
                memcmp(&m->id, &d->plan->ids[i], sizeof(m->id)) != 0;

    m->seen = true;
    m->replicas = have ? have->replicas : (int32_t)MAX(d->config->replication_factor, 0);
    take_fault(d, m, f);
    if (anew) {
        log_event(EV_TOPIC_FAULT, kv_str("flow", d->config->name), kv_str("topic", m->name),
                  kv_c("code", "TOPIC_RECREATED"),
                  kv_c("text", "the source topic was deleted and made anew; its partitions go on as "
                               "heliostat.source.recreated says"));
        release_from(d, m, w->partitions);
        for (int32_t k = 0; k < d->ports_n; k++)
            flow_port_refresh(d->ports[k]); /* partitions see by the id that it is another topic */
    }
    m->id = d->plan->ids[i];
    while (m->partitions < w->partitions && !w->unnameable)
        adopt(d, m, m->partitions++);
}

static void apply(struct director *d)
{
    struct mirrored *m, *next;
    bool faulty = false;

    HASH_ITER(hh, d->topics, m, next)
        m->seen = false;
    for (size_t i = 0; i < d->plan->wants_n; i++)
        take_want(d, i);
    HASH_ITER(hh, d->topics, m, next) {
        faulty = faulty || fault_is_set(&m->fault);
        if (m->seen)
            continue;
        log_event(EV_TOPIC_GONE, kv_str("flow", d->config->name), kv_str("topic", m->name));
        if (m->partitions)
            director_gone_note(d, m->name, m->route);
        release_from(d, m, 0);
        free_mirrored(d, m);
    }
    director_gone_note_stored(d);
    d->last_refresh_ms = loop_wall_ms(d->loop);
    if (d->plan->configs_left)
        director_configs_soon(d);
    director_well(d);
    director_goto(d, DIRECTOR_RUNNING);
    director_wake(d);
    if (d->config->refresh_topics_enabled && d->config->refresh_topics_interval_ms > 0)
        timer_set_ms(d->loop, &d->refresh,
                     faulty ? MIN(d->config->refresh_topics_interval_ms, RETRY_FAULTY_MS)
                            : d->config->refresh_topics_interval_ms);
    else if (faulty)
        timer_set_ms(d->loop, &d->refresh, RETRY_FAULTY_MS);
}

/* For `check`: the plan instead of its application. */
static void tell(struct director *d)
{
    d->plan->internals = d->internals;
    d->plan->internals_n = d->internals_n;
    director_well(d);
    director_goto(d, DIRECTOR_RUNNING);
    d->plan_only(d->plan_arg, d->plan);
}

void director_tell_heartbeats(struct director *d)
{
    d->plan = plan_new(&d->plan_arena, 0, loop_wall_ms(d->loop));
    tell(d);
}

void director_refresh(struct director *d)
{
    arena_reset(&d->arena);
    switch (d->refresh_step) {
    case REFRESH_INTERNAL:
        director_prepare(d);
        break;
    case REFRESH_LIST_SOURCE:
        if (d->memory_due)
            director_ask_memory(d);
        else
            list_source(d);
        break;
    case REFRESH_LIST_TARGET:
        list_target(d);
        break;
    case REFRESH_CONFIGS:
        ask_configs(d);
        break;
    case REFRESH_CREATE:
        create_topics(d);
        break;
    case REFRESH_GROW:
        grow_topics(d);
        break;
    case REFRESH_ROUTES:
        ask_routes(d);
        break;
    case REFRESH_GONE:
        director_gone_step(d);
        break;
    case REFRESH_DONE:
        d->refresh_step = REFRESH_LIST_SOURCE;
        if (d->plan_only)
            tell(d);
        else
            apply(d);
        break;
    }
}

void director_topics_free(struct director *d)
{
    struct mirrored *m, *next;

    HASH_ITER(hh, d->topics, m, next)
        free_mirrored(d, m);
    director_gone_free(d);
    director_chosen_free(d);
    transforms_free(&d->transforms);
}
