/* test_record_path.c -- batches with holes, trims, splits and append times, against a model made from a seed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/record_path.h"

#include "base/alloc.h"
#include "base/rand.h"
#include "unit/test.h"
#include "wire/compress.h"
#include "wire/prim.h"
#include "wire/record.h"

#include <stdio.h>

#define RECORDS_MAX 300
#define BASE_OFFSET 1000
#define BASE_TIME   1700000000000

static struct record_path *rp;
static struct compress *codecs;

/* What a batch was made from. */
struct model {
    int32_t n;
    int32_t last_delta;
    int32_t delta[RECORDS_MAX];
    int64_t time[RECORDS_MAX];
    char value[RECORDS_MAX][48]; /* the key is its first byte */
    int codec;
    int16_t bits;
    int64_t max_time;
    struct buf bytes;
};

/* The records that came out, in order. */
struct seen {
    const struct model *m;
    int32_t n;
    int64_t source[RECORDS_MAX];
    int64_t time[RECORDS_MAX];
    char value[RECORDS_MAX][48];
    int32_t batches;
    int64_t source_last;
    int32_t next_sequence;
    size_t largest; /* of batches with two records or more */
};

static void model_build(struct model *m)
{
    struct buf area, packed;
    unsigned char header[BATCH_HEADER_SIZE];
    struct batch h = {
        .base_offset = BASE_OFFSET,
        .leader_epoch = 3,
        .attributes = (int16_t)(m->codec | m->bits),
        .last_offset_delta = m->last_delta,
        .base_timestamp = BASE_TIME,
        .max_timestamp = m->max_time,
        .producer_id = 5,
        .producer_epoch = 1,
        .base_sequence = 40,
        .count = m->n,
    };

    buf_init(&area, MiB);
    buf_init(&packed, MiB);
    for (int32_t i = 0; i < m->n; i++) {
        struct record r = { .timestamp_delta = m->time[i] - BASE_TIME,
                            .offset_delta = m->delta[i],
                            .key = str_of(m->value[i], 1),
                            .value = str_c(m->value[i]) };

        record_put(&area, &r);
    }
    CHECK_EQ(compress_pack(codecs, m->codec, COMPRESS_LEVEL_DEFAULT, buf_str(&area), &packed),
             E_OK);
    batch_seal(&h, buf_str(&packed), header);
    buf_init(&m->bytes, MiB);
    buf_put(&m->bytes, header, sizeof(header));
    buf_put_str(&m->bytes, buf_str(&packed));
    buf_fini(&packed);
    buf_fini(&area);
}

static void model_random(struct model *m, struct rand *rand, uint64_t hole_in)
{
    int32_t delta = -1;

    *m = (struct model){ .codec = (int)rand_below(rand, 5) };
    m->n = 1 + (int32_t)rand_below(rand, rand_below(rand, 4) ? 20 : RECORDS_MAX - 1);
    m->max_time = BASE_TIME + 99999;
    for (int32_t i = 0; i < m->n; i++) {
        delta += 1 + (rand_below(rand, hole_in) == 0 ? (int32_t)rand_below(rand, 1000) : 0);
        m->delta[i] = delta;
        m->time[i] = BASE_TIME + (int64_t)rand_below(rand, 5000) - 100;
        snprintf(m->value[i], sizeof(m->value[i]), "%d-%.*s", i, (int)rand_below(rand, 30),
                 "a value of thirty-two characters");
    }
    m->last_delta = delta + (rand_below(rand, 3) == 0 ? (int32_t)rand_below(rand, 50) : 0);
    m->bits = (int16_t)(rand_below(rand, 2) * BATCH_TRANSACTIONAL |
                        rand_below(rand, 2) * BATCH_DELETE_HORIZON |
                        rand_below(rand, 2) * BATCH_LOG_APPEND_TIME);
    model_build(m);
}

/* Source offset of the record at index, by the runs. */
static int64_t by_runs(const struct record_path_batch *made, int32_t index)
{
    for (int32_t i = 0; i < made->runs_n; i++) {
        const struct record_run *run = &made->runs[i];

        if (index >= run->index && index < run->index + run->count)
            return run->source + index - run->index;
    }
    fail_msg("no run has index %d", index);
    return -1;
}

