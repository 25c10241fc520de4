/* group.c -- a member's life: its states, its heartbeats, what it believes to hold, and its end.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   resting <------------- failure --------------+          any -> leaving -> left
 *      |                                         |
 *      +--> joining --> syncing --> member ------+
 *              ^                      |
 *              +----- rebalance ------+
 *
 * Beside the states stands `holding`: it outlives a rebalance and a coordinator that is away, and ends when another
 * member was given the slots, when the coordinator does not know us any more, or when session.timeout has passed since
 * we sent the last request that was answered well: from then on the coordinator may have given them away.
 *
 *   G-1  holding: no other member can have been given the slots up to alive_ms + session_ms.
 *   G-2  What a member holds it claims when it joins, and the leader leaves it there; who has stopped believing claims
 *        nothing.
 */
#include "kafka/group.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"
#include "kafka/group_int.h"

#include <stdarg.h>
#include <stdio.h>

#define DENIED_RETRY_MS 5000
#define STANDBY_BEATS   6 /* of a member that waits, in a heartbeat interval */
#define TO(state) (1u << (state))
#define ANYTIME (TO(GROUP_LEAVING) | TO(GROUP_LEFT))

static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [GROUP_RESTING] = { "resting", TO(GROUP_JOINING) | TO(GROUP_MEMBER) | ANYTIME },
    [GROUP_JOINING] = { "joining", TO(GROUP_SYNCING) | TO(GROUP_RESTING) | ANYTIME },
    [GROUP_SYNCING] = { "syncing", TO(GROUP_MEMBER) | TO(GROUP_JOINING) | TO(GROUP_RESTING) | ANYTIME },
    [GROUP_MEMBER] = { "member", TO(GROUP_JOINING) | TO(GROUP_RESTING) | ANYTIME },
    [GROUP_LEAVING] = { "leaving", TO(GROUP_LEFT) },
    [GROUP_LEFT] = { "left", 0 },
};

void group_goto(struct group *g, enum group_state to)
{
    must(states[g->state].next & TO(to));
    log_event(EV_GROUP_STATE, kv_c("group", g->name), kv_c("was", states[g->state].name),
              kv_c("now", states[to].name), kv_int("generation", g->generation));
    g->state = to;
    group_tell(g);
}

void group_tell(struct group *g)
{
    task_wake(g->loop, &g->tell);
}

static void on_tell(struct task *t)
{
    struct group *g = container_of(t, struct group, tell);

    g->changed(g->arg);
}

struct str group_instance_of(const struct group *g)
{
    return g->instance_id[0] ? str_c(g->instance_id) : STR_NULL;
}

/* --- what we believe --- */

void group_lose(struct group *g, const char *why)
{
    if (!g->holding)
        return;
    g->holding = false;
    if (g->lease)
        lease_set(g->lease, 0);
    g->confirmed = NULL;
    timer_cancel(g->loop, &g->expiry);
    log_event(EV_GROUP_LOST, kv_c("group", g->name), kv_c("why", why), kv_int("generation", g->generation));
    group_tell(g);
}

static bool is_given(const struct group *g)
{
    return g->member_id[0] && g->given_generation == g->generation && group_slots_count(&g->slots) > 0;
}

/* Ours as long as we are alive; the holding begins in the generation that gave them to us. */
void group_hold(struct group *g)
{
    int64_t left_ms = g->alive_ms + g->session_ms - loop_now_ms(g->loop);

    if (left_ms <= 0 || (!g->holding && !is_given(g)))
        return;
    timer_set_ms(g->loop, &g->expiry, left_ms);
    if (g->lease)
        lease_set(g->lease, g->alive_ms + g->session_ms);
    if (g->holding)
        return;
    g->holding = true;
    g->term++;
    log_event(EV_GROUP_HELD, kv_c("group", g->name), kv_int("generation", g->generation));
    group_tell(g);
}

void group_alive(struct group *g)
{
    g->alive_ms = g->sent_ms;
    group_hold(g);
}

static void on_expiry(struct timer *t)
{
    group_lose(container_of(t, struct group, expiry),
               "no heartbeat was answered for session.timeout: another process may have taken over");
}

