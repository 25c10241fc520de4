/* legacy.c -- reads messages of the formats v0 and v1.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     0 offset 8 | 8 size 4 | 12 CRC-32 4 | 16 magic 1 | 17 attributes 1 | [v1: 18 time 8] | key length 4, key |
 *     value length 4, value
 *
 * A wrapper's own offset is that of its last message. The messages inside carry their offsets in v0, and in v1 the
 * distance to the first. Only the entry's checksum is looked at, never those of messages inside: so does Java.
 */
#include "wire/legacy.h"

#include "wire/prim.h"
#include "wire/record.h"

#include <zlib.h>

#define ENTRY_HEAD 12 /* offset and size, which the size does not count */
#define CRC_FROM   16

struct message {
    int64_t offset; /* as it stands there */
    int8_t magic;
    int8_t attributes;
    int64_t time; /* -1 in v0 */
    struct str key, value;
};

bool legacy_crc_ok(const char *p, size_t size)
{
    return size > CRC_FROM &&
           load_u32(p + ENTRY_HEAD) == crc32_z(0, (const unsigned char *)p + CRC_FROM, size - CRC_FROM);
}

/* Takes one message off *in; false: these bytes are none. */
static bool read_message(struct reader *in, struct message *m)
{
    int32_t size;
    struct reader r;
    struct str body;

    m->offset = read_i64(in);
    size = read_i32(in);
    body = size < 0 ? STR_NULL : read_bytes(in, (size_t)size);
    if (in->bad || str_is_null(body))
        return false;
    r = reader_of(body.p, body.n);
    (void)read_u32(&r);
    m->magic = read_i8(&r);
    m->attributes = read_i8(&r);
    m->time = m->magic == 1 ? read_i64(&r) : -1;
    m->key = read_blob(&r, false);
    m->value = read_blob(&r, false);
    return !r.bad && reader_left(&r) == 0 && (m->magic == 0 || m->magic == 1);
}

/* XXH32 of fewer than 16 bytes, seed 0. */
static uint32_t xxh32_short(const unsigned char *p, size_t n)
{
    uint32_t h = 374761393u + (uint32_t)n;

    for (; n >= 4; p += 4, n -= 4) {
        h += (uint32_t)(p[0] | p[1] << 8 | p[2] << 16) * 3266489917u + ((uint32_t)p[3] << 24) * 3266489917u;
        h = (h << 17 | h >> 15) * 668265263u;
    }
    for (; n; p++, n--) {
        h += *p * 374761393u;
        h = (h << 11 | h >> 21) * 2654435761u;
    }
    h = (h ^ h >> 15) * 2246822519u;
    h = (h ^ h >> 13) * 3266489917u;
    return h ^ h >> 16;
}

/* Writers of v0 computed the checksum of an LZ4 frame's descriptor over the magic number as well: *copy gets the frame
 * with the right one. */
static bool mend_lz4(struct str frame, struct buf *copy)
{
    size_t at; /* of the checksum byte */
    unsigned char *p;

    if (frame.n < 7)
        return false;
    at = 6 + (frame.p[4] & 0x08 ? 8 : 0); /* with the size of the content */
    if (frame.n <= at)
        return false;
    buf_put_str(copy, frame);
    if (copy->bad)
        return false;
    p = (unsigned char *)copy->p + copy->n - frame.n;
    p[at] = (unsigned char)(xxh32_short(p + 4, at - 4) >> 8);
    return true;
}

static enum err open_wrapper(struct compress *c, const struct message *m, struct buf *scratch)
{
    int codec = m->attributes & BATCH_CODEC_MASK;
    struct buf mended;
    enum err e;

    if (str_is_null(m->value))
        return E_MALFORMED;
    if (codec > CODEC_LZ4)
        return E_CODEC;
    if (codec != CODEC_LZ4 || m->magic != 0)
        return compress_unpack(c, codec, m->value, scratch);
    buf_init(&mended, scratch->max);
    e = mend_lz4(m->value, &mended) ? compress_unpack(c, codec, buf_str(&mended), scratch) : E_CODEC;
    buf_fini(&mended);
    return e;
}

/* Looks through a wrapper's messages; *base is what their offsets count from. */
static enum err survey(const struct message *outer, struct str set, int64_t *base)
{
    struct reader r = reader_of(set.p, set.n);
    struct message m = { .offset = -1 };
    int64_t last = -1;
    int32_t n = 0;

    while (reader_left(&r) > 0) {
        if (!read_message(&r, &m) || m.magic != outer->magic || (m.attributes & BATCH_CODEC_MASK) ||
            m.offset <= last || n == INT32_MAX)
            return E_MALFORMED;
        last = m.offset;
        n++;
    }
    if (n == 0 || last > outer->offset)
        return E_MALFORMED;
    *base = outer->magic == 1 ? outer->offset - last : 0;
    return E_OK;
}

static enum err put_record(const struct message *m, int64_t offset, struct batch *head, struct buf *out)
{
    struct record rec = { .key = m->key, .value = m->value };

    if (head->count == 0) {
        head->base_offset = offset;
        head->base_timestamp = head->max_timestamp = m->time;
    }
    if (offset - head->base_offset > INT32_MAX - 1)
        return E_MALFORMED;
    rec.offset_delta = head->last_offset_delta = (int32_t)(offset - head->base_offset);
    rec.timestamp_delta = (int64_t)((uint64_t)m->time - (uint64_t)head->base_timestamp);
    head->max_timestamp = MAX(head->max_timestamp, m->time);
    head->count++;
    record_put(out, &rec);
    return out->bad ? E_LIMIT : E_OK;
}

static enum err put_wrapped(const struct message *outer, struct str set, struct batch *head, struct buf *out)
{
    struct reader r = reader_of(set.p, set.n);
    struct message m;
    int64_t base;
    enum err e = survey(outer, set, &base);

    while (!e && read_message(&r, &m)) {
        if (outer->attributes & BATCH_LOG_APPEND_TIME && outer->magic == 1)
            m.time = outer->time;
        e = put_record(&m, base + m.offset, head, out);
    }
    if (!e && outer->offset - head->base_offset > INT32_MAX - 1)
        e = E_MALFORMED;
    if (!e)
        head->last_offset_delta = (int32_t)(outer->offset - head->base_offset);
    return e;
}

enum err legacy_unpack(struct compress *c, const char *p, size_t size, struct buf *scratch, struct buf *out,
                       struct batch *head)
{
    struct reader r = reader_of(p, size);
    size_t before = out->n;
    struct message outer;
    enum err e;

    if (!read_message(&r, &outer) || reader_left(&r) || outer.offset < 0)
        return E_MALFORMED;
    *head = (struct batch){ .leader_epoch = -1, .magic = outer.magic, .producer_id = -1, .producer_epoch = -1,
                            .base_sequence = -1, .size = size,
                            .attributes = outer.attributes & BATCH_CODEC_MASK };
    if (head->attributes == CODEC_NONE) {
        e = put_record(&outer, outer.offset, head, out);
    } else {
        buf_clear(scratch);
        e = open_wrapper(c, &outer, scratch);
        if (!e)
            e = put_wrapped(&outer, buf_str(scratch), head, out);
        buf_clear(scratch);
    }
    if (e) {
        out->n = before;
        out->bad = false;
    }
    return e;
}
