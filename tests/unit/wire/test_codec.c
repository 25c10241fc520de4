/* test_codec.c -- all APIs at all versions through the engine, and hostile bytes into it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "base/alloc.h"
#include "wire/api.h"

#define SEEDS      40
#define MEMORY_MAX (16 * MiB)

static void each_message(void (*check)(const struct message *m, int version))
{
    for (size_t i = 0; i < api_count; i++) {
        for (int v = api_all[i]->min; v <= api_all[i]->max; v++) {
            check(api_all[i]->request, v);
            check(api_all[i]->response, v);
        }
    }
}

/* A random message and its bytes. */
struct sample {
    struct arena arena;
    struct buf buf;
    void *msg;
};

static void sample_init(struct sample *s, const struct message *m, int version, uint64_t seed)
{
    struct encoding to = { .head = &s->buf };
    struct rand rand;

    arena_init(&s->arena, MEMORY_MAX);
    buf_init(&s->buf, 1 * MiB);
    rand_init(&rand, seed);
    s->msg = arena_alloc(&s->arena, m->size);
    codec_fill(m, version, &rand, &s->arena, s->msg);
    CHECK_EQ(codec_encode(m, version, s->msg, &to), E_OK);
}

static void sample_fini(struct sample *s)
{
    arena_fini(&s->arena);
    buf_fini(&s->buf);
}

static void show_difference(const struct message *m, int version, const void *a, const void *b)
{
    struct buf text;

    buf_init(&text, 1 * MiB);
    codec_print(m, version, a, &text);
    buf_put_char(&text, '\n');
    codec_print(m, version, b, &text);
    print_error("%s v%d:\n%s\n", m->name, version, buf_cstr(&text));
    buf_fini(&text);
}

static void check_round_trip(const struct message *m, int version)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sample s;
        struct reader r;
        void *back;

        sample_init(&s, m, version, seed);
        r = reader_of(s.buf.p, s.buf.n);
        back = arena_alloc(&s.arena, m->size);
        memset(back, 0xa5, m->size);
        CHECK_EQ(codec_decode(m, version, &r, &s.arena, back), E_OK);
        CHECK_EQ(reader_left(&r), 0);
        if (!codec_equal(m, version, s.msg, back)) {
            show_difference(m, version, s.msg, back);
            fail();
        }
        sample_fini(&s);
    }
}

TEST(round_trip)
{
    each_message(check_round_trip);
}

/* The bytes stand in memory of their own, so that a sanitizer sees a read past the end. */
static void check_truncation(const struct message *m, int version)
{
    for (uint64_t seed = 100; seed < 103; seed++) {
        struct sample s;

        sample_init(&s, m, version, seed);
        for (size_t n = 0; n < s.buf.n; n++) {
            char *part = mem_new(n + 1);
            struct reader r = reader_of(part + 1, n);
            struct arena a;
            void *out = mem_new(m->size);

            memcpy(part + 1, s.buf.p, n);
            arena_init(&a, MEMORY_MAX);
            CHECK_EQ(codec_decode(m, version, &r, &a, out), E_MALFORMED);
            arena_fini(&a);
            mem_free(out);
            mem_free(part);
        }
        sample_fini(&s);
    }
}

TEST(truncation_at_every_byte)
{
    each_message(check_truncation);
}

/* Changed bytes give anything but a crash; what decodes can be encoded again. */
static void check_damage(const struct message *m, int version)
{
    struct rand rand;

    rand_init(&rand, 77);
    for (uint64_t seed = 200; seed < 210; seed++) {
        struct sample s;
        struct encoding to;
        struct reader r;
        void *out;

        sample_init(&s, m, version, seed);
        for (int k = 0; k < 3 && s.buf.n; k++)
            s.buf.p[rand_below(&rand, s.buf.n)] = (char)rand_next(&rand);
        r = reader_of(s.buf.p, s.buf.n);
        out = arena_alloc(&s.arena, m->size);
        if (codec_decode(m, version, &r, &s.arena, out) == E_OK) {
            struct buf again;

            buf_init(&again, 1 * MiB);
            to = (struct encoding){ .head = &again };
            CHECK_EQ(codec_encode(m, version, out, &to), E_OK);
            buf_fini(&again);
        }
        sample_fini(&s);
    }
}

