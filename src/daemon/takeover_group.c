/* takeover_group.c -- is the mirror that is taken over alive; and how it is kept out.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Connect's workers are members of a group at the target. It cannot be a member of another protocol type at the same time, so
 * who is in it under ours keeps them out, as a running heliostat does (decision 4): a worker that comes back ends. With
 * --fence they are put out first, and their transactional ids are taken, which aborts what was open.
 */
#include "daemon/takeover_int.h"

#include <inttypes.h>

#define EVICTIONS_MAX 50
#define TXN_TIMEOUT_MS 60000

static struct route group_route(const struct takeover_flow *f)
{
    return (struct route){ .kind = ROUTE_GROUP, .key = f->group_name };
}

static struct cluster *target_of(const struct takeover_flow *f)
{
    return director_cluster(f->director, true);
}

bool takeover_is_blind(const struct takeover_flow *f)
{
    const struct takeover_args *a = f->all->args;

    return a->from == FROM_GROUP || (!str_is_null(a->offsets) && str_is_null(a->group));
}

struct str takeover_members(struct takeover_flow *f)
{
    struct str text = STR("");

    for (size_t i = 0; i < f->members_n; i++)
        text = arena_fmt(&f->arena, "%.*s%s%.*s at %.*s", STR_ARG(text), i ? ", " : "", STR_ARG(f->members[i].client_id),
                         STR_ARG(f->members[i].host));
    return text;
}

static void take_members(struct takeover_flow *f, const struct kafka_describe_groups_response_group *g)
{
    f->group_state = arena_str(&f->arena, g->group_state);
    f->protocol_type = arena_str(&f->arena, g->protocol_type);
    f->members_n = 0;
    f->members = arena_array(&f->arena, (size_t)g->members.n + 1, sizeof(*f->members));
    for (int32_t i = 0; i < g->members.n; i++) {
        struct takeover_member *m = &f->members[f->members_n++];

        m->id = arena_str(&f->arena, g->members.at[i].member_id);
        m->client_id = arena_str(&f->arena, g->members.at[i].client_id);
        m->host = arena_str(&f->arena, g->members.at[i].client_host);
        if (str_starts(m->host, STR("/"))) /* as Java's brokers write it */
            m->host = str_part(m->host, 1, m->host.n);
    }
}

static void on_described(struct call *c)
{
    struct takeover_flow *f = container_of(c, struct takeover_flow, call);
    const struct kafka_describe_groups_response *r = c->response;
    struct route route = group_route(f);
    int32_t kerr = !c->error && r->groups.n ? r->groups.at[0].error_code : 0;

    if (kerr == KERR_GROUP_ID_NOT_FOUND) /* from 4.0 on; before, it is dead and has no members */
        kerr = 0;
    if (takeover_call_failed(f, "asking for the group", kerr, target_of(f), &route))
        return;
    if (r->groups.n)
        take_members(f, &r->groups.at[0]);
    if (f->members_n == 0 || !f->all->args->apply) {
        f->step = f->all->args->apply ? STEP_TASKS : STEP_POSITIONS;
    } else if (!str_eq(f->protocol_type, STR("connect"))) {
        takeover_fail(f, 1, "ALIVE", "a running heliostat has the flow (%.*s): stop it first", STR_ARG(takeover_members(f)));
        return;
    } else if (!f->all->args->fence) {
        takeover_fail(f, 1, "ALIVE",
                      "the mirror is alive: group %.*s has %zu member%s (%.*s). Stop it (behind kill -9 its session must pass, "
                      "ten seconds by default), or put it out with --fence",
                      STR_ARG(f->group_name), f->members_n, f->members_n == 1 ? "" : "s", STR_ARG(takeover_members(f)));
        return;
    } else {
        f->step = STEP_EVICT;
    }
    takeover_wake(f);
}

void takeover_group(struct takeover_flow *f)
{
    struct kafka_describe_groups_request *q = &f->request.describe;
    struct route route = group_route(f);

    codec_init(&kafka_describe_groups_request_msg, q);
    q->groups.at = arena_array(&f->arena, 1, sizeof(*q->groups.at));
    q->groups.n = 1;
    q->groups.at[0] = f->group_name;
    takeover_call(f, target_of(f), API_DESCRIBE_GROUPS, &route, NULL, on_described);
}

static void on_evicted(struct call *c)
{
    struct takeover_flow *f = container_of(c, struct takeover_flow, call);
    const struct kafka_leave_group_response *r = c->response;
    struct route route = group_route(f);

    if (takeover_call_failed(f, "putting the members out of the group", c->error ? 0 : r->error_code, target_of(f), &route))
        return;
    f->members_n = 0;
    f->step = STEP_TASKS;
    takeover_wake(f);
}

