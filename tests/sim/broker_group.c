/* broker_group.c -- the coordinator of classic groups: join, sync, heartbeats, sessions, static members.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   empty --join--> preparing --all are back, or time is up--> completing --leader's sync--> stable
 *     ^                 ^                                           |                          |
 *     +---- nobody -----+---------- a member comes, goes or dies ---+--------------------------+
 *
 * Every broker answers for the one coordinator of its cluster, which forgets nothing.
 */
#include "broker.h"

#include "base/alloc.h"
#include "base/must.h"

#include <stdio.h>
#include <string.h>

#define GROUPS_MAX       64
#define MEMBERS_MAX      64
#define SESSION_LEAST_MS 6000
#define SESSION_MOST_MS  1800000
#define PORT             9092

enum group_phase { EMPTY, PREPARING, COMPLETING, STABLE };

struct member {
    struct sim_group *group;
    bool there, back; /* has joined again for the generation that is being prepared */
    bool named;       /* has only been given an id */
    char id[64], instance[64], protocol[32];
    int64_t session_us, rebalance_us;
    struct buf metadata, assignment;
    struct sim_event expiry;
};

struct sim_group {
    struct sim_cluster *cluster;
    char name[128];
    enum group_phase phase;
    int32_t generation;
    char leader[64], type[32];
    int64_t not_before_us; /* the initial delay */
    struct member members[MEMBERS_MAX];
    struct sim_event due;
};

static struct sim_group groups[GROUPS_MAX];
static uint64_t ids;

static void look(struct sim_group *g);

static void on_due(struct sim_event *e)
{
    look(e->arg);
}

static struct sim_group *group_of(struct sim_cluster *c, struct str name)
{
    struct sim_group *g = groups;

    while (g->cluster && (g->cluster != c || !str_eq(name, str_c(g->name))))
        must(++g < groups + GROUPS_MAX);
    if (!g->cluster) {
        g->cluster = c;
        snprintf(g->name, sizeof(g->name), "%.*s", STR_ARG(name));
        g->due.fn = on_due;
        g->due.arg = g;
    }
    return g;
}

/* --- phases --- */

static int count(const struct sim_group *g, bool only_missing)
{
    int n = 0;

    for (int i = 0; i < MEMBERS_MAX; i++)
        n += g->members[i].there && !g->members[i].named && !(only_missing && g->members[i].back);
    return n;
}

static void prepare(struct sim_group *g)
{
    int64_t longest_us = 0;

    if (g->phase == PREPARING)
        return;
    g->not_before_us = g->phase == EMPTY && broker_luck(g->cluster, 50) ? sim_now_us() + sim_between(0, 3) * SIM_S : 0;
    g->phase = PREPARING;
    for (int i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &g->members[i];

        if (!m->there || m->named)
            continue;
        m->back = false;
        longest_us = MAX(longest_us, m->rebalance_us);
    }
    sim_event_set(&g->due, MAX(longest_us, g->not_before_us - sim_now_us()));
    broker_poke(g->cluster);
}

static void alive(struct member *m)
{
    sim_event_set(&m->expiry, m->session_us);
}

static void remove_member(struct member *m)
{
    sim_event_cancel(&m->expiry);
    m->there = false;
    if (m->named)
        return;
    if (m->group->phase == STABLE || m->group->phase == COMPLETING)
        prepare(m->group);
    look(m->group);
}

static void on_expiry(struct sim_event *e)
{
    struct member *m = e->arg;

    if (m->group->phase == PREPARING && m->back) {
        alive(m); /* who waits for a join is alive */
        return;
    }
    sim_say("group %s: the session of %s %s is over", m->group->name, m->id, m->instance);
    remove_member(m);
}

static void complete(struct sim_group *g)
{
    bool leader_stays = false;

    for (int i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &g->members[i];

        if (m->there && !m->back && !m->named) {
            sim_event_cancel(&m->expiry);
            m->there = false;
        }
        leader_stays = leader_stays || (m->there && !m->named && strcmp(m->id, g->leader) == 0);
    }
    g->phase = count(g, false) ? COMPLETING : EMPTY;
    g->generation++;
    for (int i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &g->members[i];

        if (!m->there || m->named)
            continue;
        if (!leader_stays)
            snprintf(g->leader, sizeof(g->leader), "%s", m->id);
        leader_stays = true;
        buf_clear(&m->assignment);
        alive(m);
    }
    sim_say("group %s: generation %d of %d, led by %s", g->name, g->generation, count(g, false), g->leader);
    broker_poke(g->cluster);
}

