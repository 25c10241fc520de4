/* test_legacy.c -- messages of v0 and v1, built here: single, wrapped with each codec, compacted, damaged.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "wire/legacy.h"
#include "wire/prim.h"
#include "wire/record.h"

#include <zlib.h>

#define TIME 1600000000000

static struct compress *codecs;
static struct buf scratch, area;
static struct batch head;

static void put_counted(struct buf *b, struct str s)
{
    put_i32(b, str_is_null(s) ? -1 : (int32_t)s.n);
    buf_put_str(b, s);
}

static void put_message(struct buf *out, int magic, int attributes, int64_t offset, int64_t time, struct str key,
                        struct str value)
{
    struct buf body;

    buf_init(&body, MiB);
    put_i8(&body, (int8_t)magic);
    put_i8(&body, (int8_t)attributes);
    if (magic == 1)
        put_i64(&body, time);
    put_counted(&body, key);
    put_counted(&body, value);
    put_i64(out, offset);
    put_i32(out, (int32_t)body.n + 4);
    put_u32(out, (uint32_t)crc32(0, (const unsigned char *)body.p, (unsigned)body.n));
    buf_put_str(out, buf_str(&body));
    buf_fini(&body);
}

/* A wrapper around three messages; `gap` offsets are missing before the last. In v0 the checksum of an LZ4 frame's
 * descriptor is a wrong one. */
static void put_wrapper(struct buf *out, int magic, int attributes, int64_t first, int64_t gap)
{
    int codec = attributes & BATCH_CODEC_MASK;
    int64_t base = magic == 1 ? 0 : first;
    struct buf set, packed;

    buf_init(&set, MiB);
    buf_init(&packed, MiB);
    put_message(&set, magic, 0, base, TIME, STR("k0"), STR("a"));
    put_message(&set, magic, 0, base + 1, TIME - 5, STR_NULL, STR(""));
    put_message(&set, magic, 0, base + 2 + gap, TIME + 7, STR(""), STR_NULL);
    CHECK_EQ(compress_pack(codecs, codec, COMPRESS_LEVEL_DEFAULT, buf_str(&set), &packed), E_OK);
    if (magic == 0 && codec == CODEC_LZ4)
        packed.p[packed.p[4] & 8 ? 14 : 6] ^= 0x55;
    put_message(out, magic, attributes, first + 2 + gap, TIME + 9, STR_NULL, buf_str(&packed));
    buf_fini(&packed);
    buf_fini(&set);
}

static enum err unpack(const struct buf *entry)
{
    buf_clear(&area);
    return legacy_unpack(codecs, entry->p, entry->n, &scratch, &area, &head);
}

static void check_three(int64_t first, int64_t gap, const int64_t times[3])
{
    struct record_reader r = record_reader_of(buf_str(&area), head.count);
    const int64_t offsets[] = { first, first + 1, first + 2 + gap };
    struct record rec;

    CHECK_EQ(head.count, 3);
    CHECK_EQ(head.base_offset, first);
    CHECK_EQ(batch_last_offset(&head), first + 2 + gap);
    CHECK_EQ(head.leader_epoch, -1);
    CHECK_EQ(head.producer_id, -1);
    for (int i = 0; i < 3; i++) {
        CHECK(record_next(&r, &rec));
        CHECK_EQ(head.base_offset + rec.offset_delta, offsets[i]);
        CHECK_EQ(head.base_timestamp + rec.timestamp_delta, times[i]);
        CHECK_EQ(rec.header_count, 0);
        CHECK_EQ(str_is_null(rec.key), i == 1);
        CHECK_EQ(str_is_null(rec.value), i == 2);
    }
    CHECK_EQ(record_reader_end(&r), E_OK);
}

TEST(single_messages)
{
    struct record_reader r;
    struct record rec;
    struct buf b;

    for (int magic = 0; magic < 2; magic++) {
        buf_init(&b, MiB);
        put_message(&b, magic, 0, 77, TIME, STR("key"), STR("value"));
        CHECK(legacy_crc_ok(b.p, b.n));
        CHECK_EQ(unpack(&b), E_OK);
        CHECK_EQ(head.count, 1);
        CHECK_EQ(head.base_offset, 77);
        CHECK_EQ(head.max_timestamp, magic ? TIME : -1);
        r = record_reader_of(buf_str(&area), 1);
        CHECK(record_next(&r, &rec));
        CHECK_STR(rec.key, "key");
        CHECK_STR(rec.value, "value");
        b.p[b.n - 1] ^= 1;
        CHECK(!legacy_crc_ok(b.p, b.n));
        CHECK(!legacy_crc_ok(b.p, 12));
        buf_fini(&b);
    }
}

