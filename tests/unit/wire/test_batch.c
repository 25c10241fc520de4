/* test_batch.c -- batch headers: peek's verdicts, and restamp and seal against known bytes and a full CRC.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/batch.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/rand.h"
#include "unit/test.h"
#include "wire/prim.h"

#include <stdio.h>

/* Appendix A of the relay rules: two records, transactional, producer 4242. */
static const unsigned char batch_a[] = {
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xe8, 0x00, 0x00, 0x00, 0x49, 0x00, 0x00, 0x00,
    0x07, 0x02, 0xd5, 0xe3, 0x2f, 0xc8, 0x00, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x01,
    0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x05, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x10, 0x92, 0x00, 0x03, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00,
    0x02, 0x1c, 0x00, 0x00, 0x00, 0x04, 0x6b, 0x31, 0x04, 0x76, 0x31, 0x02, 0x02, 0x68, 0x02,
    0x78, 0x10, 0x00, 0x0a, 0x02, 0x04, 0x6b, 0x32, 0x01, 0x00,
};

static const struct batch_stamp stamp_b = { .producer_id = 0x4000000000000001,
                                            .producer_epoch = 0,
                                            .base_sequence = 1000 };

static struct str bytes_a(void)
{
    return str_of((const char *)batch_a, sizeof(batch_a));
}

TEST(peek_reads_all_fields)
{
    struct batch b;

    CHECK_EQ(sizeof(batch_a), 85);
    CHECK_EQ(batch_peek(bytes_a(), &b), BATCH_V2);
    CHECK_EQ(b.base_offset, 1000);
    CHECK_EQ(b.size, 85);
    CHECK_EQ(b.leader_epoch, 7);
    CHECK_EQ(b.magic, 2);
    CHECK_EQ(b.crc, 0xd5e32fc8u);
    CHECK_EQ(b.attributes, BATCH_TRANSACTIONAL);
    CHECK_EQ(b.last_offset_delta, 1);
    CHECK_EQ(batch_last_offset(&b), 1001);
    CHECK_EQ(b.base_timestamp, 1700000000000);
    CHECK_EQ(b.max_timestamp, 1700000000005);
    CHECK_EQ(b.producer_id, 4242);
    CHECK_EQ(b.producer_epoch, 3);
    CHECK_EQ(b.base_sequence, 17);
    CHECK_EQ(b.count, 2);
}

TEST(peek_verdicts)
{
    static const struct {
        const char *what;
        size_t n; /* bytes given */
        int32_t length;
        int8_t magic;
        enum batch_next want;
    } cases[] = {
        { "nothing", 0, 73, 2, BATCH_END },
        { "cut in the length", 11, 73, 2, BATCH_END },
        { "cut before the magic", 16, 73, 2, BATCH_END },
        { "cut in the header", 60, 73, 2, BATCH_END },
        { "cut in the records", 84, 73, 2, BATCH_END },
        { "whole", 85, 73, 2, BATCH_V2 },
        { "header only", 61, 49, 2, BATCH_V2 },
        { "more behind it", 85, 60, 2, BATCH_V2 },
        { "shorter than a header", 85, 48, 2, BATCH_MALFORMED },
        { "the same, cut", 20, 48, 2, BATCH_MALFORMED },
        { "zero", 85, 0, 2, BATCH_MALFORMED },
        { "zero, cut", 12, 0, 2, BATCH_MALFORMED },
        { "negative", 85, -1, 2, BATCH_MALFORMED },
        { "most negative", 85, INT32_MIN, 2, BATCH_MALFORMED },
        { "most positive", 85, INT32_MAX, 2, BATCH_END },
        { "legacy 0", 85, 14, 0, BATCH_LEGACY },
        { "legacy 1", 85, 73, 1, BATCH_LEGACY },
        { "legacy, cut", 25, 14, 0, BATCH_END },
        { "legacy, too short", 85, 13, 0, BATCH_MALFORMED },
        { "from the future", 85, 73, 3, BATCH_UNKNOWN },
        { "from nowhere", 85, 73, -1, BATCH_UNKNOWN },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned char copy[sizeof(batch_a)];
        struct batch b;

        memcpy(copy, batch_a, sizeof(copy));
        store_u32(copy + 8, (uint32_t)cases[i].length);
        copy[16] = (unsigned char)cases[i].magic;
        if (batch_peek(str_of((const char *)copy, cases[i].n), &b) != cases[i].want)
            fail_msg("%s", cases[i].what);
        if (cases[i].want == BATCH_LEGACY || cases[i].want == BATCH_UNKNOWN) {
            CHECK_EQ(b.base_offset, 1000);
            CHECK_EQ(b.magic, cases[i].magic);
            CHECK_EQ(b.size, cases[i].length + 12);
        }
    }
}

