/* fuzz_batch.c -- any bytes as a records field, of any format: walk, restamp, and read the records.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/must.h"
#include "wire/batch.h"
#include "wire/legacy.h"
#include "wire/record.h"

#include <string.h>

#define UNPACKED_MAX (1 * MiB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_records(struct str area, int32_t count)
{
    struct record_reader r = record_reader_of(area, count);
    struct record rec;

    while (record_next(&r, &rec)) {
        struct str headers = rec.headers;
        struct record_header h;
        int32_t n = 0;

        while (record_header_next(&headers, &h))
            n++;
        must(n == rec.header_count && headers.n == 0);
        must(record_size(&rec) <= area.n);
    }
    must(record_reader_end(&r) == E_OK || record_reader_end(&r) == E_MALFORMED);
}

/* Restamped, a good checksum stays good and a bad one bad. */
static void check_restamp(const char *p, size_t size)
{
    const struct batch_stamp stamp = { 0x4000000000000001, 2, 3, false };
    struct buf copy;

    buf_init(&copy, size);
    buf_put(&copy, p, size);
    batch_restamp(p, size, &stamp, (unsigned char *)copy.p);
    must(batch_crc_ok(copy.p, size) == batch_crc_ok(p, size));
    buf_fini(&copy);
}

/* What comes of an entry of v0 or v1 is a batch that can be read. */
static void check_legacy(struct compress *c, struct str entry, struct buf *area)
{
    struct buf scratch;
    struct batch head;

    (void)legacy_crc_ok(entry.p, entry.n);
    buf_init(&scratch, UNPACKED_MAX);
    buf_clear(area);
    if (legacy_unpack(c, entry.p, entry.n, &scratch, area, &head)) {
        must(area->n == 0 && !area->bad);
    } else {
        must(head.count > 0 && head.base_offset >= 0 && head.count - 1 <= head.last_offset_delta);
        must(batch_last_offset(&head) >= head.base_offset);
        read_records(buf_str(area), head.count);
    }
    buf_fini(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct compress *c = compress_new();
    struct str rest = str_of((const char *)data, size);
    struct buf area;
    struct batch b;
    enum batch_next next;

    buf_init(&area, UNPACKED_MAX);
    while ((next = batch_peek(rest, &b)) != BATCH_END) {
        if (next == BATCH_MALFORMED)
            break;
        must(b.size > 12 && b.size <= rest.n);
        if (next == BATCH_LEGACY)
            check_legacy(c, str_part(rest, 0, b.size), &area);
        if (next == BATCH_V2) {
            struct str payload = str_part(rest, BATCH_HEADER_SIZE, b.size);

            must(b.size >= BATCH_HEADER_SIZE && batch_last_offset(&b) >= b.base_offset);
            check_restamp(rest.p, b.size);
            buf_clear(&area);
            if (!compress_unpack(c, b.attributes & BATCH_CODEC_MASK, payload, &area))
                read_records(buf_str(&area), b.count);
        }
        rest = str_part(rest, b.size, rest.n);
    }
    buf_fini(&area);
    compress_free(&c);
    return 0;
}
