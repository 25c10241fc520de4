/* director_configs.c -- makes the configs of copies those of their sources, and keeps them so.
 * SPDX-License-Identifier: Apache-2.0
 *
 *                        +-------------- nothing left -- next portion ----------------+
 *                        v                                                            |
 *  off --start--> resting --> source --> target --changes--> altering --> ... --------+
 *                        ^       |          |                    |
 *                        +-------+-- call failed, try later -----+
 *
 * What is to be changed is decided by topics_changes (mm2-spec 4.5); only what differs is sent, not everything every
 * time (director_configs_alter.c). A topic whose changes are refused together gets them one by one, so that a refused
 * entry holds up no other.
 * Topics go in portions; a refresh under way does not wait for them. Thread: control.
 */
#include "mirror/director_configs_int.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"

#define PORTION        100 /* topics in one request */
#define FIRST_RETRY_MS 1000
#define LAST_RETRY_MS  60000
#define TO(state)      (1u << (state))
#define ANYTIME        (TO(CONFIGS_OFF) | TO(CONFIGS_RESTING))

static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [CONFIGS_OFF] = { "off", TO(CONFIGS_RESTING) },
    [CONFIGS_RESTING] = { "resting", TO(CONFIGS_SOURCE) | TO(CONFIGS_OFF) },
    [CONFIGS_SOURCE] = { "source", TO(CONFIGS_SOURCE) | TO(CONFIGS_TARGET) | ANYTIME },
    [CONFIGS_TARGET] = { "target", TO(CONFIGS_SOURCE) | TO(CONFIGS_ALTERING) | ANYTIME },
    [CONFIGS_ALTERING] = { "altering", TO(CONFIGS_SOURCE) | ANYTIME },
};

struct director *director_configs_owner(struct director_configs *c)
{
    return container_of(c, struct director, configs);
}

static void configs_goto(struct director_configs *c, enum configs_state to)
{
    must(states[c->state].next & TO(to));
    log_event(EV_CONFIG_STATE, kv_str("flow", director_configs_owner(c)->config->name), kv_c("was", states[c->state].name),
              kv_c("now", states[to].name));
    c->state = to;
}

static void go_on(struct director_configs *c, enum configs_state to)
{
    configs_goto(c, to);
    task_wake(director_configs_owner(c)->loop, &c->step);
}

/* The portion is tried again from its beginning: what was done in it is not different any more. */
void director_configs_try_later(struct director_configs *c, const char *code, const char *what, const char *text)
{
    struct director *d = director_configs_owner(c);

    fault_set(&c->fault, loop_wall_ms(d->loop), code, "topic configs are not compared at the moment: %s: %s", what,
              text);
    log_event(EV_FLOW_FAULT, kv_str("flow", d->config->name), kv_c("code", code), kv_c("text", c->fault.text));
    configs_goto(c, CONFIGS_RESTING);
    timer_set_ms(d->loop, &c->timer, backoff_next_ms(&c->backoff, loop_rand(d->loop)));
}

bool director_configs_call_failed(struct director_configs *c, const char *what)
{
    if (!c->call.error)
        return false;
    if (c->call.error != E_CANCELED)
        director_configs_try_later(c, err_name(c->call.error), what, c->call.text[0] ? c->call.text : err_text(c->call.error));
    return true;
}

void director_configs_send(struct director_configs *c, struct cluster *cl, int api, enum route_kind kind,
                 void (*done)(struct call *call))
{
    struct route route = { .kind = kind };
    enum err e;

    call_fini(&c->call);
    call_init(&c->call, api, &c->request, done);
    e = cluster_call(cl, &route, &c->call);
    if (e)
        director_configs_try_later(c, err_name(e), "the call cannot start", err_text(e));
}

/* --- rounds and portions --- */

struct mirrored *director_configs_find_mirrored(struct director *d, struct str name)
{
    struct mirrored *m;

    HASH_FIND(hh, d->topics, name.p, name.n, m);
    return m;
}

