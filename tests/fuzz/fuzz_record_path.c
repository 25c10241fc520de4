/* fuzz_record_path.c -- any records, in a batch with a good checksum, through the record path.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 12 bytes of choices (codec and bits, count, last offset delta, start, skip, size), then the records
 * before packing; when bit 7 of the first byte is set they are the packed payload itself. With bit 1 of the last choice
 * they are the set inside of a wrapper of v0 (bit 2: v1) behind a batch of v2, and both are merged.
 */
#include "mirror/record_path.h"

#include "base/buf.h"
#include "base/must.h"
#include "wire/compress.h"
#include "wire/prim.h"
#include "wire/record.h"

#include <zlib.h>

#define CHOICES 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    int64_t records;
    int64_t source_last;
    int32_t sequence;
    size_t size_max;
    int codec;
};

static struct record_path *rp;
static struct compress *codecs;

static void check_runs(const struct record_path_batch *made)
{
    int64_t source = made->source_first - 1;
    int32_t index = 0;

    for (int32_t i = 0; i < made->runs_n; i++) {
        must(made->runs[i].index == index && made->runs[i].source > source);
        must(made->runs[i].count > 0);
        index += made->runs[i].count;
        source = made->runs[i].source + made->runs[i].count - 1;
    }
    must(index == made->count && source <= made->source_last);
}

static void on_made(void *arg, const struct record_path_batch *made)
{
    struct seen *s = arg;
    struct record_reader r;
    struct buf whole, area;
    struct record rec;
    struct batch h;

    buf_init(&whole, SIZE_MAX);
    buf_init(&area, RECORD_PATH_UNPACKED_MAX);
    buf_put(&whole, made->header, BATCH_HEADER_SIZE);
    buf_put_str(&whole, made->payload);
    must(batch_peek(buf_str(&whole), &h) == BATCH_V2 && batch_crc_ok(whole.p, whole.n));
    must(h.count == made->count && h.last_offset_delta == h.count - 1);
    must(h.base_sequence == s->sequence);
    must(s->size_max == 0 || made->count == 1 || whole.n <= s->size_max);
    must(made->source_first > s->source_last);
    check_runs(made);
    must(compress_unpack(codecs, s->codec, made->payload, &area) == E_OK);
    r = record_reader_of(buf_str(&area), h.count);
    for (int32_t i = 0; record_next(&r, &rec); i++)
        must(rec.offset_delta == i);
    must(record_reader_end(&r) == E_OK);
    s->source_last = made->source_last;
    s->sequence = (int32_t)(((uint32_t)s->sequence + (uint32_t)made->count) & INT32_MAX);
    s->records += made->count;
    buf_fini(&area);
    buf_fini(&whole);
}

static void put_batch(struct buf *out, const uint8_t *choice, struct str records)
{
    struct batch h = {
        .base_offset = 100,
        .attributes = (int16_t)(choice[0] & 0x5f), /* no control batches */
        .last_offset_delta = load_u16(choice + 3),
        .base_timestamp = 1700000000000,
        .max_timestamp = 1700000000500,
        .count = load_u16(choice + 1),
    };
    unsigned char header[BATCH_HEADER_SIZE];
    struct buf packed;

    buf_init(&packed, 8 * MiB);
    if ((choice[0] & 0x80) || compress_pack(codecs, choice[0] & BATCH_CODEC_MASK,
                                            COMPRESS_LEVEL_DEFAULT, records, &packed))
        buf_put_str(&packed, records);
    batch_seal(&h, buf_str(&packed), header);
    buf_put(out, header, sizeof(header));
    buf_put_str(out, buf_str(&packed));
    buf_fini(&packed);
}

/* A wrapper with a good checksum around these bytes. */
static void put_wrapper(struct buf *out, const uint8_t *choice, struct str set)
{
    int codec = choice[0] & 3;
    struct buf packed;
    size_t at = out->n;

    buf_init(&packed, 8 * MiB);
    if (compress_pack(codecs, codec, COMPRESS_LEVEL_DEFAULT, set, &packed))
        return;
    put_i64(out, 70000 + load_u16(choice + 3));
    put_i32(out, 0);
    put_u32(out, 0);
    put_i8(out, choice[11] & 4 ? 1 : 0);
    put_i8(out, (int8_t)(codec | (choice[0] & BATCH_LOG_APPEND_TIME)));
    if (choice[11] & 4)
        put_i64(out, 1700000000000);
    put_i32(out, -1);
    put_i32(out, (int32_t)packed.n);
    buf_put_str(out, buf_str(&packed));
    store_u32(out->p + at + 8, (uint32_t)(out->n - at - 12));
    store_u32(out->p + at + 12, (uint32_t)crc32(0, (const unsigned char *)out->p + at + 16, (unsigned)(out->n - at - 16)));
    buf_fini(&packed);
}

/* Merged with one record of v2 in front. */
static void run_wrapper(const uint8_t *data, size_t size, const struct record_path_options *o)
{
    const struct seen *s = o->arg;
    const uint8_t one[CHOICES] = { (uint8_t)(data[0] & 3), 0, 1 };
    struct record_path_result result;
    struct str sources[2];
    struct buf whole;
    size_t first;

    buf_init(&whole, 16 * MiB);
    put_batch(&whole, one, STR("\x0c\0\0\0\x01\x01\0"));
    first = whole.n;
    put_wrapper(&whole, data, str_of((const char *)data + CHOICES, size - CHOICES));
    sources[0] = str_part(buf_str(&whole), 0, first);
    sources[1] = str_part(buf_str(&whole), first, whole.n);
    if (!record_path_merge(rp, sources, 2, o, &result))
        must(s->records + result.trimmed + result.skipped >= 2);
    buf_fini(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen s = { .source_last = -1, .sequence = INT32_MAX - 3 };
    struct record_path_options o = { .stamp = { 1, 2, INT32_MAX - 3, false }, .emit = on_made, .arg = &s };
    struct record_path_result result;
    struct buf whole;

    if (size < CHOICES)
        return 0;
    if (!rp) {
        rp = record_path_new();
        codecs = compress_new();
    }
    s.codec = data[0] & BATCH_CODEC_MASK;
    o.start = 100 + load_u16(data + 5);
    o.skip_records = load_u16(data + 7);
    o.size_max = s.size_max = load_u16(data + 9);
    o.keep_append_time = data[11] & 1;
    if (data[11] & 2) {
        s.codec = data[0] & 3;
        run_wrapper(data, size, &o);
        return 0;
    }
    buf_init(&whole, 16 * MiB);
    put_batch(&whole, data, str_of((const char *)data + CHOICES, size - CHOICES));
    if (!record_path_run(rp, whole.p, whole.n, &o, &result)) {
        must(s.records + result.trimmed + result.skipped == load_u16(data + 1));
        must(s.records == 0 || s.source_last == 100 + load_u16(data + 3));
    }
    buf_fini(&whole);
    return 0;
}
