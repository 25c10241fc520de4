/* test_merge.c -- neighbours made one batch: order, offsets and times of every record, runs, skips, splits, new times.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/record_path.h"

#include "base/rand.h"
#include "unit/test.h"
#include "wire/compress.h"
#include "wire/prim.h"
#include "wire/record.h"

#include <stdio.h>
#include <zlib.h>

#define BATCHES_MAX 60
#define RECORDS_MAX 600
#define TIME        1700000000000

static struct record_path *rp;
static struct compress *codecs;

/* What went in, and what came out. */
struct list {
    int32_t n;
    int64_t offset[RECORDS_MAX], time[RECORDS_MAX];
    char value[RECORDS_MAX][40];
    int32_t batches, runs;
    int32_t sequence;
    int64_t last;
    size_t largest;
    int codec;
};

static struct str sources[BATCHES_MAX];
static struct buf bytes[BATCHES_MAX];
static struct list in, out;

static void note(struct list *l, int64_t offset, int64_t time, struct str value)
{
    l->offset[l->n] = offset;
    l->time[l->n] = time;
    snprintf(l->value[l->n++], sizeof(l->value[0]), "%.*s", STR_ARG(value));
}

/* A batch of n records from `offset` on, every second with a hole before it when `holes`. */
static int64_t add_batch(size_t i, int64_t offset, int32_t n, int codec, bool holes, bool append)
{
    struct batch h = { .base_offset = offset, .leader_epoch = 4, .count = n, .base_timestamp = TIME + (int64_t)i,
                       .max_timestamp = TIME + 1000 + (int64_t)i, .producer_id = (int64_t)i, .base_sequence = 9,
                       .attributes = (int16_t)(codec | (append ? BATCH_LOG_APPEND_TIME : 0)) };
    unsigned char header[BATCH_HEADER_SIZE];
    struct buf area, packed;
    int32_t delta = -1;

    buf_init(&area, MiB);
    buf_init(&packed, MiB);
    for (int32_t k = 0; k < n; k++) {
        struct record rec = { .timestamp_delta = k % 3 - 1, .key = STR("k") };
        char value[40];

        snprintf(value, sizeof(value), "%zu-%d", i, k);
        rec.value = str_c(value);
        delta += 1 + (holes && k % 2);
        rec.offset_delta = delta;
        note(&in, offset + delta, append ? h.max_timestamp : h.base_timestamp + rec.timestamp_delta, rec.value);
        record_put(&area, &rec);
    }
    h.last_offset_delta = delta + holes;
    CHECK_EQ(compress_pack(codecs, codec, COMPRESS_LEVEL_DEFAULT, buf_str(&area), &packed), E_OK);
    batch_seal(&h, buf_str(&packed), header);
    buf_init(&bytes[i], MiB);
    buf_put(&bytes[i], header, sizeof(header));
    buf_put_str(&bytes[i], buf_str(&packed));
    sources[i] = buf_str(&bytes[i]);
    buf_fini(&area);
    buf_fini(&packed);
    return batch_last_offset(&h) + 1;
}

/* A single v1 message. */
static int64_t add_legacy(size_t i, int64_t offset)
{
    struct buf *b = &bytes[i];
    char value[40];

    snprintf(value, sizeof(value), "%zu-old", i);
    buf_init(b, MiB);
    put_i64(b, offset);
    put_i32(b, (int32_t)(22 + strlen(value)));
    put_u32(b, 0);
    put_i8(b, 1);
    put_i8(b, 0);
    put_i64(b, TIME - 1);
    put_i32(b, -1);
    put_i32(b, (int32_t)strlen(value));
    buf_put(b, value, strlen(value));
    store_u32(b->p + 12, (uint32_t)crc32(0, (const unsigned char *)b->p + 16, (unsigned)b->n - 16));
    note(&in, offset, TIME - 1, str_c(value));
    sources[i] = buf_str(b);
    return offset + 1;
}

static void on_made(void *arg, const struct record_path_batch *made)
{
    struct buf area, whole;
    struct record_reader r;
    struct record rec;
    struct batch h;
    int32_t run = 0;

    (void)arg;
    buf_init(&area, MiB);
    buf_init(&whole, MiB);
    buf_put(&whole, made->header, BATCH_HEADER_SIZE);
    buf_put_str(&whole, made->payload);
    CHECK_EQ(batch_peek(buf_str(&whole), &h), BATCH_V2);
    CHECK(batch_crc_ok(whole.p, whole.n));
    CHECK_EQ(h.attributes, out.codec);
    CHECK_EQ(h.base_sequence, out.sequence);
    CHECK_EQ(h.max_timestamp, made->max_timestamp);
    CHECK_EQ(compress_unpack(codecs, out.codec, made->payload, &area), E_OK);
    r = record_reader_of(buf_str(&area), h.count);
    for (int32_t i = 0; record_next(&r, &rec); i++) {
        while (i >= made->runs[run].index + made->runs[run].count)
            run++;
        CHECK_EQ(rec.offset_delta, i);
        note(&out, made->runs[run].source + i - made->runs[run].index, h.base_timestamp + rec.timestamp_delta, rec.value);
    }
    CHECK_EQ(record_reader_end(&r), E_OK);
    CHECK_EQ(run, made->runs_n - 1);
    out.runs += made->runs_n;
    out.last = made->source_last;
    out.batches++;
    out.sequence += made->count;
    if (made->count > 1)
        out.largest = MAX(out.largest, whole.n);
    buf_fini(&area);
    buf_fini(&whole);
}