TEST(damage)
{
    each_message(check_damage);
}

TEST(defaults)
{
    struct kafka_fetch_request f;
    struct kafka_fetch_response_partition p;
    struct kafka_describe_topic_partitions_response_partition d;
    struct kafka_describe_topic_partitions_request q;

    memset(&f, 0xff, sizeof(f));
    codec_init(&kafka_fetch_request_msg, &f);
    CHECK(str_is_null(f.cluster_id));
    CHECK_EQ(f.replica_id, -1);
    CHECK_EQ(f.replica_state.replica_id, -1);
    CHECK(f.replica_state.replica_epoch == -1);
    CHECK_EQ(f.max_bytes, INT32_MAX);
    CHECK_EQ(f.session_id, 0);
    CHECK_EQ(f.topics.n, 0);
    CHECK_STR(f.rack_id, "");
    codec_init(&kafka_fetch_response_partition_msg, &p);
    CHECK_EQ(p.preferred_read_replica, -1);
    CHECK_EQ(p.aborted_transactions.n, 0);
    CHECK(str_is_null(p.records.body));
    codec_init(&kafka_describe_topic_partitions_response_partition_msg, &d);
    CHECK_EQ(d.last_known_elr.n, -1);
    codec_init(&kafka_describe_topic_partitions_request_msg, &q);
    CHECK(q.cursor == NULL);
    CHECK_EQ(q.response_partition_limit, 2000);
}

/* Encodes and compares with bytes written by hand from the protocol's description. */
static void check_bytes(const struct message *m, int version, const void *msg, struct str want)
{
    struct buf b;
    struct encoding to = { .head = &b };

    buf_init(&b, 4 * KiB);
    CHECK_EQ(codec_encode(m, version, msg, &to), E_OK);
    CHECK_EQ(b.n, want.n);
    CHECK_MEM(b.p, want.p, want.n);
    buf_fini(&b);
}

TEST(api_versions_bytes)
{
    struct kafka_api_versions_request q;

    codec_init(&kafka_api_versions_request_msg, &q);
    q.client_software_name = STR("heliostat");
    q.client_software_version = STR("1.0");
    check_bytes(&kafka_api_versions_request_msg, 0, &(struct kafka_api_versions_request){ 0 },
                STR(""));
    check_bytes(&kafka_api_versions_request_msg, 3, &q,
                STR("\x0aheliostat\x04"
                    "1.0\x00"));
    check_bytes(&kafka_api_versions_request_msg, 5, &q,
                STR("\x0aheliostat\x04"
                    "1.0\x00\xff\xff\xff\xff\x00"));
}

TEST(metadata_request_bytes)
{
    struct kafka_metadata_request_topic t;
    struct kafka_metadata_request q;

    codec_init(&kafka_metadata_request_msg, &q);
    codec_init(&kafka_metadata_request_topic_msg, &t);
    t.name = STR("t");
    q.topics.at = &t;
    q.topics.n = 1;
    q.allow_auto_topic_creation = false;
    check_bytes(&kafka_metadata_request_msg, 4, &q,
                STR("\0\0\0\1"
                    "\0\1t"
                    "\0"));
    check_bytes(&kafka_metadata_request_msg, 12, &q,
                STR("\2"
                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                    "\2t"
                    "\0"
                    "\0"
                    "\0"
                    "\0"));
    q.topics.n = -1;
    check_bytes(&kafka_metadata_request_msg, 4, &q,
                STR("\xff\xff\xff\xff"
                    "\0"));
    check_bytes(&kafka_metadata_request_msg, 9, &q,
                STR("\0"
                    "\0"
                    "\0\0"
                    "\0"));
}

