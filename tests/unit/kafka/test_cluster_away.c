/* test_cluster_away.c -- clusters that go away, move or are another one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/kafka/cluster_rig.h"

static bool has_broker_3(void *arg)
{
    return cluster_find_broker(((struct rig *)arg)->cl, 3) != NULL;
}

TEST(rebootstraps_when_all_are_gone)
{
    struct rig r;

    rig_start(&r);
    r.config.bootstrap = r.bootstrap + 2; /* broker 3 knows the others, and is none of them */
    rig_up(&r);
    CHECK(!has_broker_3(&r));
    test_run_ms(r.l, 5);
    r.fakes[2].brokers = r.brokers + 2;
    r.fakes[2].brokers_n = 1;
    fake_hang_up(&r.fakes[2].conns[0]); /* the seat moves to a known broker: they are dead */
    fake_die(&r.fakes[0]);
    fake_die(&r.fakes[1]);
    CHECK(test_run_until(r.l, has_broker_3, &r, 5000));
    CHECK(cluster_is_up(r.cl));
    rig_stop(&r);
}

/* The broker that it knows sends it back to the bootstrap list. */
static bool goes_when_told(enum client_recovery strategy, int64_t ms)
{
    struct rig r;
    bool gone;

    rig_start(&r);
    r.config.bootstrap = r.bootstrap + 2;
    r.config.metadata_recovery_strategy = strategy;
    r.fakes[2].brokers = r.brokers; /* broker 1 only, who will send us back */
    r.fakes[2].brokers_n = 1;
    rig_up(&r);
    r.fakes[0].metadata_error = KERR_REBOOTSTRAP_REQUIRED;
    r.fakes[2].brokers = r.brokers + 2;
    fake_hang_up(&r.fakes[2].conns[0]);
    cluster_refresh(r.cl);
    gone = test_run_until(r.l, has_broker_3, &r, ms);
    CHECK(r.fakes[0].asked[API_METADATA] > 0);
    rig_stop(&r);
    return gone;
}

TEST(rebootstraps_when_told)
{
    CHECK(goes_when_told(CLIENT_RECOVERY_REBOOTSTRAP, 5000));
    CHECK(!goes_when_told(CLIENT_RECOVERY_NONE, 500)); /* metadata.recovery.strategy=none: it stays (KIP-1102) */
}

static bool swallow_metadata(struct fake *f, struct fake_request *q)
{
    (void)f;
    return q->api->key == API_METADATA;
}

/* A known broker that takes requests and answers none holds nobody for request.timeout.ms (KIP-1102). */
static bool leaves_the_silent(enum client_recovery strategy, int64_t ms)
{
    struct rig r;
    bool left;

    rig_start(&r);
    r.config.bootstrap = r.bootstrap + 2;
    r.config.metadata_recovery_strategy = strategy;
    r.config.metadata_recovery_rebootstrap_trigger_ms = 50;
    r.config.request_timeout_ms = 60000;
    r.fakes[2].brokers_n = 1; /* broker 1 only */
    rig_up(&r);
    r.fakes[0].on_request = swallow_metadata;
    r.fakes[2].brokers = r.brokers + 2;
    fake_hang_up(&r.fakes[2].conns[0]);
    cluster_refresh(r.cl);
    left = test_run_until(r.l, has_broker_3, &r, ms);
    CHECK(r.fakes[0].asked[API_METADATA] > 0);
    rig_stop(&r);
    return left;
}

TEST(rebootstraps_when_nobody_answers)
{
    CHECK(leaves_the_silent(CLIENT_RECOVERY_REBOOTSTRAP, 5000));
    CHECK(!leaves_the_silent(CLIENT_RECOVERY_NONE, 500));
}

/* The names are looked up before the first connection, and the cluster comes up by them. */
TEST(comes_up_by_canonical_names)
{
    struct rig r;

    rig_start(&r);
    r.config.client_dns_lookup = CLIENT_DNS_CANONICAL;
    rig_up(&r);
    CHECK(r.cl != NULL);
    rig_stop(&r);
}

TEST(another_cluster_is_a_fault)
{
    struct rig r;

    rig_start(&r);
    rig_up(&r);
    for (int i = 0; i < FAKES; i++)
        r.fakes[i].cluster_id = "other";
    cluster_refresh(r.cl);
    CHECK(test_run_until(r.l, is_down, &r, 5000));
    test_run_ms(r.l, 50);
    CHECK(!strcmp(cluster_fault(r.cl)->code, "CLUSTER_ID_CHANGED"));
    CHECK(!cluster_is_up(r.cl));
    CHECK_STR(cluster_id(r.cl), "fake");
    rig_stop(&r);
}

TESTS(RUN(rebootstraps_when_all_are_gone), RUN(rebootstraps_when_told),
      RUN(rebootstraps_when_nobody_answers), RUN(comes_up_by_canonical_names),
      RUN(another_cluster_is_a_fault))