static void look(struct sim_group *g)
{
    if (g->phase != PREPARING)
        return;
    if (sim_now_us() < g->not_before_us)
        sim_event_hurry(&g->due, g->not_before_us - sim_now_us());
    else if (count(g, true) == 0 || !sim_event_is_set(&g->due))
        complete(g);
}

/* --- members --- */

static struct member *find(struct sim_group *g, struct str id, struct str instance)
{
    for (int i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &g->members[i];

        if (m->there && (id.n ? str_eq(id, str_c(m->id)) : instance.n && str_eq(instance, str_c(m->instance))))
            return m;
    }
    return NULL;
}

/* KERR_NONE and the member, or why not. */
static int32_t know(struct sim_group *g, struct str id, struct str instance, struct member **out)
{
    struct member *same = instance.n ? find(g, STR_NULL, instance) : NULL;

    *out = find(g, id, STR_NULL);
    if (same && !str_eq(id, str_c(same->id)))
        return KERR_FENCED_INSTANCE_ID;
    return *out ? KERR_NONE : KERR_UNKNOWN_MEMBER_ID;
}

static void take(struct buf *to, struct str s)
{
    buf_fini(to);
    buf_init(to, 1 * MiB);
    buf_put_str(to, s);
}

static void name_member(struct member *m)
{
    snprintf(m->id, sizeof(m->id), "member-%llu", (unsigned long long)++ids);
}

static struct member *add(struct sim_group *g, const struct kafka_join_group_request *r)
{
    struct member *m = g->members;

    while (m->there)
        must(++m < g->members + MEMBERS_MAX);
    sim_event_cancel(&m->expiry);
    buf_fini(&m->metadata);
    buf_fini(&m->assignment);
    *m = (struct member){ .group = g, .there = true, .expiry = { .fn = on_expiry, .arg = m } };
    buf_init(&m->metadata, 1 * MiB);
    buf_init(&m->assignment, 1 * MiB);
    name_member(m);
    snprintf(m->instance, sizeof(m->instance), "%.*s", STR_ARG(r->group_instance_id));
    return m;
}

/* --- JoinGroup --- */

static bool answer_join(struct sim_request *q, int32_t error, const struct sim_group *g, struct str id,
                        struct str leader, bool skip)
{
    struct kafka_join_group_response r;

    codec_init(&kafka_join_group_response_msg, &r);
    r.error_code = (int16_t)error;
    if (!error) {
        r.protocol_type = str_c(g->type);
        r.protocol_name = str_c(g->members[0].protocol);
    }
    r.leader = leader;
    r.member_id = id;
    if (!error) {
        r.generation_id = g->generation;
        r.skip_assignment = skip && q->head.version >= 9;
    }
    if (!error && str_eq(leader, id)) {
        r.members.at = arena_array(&q->arena, MEMBERS_MAX, sizeof(*r.members.at));
        for (int i = 0; i < MEMBERS_MAX; i++)
            if (g->members[i].there && !g->members[i].named)
                r.members.at[r.members.n++] = (struct kafka_join_group_response_member){
                    .member_id = str_c(g->members[i].id), .metadata = buf_str(&g->members[i].metadata),
                    .group_instance_id = g->members[i].instance[0] ? str_c(g->members[i].instance) : STR_NULL
                };
    }
    broker_answer(q, &r);
    return true;
}

/* A process takes the place of the one that had its instance id before: without a rebalance where all is stable. */
static bool replace(struct sim_request *q, struct sim_group *g, struct member *m)
{
    struct str old = arena_fmt(&q->arena, "%s", m->id);
    bool led = strcmp(g->leader, m->id) == 0;

    name_member(m);
    sim_say("group %s: %s takes the place of %.*s", g->name, m->id, STR_ARG(old));
    if (led)
        snprintf(g->leader, sizeof(g->leader), "%s", m->id);
    if (g->phase != STABLE)
        return false;
    alive(m);
    return answer_join(q, KERR_NONE, g, str_c(m->id),
                       led && q->head.version < 9 ? old : str_c(g->leader), true);
}

