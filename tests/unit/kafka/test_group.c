/* test_group.c -- a member of a group against a coordinator that answers by a script.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/group.h"

#include "unit/kafka/fake_group.h"

#define SESSION_MS 1200
#define BEAT_MS    40

struct rig {
    struct loop *l;
    struct fake_group fake;
    struct client_endpoint at;
    struct client_config client;
    struct group *group;
    int confirmations, ends;
    struct lease lease;
};

static void on_changed(void *arg)
{
    (void)arg;
}

static void join(struct rig *t)
{
    struct group_config c = { .client = &t->client, .cluster = STR("T"), .cluster_id = STR("fake"),
                              .name = STR("g"), .instance = STR("host-1"), .session_ms = SESSION_MS,
                              .heartbeat_ms = BEAT_MS, .lease = &t->lease };

    t->group = group_new(t->l, &c, on_changed, t);
}

static void set_up(struct rig *t)
{
    *t = (struct rig){ 0 };
    t->l = loop_new("test");
    group_start(&t->fake, t->l);
    t->at = (struct client_endpoint){ .host = STR("127.0.0.1"), .port = (uint16_t)t->fake.broker.port };
    t->client = test_config(&t->at, 1);
}

static void tear_down(struct rig *t)
{
    group_free(&t->group);
    fake_stop(&t->fake.broker);
    loop_free(&t->l);
}

static bool holds(void *arg)
{
    return group_is_holding(((struct rig *)arg)->group);
}

static bool holds_not(void *arg)
{
    return !holds(arg);
}

static bool waits(void *arg)
{
    return group_is_waiting(((struct rig *)arg)->group);
}

static bool has_beaten(void *arg)
{
    return ((struct rig *)arg)->fake.beats_after_join >= 2;
}

static bool has_fault(void *arg)
{
    return fault_is_set(group_fault(((struct rig *)arg)->group));
}

static void until(struct rig *t, bool (*cond)(void *arg))
{
    CHECK(test_run_until(t->l, cond, t, 10000));
}

TEST(leads_and_holds)
{
    struct rig t;

    set_up(&t);
    join(&t);
    CHECK(!holds(&t));
    until(&t, holds);
    CHECK_EQ(group_term(t.group), 1);
    CHECK_EQ(t.fake.assigned, GROUP_SLOTS);
    CHECK_EQ(t.fake.session_ms, SESSION_MS);
    CHECK(t.fake.rebalance_ms > SESSION_MS);
    CHECK(strcmp(t.fake.protocol_type, "heliostat") == 0);
    CHECK(strncmp(t.fake.instance_id, "heliostat-", 10) == 0);
    CHECK_STR(group_holder(t.group), "host-1");
    CHECK(!lease_is_over(&t.lease, t.l) && t.lease.until_ms <= loop_clock_now_ms(t.l) + SESSION_MS);
    until(&t, has_beaten);
    CHECK(holds(&t) && !waits(&t));
    CHECK(!lease_is_over(&t.lease, t.l));
    group_renounce(t.group);
    CHECK(lease_is_over(&t.lease, t.l));
    tear_down(&t);
}

/* Two processes of one machine: only one has the name by which a successor takes its place. */
TEST(second_of_a_machine_has_no_instance_id)
{
    struct rig t;
    struct group *first;

    set_up(&t);
    join(&t);
    until(&t, holds);
    first = t.group;
    join(&t);
    until(&t, holds); /* the script gives to both */
    CHECK_EQ(t.fake.instance_id[0], '\0');
    group_free(&first);
    tear_down(&t);
}

TEST(stands_by_for_the_holder)
{
    struct rig t;

    set_up(&t);
    t.fake.rival_holds = true;
    join(&t);
    until(&t, waits);
    CHECK(!holds(&t));
    CHECK_EQ(t.fake.assigned, 0);
    CHECK_STR(group_holder(t.group), "rival-host");
    t.fake.rival_holds = false; /* it has gone: the group meets again */
    group_fail_next(&t.fake, API_HEARTBEAT, KERR_REBALANCE_IN_PROGRESS);
    until(&t, holds);
    CHECK_EQ(t.fake.assigned, GROUP_SLOTS);
    tear_down(&t);
}

