/* broker_check.c -- what a leader of a simulated broker looks at in a batch before it looks at sequences.
 * SPDX-License-Identifier: Apache-2.0
 *
 * In the order in which a broker looks (rules 2.1): the first that is wrong is what it tells.
 */
#include "broker.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "wire/compress.h"
#include "wire/prim.h"
#include "wire/record.h"

#include <string.h>

#define AFTER_MAX_MS (3600 * INT64_C(1000)) /* of 4.0 and later, where a topic says nothing */

static struct compress *packer(void)
{
    static struct compress *c;

    if (!c)
        c = compress_new();
    return c;
}

bool broker_unpack(struct str bytes, const struct batch *b, struct buf *area, struct record_reader *out)
{
    buf_init(area, 256 * MiB);
    if (compress_unpack(packer(), b->attributes & BATCH_CODEC_MASK,
                        str_of(bytes.p + BATCH_HEADER_SIZE, b->size - BATCH_HEADER_SIZE), area))
        return false;
    *out = record_reader_of(buf_str(area), b->count);
    return true;
}

/* Exactly one whole batch of the format of today; a few bytes behind it are no matter (rules 1.1). */
static int32_t check_form(struct str bytes, struct batch *b)
{
    struct batch other;
    enum batch_next next = batch_peek(bytes, b);

    if (next == BATCH_UNKNOWN)
        return KERR_CORRUPT_MESSAGE;
    if (next != BATCH_V2 && !(next == BATCH_MALFORMED && b->size > 0))
        return KERR_INVALID_RECORD;
    if (batch_peek(str_part(bytes, b->size, bytes.n), &other) != BATCH_END)
        return KERR_INVALID_RECORD;
    return KERR_NONE;
}

static bool is_out_of_time(const struct sim_topic *t, int64_t ms)
{
    int64_t after = t->after_max_ms, now = sim_wall_ms();

    if (t->log_append_time || ms == -1)
        return false;
    if (!after && t->cluster->newness >= 2 && t->cluster->plain) /* else a clock that jumps back stops all */
        after = AFTER_MAX_MS;
    return (after && ms > now + after) || (t->before_max_ms && ms < now - t->before_max_ms);
}

/* Bit 3 is refused by some versions, and never to be relied on (rules 2.3). */
static bool is_wrong_time(const struct sim_topic *t, const struct batch *b, const struct record *r)
{
    return (b->attributes & BATCH_LOG_APPEND_TIME &&
            (t->log_append_time || t->cluster->newness < 1 || !t->cluster->plain)) ||
           is_out_of_time(t, b->base_timestamp + r->timestamp_delta);
}

static int32_t note_wrong(struct sim_wrong_records *wrong, int32_t i, int32_t kerr)
{
    if (wrong->n < (int32_t)COUNT(wrong->at))
        wrong->at[wrong->n++] = i;
    return kerr;
}

/* Rules 2.1, danger 2: with a codec each record's offset is compared with its place. */
static int32_t check_records(const struct sim_topic *t, struct str bytes, const struct batch *b,
                             struct sim_wrong_records *wrong)
{
    struct record_reader in;
    struct record r;
    struct buf area;
    int32_t kerr = KERR_NONE;

    if ((b->attributes & BATCH_CODEC_MASK) > CODEC_ZSTD)
        return KERR_UNKNOWN_SERVER_ERROR;
    if (!broker_unpack(bytes, b, &area, &in)) {
        buf_fini(&area);
        return KERR_UNKNOWN_SERVER_ERROR;
    }
    for (int32_t i = 0; kerr != KERR_UNKNOWN_SERVER_ERROR && record_next(&in, &r); i++) {
        if (t->compact && str_is_null(r.key))
            kerr = note_wrong(wrong, i, KERR_INVALID_RECORD);
        else if (b->attributes & BATCH_CODEC_MASK && r.offset_delta != i)
            kerr = KERR_UNKNOWN_SERVER_ERROR;
        else if (is_wrong_time(t, b, &r))
            kerr = note_wrong(wrong, i, KERR_INVALID_TIMESTAMP);
    }
    if (record_reader_end(&in) && !kerr)
        kerr = KERR_INVALID_RECORD;
    buf_fini(&area);
    return kerr;
}

static int32_t check_header(const struct sim_topic *t, struct str bytes, const struct batch *b)
{
    if (b->base_offset != 0)
        return KERR_INVALID_RECORD;
    if ((int64_t)b->size > t->max_message_bytes)
        return KERR_MESSAGE_TOO_LARGE;
    if (b->size < BATCH_HEADER_SIZE || !batch_crc_ok(bytes.p, b->size))
        return KERR_CORRUPT_MESSAGE;
    if (b->last_offset_delta < 0 || b->count <= 0 || b->count != b->last_offset_delta + 1)
        return KERR_INVALID_RECORD;
    if (b->attributes & BATCH_CONTROL)
        return KERR_INVALID_RECORD;
    if (b->producer_id >= 0 && b->base_sequence < 0)
        return KERR_INVALID_RECORD;
    return KERR_NONE;
}

int32_t broker_check_form(struct str bytes, int version, struct batch *b)
{
    int32_t kerr = check_form(bytes, b);

    if (!kerr && version < 7 && (b->attributes & BATCH_CODEC_MASK) == CODEC_ZSTD)
        kerr = KERR_UNSUPPORTED_COMPRESSION_TYPE;
    return kerr;
}

int32_t broker_check_batch(const struct sim_topic *t, struct str bytes, const struct batch *b,
                           struct sim_wrong_records *wrong)
{
    int32_t kerr = check_header(t, bytes, b);

    if (!kerr)
        kerr = check_records(t, bytes, b, wrong);
    if (!kerr && t->segment_bytes && (int64_t)b->size > t->segment_bytes)
        kerr = KERR_RECORD_LIST_TOO_LARGE;
    return kerr;
}

/* As the leader stores it: the topic says whose clock counts (rules 1.1, 2.3). bytes are in the log. */
void broker_stamp_time(const struct sim_topic *t, char *bytes, size_t n)
{
    uint16_t attributes = load_u16(bytes + 21);
    bool append = t->log_append_time;

    if (!append && !(attributes & BATCH_LOG_APPEND_TIME))
        return;
    store_u16(bytes + 21, (uint16_t)(append ? attributes | BATCH_LOG_APPEND_TIME : attributes & ~BATCH_LOG_APPEND_TIME));
    if (append)
        store_u64(bytes + 35, (uint64_t)sim_wall_ms());
    store_u32(bytes + 17, crc32c(0, bytes + BATCH_CRC_FROM, n - BATCH_CRC_FROM));
}
