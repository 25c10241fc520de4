/* batch.h -- record-batch headers (magic 2): look at, renumber, check and patch the checksum.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here reads a record. Layout and rules: kafka-relay-rules 1.1-1.4. Pure; any thread.
 */
#ifndef WIRE_BATCH_H
#define WIRE_BATCH_H

#include "base/err.h"
#include "base/str.h"

#define BATCH_HEADER_SIZE 61
#define BATCH_CRC_FROM    21 /* first byte that the CRC covers */

enum batch_codec { CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };

#define BATCH_CODEC_MASK      0x07
#define BATCH_LOG_APPEND_TIME 0x08
#define BATCH_TRANSACTIONAL   0x10
#define BATCH_CONTROL         0x20
#define BATCH_DELETE_HORIZON  0x40
#define BATCH_KNOWN_BITS      0x7f

struct batch {
    int64_t base_offset;
    int32_t leader_epoch;
    int8_t magic;
    uint32_t crc;
    int16_t attributes;
    int32_t last_offset_delta;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t count; /* records */
    size_t size;   /* whole batch in bytes, 12 + BatchLength */
};

static inline int64_t batch_last_offset(const struct batch *b)
{
    return b->base_offset + b->last_offset_delta;
}

/* What the next entry of a records field is. */
enum batch_next {
    BATCH_END,       /* nothing, or an incomplete tail (a normal end of a fetch) */
    BATCH_V2,        /* *out is filled */
    BATCH_LEGACY,    /* magic 0 or 1: only base_offset (the last one, of a wrapper), magic, attributes, size and the
                        fields that say none (leader epoch, producer id) are set; see legacy.h */
    BATCH_UNKNOWN,   /* magic above 2; the same fields are set */
    BATCH_MALFORMED, /* an impossible length (size 0), or impossible numbers (all is set) */
};

/* Looks at the first entry of bytes. *out is always written. Impossible numbers in a v2 header are
 * negative offsets or counts, offsets past INT64_MAX, and more records than offsets. */
enum batch_next batch_peek(struct str bytes, struct batch *out);

/* Checks the CRC over all bytes of a whole v2 batch. */
bool batch_crc_ok(const char *p, size_t size);

/* What a relayed batch gets instead of the source's values. */
struct batch_stamp {
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    bool transactional; /* the batch belongs to a transaction of this producer */
};

/* As it was stamped. */
int32_t batch_base_sequence(const unsigned char header[BATCH_HEADER_SIZE]);

/* Writes to out[61] the header of the batch at p as our producer sends it: base offset 0, leader
 * epoch -1, the stamp, and without the source's bits LogAppendTime, transactional and delete horizon. The CRC
 * is patched from the header difference in O(log size); the payload is not read (rule R1). out may
 * be p itself. */
void batch_restamp(const char *p, size_t size, const struct batch_stamp *stamp,
                   unsigned char out[BATCH_HEADER_SIZE]);

/* Builds a header from b (size and crc are computed) around the given payload, CRC over all. */
void batch_seal(const struct batch *b, struct str payload, unsigned char out[BATCH_HEADER_SIZE]);

#endif
