/* codec_aid.c -- prints, compares and fills any message at any version.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For people and for tests; nothing on the data path.
 */
#include "wire/codec.h"
#include "wire/codec_row.h"

#include <inttypes.h>
#include <string.h>

#define HEX_MAX 64 /* bytes shown */

/* ---- printing */

static void print_value(const struct field *f, int type, int version, const void *p,
                        struct buf *out);

static void print_str(struct str s, struct buf *out)
{
    if (!s.p) {
        buf_put_str(out, STR("null"));
        return;
    }
    buf_put_char(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c == '"' || c == '\\' || c < 0x20 || c == 0x7f)
            buf_fmt(out, "\\x%02x", c);
        else
            buf_put_char(out, (char)c);
    }
    buf_put_char(out, '"');
}

static void print_hex(struct str s, struct buf *out)
{
    if (!s.p)
        buf_put_str(out, STR("null"));
    for (size_t i = 0; i < MIN(s.n, HEX_MAX); i++)
        buf_fmt(out, "%02x", (unsigned char)s.p[i]);
    if (s.n > HEX_MAX)
        buf_fmt(out, "..(%zu)", s.n);
}

static void print_records(const struct records *r, struct buf *out)
{
    if (!r->head.p && !r->body.p)
        buf_put_str(out, STR("null"));
    else
        buf_fmt(out, "%zu bytes", r->head.n + r->body.n);
}

/* As Kafka's tools show it: base64 for URLs, without padding. */
static void print_uuid(const struct uuid *u, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t bits = 0;
    int n = 0;

    for (size_t i = 0; i < sizeof(u->b); i++) {
        bits = bits << 8 | u->b[i];
        for (n += 8; n >= 6; n -= 6)
            buf_put_char(out, digits[bits >> (n - 6) & 63]);
    }
    buf_put_char(out, digits[bits << (6 - n) & 63]);
}

static void print_array(const struct field *f, int version, const struct array *a, struct buf *out)
{
    size_t width = row_width(f->of_type, f->of);
    const char *p = a->at;

    if (a->n < 0) {
        buf_put_str(out, STR("null"));
        return;
    }
    buf_put_char(out, '[');
    for (int32_t i = 0; i < a->n; i++, p += width) {
        if (i)
            buf_put_str(out, STR(", "));
        print_value(f, f->of_type, version, p, out);
    }
    buf_put_char(out, ']');
}

static void print_number(int type, const void *p, struct buf *out)
{
    double real;

    switch (type) {
    case W_I8:
        buf_fmt(out, "%d", *(const int8_t *)p);
        break;
    case W_I16:
        buf_fmt(out, "%d", *(const int16_t *)p);
        break;
    case W_U16:
        buf_fmt(out, "%u", *(const uint16_t *)p);
        break;
    case W_I32:
        buf_fmt(out, "%" PRId32, *(const int32_t *)p);
        break;
    case W_U32:
        buf_fmt(out, "%" PRIu32, *(const uint32_t *)p);
        break;
    case W_I64:
        buf_fmt(out, "%" PRId64, *(const int64_t *)p);
        break;
    case W_F64:
        memcpy(&real, p, sizeof(real));
        buf_fmt(out, "%.17g", real);
        break;
    }
}

static void print_value(const struct field *f, int type, int version, const void *p,
                        struct buf *out)
{
    const void *inner = p;

    switch (type) {
    case W_BOOL:
        buf_put_str(out, *(const bool *)p ? STR("true") : STR("false"));
        break;
    case W_UUID:
        print_uuid(p, out);
        break;
    case W_STRING:
        print_str(*(const struct str *)p, out);
        break;
    case W_BYTES:
        print_hex(*(const struct str *)p, out);
        break;
    case W_RECORDS:
        print_records(p, out);
        break;
    case W_ARRAY:
        print_array(f, version, p, out);
        break;
    case W_STRUCT:
        if (row_is_pointer(f))
            inner = *(void *const *)p;
        if (inner)
            codec_print(f->of, version, inner, out);
        else
            buf_put_str(out, STR("null"));
        break;
    default:
        print_number(type, p, out);
    }
}

void codec_print(const struct message *m, int version, const void *msg, struct buf *out)
{
    bool first = true;

    buf_put_char(out, '{');
    for (const struct field *f = m->fields; f->type; f++) {
        if (!row_exists(f, version))
            continue;
        buf_fmt(out, "%s%s=", first ? "" : ", ", f->name);
        print_value(f, f->type, version, row_at_const(f, msg), out);
        first = false;
    }
    buf_put_char(out, '}');
}

/* ---- comparing */

static bool value_equal(const struct field *f, int type, int version, const void *a, const void *b);

static bool array_equal(const struct field *f, int version, const struct array *a,
                        const struct array *b)
{
    size_t width = row_width(f->of_type, f->of);

    if (a->n != b->n)
        return false;
    for (int32_t i = 0; i < a->n; i++) {
        size_t at = (size_t)i * width;

        if (!value_equal(f, f->of_type, version, (const char *)a->at + at,
                         (const char *)b->at + at))
            return false;
    }
    return true;
}

