/* director_acls.c -- copies the source's access rules to the target, and looks again every so often.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  off --start--> resting --> source --> target --> changing --> ... --> resting
 *                    ^           |          |           |
 *                    +-----------+----------+-----------+  call failed: try later; denied, or no rules kept: next round
 *
 * What is wanted is decided by acls_plan, what is missing is sent (director_acls_change.c): nothing when nothing is. A side
 * that keeps no rules at all is no failure: it is said once. Thread: control.
 */
#include "mirror/director_acls_int.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"

#include <stdlib.h>
#include <string.h>

#define ROUND_MAX      (512 * (size_t)MiB) /* an answer of the largest size, kept whole */
#define FIRST_RETRY_MS 1000
#define LAST_RETRY_MS  60000
#define TO(state)      (1u << (state))
#define ANYTIME        (TO(ACLS_OFF) | TO(ACLS_RESTING))

static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [ACLS_OFF] = { "off", TO(ACLS_RESTING) },
    [ACLS_RESTING] = { "resting", TO(ACLS_SOURCE) | TO(ACLS_OFF) },
    [ACLS_SOURCE] = { "source", TO(ACLS_TARGET) | ANYTIME },
    [ACLS_TARGET] = { "target", TO(ACLS_CHANGING) | ANYTIME },
    [ACLS_CHANGING] = { "changing", ANYTIME },
};

struct director *director_acls_owner(struct director_acls *c)
{
    return container_of(c, struct director, acls);
}

static void acls_goto(struct director_acls *c, enum acls_state to)
{
    must(states[c->state].next & TO(to));
    log_event(EV_ACLS_STATE, kv_str("flow", director_acls_owner(c)->config->name), kv_c("was", states[c->state].name),
              kv_c("now", states[to].name));
    c->state = to;
}

static void go_on(struct director_acls *c, enum acls_state to)
{
    acls_goto(c, to);
    task_wake(director_acls_owner(c)->loop, &c->step);
}

static struct str alias_of(struct director_acls *c, bool target)
{
    const struct flow_config *config = director_acls_owner(c)->config;

    return target ? config->target_alias : config->source_alias;
}

/* --- what goes wrong --- */

/* Logged when it says something new. */
static void note_fault(struct director_acls *c, const char *code, struct str text)
{
    struct director *d = director_acls_owner(c);
    struct fault was = c->fault;

    fault_set(&c->fault, loop_wall_ms(d->loop), code, "%.*s", STR_ARG(text));
    if (!str_eq(str_c(was.code), str_c(c->fault.code)) || !str_eq(str_c(was.text), str_c(c->fault.text)))
        log_event(EV_FLOW_FAULT, kv_str("flow", d->config->name), kv_c("code", code), kv_c("text", c->fault.text));
}

/* The round begins anew: what was done in it is not missing any more. */
static void try_later(struct director_acls *c, const char *code, const char *what, const char *text)
{
    struct director *d = director_acls_owner(c);

    note_fault(c, code, arena_fmt(&c->sending, "ACLs are not compared at the moment: %s: %s", what, text));
    acls_goto(c, ACLS_RESTING);
    timer_set_ms(d->loop, &c->timer, backoff_next_ms(&c->backoff, loop_rand(d->loop)));
}

/* Until the next round is due. */
static void rest(struct director_acls *c)
{
    struct director *d = director_acls_owner(c);

    backoff_reset(&c->backoff);
    call_fini(&c->call); /* an answer may be large */
    arena_reset(&c->sending);
    acls_goto(c, ACLS_RESTING);
    if (d->config->sync_topic_acls_interval_ms > 0)
        timer_set_ms(d->loop, &c->timer, d->config->sync_topic_acls_interval_ms);
}

static void keeps_none(struct director_acls *c, bool target, const char *why)
{
    if (c->none != target)
        log_event(EV_ACLS_NONE, kv_str("flow", director_acls_owner(c)->config->name), kv_str("cluster", alias_of(c, target)),
                  kv_c("why", why));
    c->none = target;
    fault_clear(&c->fault);
    rest(c);
}

bool director_acls_call_failed(struct director_acls *c, bool target, const char *what)
{
    enum err e = c->call.error;

    if (!e)
        return false;
    if (e == E_VERSION) /* not every product that speaks Kafka's protocol has access rules */
        keeps_none(c, target, err_text(e));
    else if (e != E_CANCELED)
        try_later(c, err_name(e), what, c->call.text[0] ? c->call.text : err_text(e));
    return true;
}