static void on_made(void *arg, const struct record_path_batch *made)
{
    struct seen *s = arg;
    struct buf whole, area;
    struct record_reader r;
    struct record rec;
    struct batch h;

    buf_init(&whole, MiB);
    buf_init(&area, MiB);
    buf_put(&whole, made->header, BATCH_HEADER_SIZE);
    buf_put_str(&whole, made->payload);
    CHECK_EQ(batch_peek(buf_str(&whole), &h), BATCH_V2);
    CHECK_EQ(h.size, whole.n);
    CHECK(batch_crc_ok(whole.p, whole.n));
    CHECK_EQ(h.base_offset, 0);
    CHECK_EQ(h.leader_epoch, -1);
    CHECK_EQ(h.attributes, s->m->codec);
    CHECK_EQ(h.count, made->count);
    CHECK_EQ(h.last_offset_delta, made->count - 1);
    CHECK_EQ(h.producer_id, 77);
    CHECK_EQ(h.producer_epoch, 6);
    CHECK_EQ(h.base_sequence, s->next_sequence);
    if (s->next_sequence >= 0)
        s->next_sequence =
            (int32_t)(((int64_t)s->next_sequence + made->count) % ((int64_t)INT32_MAX + 1));
    CHECK_EQ(compress_unpack(codecs, s->m->codec, made->payload, &area), E_OK);
    r = record_reader_of(buf_str(&area), h.count);
    for (int32_t i = 0; record_next(&r, &rec); i++) {
        CHECK_EQ(rec.offset_delta, i);
        s->source[s->n] = by_runs(made, i);
        s->time[s->n] = h.base_timestamp + rec.timestamp_delta;
        CHECK(s->time[s->n] <= h.max_timestamp);
        CHECK_EQ(rec.key.n, 1);
        memcpy(s->value[s->n], rec.value.p, rec.value.n);
        s->n++;
    }
    CHECK_EQ(record_reader_end(&r), E_OK);
    CHECK_EQ(made->source_first, by_runs(made, 0));
    CHECK(made->source_last >= by_runs(made, made->count - 1));
    CHECK(made->source_first > s->source_last);
    s->source_last = made->source_last;
    s->batches++;
    if (made->count > 1)
        s->largest = MAX(s->largest, whole.n);
    buf_fini(&area);
    buf_fini(&whole);
}

static struct record_path_options options_for(struct seen *s, const struct model *m,
                                              int32_t sequence)
{
    *s = (struct seen){ .m = m, .source_last = -1, .next_sequence = sequence };
    return (struct record_path_options){ .stamp = { 77, 6, sequence, false }, .emit = on_made, .arg = s };
}

static void check_against_model(const struct model *m, const struct record_path_options *o,
                                const struct seen *s, const struct record_path_result *res)
{
    int32_t at = 0, trimmed = 0, skipped = 0;

    for (int32_t i = 0; i < m->n; i++) {
        if (BASE_OFFSET + m->delta[i] < o->start) {
            trimmed++;
        } else if (skipped < o->skip_records) {
            skipped++;
        } else {
            bool append = o->keep_append_time && (m->bits & BATCH_LOG_APPEND_TIME);

            CHECK(at < s->n);
            CHECK_EQ(s->source[at], BASE_OFFSET + m->delta[i]);
            CHECK_EQ(s->time[at], append ? m->max_time : m->time[i]);
            assert_string_equal(s->value[at], m->value[i]);
            at++;
        }
    }
    CHECK_EQ(at, s->n);
    CHECK_EQ(res->trimmed, trimmed);
    CHECK_EQ(res->skipped, skipped);
    CHECK_EQ(res->made, s->batches);
    if (s->batches > 0)
        CHECK_EQ(s->source_last, BASE_OFFSET + m->last_delta);
    if (o->size_max > 0)
        CHECK(s->largest <= o->size_max);
    else
        CHECK(s->batches <= 1);
}

/* Random holes, codecs, trims, skips and sizes: offsets exact, nothing else lost, nothing changed. */
TEST(random_batches)
{
    struct rand rand;

    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct record_path_options o;
        struct record_path_result res;
        static struct model m;
        static struct seen s;

        rand_init(&rand, seed);
        model_random(&m, &rand, 1 + rand_below(&rand, 10));
        o = options_for(&s, &m,
                        rand_below(&rand, 4) ? INT32_MAX - (int32_t)rand_below(&rand, 300) : -1);
        if (rand_below(&rand, 2))
            o.start = BASE_OFFSET + (int64_t)rand_below(&rand, (uint64_t)m.last_delta + 3);
        if (rand_below(&rand, 3) == 0)
            o.skip_records = (int64_t)rand_below(&rand, 30);
        o.keep_append_time = rand_below(&rand, 2);
        if (rand_below(&rand, 2))
            o.size_max = BATCH_HEADER_SIZE + rand_below(&rand, 2000);
        CHECK_EQ(record_path_run(rp, m.bytes.p, m.bytes.n, &o, &res), E_OK);
        check_against_model(&m, &o, &s, &res);
        buf_fini(&m.bytes);
    }
}

/* A dense batch in one run; an append time only where asked for. */
TEST(runs_are_few)
{
    static struct model m;
    static struct seen s;
    struct record_path_options o;
    struct record_path_result res;

    m = (struct model){ .n = 3,
                        .last_delta = 9,
                        .delta = { 0, 4, 5 },
                        .time = { BASE_TIME, BASE_TIME, BASE_TIME },
                        .value = { "a", "b", "c" },
                        .max_time = BASE_TIME };
    model_build(&m);
    o = options_for(&s, &m, 0);
    CHECK_EQ(record_path_run(rp, m.bytes.p, m.bytes.n, &o, &res), E_OK);
    CHECK_EQ(s.n, 3);
    CHECK_EQ(s.source[0], 1000);
    CHECK_EQ(s.source[1], 1004);
    CHECK_EQ(s.source[2], 1005);
    CHECK_EQ(s.source_last, 1009); /* the holes at the tail are covered too */
    o = options_for(&s, &m, 0);
    o.start = 1006;
    CHECK_EQ(record_path_run(rp, m.bytes.p, m.bytes.n, &o, &res), E_OK);
    CHECK_EQ(s.batches, 0);
    CHECK_EQ(res.trimmed, 3);
    CHECK_EQ(res.made, 0);
    buf_fini(&m.bytes);
}

