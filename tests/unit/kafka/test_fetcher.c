/* test_fetcher.c -- sessions, sizes and budget of the fetcher, against fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/kafka/fetcher_rig.h"

TEST(two_brokers)
{
    struct rig t;

    set_up(&t, true);
    for (int i = 0; i < PARTS; i++) {
        t.g->parts[i].leader = 1 + i % 2;
        feed(&t, i, 20 + i, 1000);
        add(&t, i);
    }
    check_read(&t);
    CHECK_EQ(t.t[0].error, 0);
    CHECK(t.g->fetch->over[0] > 0 && t.g->fetch->over[1] > 0);
    CHECK(t.g->fetch->version >= 13);
    CHECK_EQ(fetcher_counts(t.f)->session_restarts, 0);
    CHECK_EQ(t.g->fetch->fulls, 2);
    tear_down(&t);
}

TEST(session_names_what_changed)
{
    struct rig t;
    uint32_t listed, requests;

    set_up(&t, true);
    for (int i = 0; i < PARTS; i++)
        add(&t, i);
    test_run_ms(t.l, 50);
    CHECK_EQ(t.g->fetch->listed, PARTS);
    for (int k = 0; k < 10; k++) {
        feed(&t, k, 1, 100);
        check_read(&t);
    }
    test_run_ms(t.l, 150);
    listed = t.g->fetch->listed - PARTS;
    requests = t.g->fetch->requests;
    CHECK_EQ(listed, 10); /* the new offset of each, once */
    CHECK_EQ(t.g->fetch->fulls, 1);
    /* Idle: no more than a poll per fetch.max.wait.ms. */
    test_run_ms(t.l, 300);
    CHECK(t.g->fetch->requests - requests <= 4);
    CHECK_EQ(t.g->fetch->max_wait_ms, 100);
    CHECK_EQ(t.t[39].high_watermark, 0);
    /* The log's end is told without records. */
    CHECK(t.t[39].calls > 0);
    tear_down(&t);
}

static bool has_kept(void *arg)
{
    return ((struct rig *)arg)->t[0].kept.b != NULL;
}

TEST(rest_and_removal_are_forgotten)
{
    struct rig t;
    int calls;

    set_up(&t, true);
    for (int i = 0; i < 3; i++)
        add(&t, i);
    t.t[0].keep = true;
    feed(&t, 0, 3, 100);
    CHECK(test_run_until(t.l, has_kept, &t, 5000));
    test_run_ms(t.l, 120);
    CHECK_EQ(t.g->fetch->forgotten, 1); /* it rests */
    CHECK(t.g->fetch->max_wait_ms <= 50);
    calls = t.t[0].calls;
    feed(&t, 0, 3, 100);
    test_run_ms(t.l, 120);
    CHECK_EQ(t.t[0].calls, calls);
    slice_drop(&t.t[0].kept);
    t.t[0].keep = false;
    fetcher_resume(t.f, &t.t[0].part, 0);
    check_read(&t);
    /* Gone, and back within one turn: forgotten first, then added. */
    fetcher_remove(t.f, &t.t[1].part);
    fetcher_add(t.f, &t.t[1].part);
    fetcher_remove(t.f, &t.t[2].part);
    feed(&t, 1, 5, 100);
    feed(&t, 2, 5, 100);
    check_read(&t);
    CHECK_EQ(t.t[2].next, 0);
    CHECK_EQ(t.g->fetch->forgotten, 3);
    CHECK_EQ(t.g->fetch->fulls, 1);
    tear_down(&t);
}

struct restarts {
    struct rig *t;
    uint64_t want;
};

static bool has_restarted(void *arg)
{
    const struct restarts *r = arg;

    return fetcher_counts(r->t->f)->session_restarts >= r->want &&
           (uint64_t)r->t->g->fetch->fulls >= 1 + r->want;
}

