/* test_offset_map.c -- the offset map against a plain table of every offset, through growth, cuts, storing and thinning.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "base/alloc.h"
#include "base/rand.h"
#include "mirror/offset_map_int.h"

#include <stdio.h>

#define MOST 6000

static int64_t below(struct rand *r, int64_t n)
{
    return (int64_t)rand_below(r, (uint64_t)n);
}

/* The plain truth: of each source offset the target offset (-1: not copied), and back. */
static int64_t to_target[MOST], to_source[MOST];
static int64_t source_end, target_end;

static void table_clear(void)
{
    for (int i = 0; i < MOST; i++)
        to_target[i] = to_source[i] = -1;
    source_end = target_end = 0;
}

static void put(struct offset_map *m, int64_t source, int64_t target, int64_t n)
{
    offset_map_add(m, source, target, n);
    for (int64_t i = 0; i < n; i++) {
        to_target[source + i] = target + i;
        to_source[target + i] = source + i;
    }
    source_end = source + n;
    target_end = target + n;
}

static void check_side(const struct offset_map *m, bool source)
{
    const int64_t *table = source ? to_target : to_source;
    int64_t end = source ? source_end : target_end, other_end = source ? target_end : source_end;

    for (int64_t at = 0; at < end + 3; at += 1 + at % 3) {
        struct offset_answer a = source ? offset_map_to_target(m, at) : offset_map_to_source(m, at);
        int64_t next = at;

        while (next < end && table[next] < 0)
            next++;
        if (at > end) {
            CHECK_EQ(a.kind, OFFSET_NOT_YET);
            CHECK_EQ(a.short_by, at - end);
        } else if (next >= end) {
            CHECK_EQ(a.kind, OFFSET_END);
            CHECK_EQ(a.offset, other_end);
        } else {
            CHECK_EQ(a.kind, next == at ? OFFSET_EXACT : OFFSET_NEXT);
            CHECK_EQ(a.offset, table[next]);
            CHECK_EQ(a.of, next);
        }
    }
}

static void check_all(const struct offset_map *m)
{
    check_side(m, true);
    check_side(m, false);
}

/* Taken apart and put together, as through the state topic; only some parts are stored yet. */
static struct offset_map *through_the_store(struct offset_map *m, struct rand *dice)
{
    static struct offset_part parts[1000];
    static char bytes[1000][4096];
    struct offset_part p, rest;
    struct offset_map *back;
    struct buf b;
    size_t n = 0;

    while (offset_map_next_part(m, &p))
        offset_map_part_put(m, p.number, 5);
    if (below(dice, 2))
        offset_map_stored(m, 5);
    for (size_t i = 0; i < m->n; i++) {
        memcpy(bytes[n], m->blocks[i].bytes, m->blocks[i].n);
        parts[n] = (struct offset_part){ .number = m->blocks[i].number, .source = m->blocks[i].source,
                                         .target = m->blocks[i].target, .runs = str_of(bytes[n], m->blocks[i].n) };
        n++;
    }
    for (size_t i = 0; i < n; i++)
        parts[i].runs.p = bytes[i];
    buf_init(&b, 1 * MiB);
    offset_map_rest(m, 48 * KiB, &b, &rest);
    back = offset_map_restore(parts, n, &rest, m->source_end, m->target_end);
    buf_fini(&b);
    offset_map_free(&m);
    return back;
}

static void cut_table_source(int64_t at)
{
    for (int64_t s = at; s < MOST; s++) {
        if (to_target[s] >= 0)
            to_source[to_target[s]] = -1;
        to_target[s] = -1;
    }
    source_end = MIN(at, source_end);
}

static void cut_table_target(int64_t at)
{
    if (at >= target_end)
        return;
    for (int64_t t = at; t < MOST; t++) {
        if (to_source[t] >= 0)
            to_target[to_source[t]] = -1;
        to_source[t] = -1;
    }
    target_end = at;
    source_end = 0;
    for (int64_t s = 0; s < MOST; s++)
        if (to_target[s] >= 0)
            source_end = s + 1;
}

/* The n-th record from the end, and how many there are from there on. */
static void check_counts(const struct offset_map *m, struct rand *dice)
{
    int64_t n = 1 + below(dice, 500), left = n, got, t = target_end - 1;

    for (; t >= 0; t--)
        if (to_source[t] >= 0 && --left == 0)
            break;
    CHECK_EQ(offset_map_from_end(m, n, &got), t >= 0);
    if (t < 0)
        return;
    CHECK_EQ(got, t);
    CHECK(offset_map_count_from(m, t, &got));
    CHECK_EQ(got, n);
}