static void count_made(void *arg, const struct record_path_batch *made)
{
    (void)made;
    ++*(int *)arg;
}

static enum err run_bytes(const void *p, size_t n)
{
    int made = 0;
    struct record_path_options o = { .emit = count_made, .arg = &made };
    struct record_path_result res;
    enum err e = record_path_run(rp, p, n, &o, &res);

    CHECK_EQ(made, e ? 0 : res.made);
    return e;
}

TEST(refusals)
{
    static struct model m;
    struct rand rand;
    char *p;

    rand_init(&rand, 5);
    model_random(&m, &rand, 3);
    p = m.bytes.p;
    CHECK_EQ(run_bytes(p, m.bytes.n - 1), E_INVALID);
    CHECK_EQ(run_bytes(p, 0), E_INVALID);
    p[m.bytes.n - 1] ^= 1;
    CHECK_EQ(run_bytes(p, m.bytes.n), E_CORRUPT);
    p[16] = 1; /* a message of v1, by its looks */
    CHECK_EQ(run_bytes(p, m.bytes.n), E_CORRUPT);
    p[16] = 3;
    CHECK_EQ(run_bytes(p, m.bytes.n), E_INVALID);
    buf_fini(&m.bytes);
    m.bits = BATCH_CONTROL;
    model_build(&m);
    CHECK_EQ(run_bytes(m.bytes.p, m.bytes.n), E_INVALID);
    buf_fini(&m.bytes);
}

static enum err run_area(int codec, struct str payload, int32_t count, int32_t last_delta)
{
    struct batch h = { .attributes = (int16_t)codec,
                       .count = count,
                       .last_offset_delta = last_delta };
    unsigned char header[BATCH_HEADER_SIZE];
    struct buf whole;
    enum err e;

    batch_seal(&h, payload, header);
    buf_init(&whole, SIZE_MAX);
    buf_put(&whole, header, sizeof(header));
    buf_put_str(&whole, payload);
    e = run_bytes(whole.p, whole.n);
    buf_fini(&whole);
    return e;
}

/* Good checksums around bad records. */
TEST(bad_records)
{
    const struct str two =
        str_of("\x0c\0\0\0\x01\x01\0\x0c\0\0\0\x01\x01\0", 14);    /* both at delta 0 */
    const struct str far = str_of("\x0c\0\0\x04\x01\x01\0", 7);    /* at delta 2 */
    const struct str before = str_of("\x0c\0\0\x01\x01\x01\0", 7); /* at delta -1 */
    char *zeros = mem_new(RECORD_PATH_UNPACKED_MAX + 1);
    struct buf packed;

    CHECK_EQ(run_area(CODEC_NONE, two, 2, 5), E_MALFORMED);
    CHECK_EQ(run_area(CODEC_NONE, str_part(two, 0, 7), 1, 5), E_OK);
    CHECK_EQ(run_area(CODEC_NONE, str_part(two, 0, 7), 2, 5), E_MALFORMED);
    CHECK_EQ(run_area(CODEC_NONE, far, 1, 2), E_OK);
    CHECK_EQ(run_area(CODEC_NONE, far, 1, 1), E_MALFORMED);
    CHECK_EQ(run_area(CODEC_NONE, before, 1, 1), E_MALFORMED);
    CHECK_EQ(run_area(CODEC_GZIP, far, 1, 2), E_CODEC);
    CHECK_EQ(run_area(5, far, 1, 2), E_CODEC);
    CHECK_EQ(run_area(CODEC_NONE, STR(""), 0, 7), E_OK);
    CHECK_EQ(run_area(CODEC_ZSTD, STR(""), 0, 7), E_OK); /* emptied by the cleaner */
    CHECK_EQ(run_area(CODEC_NONE, STR("x"), 0, 7), E_MALFORMED);
    buf_init(&packed, RECORD_PATH_UNPACKED_MAX * 2);
    CHECK_EQ(
        compress_pack(codecs, CODEC_ZSTD, 1, str_of(zeros, RECORD_PATH_UNPACKED_MAX + 1), &packed),
        E_OK);
    CHECK_EQ(run_area(CODEC_ZSTD, buf_str(&packed), 1, 0), E_LIMIT);
    CHECK_EQ(run_area(CODEC_NONE, str_of(zeros, RECORD_PATH_UNPACKED_MAX + 1), 1, 0), E_LIMIT);
    buf_fini(&packed);
    mem_free(zeros);
}

static int setup(void **state)
{
    (void)state;
    rp = record_path_new();
    codecs = compress_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    record_path_free(&rp);
    record_path_free(&rp);
    compress_free(&codecs);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { RUN(random_batches), RUN(runs_are_few), RUN(refusals),
                                        RUN(bad_records) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
