/* group_join.c -- entering a generation: JoinGroup, the leader's choice, SyncGroup.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A member that holds slots says so in its metadata, and the leader leaves them where they are, so a member that comes
 * or goes interrupts nothing. A process that takes the place of its dead predecessor on this machine (group.instance.id
 * under a claim) gets the predecessor's assignment back without any rebalance.
 */
#include "base/log.h"
#include "kafka/group_int.h"

#include <stdio.h>
#include <string.h>

#define JOIN_SLACK_MS 10000 /* brokers let a new group wait for more members: group.initial.rebalance.delay.ms */

static bool keep(char *to, size_t room, struct str s)
{
    if (s.n >= room)
        return false;
    memcpy(to, s.p ? s.p : "", s.n);
    to[s.n] = '\0';
    return true;
}

static void on_synced(struct call *c)
{
    struct group *g = container_of(c, struct group, call);
    const struct kafka_sync_group_response *r = c->response;
    struct group_assignment a;

    if (!c->error && r->error_code == KERR_REBALANCE_IN_PROGRESS) {
        group_goto(g, GROUP_JOINING);
        group_join(g);
        return;
    }
    if (group_call_failed(g, API_SYNC_GROUP, c->error ? 0 : r->error_code))
        return;
    if (group_parse_assignment(r->assignment, &a)) {
        group_fail(g, "MALFORMED", "group %s: its leader gave an assignment that cannot be read", g->name);
        return;
    }
    g->slots = a.slots;
    g->given_generation = g->generation;
    (void)keep(g->holder, sizeof(g->holder), str_part(a.holder, 0, GROUP_INSTANCE_MAX));
    if (group_slots_count(&g->slots) == 0)
        group_lose(g, "the group gave the work to another process");
    group_goto(g, GROUP_MEMBER);
    group_alive(g);
    group_well(g);
    g->confirm_sent = false;
    group_next_beat(g);
}

/* The leader's part: who of the members shall hold the slots. */
static void assign(struct group *g, const struct kafka_join_group_response *r, struct kafka_sync_group_request *q)
{
    int32_t n = r->members.n, chosen, self = 0;
    struct group_metadata *members = arena_array(&g->arena, (size_t)n, sizeof(*members));
    struct group_assignment a = { .members = n };

    for (int32_t i = 0; i < n; i++) {
        if (group_parse_metadata(r->members.at[i].metadata, &members[i]))
            members[i] = (struct group_metadata){ .generation = -1 }; /* of no use, but a member */
        if (str_eq(r->members.at[i].member_id, r->member_id))
            self = i;
    }
    chosen = group_choose(members, n, self);
    a.holder = members[chosen].instance;
    buf_clear(&g->nothing);
    group_format_assignment(&g->nothing, &a);
    group_slots_all(&a.slots);
    buf_clear(&g->assignment);
    group_format_assignment(&g->assignment, &a);
    q->assignments.at = arena_array(&g->arena, (size_t)n, sizeof(*q->assignments.at));
    q->assignments.n = n;
    for (int32_t i = 0; i < n; i++) {
        q->assignments.at[i].member_id = arena_str(&g->arena, r->members.at[i].member_id);
        q->assignments.at[i].assignment = buf_str(i == chosen ? &g->assignment : &g->nothing);
    }
}

static void sync_group(struct group *g, const struct kafka_join_group_response *r)
{
    struct kafka_sync_group_request *q = &g->request.sync;

    codec_init(&kafka_sync_group_request_msg, q);
    q->group_id = str_c(g->name);
    q->generation_id = g->generation;
    q->member_id = str_c(g->member_id);
    q->group_instance_id = group_instance_of(g);
    q->protocol_type = GROUP_TYPE;
    q->protocol_name = GROUP_PROTOCOL;
    if (g->leads && !r->skip_assignment && r->members.n > 0)
        assign(g, r, q);
    group_goto(g, GROUP_SYNCING);
    group_call(g, API_SYNC_GROUP, on_synced, MAX(2 * g->session_ms, 5000));
}

static void on_joined(struct call *c)
{
    struct group *g = container_of(c, struct group, call);
    const struct kafka_join_group_response *r = c->response;

    if (!c->error && r->error_code == KERR_MEMBER_ID_REQUIRED && keep(g->member_id, GROUP_ID_MAX, r->member_id)) {
        group_join(g);
        return;
    }
    if (group_call_failed(g, API_JOIN_GROUP, c->error ? 0 : r->error_code))
        return;
    if (!keep(g->member_id, GROUP_ID_MAX, r->member_id) || r->member_id.n == 0) {
        group_forget_member(g);
        group_fail(g, "MALFORMED", "group %s: the coordinator gave no useful member id", g->name);
        return;
    }
    g->generation = r->generation_id;
    g->leads = str_eq(r->leader, r->member_id);
    group_alive(g);
    sync_group(g, r);
}

void group_join(struct group *g)
{
    struct kafka_join_group_request *q = &g->request.join;
    struct group_metadata m = { .generation = -1, .instance = str_c(g->instance) };

    if (g->holding) {
        m.held = g->slots;
        m.generation = g->given_generation;
    }
    arena_reset(&g->arena);
    buf_clear(&g->metadata);
    group_format_metadata(&g->metadata, &m);
    codec_init(&kafka_join_group_request_msg, q);
    q->group_id = str_c(g->name);
    q->session_timeout_ms = (int32_t)g->session_ms;
    q->rebalance_timeout_ms = (int32_t)MIN(2 * g->session_ms, INT32_MAX); /* later than the session's end: G-1 */
    q->member_id = str_c(g->member_id);
    q->group_instance_id = group_instance_of(g);
    q->protocol_type = GROUP_TYPE;
    g->protocol = (struct kafka_join_group_request_protocol){ .name = GROUP_PROTOCOL, .metadata = buf_str(&g->metadata) };
    q->protocols.at = &g->protocol;
    q->protocols.n = 1;
    if (g->state != GROUP_JOINING)
        group_goto(g, GROUP_JOINING);
    group_call(g, API_JOIN_GROUP, on_joined, 2 * g->session_ms + JOIN_SLACK_MS);
}
