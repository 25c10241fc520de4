/* fake_group.h -- a coordinator that answers what the test wrote down, for one member under test.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_KAFKA_FAKE_GROUP_H
#define TESTS_UNIT_KAFKA_FAKE_GROUP_H

#include "kafka/group_format.h"
#include "unit/kafka/fake_broker.h"
#include "unit/kafka/kafka_test.h"

#define GROUP_ERRORS 8

struct fake_group {
    struct fake broker;
    struct kafka_metadata_response_broker self;
    int32_t generation;
    bool leads;             /* the member under test */
    bool rival_holds;       /* another member says that it has the slots */
    bool gives;             /* without leading: the assignment that comes has the slots */
    bool silent;            /* heartbeats get no answer */
    int32_t coordinator_error;
    int32_t errors[FAKE_KEYS][GROUP_ERRORS]; /* of the next answers, used up one by one */
    int errors_n[FAKE_KEYS];
    /* What was asked last. */
    char member_id[64], instance_id[64], protocol_type[32];
    struct group_metadata metadata;
    int32_t session_ms, rebalance_ms, assigned; /* slots that the leader gave to itself, -1: none handed in */
    uint32_t beats_after_join;
};

static inline void group_fail_next(struct fake_group *g, int api, int32_t error)
{
    g->errors[api][g->errors_n[api]++] = error;
}

static inline int32_t group_next_error(struct fake_group *g, int api)
{
    int32_t e = g->errors_n[api] ? g->errors[api][0] : KERR_NONE;

    if (g->errors_n[api]) {
        g->errors_n[api]--;
        memmove(g->errors[api], g->errors[api] + 1, (size_t)g->errors_n[api] * sizeof(int32_t));
    }
    return e;
}

static inline void fake_copy(char *to, size_t room, struct str s)
{
    snprintf(to, room, "%.*s", STR_ARG(s));
}

static inline void group_on_find(struct fake_group *g, struct fake_request *q)
{
    struct kafka_find_coordinator_response r;
    struct kafka_find_coordinator_response_coordinator c = { .key = STR("g"), .node_id = 1,
                                                             .host = STR("127.0.0.1") };

    codec_init(&kafka_find_coordinator_response_msg, &r);
    c.port = g->broker.port;
    c.error_code = (int16_t)g->coordinator_error;
    r.coordinators.at = &c;
    r.coordinators.n = 1;
    fake_answer(q, q->version, &r);
}

static inline void group_on_join(struct fake_group *g, struct fake_request *q)
{
    const struct kafka_join_group_request *m = q->body;
    struct kafka_join_group_response r;
    struct kafka_join_group_response_member members[2] = { { .member_id = STR("me") }, { .member_id = STR("rival") } };
    struct group_metadata rival = { .generation = g->generation, .instance = STR("rival-host") };
    struct buf bytes;

    fake_copy(g->member_id, sizeof(g->member_id), m->member_id);
    fake_copy(g->instance_id, sizeof(g->instance_id), m->group_instance_id);
    fake_copy(g->protocol_type, sizeof(g->protocol_type), m->protocol_type);
    g->session_ms = m->session_timeout_ms;
    g->rebalance_ms = m->rebalance_timeout_ms;
    CHECK_EQ(m->protocols.n, 1);
    CHECK_EQ(group_parse_metadata(m->protocols.at[0].metadata, &g->metadata), E_OK);
    g->beats_after_join = 0;
    if (g->rival_holds)
        group_slots_all(&rival.held);
    buf_init(&bytes, 64 * KiB);
    group_format_metadata(&bytes, &rival);
    codec_init(&kafka_join_group_response_msg, &r);
    r.error_code = (int16_t)group_next_error(g, API_JOIN_GROUP);
    r.protocol_name = STR("slots");
    r.member_id = STR("me");
    r.leader = g->leads ? STR("me") : STR("rival");
    r.generation_id = r.error_code ? -1 : ++g->generation;
    members[0].metadata = m->protocols.at[0].metadata;
    members[1].metadata = buf_str(&bytes);
    r.members.at = members;
    r.members.n = g->leads && !r.error_code ? 2 : 0;
    fake_answer(q, q->version, &r);
    buf_fini(&bytes);
}

static inline void group_on_sync(struct fake_group *g, struct fake_request *q)
{
    const struct kafka_sync_group_request *m = q->body;
    struct kafka_sync_group_response r;
    struct group_assignment a = { .members = 2, .holder = STR("rival-host") };
    struct buf bytes;

    CHECK_EQ(m->generation_id, g->generation);
    codec_init(&kafka_sync_group_response_msg, &r);
    r.error_code = (int16_t)group_next_error(g, API_SYNC_GROUP);
    g->assigned = -1;
    if (g->gives)
        group_slots_all(&a.slots);
    buf_init(&bytes, 64 * KiB);
    group_format_assignment(&bytes, &a);
    r.assignment = r.error_code ? STR("") : buf_str(&bytes);
    for (int32_t i = 0; i < m->assignments.n; i++) {
        if (!str_eq(m->assignments.at[i].member_id, STR("me")))
            continue;
        r.assignment = m->assignments.at[i].assignment;
        CHECK_EQ(group_parse_assignment(r.assignment, &a), E_OK);
        g->assigned = group_slots_count(&a.slots);
    }
    fake_answer(q, q->version, &r);
    buf_fini(&bytes);
}

static inline bool group_on_request(struct fake *f, struct fake_request *q)
{
    struct fake_group *g = f->arg;
    struct kafka_heartbeat_response beat;
    struct kafka_leave_group_response left;

    switch (q->api->key) {
    case API_FIND_COORDINATOR:
        group_on_find(g, q);
        return true;
    case API_JOIN_GROUP:
        group_on_join(g, q);
        return true;
    case API_SYNC_GROUP:
        group_on_sync(g, q);
        return true;
    case API_HEARTBEAT:
        g->beats_after_join++;
        codec_init(&kafka_heartbeat_response_msg, &beat);
        beat.error_code = (int16_t)group_next_error(g, API_HEARTBEAT);
        if (!g->silent)
            fake_answer(q, q->version, &beat);
        return true;
    case API_LEAVE_GROUP:
        codec_init(&kafka_leave_group_response_msg, &left);
        fake_answer(q, q->version, &left);
        return true;
    default:
        return false;
    }
}

static inline void group_start(struct fake_group *g, struct loop *l)
{
    *g = (struct fake_group){ .leads = true, .assigned = -1 };
    fake_start(&g->broker, l);
    codec_init(&kafka_metadata_response_broker_msg, &g->self);
    g->self.node_id = 1;
    g->self.host = STR("127.0.0.1");
    g->self.port = g->broker.port;
    g->broker.brokers = &g->self;
    g->broker.brokers_n = 1;
    g->broker.on_request = group_on_request;
    g->broker.arg = g;
}

#endif
