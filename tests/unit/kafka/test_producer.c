/* test_producer.c -- order through retries and windows, and all faults at once, against fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/kafka/producer_rig.h"

TEST(order_and_packing)
{
    struct rig t;

    set_up(&t, true);
    for (int i = 0; i < PARTS; i++)
        put(&t, i, 200);
    check_all(&t);
    CHECK_EQ(producer_counts(t.p)->batches, 800);
    CHECK_EQ(producer_counts(t.p)->retries, 0);
    /* One batch of each partition per request. */
    CHECK(producer_counts(t.p)->requests <= 250);
    CHECK_EQ(t.g->produce_version, 13);
    tear_down(&t);
}

static bool one_held(void *arg)
{
    return ((struct rig *)arg)->g->held >= 1;
}

static bool five_held(void *arg)
{
    return ((struct rig *)arg)->g->held >= 5;
}

TEST(first_batch_goes_alone)
{
    struct rig t;

    set_up(&t, true);
    t.g->hold = true;
    put(&t, 0, 10);
    CHECK(test_run_until(t.l, one_held, &t, 5000));
    test_run_ms(t.l, 30);
    CHECK_EQ(t.g->held, 1);
    CHECK_EQ(t.g->parts[0].batches_n, 1);
    t.g->hold = false;
    for (int k = 0; k < FAKE_CONNS; k++)
        fake_hang_up(
            &t.g->brokers[0].conns[k]); /* the answer is lost: the first goes again, alone */
    check_all(&t);
    /* Another producer id begins alone too. */
    t.pid = 78;
    t.w[0].part.producer_id = 77;
    t.g->held = 0;
    t.g->hold = true;
    t.g->parts[0].pids_n = 0;
    put(&t, 0, 5);
    CHECK(test_run_until(t.l, one_held, &t, 5000));
    test_run_ms(t.l, 30);
    CHECK_EQ(t.g->held, 1);
    tear_down(&t); /* a hard stop with a request on its way */
}

TEST(retriable_in_the_middle)
{
    struct rig t;
    static const int32_t errors[] = { KERR_NOT_ENOUGH_REPLICAS, KERR_REQUEST_TIMED_OUT,
                                      KERR_LEADER_NOT_AVAILABLE,
                                      KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND };

    set_up(&t, true);
    put(&t, 0, 3);
    check_all(&t);
    for (size_t k = 0; k < COUNT(errors); k++) {
        log_fail(&t.g->parts[0], errors[k], k % 2); /* odd ones are appended all the same */
        log_fail(&t.g->parts[0], errors[k], false);
        put(&t, 0, 20);
        put(&t, 1, 20);
        check_all(&t);
    }
    CHECK_EQ(t.w[0].refusals, 0);
    CHECK(t.w[0].waits > 0);
    CHECK(producer_counts(t.p)->retries > 0);
    tear_down(&t);
}

TEST(cut_with_five_in_flight)
{
    struct rig t;

    set_up(&t, true);
    put(&t, 0, 1);
    check_all(&t);
    t.g->hold = true;
    put(&t, 0, 12);
    CHECK(test_run_until(t.l, five_held, &t, 5000));
    test_run_ms(t.l, 20);
    CHECK_EQ(t.g->held, 5);
    t.g->hold = false;
    for (int k = 0; k < FAKE_CONNS; k++)
        fake_hang_up(&t.g->brokers[0].conns[k]);
    check_all(&t); /* the broker knows all five and says so */
    CHECK_EQ(t.w[0].refusals, 0);
    tear_down(&t);
}

TEST(cut_in_between)
{
    struct rig t;

    set_up(&t, true);
    for (int round = 0; round < 12; round++) {
        t.g->cut_in = 1 + round % 6;
        t.g->cut_appends = round % 2;
        for (int i = 0; i < PARTS; i++)
            put(&t, i, 15);
        check_all(&t);
    }
    tear_down(&t);
}

static bool is_refused(void *arg)
{
    return ((struct rig *)arg)->w[0].refusals > 0;
}

TEST(careful)
{
    struct rig t;
    struct list_node list;

    set_up(&t, true);
    t.w[0].careful = true;
    put(&t, 0, 5);
    check_all(&t);
    log_fail(&t.g->parts[0], KERR_NOT_ENOUGH_REPLICAS, false); /* definite: sent again */
    put(&t, 0, 1);
    check_all(&t);
    t.g->cut_in = 1;
    t.g->cut_appends = true;
    put(&t, 0, 4);
    CHECK(test_run_until(t.l, is_refused, &t, 5000));
    CHECK_EQ(t.w[0].refused_kerr, KERR_NETWORK_EXCEPTION);
    CHECK(t.w[0].refused->unsure);
    test_run_ms(t.l, 30);
    CHECK_EQ(t.g->parts[0].produced, 8); /* not sent again */
    list_init(&list);
    producer_take_back(t.p, &t.w[0].part, &list);
    drop_all(&list);
    tear_down(&t);
}