/* Topics that are mirrored now; those without a copy yet are found again by their fault, or next time. */
static void begin_round(struct director_configs *c)
{
    struct director *d = director_configs_owner(c);
    struct mirrored *m, *next;

    arena_reset(&c->round);
    c->names = arena_array(&c->round, HASH_COUNT(d->topics), sizeof(*c->names));
    c->names_n = c->at = 0;
    c->differing = 0;
    HASH_ITER(hh, d->topics, m, next)
        if (m->partitions > 0)
            c->names[c->names_n++] = arena_str(&c->round, m->name);
}

static void end_round(struct director_configs *c)
{
    struct director *d = director_configs_owner(c);

    c->names_n = c->at = 0;
    c->differ = c->differing;
    c->last_ms = loop_wall_ms(d->loop);
    configs_goto(c, CONFIGS_RESTING);
    if (d->config->sync_topic_configs_interval_ms > 0)
        timer_set_ms(d->loop, &c->timer, d->config->sync_topic_configs_interval_ms);
}

static void begin_portion(struct director_configs *c)
{
    struct director *d = director_configs_owner(c);

    arena_reset(&c->arena);
    c->topics = arena_array(&c->arena, PORTION, sizeof(*c->topics));
    c->topics_n = 0;
    for (size_t i = c->at; i < MIN(c->at + PORTION, c->names_n); i++) {
        const struct mirrored *m = director_configs_find_mirrored(d, c->names[i]);

        if (m)
            c->topics[c->topics_n++] = (struct config_topic){ .name = c->names[i],
                                                              .target_name = arena_str(&c->arena, m->target_name) };
    }
}

/* What was found wrong is shown at the topics, as long as the next round does not find better. */
void director_configs_end_portion(struct director_configs *c)
{
    struct director *d = director_configs_owner(c);

    for (size_t i = 0; i < c->topics_n; i++) {
        struct mirrored *m = director_configs_find_mirrored(d, c->topics[i].name);
        const struct fault *f = &c->topics[i].fault;

        c->differing += c->topics[i].differing;
        if (m && fault_is_set(f))
            fault_set(&m->config_fault, loop_wall_ms(d->loop), f->code, "%s", f->text);
        else if (m)
            fault_clear(&m->config_fault);
    }
    c->at += PORTION;
    backoff_reset(&c->backoff);
    fault_clear(&c->fault);
    if (c->at < c->names_n)
        go_on(c, CONFIGS_SOURCE);
    else
        end_round(c);
}

/* --- what differs --- */

struct config_topic *director_configs_find_topic(struct director_configs *c, struct str name, bool target)
{
    for (size_t i = 0; i < c->topics_n; i++)
        if (str_eq(target ? c->topics[i].target_name : c->topics[i].name, name))
            return &c->topics[i];
    return NULL;
}

void director_configs_refuse(struct director_configs *c, struct config_topic *t, const char *code, struct str config,
                   struct str text)
{
    struct director *d = director_configs_owner(c);

    if (!fault_is_set(&t->fault)) /* the first is shown; each is logged */
        fault_set(&t->fault, loop_wall_ms(d->loop), code, "%.*s", STR_ARG(text));
    log_event(EV_CONFIG_REFUSED, kv_str("flow", d->config->name), kv_str("topic", t->target_name), kv_c("code", code),
              kv_str("config", config), kv_str("text", text));
}

static void take_description(struct director_configs *c, const struct kafka_describe_configs_response_result *r,
                             bool target)
{
    struct config_topic *t = director_configs_find_topic(c, r->resource_name, target);

    if (!t || t->done)
        return;
    if (r->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION) {
        t->done = true; /* deleted, or not there yet: the next look for topics knows more */
    } else if (r->error_code) {
        t->done = true;
        director_configs_refuse(c, t, kerr_name(r->error_code), STR_NULL,
               arena_fmt(&c->arena, "the %s does not tell the configs of %.*s: %s%s", target ? "target" : "source",
                         STR_ARG(r->resource_name), kerr_text(r->error_code),
                         kerr_class(API_DESCRIBE_CONFIGS, r->error_code) == K_DENIED
                             ? "; grant DescribeConfigs on it, or set sync.topic.configs.enabled = false"
                             : ""));
    } else if (target) {
        t->target = plan_entries(&c->arena, r, &t->target_n);
    } else {
        t->source = plan_entries(&c->arena, r, &t->source_n);
    }
}