TEST(session_errors)
{
    static const int32_t errors[] = { KERR_FETCH_SESSION_ID_NOT_FOUND,
                                      KERR_INVALID_FETCH_SESSION_EPOCH,
                                      KERR_FETCH_SESSION_TOPIC_ID_ERROR,
                                      KERR_UNKNOWN_SERVER_ERROR };
    struct rig t;

    set_up(&t, true);
    for (int i = 0; i < 5; i++)
        add(&t, i);
    test_run_ms(t.l, 50);
    for (size_t k = 0; k < COUNT(errors); k++) {
        t.g->fetch->error_next = errors[k];
        for (int i = 0; i < 5; i++)
            feed(&t, i, 3, 500);
        check_read(&t);
        CHECK(test_run_until(t.l, has_restarted, &(struct restarts){ &t, k + 1 }, 10000));
    }
    CHECK_EQ(fetcher_counts(t.f)->session_restarts, COUNT(errors));
    CHECK_EQ(t.g->fetch->fulls, 1 + COUNT(errors));
    for (int i = 0; i < 5; i++)
        CHECK_EQ(t.t[i].errors, 0);
    tear_down(&t);
}

TEST(without_sessions)
{
    struct rig t;

    for (int k = 0; k < 2; k++) {
        set_up(&t, false);
        t.g->fetch->refuse_sessions = true;
        t.g->brokers[0].max[API_FETCH] = k ? 4 : 0;
        for (int i = 0; i < PARTS; i++) {
            add(&t, i);
            feed(&t, i, 3, 400);
        }
        check_read(&t);
        for (int i = 0; i < PARTS; i++)
            feed(&t, i, 3, 400);
        check_read(&t);
        CHECK_EQ(t.g->fetch->fulls, t.g->fetch->requests);
        CHECK_EQ(t.g->fetch->version, k ? 4 : 12);
        tear_down(&t);
    }
}

TEST(budget)
{
    struct rig t;
    uint32_t requests;

    set_up(&t, true);
    pool_free(&t.pool);
    t.pool = pool_new(1 * MiB, 1 * MiB);
    fetcher_free(&t.f);
    t.f = fetcher_new(t.cluster, t.pool, 0);
    for (int i = 0; i < 4; i++) {
        t.t[i].keep = i == 0;
        feed(&t, i, 200, 20000);
    }
    add(&t, 0);
    CHECK(test_run_until(t.l, has_kept, &t, 5000));
    for (int i = 1; i < 4; i++)
        add(&t, i);
    /* Something small may still fit; something usual does not. */
    test_run_ms(t.l, 50);
    requests = t.g->fetch->requests;
    test_run_ms(t.l, 50);
    CHECK(pool_used(t.pool) <= 2 * MiB);
    (void)requests;
    slice_drop(&t.t[0].kept);
    t.t[0].keep = false;
    fetcher_resume(t.f, &t.t[0].part, 0);
    check_read(&t);
    CHECK(pool_peak(t.pool) <= 2 * MiB);
    tear_down(&t);
}

TEST(huge_batches_and_small_caps)
{
    struct rig t;

    set_up(&t, true);
    t.config.max_partition_fetch_bytes = 40000;
    for (int i = 0; i < 6; i++) {
        feed(&t, i, 4, i % 2 ? 100000 : 3000000);
        feed(&t, i, 30, 2000);
        add(&t, i);
    }
    check_read(&t);
    tear_down(&t);
}

TEST(min_bytes_is_clamped)
{
    struct rig t;

    set_up(&t, true);
    t.config.fetch_min_bytes = 30 * MiB;
    add(&t, 0);
    test_run_ms(t.l, 60);
    CHECK(t.g->fetch->min_bytes <= t.g->fetch->max_bytes);
    tear_down(&t);
}

TEST(cut_and_come_again)
{
    struct rig t;

    set_up(&t, true);
    for (int i = 0; i < PARTS; i++)
        add(&t, i);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < PARTS; i++)
            feed(&t, i, 5, 700);
        test_run_ms(t.l, round);
        for (int k = 0; k < FAKE_CONNS; k++)
            fake_hang_up(&t.g->brokers[0].conns[k]);
        check_read(&t);
    }
    for (int i = 0; i < PARTS; i++)
        CHECK_EQ(t.t[i].errors, 0);
    tear_down(&t);
}

TESTS(RUN(two_brokers), RUN(session_names_what_changed), RUN(rest_and_removal_are_forgotten),
      RUN(session_errors), RUN(without_sessions), RUN(budget), RUN(huge_batches_and_small_caps),
      RUN(min_bytes_is_clamped), RUN(cut_and_come_again))
