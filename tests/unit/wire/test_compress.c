/* test_compress.c -- every codec: what Java wrote, round trips, limits, bombs and damage.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/compress.h"

#include "base/alloc.h"
#include "base/rand.h"
#include "unit/test.h"

#include <snappy-c.h>
#include <stdio.h>

static const char *const names[] = { "none", "gzip", "snappy", "lz4", "zstd" };

static struct compress *context;

static void load(const char *name, struct buf *out)
{
    char path[512], chunk[4096];
    size_t n;
    FILE *f;

    snprintf(path, sizeof(path), "%s/batches/java-%s.bin", TEST_DATA, name);
    f = fopen(path, "rb");
    CHECK(f);
    buf_init(out, MiB);
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_put(out, chunk, n);
    fclose(f);
}

static struct str payload(const struct buf *b)
{
    return str_part(buf_str(b), BATCH_HEADER_SIZE, b->n);
}

/* Bytes that pack well but not perfectly. */
static char *text_new(size_t n, uint64_t seed)
{
    char *p = mem_new(n + 1);
    struct rand rand;

    rand_init(&rand, seed);
    for (size_t i = 0; i < n; i++)
        p[i] = i > 50 && rand_below(&rand, 8) ? p[i - 1 - rand_below(&rand, 50)]
                                              : (char)rand_next(&rand);
    return p;
}

TEST(reads_what_java_wrote)
{
    struct buf plain, packed, out;

    load("none", &plain);
    for (int codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct batch b;

        load(names[codec], &packed);
        CHECK_EQ(batch_peek(buf_str(&packed), &b), BATCH_V2);
        CHECK_EQ(b.attributes & BATCH_CODEC_MASK, codec);
        CHECK(batch_crc_ok(packed.p, packed.n));
        buf_init(&out, MiB);
        CHECK_EQ(compress_unpack(context, codec, payload(&packed), &out), E_OK);
        CHECK(str_eq(buf_str(&out), payload(&plain)));
        buf_fini(&out);
        buf_fini(&packed);
    }
    buf_fini(&plain);
}

TEST(round_trips_and_limits)
{
    static const size_t sizes[] = {
        0, 1, 2, 100, 32767, 32768, 32769, 65536, 65537, 300000, 2100000
    };

    for (size_t i = 0; i < COUNT(sizes); i++) {
        char *text = text_new(sizes[i], i);
        struct str in = str_of(text, sizes[i]);

        for (int codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
            struct buf packed, out;

            buf_init(&packed, 8 * MiB);
            CHECK_EQ(compress_pack(context, codec, COMPRESS_LEVEL_DEFAULT, in, &packed), E_OK);
            buf_init(&out, sizes[i] + 3);
            buf_put_str(&out, STR("abc"));
            CHECK_EQ(compress_unpack(context, codec, buf_str(&packed), &out), E_OK);
            CHECK(str_starts(buf_str(&out), STR("abc")));
            CHECK(str_eq(str_part(buf_str(&out), 3, out.n), in));
            if (sizes[i] > 0) {
                out.n = 4; /* one byte less room than needed */
                CHECK_EQ(compress_unpack(context, codec, buf_str(&packed), &out), E_LIMIT);
                CHECK_EQ(out.n, 4);
                CHECK(!out.bad);
            }
            buf_fini(&out);
            buf_fini(&packed);
        }
        mem_free(text);
    }
}

TEST(levels)
{
    static const struct {
        int codec, level;
        enum err want;
    } cases[] = {
        { CODEC_NONE, 99, E_OK },
        { CODEC_GZIP, 1, E_OK },
        { CODEC_GZIP, 9, E_OK },
        { CODEC_GZIP, 0, E_INVALID },
        { CODEC_GZIP, 10, E_INVALID },
        { CODEC_SNAPPY, 99, E_OK },
        { CODEC_LZ4, 1, E_OK },
        { CODEC_LZ4, 9, E_OK },
        { CODEC_LZ4, 17, E_OK },
        { CODEC_LZ4, 18, E_INVALID },
        { CODEC_LZ4, 0, E_INVALID },
        { CODEC_ZSTD, -5, E_OK },
        { CODEC_ZSTD, 1, E_OK },
        { CODEC_ZSTD, 22, E_OK },
        { CODEC_ZSTD, 23, E_INVALID },
        { 5, 1, E_CODEC },
        { 7, 1, E_CODEC },
        { -1, 1, E_CODEC },
    };
    char *text = text_new(100000, 1);
    struct str in = str_of(text, 100000);

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf packed, out;

        buf_init(&packed, MiB);
        buf_init(&out, MiB);
        CHECK_EQ(compress_pack(context, cases[i].codec, cases[i].level, in, &packed),
                 cases[i].want);
        if (!cases[i].want) {
            CHECK_EQ(compress_unpack(context, cases[i].codec, buf_str(&packed), &out), E_OK);
            CHECK(str_eq(buf_str(&out), in));
        }
        buf_fini(&out);
        buf_fini(&packed);
    }
    mem_free(text);
}

