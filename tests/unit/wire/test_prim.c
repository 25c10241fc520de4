/* test_prim.c -- primitive types against hand-made bytes, at their limits and beyond.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "wire/prim.h"

#include <limits.h>

TEST(uvarint)
{
    static const struct {
        const char *bytes;
        size_t len;
        uint32_t want;
        bool bad;
    } cases[] = {
        { "\x00", 1, 0, false },
        { "\x7f", 1, 127, false },
        { "\x80\x01", 2, 128, false },
        { "\xff\x7f", 2, 16383, false },
        { "\x80\x80\x01", 3, 16384, false },
        { "\xff\xff\xff\xff\x0f", 5, UINT32_MAX, false },
        { "\x80\x00", 2, 0, false },            /* longer than need be, as Kafka allows */
        { "\xff\xff\xff\xff\x10", 5, 0, true }, /* past 32 bits */
        { "\xff\xff\xff\xff\x7f", 5, 0, true },
        { "\x80\x80\x80\x80\x80\x00", 6, 0, true }, /* past five bytes */
        { "\x80", 1, 0, true },                     /* cut short */
        { "", 0, 0, true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reader r = reader_of(cases[i].bytes, cases[i].len);
        uint32_t got = read_uvarint(&r);

        CHECK_EQ(r.bad, cases[i].bad);
        CHECK_EQ(got, cases[i].want);
        CHECK_EQ(reader_left(&r), 0);
    }
}

TEST(zigzag)
{
    static const struct {
        const char *bytes;
        size_t len;
        int64_t want;
    } cases[] = {
        { "\x00", 1, 0 },
        { "\x01", 1, -1 },
        { "\x02", 1, 1 },
        { "\x7f", 1, -64 },
        { "\x80\x01", 2, 64 },
        { "\xfe\xff\xff\xff\x0f", 5, INT32_MAX },
        { "\xff\xff\xff\xff\x0f", 5, INT32_MIN },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reader a = reader_of(cases[i].bytes, cases[i].len);
        struct reader b = a;

        CHECK_EQ(read_varint(&a), cases[i].want);
        CHECK_EQ(read_varlong(&b), cases[i].want);
        CHECK(!a.bad && !b.bad);
    }
}

TEST(varlong_limits)
{
    struct reader least = reader_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    struct reader most = reader_of("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    struct reader over = reader_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);

    CHECK(read_varlong(&least) == INT64_MIN);
    CHECK(read_varlong(&most) == INT64_MAX);
    read_varlong(&over);
    CHECK(over.bad);
}

TEST(variable_round_trip)
{
    struct buf b;

    buf_init(&b, 1 * MiB);
    for (int shift = 0; shift < 64; shift++) {
        for (int64_t near = -1; near <= 1; near++) {
            uint64_t v = ((uint64_t)1 << shift) + (uint64_t)near;
            struct reader r;

            buf_clear(&b);
            put_varlong(&b, (int64_t)v);
            CHECK_EQ(b.n, varlong_size((int64_t)v));
            put_varint(&b, (int32_t)v);
            put_uvarint(&b, (uint32_t)v);
            CHECK_EQ(b.n, varlong_size((int64_t)v) + varint_size((int32_t)v) +
                              uvarint_size((uint32_t)v));
            r = reader_of(b.p, b.n);
            CHECK(read_varlong(&r) == (int64_t)v);
            CHECK_EQ(read_varint(&r), (int32_t)v);
            CHECK_EQ(read_uvarint(&r), (uint32_t)v);
            CHECK(!r.bad && reader_left(&r) == 0);
        }
    }
    buf_fini(&b);
}

TEST(fixed_width_is_big_endian)
{
    static const char want[] =
        "\xfe\x01\x02\x80\x00\x00\x01\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xfe";
    struct reader r;
    struct buf b;

    buf_init(&b, 64);
    put_i8(&b, -2);
    put_i16(&b, 0x0102);
    put_i32(&b, INT32_MIN + 1);
    put_i64(&b, 0x0102030405060708);
    put_u32(&b, UINT32_MAX - 1);
    CHECK_EQ(b.n, sizeof(want) - 1);
    CHECK_MEM(b.p, want, b.n);
    r = reader_of(b.p, b.n);
    CHECK_EQ(read_i8(&r), -2);
    CHECK_EQ(read_u16(&r), 0x0102);
    CHECK_EQ(read_i32(&r), INT32_MIN + 1);
    CHECK(read_i64(&r) == 0x0102030405060708);
    CHECK_EQ(read_u32(&r), UINT32_MAX - 1);
    CHECK(!r.bad);
    CHECK_EQ(load_u16(want + 1), 0x0102);
    CHECK_EQ(load_u32(want + 3), 0x80000001);
    CHECK(load_u64(want + 7) == 0x0102030405060708);
    buf_fini(&b);
}

TEST(strings)
{
    struct buf b;
    struct reader r;

    buf_init(&b, 64);
    put_string(&b, STR("ab"), false);
    put_string(&b, STR_NULL, false);
    put_string(&b, STR(""), true);
    put_string(&b, STR_NULL, true);
    put_string(&b, STR("xyz"), true);
    CHECK_MEM(b.p,
              "\x00\x02"
              "ab\xff\xff\x01\x00\x04xyz",
              12);
    CHECK_EQ(b.n, 12);
    r = reader_of(b.p, b.n);
    CHECK_STR(read_string(&r, false), "ab");
    CHECK(str_is_null(read_string(&r, false)));
    CHECK_STR(read_string(&r, true), "");
    CHECK(str_is_null(read_string(&r, true)));
    CHECK_STR(read_string(&r, true), "xyz");
    CHECK(!r.bad && reader_left(&r) == 0);
    buf_fini(&b);
}

TEST(blobs)
{
    struct buf b;
    struct reader r;

    buf_init(&b, 64);
    put_blob(&b, STR("ab"), false);
    put_blob(&b, STR_NULL, false);
    put_blob(&b, STR("c"), true);
    put_blob(&b, STR_NULL, true);
    CHECK_MEM(b.p,
              "\x00\x00\x00\x02"
              "ab\xff\xff\xff\xff\x02"
              "c\x00",
              13);
    CHECK_EQ(b.n, 13);
    r = reader_of(b.p, b.n);
    CHECK_STR(read_blob(&r, false), "ab");
    CHECK(str_is_null(read_blob(&r, false)));
    CHECK_STR(read_blob(&r, true), "c");
    CHECK(str_is_null(read_blob(&r, true)));
    CHECK(!r.bad);
    buf_fini(&b);
}

TEST(impossible_lengths)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool compact, blob;
    } cases[] = {
        { "\xff\xfe", 2, false, false }, /* -2 */
        { "\x00\x05"
          "abcd",
          6, false, false }, /* one byte short */
        { "\x00", 1, false, false },
        { "\x80\x80\x80\x80\x08", 5, true, false }, /* 2^31 */
        { "\xff\xff\xff\xff\x0f", 5, true, true },  /* 2^32 - 2 */
        { "\xff\xff\xff\xfe", 4, false, true },
        { "\x7f\xff\xff\xff", 4, false, true },
        { "", 0, true, true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reader r = reader_of(cases[i].bytes, cases[i].len);
        struct str s =
            cases[i].blob ? read_blob(&r, cases[i].compact) : read_string(&r, cases[i].compact);

        CHECK(r.bad);
        CHECK(str_is_null(s));
    }
}