/* What may be in the log already is not sent again by itself, however many were on their way. */
TEST(asks)
{
    struct rig t;
    struct list_node list;

    set_up(&t, true);
    t.w[0].asks = true;
    put(&t, 0, 5);
    check_all(&t);
    log_fail(&t.g->parts[0], KERR_NOT_ENOUGH_REPLICAS, false);
    put(&t, 0, 1);
    check_all(&t);
    t.g->cut_in = 1;
    t.g->cut_appends = true;
    put(&t, 0, 4);
    CHECK(test_run_until(t.l, is_refused, &t, 5000));
    CHECK(t.w[0].refused->unsure);
    test_run_ms(t.l, 30);
    CHECK_EQ(t.w[0].refusals, 1);
    list_init(&list);
    producer_take_back(t.p, &t.w[0].part, &list);
    drop_all(&list);
    tear_down(&t);
}

static bool any_held(void *arg)
{
    return ((struct rig *)arg)->g->held > 0;
}

/* Who was stopped for longer than its session sends nothing of what it had queued. */
TEST(lease_over)
{
    struct rig t;
    struct lease lease = { .until_ms = INT64_MAX };

    set_up(&t, true);
    producer_set_lease(t.p, &lease);
    put(&t, 0, 20);
    check_all(&t);
    lease_set(&lease, loop_clock_now_ms(t.l));
    t.g->hold = true;
    put(&t, 0, 20);
    CHECK(!test_run_until(t.l, any_held, &t, 300));
    CHECK_EQ(producer_counts(t.p)->retries, 0);
    lease_set(&lease, INT64_MAX);
    CHECK(test_run_until(t.l, any_held, &t, 5000));
    t.g->hold = false;
    for (int k = 0; k < FAKE_CONNS; k++)
        fake_hang_up(&t.g->brokers[0].conns[k]);
    check_all(&t);
    tear_down(&t);
}

TEST(later_one_succeeds_first)
{
    struct rig t;

    set_up(&t, true);
    put(&t, 0, 2);
    check_all(&t);
    /* Appended, but the broker says it is not sure; those behind it succeed. */
    log_fail(&t.g->parts[0], KERR_REQUEST_TIMED_OUT, true);
    put(&t, 0, 5);
    check_all(&t); /* on_acked checks the order */
    tear_down(&t);
}

TEST(versions)
{
    struct rig t;
    static const int offered[] = { 7, 8, 9, 10, 11, 12, 13 };

    for (size_t k = 0; k < COUNT(offered); k++) {
        for (int with_id = 0; with_id < 2; with_id++) {
            set_up(&t, with_id);
            t.g->brokers[0].max[API_PRODUCE] = offered[k];
            for (int i = 0; i < PARTS; i++)
                put(&t, i, 3);
            check_all(&t);
            CHECK_EQ(t.g->produce_version, with_id ? offered[k] : MIN(offered[k], 12));
            tear_down(&t);
        }
    }
}

/* Faults of all kinds at random, from a fixed seed: the log ends exact. */
TEST(storm)
{
    static const int32_t errors[] = { KERR_NOT_ENOUGH_REPLICAS, KERR_REQUEST_TIMED_OUT,
                                      KERR_LEADER_NOT_AVAILABLE,
                                      KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                                      KERR_KAFKA_STORAGE_ERROR };
    struct rig t;
    struct rand r;

    rand_init(&r, 20);
    set_up(&t, true);
    t.g->tell_leader = true;
    for (int round = 0; round < 60; round++) {
        int i = (int)rand_below(&r, PARTS);

        for (int k = 0; k < PARTS; k++)
            put(&t, k, (int)rand_below(&r, 12));
        switch (rand_below(&r, 4)) {
        case 0:
            log_fail(&t.g->parts[i], errors[rand_below(&r, COUNT(errors))], rand_below(&r, 2));
            break;
        case 1:
            t.g->cut_in = 1 + (int)rand_below(&r, 6);
            t.g->cut_appends = rand_below(&r, 2);
            break;
        case 2:
            t.g->parts[i].leader = 3 - t.g->parts[i].leader;
            t.g->parts[i].epoch++;
            break;
        default:
            break;
        }
        test_run_ms(t.l, (int64_t)rand_below(&r, 8));
    }
    check_all(&t);
    for (int i = 0; i < PARTS; i++)
        CHECK_EQ(t.w[i].refusals, 0);
    tear_down(&t);
}

TESTS(RUN(order_and_packing), RUN(first_batch_goes_alone), RUN(retriable_in_the_middle),
      RUN(cut_with_five_in_flight), RUN(cut_in_between), RUN(careful), RUN(asks),
      RUN(lease_over), RUN(later_one_succeeds_first), RUN(versions), RUN(storm))