TEST(peek_refuses_impossible_numbers)
{
    static const struct {
        int64_t base_offset;
        int32_t last_offset_delta;
        int32_t count;
        enum batch_next want;
    } cases[] = {
        { 0, 0, 1, BATCH_V2 },
        { 0, 5, 0, BATCH_V2 }, /* emptied by the cleaner */
        { 0, 5, 3, BATCH_V2 }, /* holes */
        { 0, INT32_MAX, INT32_MAX, BATCH_V2 },
        { INT64_MAX - 1, 0, 1, BATCH_V2 },
        { INT64_MAX, 0, 1, BATCH_MALFORMED },
        { INT64_MAX - 1, 1, 2, BATCH_MALFORMED },
        { -1, 0, 1, BATCH_MALFORMED },
        { 0, -1, 0, BATCH_MALFORMED },
        { 0, 0, -1, BATCH_MALFORMED },
        { 0, 0, INT32_MIN, BATCH_MALFORMED },
        { 0, 0, 2, BATCH_MALFORMED },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned char copy[sizeof(batch_a)];
        struct batch b;

        memcpy(copy, batch_a, sizeof(copy));
        store_u64(copy, (uint64_t)cases[i].base_offset);
        store_u32(copy + 23, (uint32_t)cases[i].last_offset_delta);
        store_u32(copy + 57, (uint32_t)cases[i].count);
        CHECK_EQ(batch_peek(str_of((const char *)copy, sizeof(copy)), &b), cases[i].want);
        CHECK_EQ(b.size, sizeof(copy));
    }
}

TEST(crc)
{
    unsigned char copy[sizeof(batch_a)];

    CHECK(batch_crc_ok((const char *)batch_a, sizeof(batch_a)));
    CHECK(!batch_crc_ok((const char *)batch_a, sizeof(batch_a) - 1));
    CHECK(!batch_crc_ok((const char *)batch_a, 60));
    CHECK(!batch_crc_ok((const char *)batch_a, 0));
    for (size_t i = 17; i < sizeof(batch_a); i++) {
        memcpy(copy, batch_a, sizeof(copy));
        copy[i] ^= 0x40;
        CHECK(!batch_crc_ok((const char *)copy, sizeof(copy)));
    }
}

TEST(restamp_gives_batch_b)
{
    unsigned char out[sizeof(batch_a)];
    struct batch b;

    memcpy(out, batch_a, sizeof(out));
    batch_restamp((const char *)batch_a, sizeof(batch_a), &stamp_b, out);
    CHECK(batch_crc_ok((const char *)out, sizeof(out)));
    CHECK_EQ(batch_peek(str_of((const char *)out, sizeof(out)), &b), BATCH_V2);
    CHECK_EQ(b.crc, 0x447eaa6eu);
    CHECK_EQ(b.base_offset, 0);
    CHECK_EQ(b.leader_epoch, -1);
    CHECK_EQ(b.attributes, 0);
    CHECK_EQ(b.producer_id, stamp_b.producer_id);
    CHECK_EQ(b.producer_epoch, 0);
    CHECK_EQ(b.base_sequence, 1000);
    CHECK_EQ(b.count, 2);
    CHECK_EQ(b.max_timestamp, 1700000000005);
}