TEST(tagged_fields_bytes)
{
    struct kafka_produce_response_current_leader leader = { .leader_id = 3, .leader_epoch = 9 };
    struct kafka_produce_response_partition p;

    codec_init(&kafka_produce_response_partition_msg, &p);
    p.error_code = 6;
    check_bytes(&kafka_produce_response_partition_msg, 10, &p,
                STR("\0\0\0\0"
                    "\0\6"
                    "\0\0\0\0\0\0\0\0"
                    "\xff\xff\xff\xff\xff\xff\xff\xff"
                    "\xff\xff\xff\xff\xff\xff\xff\xff"
                    "\1"
                    "\0"
                    "\0"));
    p.current_leader = leader;
    check_bytes(&kafka_produce_response_partition_msg, 10, &p,
                STR("\0\0\0\0"
                    "\0\6"
                    "\0\0\0\0\0\0\0\0"
                    "\xff\xff\xff\xff\xff\xff\xff\xff"
                    "\xff\xff\xff\xff\xff\xff\xff\xff"
                    "\1"
                    "\0"
                    "\1"
                    "\0\x09"
                    "\0\0\0\3"
                    "\0\0\0\x09"
                    "\0"));
}

TEST(unknown_tags_are_skipped)
{
    /* v3: error 0, no APIs, throttle 5, tags: 1 (epoch 7), 9 (unknown) */
    struct str bytes = STR("\0\0"
                           "\1"
                           "\0\0\0\5"
                           "\2"
                           "\1\x08\0\0\0\0\0\0\0\7"
                           "\x09\3xyz");
    struct kafka_api_versions_response got;
    struct reader r = reader_of(bytes.p, bytes.n);
    struct arena a;

    arena_init(&a, 1 * KiB);
    CHECK_EQ(codec_decode(&kafka_api_versions_response_msg, 3, &r, &a, &got), E_OK);
    CHECK_EQ(reader_left(&r), 0);
    CHECK_EQ(got.throttle_time_ms, 5);
    CHECK(got.finalized_features_epoch == 7);
    CHECK_EQ(got.supported_features.n, 0);
    arena_fini(&a);
}

#define API_VERSIONS &kafka_api_versions_response_msg
#define METADATA     &kafka_metadata_request_msg
#define HANDSHAKE    &kafka_sasl_handshake_response_msg
#define TOPICS       &kafka_describe_topic_partitions_request_msg

/* clang-format off */
static const struct {
    const struct message *m;
    int version;
    const char *bytes;
    size_t n;
} malformed[] = {
    { API_VERSIONS, 3, "\0\0" "\1" "\0\0\0\0" "\1" "\1\x09\0\0\0\0\0\0\0\7x", 19 }, /* a tag is larger than its value */
    { API_VERSIONS, 3, "\0\0" "\1" "\0\0\0\0" "\1" "\1\x07\0\0\0\0\0\0\0",     17 }, /* and smaller */
    { API_VERSIONS, 3, "\0\0" "\1" "\0\0\0\0" "\2" "\x09\0" "\x08\0",           12 }, /* tags that fall */
    { METADATA,     4, "\0\0\0\1" "\xff\xff" "\0",                                  7 }, /* a name is null before version 12 */
    { HANDSHAKE,    1, "\0\0" "\xff\xff\xff\xff",                                   6 }, /* an array that is null */
    { HANDSHAKE,    1, "\0\0" "\xff\xff\xff\xfe",                                   6 }, /* a negative count */
    { HANDSHAKE,    1, "\0\0" "\x7f\xff\xff\xff" "\0\0",                            8 }, /* a count beyond the bytes */
    { TOPICS,       0, "\1" "\0\0\0\1" "\2" "\2t\0\0\0\0\0" "\0",                  14 }, /* a struct neither null nor there */
};
/* clang-format on */

