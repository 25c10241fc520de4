/* codec_encode.c -- the engine's other half: encoding of any message at any version.
 * SPDX-License-Identifier: Apache-2.0
 *
 * See codec.c for the format. A buf that is full stays full, so only the end looks at it.
 */
#include "wire/codec.h"
#include "wire/codec_row.h"

#include <string.h>

static bool is_unset_struct(const struct message *m, const void *msg, bool or_zero);

/* Is this what stands in `initial` (or, with or_zero, zero, empty or null)? */
static bool is_unset(const struct field *f, const void *p, const void *initial, bool or_zero)
{
    static const char zeros[sizeof(struct records)];
    const struct array *a = p, *a0 = initial;
    const struct str *s = p, *s0 = initial;
    size_t n;

    switch ((enum wire_type)f->type) {
    case W_STRING:
    case W_BYTES:
        return s->n == 0 && (or_zero || str_is_null(*s) == str_is_null(*s0));
    case W_ARRAY:
        return a->n <= 0 && (or_zero || (a->n < 0) == (a0->n < 0));
    case W_STRUCT:
        if (row_is_pointer(f))
            return !*(void *const *)p;
        return is_unset_struct(f->of, p, or_zero);
    default:
        n = row_width(f->type, NULL);
        return !memcmp(p, initial, n) || (or_zero && !memcmp(p, zeros, n));
    }
}

static bool is_unset_struct(const struct message *m, const void *msg, bool or_zero)
{
    for (const struct field *f = m->fields; f->type; f++)
        if (!is_unset(f, row_at_const(f, msg), row_at_const(f, m->initial), or_zero))
            return false;
    return true;
}

struct encoder {
    struct buf *b;
    struct encoding *to;
    int version;
    bool compact;
    bool in_tag; /* inside a tagged field, whose size must be known: records are copied */
    enum err err;
};

static void encode_struct(struct encoder *e, const struct message *m, const void *msg);
static void encode_value(struct encoder *e, const struct field *f, int type, const void *p);

static void refuse(struct encoder *e, enum err err)
{
    if (!e->err)
        e->err = err;
}

/* A length or count; -1 is null. */
static void put_count(struct encoder *e, const struct field *f, int64_t n)
{
    if (n < 0 && !row_may_be_null(f, e->version))
        refuse(e, E_INVALID);
    if (e->compact)
        put_uvarint(e->b, (uint32_t)(MAX(n, -1) + 1));
    else
        put_i32(e->b, (int32_t)MAX(n, -1));
}

static void encode_array(struct encoder *e, const struct field *f, const struct array *a)
{
    size_t width = row_width(f->of_type, f->of);
    const char *p = a->at;

    put_count(e, f, a->n);
    for (int32_t i = 0; i < a->n; i++, p += width) {
        if (f->of_type == W_STRUCT)
            encode_struct(e, f->of, p);
        else
            encode_value(e, f, f->of_type, p);
    }
}

static void encode_records(struct encoder *e, const struct field *f, const struct records *r)
{
    size_t n = r->head.n + r->body.n;
    bool null = !r->head.p && !r->body.p;

    if (n > INT32_MAX) {
        refuse(e, E_LIMIT);
        return;
    }
    put_count(e, f, null ? -1 : (int64_t)n);
    if (!e->to->cuts || e->in_tag) {
        buf_put_str(e->b, r->head);
        buf_put_str(e->b, r->body);
    } else if (n) {
        if (e->to->cuts_n == e->to->cuts_max)
            refuse(e, E_LIMIT);
        else
            e->to->cuts[e->to->cuts_n++] = (struct cut){ .at = e->b->n, .r = *r };
    }
}

static void encode_str(struct encoder *e, const struct field *f, struct str s, bool blob)
{
    if (!s.p && !row_may_be_null(f, e->version))
        refuse(e, E_INVALID);
    if (blob)
        put_blob(e->b, s, e->compact);
    else
        put_string(e->b, s, e->compact);
}

