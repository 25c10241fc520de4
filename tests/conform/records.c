/* records.c -- batches from a few words, with anything wrong that a script wants; and what a fetch brought, in words.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#include "base/must.h"
#include "wire/batch.h"
#include "wire/compress.h"
#include "wire/record.h"

#include <string.h>

static struct compress *packer(void)
{
    static struct compress *c;

    if (!c)
        c = compress_new();
    return c;
}

/* What the words of one batch say. */
struct wanted {
    struct batch b;
    struct str key, value;
    int64_t n, step, size, cut, stray, magic, base, leader, time_step;
    bool crc_bad, count_given, lod_given, null_key, null_value, headers;
};

static void word_number(struct value_text *t, struct wanted *w, struct str name, int64_t n)
{
    const struct {
        const char *name;
        int64_t *at;
    } plain[] = {
        { "n", &w->n }, { "step", &w->step }, { "size", &w->size }, { "cut", &w->cut }, { "stray", &w->stray },
        { "magic", &w->magic }, { "base", &w->base }, { "leader", &w->leader }, { "id", &w->b.producer_id },
        { "time", &w->b.base_timestamp }, { "every", &w->time_step },
    };

    for (size_t i = 0; i < COUNT(plain); i++) {
        if (str_eq(name, str_c(plain[i].name))) {
            *plain[i].at = n;
            return;
        }
    }
    if (str_eq(name, STR("epoch")))
        w->b.producer_epoch = (int16_t)n;
    else if (str_eq(name, STR("seq")))
        w->b.base_sequence = (int32_t)n;
    else if (str_eq(name, STR("attr")))
        w->b.attributes = (int16_t)(w->b.attributes | n);
    else if (str_eq(name, STR("count")))
        w->b.count = (int32_t)n, w->count_given = true;
    else if (str_eq(name, STR("lod")))
        w->b.last_offset_delta = (int32_t)n, w->lod_given = true;
    else
        script_fail(t->s, "a batch has no %.*s", STR_ARG(name));
}

static void word_of(struct value_text *t, struct wanted *w, struct str name, struct str value)
{
    static const char *const codecs[] = { "none", "gzip", "snappy", "lz4", "zstd" };

    if (str_eq(name, STR("key"))) {
        w->key = value;
        w->null_key = str_eq(value, STR("null"));
    } else if (str_eq(name, STR("value"))) {
        w->value = value;
        w->null_value = str_eq(value, STR("null"));
    } else if (str_eq(name, STR("crc"))) {
        w->crc_bad = true;
    } else if (str_eq(name, STR("headers"))) {
        w->headers = true;
    } else if (str_eq(name, STR("codec"))) {
        int codec = 0;

        while (codec < (int)COUNT(codecs) && !str_eq(value, str_c(codecs[codec])))
            codec++;
        w->b.attributes = (int16_t)(w->b.attributes | codec);
    } else {
        word_number(t, w, name, value_number(t->s, value));
    }
}

static struct str text_of(struct arena *a, struct str prefix, int64_t i, int64_t size)
{
    struct str s = arena_fmt(a, "%.*s%d", STR_ARG(prefix), (int)i);
    char *p;

    if (size <= (int64_t)s.n)
        return s;
    p = arena_alloc(a, (size_t)size);
    memset(p, 'x', (size_t)size);
    memcpy(p, s.p, s.n);
    return str_of(p, (size_t)size);
}

static void put_records(struct value_text *t, struct wanted *w, struct buf *area)
{
    for (int64_t i = 0; i < w->n; i++) {
        struct record r = { .timestamp_delta = i * w->time_step, .offset_delta = (int32_t)(i * w->step) };
        struct buf headers;

        r.key = w->null_key ? STR_NULL : text_of(t->arena, w->key, i, 0);
        r.value = w->null_value ? STR_NULL : text_of(t->arena, w->value, i, w->size);
        buf_init(&headers, 1 * KiB);
        if (w->headers) {
            record_put_header(&headers, &(struct record_header){ .key = STR("h"), .value = STR("1") });
            record_put_header(&headers, &(struct record_header){ .key = STR("h"), .value = STR_NULL });
            r.header_count = 2;
        }
        r.headers = buf_str(&headers);
        record_put(area, &r);
        buf_fini(&headers);
        w->b.max_timestamp = MAX(w->b.max_timestamp, w->b.base_timestamp + r.timestamp_delta);
        script_note_time(t->s, w->b.base_timestamp + r.timestamp_delta);
    }
}