static char byte_at(const struct records *r, size_t i)
{
    return i < r->head.n ? r->head.p[i] : r->body.p[i - r->head.n];
}

/* Where head ends and body begins does not matter. */
static bool records_equal(const struct records *a, const struct records *b)
{
    size_t n = a->head.n + a->body.n;

    if (n != b->head.n + b->body.n || (!a->head.p && !a->body.p) != (!b->head.p && !b->body.p))
        return false;
    for (size_t i = 0; i < n; i++)
        if (byte_at(a, i) != byte_at(b, i))
            return false;
    return true;
}

static bool value_equal(const struct field *f, int type, int version, const void *a, const void *b)
{
    switch (type) {
    case W_STRING:
    case W_BYTES:
        return str_eq(*(const struct str *)a, *(const struct str *)b);
    case W_RECORDS:
        return records_equal(a, b);
    case W_ARRAY:
        return array_equal(f, version, a, b);
    case W_STRUCT:
        if (row_is_pointer(f)) {
            a = *(void *const *)a;
            b = *(void *const *)b;
            if (!a || !b)
                return a == b;
        }
        return codec_equal(f->of, version, a, b);
    default:
        return !memcmp(a, b, row_width(type, NULL));
    }
}

bool codec_equal(const struct message *m, int version, const void *a, const void *b)
{
    for (const struct field *f = m->fields; f->type; f++)
        if (row_exists(f, version) &&
            !value_equal(f, f->type, version, row_at_const(f, a), row_at_const(f, b)))
            return false;
    return true;
}

/* ---- filling */

struct filler {
    struct rand *rand;
    struct arena *arena;
    int version;
};

static void fill_struct(struct filler *fl, const struct message *m, void *msg);

static bool chance(struct filler *fl, unsigned one_in)
{
    return rand_below(fl->rand, one_in) == 0;
}

/* Mostly short, now and then long enough for a length of two or three bytes. */
static struct str fill_str(struct filler *fl, bool text)
{
    size_t n = rand_below(fl->rand, chance(fl, 50) ? 300 : 9);
    char *p = arena_alloc(fl->arena, n + 1);

    for (size_t i = 0; i < n; i++)
        p[i] = (char)(text ? 'a' + rand_below(fl->rand, 26) : rand_below(fl->rand, 256));
    return str_of(p, n);
}

/* Small and extreme numbers alike. */
static void fill_number(struct filler *fl, void *p, size_t width)
{
    uint64_t v = rand_next(fl->rand) >> rand_below(fl->rand, 64);

    if (chance(fl, 4))
        v = ~v;
    memcpy(p, &v, width); /* the low bytes, on the little-endian machines that we build for */
}

static void fill_value(struct filler *fl, const struct field *f, int type, void *p)
{
    struct records *r = p;
    double real;

    switch (type) {
    case W_BOOL:
        *(bool *)p = chance(fl, 2);
        break;
    case W_F64:
        real = (double)(int32_t)rand_next(fl->rand);
        memcpy(p, &real, sizeof(real));
        break;
    case W_UUID:
        fill_number(fl, p, 8);
        fill_number(fl, (char *)p + 8, 8);
        break;
    case W_STRING:
    case W_BYTES:
        *(struct str *)p = fill_str(fl, type == W_STRING);
        break;
    case W_RECORDS:
        *r = (struct records){ .body = fill_str(fl, false) };
        if (chance(fl, 2))
            r->head = fill_str(fl, false);
        break;
    case W_STRUCT:
        fill_struct(fl, f->of, p);
        break;
    default:
        fill_number(fl, p, row_width(type, NULL));
    }
}

static void fill_array(struct filler *fl, const struct field *f, struct array *a)
{
    size_t width = row_width(f->of_type, f->of);

    a->n = (int32_t)rand_below(fl->rand, 4);
    a->at = arena_array(fl->arena, (size_t)a->n, width);
    for (int32_t i = 0; i < a->n; i++)
        fill_value(fl, f, f->of_type, (char *)a->at + (size_t)i * width);
}

static void set_null(const struct field *f, void *p)
{
    memset(p, 0, row_is_pointer(f) ? sizeof(void *) : row_width(f->type, f->of));
    if (f->type == W_ARRAY)
        ((struct array *)p)->n = -1;
}

static void fill_struct(struct filler *fl, const struct message *m, void *msg)
{
    codec_init(m, msg);
    for (const struct field *f = m->fields; f->type; f++) {
        void *p = row_at(f, msg);

        if (!row_exists(f, fl->version) || chance(fl, 8))
            continue; /* as codec_init left it */
        if (row_may_be_null(f, fl->version) && chance(fl, 4)) {
            set_null(f, p);
        } else if (f->type == W_ARRAY) {
            fill_array(fl, f, p);
        } else if (row_is_pointer(f)) {
            *(void **)p = arena_alloc(fl->arena, f->of->size);
            fill_struct(fl, f->of, *(void **)p);
        } else {
            fill_value(fl, f, f->type, p);
        }
    }
}

void codec_fill(const struct message *m, int version, struct rand *rand, struct arena *a, void *msg)
{
    struct filler fl = { .rand = rand, .arena = a, .version = version };

    fill_struct(&fl, m, msg);
}