void group_forget_member(struct group *g)
{
    g->member_id[0] = '\0';
    g->generation = g->given_generation = -1;
    group_slots_none(&g->slots);
}

/* --- failures --- */

static void rest(struct group *g, int64_t ms)
{
    if (g->state != GROUP_RESTING)
        group_goto(g, GROUP_RESTING);
    timer_set_ms(g->loop, &g->next, ms);
}

void group_fail(struct group *g, const char *code, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    bool slow = g->call.kerr && kerr_class(g->call.api, g->call.kerr) == K_DENIED;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fault_set(&g->fault, loop_wall_ms(g->loop), code, "%s", text);
    log_event(EV_GROUP_FAULT, kv_c("group", g->name), kv_c("code", code), kv_c("text", text));
    rest(g, slow ? DENIED_RETRY_MS : backoff_next_ms(&g->backoff, loop_rand(g->loop)));
    group_tell(g);
}

void group_well(struct group *g)
{
    backoff_reset(&g->backoff);
    if (!fault_is_set(&g->fault))
        return;
    fault_clear(&g->fault);
    group_tell(g);
}

/* The texts of what an operator must mend. */
static void fail_by_code(struct group *g, int error)
{
    const char *code = kerr_name(error);
    struct str cluster = cluster_name(g->cluster);

    if (kerr_class(g->call.api, error) == K_DENIED)
        group_fail(g, code,
                   "the principal of this connection lacks Read on group %s of cluster %.*s, by which processes agree "
                   "who runs the flow; grant it, or set heliostat.membership = false where only one process runs it",
                   g->name, STR_ARG(cluster));
    else if (error == KERR_INCONSISTENT_GROUP_PROTOCOL)
        group_fail(g, code,
                   "another program is in group %s of cluster %.*s (MirrorMaker 2 with the same file?): it must be "
                   "stopped before this flow is copied here", g->name, STR_ARG(cluster));
    else if (error == KERR_INVALID_SESSION_TIMEOUT)
        group_fail(g, code,
                   "heliostat.session.timeout.ms = %lld is outside group.min.session.timeout.ms and "
                   "group.max.session.timeout.ms of cluster %.*s", (long long)g->session_ms, STR_ARG(cluster));
    else
        group_fail(g, code, "group %s of cluster %.*s: %s", g->name, STR_ARG(cluster), kerr_text(error));
}

/* A member that the coordinator does not know has nothing; its next join is that of a new one. */
static void drop_out(struct group *g, int error)
{
    if (error == KERR_ILLEGAL_GENERATION)
        g->given_generation = -1; /* still a member, of a generation that we do not know */
    else
        group_forget_member(g);
    if (error == KERR_FENCED_INSTANCE_ID) {
        g->instance_id[0] = '\0';
        claim_drop(&g->claim);
    }
    group_lose(g, kerr_text(error));
}

bool group_call_failed(struct group *g, int api, int error)
{
    if (g->call.error == E_CANCELED)
        return true;
    if (g->call.error) {
        cluster_reroute(g->cluster, &g->route);
        if (g->call.error == E_KAFKA && g->call.kerr)
            fail_by_code(g, g->call.kerr);
        else
            group_fail(g, err_name(g->call.error), "group %s: %s", g->name,
                       g->call.text[0] ? g->call.text : err_text(g->call.error));
        return true;
    }
    if (!error)
        return false;
    g->call.kerr = error;
    switch (kerr_class(api, error)) {
    case K_REFRESH:
        cluster_reroute(g->cluster, &g->route);
        break;
    case K_FENCED:
        drop_out(g, error);
        break;
    case K_REJOIN:
        if (error != KERR_REBALANCE_IN_PROGRESS && error != KERR_MEMBER_ID_REQUIRED)
            drop_out(g, error);
        break;
    default:
        break;
    }
    fail_by_code(g, error);
    return true;
}

void group_call(struct group *g, int api, void (*done)(struct call *c), int64_t timeout_ms)
{
    enum err e;

    call_fini(&g->call);
    call_init(&g->call, api, &g->request, done);
    g->call.timeout_ms = timeout_ms;
    g->call.wait_ms = timeout_ms; /* for the other members, as long as it takes */
    g->sent_ms = loop_now_ms(g->loop);
    e = cluster_call(g->cluster, &g->route, &g->call);
    if (e)
        group_fail(g, err_name(e), "group %s: %s", g->name, err_text(e));
}

