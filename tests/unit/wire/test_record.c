/* test_record.c -- records read strictly, written and read again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/record.h"

#include "base/rand.h"
#include "unit/test.h"

/* The records of batch A in appendix A of the relay rules: k1 -> v1 with header h=x, k2 -> null. */
static const char area_a[] = "\x1c\x00\x00\x00\x04k1\x04v1\x02\x02h\x02x"
                             "\x10\x00\x0a\x02\x04k2\x01\x00";
#define AREA_A str_of(area_a, sizeof(area_a) - 1)

TEST(reads_known_bytes)
{
    struct record_reader r = record_reader_of(AREA_A, 2);
    struct record_header h;
    struct record rec;
    struct str headers;

    CHECK(record_next(&r, &rec));
    CHECK_EQ(rec.attributes, 0);
    CHECK_EQ(rec.timestamp_delta, 0);
    CHECK_EQ(rec.offset_delta, 0);
    CHECK_STR(rec.key, "k1");
    CHECK_STR(rec.value, "v1");
    CHECK_EQ(rec.header_count, 1);
    headers = rec.headers;
    CHECK(record_header_next(&headers, &h));
    CHECK_STR(h.key, "h");
    CHECK_STR(h.value, "x");
    CHECK(!record_header_next(&headers, &h));
    CHECK(record_next(&r, &rec));
    CHECK_EQ(rec.timestamp_delta, 5);
    CHECK_EQ(rec.offset_delta, 1);
    CHECK_STR(rec.key, "k2");
    CHECK(str_is_null(rec.value));
    CHECK_EQ(rec.header_count, 0);
    CHECK(!record_next(&r, &rec));
    CHECK_EQ(record_reader_end(&r), E_OK);
}

static enum err read_all(struct str area, int32_t count)
{
    struct record_reader r = record_reader_of(area, count);
    struct record rec;

    while (record_next(&r, &rec)) {
        struct str headers = rec.headers;
        struct record_header h;
        int32_t n = 0;

        while (record_header_next(&headers, &h))
            n++;
        CHECK_EQ(n, rec.header_count);
    }
    return record_reader_end(&r);
}

TEST(count_must_match)
{
    CHECK_EQ(read_all(AREA_A, 1), E_MALFORMED);
    CHECK_EQ(read_all(AREA_A, 3), E_MALFORMED);
    CHECK_EQ(read_all(AREA_A, 0), E_MALFORMED);
    CHECK_EQ(read_all(AREA_A, -1), E_MALFORMED);
    CHECK_EQ(read_all(STR(""), 0), E_OK);
    CHECK_EQ(read_all(STR_NULL, 0), E_OK);
    CHECK_EQ(read_all(STR_NULL, 1), E_MALFORMED);
}

TEST(lengths_must_match)
{
    static const struct {
        const char *what;
        const char *bytes;
        size_t n;
        enum err want;
    } cases[] = {
        { "shortest", "\x0c\0\0\0\x01\x01\0", 7, E_OK },
        { "empty key and value", "\x0c\0\0\0\0\0\0", 7, E_OK },
        { "null key below -1", "\x0c\0\0\0\x03\x01\0", 7, E_OK },
        { "one byte left in the record", "\x0e\0\0\0\x01\x01\0\0", 8, E_MALFORMED },
        { "record one byte short", "\x0a\0\0\0\x01\x01\0", 7, E_MALFORMED },
        { "bytes behind the last record", "\x0c\0\0\0\x01\x01\0\0", 8, E_MALFORMED },
        { "empty record", "\0", 1, E_MALFORMED },
        { "negative length", "\x01", 1, E_MALFORMED },
        { "longest length", "\xfe\xff\xff\xff\x0f", 5, E_MALFORMED },
        { "value past the record", "\x0c\0\0\0\x01\x02\0", 7, E_MALFORMED },
        { "negative count of headers", "\x0c\0\0\0\x01\x01\x01", 7, E_MALFORMED },
        { "header without key", "\x10\0\0\0\x01\x01\x02\x01\x01", 9, E_MALFORMED },
        { "header, empty key, null value", "\x10\0\0\0\x01\x01\x02\0\x01", 9, E_OK },
        { "many headers announced", "\x0e\0\0\0\x01\x01\xfe\xff", 8, E_MALFORMED },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (read_all(str_of(cases[i].bytes, cases[i].n), 1) != cases[i].want)
            fail_msg("%s", cases[i].what);
    }
}

static struct str random_str(struct rand *rand, const char *pool, size_t most)
{
    if (rand_below(rand, 5) == 0)
        return STR_NULL;
    return str_of(pool, rand_below(rand, most + 1));
}

static struct record random_record(struct rand *rand, const char *pool, struct buf *headers)
{
    struct record r = {
        .attributes = (int8_t)rand_next(rand),
        .timestamp_delta = (int64_t)(rand_next(rand) >> rand_below(rand, 64)),
        .offset_delta = (int32_t)(rand_next(rand) >> rand_below(rand, 64)),
        .key = random_str(rand, pool, 20),
        .value = random_str(rand, pool, 300),
        .header_count = (int32_t)rand_below(rand, 4),
    };

    buf_clear(headers);
    for (int32_t i = 0; i < r.header_count; i++) {
        struct record_header h = { str_of(pool, rand_below(rand, 9)), random_str(rand, pool, 70) };

        record_put_header(headers, &h);
    }
    r.headers = buf_str(headers);
    return r;
}

/* What is written is read back equal, whatever the values. */
TEST(random_round_trip)
{
    char pool[300];
    struct buf area, headers, again;
    struct rand rand;

    rand_init(&rand, 21);
    for (size_t i = 0; i < sizeof(pool); i++)
        pool[i] = (char)rand_next(&rand);
    buf_init(&area, MiB);
    buf_init(&again, MiB);
    buf_init(&headers, 64 * KiB);
    for (int round = 0; round < 3000; round++) {
        struct record in = random_record(&rand, pool, &headers), out;
        struct record_reader r;

        buf_clear(&area);
        buf_clear(&again);
        record_put(&area, &in);
        CHECK_EQ(area.n, record_size(&in));
        r = record_reader_of(buf_str(&area), 1);
        CHECK(record_next(&r, &out));
        CHECK(!record_next(&r, &out));
        CHECK_EQ(record_reader_end(&r), E_OK);
        CHECK_EQ(out.timestamp_delta, in.timestamp_delta);
        CHECK_EQ(out.offset_delta, in.offset_delta);
        CHECK(str_eq(out.key, in.key));
        CHECK(str_eq(out.value, in.value));
        CHECK(str_eq(out.headers, in.headers));
        record_put(&again, &out);
        CHECK(str_eq(buf_str(&area), buf_str(&again)));
        CHECK_EQ(read_all(str_part(buf_str(&area), 0, rand_below(&rand, area.n)), 1), E_MALFORMED);
        area.p[rand_below(&rand, area.n)] ^= (char)(1 << rand_below(&rand, 8));
        (void)!read_all(buf_str(&area), 1);
    }
    buf_fini(&headers);
    buf_fini(&again);
    buf_fini(&area);
}

TESTS(RUN(reads_known_bytes), RUN(count_must_match), RUN(lengths_must_match),
      RUN(random_round_trip))