static void story(uint64_t seed)
{
    struct rand dice;
    struct offset_map *m = offset_map_new(0, 0, OFFSET_SURE);
    int64_t kind;

    rand_init(&dice, seed);
    kind = below(&dice, 4); /* 0 plain, 1 regular markers, 2 holes, 3 everything */
    table_clear();
    while (source_end < MOST - 600 && target_end < MOST - 600 && below(&dice, 3000)) {
        int64_t what = below(&dice, 400);

        if (what == 0) {
            int64_t at = source_end - below(&dice, 400);

            cut_table_source(MAX(at, 0));
            offset_map_cut_source(m, source_end);
        } else if (what == 1) {
            int64_t at = target_end - below(&dice, 400);

            at = MAX(at, 0);
            offset_map_cut_target(m, at);
            cut_table_target(at);
            CHECK_EQ(m->source_end, source_end);
        } else if (what == 2) {
            m = through_the_store(m, &dice);
        } else if (what == 3 && target_end) {
            check_counts(m, &dice);
        } else {
            int64_t gap = kind == 0 ? 0 : kind == 1 ? 1 : below(&dice, kind == 2 ? 4 : 12);
            int64_t foreign = kind == 3 && !below(&dice, 5) ? below(&dice, 6) : 0;
            int64_t n = 1 + (kind == 1 ? 3 : below(&dice, kind == 3 ? 150 : 4));

            put(m, source_end + gap, target_end + foreign, n);
        }
    }
    check_all(m);
    m = through_the_store(m, &dice);
    check_all(m);
    offset_map_free(&m);
}

TEST(against_a_plain_table)
{
    for (uint64_t seed = 1; seed <= 15; seed++)
        story(seed);
}

/* Bytes per million source records; printed. */
static size_t measure(const char *what, int64_t run, int64_t gap, bool irregular)
{
    struct offset_map *m = offset_map_new(0, 0, OFFSET_SURE);
    struct offset_map_stats s;
    struct rand dice;
    int64_t target = 0;

    rand_init(&dice, 7);
    for (int64_t at = 0; at < 1000000;) {
        int64_t n = irregular ? 1 + below(&dice, 2 * run - 1) : run;

        offset_map_add(m, at, target, n);
        target += n;
        at += n + (irregular && gap > 1 ? 1 + below(&dice, 2 * gap - 1) : gap);
    }
    offset_map_stats(m, &s);
    printf("%-55s %8zu bytes encoded, %8zu in memory, per 1,000,000 offsets\n", what, s.encoded, s.memory);
    offset_map_free(&m);
    return s.memory;
}

TEST(small)
{
    struct offset_map *m = offset_map_new(0, 0, OFFSET_SURE);
    int64_t target = 0;

    CHECK(measure("no holes", 1000, 0, false) < 500);
    CHECK(measure("a marker after every 10 records", 10, 1, false) < 1000);
    CHECK(measure("a marker after 1 to 19 records", 10, 1, true) < 120 * 1000);
    CHECK(measure("a marker after 1 to 5 records", 3, 1, true) < 300 * 1000);
    CHECK(measure("compacted: runs of 1 to 3, holes of 1 to 3", 2, 2, true) < 300 * 1000);
    CHECK(measure("compacted: runs of 1 to 19, holes of 1 to 39", 10, 20, true) < 160 * 1000);
    for (int64_t at = 0; at < 1000000000; at += 1000000) { /* a drift every million records */
        offset_map_add(m, at, target, 999000);
        target += 999000;
    }
    CHECK(offset_map_memory(m) < 8000);
    CHECK_EQ(offset_map_to_target(m, 500000123).offset, 500 * INT64_C(999000) + 123);
    offset_map_free(&m);
}

TEST(edges)
{
    struct offset_map *m = offset_map_new(100, 7, OFFSET_SURE);
    struct offset_answer a = offset_map_to_target(m, 5);

    CHECK_EQ(a.kind, OFFSET_END);
    CHECK_EQ(a.offset, 7);
    offset_map_add(m, 100, 7, 10);
    a = offset_map_to_target(m, 5);
    CHECK_EQ(a.kind, OFFSET_NEXT);
    CHECK_EQ(a.offset, 7);
    CHECK_EQ(a.of, 100);
    a = offset_map_to_source(m, 3);
    CHECK_EQ(a.kind, OFFSET_NEXT);
    CHECK_EQ(a.offset, 100);
    offset_map_advance(m, 115, 17); /* five markers at the end */
    a = offset_map_to_target(m, 112);
    CHECK_EQ(a.kind, OFFSET_END);
    CHECK_EQ(a.offset, 17);
    a = offset_map_to_target(m, 120);
    CHECK_EQ(a.kind, OFFSET_NOT_YET);
    CHECK_EQ(a.short_by, 5);
    offset_map_add_range(m, 115, 10, 17, 8, OFFSET_UNSEEN);
    a = offset_map_to_target(m, 120);
    CHECK_EQ(a.kind, OFFSET_RANGE);
    CHECK_EQ(a.reason, OFFSET_UNSEEN);
    CHECK_EQ(a.offset, 17);
    CHECK_EQ(a.last, 25);
    offset_map_add(m, 100, 25, 5); /* copied again, later: the newest copy counts */
    CHECK_EQ(offset_map_to_target(m, 102).offset, 27);
    CHECK_EQ(offset_map_to_source(m, 8).kind, OFFSET_NEXT);
    offset_map_free(&m);
}