bool director_acls_is_trouble(struct director_acls *c, bool target, bool creating, int32_t kerr)
{
    struct route controller = { .kind = ROUTE_CONTROLLER };

    if (kerr == KERR_NONE)
        return false;
    if (kerr == KERR_SECURITY_DISABLED) {
        keeps_none(c, target, kerr_text(kerr));
        return true;
    }
    switch (kerr_class(creating ? API_CREATE_ACLS : API_DESCRIBE_ACLS, kerr)) {
    case K_REFRESH:
    case K_AGAIN:
    case K_UNSURE:
        if (creating)
            cluster_reroute(director_acls_owner(c)->target, &controller);
        try_later(c, kerr_name(kerr), creating ? "changing ACLs" : "describing ACLs", kerr_text(kerr));
        return true;
    case K_DENIED:
        break;
    default:
        if (creating)
            return false; /* about one rule */
    }
    note_fault(c, kerr_name(kerr), acls_trouble(alias_of(c, target), kerr, creating, &c->sending));
    rest(c);
    return true;
}

void director_acls_send(struct director_acls *c, bool target, int api, enum route_kind kind,
                        void (*done)(struct call *call))
{
    struct director *d = director_acls_owner(c);
    struct route route = { .kind = kind };
    enum err e;

    call_fini(&c->call);
    call_init(&c->call, api, &c->request, done);
    e = cluster_call(target ? d->target : d->source, &route, &c->call);
    if (e)
        try_later(c, err_name(e), "the call cannot start", err_text(e));
}

/* --- rounds --- */

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void list_mirrored(struct director_acls *c, struct acl_rules *r)
{
    struct director *d = director_acls_owner(c);
    struct str *names = arena_array(&c->arena[c->turn], HASH_COUNT(d->topics), sizeof(*names));
    struct mirrored *m, *next;

    HASH_ITER(hh, d->topics, m, next)
        names[r->mirrored_n++] = m->name;
    if (r->mirrored_n)
        qsort(names, r->mirrored_n, sizeof(*names), by_name);
    r->mirrored = names;
}

static struct acl_rules rules_of(struct director_acls *c)
{
    struct director *d = director_acls_owner(c);

    return (struct acl_rules){ .policy = d->policy, .topics = d->topic_filter, .groups = c->groups,
                               .prefixed = d->config->sync_acls_prefixed };
}

static void begin_round(struct director_acls *c)
{
    struct director *d = director_acls_owner(c);

    if (!str_eq(c->before_id, cluster_id(d->source)))
        c->before = (struct acls){ 0 }; /* another cluster, about which nothing is known */
    c->plan = (struct acls){ 0 };
    arena_reset(&c->arena[c->turn]);
    c->at = c->sent_n = c->told = c->refused = 0;
    c->sending_due = ACL_CREATE;
    c->created_was = c->created;
    c->deleted_was = c->deleted;
}

/* Nothing to say when nothing was to be done. */
static void tell_round(struct director_acls *c)
{
    uint64_t created = c->created - c->created_was, deleted = c->deleted - c->deleted_was;

    if (created + deleted + c->refused)
        log_event(EV_ACLS_COMPARED, kv_str("flow", director_acls_owner(c)->config->name),
                  kv_int("wanted", (int64_t)c->plan.wanted), kv_int("created", (int64_t)created),
                  kv_int("deleted", (int64_t)deleted), kv_int("refused", (int64_t)c->refused));
}

static void remember(struct director_acls *c)
{
    struct director *d = director_acls_owner(c);

    if (!d->config->sync_acls_deletions) {
        c->plan = (struct acls){ 0 };
        arena_reset(&c->arena[c->turn]);
        return;
    }
    c->before = c->plan;
    c->before_id = arena_str(&c->arena[c->turn], cluster_id(d->source));
    c->turn = !c->turn;
}

