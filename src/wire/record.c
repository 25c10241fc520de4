/* record.c -- one record of a v2 batch from and to bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     length varint | attributes 1 | timestamp delta varlong | offset delta varint
 *     key length varint, key | value length varint, value | header count varint, headers
 *
 * Lengths below -1 mean null to Java, so they do here; a header's key cannot be null.
 */
#include "wire/record.h"

struct record_reader record_reader_of(struct str area, int32_t count)
{
    return (struct record_reader){ .in = reader_of(area.p, area.n), .left = count };
}

static struct str read_counted(struct reader *r)
{
    int32_t n = read_varint(r);

    return n < 0 ? STR_NULL : read_bytes(r, (size_t)n);
}

static bool read_header(struct reader *r, struct record_header *out)
{
    out->key = read_counted(r);
    out->value = read_counted(r);
    return !r->bad && !str_is_null(out->key);
}

/* Whether what is left of the record is exactly `count` headers. */
static bool headers_ok(struct reader in, int32_t count)
{
    struct record_header h;

    if (count < 0)
        return false;
    for (int32_t i = 0; i < count; i++) {
        if (!read_header(&in, &h))
            return false;
    }
    return reader_left(&in) == 0;
}

static bool read_record(struct reader *in, struct record *out)
{
    int32_t size = read_varint(in);
    struct str body = size < 0 ? STR_NULL : read_bytes(in, (size_t)size);
    struct reader r = reader_of(body.p, body.n);

    if (in->bad || str_is_null(body))
        return false;
    out->attributes = read_i8(&r);
    out->timestamp_delta = read_varlong(&r);
    out->offset_delta = read_varint(&r);
    out->key = read_counted(&r);
    out->value = read_counted(&r);
    out->header_count = read_varint(&r);
    out->headers = str_of((const char *)r.p, reader_left(&r));
    return !r.bad && headers_ok(r, out->header_count);
}

bool record_next(struct record_reader *r, struct record *out)
{
    if (r->left <= 0 || r->in.bad)
        return false;
    if (!read_record(&r->in, out)) {
        r->in.bad = true;
        return false;
    }
    r->left--;
    return true;
}

enum err record_reader_end(const struct record_reader *r)
{
    return r->in.bad || r->left != 0 || reader_left(&r->in) != 0 ? E_MALFORMED : E_OK;
}

bool record_header_next(struct str *headers, struct record_header *out)
{
    struct reader r = reader_of(headers->p, headers->n);

    if (headers->n == 0 || !read_header(&r, out))
        return false;
    *headers = str_of((const char *)r.p, reader_left(&r));
    return true;
}

static void put_counted(struct buf *b, struct str s)
{
    if (str_is_null(s)) {
        put_varint(b, -1);
        return;
    }
    put_varint(b, (int32_t)s.n);
    buf_put(b, s.p, s.n);
}

static size_t counted_size(struct str s)
{
    return str_is_null(s) ? 1 : varint_size((int32_t)s.n) + s.n;
}

static size_t body_size(const struct record *r)
{
    return 1 + varlong_size(r->timestamp_delta) + varint_size(r->offset_delta) +
           counted_size(r->key) + counted_size(r->value) + varint_size(r->header_count) +
           r->headers.n;
}

void record_put_header(struct buf *b, const struct record_header *h)
{
    put_counted(b, h->key);
    put_counted(b, h->value);
}

void record_put(struct buf *b, const struct record *r)
{
    put_varint(b, (int32_t)body_size(r));
    put_i8(b, r->attributes);
    put_varlong(b, r->timestamp_delta);
    put_varint(b, r->offset_delta);
    put_counted(b, r->key);
    put_counted(b, r->value);
    put_varint(b, r->header_count);
    buf_put_str(b, r->headers);
}

size_t record_size(const struct record *r)
{
    size_t n = body_size(r);

    return varint_size((int32_t)n) + n;
}
