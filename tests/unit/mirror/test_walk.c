/* test_walk.c -- each rule of the decision per batch, and the read-committed algorithm.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "base/alloc.h"
#include "mirror/walk.h"
#include "wire/prim.h"

/* A fetch answer under construction. */
static char bytes[64 * 1024];
static size_t used;

static const struct batch plain = { .base_offset = 100, .magic = 2, .last_offset_delta = 4, .count = 5,
                                    .base_timestamp = 1000, .max_timestamp = 1004, .producer_id = -1,
                                    .producer_epoch = -1, .base_sequence = -1 };

static void add(struct batch b, struct str payload)
{
    unsigned char header[BATCH_HEADER_SIZE];

    batch_seal(&b, payload, header);
    store_u64(header, (uint64_t)b.base_offset);
    memcpy(bytes + used, header, sizeof(header));
    memcpy(bytes + used + sizeof(header), payload.p, payload.n);
    used += sizeof(header) + payload.n;
}

/* A control record: version 0 and the type, in a batch of one. */
static void add_marker(int64_t offset, int64_t producer_id, char type)
{
    struct batch b = plain;
    char record[] = { 0x16, 0, 0, 0, 0x08, 0, 0, 0, type, 0x02, 0, 0 };

    b.base_offset = offset;
    b.last_offset_delta = 0;
    b.count = 1;
    b.producer_id = producer_id;
    b.attributes = BATCH_CONTROL | BATCH_TRANSACTIONAL;
    add(b, str_of(record, sizeof(record)));
}

static struct walk_aborted list[8];

static struct walk_aborted get(const void *l, int32_t i)
{
    return ((const struct walk_aborted *)l)[i];
}

static struct walk walk_of(int64_t start)
{
    return (struct walk){ .bytes = str_of(bytes, used), .start = start, .check_crcs = true,
                          .keep_append_time = true, .aborted_list = list, .aborted_get = get };
}

TEST(rules)
{
    static const struct {
        const char *name;
        int16_t attributes;
        int32_t delta, count;
        int64_t start, pid;
        enum walk_action want;
    } cases[] = {
        { "dense, no producer: R0", 0, 4, 5, 100, -1, WALK_RELAY },
        { "idempotent: R1", 0, 4, 5, 100, 7, WALK_RELAY },
        { "compressed: R1", CODEC_ZSTD, 4, 5, 100, 7, WALK_RELAY },
        { "committed transaction: R1", BATCH_TRANSACTIONAL, 4, 5, 100, 7, WALK_RELAY },
        { "delete horizon: R1", BATCH_DELETE_HORIZON, 4, 5, 100, 7, WALK_RELAY },
        { "control: drop", BATCH_CONTROL, 0, 1, 100, 7, WALK_DROP },
        { "emptied by the cleaner: drop", 0, 4, 0, 100, 7, WALK_DROP },
        { "before the start: drop", 0, 4, 5, 105, 7, WALK_DROP },
        { "start in the middle: decode", 0, 4, 5, 102, 7, WALK_DECODE },
        { "holes: decode", 0, 4, 3, 100, 7, WALK_DECODE },
        { "log append time: decode", BATCH_LOG_APPEND_TIME, 4, 5, 100, 7, WALK_DECODE },
        { "codec 5: halt", 5, 4, 5, 100, 7, WALK_HALT },
        { "unknown bit: halt", 0x80, 4, 5, 100, 7, WALK_HALT },
        { "more records than offsets: not to be trusted", 0, 4, 6, 100, 7, WALK_RETRY },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct batch b = plain;
        struct walk_step s;
        struct walk w;

        used = 0;
        b.attributes = cases[i].attributes;
        b.last_offset_delta = cases[i].delta;
        b.count = cases[i].count;
        b.producer_id = cases[i].pid;
        add(b, STR("payload"));
        w = walk_of(cases[i].start);
        CHECK(walk_next(&w, &s));
        if (s.action != cases[i].want)
            fail_msg("%s: got action %d", cases[i].name, s.action);
        if (s.action == WALK_HALT || s.action == WALK_RETRY)
            CHECK(s.why && s.code);
        else
            CHECK(!walk_next(&w, &s));
    }
}

TEST(one_flipped_bit_is_noticed)
{
    struct walk_step s;
    struct walk w;

    for (size_t at = BATCH_CRC_FROM; at < BATCH_HEADER_SIZE + 7; at++) {
        used = 0;
        add(plain, STR("payload"));
        bytes[at] ^= 0x10;
        w = walk_of(100);
        CHECK(walk_next(&w, &s));
        CHECK_EQ(s.action, WALK_RETRY);
    }
}

TEST(an_incomplete_tail_ends_the_walk)
{
    used = 0;
    add(plain, STR("payload"));
    add(plain, STR("payload"));
    for (size_t cut = used / 2; cut < used; cut++) {
        struct walk w = walk_of(100);
        struct walk_step s;

        w.bytes.n = cut;
        CHECK(walk_next(&w, &s));
        CHECK(!walk_next(&w, &s));
    }
}

/* Producer 7 aborts [100, 109], producer 8 commits [110, 114], 7 commits [116, 120]. */
TEST(read_committed)
{
    static const enum walk_action want[] = { WALK_DROP,  WALK_RELAY, WALK_DROP, WALK_DROP,
                                             WALK_RELAY, WALK_DROP,  WALK_DROP };
    struct batch b = plain;
    struct walk_step s;
    struct walk w;

    used = 0;
    b.attributes = BATCH_TRANSACTIONAL;
    b.producer_id = 7;
    add(b, STR("x")); /* 100-104, aborted */
    b.base_offset = 110;
    b.producer_id = 8;
    add(b, STR("y")); /* 110-114, committed */
    add_marker(115, 7, 0); /* abort of 7 */
    add_marker(116, 8, 1);
    b.base_offset = 117;
    b.producer_id = 7;
    add(b, STR("z")); /* 117-121: 7 again, committed */
    add_marker(122, 7, 1);
    add_marker(123, 9, 0); /* an abort that has nothing here */
    list[0] = (struct walk_aborted){ .producer_id = 7, .first_offset = 90 };
    w = walk_of(100);
    w.aborted_n = 1;
    for (size_t i = 0; i < COUNT(want); i++) {
        CHECK(walk_next(&w, &s));
        CHECK_EQ(s.action, want[i]);
    }
    CHECK(!walk_next(&w, &s));
}

TEST(a_later_abort_of_the_same_producer)
{
    struct batch b = plain;
    struct walk_step s;
    struct walk w;

    used = 0;
    b.attributes = BATCH_TRANSACTIONAL;
    b.producer_id = 7;
    add(b, STR("x")); /* committed */
    add_marker(105, 7, 1);
    b.base_offset = 106;
    add(b, STR("y")); /* aborted */
    add_marker(111, 7, 0);
    list[0] = (struct walk_aborted){ .producer_id = 7, .first_offset = 106 };
    w = walk_of(100);
    w.aborted_n = 1;
    CHECK(walk_next(&w, &s));
    CHECK_EQ(s.action, WALK_RELAY);
    CHECK(walk_next(&w, &s));
    CHECK(walk_next(&w, &s));
    CHECK_EQ(s.action, WALK_DROP);
}

TESTS(RUN(rules), RUN(one_flipped_bit_is_noticed), RUN(an_incomplete_tail_ends_the_walk),
      RUN(read_committed), RUN(a_later_abort_of_the_same_producer))