TEST(string_of_32768_bytes_is_refused)
{
    static const char zeros[32768];
    struct reader r;
    struct buf b;

    buf_init(&b, 1 * MiB);
    put_string(&b, str_of(zeros, 32767), true);
    CHECK(!b.bad);
    put_string(&b, str_of(zeros, 32768), true);
    CHECK(b.bad);
    buf_clear(&b);
    put_blob(&b, str_of(zeros, 32768), true);
    r = reader_of(b.p, b.n);
    read_string(&r, true);
    CHECK(r.bad);
    buf_fini(&b);
}

TEST(bad_reader_stays_bad)
{
    struct reader r = reader_of("\x01\x02\x03", 3);

    CHECK_EQ(read_i32(&r), 0);
    CHECK(r.bad);
    CHECK_EQ(read_i8(&r), 0);
    CHECK_EQ(read_uvarint(&r), 0);
    CHECK(str_is_null(read_bytes(&r, 0)) || r.bad);
    CHECK(r.bad);
}

TEST(empty_bytes_are_not_null)
{
    struct reader r = reader_of(NULL, 0);

    CHECK(!str_is_null(read_bytes(&r, 0)));
    CHECK(!r.bad);
}

TEST(full_writer_stays_full)
{
    struct buf b;

    buf_init(&b, 3);
    put_i32(&b, 7);
    CHECK(b.bad);
    put_i8(&b, 7);
    put_string(&b, STR("x"), true);
    CHECK(b.bad);
    CHECK_EQ(b.n, 0);
    buf_fini(&b);
}

TEST(tags_are_skipped)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool bad;
    } cases[] = {
        { "\x00", 1, false },
        { "\x02\x00\x01x\x07\x02yz", 8, false },
        { "\x02\x05\x00\x05\x00", 5, true }, /* twice the same tag */
        { "\x02\x05\x00\x04\x00", 5, true }, /* falling */
        { "\x01\x00\x03xy", 5, true },       /* value cut short */
        { "\xff\xff\xff\xff\x0f", 5, true }, /* four billion of them */
        { "", 0, true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reader r = reader_of(cases[i].bytes, cases[i].len);

        read_tags(&r);
        CHECK_EQ(r.bad, cases[i].bad);
        CHECK_EQ(reader_left(&r), 0);
    }
}

TESTS(RUN(uvarint), RUN(zigzag), RUN(varlong_limits), RUN(variable_round_trip),
      RUN(fixed_width_is_big_endian), RUN(strings), RUN(blobs), RUN(impossible_lengths),
      RUN(string_of_32768_bytes_is_refused), RUN(bad_reader_stays_bad),
      RUN(empty_bytes_are_not_null), RUN(full_writer_stays_full), RUN(tags_are_skipped))