static bool wait_join(struct sim_request *q)
{
    const struct kafka_join_group_request *r = q->msg;
    struct sim_group *g = group_of(q->broker->cluster, r->group_id);
    struct member *m = find(g, str_c(q->note), STR_NULL);

    if (!m)
        return answer_join(q, KERR_UNKNOWN_MEMBER_ID, g, str_c(q->note), STR(""), false);
    if (g->phase == PREPARING)
        return false;
    return answer_join(q, KERR_NONE, g, str_c(m->id), str_c(g->leader), false);
}

/* Whether all that are in it speak a protocol that the new one speaks. */
static bool is_understood(const struct sim_group *g, const struct kafka_join_group_request *r)
{
    bool alike = r->protocols.n > 0 && r->protocol_type.n > 0;

    for (int i = 0; alike && i < MEMBERS_MAX; i++) {
        const struct member *m = &g->members[i];
        bool speaks = false;

        if (!m->there || m->named || str_eq(r->member_id, str_c(m->id)))
            continue;
        for (int32_t k = 0; k < r->protocols.n; k++)
            speaks = speaks || str_eq(r->protocols.at[k].name, str_c(m->protocol));
        alike = speaks && str_eq(r->protocol_type, str_c(g->type));
    }
    return alike;
}

static int32_t check_join(const struct sim_group *g, const struct kafka_join_group_request *r)
{
    if (r->group_id.n == 0)
        return KERR_INVALID_GROUP_ID;
    if (r->session_timeout_ms < SESSION_LEAST_MS || r->session_timeout_ms > SESSION_MOST_MS)
        return KERR_INVALID_SESSION_TIMEOUT;
    return is_understood(g, r) ? KERR_NONE : KERR_INCONSISTENT_GROUP_PROTOCOL;
}

/* Who is new is given a name first, and comes again with it (version 4 and later). */
static struct str name_only(struct sim_group *g, const struct kafka_join_group_request *r)
{
    struct member *m = add(g, r);

    m->named = true;
    m->session_us = r->session_timeout_ms * SIM_MS;
    alive(m);
    return str_c(m->id);
}

bool broker_join_group(struct sim_request *q)
{
    const struct kafka_join_group_request *r = q->msg;
    struct sim_group *g = group_of(q->broker->cluster, r->group_id);
    struct member *m = NULL;
    int32_t error = KERR_NONE;

    if (q->stage == 1)
        return wait_join(q);
    if (broker_luck(q->broker->cluster, 2))
        return answer_join(q, sim_chance(50) ? KERR_NOT_COORDINATOR : KERR_COORDINATOR_LOAD_IN_PROGRESS, g,
                           r->member_id, STR(""), false);
    error = check_join(g, r);
    if (!error && r->member_id.n)
        error = know(g, r->member_id, r->group_instance_id, &m);
    else if (!error && r->group_instance_id.n && (m = find(g, STR_NULL, r->group_instance_id)) && replace(q, g, m))
        return true;
    if (!error && !r->member_id.n && !r->group_instance_id.n && q->head.version >= 4)
        return answer_join(q, KERR_MEMBER_ID_REQUIRED, g, name_only(g, r), STR(""), false);
    if (error)
        return answer_join(q, error, g, r->member_id, STR(""), false);
    prepare(g);
    if (!m)
        m = add(g, r);
    m->named = false;
    snprintf(g->type, sizeof(g->type), "%.*s", STR_ARG(r->protocol_type));
    snprintf(m->protocol, sizeof(m->protocol), "%.*s", STR_ARG(r->protocols.at[0].name));
    take(&m->metadata, r->protocols.at[0].metadata);
    m->session_us = r->session_timeout_ms * SIM_MS;
    m->rebalance_us = r->rebalance_timeout_ms * SIM_MS;
    m->back = true;
    alive(m);
    q->note = (char *)(uintptr_t)arena_fmt(&q->arena, "%s", m->id).p;
    q->stage = 1;
    look(g);
    if (g->phase == PREPARING) {
        broker_wait(q, 120 * SIM_S);
        return false;
    }
    return wait_join(q);
}

/* --- SyncGroup, Heartbeat, LeaveGroup --- */

