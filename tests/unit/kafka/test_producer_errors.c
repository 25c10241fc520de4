/* test_producer_errors.c -- refusals, leaders that move or are missing, and hard stops, against fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/kafka/producer_rig.h"

static bool five_held(void *arg)
{
    return ((struct rig *)arg)->g->held >= 5;
}

static bool is_refused(void *arg)
{
    return ((struct rig *)arg)->w[0].refusals > 0;
}

TEST(out_of_order_at_the_head)
{
    struct rig t;
    struct list_node list;
    struct outgoing *o;

    set_up(&t, true);
    put(&t, 0, 5);
    check_all(&t);
    t.g->parts[0].pids[0].seen_n = 1; /* the broker was restarted, and has lost its end */
    t.g->parts[0].pids[0].seen[0].last = 3;
    put(&t, 0, 8);
    CHECK(test_run_until(t.l, is_refused, &t, 5000));
    CHECK_EQ(t.w[0].refused_kerr, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    test_run_ms(t.l, 50);
    CHECK_EQ(t.w[0].refusals, 1);
    CHECK_EQ(t.g->parts[0].batches_n, 5);
    list_init(&list);
    producer_take_back(t.p, &t.w[0].part, &list);
    CHECK_EQ(producer_pending(&t.w[0].part), 0);
    for (int k = 0; k < 8; k++) {
        CHECK(!list_is_empty(&list));
        o = container_of(list_first(&list), struct outgoing, node);
        CHECK_EQ(o->source_base, 2 * (5 + k));
        list_remove(&o->node);
        outgoing_free(&o);
    }
    CHECK(list_is_empty(&list));
    tear_down(&t);
}

TEST(refusals_and_resume)
{
    static const struct {
        int32_t kerr;
    } cases[] = { { KERR_MESSAGE_TOO_LARGE },
                  { KERR_INVALID_RECORD },
                  { KERR_TOPIC_AUTHORIZATION_FAILED },
                  { KERR_INVALID_PRODUCER_EPOCH },
                  { KERR_CORRUPT_MESSAGE },
                  { KERR_POLICY_VIOLATION } };
    struct rig t;

    set_up(&t, true);
    put(&t, 0, 2);
    check_all(&t);
    for (size_t k = 0; k < COUNT(cases); k++) {
        t.w[0].refusals = 0;
        log_fail(&t.g->parts[0], cases[k].kerr, false);
        put(&t, 0, 8);
        put(&t, 1, 8);
        CHECK(test_run_until(t.l, is_refused, &t, 5000));
        CHECK_EQ(t.w[0].refused_kerr, cases[k].kerr);
        test_run_ms(t.l, 20);
        CHECK_EQ(t.w[0].refusals, 1);
        producer_resume(t.p, &t.w[0].part);
        check_all(&t);
    }
    tear_down(&t);
}

TEST(leader_moves)
{
    struct rig t;

    for (int tell = 0; tell < 2; tell++) {
        set_up(&t, tell);
        t.g->tell_leader = tell;
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < PARTS; i++)
                put(&t, i, 10);
            test_run_ms(t.l, round == 0 ? 30 : 3);
            for (int i = 0; i < PARTS; i++) {
                t.g->parts[i].leader = 3 - t.g->parts[i].leader;
                t.g->parts[i].epoch++;
                put(&t, i, 10);
            }
            check_all(&t);
        }
        tear_down(&t);
    }
}

TEST(hard_stop)
{
    struct rig t;
    struct list_node list;

    set_up(&t, true);
    put(&t, 0, 1);
    check_all(&t);
    t.g->hold = true;
    put(&t, 0, 7);
    put(&t, 1, 3);
    CHECK(test_run_until(t.l, five_held, &t, 5000));
    list_init(&list);
    producer_take_back(t.p, &t.w[0].part, &list);
    for (int k = 0; k < 7; k++) {
        struct outgoing *o = container_of(list_first(&list), struct outgoing, node);

        CHECK_EQ(o->source_base, 2 * (1 + k));
        CHECK_EQ(o->unsure, k < 5);
        list_remove(&o->node);
        outgoing_free(&o);
    }
    CHECK(list_is_empty(&list));
    t.g->hold = false;
    test_run_ms(t.l, 30);
    CHECK_EQ(t.w[0].acked, 1);
    tear_down(&t);
}

static bool has_waited(void *arg)
{
    return ((struct rig *)arg)->w[0].waits > 0;
}

TEST(no_leader_and_denied)
{
    struct rig t;

    set_up(&t, true);
    t.g->parts[0].leader = -1;
    put(&t, 0, 3);
    put(&t, 1, 3);
    CHECK(test_run_until(t.l, has_waited, &t, 5000));
    CHECK_EQ(t.w[1].acked, 3);
    t.g->parts[0].leader = 2;
    t.g->parts[0].epoch++;
    check_all(&t);
    tear_down(&t);

    set_up(&t, true);
    t.g->topic_error = KERR_TOPIC_AUTHORIZATION_FAILED;
    put(&t, 0, 3);
    CHECK(test_run_until(t.l, is_refused, &t, 5000));
    CHECK_EQ(t.w[0].refused_kerr, KERR_TOPIC_AUTHORIZATION_FAILED);
    tear_down(&t);
}

TESTS(RUN(out_of_order_at_the_head), RUN(refusals_and_resume), RUN(leader_moves), RUN(hard_stop),
      RUN(no_leader_and_denied))
