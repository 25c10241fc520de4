/* director.c -- the control side of one flow: its states, calls, start and end.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  waiting -> preparing -> joining -> loading -> naming -> refreshing <-> running     each state is tried again after
 *     |                      ^           |         |          |            |         a failure, with back-off, for ever
 *     |                      +- losing <-+---------+----------+------------+
 *  (between joining and loading: taking, of transactional ids)
 *     +--> refused (both aliases reach one cluster)         any -> stopping -> stopped
 *
 * A flow that is not enabled only writes heartbeats: waiting (for the target) -> preparing -> running.
 * For `check` (plan_only): waiting -> preparing -> refreshing -> running, asking only; then nothing more.
 * One call is under way at a time. Thread: control.
 */
#include "mirror/director.h"

#include "mirror/director_internal.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"
#include "mirror/order.h"

#include <stdarg.h>
#include <stdio.h>

#define PATIENCE_MS 5000 /* what passes by itself within this is no fault */
#define TO(state) (1u << (state))
#define ANYTIME (TO(DIRECTOR_STOPPING) | TO(DIRECTOR_REFUSED))

static const struct {
    const char *name, *shown;
    unsigned next;
} states[] = {
    [DIRECTOR_WAITING] = { "waiting", "waiting", TO(DIRECTOR_PREPARING) | ANYTIME },
    [DIRECTOR_PREPARING] = { "preparing", "waiting",
                             TO(DIRECTOR_JOINING) | TO(DIRECTOR_RUNNING) | TO(DIRECTOR_REFRESHING) | ANYTIME },
    [DIRECTOR_JOINING] = { "joining", "waiting", TO(DIRECTOR_TAKING) | TO(DIRECTOR_LOADING) | ANYTIME },
    [DIRECTOR_TAKING] = { "taking", "loading", TO(DIRECTOR_LOADING) | TO(DIRECTOR_LOSING) | ANYTIME },
    [DIRECTOR_LOADING] = { "loading", "loading",
                           TO(DIRECTOR_NAMING) | TO(DIRECTOR_TAKING) | TO(DIRECTOR_LOSING) | ANYTIME },
    [DIRECTOR_NAMING] = { "naming", "loading", TO(DIRECTOR_REFRESHING) | TO(DIRECTOR_LOSING) | ANYTIME },
    [DIRECTOR_REFRESHING] = { "refreshing", "copying", TO(DIRECTOR_RUNNING) | TO(DIRECTOR_LOSING) | ANYTIME },
    [DIRECTOR_RUNNING] = { "running", "copying", TO(DIRECTOR_REFRESHING) | TO(DIRECTOR_LOSING) | ANYTIME },
    [DIRECTOR_LOSING] = { "losing", "waiting", TO(DIRECTOR_JOINING) | ANYTIME },
    [DIRECTOR_REFUSED] = { "refused", "refused", TO(DIRECTOR_STOPPING) },
    [DIRECTOR_STOPPING] = { "stopping", "draining", TO(DIRECTOR_STOPPED) },
    [DIRECTOR_STOPPED] = { "stopped", "draining", 0 },
};

void director_goto(struct director *d, enum director_state to)
{
    bool usual = d->ready && (to == DIRECTOR_REFRESHING || to == DIRECTOR_RUNNING);

    must(states[d->state].next & TO(to));
    log_event(usual ? EV_FLOW_REFRESH : EV_FLOW_STATE, kv_str("flow", d->config->name), kv_c("was", states[d->state].name),
              kv_c("now", states[to].name));
    d->state = to;
}

void director_wake(struct director *d)
{
    task_wake(d->loop, &d->step);
}

void director_fail(struct director *d, const char *code, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fault_set(&d->fault, loop_wall_ms(d->loop), code, "%s", text);
    log_event(EV_FLOW_FAULT, kv_str("flow", d->config->name), kv_c("code", code), kv_c("text", text));
    timer_set_ms(d->loop, &d->retry, backoff_next_ms(&d->backoff, loop_rand(d->loop)));
}