/* --- heartbeats --- */

/* Only the answer to a heartbeat tells that the holder has gone, so who waits asks more often. */
void group_next_beat(struct group *g)
{
    int64_t ms = g->holding ? g->heartbeat_ms : MIN(g->heartbeat_ms, MAX(g->heartbeat_ms / STANDBY_BEATS, 100));

    timer_set_ms(g->loop, &g->next, g->confirmed && !g->confirm_sent ? 0 : ms);
}

static void on_beat(struct call *c)
{
    struct group *g = container_of(c, struct group, call);
    const struct kafka_heartbeat_response *r = c->response;
    void (*confirmed)(void *arg) = g->confirm_sent ? g->confirmed : NULL;

    if (!c->error && r->error_code == KERR_REBALANCE_IN_PROGRESS) {
        group_alive(g); /* a member is known, and those who know each other meet again */
        group_join(g);
        return;
    }
    g->confirm_sent = false;
    if (group_call_failed(g, API_HEARTBEAT, c->error ? 0 : r->error_code))
        return;
    group_alive(g);
    group_well(g);
    if (g->state == GROUP_RESTING)
        group_goto(g, GROUP_MEMBER);
    if (confirmed && g->holding) {
        g->confirmed = NULL;
        confirmed(g->arg);
    }
    group_next_beat(g);
}

static void beat(struct group *g)
{
    struct kafka_heartbeat_request *q = &g->request.heartbeat;

    codec_init(&kafka_heartbeat_request_msg, q);
    q->group_id = str_c(g->name);
    q->generation_id = g->generation;
    q->member_id = str_c(g->member_id);
    q->group_instance_id = group_instance_of(g);
    g->confirm_sent = g->confirmed != NULL;
    group_call(g, API_HEARTBEAT, on_beat, MIN(g->session_ms, 30000));
}

/* A member that was given an assignment goes on with a heartbeat; whoever has none joins. */
static void on_next(struct timer *t)
{
    struct group *g = container_of(t, struct group, next);

    if (call_is_busy(&g->call))
        return;
    if (g->member_id[0] && g->given_generation >= 0 && g->given_generation == g->generation)
        beat(g);
    else
        group_join(g);
}

void group_confirm(struct group *g, void (*confirmed)(void *arg))
{
    loop_check(g->loop);
    g->confirmed = confirmed;
    g->confirm_sent = false;
    if (g->state == GROUP_MEMBER && !call_is_busy(&g->call))
        timer_set_ms(g->loop, &g->next, 0);
}

/* --- beginning and end --- */

struct group *group_new(struct loop *l, const struct group_config *config, void (*changed)(void *arg), void *arg)
{
    struct group *g = mem_new(sizeof(*g));
    struct buf claim;

    loop_check(l);
    g->loop = l;
    g->name = mem_copy_str(config->name.p, config->name.n);
    g->instance = mem_copy_str(config->instance.p, config->instance.n);
    g->session_ms = config->session_ms;
    g->heartbeat_ms = MIN(config->heartbeat_ms, config->session_ms / 3);
    g->lease = config->lease;
    g->changed = changed;
    g->arg = arg;
    g->cluster = cluster_new(l, config->client, config->cluster);
    g->route = (struct route){ .kind = ROUTE_GROUP, .key = str_c(g->name) };
    g->generation = g->given_generation = -1;
    task_init(&g->tell, on_tell);
    timer_init(&g->next, on_next);
    timer_init(&g->expiry, on_expiry);
    backoff_init(&g->backoff, 100, MAX(g->heartbeat_ms, 200));
    call_init(&g->call, API_JOIN_GROUP, &g->request, NULL);
    arena_init(&g->arena, 16 * MiB);
    buf_init(&g->metadata, 64 * KiB);
    buf_init(&g->assignment, 64 * KiB);
    buf_init(&g->nothing, 64 * KiB);
    buf_init(&claim, 4 * KiB);
    buf_fmt(&claim, "%.*s/%.*s", STR_ARG(config->cluster_id), STR_ARG(config->name));
    g->claim = claim_take(l, buf_str(&claim), g->instance_id);
    if (!g->claim)
        g->instance_id[0] = '\0';
    buf_fini(&claim);
    timer_set_ms(l, &g->next, 0);
    return g;
}