bool broker_sync_group(struct sim_request *q)
{
    const struct kafka_sync_group_request *r = q->msg;
    struct sim_group *g = group_of(q->broker->cluster, r->group_id);
    struct kafka_sync_group_response a;
    struct member *m, *other;
    int32_t error = know(g, r->member_id, r->group_instance_id, &m);

    if (!error && r->generation_id != g->generation)
        error = KERR_ILLEGAL_GENERATION;
    else if (!error && g->phase == PREPARING)
        error = KERR_REBALANCE_IN_PROGRESS;
    if (!error && g->phase == COMPLETING && strcmp(m->id, g->leader) == 0) {
        for (int32_t i = 0; i < r->assignments.n; i++)
            if ((other = find(g, r->assignments.at[i].member_id, STR_NULL)))
                take(&other->assignment, r->assignments.at[i].assignment);
        g->phase = STABLE;
        broker_poke(g->cluster);
    }
    if (!error && g->phase == COMPLETING) {
        broker_wait(q, 120 * SIM_S);
        return false;
    }
    if (!error)
        alive(m);
    codec_init(&kafka_sync_group_response_msg, &a);
    a.error_code = (int16_t)error;
    a.assignment = error || !m->assignment.n ? STR("") : buf_str(&m->assignment);
    broker_answer(q, &a);
    return true;
}

bool broker_heartbeat(struct sim_request *q)
{
    const struct kafka_heartbeat_request *r = q->msg;
    struct sim_group *g = group_of(q->broker->cluster, r->group_id);
    struct kafka_heartbeat_response a;
    struct member *m;
    int32_t error = know(g, r->member_id, r->group_instance_id, &m);

    if (!error && r->generation_id != g->generation)
        error = KERR_ILLEGAL_GENERATION;
    if (!error) {
        alive(m);
        if (g->phase == PREPARING)
            error = KERR_REBALANCE_IN_PROGRESS;
    }
    codec_init(&kafka_heartbeat_response_msg, &a);
    a.error_code = (int16_t)(broker_luck(q->broker->cluster, 1) ? KERR_NOT_COORDINATOR : error);
    broker_answer(q, &a);
    return true;
}

bool broker_leave_group(struct sim_request *q)
{
    const struct kafka_leave_group_request *r = q->msg;
    struct sim_group *g = group_of(q->broker->cluster, r->group_id);
    struct kafka_leave_group_response a;

    codec_init(&kafka_leave_group_response_msg, &a);
    a.members.at = arena_array(&q->arena, (size_t)r->members.n, sizeof(*a.members.at));
    a.members.n = r->members.n;
    for (int32_t i = 0; i < r->members.n; i++) {
        struct member *m = find(g, r->members.at[i].member_id, r->members.at[i].group_instance_id);

        a.members.at[i].member_id = r->members.at[i].member_id;
        a.members.at[i].group_instance_id = r->members.at[i].group_instance_id;
        if (m)
            remove_member(m);
        else
            a.members.at[i].error_code = KERR_UNKNOWN_MEMBER_ID;
    }
    broker_answer(q, &a);
    return true;
}

/* --- offsets --- */

/* Who is not a member may only store offsets of a group without members (rules 6). */
int32_t broker_group_error(struct sim_cluster *c, struct str group, int32_t generation, struct str member,
                           struct str instance)
{
    struct sim_group *g = group_of(c, group);
    struct member *m;
    int32_t error;

    if (generation < 0 && !member.n)
        return g->phase == EMPTY ? KERR_NONE : KERR_UNKNOWN_MEMBER_ID;
    error = know(g, member, instance, &m);
    if (!error && generation != g->generation)
        error = KERR_ILLEGAL_GENERATION;
    if (!error && g->phase == COMPLETING)
        error = KERR_REBALANCE_IN_PROGRESS;
    return error;
}

/* --- FindCoordinator: any broker does --- */

bool broker_find_coordinator(struct sim_request *q)
{
    const struct kafka_find_coordinator_request *m = q->msg;
    struct kafka_find_coordinator_response r;
    struct str host = str_c(q->broker->host);

    codec_init(&kafka_find_coordinator_response_msg, &r);
    if (q->head.version < 4) {
        r.node_id = q->broker->id;
        r.host = host;
        r.port = PORT;
        broker_answer(q, &r);
        return true;
    }
    r.coordinators.at = arena_array(&q->arena, (size_t)m->coordinator_keys.n, sizeof(*r.coordinators.at));
    r.coordinators.n = m->coordinator_keys.n;
    for (int32_t i = 0; i < m->coordinator_keys.n; i++)
        r.coordinators.at[i] = (struct kafka_find_coordinator_response_coordinator){
            .key = m->coordinator_keys.at[i], .node_id = q->broker->id, .host = host, .port = PORT
        };
    broker_answer(q, &r);
    return true;
}
