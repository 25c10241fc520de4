/* batch.c -- reads, renumbers and seals the header of a record batch.
 * SPDX-License-Identifier: Apache-2.0
 *
 *      0 base offset 8 | 8 length 4 | 12 leader epoch 4 | 16 magic 1 | 17 CRC 4    outside the CRC
 *     21 attributes 2 | 23 last offset delta 4 | 27 base time 8 | 35 max time 8    inside
 *     43 producer id 8 | 51 epoch 2 | 53 base sequence 4 | 57 count 4 | 61 records
 *
 * A message of magic 0 or 1 has its magic byte at the same place, behind offset, length and CRC.
 */
#include "wire/batch.h"

#include "base/crc32c.h"
#include "base/must.h"
#include "wire/prim.h"

#include <string.h>

#define AT_BASE_OFFSET       0
#define AT_LENGTH            8
#define AT_LEADER_EPOCH      12
#define AT_MAGIC             16
#define AT_CRC               17
#define AT_LEGACY_ATTRIBUTES 17
#define AT_ATTRIBUTES        21
#define AT_LAST_OFFSET_DELTA 23
#define AT_BASE_TIMESTAMP    27
#define AT_MAX_TIMESTAMP     35
#define AT_PRODUCER_ID       43
#define AT_PRODUCER_EPOCH    51
#define AT_BASE_SEQUENCE     53
#define AT_COUNT             57

#define LENGTH_FROM       12 /* the length counts the bytes behind itself */
#define LEGACY_LENGTH_MIN 14 /* CRC, magic, attributes, two null lengths */
#define V2_LENGTH_MIN     (BATCH_HEADER_SIZE - LENGTH_FROM)

/* What the source's log said about a batch and the target's log will say for itself. */
#define FOREIGN_BITS (BATCH_LOG_APPEND_TIME | BATCH_TRANSACTIONAL | BATCH_DELETE_HORIZON)

static void load_header(const char *p, struct batch *b)
{
    b->base_offset = (int64_t)load_u64(p + AT_BASE_OFFSET);
    b->leader_epoch = (int32_t)load_u32(p + AT_LEADER_EPOCH);
    b->magic = (int8_t)p[AT_MAGIC];
    b->crc = load_u32(p + AT_CRC);
    b->attributes = (int16_t)load_u16(p + AT_ATTRIBUTES);
    b->last_offset_delta = (int32_t)load_u32(p + AT_LAST_OFFSET_DELTA);
    b->base_timestamp = (int64_t)load_u64(p + AT_BASE_TIMESTAMP);
    b->max_timestamp = (int64_t)load_u64(p + AT_MAX_TIMESTAMP);
    b->producer_id = (int64_t)load_u64(p + AT_PRODUCER_ID);
    b->producer_epoch = (int16_t)load_u16(p + AT_PRODUCER_EPOCH);
    b->base_sequence = (int32_t)load_u32(p + AT_BASE_SEQUENCE);
    b->count = (int32_t)load_u32(p + AT_COUNT);
}

/* Offsets that run backwards or past the end of the number would send a reader in circles. */
static bool numbers_ok(const struct batch *b)
{
    return b->base_offset >= 0 && b->last_offset_delta >= 0 &&
           b->base_offset < INT64_MAX - b->last_offset_delta && b->count >= 0 &&
           b->count - 1 <= b->last_offset_delta;
}

enum batch_next batch_peek(struct str bytes, struct batch *out)
{
    int32_t length;
    int8_t magic;

    *out = (struct batch){ 0 };
    if (bytes.n < LENGTH_FROM)
        return BATCH_END;
    length = (int32_t)load_u32(bytes.p + AT_LENGTH);
    if (length < LEGACY_LENGTH_MIN)
        return BATCH_MALFORMED;
    if (bytes.n <= AT_MAGIC)
        return BATCH_END;
    magic = bytes.p[AT_MAGIC];
    if (magic == 2 && length < V2_LENGTH_MIN)
        return BATCH_MALFORMED;
    if (bytes.n - LENGTH_FROM < (size_t)length)
        return BATCH_END;
    out->size = LENGTH_FROM + (size_t)length;
    if (magic != 2) {
        out->base_offset = (int64_t)load_u64(bytes.p + AT_BASE_OFFSET);
        out->magic = magic;
        out->attributes = (unsigned char)bytes.p[AT_LEGACY_ATTRIBUTES];
        out->leader_epoch = -1;
        out->producer_id = -1;
        return magic == 0 || magic == 1 ? BATCH_LEGACY : BATCH_UNKNOWN;
    }
    load_header(bytes.p, out);
    return numbers_ok(out) ? BATCH_V2 : BATCH_MALFORMED;
}