/* A member that comes interrupts nothing: the holder claims what it has, and goes on meanwhile. */
TEST(keeps_through_a_rebalance)
{
    struct rig t;

    set_up(&t);
    join(&t);
    until(&t, holds);
    group_fail_next(&t.fake, API_HEARTBEAT, KERR_REBALANCE_IN_PROGRESS);
    group_fail_next(&t.fake, API_SYNC_GROUP, KERR_REBALANCE_IN_PROGRESS);
    test_run_ms(t.l, 5 * BEAT_MS);
    until(&t, has_beaten);
    CHECK(holds(&t));
    CHECK_EQ(group_term(t.group), 1);
    CHECK_EQ(t.fake.generation, 3);
    CHECK_EQ(group_slots_count(&t.fake.metadata.held), GROUP_SLOTS);
    CHECK_EQ(t.fake.metadata.generation, 1);
    tear_down(&t);
}

/* The end of the session comes by our own clock, counted from when the last good heartbeat was sent. */
TEST(believes_no_longer_than_the_session)
{
    struct rig t;
    int64_t began;

    set_up(&t);
    join(&t);
    until(&t, holds);
    t.fake.silent = true;
    began = loop_now_ms(t.l);
    until(&t, holds_not);
    CHECK(loop_now_ms(t.l) - began <= SESSION_MS + 100);
    CHECK(!waits(&t));
    t.fake.silent = false; /* the coordinator is back and nobody has taken over: a new term */
    fake_die(&t.fake.broker);
    fake_listen(&t.fake.broker, t.at.port);
    until(&t, holds);
    CHECK_EQ(group_term(t.group), 2);
    CHECK_EQ(t.fake.generation, 1);
    tear_down(&t);
}

TEST(expelled)
{
    struct rig t;

    set_up(&t);
    join(&t);
    until(&t, holds);
    t.fake.rival_holds = true;
    group_fail_next(&t.fake, API_HEARTBEAT, KERR_UNKNOWN_MEMBER_ID);
    until(&t, holds_not);
    until(&t, waits);
    CHECK_EQ(t.fake.member_id[0], '\0'); /* a new member */
    CHECK_EQ(group_slots_count(&t.fake.metadata.held), 0);
    tear_down(&t);
}

TEST(instance_taken_by_another)
{
    struct rig t;

    set_up(&t);
    join(&t);
    until(&t, holds);
    t.fake.rival_holds = true;
    group_fail_next(&t.fake, API_HEARTBEAT, KERR_FENCED_INSTANCE_ID);
    until(&t, waits);
    CHECK_EQ(t.fake.instance_id[0], '\0');
    tear_down(&t);
}

TEST(member_id_first)
{
    struct rig t;

    set_up(&t);
    group_fail_next(&t.fake, API_JOIN_GROUP, KERR_MEMBER_ID_REQUIRED);
    join(&t);
    until(&t, holds);
    CHECK(strcmp(t.fake.member_id, "me") == 0);
    tear_down(&t);
}

/* Everything that passes by itself is tried until it has passed. */
TEST(trouble_of_the_coordinator)
{
    static const int32_t errors[] = { KERR_COORDINATOR_LOAD_IN_PROGRESS, KERR_NOT_COORDINATOR,
                                      KERR_COORDINATOR_NOT_AVAILABLE, KERR_REBALANCE_IN_PROGRESS };
    struct rig t;

    set_up(&t);
    for (size_t i = 0; i < COUNT(errors); i++)
        group_fail_next(&t.fake, API_JOIN_GROUP, errors[i]);
    group_fail_next(&t.fake, API_SYNC_GROUP, KERR_NOT_COORDINATOR);
    join(&t);
    until(&t, holds);
    group_fail_next(&t.fake, API_HEARTBEAT, KERR_NOT_COORDINATOR);
    group_fail_next(&t.fake, API_HEARTBEAT, KERR_COORDINATOR_LOAD_IN_PROGRESS);
    test_run_ms(t.l, SESSION_MS);
    CHECK(holds(&t));
    CHECK_EQ(group_term(t.group), 1);
    CHECK(!has_fault(&t));
    tear_down(&t);
}