static void on_described(struct call *call)
{
    struct director_configs *c = container_of(call, struct director_configs, call);
    const struct kafka_describe_configs_response *r = call->response;
    bool target = c->state == CONFIGS_TARGET;

    if (director_configs_call_failed(c, target ? "configs of copies" : "configs of topics at the source"))
        return;
    for (int32_t i = 0; i < r->results.n; i++)
        take_description(c, &r->results.at[i], target);
    go_on(c, target ? CONFIGS_ALTERING : CONFIGS_TARGET);
}

static void describe(struct director_configs *c, bool target)
{
    struct director *d = director_configs_owner(c);
    struct kafka_describe_configs_request *q = &c->request.describe;

    codec_init(&kafka_describe_configs_request_msg, q);
    q->resources.at = arena_array(&c->arena, c->topics_n, sizeof(*q->resources.at));
    q->resources.n = 0;
    for (size_t i = 0; i < c->topics_n; i++) {
        struct kafka_describe_configs_request_resource *r = &q->resources.at[q->resources.n];

        if (c->topics[i].done)
            continue;
        r->resource_type = RESOURCE_TOPIC;
        r->resource_name = target ? c->topics[i].target_name : c->topics[i].name;
        r->configuration_keys.n = -1;
        q->resources.n++;
    }
    if (q->resources.n)
        director_configs_send(c, target ? d->target : d->source, API_DESCRIBE_CONFIGS, ROUTE_ANY, on_described);
    else
        director_configs_end_portion(c);
}

/* --- the whole --- */

static void on_step(struct task *task)
{
    struct director_configs *c = container_of(task, struct director_configs, step);

    if (call_is_busy(&c->call))
        return;
    switch (c->state) {
    case CONFIGS_OFF:
    case CONFIGS_RESTING:
        break;
    case CONFIGS_SOURCE:
        begin_portion(c);
        describe(c, false);
        break;
    case CONFIGS_TARGET:
        describe(c, true);
        break;
    case CONFIGS_ALTERING:
        director_configs_alter_portion(c);
        break;
    }
}

static void on_timer(struct timer *timer)
{
    struct director_configs *c = container_of(timer, struct director_configs, timer);

    if (c->at >= c->names_n)
        begin_round(c);
    go_on(c, CONFIGS_SOURCE);
}

void director_configs_start(struct director *d)
{
    struct director_configs *c = &d->configs;
    struct str_list none = { 0 };
    struct str why;

    if (!d->config->enabled || !d->config->sync_topic_configs_enabled || c->state != CONFIGS_OFF)
        return;
    must_say(!filter_new(&d->config->config_properties_exclude, &none, &c->round, &c->exclude, &why),
             "the configuration was checked, so config.properties.exclude compiles");
    configs_goto(c, CONFIGS_RESTING);
    timer_set_ms(d->loop, &c->timer, 0);
}

void director_configs_soon(struct director *d)
{
    struct director_configs *c = &d->configs;

    if (c->state == CONFIGS_RESTING && c->at >= c->names_n)
        timer_set_ms(d->loop, &c->timer, 0);
}

void director_configs_stop(struct director *d)
{
    struct director_configs *c = &d->configs;

    if (c->state == CONFIGS_OFF)
        return;
    timer_cancel(d->loop, &c->timer);
    task_cancel(&c->step);
    call_drop(&c->call);
    filter_free(&c->exclude);
    fault_clear(&c->fault);
    c->names_n = c->at = 0;
    configs_goto(c, CONFIGS_OFF);
}

void director_configs_init(struct director_configs *c)
{
    task_init(&c->step, on_step);
    timer_init(&c->timer, on_timer);
    backoff_init(&c->backoff, FIRST_RETRY_MS, LAST_RETRY_MS);
    call_init(&c->call, 0, NULL, NULL);
    arena_init(&c->round, 256 * (size_t)MiB);
    arena_init(&c->arena, 64 * (size_t)MiB);
}

void director_configs_fini(struct director_configs *c)
{
    call_fini(&c->call);
    arena_fini(&c->round);
    arena_fini(&c->arena);
}
