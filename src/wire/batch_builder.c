/* batch_builder.c -- appends records behind room for a header, and seals the header at the end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/batch_builder.h"

#include "base/must.h"
#include "wire/record.h"

#include <string.h>

void batch_builder_clear(struct batch_builder *b)
{
    char *header;

    buf_clear(&b->bytes);
    header = buf_grow(&b->bytes, BATCH_HEADER_SIZE);
    must(header);
    memset(header, 0, BATCH_HEADER_SIZE);
    b->count = 0;
}

void batch_builder_init(struct batch_builder *b, size_t size_max)
{
    must(size_max > BATCH_HEADER_SIZE && size_max <= INT32_MAX);
    *b = (struct batch_builder){ 0 };
    buf_init(&b->bytes, size_max);
    batch_builder_clear(b);
}

void batch_builder_fini(struct batch_builder *b)
{
    buf_fini(&b->bytes);
}

enum err batch_builder_add(struct batch_builder *b, struct str key, struct str value,
                           int64_t timestamp_ms)
{
    struct record r = { .offset_delta = b->count, .key = key, .value = value };
    size_t room = b->bytes.max - b->bytes.n;

    /* Lengths are added up below: each must be small enough for that first. */
    if (key.n > room || value.n > room)
        return E_LIMIT;
    if (b->count > 0)
        r.timestamp_delta = (int64_t)((uint64_t)timestamp_ms - (uint64_t)b->base_timestamp);
    if (record_size(&r) > room)
        return E_LIMIT;
    record_put(&b->bytes, &r);
    if (b->count == 0)
        b->base_timestamp = b->max_timestamp = timestamp_ms;
    b->max_timestamp = MAX(b->max_timestamp, timestamp_ms);
    b->count++;
    return E_OK;
}

struct str batch_builder_finish(struct batch_builder *b, const struct batch_stamp *stamp)
{
    struct batch h = {
        .leader_epoch = -1,
        .attributes = stamp && stamp->transactional ? BATCH_TRANSACTIONAL : 0,
        .last_offset_delta = b->count - 1,
        .base_timestamp = b->base_timestamp,
        .max_timestamp = b->max_timestamp,
        .producer_id = stamp ? stamp->producer_id : -1,
        .producer_epoch = stamp ? stamp->producer_epoch : -1,
        .base_sequence = stamp ? stamp->base_sequence : -1,
        .count = b->count,
    };

    must(b->count > 0);
    batch_seal(&h, str_part(buf_str(&b->bytes), BATCH_HEADER_SIZE, b->bytes.n),
               (unsigned char *)b->bytes.p);
    return buf_str(&b->bytes);
}