TEST(malformed_bytes)
{
    for (size_t i = 0; i < COUNT(malformed); i++) {
        struct reader r = reader_of(malformed[i].bytes, malformed[i].n);
        void *out = mem_new(malformed[i].m->size);
        struct arena a;

        arena_init(&a, 1 * MiB);
        CHECK_EQ(codec_decode(malformed[i].m, malformed[i].version, &r, &a, out), E_MALFORMED);
        CHECK(a.used < 256); /* nothing was taken for elements that are not there */
        arena_fini(&a);
        mem_free(out);
    }
}

TEST(arena_maximum)
{
    static char bytes[2 + 4 + 2 * 1000] = "\0\0"
                                          "\0\0\3\xe8"; /* a thousand empty mechanisms */
    struct kafka_sasl_handshake_response got;
    struct reader r = reader_of(bytes, sizeof(bytes));
    struct arena a;

    arena_init(&a, 4 * KiB);
    CHECK_EQ(codec_decode(&kafka_sasl_handshake_response_msg, 1, &r, &a, &got), E_LIMIT);
    arena_fini(&a);
    arena_init(&a, 64 * KiB);
    r = reader_of(bytes, sizeof(bytes));
    CHECK_EQ(codec_decode(&kafka_sasl_handshake_response_msg, 1, &r, &a, &got), E_OK);
    CHECK_EQ(got.mechanisms.n, 1000);
    arena_fini(&a);
}

TEST(encoding_refuses)
{
    struct kafka_metadata_request q;
    struct kafka_metadata_request_topic t;
    struct buf b;
    struct encoding to = { .head = &b };

    buf_init(&b, 1 * KiB);
    codec_init(&kafka_metadata_request_msg, &q);
    codec_init(&kafka_metadata_request_topic_msg, &t);
    q.topics.at = &t;
    q.topics.n = 1;
    t.name = STR_NULL;
    CHECK_EQ(codec_encode(&kafka_metadata_request_msg, 9, &q, &to), E_INVALID);
    CHECK_EQ(codec_encode(&kafka_metadata_request_msg, 12, &q, &to), E_OK);
    t.name = STR("t");
    q.include_topic_authorized_operations = true; /* since 8 */
    CHECK_EQ(codec_encode(&kafka_metadata_request_msg, 8, &q, &to), E_OK);
    CHECK_EQ(codec_encode(&kafka_metadata_request_msg, 7, &q, &to), E_VERSION);
    buf_fini(&b);
    buf_init(&b, 5);
    CHECK_EQ(codec_encode(&kafka_metadata_request_msg, 12, &q, &to), E_LIMIT);
    buf_fini(&b);
}

static void fill_produce(struct kafka_produce_request *q, struct kafka_produce_request_topic *t,
                         struct kafka_produce_request_partition *p)
{
    codec_init(&kafka_produce_request_msg, q);
    codec_init(&kafka_produce_request_topic_msg, t);
    for (int i = 0; i < 2; i++)
        codec_init(&kafka_produce_request_partition_msg, &p[i]);
    p[0].records = (struct records){ .head = STR("head0"), .body = STR("body0") };
    p[1].index = 1;
    p[1].records = (struct records){ .head = STR("h"), .body = STR("") };
    t->name = STR("t");
    t->partition_data.at = p;
    t->partition_data.n = 2;
    q->topic_data.at = t;
    q->topic_data.n = 1;
}