/* A few KiB that become 64 MiB must cost no more than the limit. */
TEST(bombs)
{
    size_t size = 64 * MiB;
    char *zeros = mem_new(size);

    for (int codec = CODEC_GZIP; codec <= CODEC_ZSTD; codec++) {
        struct buf packed, out;

        buf_init(&packed, 80 * MiB);
        CHECK_EQ(
            compress_pack(context, codec, COMPRESS_LEVEL_DEFAULT, str_of(zeros, size), &packed),
            E_OK);
        buf_init(&out, MiB);
        CHECK_EQ(compress_unpack(context, codec, buf_str(&packed), &out), E_LIMIT);
        CHECK(out.room <= 2 * MiB + 1);
        buf_fini(&out);
        buf_fini(&packed);
    }
    mem_free(zeros);
}

TEST(raw_snappy_and_joined_streams)
{
    char *text = text_new(50000, 5);
    struct str in = str_of(text, 50000);
    struct buf twice, packed, out;
    size_t n = snappy_max_compressed_length(in.n);
    char *raw = mem_new(n);

    buf_init(&packed, MiB);
    buf_init(&out, MiB);
    CHECK_EQ(snappy_compress(in.p, in.n, raw, &n), SNAPPY_OK);
    CHECK_EQ(compress_unpack(context, CODEC_SNAPPY, str_of(raw, n), &out), E_OK);
    CHECK(str_eq(buf_str(&out), in));
    mem_free(raw);

    buf_init(&twice, MiB);
    buf_put_str(&twice, in);
    buf_put_str(&twice, in);
    for (int codec = CODEC_GZIP; codec <= CODEC_ZSTD; codec++) {
        if (codec == CODEC_LZ4)
            continue; /* Java stops after the first frame, and so do we */
        buf_clear(&packed);
        buf_clear(&out);
        CHECK_EQ(compress_pack(context, codec, COMPRESS_LEVEL_DEFAULT, in, &packed), E_OK);
        CHECK_EQ(compress_pack(context, codec, COMPRESS_LEVEL_DEFAULT, in, &packed), E_OK);
        CHECK_EQ(compress_unpack(context, codec, buf_str(&packed), &out), E_OK);
        CHECK(str_eq(buf_str(&out), buf_str(&twice)));
    }
    buf_fini(&twice);
    buf_fini(&out);
    buf_fini(&packed);
    mem_free(text);
}

/* Whatever is cut off or flipped, the answer is an answer, and the context stays usable. */
TEST(damage)
{
    char *text = text_new(20000, 9);
    struct str in = str_of(text, 20000);
    struct buf packed, out;
    struct rand rand;

    rand_init(&rand, 4);
    buf_init(&packed, MiB);
    buf_init(&out, 100000);
    for (int codec = CODEC_GZIP; codec <= CODEC_ZSTD; codec++) {
        buf_clear(&packed);
        CHECK_EQ(compress_pack(context, codec, COMPRESS_LEVEL_DEFAULT, in, &packed), E_OK);
        for (int round = 0; round < 300; round++) {
            size_t at = rand_below(&rand, packed.n);
            char flip = (char)(1 << rand_below(&rand, 8));

            buf_clear(&out);
            if (!compress_unpack(context, codec, str_part(buf_str(&packed), 0, at), &out))
                CHECK(codec == CODEC_SNAPPY && out.n < in.n); /* its chunks end anywhere */
            buf_clear(&out);
            packed.p[at] ^= flip;
            (void)!compress_unpack(context, codec, buf_str(&packed), &out);
            packed.p[at] ^= flip;
        }
        buf_clear(&out);
        CHECK_EQ(compress_unpack(context, codec, buf_str(&packed), &out), E_OK);
        CHECK(str_eq(buf_str(&out), in));
    }
    buf_fini(&out);
    buf_fini(&packed);
    mem_free(text);
}

TEST(nothing_and_no_codec)
{
    struct buf out;

    buf_init(&out, KiB);
    CHECK_EQ(compress_unpack(context, CODEC_NONE, STR_NULL, &out), E_OK);
    for (int codec = CODEC_GZIP; codec <= 7; codec++)
        CHECK_EQ(compress_unpack(context, codec, STR_NULL, &out), E_CODEC);
    CHECK_EQ(compress_unpack(context, 5, STR("abc"), &out), E_CODEC);
    CHECK_EQ(out.n, 0);
    buf_fini(&out);
}

static int setup(void **state)
{
    (void)state;
    context = compress_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    compress_free(&context);
    compress_free(&context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(reads_what_java_wrote),
        RUN(round_trips_and_limits),
        RUN(levels),
        RUN(bombs),
        RUN(raw_snappy_and_joined_streams),
        RUN(damage),
        RUN(nothing_and_no_codec),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