static void encode_pointer(struct encoder *e, const struct field *f, const void *msg)
{
    if (row_may_be_null(f, e->version))
        put_i8(e->b, msg ? 1 : -1);
    else if (!msg)
        refuse(e, E_INVALID);
    if (msg)
        encode_struct(e, f->of, msg);
}

static void encode_value(struct encoder *e, const struct field *f, int type, const void *p)
{
    switch ((enum wire_type)type) {
    case W_BOOL:
    case W_I8:
        put_i8(e->b, *(const int8_t *)p);
        break;
    case W_I16:
    case W_U16:
        put_i16(e->b, *(const int16_t *)p);
        break;
    case W_I32:
    case W_U32:
        put_i32(e->b, *(const int32_t *)p);
        break;
    case W_I64:
    case W_F64:
        put_i64(e->b, *(const int64_t *)p);
        break;
    case W_UUID:
        buf_put(e->b, p, sizeof(struct uuid));
        break;
    case W_STRING:
        encode_str(e, f, *(const struct str *)p, false);
        break;
    case W_BYTES:
        encode_str(e, f, *(const struct str *)p, true);
        break;
    case W_RECORDS:
        encode_records(e, f, p);
        break;
    case W_ARRAY:
        encode_array(e, f, p);
        break;
    case W_STRUCT:
        if (row_is_pointer(f))
            encode_pointer(e, f, *(void *const *)p);
        else
            encode_struct(e, f->of, p);
        break;
    case W_END:
        break;
    }
}

/* Writes the value, then pushes its size in front of it. */
static void encode_tag(struct encoder *e, const struct field *f, const void *p)
{
    bool outer = e->in_tag;
    size_t from, n, shift;

    put_uvarint(e->b, (uint32_t)f->tag);
    from = e->b->n;
    e->in_tag = true;
    encode_value(e, f, f->type, p);
    e->in_tag = outer;
    n = e->b->n - from;
    shift = uvarint_size((uint32_t)n);
    if (e->b->bad || !buf_grow(e->b, shift))
        return;
    memmove(e->b->p + from + shift, e->b->p + from, n);
    e->b->n = from;
    put_uvarint(e->b, (uint32_t)n);
    e->b->n += n;
}

static bool is_sent_tag(const struct message *m, const struct field *f, int version,
                        const void *msg)
{
    return f->tag >= 0 && row_exists(f, version) &&
           !is_unset(f, row_at_const(f, msg), row_at_const(f, m->initial), false);
}

/* Rows with tags need not stand in order of their tags; the wire needs them to. */
static void encode_tags(struct encoder *e, const struct message *m, const void *msg)
{
    const struct field *f;
    uint32_t count = 0;

    for (f = m->fields; f->type; f++)
        count += is_sent_tag(m, f, e->version, msg);
    put_uvarint(e->b, count);
    for (uint32_t tag = 0; count; tag++) {
        f = row_find_tag(m, e->version, tag);
        if (f && is_sent_tag(m, f, e->version, msg)) {
            encode_tag(e, f, row_at_const(f, msg));
            count--;
        }
    }
}

static void encode_struct(struct encoder *e, const struct message *m, const void *msg)
{
    for (const struct field *f = m->fields; f->type; f++) {
        const void *p = row_at_const(f, msg);

        if (row_exists(f, e->version)) {
            if (f->tag < 0)
                encode_value(e, f, f->type, p);
        } else if (!f->ignorable && !is_unset(f, p, row_at_const(f, m->initial), true)) {
            refuse(e, E_VERSION); /* dropping it would change what is asked */
        }
    }
    if (e->compact)
        encode_tags(e, m, msg);
}

enum err codec_encode(const struct message *m, int version, const void *msg, struct encoding *to)
{
    struct encoder e = {
        .b = to->head, .to = to, .version = version, .compact = version >= m->flexible
    };

    encode_struct(&e, m, msg);
    if (e.err)
        return e.err;
    return e.b->bad ? E_LIMIT : E_OK;
}