void group_free(struct group **gp)
{
    struct group *g = *gp;

    if (!g)
        return;
    *gp = NULL;
    call_drop(&g->call);
    call_fini(&g->call);
    task_cancel(&g->tell);
    timer_cancel(g->loop, &g->next);
    timer_cancel(g->loop, &g->expiry);
    if (g->left)
        timer_cancel(g->loop, &g->leave_limit);
    cluster_free(&g->cluster);
    claim_drop(&g->claim);
    arena_fini(&g->arena);
    buf_fini(&g->metadata);
    buf_fini(&g->assignment);
    buf_fini(&g->nothing);
    mem_free(g->name);
    mem_free(g->instance);
    mem_free(g);
}

void group_renounce(struct group *g)
{
    loop_check(g->loop);
    group_lose(g, "another process has shut our writers out");
    call_drop(&g->call);
    group_slots_none(&g->slots);
    g->given_generation = -1;
    rest(g, g->heartbeat_ms);
}

static void end_leave(struct group *g)
{
    timer_cancel(g->loop, &g->leave_limit);
    group_goto(g, GROUP_LEFT);
    g->left(g->left_arg);
}

static void on_leave_limit(struct timer *t)
{
    struct group *g = container_of(t, struct group, leave_limit);

    call_drop(&g->call);
    end_leave(g);
}

static void on_left(struct call *c)
{
    struct group *g = container_of(c, struct group, call);

    if (g->state == GROUP_LEAVING)
        end_leave(g);
}

static void fill_leave(struct call *c)
{
    struct group *g = container_of(c, struct group, call);
    struct kafka_leave_group_request *q = &g->request.leave;

    if (c->version < 3) {
        q->member_id = str_c(g->member_id);
        return;
    }
    codec_init(&kafka_leave_group_request_member_msg, &g->leaver);
    g->leaver.member_id = str_c(g->member_id);
    g->leaver.group_instance_id = group_instance_of(g);
    q->members.at = &g->leaver;
    q->members.n = 1;
}

void group_leave(struct group *g, int64_t limit_ms, void (*done)(void *arg), void *arg)
{
    bool known = g->member_id[0] || g->instance_id[0];

    loop_check(g->loop);
    g->left = done;
    g->left_arg = arg;
    g->holding = false;
    call_drop(&g->call);
    timer_cancel(g->loop, &g->next);
    timer_cancel(g->loop, &g->expiry);
    timer_init(&g->leave_limit, on_leave_limit);
    timer_set_ms(g->loop, &g->leave_limit, known ? limit_ms : 0);
    group_goto(g, GROUP_LEAVING);
    if (!known)
        return;
    codec_init(&kafka_leave_group_request_msg, &g->request.leave);
    g->request.leave.group_id = str_c(g->name);
    call_fini(&g->call);
    call_init(&g->call, API_LEAVE_GROUP, &g->request, on_left);
    g->call.fill = fill_leave;
    g->call.timeout_ms = limit_ms;
    if (cluster_call(g->cluster, &g->route, &g->call))
        timer_set_ms(g->loop, &g->leave_limit, 0);
}

/* --- what it tells --- */

bool group_is_holding(const struct group *g)
{
    return g->holding;
}

uint32_t group_term(const struct group *g)
{
    return g->term;
}

bool group_is_waiting(const struct group *g)
{
    return !g->holding && g->member_id[0] && g->given_generation >= 0 &&
           group_slots_count(&g->slots) == 0 && !fault_is_set(&g->fault);
}

struct str group_holder(const struct group *g)
{
    return str_c(g->holder);
}

int32_t group_generation(const struct group *g)
{
    return g->generation;
}

struct str group_name(const struct group *g)
{
    return str_c(g->name);
}

const struct fault *group_fault(const struct group *g)
{
    return &g->fault;
}