TEST(what_an_operator_must_mend)
{
    static const struct {
        int32_t error;
        const char *says;
    } cases[] = {
        { KERR_GROUP_AUTHORIZATION_FAILED, "Read on group g of cluster T" },
        { KERR_INCONSISTENT_GROUP_PROTOCOL, "MirrorMaker 2" },
        { KERR_INVALID_SESSION_TIMEOUT, "heliostat.session.timeout.ms = 1200" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rig t;

        set_up(&t);
        group_fail_next(&t.fake, API_JOIN_GROUP, cases[i].error);
        join(&t);
        until(&t, has_fault);
        CHECK(strcmp(group_fault(t.group)->code, kerr_name(cases[i].error)) == 0);
        CHECK(strstr(group_fault(t.group)->text, cases[i].says) != NULL);
        CHECK(!waits(&t) && !holds(&t));
        tear_down(&t);
    }
}

TEST(coordinator_may_not_be_looked_up)
{
    struct rig t;

    set_up(&t);
    t.fake.coordinator_error = KERR_GROUP_AUTHORIZATION_FAILED;
    join(&t);
    until(&t, has_fault);
    CHECK(strcmp(group_fault(t.group)->code, "GROUP_AUTHORIZATION_FAILED") == 0);
    CHECK(strstr(group_fault(t.group)->text, "heliostat.membership") != NULL);
    tear_down(&t);
}

static void on_confirmed(void *arg)
{
    ((struct rig *)arg)->confirmations++;
}

static bool is_confirmed(void *arg)
{
    return ((struct rig *)arg)->confirmations > 0;
}

/* Only a heartbeat that was sent after the wish counts. */
TEST(confirmation)
{
    struct rig t;
    uint32_t beats;

    set_up(&t);
    join(&t);
    until(&t, holds);
    beats = t.fake.beats_after_join;
    group_confirm(t.group, on_confirmed);
    CHECK_EQ(t.confirmations, 0);
    until(&t, is_confirmed);
    CHECK(t.fake.beats_after_join > beats);
    test_run_ms(t.l, 3 * BEAT_MS);
    CHECK_EQ(t.confirmations, 1);
    group_confirm(t.group, on_confirmed);
    t.fake.silent = true;
    until(&t, holds_not);
    CHECK_EQ(t.confirmations, 1); /* the holding ended before */
    tear_down(&t);
}

static void on_left(void *arg)
{
    ((struct rig *)arg)->ends++;
}

static bool has_left(void *arg)
{
    return ((struct rig *)arg)->ends > 0;
}

TEST(leaves)
{
    struct rig t;

    set_up(&t);
    join(&t);
    until(&t, holds);
    group_leave(t.group, 5000, on_left, &t);
    CHECK_EQ(t.ends, 0);
    CHECK(!holds(&t));
    until(&t, has_left);
    CHECK_EQ(t.fake.broker.asked[API_LEAVE_GROUP], 1);
    tear_down(&t);
    set_up(&t);
    join(&t);
    until(&t, holds);
    fake_die(&t.fake.broker); /* nobody to tell */
    group_leave(t.group, 50, on_left, &t);
    until(&t, has_left);
    tear_down(&t);
}

static bool has_rejoined(void *arg)
{
    return ((struct rig *)arg)->fake.generation >= 2;
}

TEST(renounces)
{
    struct rig t;

    set_up(&t);
    join(&t);
    until(&t, holds);
    t.fake.rival_holds = true;
    group_renounce(t.group);
    CHECK(!holds(&t));
    until(&t, has_rejoined);
    CHECK_EQ(group_slots_count(&t.fake.metadata.held), 0);
    CHECK(strcmp(t.fake.member_id, "me") == 0); /* as the member that it is */
    until(&t, waits);
    tear_down(&t);
}

/* A member that leads no more takes what the leader gives. */
TEST(is_given_by_another_leader)
{
    struct rig t;

    set_up(&t);
    t.fake.leads = false;
    t.fake.gives = true;
    join(&t);
    until(&t, holds);
    t.fake.gives = false;
    group_fail_next(&t.fake, API_HEARTBEAT, KERR_REBALANCE_IN_PROGRESS);
    until(&t, waits);
    CHECK(!holds(&t));
    tear_down(&t);
}

TESTS(RUN(leads_and_holds), RUN(second_of_a_machine_has_no_instance_id), RUN(stands_by_for_the_holder),
      RUN(keeps_through_a_rebalance), RUN(believes_no_longer_than_the_session), RUN(expelled),
      RUN(instance_taken_by_another), RUN(member_id_first), RUN(trouble_of_the_coordinator),
      RUN(what_an_operator_must_mend), RUN(coordinator_may_not_be_looked_up), RUN(confirmation), RUN(leaves),
      RUN(renounces), RUN(is_given_by_another_leader))