TEST(wrappers)
{
    const int64_t none[] = { -1, -1, -1 }, own[] = { TIME, TIME - 5, TIME + 7 };
    const int64_t append[] = { TIME + 9, TIME + 9, TIME + 9 };
    struct buf b;

    for (int codec = CODEC_GZIP; codec <= CODEC_LZ4; codec++) {
        for (int64_t gap = 0; gap < 100; gap += 50) {
            for (int kind = 0; kind < 3; kind++) { /* v0, v1, v1 with append time */
                buf_init(&b, MiB);
                put_wrapper(&b, kind > 0, codec | (kind == 2 ? BATCH_LOG_APPEND_TIME : 0), 1000, gap);
                CHECK_EQ(unpack(&b), E_OK);
                CHECK_EQ(head.attributes, codec);
                check_three(1000, gap, kind == 0 ? none : kind == 1 ? own : append);
                buf_fini(&b);
            }
        }
    }
}

/* Frames of LZ4 in v1 must be right; in v0 the descriptor's checksum means nothing. */
TEST(lz4_descriptor)
{
    struct buf set, packed, b;

    buf_init(&set, MiB);
    buf_init(&packed, MiB);
    buf_init(&b, MiB);
    put_message(&set, 1, 0, 0, TIME, STR_NULL, STR("x"));
    CHECK_EQ(compress_pack(codecs, CODEC_LZ4, COMPRESS_LEVEL_DEFAULT, buf_str(&set), &packed), E_OK);
    packed.p[6] ^= 1;
    put_message(&b, 1, CODEC_LZ4, 5, TIME, STR_NULL, buf_str(&packed));
    CHECK_EQ(unpack(&b), E_CODEC);
    buf_fini(&set);
    buf_fini(&packed);
    buf_fini(&b);
}

static void check_bad(int magic, int attributes, int64_t offset, struct str value, enum err want)
{
    struct buf b;

    buf_init(&b, MiB);
    put_message(&b, magic, attributes, offset, TIME, STR_NULL, value);
    CHECK_EQ(unpack(&b), want);
    CHECK_EQ(area.n, 0);
    buf_fini(&b);
}

TEST(refusals)
{
    struct buf set, packed, b;

    buf_init(&b, MiB);
    put_message(&b, 1, 0, 5, TIME, STR("k"), STR("v"));
    b.n--;
    CHECK_EQ(unpack(&b), E_MALFORMED);
    buf_fini(&b);
    check_bad(1, CODEC_GZIP, 5, STR_NULL, E_MALFORMED);
    check_bad(1, CODEC_GZIP, 5, STR("no gzip"), E_CODEC);
    check_bad(1, CODEC_ZSTD, 5, STR("x"), E_CODEC);
    check_bad(0, CODEC_LZ4, 5, STR("x"), E_CODEC);
    for (int kind = 0; kind < 4; kind++) {
        buf_init(&set, MiB);
        buf_init(&packed, MiB);
        if (kind == 0) { /* another format inside */
            put_message(&set, 0, 0, 0, TIME, STR_NULL, STR("v"));
        } else if (kind == 1) { /* a wrapper inside */
            put_message(&set, 1, CODEC_GZIP, 0, TIME, STR_NULL, STR("v"));
        } else if (kind == 2) { /* offsets that do not rise */
            put_message(&set, 1, 0, 0, TIME, STR_NULL, STR("v"));
            put_message(&set, 1, 0, 0, TIME, STR_NULL, STR("v"));
        } else { /* more offsets than the wrapper's */
            put_message(&set, 1, 0, 9, TIME, STR_NULL, STR("v"));
        }
        CHECK_EQ(compress_pack(codecs, CODEC_SNAPPY, COMPRESS_LEVEL_DEFAULT, buf_str(&set), &packed), E_OK);
        check_bad(1, CODEC_SNAPPY, 5, buf_str(&packed), E_MALFORMED);
        buf_fini(&set);
        buf_fini(&packed);
    }
}

static int setup(void **state)
{
    (void)state;
    codecs = compress_new();
    buf_init(&scratch, MiB);
    buf_init(&area, MiB);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    compress_free(&codecs);
    buf_fini(&scratch);
    buf_fini(&area);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { RUN(single_messages), RUN(wrappers), RUN(lz4_descriptor), RUN(refusals) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