void takeover_evict(struct takeover_flow *f)
{
    struct kafka_leave_group_request *q = &f->request.leave;
    struct route route = group_route(f);

    if (f->evictions++ == EVICTIONS_MAX) {
        takeover_fail(f, 1, "ALIVE", "the mirror comes back to group %.*s again and again (%.*s): stop it",
                      STR_ARG(f->group_name), STR_ARG(takeover_members(f)));
        return;
    }
    codec_init(&kafka_leave_group_request_msg, q);
    q->group_id = f->group_name;
    q->members.at = arena_array(&f->arena, f->members_n, sizeof(*q->members.at));
    q->members.n = (int32_t)f->members_n;
    for (size_t i = 0; i < f->members_n; i++) {
        q->members.at[i].member_id = f->members[i].id;
        q->members.at[i].group_instance_id = STR_NULL;
        q->members.at[i].reason = STR("heliostat takeover --fence");
    }
    takeover_call(f, target_of(f), API_LEAVE_GROUP, &route, NULL, on_evicted);
}

static void on_fenced(struct call *c)
{
    struct takeover_flow *f = container_of(c, struct takeover_flow, call);
    const struct kafka_init_producer_id_response *r = c->response;
    struct route route = { .kind = ROUTE_TXN, .key = f->fencing };

    if (takeover_call_failed(f, "taking the transactional ids", c->error ? 0 : r->error_code, target_of(f), &route))
        return;
    f->fenced++;
    takeover_wake(f);
}

/* Of the leader's producer, then of each task's: where none ever had one, there is none to take. */
void takeover_fence(struct takeover_flow *f)
{
    const struct takeover_args *a = f->all->args;
    struct kafka_init_producer_id_request *q = &f->request.init;
    struct route route = { .kind = ROUTE_TXN };

    if (!a->fence || f->fenced > f->tasks) {
        f->step = STEP_HOLD;
        takeover_wake(f);
        return;
    }
    f->fencing = f->fenced == 0
                     ? arena_fmt(&f->arena, "connect-cluster-%.*s", STR_ARG(f->group_name))
                     : arena_fmt(&f->arena, "%.*s-%.*s-%" PRId64, STR_ARG(f->group_name),
                                 STR_ARG(str_is_null(a->connector) ? STR("MirrorSourceConnector") : a->connector),
                                 f->fenced - 1);
    route.key = f->fencing;
    codec_init(&kafka_init_producer_id_request_msg, q);
    q->transactional_id = f->fencing;
    q->transaction_timeout_ms = TXN_TIMEOUT_MS;
    takeover_call(f, target_of(f), API_INIT_PRODUCER_ID, &route, NULL, on_fenced);
}

static void on_group_changed(void *arg)
{
    struct takeover_flow *f = arg;

    if (f->step > STEP_HOLD && f->step < STEP_LEAVE && !group_is_holding(f->group))
        takeover_fail(f, 1, "LOST", "group %.*s was lost to somebody else: nothing is certain, start again",
                      STR_ARG(f->group_name));
    else
        takeover_wake(f);
}

/* Until we have the group, or somebody else has. */
void takeover_hold(struct takeover_flow *f)
{
    const struct flow_config *c = f->config;

    if (!f->group) {
        f->hold = (struct group_config){ .client = &c->target_admin, .cluster = c->target_alias, .name = f->group_name,
                                         .cluster_id = cluster_id(target_of(f)), .instance = STR("heliostat takeover"),
                                         .session_ms = c->session_timeout_ms, .heartbeat_ms = c->heartbeat_interval_ms };
        f->group = group_new(f->all->loop, &f->hold, on_group_changed, f);
        return;
    }
    if (group_is_holding(f->group)) {
        f->step = STEP_POSITIONS;
        takeover_wake(f);
    } else if (group_is_waiting(f->group)) {
        takeover_fail(f, 1, "ALIVE", "a running heliostat has the flow (%.*s): stop it first", STR_ARG(group_holder(f->group)));
    } else if (fault_is_set(group_fault(f->group)) && !f->all->args->fence) {
        takeover_fail(f, 1, group_fault(f->group)->code, "%s", group_fault(f->group)->text);
    } else if (fault_is_set(group_fault(f->group))) { /* a worker was quicker: once more */
        group_free(&f->group);
        f->fenced = 0;
        f->step = STEP_GROUP;
        takeover_wait(f);
    }
}
