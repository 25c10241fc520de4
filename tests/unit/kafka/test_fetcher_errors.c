/* test_fetcher_errors.c -- leaders, errors, truncation and topics that come and go, against fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/kafka/fetcher_rig.h"

TEST(leader_moves)
{
    struct rig t;

    for (int tell = 0; tell < 2; tell++) {
        set_up(&t, tell);
        t.g->tell_leader = tell;
        for (int i = 0; i < 8; i++)
            add(&t, i);
        for (int round = 0; round < 6; round++) {
            for (int i = 0; i < 8; i++)
                feed(&t, i, 10, 200);
            test_run_ms(t.l, 2);
            for (int i = round % 3; i < 8; i += 2) {
                t.g->parts[i].leader = 3 - t.g->parts[i].leader;
                t.g->parts[i].epoch++;
            }
            for (int i = 0; i < 8; i++)
                feed(&t, i, 10, 200);
            check_read(&t);
        }
        for (int i = 0; i < 8; i++)
            CHECK_EQ(t.t[i].errors, 0);
        tear_down(&t);
    }
}

static void fetch_fail(struct log_part *p, int32_t kerr, int times)
{
    while (times-- > 0)
        p->fetch_errors[p->fetch_errors_n++] = kerr;
}

static bool has_error(void *arg)
{
    return ((struct rig *)arg)->t[0].errors > 0;
}

TEST(errors)
{
    static const struct {
        int32_t kerr;
        int times;
    } told[] = { { KERR_OFFSET_NOT_AVAILABLE, 3 },       { KERR_TOPIC_AUTHORIZATION_FAILED, 1 },
                 { KERR_UNKNOWN_TOPIC_OR_PARTITION, 1 }, { KERR_UNKNOWN_TOPIC_ID, 1 },
                 { KERR_OFFSET_OUT_OF_RANGE, 1 },        { KERR_CORRUPT_MESSAGE, 1 } };
    struct rig t;

    set_up(&t, true);
    add(&t, 0);
    add(&t, 1);
    for (size_t k = 0; k < COUNT(told); k++) {
        t.t[0].errors = 0;
        fetch_fail(&t.g->parts[0], told[k].kerr, told[k].times);
        feed(&t, 0, 1, 100);
        CHECK(test_run_until(t.l, has_error, &t, 5000));
        CHECK_EQ(t.t[0].error, told[k].kerr);
        feed(&t, 1, 2, 100);
        test_run_ms(t.l, 60);
        CHECK_EQ(t.t[0].errors, 1);
        CHECK(t.t[0].next < t.g->parts[0].end); /* it rests until resumed; the other one goes on */
        CHECK_EQ(t.t[1].next, t.g->parts[1].end);
        fetcher_resume(t.f, &t.t[0].part, 10);
        check_read(&t);
    }
    t.t[0].errors = 0;
    fetch_fail(&t.g->parts[0], KERR_UNKNOWN_LEADER_EPOCH, 2);
    fetch_fail(&t.g->parts[1], KERR_KAFKA_STORAGE_ERROR, 2);
    feed(&t, 0, 2, 100);
    feed(&t, 1, 2, 100);
    check_read(&t);
    CHECK_EQ(t.t[0].errors + t.t[1].errors, 0); /* passed by themselves */
    tear_down(&t);
}

TEST(truncation_and_aborted)
{
    struct rig t;

    set_up(&t, true);
    t.g->fetch->aborted = true;
    add(&t, 0);
    feed(&t, 0, 5, 100);
    check_read(&t);
    CHECK_EQ(t.t[0].aborted_n, 3);
    t.g->fetch->diverge_at = 4;
    feed(&t, 0, 5, 100);
    test_run_ms(t.l, 150);
    CHECK_EQ(t.t[0].diverging_end, 4);
    CHECK_EQ(t.t[0].next, 10); /* it rests */
    t.t[0].next = t.t[0].part.offset = 4;
    fetcher_resume(t.f, &t.t[0].part, 0);
    check_read(&t);
    tear_down(&t);
}

TEST(near_replica)
{
    struct rig t;

    set_up(&t, true);
    t.g->fetch->preferred = 2;
    for (int i = 0; i < 4; i++) {
        add(&t, i);
        feed(&t, i, 10, 300);
    }
    check_read(&t);
    CHECK(t.g->fetch->over[1] > 0);
    CHECK_EQ(t.t[0].part.preferred, 2);
    /* The follower says that it does not have it: the leader is asked, nobody is told. */
    t.g->fetch->preferred = 0;
    for (int i = 0; i < 4; i++)
        feed(&t, i, 10, 300);
    check_read(&t);
    CHECK_EQ(t.t[0].errors, 0);
    CHECK_EQ(t.t[0].part.preferred, -1);
    t.g->fetch->preferred = 2;
    for (int i = 0; i < 4; i++)
        feed(&t, i, 10, 300);
    check_read(&t);
    /* And when it dies, its readers go back. */
    t.g->fetch->preferred = 0;
    fake_die(&t.g->brokers[1]);
    for (int i = 0; i < 4; i++)
        feed(&t, i, 10, 300);
    check_read(&t);
    tear_down(&t);
}

TEST(topic_without_home)
{
    struct rig t;

    set_up(&t, true);
    t.g->topic_error = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    add(&t, 0);
    CHECK(test_run_until(t.l, has_error, &t, 5000));
    CHECK_EQ(t.t[0].error, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    t.g->topic_error = 0;
    feed(&t, 0, 3, 100);
    fetcher_resume(t.f, &t.t[0].part, 10);
    check_read(&t);
    tear_down(&t);
}

TEST(created_anew)
{
    struct rig t;

    set_up(&t, true);
    add(&t, 0);
    feed(&t, 0, 3, 100);
    check_read(&t);
    t.g->id.b[0] = 0x18;
    CHECK(test_run_until(t.l, has_error, &t, 5000));
    test_run_ms(t.l, 50);
    CHECK_EQ(t.topic->id.b[0], 0x18);
    feed(&t, 0, 3, 100);
    fetcher_resume(t.f, &t.t[0].part, 0);
    check_read(&t);
    tear_down(&t);
}

TESTS(RUN(leader_moves), RUN(errors), RUN(truncation_and_aborted), RUN(near_replica),
      RUN(topic_without_home), RUN(created_anew))