void director_acls_end_round(struct director_acls *c)
{
    struct director *d = director_acls_owner(c);

    c->none = -1;
    c->wanted = (int64_t)c->plan.wanted;
    c->differ = (int64_t)(c->refused + acls_count(&c->plan, ACL_CREATE) + acls_count(&c->plan, ACL_DELETE));
    c->last_ms = loop_wall_ms(d->loop);
    tell_round(c);
    if (!c->refused)
        fault_clear(&c->refusal);
    if (c->plan.left_out)
        note_fault(c, "TOO_MANY_ACLS",
                   arena_fmt(&c->sending, "%zu ACLs of the source are left out: more than %d are not copied; ACLs of prefixes "
                             "instead of single topics are fewer (heliostat.sync.acls.prefixed)", c->plan.left_out, ACLS_MAX));
    else
        fault_clear(&c->fault);
    remember(c);
    rest(c);
}

static void on_described(struct call *call)
{
    struct director_acls *c = container_of(call, struct director_acls, call);
    const struct kafka_describe_acls_response *r = call->response;
    struct acl_rules rules = rules_of(c);
    bool target = c->state == ACLS_TARGET;

    if (director_acls_call_failed(c, target, target ? "ACLs of the target" : "ACLs of the source") ||
        director_acls_is_trouble(c, target, false, r->error_code))
        return;
    if (target) {
        acls_mark(&c->plan, r);
        go_on(c, ACLS_CHANGING);
        return;
    }
    if (rules.prefixed)
        list_mirrored(c, &rules);
    acls_plan(&c->plan, &c->arena[c->turn], &rules, r, &c->before);
    if (c->plan.n)
        go_on(c, ACLS_TARGET);
    else
        director_acls_end_round(c);
}

static void describe(struct director_acls *c, bool target)
{
    struct acl_rules rules = rules_of(c);

    acls_ask(&c->request.describe, &rules);
    director_acls_send(c, target, API_DESCRIBE_ACLS, ROUTE_ANY, on_described);
}

static void on_step(struct task *task)
{
    struct director_acls *c = container_of(task, struct director_acls, step);

    if (call_is_busy(&c->call))
        return;
    switch (c->state) {
    case ACLS_OFF:
    case ACLS_RESTING:
        break;
    case ACLS_SOURCE:
        begin_round(c);
        describe(c, false);
        break;
    case ACLS_TARGET:
        describe(c, true);
        break;
    case ACLS_CHANGING:
        director_acls_change(c);
        break;
    }
}

static void on_timer(struct timer *timer)
{
    go_on(container_of(timer, struct director_acls, timer), ACLS_SOURCE);
}

void director_acls_start(struct director *d)
{
    struct director_acls *c = &d->acls;
    struct str why;

    if (!d->config->enabled || !d->config->sync_topic_acls_enabled || c->state != ACLS_OFF)
        return;
    if (d->config->sync_acls_groups)
        must_say(!filter_new(&d->config->groups, &d->config->groups_exclude, &c->sending, &c->groups, &why),
                 "the configuration was checked, so its filters compile");
    acls_goto(c, ACLS_RESTING);
    timer_set_ms(d->loop, &c->timer, 0);
}

static void forget(struct director_acls *c)
{
    c->plan = c->before = (struct acls){ 0 };
    c->before_id = STR_NULL;
    arena_reset(&c->arena[0]);
    arena_reset(&c->arena[1]);
    arena_reset(&c->sending);
}

void director_acls_stop(struct director *d)
{
    struct director_acls *c = &d->acls;

    if (c->state == ACLS_OFF)
        return;
    timer_cancel(d->loop, &c->timer);
    task_cancel(&c->step);
    call_drop(&c->call);
    filter_free(&c->groups);
    fault_clear(&c->fault);
    fault_clear(&c->refusal);
    forget(c);
    acls_goto(c, ACLS_OFF);
}

struct str director_acls_none(const struct director *d)
{
    if (d->acls.none < 0)
        return STR_NULL;
    return d->acls.none ? d->config->target_alias : d->config->source_alias;
}

void director_acls_init(struct director_acls *c)
{
    task_init(&c->step, on_step);
    timer_init(&c->timer, on_timer);
    backoff_init(&c->backoff, FIRST_RETRY_MS, LAST_RETRY_MS);
    call_init(&c->call, 0, NULL, NULL);
    arena_init(&c->arena[0], ROUND_MAX);
    arena_init(&c->arena[1], ROUND_MAX);
    arena_init(&c->sending, 64 * (size_t)MiB);
    c->none = -1;
}

void director_acls_fini(struct director_acls *c)
{
    call_fini(&c->call);
    arena_fini(&c->arena[0]);
    arena_fini(&c->arena[1]);
    arena_fini(&c->sending);
}
