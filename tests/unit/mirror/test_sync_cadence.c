/* test_sync_cadence.c -- offset syncs come when MirrorMaker 2's come.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/sync_cadence.h"

#include "unit/test.h"

static struct sync_cadence c;
static struct sync_point due[SYNC_POINTS_MAX];

static int64_t now_ms;

static int32_t at(int64_t ms, int64_t lag, int64_t source, int64_t target, int64_t count)
{
    return sync_cadence_take(&c, lag, ms, &(struct sync_run){ source, target, count }, due);
}

/* Far from the one before. */
static int32_t take(int64_t lag, int64_t source, int64_t target, int64_t count)
{
    return at(now_ms += SYNC_WINDOW_MS, lag, source, target, count);
}

TEST(steady_stream)
{
    c = (struct sync_cadence){ 0 };
    for (int64_t i = 0; i < 1000; i++) { /* one by one: 0, 101, 202, … */
        int32_t n = take(100, i + 5, i, 1);

        CHECK_EQ(n, i % 101 == 0);
        if (n) {
            CHECK_EQ(due[0].upstream, i + 5);
            CHECK_EQ(due[0].downstream, i);
        }
    }
    CHECK(sync_cadence_flush(&c, due)); /* the tail, once */
    CHECK_EQ(due[0].upstream, 1004);
    CHECK_EQ(due[0].downstream, 999);
    CHECK(!sync_cadence_flush(&c, due));
    CHECK_EQ(take(100, 1005, 1000, 1), 0);
}

TEST(lag_of_50_after_102)
{
    c = (struct sync_cadence){ .begun = true, .up = 102, .down = 102, .synced = 102 };
    CHECK_EQ(take(50, 103, 103, 50), 0);
    CHECK_EQ(take(50, 153, 153, 1), 1);
}

/* MM2-T095, T096: its own tables; what it remembers without a reset between is no matter here. */
TEST(as_mirror_maker)
{
    static const struct {
        int64_t up, down;
        bool due; /* with a lag of 50; with 0 all are */
    } cases[] = { { 0, 100, true },  { 2, 102, true },  { 3, 152, false }, { 4, 153, true }, { 5, 154, false },
                  { 6, 203, false }, { 7, 204, true },  { 2, 206, true },  { 3, 207, false }, { 4, 3, true },
                  { 5, 4, false },   { 7, 6, true },    { 7, 6, true },    { 10, 57, true },  { 11, 58, false } };

    for (int64_t lag = 0; lag <= 50; lag += 50) {
        c = (struct sync_cadence){ 0 };
        for (size_t i = 0; i < COUNT(cases); i++)
            CHECK_EQ(take(lag, cases[i].up, cases[i].down, 1), cases[i].due || lag == 0);
    }
}

TEST(a_long_run_has_first_and_newest)
{
    c = (struct sync_cadence){ 0 };
    CHECK_EQ(take(100, 1000, 500, 350), 2);
    CHECK_EQ(due[0].downstream, 500);
    CHECK_EQ(due[1].downstream, 500 + 303);
    CHECK_EQ(due[1].upstream, 1000 + 303);
    CHECK_EQ(take(100, 1350, 850, 54), 0);
    CHECK_EQ(take(100, 1404, 904, 1), 1);
    CHECK_EQ(take(100, 0, 0, 0), 0);
}

TEST(gaps_and_ways_back)
{
    c = (struct sync_cadence){ 0 };
    CHECK_EQ(take(100, 0, 0, 5), 1);
    CHECK_EQ(take(100, 6, 5, 5), 1); /* a marker at 5 */
    CHECK_EQ(due[0].upstream, 6);
    CHECK_EQ(due[0].downstream, 5);
    CHECK_EQ(take(100, 3, 10, 2), 1); /* the source began again */
    CHECK_EQ(take(100, 5, 2, 1), 1);  /* the target did */
}

TEST(every_record)
{
    c = (struct sync_cadence){ 0 };
    CHECK_EQ(take(0, 0, 0, 1), 1);
    CHECK_EQ(take(0, 1, 1, 1), 1);
    CHECK_EQ(take(-5, 2, 2, 10), 2);
    CHECK_EQ(due[1].downstream, 11);
    CHECK(!sync_cadence_flush(&c, due));
    CHECK_EQ(take(INT64_MAX, 12, 12, 1000), 0);
}

TEST(ten_in_a_window)
{
    int32_t n = 0;

    c = (struct sync_cadence){ 0 };
    for (int64_t i = 0; i < 100; i++) /* a hundred large batches at once */
        n += at(5000 + i % 2, 100, 1000 * i, 1000 * i, 1000);
    CHECK_EQ(n, SYNC_WINDOW_MAX);
    CHECK(c.late);
    CHECK_EQ(at(5050, 100, 100500, 100000, 5), 0); /* a gap waits too */
    CHECK_EQ(at(5051, 100, 100505, 90000, 5), 1);  /* the way back does not */
    CHECK_EQ(due[0].downstream, 90000);
    CHECK_EQ(at(5100, 100, 100510, 90005, 1000), 1); /* the next window */
    CHECK_EQ(due[0].downstream, 90000 + 9 * 101);
    CHECK_EQ(due[0].upstream, 100505 + 9 * 101);
    CHECK_EQ(at(5101, 100, 101510, 91005, 2000), 1);
    for (int32_t i = 0; i < 10; i++)
        at(5102, 100, 110000 + 2 * i, 110000 + i, 1);
    CHECK_EQ(at(5103, 100, 110021, 110010, 10), 0);
    CHECK(sync_cadence_flush(&c, due)); /* held back, not lost */
    CHECK_EQ(due[0].upstream, 110030);
    CHECK_EQ(due[0].downstream, 110019);
    CHECK_EQ(at(4000, 100, 110200, 110020, 1), 1); /* a clock that goes back */
}

TESTS(RUN(as_mirror_maker), RUN(ten_in_a_window), RUN(steady_stream), RUN(lag_of_50_after_102), RUN(a_long_run_has_first_and_newest),
      RUN(gaps_and_ways_back), RUN(every_record))