static struct offset_map *dense(int64_t runs)
{
    struct offset_map *m = offset_map_new(0, 0, OFFSET_SURE);

    for (int64_t i = 0, s = 0, t = 0; i < runs; i++) {
        int64_t n = 1 + i * 7919 % 13;

        offset_map_add(m, s, t, n);
        s += n + 1;
        t += n;
    }
    return m;
}

/* Where the map still says exactly, it says the same; where not, the truth is inside the range. */
TEST(thinning_is_honest)
{
    struct offset_map *m = dense(100000), *full = dense(100000);
    size_t before = offset_map_memory(m);
    int rounds = 0;
    int64_t ranges = 0;

    while (offset_map_thin(m)) {
        rounds++;
        ranges = 0;
        for (int64_t at = 0; at < full->source_end; at += 499) {
            struct offset_answer a = offset_map_to_target(m, at), want = offset_map_to_target(full, at);

            if (a.kind == OFFSET_RANGE) {
                ranges++;
                CHECK_EQ(a.reason, OFFSET_THINNED);
                CHECK(a.offset <= want.offset && want.offset <= a.last);
            } else {
                CHECK_EQ(a.kind, want.kind);
                CHECK_EQ(a.offset, want.offset);
            }
        }
        for (int64_t at = 0; at < full->target_end; at += 499) {
            struct offset_answer a = offset_map_to_source(m, at), want = offset_map_to_source(full, at);

            if (a.kind == OFFSET_RANGE)
                CHECK(a.offset <= want.offset && want.offset <= a.last);
            else
                CHECK_EQ(a.offset, want.offset);
        }
        CHECK(rounds < 100);
    }
    printf("thinned from %zu to %zu bytes in %d rounds\n", before, offset_map_memory(m), rounds);
    CHECK(ranges > 0 && offset_map_memory(m) < before / 10);
    offset_map_free(&m);
    offset_map_free(&full);
}

TEST(forgets_what_expired)
{
    struct offset_map *m = dense(100000);
    struct offset_answer a;
    uint32_t number;
    int gone = 0;

    offset_map_forget(m, m->target_end / 2);
    a = offset_map_to_target(m, 5);
    CHECK_EQ(a.kind, OFFSET_RANGE);
    CHECK_EQ(a.reason, OFFSET_EXPIRED);
    CHECK(a.last <= m->target_end / 2);
    while (offset_map_take_gone(m, &number))
        gone++;
    CHECK(gone > 10);
    offset_map_free(&m);
}

/* A stored block that is missing makes a range of its stretch, and nothing else. */
TEST(a_lost_part_is_a_range)
{
    struct offset_map *m = dense(100000), *back;
    struct offset_part parts[200], rest;
    struct offset_answer a;
    struct buf b;
    size_t n = 0, lost = 20;

    for (size_t i = 0; i < m->n; i++)
        if (i != lost)
            parts[n++] = (struct offset_part){ .number = m->blocks[i].number, .source = m->blocks[i].source,
                                               .target = m->blocks[i].target,
                                               .runs = str_of((char *)m->blocks[i].bytes, m->blocks[i].n) };
    buf_init(&b, 1 * MiB);
    offset_map_rest(m, 0, &b, &rest);
    back = offset_map_restore(parts, n, &rest, m->source_end, m->target_end);
    for (int64_t at = 0; at < m->source_end; at += 31) {
        struct offset_answer want = offset_map_to_target(m, at);
        bool inside = at >= m->blocks[lost].source && at < m->blocks[lost + 1].source;

        a = offset_map_to_target(back, at);
        CHECK_EQ(a.kind, inside ? OFFSET_RANGE : want.kind);
        if (inside)
            CHECK(a.reason == OFFSET_LOST && a.offset <= want.offset && want.offset <= a.last);
        else
            CHECK_EQ(a.offset, want.offset);
    }
    offset_map_free(&back);
    rest.runs = STR("\xff garbage");
    back = offset_map_restore(parts, n, &rest, m->source_end, m->target_end);
    CHECK_EQ(offset_map_to_target(back, m->source_end - 1).kind, OFFSET_RANGE);
    CHECK_EQ(offset_map_to_target(back, 100).kind, offset_map_to_target(m, 100).kind);
    offset_map_free(&back);
    back = offset_map_restore(NULL, 0, NULL, 50, 40);
    CHECK_EQ(offset_map_to_target(back, 10).reason, OFFSET_LOST);
    CHECK_EQ(offset_map_to_target(back, 50).kind, OFFSET_END);
    buf_fini(&b);
    offset_map_free(&back);
    offset_map_free(&m);
}

TESTS(RUN(against_a_plain_table), RUN(small), RUN(edges), RUN(thinning_is_honest), RUN(forgets_what_expired),
      RUN(a_lost_part_is_a_range))