/* Put together with its cuts, the head is what a plain encoding gives. */
TEST(records_by_reference)
{
    struct kafka_produce_request_partition p[2];
    struct kafka_produce_request_topic t;
    struct kafka_produce_request q;
    struct cut cuts[2];
    struct buf whole, head, joined;
    struct encoding plain = { .head = &whole };
    struct encoding cut = { .head = &head, .cuts = cuts, .cuts_max = 2 };
    size_t at = 0;

    fill_produce(&q, &t, p);
    for (int v = 3; v <= 13; v++) {
        buf_init(&whole, 1 * KiB);
        buf_init(&head, 1 * KiB);
        buf_init(&joined, 1 * KiB);
        cut.cuts_n = at = 0;
        CHECK_EQ(codec_encode(&kafka_produce_request_msg, v, &q, &plain), E_OK);
        CHECK_EQ(codec_encode(&kafka_produce_request_msg, v, &q, &cut), E_OK);
        CHECK_EQ(cut.cuts_n, 2);
        CHECK(cuts[0].r.body.p == p[0].records.body.p);
        for (size_t i = 0; i < cut.cuts_n; i++) {
            buf_put(&joined, head.p + at, cuts[i].at - at);
            buf_put_str(&joined, cuts[i].r.head);
            buf_put_str(&joined, cuts[i].r.body);
            at = cuts[i].at;
        }
        buf_put(&joined, head.p + at, head.n - at);
        CHECK_EQ(joined.n, whole.n);
        CHECK_MEM(joined.p, whole.p, whole.n);
        buf_fini(&whole);
        buf_fini(&head);
        buf_fini(&joined);
    }
}

TEST(cuts_have_a_limit)
{
    struct kafka_produce_request_partition p[2];
    struct kafka_produce_request_topic t;
    struct kafka_produce_request q;
    struct cut cuts[1];
    struct buf head;
    struct encoding cut = { .head = &head, .cuts = cuts, .cuts_max = 1 };

    fill_produce(&q, &t, p);
    buf_init(&head, 1 * KiB);
    CHECK_EQ(codec_encode(&kafka_produce_request_msg, 9, &q, &cut), E_LIMIT);
    buf_fini(&head);
}

TEST(printing)
{
    struct kafka_metadata_request_topic t;
    struct kafka_metadata_request q;
    struct buf b;

    codec_init(&kafka_metadata_request_msg, &q);
    codec_init(&kafka_metadata_request_topic_msg, &t);
    t.name = STR("a\"b");
    t.topic_id.b[0] = 0xfb;
    t.topic_id.b[15] = 1;
    q.topics.at = &t;
    q.topics.n = 1;
    buf_init(&b, 1 * KiB);
    codec_print(&kafka_metadata_request_msg, 12, &q, &b);
    CHECK_STR(buf_str(&b),
              "{topics=[{topic_id=-wAAAAAAAAAAAAAAAAAAAQ, name=\"a\\x22b\"}], "
              "allow_auto_topic_creation=true, include_topic_authorized_operations=false}");
    buf_fini(&b);
}

static void check_printing(const struct message *m, int version)
{
    struct sample s;

    sample_init(&s, m, version, 1);
    buf_clear(&s.buf);
    codec_print(m, version, s.msg, &s.buf);
    CHECK(!s.buf.bad && s.buf.n >= 2 && s.buf.p[0] == '{' && s.buf.p[s.buf.n - 1] == '}');
    CHECK(codec_equal(m, version, s.msg, s.msg));
    sample_fini(&s);
}

TEST(printing_of_everything)
{
    each_message(check_printing);
}

TEST(table)
{
    CHECK(api_find(-1) == NULL && api_find(9999) == NULL);
    for (size_t i = 0; i < api_count; i++) {
        CHECK(api_find(api_all[i]->key) == api_all[i]);
        CHECK(i == 0 || api_all[i - 1]->key < api_all[i]->key);
    }
    CHECK_EQ(api_find(API_PRODUCE)->to, API_TO_LEADER);
    CHECK(!api_find(API_PRODUCE)->safe);
    CHECK(api_find(API_METADATA)->safe);
}

TESTS(RUN(round_trip), RUN(truncation_at_every_byte), RUN(damage), RUN(defaults),
      RUN(api_versions_bytes), RUN(metadata_request_bytes), RUN(tagged_fields_bytes),
      RUN(unknown_tags_are_skipped), RUN(malformed_bytes), RUN(arena_maximum),
      RUN(encoding_refuses), RUN(records_by_reference), RUN(cuts_have_a_limit), RUN(printing),
      RUN(printing_of_everything), RUN(table))