static struct record_path_options begin(void)
{
    memset(&in, 0, sizeof(in));
    memset(&out, 0, sizeof(out));
    return (struct record_path_options){ .stamp = { 7, 1, 0, false }, .emit = on_made };
}

static void end(size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_fini(&bytes[i]);
}

/* What came out is the tail of what went in. */
static void check_tail(int32_t from)
{
    CHECK_EQ(out.n, in.n - from);
    for (int32_t i = 0; i < out.n; i++) {
        CHECK_EQ(out.offset[i], in.offset[from + i]);
        CHECK_EQ(out.time[i], in.time[from + i]);
        assert_string_equal(out.value[i], in.value[from + i]);
    }
}

TEST(random_neighbours)
{
    struct rand rand;

    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct record_path_options o = begin();
        struct record_path_result res;
        int64_t offset = 500;
        size_t n;
        int32_t from = 0;

        rand_init(&rand, seed);
        n = 1 + rand_below(&rand, BATCHES_MAX);
        out.codec = (int)rand_below(&rand, 5);
        o.keep_append_time = true;
        for (size_t i = 0; i < n; i++) {
            if (rand_below(&rand, 5) == 0)
                offset += 3; /* what was dropped between */
            offset = rand_below(&rand, 6) == 0 && i > 0
                         ? add_legacy(i, offset)
                         : add_batch(i, offset, 1 + (int32_t)rand_below(&rand, 9), out.codec,
                                     rand_below(&rand, 4) == 0, rand_below(&rand, 4) == 0);
        }
        if (rand_below(&rand, 2))
            o.skip_records = (int64_t)rand_below(&rand, 40);
        if (rand_below(&rand, 2))
            o.start = 500 + (int64_t)rand_below(&rand, 60);
        if (rand_below(&rand, 2))
            o.size_max = 100 + rand_below(&rand, 900);
        while (from < in.n && in.offset[from] < o.start)
            from++;
        from = MIN(from + (int32_t)o.skip_records, in.n);
        CHECK_EQ(record_path_merge(rp, sources, n, &o, &res), E_OK);
        CHECK_EQ(res.made, out.batches);
        check_tail(from);
        CHECK(!out.batches || out.last == offset - 1);
        CHECK(o.size_max ? out.largest <= o.size_max : out.batches <= 1);
        end(n);
    }
}

/* Without holes it is one run, whatever it was made of. */
TEST(one_run)
{
    struct record_path_options o = begin();
    struct record_path_result res;
    int64_t offset = 0;

    for (size_t i = 0; i < 50; i++)
        offset = add_batch(i, offset, 2, CODEC_NONE, false, false);
    CHECK_EQ(record_path_merge(rp, sources, 50, &o, &res), E_OK);
    CHECK_EQ(out.batches, 1);
    CHECK_EQ(out.runs, 1);
    check_tail(0);
    end(50);
}

TEST(another_codec)
{
    struct record_path_options o = begin();
    struct record_path_result res;

    (void)add_batch(1, add_batch(0, 0, 5, CODEC_GZIP, false, false), 5, CODEC_GZIP, false, false);
    o.recompress = true;
    o.codec = out.codec = CODEC_ZSTD;
    o.level = 5;
    CHECK_EQ(record_path_merge(rp, sources, 2, &o, &res), E_OK);
    check_tail(0);
    end(2);
}

TEST(new_times)
{
    struct record_path_options o = begin();
    struct record_path_result res;

    (void)add_batch(0, 0, 3, CODEC_NONE, false, false); /* TIME - 1, TIME, TIME + 1 */
    o.times = (struct record_times){ .on = true, .least = TIME, .most = TIME, .below = TIME - 7, .above = TIME + 9 };
    CHECK_EQ(record_path_merge(rp, sources, 1, &o, &res), E_OK);
    CHECK_EQ(res.retimed, 2);
    CHECK_EQ(out.time[0], TIME - 7);
    CHECK_EQ(out.time[1], TIME);
    CHECK_EQ(out.time[2], TIME + 9);
    end(1);
}

TEST(refusals)
{
    struct record_path_options o = begin();
    struct record_path_result res;
    struct str swap;

    (void)add_batch(1, add_batch(0, 0, 5, CODEC_NONE, false, false), 5, CODEC_NONE, false, false);
    swap = sources[0];
    sources[0] = sources[1];
    sources[1] = swap;
    CHECK_EQ(record_path_merge(rp, sources, 2, &o, &res), E_INVALID);
    sources[1] = sources[0];
    CHECK_EQ(record_path_merge(rp, sources, 2, &o, &res), E_INVALID);
    bytes[1].p[bytes[1].n - 1] ^= 1;
    CHECK_EQ(record_path_merge(rp, sources, 1, &o, &res), E_CORRUPT);
    CHECK_EQ(out.batches, 0);
    end(2);
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
    compress_free(&codecs);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { RUN(random_neighbours), RUN(one_run), RUN(another_codec), RUN(new_times),
                                        RUN(refusals) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
