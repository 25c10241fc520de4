/* test_state.c -- the state topic's records there and back, and what is not ours.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "mirror/state.h"

TEST(pair_there_and_back)
{
    struct pair p = { .source = INT64_C(9007199254740993), .target = 12, .sequence = SEQUENCE_MOD - 1,
                      .producer_id = 4242, .epoch = 3, .leader_epoch = 5 };
    struct buf key, value;
    struct state_record r;
    struct arena a;

    buf_init(&key, 4096);
    buf_init(&value, 4096);
    arena_init(&a, 4096);
    state_format_pair_key(&key, STR("or\"ders"), 7);
    state_format_pair(&value, &p);
    CHECK_STR(buf_str(&key), "{\"kind\":\"pair\",\"topic\":\"or\\\"ders\",\"partition\":7}");
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &a, &r), E_OK);
    CHECK_EQ(r.kind, STATE_PAIR);
    CHECK_STR(r.topic, "or\"ders");
    CHECK_EQ(r.partition, 7);
    CHECK_EQ(r.pair.source, p.source);
    CHECK_EQ(r.pair.target, p.target);
    CHECK_EQ(r.pair.sequence, p.sequence);
    CHECK_EQ(r.pair.producer_id, p.producer_id);
    CHECK_EQ(r.pair.epoch, p.epoch);
    CHECK_EQ(r.pair.leader_epoch, p.leader_epoch);
    CHECK(str_is_null(r.copy));
    CHECK_EQ(r.filter, 0);
    state_add_copy(&value, STR("A.or\"ders"), 4000000000u);
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &a, &r), E_OK);
    CHECK_EQ(r.pair.source, p.source);
    CHECK_STR(r.copy, "A.or\"ders");
    CHECK_EQ(r.filter, 4000000000u);
    CHECK_EQ(state_parse(buf_str(&key), STR_NULL, &a, &r), E_OK);
    CHECK(r.removed);
    buf_fini(&key);
    buf_fini(&value);
    arena_fini(&a);
}

TEST(pair_of_each_mode)
{
    struct pair pairs[] = { { .producer_id = -1, .transactional = true }, { .producer_id = -1, .reserved = 20 },
                            { .producer_id = -1 } };
    struct buf key, value;
    struct state_record r;
    struct arena a;

    buf_init(&key, 4096);
    buf_init(&value, 4096);
    arena_init(&a, 4096);
    state_format_pair_key(&key, STR("t"), 0);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        buf_clear(&value);
        state_format_pair(&value, &pairs[i]);
        CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &a, &r), E_OK);
        CHECK_EQ(r.pair.transactional, pairs[i].transactional);
        CHECK_EQ(r.pair.reserved, pairs[i].reserved);
        CHECK_EQ(r.pair.producer_id, -1);
    }
    buf_fini(&key);
    buf_fini(&value);
    arena_fini(&a);
}

TEST(transactions_there_and_back)
{
    struct buf key, value;
    struct state_record r;
    struct arena a;

    buf_init(&key, 4096);
    buf_init(&value, 4096);
    arena_init(&a, 4096);
    state_format_transactions_key(&key, STR("A"));
    state_format_transactions(&value, 2);
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &a, &r), E_OK);
    CHECK_EQ(r.kind, STATE_TRANSACTIONS);
    CHECK_STR(r.origin, "A");
    CHECK_EQ(r.count, 2);
    buf_fini(&key);
    buf_fini(&value);
    arena_fini(&a);
}

TEST(producer_there_and_back)
{
    struct buf key, value;
    struct state_record r;
    struct arena a;

    buf_init(&key, 4096);
    buf_init(&value, 4096);
    arena_init(&a, 4096);
    state_format_producer_key(&key, STR("A"));
    state_format_producer(&value, 99, STR("cluster-x"));
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &a, &r), E_OK);
    CHECK_EQ(r.kind, STATE_PRODUCER);
    CHECK_EQ(r.producer_id, 99);
    CHECK_STR(r.origin, "A");
    CHECK_STR(r.cluster_id, "cluster-x");
    buf_fini(&key);
    buf_fini(&value);
    arena_fini(&a);
}

TEST(writer_there_and_back)
{
    struct buf key, value;
    struct state_record r;
    struct arena a;

    buf_init(&key, 4096);
    buf_init(&value, 4096);
    arena_init(&a, 4096);
    state_format_writer_key(&key, 4243);
    state_format_writer(&value, STR("host-1"));
    CHECK_STR(buf_str(&key), "{\"kind\":\"writer\",\"producer_id\":4243}");
    CHECK_STR(buf_str(&value), "{\"instance\":\"host-1\"}");
    CHECK_EQ(state_parse(buf_str(&key), buf_str(&value), &a, &r), E_OK);
    CHECK_EQ(r.kind, STATE_WRITER);
    CHECK_EQ(r.producer_id, 4243);
    CHECK(!r.removed);
    CHECK_EQ(state_parse(buf_str(&key), STR_NULL, &a, &r), E_OK);
    CHECK(r.kind == STATE_WRITER && r.removed);
    buf_clear(&key);
    state_format_fence_key(&key, 4243);
    CHECK_EQ(state_parse(buf_str(&key), STR_NULL, &a, &r), E_OK);
    CHECK_EQ(r.kind, STATE_OTHER);
    buf_fini(&key);
    buf_fini(&value);
    arena_fini(&a);
}

TEST(what_is_not_ours)
{
    static const struct {
        const char *key, *value;
        enum err want;
    } cases[] = {
        { "{\"kind\":\"new\"}", "{}", E_OK }, /* of a later version: ignored */
        { "", "{}", E_MALFORMED },
        { "[1]", "{}", E_MALFORMED },
        { "{\"kind\":\"pair\",\"topic\":\"t\"}", "{}", E_MALFORMED },
        { "{\"kind\":\"writer\",\"producer_id\":-1}", "{}", E_MALFORMED },
        { "{\"kind\":\"pair\",\"topic\":\"t\",\"partition\":-1}", "{}", E_MALFORMED },
        { "{\"kind\":\"pair\",\"topic\":\"t\",\"partition\":0}", "{\"source\":-2}", E_MALFORMED },
        { "{\"kind\":\"pair\",\"topic\":\"t\",\"partition\":0}", "not json", E_MALFORMED },
        { "{\"kind\":\"pair\",\"topic\":\"t\",\"partition\":0}",
          "{\"source\":1,\"target\":1,\"sequence\":2147483648,\"producer_id\":1,\"epoch\":0}", E_MALFORMED },
    };
    struct arena a;

    arena_init(&a, 64 * 1024);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct state_record r = { .kind = STATE_OTHER };

        CHECK_EQ(state_parse(str_c(cases[i].key), str_c(cases[i].value), &a, &r), cases[i].want);
    }
    arena_fini(&a);
}

TESTS(RUN(pair_there_and_back), RUN(pair_of_each_mode), RUN(transactions_there_and_back),
      RUN(producer_there_and_back), RUN(writer_there_and_back), RUN(what_is_not_ours))
