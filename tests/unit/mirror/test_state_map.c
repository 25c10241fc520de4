/* test_state_map.c -- the stored parts of an offset map and the ledger of losses, there and back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "mirror/state.h"

static struct buf key, value;
static struct arena arena;

static void begin(void)
{
    buf_init(&key, 4096);
    buf_init(&value, 4096);
    arena_init(&arena, 64 * KiB);
}

static void end(void)
{
    buf_fini(&key);
    buf_fini(&value);
    arena_fini(&arena);
}

TEST(part)
{
    struct offset_part p = { .number = 4000000000, .source = 17, .target = INT64_C(9007199254740993),
                             .runs = STR("\x01\x00\xff\xe0") };
    struct state_record r;

    begin();
    p.runs = str_of("\x01\x00\xff\xe0", 4);
    state_format_part_key(&key, STR("t"), 3, p.number);
    state_format_part(&value, &p);
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &arena, &r), E_OK);
    CHECK_EQ(r.kind, STATE_PART);
    CHECK_STR(r.topic, "t");
    CHECK_EQ(r.partition, 3);
    CHECK_EQ(r.part.number, p.number);
    CHECK_EQ(r.part.source, p.source);
    CHECK_EQ(r.part.target, p.target);
    CHECK(str_eq(r.part.runs, p.runs));
    CHECK_EQ(state_parse(buf_str(&key), STR_NULL, &arena, &r), E_OK);
    CHECK(r.removed && r.part.number == p.number);
    end();
}

TEST(rest_in_a_pair)
{
    struct pair pair = { .source = 20, .target = 15, .producer_id = 1, .leader_epoch = -1 };
    struct offset_map *m = offset_map_new(5, 0, OFFSET_LOST), *back;
    struct offset_part rest;
    struct state_record r;
    struct buf bytes;

    begin();
    buf_init(&bytes, 4096);
    offset_map_add(m, 5, 0, 10);
    offset_map_add(m, 16, 11, 4);
    offset_map_rest(m, 4096, &bytes, &rest);
    state_format_pair_key(&key, STR("t"), 0);
    state_format_pair(&value, &pair);
    state_add_rest(&value, &rest);
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &arena, &r), E_OK);
    CHECK(r.kind == STATE_PAIR && r.has_rest && r.pair.source == 20);
    back = offset_map_restore(NULL, 0, &r.part, r.pair.source, r.pair.target);
    CHECK_EQ(offset_map_to_target(back, 14).offset, 9);
    CHECK_EQ(offset_map_to_target(back, 17).offset, 12);
    CHECK_EQ(offset_map_to_target(back, 2).reason, OFFSET_LOST);
    CHECK_EQ(offset_map_to_target(back, 20).kind, OFFSET_END);
    offset_map_free(&back);
    /* A pair that knows of more than the map does: a range, not a guess. */
    back = offset_map_restore(NULL, 0, &r.part, 30, 24);
    CHECK_EQ(offset_map_to_target(back, 25).kind, OFFSET_RANGE);
    CHECK_EQ(offset_map_to_target(back, 17).offset, 12);
    offset_map_free(&back);
    /* A pair of before there were maps. */
    buf_clear(&value);
    state_format_pair(&value, &pair);
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &arena, &r), E_OK);
    CHECK(!r.has_rest);
    offset_map_free(&m);
    buf_fini(&bytes);
    end();
}

TEST(loss)
{
    struct state_loss l = { .number = 67, .from = 5, .to = 9, .records = -1, .time_ms = 1700000000000,
                            .cause = STR("re\"tention") };
    struct state_record r;

    begin();
    state_format_loss_key(&key, STR("t"), 0, l.number);
    CHECK_STR(buf_str(&key), "{\"kind\":\"loss\",\"topic\":\"t\",\"partition\":0,\"slot\":3}");
    state_format_loss(&value, &l);
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &arena, &r), E_OK);
    CHECK_EQ(r.kind, STATE_LOSS);
    CHECK(r.loss.number == 67 && r.loss.from == 5 && r.loss.to == 9 && r.loss.records == -1 &&
          r.loss.time_ms == l.time_ms);
    CHECK_STR(r.loss.cause, "re\"tention");
    CHECK(!r.loss.repeat);
    l.repeat = true;
    buf_clear(&value);
    state_format_loss(&value, &l);
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &arena, &r), E_OK);
    CHECK(r.loss.repeat);
    end();
}

TEST(what_makes_no_sense)
{
    static const char *const cases[][2] = {
        { "{\"kind\":\"map\",\"topic\":\"t\",\"partition\":0,\"part\":-1}", "{}" },
        { "{\"kind\":\"map\",\"topic\":\"t\",\"partition\":0,\"part\":1}", "{\"source\":1,\"target\":1,\"runs\":\"*\"}" },
        { "{\"kind\":\"map\",\"topic\":\"t\",\"partition\":0,\"part\":1}", "{\"source\":-1,\"target\":1,\"runs\":\"\"}" },
        { "{\"kind\":\"loss\",\"topic\":\"t\",\"partition\":0,\"slot\":64}", "{}" },
        { "{\"kind\":\"loss\",\"topic\":\"t\",\"partition\":0,\"slot\":1}",
          "{\"number\":1,\"from\":5,\"to\":4,\"time_ms\":1,\"cause\":\"\"}" },
    };
    struct state_record r;

    begin();
    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_EQ(state_parse(str_c(cases[i][0]), str_c(cases[i][1]), &arena, &r), E_MALFORMED);
    end();
}

TESTS(RUN(part), RUN(rest_in_a_pair), RUN(loss), RUN(what_makes_no_sense))
