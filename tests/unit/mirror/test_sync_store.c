/* test_sync_store.c -- the syncs that MirrorMaker 2 remembers, and its translations.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/sync_store.h"

#include "unit/test.h"

static struct sync_store s;

static void put_all(int64_t from, int64_t to, int64_t step)
{
    for (int64_t at = from; at <= to; at += step)
        sync_store_put(&s, at, at);
}

static void check_kept(const int64_t *want, size_t n)
{
    size_t found = 0;

    for (int k = 0; k < SYNC_STORE_SLOTS; k++) {
        if (k && s.slots[k].id == s.slots[k - 1].id)
            continue;
        CHECK(found < n);
        CHECK_EQ(s.slots[k].upstream, want[found]);
        found++;
    }
    CHECK_EQ(found, n);
}
#define KEPT(...)                                                                                                      \
    check_kept((const int64_t[]){ __VA_ARGS__ }, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

TEST(steady)
{
    s = (struct sync_store){ 0 };
    put_all(0, 1000, 10);
    KEPT(1000, 990, 960, 900, 840, 720, 480, 0);
    put_all(1000, 10000, 10);
    KEPT(10000, 9990, 9960, 9900, 9840, 9600, 9120, 8640, 7680, 3840, 0);
    s = (struct sync_store){ 0 };
    put_all(0, 19, 1);
    KEPT(19, 18, 16, 12, 8, 0);
    s = (struct sync_store){ 0 };
    put_all(0, 1000000, 100);
    KEPT(1000000, 999900, 999800, 999600, 999200, 998400, 995200, 992000, 985600, 972800, 921600, 819200, 614400,
         409600, 0);
}

TEST(translations)
{
    s = (struct sync_store){ 0 };
    CHECK_EQ(sync_store_translate(&s, 5), -1);
    put_all(100, 300, 100);
    CHECK_EQ(sync_store_translate(&s, 250), 201);
    CHECK_EQ(sync_store_translate(&s, 99), -1);
    CHECK_EQ(sync_store_translate(&s, 300), 300);
    s = (struct sync_store){ 0 };
    put_all(175, 175, 1);
    put_all(275, 475, 100);
    KEPT(475, 375, 175);
    CHECK_EQ(sync_store_translate(&s, 250), 176);
    CHECK_EQ(sync_store_translate(&s, 370), 176);
    CHECK_EQ(sync_store_translate(&s, 400), 376);
}

TEST(rewind_and_after)
{
    s = (struct sync_store){ 0 };
    put_all(0, 100, 10);
    sync_store_put(&s, 11, 4);
    KEPT(11);
    sync_store_put(&s, 12, 5);
    CHECK_EQ(sync_store_translate(&s, 13), 6);
    for (int64_t i = 13; i <= 17; i++)
        sync_store_put(&s, i, i - 7);
    KEPT(17, 16, 15, 11);
    CHECK_EQ(sync_store_translate(&s, 13), 5);
}

TEST(transactions) /* as recorded from release 4.3.0 */
{
    static const int64_t pairs[][2] = { { 0, 0 }, { 6, 5 }, { 12, 10 }, { 18, 15 }, { 24, 20 }, { 30, 25 } };

    s = (struct sync_store){ 0 };
    for (size_t i = 0; i < COUNT(pairs); i++)
        sync_store_put(&s, pairs[i][0], pairs[i][1]);
    KEPT(30, 24, 12, 0);
    CHECK_EQ(sync_store_translate(&s, 20), 11);
}

TESTS(RUN(steady), RUN(translations), RUN(rewind_and_after), RUN(transactions))