void director_later(struct director *d, const char *code, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list ap;

    if (!d->later_since_ms)
        d->later_since_ms = loop_now_ms(d->loop);
    if (loop_now_ms(d->loop) - d->later_since_ms < PATIENCE_MS) {
        timer_set_ms(d->loop, &d->retry, backoff_next_ms(&d->backoff, loop_rand(d->loop)));
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    director_fail(d, code, "%s", text);
}

void director_trouble(void *arg, const struct fault *f)
{
    struct director *d = arg;

    if (!d->later_since_ms)
        d->later_since_ms = loop_now_ms(d->loop);
    if (loop_now_ms(d->loop) - d->later_since_ms < PATIENCE_MS)
        return;
    if (!str_eq(str_c(d->fault.code), str_c(f->code)))
        log_event(EV_FLOW_FAULT, kv_str("flow", d->config->name), kv_c("code", f->code), kv_c("text", f->text));
    fault_set(&d->fault, loop_wall_ms(d->loop), f->code, "%s", f->text);
}

void director_well(struct director *d)
{
    backoff_reset(&d->backoff);
    d->later_since_ms = 0;
    if (!fault_is_set(&d->fault))
        return;
    log_event(EV_FLOW_FAULT_OVER, kv_str("flow", d->config->name), kv_c("code", d->fault.code));
    fault_clear(&d->fault);
}

void director_call(struct director *d, struct cluster *cl, int api, enum route_kind route,
                   void (*done)(struct call *c))
{
    struct route r = { .kind = route };
    enum err e;

    call_fini(&d->call);
    call_init(&d->call, api, &d->request, done);
    e = cluster_call(cl, &r, &d->call);
    if (e)
        director_fail(d, err_name(e), "%.*s: %s", STR_ARG(cluster_name(cl)), err_text(e));
}

bool director_call_failed(struct director *d, const char *what)
{
    if (d->call.error == E_CANCELED)
        return true;
    if (d->call.error == E_OK)
        return false;
    director_fail(d, err_name(d->call.error), "%s: %s", what,
                  d->call.text[0] ? d->call.text : err_text(d->call.error));
    return true;
}

/* Both clusters have answered; true when they are fit to be joined. */
static bool step_waiting(struct director *d)
{
    const struct fault *f;

    if (!cluster_is_up(d->target) || (d->config->enabled && !cluster_is_up(d->source))) {
        f = cluster_fault(cluster_is_up(d->target) ? d->source : d->target);
        if (fault_is_set(f))
            fault_set(&d->fault, loop_wall_ms(d->loop), f->code, "cluster %.*s: %s",
                      STR_ARG(cluster_name(cluster_is_up(d->target) ? d->source : d->target)),
                      f->text);
        return false;
    }
    director_well(d);
    if (d->config->enabled && str_eq(cluster_id(d->source), cluster_id(d->target))) {
        fault_set(&d->fault, loop_wall_ms(d->loop), "SAME_CLUSTER",
                  "%.*s and %.*s are one cluster (id %.*s): it would be mirrored into itself; correct "
                  "bootstrap.servers of one of them or disable the flow",
                  STR_ARG(d->config->source_alias), STR_ARG(d->config->target_alias),
                  STR_ARG(cluster_id(d->source)));
        log_event(EV_FLOW_FAULT, kv_str("flow", d->config->name), kv_c("code", d->fault.code),
                  kv_c("text", d->fault.text));
        director_goto(d, DIRECTOR_REFUSED);
        if (d->plan_only)
            d->plan_only(d->plan_arg, NULL);
        return false;
    }
    director_group_start(d);
    director_goto(d, DIRECTOR_PREPARING);
    return true;
}

static void director_step(struct task *t)
{
    struct director *d = container_of(t, struct director, step);

    if (call_is_busy(&d->call) || timer_is_set(&d->retry))
        return;
    switch (d->state) {
    case DIRECTOR_WAITING:
        if (step_waiting(d))
            director_prepare(d);
        break;
    case DIRECTOR_PREPARING:
        director_prepare(d);
        break;
    case DIRECTOR_JOINING:
        director_join(d);
        break;
    case DIRECTOR_TAKING:
        director_take_txns(d);
        break;
    case DIRECTOR_LOADING:
        director_load(d);
        break;
    case DIRECTOR_NAMING:
        director_name(d);
        break;
    case DIRECTOR_REFRESHING:
        director_refresh(d);
        break;
    case DIRECTOR_RUNNING:
        if (!d->ready && !d->plan_only) {
            d->ready = true;
            director_heartbeats_start(d);
            director_configs_start(d);
            director_acls_start(d);
            director_checkpoints_start(d);
        }
        break;
    case DIRECTOR_LOSING:
    case DIRECTOR_REFUSED:
    case DIRECTOR_STOPPING:
    case DIRECTOR_STOPPED:
        break;
    }
}

static void on_retry(struct timer *t)
{
    director_wake(container_of(t, struct director, retry));
}

static void on_refresh(struct timer *t)
{
    struct director *d = container_of(t, struct director, refresh);

    if (d->state == DIRECTOR_RUNNING) {
        d->refresh_step = REFRESH_INTERNAL;
        d->memory_due = d->producer_id >= 0;
        director_goto(d, DIRECTOR_REFRESHING);
        director_wake(d);
    }
}

static void on_source_changed(struct cluster_listener *ls)
{
    director_wake(container_of(ls, struct director, source_changed));
}

static void on_target_changed(struct cluster_listener *ls)
{
    director_wake(container_of(ls, struct director, target_changed));
}

static void take_report(void *arg, struct flow_port *p, struct flow_report *report)
{
    struct director *d = arg;

    for (int32_t i = 0; i < d->ports_n; i++) {
        if (d->ports[i] != p)
            continue;
        flow_report_free(&d->reports[i]);
        d->reports[i] = report;
        if (report->shut_out)
            director_shut_out(d);
        return;
    }
    flow_report_free(&report);
}

static void on_left(void *arg);

static void finish(struct director *d)
{
    if (d->state == DIRECTOR_STOPPED)
        return; /* the limit was first */
    timer_cancel(d->loop, &d->stop_limit);
    if (d->all_stored && director_leave(d, on_left)) /* what is not stored is safer with a successor that waits */
        return;
    director_goto(d, DIRECTOR_STOPPED);
    d->stopped(d->stopped_arg, d->all_stored);
}

static void on_left(void *arg)
{
    finish(arg);
}

static void port_drained(void *arg, struct flow_port *p, bool stored)
{
    struct director *d = arg;

    d->all_stored = d->all_stored && stored;
    flow_port_close(p);
}

static void port_closed(void *arg, struct flow_port *p)
{
    struct director *d = arg;

    (void)p;
    if (--d->ports_busy)
        return;
    if (d->state == DIRECTOR_LOSING)
        director_lost(d);
    else
        finish(d);
}

static void port_asks_limits(void *arg, struct flow_port *p, struct str target_topic, int64_t raise_to)
{
    (void)p;
    director_limits_ask(arg, target_topic, raise_to);
}

static void make_ports(struct director *d, const struct worker_world *worlds, int32_t n)
{
    struct flow_port_ops ops = { .on_report = take_report, .on_drained = port_drained,
                                 .on_closed = port_closed, .on_limits_ask = port_asks_limits, .arg = d };

    d->ports = mem_array((size_t)n, sizeof(struct flow_port *));
    d->reports = mem_array((size_t)n, sizeof(struct flow_report *));
    d->ports_n = n;
    for (int32_t i = 0; i < n; i++)
        d->ports[i] = flow_port_new(d->loop, &worlds[i], d->config, &ops);
}

struct director *director_new(struct loop *l, const struct flow_config *config,
                              const struct worker_world *worlds, int32_t worlds_n)
{
    struct director *d = mem_new(sizeof(*d));
    struct str why = STR_NULL;

    d->loop = l;
    d->config = config;
    arena_init(&d->arena, 512 * (size_t)MiB);
    arena_init(&d->plan_arena, 1024 * (size_t)MiB);
    arena_init(&d->names, 1 * MiB);
    d->policy = policy_new(config);
    must_say(!filter_new(&config->topics, &config->topics_exclude, &d->arena, &d->topic_filter, &why),
             "the configuration was checked, so its filters compile");
    d->state_topic = policy_state_topic(d->policy, config->source_alias, &d->names);
    d->heartbeats_topic = policy_heartbeats(d->policy);
    d->producer_id = -1;
    task_init(&d->step, director_step);
    timer_init(&d->retry, on_retry);
    timer_init(&d->refresh, on_refresh);
    backoff_init(&d->backoff, 200, 10000);
    call_init(&d->call, 0, NULL, NULL);
    director_limits_init(&d->limits);
    director_configs_init(&d->configs);
    director_acls_init(&d->acls);
    make_ports(d, worlds, worlds_n);
    d->target = cluster_new(l, &config->target_admin, config->target_alias);
    d->target_changed.changed = on_target_changed;
    cluster_listen(d->target, &d->target_changed);
    if (config->enabled) {
        d->source = cluster_new(l, &config->source_admin, config->source_alias);
        d->source_changed.changed = on_source_changed;
        cluster_listen(d->source, &d->source_changed);
    }
    director_wake(d);
    return d;
}

struct director *director_new_check(struct loop *l, const struct flow_config *config,
                                    void (*told)(void *arg, const struct plan *p), void *arg)
{
    struct director *d = director_new(l, config, NULL, 0); /* whose first step is yet to come */

    d->plan_only = told;
    d->plan_arg = arg;
    return d;
}

void director_name_instance(struct director *d, struct str instance)
{
    d->instance = arena_str(&d->names, instance);
}

static void on_stop_limit(struct timer *t)
{
    struct director *d = container_of(t, struct director, stop_limit);

    d->all_stored = false;
    finish(d);
}

static void on_stop_now(struct timer *t)
{
    finish(container_of(t, struct director, stop_limit));
}

void director_stop(struct director *d, int64_t limit_ms, void (*done)(void *arg, bool stored), void *arg)
{
    bool closing; /* the ports are on their way out already */

    d->stopped = done;
    d->stopped_arg = arg;
    d->all_stored = true;
    timer_cancel(d->loop, &d->retry);
    timer_cancel(d->loop, &d->refresh);
    call_cancel(&d->call);
    director_limits_stop(&d->limits);
    director_configs_stop(d);
    director_acls_stop(d);
    topic_reader_free(&d->reader);
    topic_writer_free(&d->namer);
    director_heartbeats_stop(d);
    director_checkpoints_stop(d);
    director_fence_end(d);
    closing = d->state == DIRECTOR_LOSING;
    director_goto(d, DIRECTOR_STOPPING);
    for (int32_t i = 0; i < d->ports_n && !closing; i++) {
        if (!flow_port_is_open(d->ports[i]))
            continue;
        d->ports_busy++;
        flow_port_drain(d->ports[i], limit_ms);
    }
    timer_init(&d->stop_limit, d->ports_busy ? on_stop_limit : on_stop_now);
    timer_set_ms(d->loop, &d->stop_limit, d->ports_busy ? limit_ms + 1000 : 0);
}

void director_free(struct director **dp)
{
    struct director *d = *dp;

    if (!d)
        return;
    for (int32_t i = 0; i < d->ports_n; i++) {
        flow_report_free(&d->reports[i]);
        if (!flow_port_is_open(d->ports[i]))
            flow_port_free(&d->ports[i]);
    }
    director_checkpoints_stop(d);
    director_limits_fini(&d->limits);
    director_configs_fini(&d->configs);
    director_acls_fini(&d->acls);
    mem_free(d->ports);
    mem_free(d->reports);
    task_cancel(&d->step);
    director_fence_end(d);
    group_free(&d->group);
    mem_free(d->writers);
    mem_free(d->writer_ids);
    cluster_unlisten(&d->target_changed);
    if (d->source)
        cluster_unlisten(&d->source_changed);
    cluster_free(&d->target);
    cluster_free(&d->source);
    director_stored_free(d);
    mem_free(d->txns);
    director_topics_free(d);
    filter_free(&d->topic_filter);
    policy_free(&d->policy);
    call_fini(&d->call);
    arena_fini(&d->arena);
    arena_fini(&d->plan_arena);
    arena_fini(&d->names);
    mem_free(d);
    *dp = NULL;
}

bool director_send_order(struct order_desk *desk, struct order *o)
{
    for (int32_t i = 0; i < desk->directors_n && !o->found; i++) {
        struct director *d = desk->directors[i];

        if (!str_eq(d->config->name, o->flow))
            continue;
        while (o->port < d->ports_n)
            if (flow_port_take_order(d->ports[o->port++], o))
                return true;
    }
    return false;
}

void director_ask_reports(struct director *d)
{
    for (int32_t i = 0; i < d->ports_n; i++)
        flow_port_ask_report(d->ports[i]);
}

struct cluster *director_cluster(const struct director *d, bool target)
{
    return target ? d->target : d->source;
}

const struct flow_config *director_config(const struct director *d)
{
    return d->config;
}

const struct fault *director_fault(const struct director *d)
{
    return &d->fault;
}

const char *director_shown_state(const struct director *d)
{
    if (!d->config->enabled && d->state == DIRECTOR_RUNNING)
        return "disabled";
    if (director_is_standby(d))
        return "standby";
    return states[d->state].shown;
}