/* Random headers and payloads: the patched CRC is the full one, and only foreign bits are cleared. */
TEST(restamp_equals_full_pass)
{
    unsigned char *data = mem_new(5000);
    struct rand rand;

    rand_init(&rand, 11);
    for (int round = 0; round < 5000; round++) {
        size_t size = BATCH_HEADER_SIZE + rand_below(&rand, 4000);
        struct batch_stamp stamp = { (int64_t)rand_next(&rand), (int16_t)rand_next(&rand),
                                     (int32_t)rand_next(&rand), round % 2 };
        uint16_t before;

        for (size_t i = 0; i < size; i++)
            data[i] = (unsigned char)rand_next(&rand);
        store_u32(data + 17, crc32c(0, data + 21, size - 21));
        before = load_u16(data + 21);
        batch_restamp((const char *)data, size, &stamp, data);
        CHECK(batch_crc_ok((const char *)data, size));
        CHECK_EQ(load_u16(data + 21), (before & ~0x58) | (stamp.transactional ? BATCH_TRANSACTIONAL : 0));
        CHECK_EQ(load_u64(data + 43), stamp.producer_id);
    }
    mem_free(data);
}

/* Whole batches of every codec as Java's producers write them. */
TEST(restamp_of_java_batches)
{
    static const char *const names[] = { "none", "gzip", "snappy", "lz4", "zstd" };

    for (size_t i = 0; i < COUNT(names); i++) {
        char path[512], *data = mem_new(MiB);
        size_t size;
        struct batch b;
        FILE *f;

        snprintf(path, sizeof(path), "%s/batches/java-%s.bin", TEST_DATA, names[i]);
        f = fopen(path, "rb");
        CHECK(f);
        size = fread(data, 1, MiB, f);
        fclose(f);
        CHECK(batch_crc_ok(data, size));
        batch_restamp(data, size, &stamp_b, (unsigned char *)data);
        CHECK(batch_crc_ok(data, size));
        CHECK_EQ(batch_peek(str_of(data, size), &b), BATCH_V2);
        CHECK_EQ(b.size, size);
        CHECK_EQ(b.attributes, i);
        CHECK_EQ(b.count, 200);
        CHECK_EQ(b.base_sequence, 1000);
        mem_free(data);
    }
}

/* The patch must not bless what was damaged on the way. */
TEST(restamp_keeps_damage_visible)
{
    unsigned char copy[sizeof(batch_a)];

    memcpy(copy, batch_a, sizeof(copy));
    copy[70] ^= 1;
    batch_restamp((const char *)copy, sizeof(copy), &stamp_b, copy);
    CHECK(!batch_crc_ok((const char *)copy, sizeof(copy)));
}

TEST(seal_gives_batch_a)
{
    unsigned char out[BATCH_HEADER_SIZE];
    struct batch b;

    CHECK_EQ(batch_peek(bytes_a(), &b), BATCH_V2);
    b.size = 0;
    b.crc = 0;
    batch_seal(&b, str_part(bytes_a(), BATCH_HEADER_SIZE, sizeof(batch_a)), out);
    CHECK_MEM(out, batch_a, sizeof(out));
    b.count = 0;
    batch_seal(&b, STR_NULL, out);
    CHECK(batch_crc_ok((const char *)out, sizeof(out)));
    CHECK_EQ(batch_peek(str_of((const char *)out, sizeof(out)), &b), BATCH_V2);
    CHECK_EQ(b.size, BATCH_HEADER_SIZE);
}

TESTS(RUN(peek_reads_all_fields), RUN(peek_verdicts), RUN(peek_refuses_impossible_numbers),
      RUN(crc), RUN(restamp_gives_batch_b), RUN(restamp_equals_full_pass),
      RUN(restamp_of_java_batches), RUN(restamp_keeps_damage_visible), RUN(seal_gives_batch_a))