bool batch_crc_ok(const char *p, size_t size)
{
    return size >= BATCH_HEADER_SIZE &&
           load_u32(p + AT_CRC) == crc32c(0, p + BATCH_CRC_FROM, size - BATCH_CRC_FROM);
}

static void store_stamp(unsigned char *out, const struct batch_stamp *stamp)
{
    store_u64(out + AT_PRODUCER_ID, (uint64_t)stamp->producer_id);
    store_u16(out + AT_PRODUCER_EPOCH, (uint16_t)stamp->producer_epoch);
    store_u32(out + AT_BASE_SEQUENCE, (uint32_t)stamp->base_sequence);
}

int32_t batch_base_sequence(const unsigned char header[BATCH_HEADER_SIZE])
{
    return (int32_t)load_u32(header + AT_BASE_SEQUENCE);
}

void batch_restamp(const char *p, size_t size, const struct batch_stamp *stamp,
                   unsigned char out[BATCH_HEADER_SIZE])
{
    unsigned char diff[BATCH_HEADER_SIZE - BATCH_CRC_FROM];

    must(size >= BATCH_HEADER_SIZE);
    memcpy(diff, p + BATCH_CRC_FROM, sizeof(diff));
    memmove(out, p, BATCH_HEADER_SIZE);
    store_u64(out + AT_BASE_OFFSET, 0);
    store_u32(out + AT_LEADER_EPOCH, UINT32_MAX);
    store_u16(out + AT_ATTRIBUTES, (uint16_t)((load_u16(out + AT_ATTRIBUTES) & ~FOREIGN_BITS) |
                                              (stamp->transactional ? BATCH_TRANSACTIONAL : 0)));
    store_stamp(out, stamp);
    for (size_t i = 0; i < sizeof(diff); i++)
        diff[i] ^= out[BATCH_CRC_FROM + i];
    store_u32(out + AT_CRC,
              crc32c_patch(load_u32(out + AT_CRC), diff, sizeof(diff), size - BATCH_HEADER_SIZE));
}

void batch_seal(const struct batch *b, struct str payload, unsigned char out[BATCH_HEADER_SIZE])
{
    const struct batch_stamp stamp = { .producer_id = b->producer_id,
                                       .producer_epoch = b->producer_epoch,
                                       .base_sequence = b->base_sequence };
    uint32_t crc;

    must(payload.n <= (size_t)INT32_MAX - V2_LENGTH_MIN);
    store_u64(out + AT_BASE_OFFSET, (uint64_t)b->base_offset);
    store_u32(out + AT_LENGTH, (uint32_t)(V2_LENGTH_MIN + payload.n));
    store_u32(out + AT_LEADER_EPOCH, (uint32_t)b->leader_epoch);
    out[AT_MAGIC] = 2;
    store_u16(out + AT_ATTRIBUTES, (uint16_t)b->attributes);
    store_u32(out + AT_LAST_OFFSET_DELTA, (uint32_t)b->last_offset_delta);
    store_u64(out + AT_BASE_TIMESTAMP, (uint64_t)b->base_timestamp);
    store_u64(out + AT_MAX_TIMESTAMP, (uint64_t)b->max_timestamp);
    store_stamp(out, &stamp);
    store_u32(out + AT_COUNT, (uint32_t)b->count);
    crc = crc32c(0, out + BATCH_CRC_FROM, BATCH_HEADER_SIZE - BATCH_CRC_FROM);
    store_u32(out + AT_CRC, crc32c(crc, payload.p, payload.n));
}