static void seal(struct value_text *t, struct wanted *w, struct buf *out)
{
    unsigned char header[BATCH_HEADER_SIZE];
    struct buf area, payload;
    int codec = w->b.attributes & BATCH_CODEC_MASK;
    size_t at = out->n;

    buf_init(&area, 16 * MiB);
    buf_init(&payload, 16 * MiB);
    w->b.max_timestamp = w->b.base_timestamp;
    put_records(t, w, &area);
    if (!w->count_given)
        w->b.count = (int32_t)w->n;
    if (!w->lod_given)
        w->b.last_offset_delta = (int32_t)((w->n - 1) * w->step);
    must(compress_pack(packer(), codec > CODEC_ZSTD ? CODEC_NONE : codec, COMPRESS_LEVEL_DEFAULT, buf_str(&area), &payload) == E_OK);
    batch_seal(&w->b, buf_str(&payload), header);
    buf_put(out, header, sizeof(header));
    buf_put(out, payload.p, payload.n);
    store_u64(out->p + at, (uint64_t)w->base);
    store_u32(out->p + at + 12, (uint32_t)w->leader);
    out->p[at + 16] = (char)w->magic;
    if (w->crc_bad)
        out->p[out->n - 1] = (char)(out->p[out->n - 1] ^ 1);
    for (int64_t i = 0; i < w->stray; i++)
        buf_put_char(out, 'z');
    out->n -= (size_t)MIN(w->cut, (int64_t)(out->n - at));
    buf_fini(&area);
    buf_fini(&payload);
    if (w->b.producer_id >= 0)
        script_label(t->s, "p", arena_fmt(t->arena, "%lld", (long long)w->b.producer_id));
}

struct str records_make(struct value_text *t)
{
    struct buf out;
    struct str bytes, name, value;

    if (t->p < t->end && *t->p != '<') { /* "" or null */
        (void)value_word(t, &value);
        return str_eq(value, STR("null")) ? STR_NULL : STR("");
    }
    buf_init(&out, 64 * MiB);
    while (t->p < t->end && *t->p == '<') {
        struct wanted w = { .b = { .magic = 2, .producer_id = -1, .producer_epoch = -1, .base_sequence = -1,
                                   .base_timestamp = peers_zero_ms() },
                            .key = STR("k"), .value = STR("v"), .n = 1, .step = 1, .magic = 2, .leader = -1 };

        t->p++;
        while (value_word(t, &name)) {
            value = STR("1");
            if (t->p < t->end && *t->p == '=') {
                t->p++;
                if (!value_word(t, &value))
                    script_fail(t->s, "%.*s of a batch has no value", STR_ARG(name));
            }
            word_of(t, &w, name, value);
        }
        if (t->p == t->end || *t->p != '>')
            script_fail(t->s, "a batch has no end");
        t->p++;
        seal(t, &w, &out);
    }
    bytes = arena_str(t->arena, buf_str(&out));
    buf_fini(&out);
    return bytes;
}

/* --- what came --- */

static void show_text(struct str s, struct buf *out)
{
    if (!s.p)
        buf_put_str(out, STR("null"));
    else if (s.n > 40)
        buf_fmt(out, "%.*s..(%zu)", 8, s.p, s.n);
    else
        for (size_t i = 0; i < s.n; i++)
            buf_fmt(out, s.p[i] > ' ' && s.p[i] < 0x7f ? "%c" : "\\%02x", (unsigned char)s.p[i]);
}

static void show_records(struct script *s, const struct batch *b, struct str payload, struct buf *out)
{
    struct record_reader in;
    struct record r;
    struct buf area;

    buf_init(&area, 64 * MiB);
    if (b->attributes & BATCH_CONTROL && payload.n > 9) { /* the value tells who coordinated */
        buf_fmt(out, " type %d", payload.p[8]);
    } else if (compress_unpack(packer(), b->attributes & BATCH_CODEC_MASK, payload, &area)) {
        buf_put_str(out, STR(" cannot be unpacked"));
    } else {
        for (in = record_reader_of(buf_str(&area), b->count); record_next(&in, &r);) {
            buf_fmt(out, " +%d ", r.offset_delta);
            show_text(r.key, out);
            buf_put_char(out, ':');
            show_text(r.value, out);
            if (r.header_count)
                buf_fmt(out, " headers=%d", r.header_count);
            buf_put_char(out, '@');
            show_time(s, b->base_timestamp + r.timestamp_delta, out);
        }
        if (record_reader_end(&in))
            buf_put_str(out, STR(" not made of records"));
    }
    buf_fini(&area);
}

void records_show(struct script *s, struct str bytes, struct buf *out)
{
    struct batch b;

    if (!bytes.p || !bytes.n) {
        buf_put_str(out, STR("none"));
        return;
    }
    while (batch_peek(bytes, &b) == BATCH_V2) {
        buf_fmt(out, "<base=%lld n=%d lod=%d attr=0x%x", (long long)b.base_offset, b.count, b.last_offset_delta,
                (unsigned)b.attributes);
        buf_fmt(out, " leader=%.*s", STR_ARG(script_label(s, "e", arena_fmt(&s->arena, "%d", b.leader_epoch))));
        if (b.producer_id >= 0)
            buf_fmt(out, " id=%.*s epoch=%d seq=%d",
                    STR_ARG(script_label(s, "p", arena_fmt(&s->arena, "%lld", (long long)b.producer_id))),
                    b.producer_epoch, b.base_sequence);
        buf_put_str(out, STR(" max="));
        show_time(s, b.max_timestamp, out);
        buf_put_str(out, batch_crc_ok(bytes.p, b.size) ? STR("") : STR(" WRONG CRC"));
        show_records(s, &b, str_of(bytes.p + BATCH_HEADER_SIZE, b.size - BATCH_HEADER_SIZE), out);
        buf_put_char(out, '>');
        bytes = str_part(bytes, b.size, bytes.n);
    }
    if (bytes.n)
        buf_fmt(out, " and %zu bytes", bytes.n);
}
