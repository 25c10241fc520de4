/* test_formats.c -- MirrorMaker 2's records: real ones read and written back to equal bytes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/formats.h"

#include "base/murmur2.h"

#include "unit/test.h"

#include <jansson.h>
#include <stdio.h>

static const char *const releases[] = { "4.3.0", "3.9.1", "2.8.2" };

struct golden {
    int32_t partition;
    struct str key, value;
};

static struct str from_hex(struct arena *a, const json_t *j)
{
    size_t n = json_string_length(j) / 2;
    char *p;

    if (!json_is_string(j))
        return STR_NULL;
    p = arena_alloc(a, n + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned byte;

        CHECK_EQ(sscanf(json_string_value(j) + 2 * i, "%2x", &byte), 1);
        p[i] = (char)byte;
    }
    return str_of(p, n);
}

/* Calls check for each record of one kind; gives their number. */
static int each_golden(const char *kind, void (*check)(const struct golden *g))
{
    int n = 0;

    for (size_t i = 0; i < COUNT(releases); i++) {
        char path[512], line[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s/golden/%s-%s.jsonl", TEST_DATA, kind, releases[i]);
        f = fopen(path, "r");
        CHECK(f);
        while (fgets(line, sizeof(line), f)) {
            json_t *j = json_loads(line, 0, NULL);
            struct arena a;
            struct golden g;

            CHECK(j);
            arena_init(&a, 64 * KiB);
            g.partition = (int32_t)json_integer_value(json_object_get(j, "partition"));
            g.key = from_hex(&a, json_object_get(j, "key_hex"));
            g.value = from_hex(&a, json_object_get(j, "value_hex"));
            check(&g);
            arena_fini(&a);
            json_decref(j);
            n++;
        }
        fclose(f);
    }
    return n;
}

static struct buf key_out, value_out;

static void check_bytes(const struct golden *g)
{
    CHECK(str_eq(buf_str(&key_out), g->key));
    CHECK(str_eq(buf_str(&value_out), g->value));
    buf_fini(&key_out);
    buf_fini(&value_out);
}

static void start_bytes(void)
{
    buf_init(&key_out, MiB);
    buf_init(&value_out, MiB);
}

static void check_sync(const struct golden *g)
{
    struct sync_record r;

    CHECK_EQ(formats_decode_sync(g->key, g->value, &r), E_OK);
    start_bytes();
    formats_encode_sync(&r, &key_out, &value_out);
    check_bytes(g);
}

static void check_checkpoint(const struct golden *g)
{
    struct checkpoint_record r;

    CHECK_EQ(formats_decode_checkpoint(g->key, g->value, &r), E_OK);
    start_bytes();
    formats_encode_checkpoint(&r, &key_out, &value_out);
    check_bytes(g);
}

static void check_heartbeat(const struct golden *g)
{
    struct heartbeat_record r;

    CHECK_EQ(formats_decode_heartbeat(g->key, g->value, &r), E_OK);
    start_bytes();
    formats_encode_heartbeat(&r, &key_out, &value_out);
    check_bytes(g);
}

static int source_positions;

static void check_position(const struct golden *g)
{
    struct position_key k;
    struct arena a;
    int64_t offset;
    enum err e;

    CHECK_EQ(murmur2_partition(g->key, 25), g->partition);
    arena_init(&a, 4 * KiB);
    e = formats_parse_position_key(g->key, &a, &k);
    CHECK_EQ(e, str_starts(g->key, STR("[\"" FORMATS_CONNECTOR "\"")) ? E_OK : E_INVALID);
    CHECK_EQ(formats_parse_position_value(g->value, &offset), E_OK);
    if (!e) {
        CHECK_STR(k.connector, FORMATS_CONNECTOR);
        start_bytes();
        formats_position_key(&k, &key_out);
        formats_position_value(offset, &value_out);
        check_bytes(g);
        source_positions++;
    }
    arena_fini(&a);
}

TEST(golden)
{
    CHECK(each_golden("syncs", check_sync) > 90);
    CHECK(each_golden("checkpoints", check_checkpoint) > 50);
    CHECK(each_golden("heartbeats", check_heartbeat) > 10);
    CHECK(each_golden("positions", check_position) > 100);
    CHECK(source_positions > 50);
}

/* Appendix D.1 of the specification. */
TEST(encoded_bytes)
{
    static const char sync_key[] = "\x00\x07topic-1\x00\x00\x00\x02";
    static const char sync_value[] = "\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4";
    static const char point_key[] = "\x00\x07group-1\x00\x07topic-2\x00\x00\x00\x03";
    static const char point_value[] = "\0\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5\x00\x0ametadata-6";
    static const char beat_key[] = "\x00\x01"
                                   "A\x00\x01"
                                   "B";
    static const char beat_value[] = "\x00\x00\x00\x00\x01\x8b\xcf\xe5\x68\x00";
    const struct sync_record sync = { STR("topic-1"), 2, 3, 4 };
    struct checkpoint_record point = { STR("group-1"), STR("topic-2"), 3, 4, 5, STR("metadata-6") };
    const struct heartbeat_record beat = { STR("A"), STR("B"), 1700000000000 };
    struct golden g = { 0, str_of(sync_key, 13), str_of(sync_value, 16) };

    start_bytes();
    formats_encode_sync(&sync, &key_out, &value_out);
    check_bytes(&g);
    g = (struct golden){ 0, str_of(point_key, 22), str_of(point_value, 30) };
    start_bytes();
    formats_encode_checkpoint(&point, &key_out, &value_out);
    check_bytes(&g);
    g.value = str_of("\0\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5\0", 20);
    point.metadata = STR_NULL;
    start_bytes();
    formats_encode_checkpoint(&point, &key_out, &value_out);
    check_bytes(&g);
    g = (struct golden){ 0, str_of(beat_key, 6), str_of(beat_value, 10) };
    start_bytes();
    formats_encode_heartbeat(&beat, &key_out, &value_out);
    check_bytes(&g);
}

/* Each prefix of a record is refused, and bytes behind it are not looked at. */
TEST(decode_bounds)
{
    static const char key[] = "\x00\x07group-1\x00\x07topic-2\x00\x00\x00\x03more";
    static const char value[] = "\0\7\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5\x00\x02md more";
    struct checkpoint_record r;
    struct sync_record s;
    struct heartbeat_record h;

    CHECK_EQ(formats_decode_checkpoint(str_of(key, 26), str_of(value, 27), &r), E_OK);
    CHECK_STR(r.group, "group-1");
    CHECK_STR(r.topic, "topic-2");
    CHECK_EQ(r.partition, 3);
    CHECK_EQ(r.upstream, 4);
    CHECK_EQ(r.downstream, 5);
    CHECK_STR(r.metadata, "md");
    for (size_t n = 0; n < 22; n++)
        CHECK_EQ(formats_decode_checkpoint(str_of(key, n), str_of(value, 27), &r), E_MALFORMED);
    for (size_t n = 0; n < 22; n++)
        CHECK_EQ(formats_decode_checkpoint(str_of(key, 26), str_of(value, n), &r), E_MALFORMED);
    CHECK_EQ(formats_decode_checkpoint(str_of(key, 26), STR_NULL, &r), E_NOT_FOUND);
    CHECK_EQ(formats_decode_sync(str_of(key, 26), STR_NULL, &s), E_NOT_FOUND);
    CHECK_EQ(formats_decode_heartbeat(str_of(key, 26), STR_NULL, &h), E_NOT_FOUND);
    CHECK_EQ(formats_decode_sync(STR("\xff\xff\0\0\0\0"), str_of(value, 27), &s), E_MALFORMED);
    CHECK_EQ(formats_decode_sync(STR_NULL, str_of(value, 27), &s), E_MALFORMED);
}

TEST(position_key_escapes)
{
    static const struct {
        const char *cluster;
        const char *want; /* between the quotes */
    } cases[] = {
        { "A", "A" },
        { "a/b", "a/b" },
        { "q\"b\\", "q\\\"b\\\\" },
        { "\b\t\n\f\r", "\\b\\t\\n\\f\\r" },
        { "\x01\x1f\x7f", "\\u0001\\u001F\x7f" },
        { "\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac" },
        { "\xf0\x9f\x98\x80", "\\uD83D\\uDE00" },
        { "\xf4\x8f\xbf\xbf", "\\uDBFF\\uDFFF" },
        { "x\xff", "x\xef\xbf\xbd" },
        { "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" },                 /* cut short */
        { "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd" },                 /* longer than needed */
        { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* half of a pair */
        { "\xf5\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct position_key k = { STR("C"), str_c(cases[i].cluster), STR("t"), 7 }, back;
        char want[200];
        struct arena a;

        snprintf(want, sizeof(want), "[\"C\",{\"cluster\":\"%s\",\"partition\":7,\"topic\":\"t\"}]",
                 cases[i].want);
        start_bytes();
        arena_init(&a, 4 * KiB);
        formats_position_key(&k, &key_out);
        assert_string_equal(buf_cstr(&key_out), want);
        CHECK_EQ(formats_parse_position_key(buf_str(&key_out), &a, &back), E_OK);
        if (!strstr(want, "\xef\xbf\xbd"))
            CHECK(str_eq(back.cluster, k.cluster));
        arena_fini(&a);
        buf_fini(&key_out);
    }
}

TEST(position_key_tolerance)
{
    static const struct {
        const char *json;
        enum err want;
    } cases[] = {
        { "[\"MirrorSourceConnector\",{\"cluster\":\"A\",\"partition\":0,\"topic\":\"t\"}]", E_OK },
        { " [ \"x\" , { \"topic\":\"t\", \"more\":[1], \"partition\":0, \"cluster\":\"A\" } ]\n",
          E_OK },
        { "[\"x\",{\"cluster\":\"A\",\"partition\":2147483647,\"topic\":\"t\"}]", E_OK },
        { "[\"x\",{\"cluster\":\"A\",\"partition\":2147483648,\"topic\":\"t\"}]", E_INVALID },
        { "[\"x\",{\"cluster\":\"A\",\"partition\":-1,\"topic\":\"t\"}]", E_INVALID },
        { "[\"x\",{\"cluster\":\"A\",\"partition\":1.0,\"topic\":\"t\"}]", E_INVALID },
        { "[\"x\",{\"cluster\":\"A\",\"partition\":\"1\",\"topic\":\"t\"}]", E_INVALID },
        { "[\"x\",{\"cluster\":null,\"partition\":1,\"topic\":\"t\"}]", E_INVALID },
        { "[\"x\",{\"cluster\":\"A\",\"partition\":1,\"topic\":\"t\"},1]", E_INVALID },
        { "[{\"cluster\":\"A\",\"partition\":1,\"topic\":\"t\"}]", E_INVALID },
        { "[\"MirrorHeartbeatConnector\",{\"sourceClusterAlias\":\"A\",\"targetClusterAlias\":"
          "\"B\"}]",
          E_INVALID },
        { "{\"cluster\":\"A\",\"partition\":1,\"topic\":\"t\"}", E_INVALID },
        { "[\"x\",{\"cluster\":\"A\",\"partition\":1,\"topic\":\"t\"}", E_INVALID },
        { "[\"x\",{\"cluster\":\"\xff\",\"partition\":1,\"topic\":\"t\"}]", E_INVALID },
        { "session-key", E_INVALID },
        { "", E_INVALID },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct position_key k;
        struct arena a;

        arena_init(&a, 4 * KiB);
        if (formats_parse_position_key(str_c(cases[i].json), &a, &k) != cases[i].want)
            fail_msg("%s", cases[i].json);
        if (!cases[i].want) {
            CHECK_STR(k.cluster, "A");
            CHECK_STR(k.topic, "t");
        }
        arena_fini(&a);
        arena_init(&a, 8);
        if (!cases[i].want)
            CHECK_EQ(formats_parse_position_key(str_c(cases[i].json), &a, &k), E_LIMIT);
        arena_fini(&a);
    }
}

TEST(position_value)
{
    static const struct {
        const char *json;
        enum err want;
        int64_t offset;
    } cases[] = {
        { "{\"offset\":0}", E_OK, 0 },
        { "{\"offset\":9223372036854775807}", E_OK, INT64_MAX },
        { " { \"more\" : {}, \"offset\" : 12 } ", E_OK, 12 },
        { "{\"offset\":9223372036854775808}", E_INVALID, 0 },
        { "{\"offset\":1.5}", E_INVALID, 0 },
        { "{\"offset\":1e3}", E_INVALID, 0 },
        { "{\"offset\":\"1\"}", E_INVALID, 0 },
        { "{\"offset\":null}", E_INVALID, 0 },
        { "{}", E_INVALID, 0 },
        { "12", E_INVALID, 0 },
        { "", E_INVALID, 0 },
        { "null", E_NOT_FOUND, 0 },
    };
    int64_t offset;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (formats_parse_position_value(str_c(cases[i].json), &offset) != cases[i].want)
            fail_msg("%s", cases[i].json);
        if (!cases[i].want)
            CHECK_EQ(offset, cases[i].offset);
    }
    CHECK_EQ(formats_parse_position_value(STR_NULL, &offset), E_NOT_FOUND);
    start_bytes();
    formats_position_value(INT64_MIN, &value_out);
    CHECK_STR(buf_str(&value_out), "{\"offset\":-9223372036854775808}");
    buf_fini(&value_out);
}

TESTS(RUN(golden), RUN(encoded_bytes), RUN(decode_bounds), RUN(position_key_escapes),
      RUN(position_key_tolerance), RUN(position_value))
