/* test_batch_builder.c -- batches of our own records, read back with the header and record readers.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/batch_builder.h"

#include "unit/test.h"
#include "wire/record.h"

static const struct batch_stamp stamp = { .producer_id = 9,
                                          .producer_epoch = 2,
                                          .base_sequence = 5 };

TEST(reads_back)
{
    static const struct {
        const char *key, *value;
        int64_t timestamp_ms;
    } records[] = {
        { "a", "1", 1700000000000 },
        { NULL, "", 1699999999999 }, /* time runs back */
        { "", NULL, 1700000000005 },
        { "b", "2", -1 },
    };
    struct batch_builder b;
    struct record_reader r;
    struct record rec;
    struct batch h;
    struct str bytes;

    batch_builder_init(&b, KiB);
    for (size_t i = 0; i < COUNT(records); i++)
        CHECK_EQ(batch_builder_add(&b, str_c(records[i].key), str_c(records[i].value),
                                   records[i].timestamp_ms),
                 E_OK);
    bytes = batch_builder_finish(&b, &stamp);
    CHECK(batch_crc_ok(bytes.p, bytes.n));
    CHECK_EQ(batch_peek(bytes, &h), BATCH_V2);
    CHECK_EQ(h.size, bytes.n);
    CHECK_EQ(h.base_offset, 0);
    CHECK_EQ(h.leader_epoch, -1);
    CHECK_EQ(h.attributes, 0);
    CHECK_EQ(h.count, 4);
    CHECK_EQ(h.last_offset_delta, 3);
    CHECK_EQ(h.max_timestamp, 1700000000005);
    CHECK_EQ(h.producer_id, 9);
    CHECK_EQ(h.producer_epoch, 2);
    CHECK_EQ(h.base_sequence, 5);
    r = record_reader_of(str_part(bytes, BATCH_HEADER_SIZE, bytes.n), h.count);
    for (size_t i = 0; i < COUNT(records); i++) {
        CHECK(record_next(&r, &rec));
        CHECK_EQ(rec.offset_delta, i);
        CHECK_EQ(h.base_timestamp + rec.timestamp_delta, records[i].timestamp_ms);
        CHECK(str_eq(rec.key, str_c(records[i].key)));
        CHECK(str_eq(rec.value, str_c(records[i].value)));
    }
    CHECK(!record_next(&r, &rec));
    CHECK_EQ(record_reader_end(&r), E_OK);
    batch_builder_fini(&b);
}

TEST(full_and_again)
{
    struct batch_builder b;
    struct batch h;
    struct str bytes;
    char value[100] = { 0 };

    batch_builder_init(&b, BATCH_HEADER_SIZE + 115);
    CHECK_EQ(batch_builder_add(&b, STR("k"), str_of(value, 100), 1), E_OK);
    CHECK_EQ(batch_builder_add(&b, STR("k"), STR("v"), 2), E_LIMIT);
    CHECK_EQ(batch_builder_add(&b, STR("k"), str_of(value, SIZE_MAX / 2), 2), E_LIMIT);
    bytes = batch_builder_finish(&b, NULL);
    CHECK_EQ(batch_peek(bytes, &h), BATCH_V2);
    CHECK_EQ(h.count, 1);
    CHECK_EQ(h.producer_id, -1);
    CHECK_EQ(h.producer_epoch, -1);
    CHECK_EQ(h.base_sequence, -1);
    CHECK(batch_crc_ok(bytes.p, bytes.n));
    batch_builder_clear(&b);
    CHECK_EQ(batch_builder_add(&b, STR("k"), STR("v"), 2), E_OK);
    CHECK_EQ(batch_builder_add(&b, STR("k"), str_of(value, 100), 1), E_LIMIT);
    CHECK_EQ(batch_builder_add(&b, STR("k"), STR("w"), 3), E_OK);
    bytes = batch_builder_finish(&b, &stamp);
    bytes = batch_builder_finish(&b, NULL);
    CHECK(batch_crc_ok(bytes.p, bytes.n));
    CHECK_EQ(batch_peek(bytes, &h), BATCH_V2);
    CHECK_EQ(h.count, 2);
    CHECK_EQ(h.base_timestamp, 2);
    CHECK_EQ(h.max_timestamp, 3);
    batch_builder_fini(&b);
}

TESTS(RUN(reads_back), RUN(full_and_again))
