/* prim.c -- bounded reader and writer of Kafka's primitive types.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Strings are held to the 32767 bytes that Kafka itself allows in both length forms.
 */
#include "wire/prim.h"

void store_u16(void *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, sizeof(v));
}

void store_u32(void *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof(v));
}

void store_u64(void *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof(v));
}

/* ---- reading */

/* At most `bytes` bytes, the last of which may be no more than last_max. */
static uint64_t read_base128(struct reader *r, int bytes, unsigned last_max)
{
    uint64_t v = 0;

    for (int i = 0; i < bytes && r->p < r->end; i++) {
        unsigned b = *r->p++;

        if (i == bytes - 1 && b > last_max)
            break;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b < 0x80)
            return v;
    }
    reader_spoil(r);
    return 0;
}

uint32_t read_uvarint_long(struct reader *r)
{
    return (uint32_t)read_base128(r, 5, 0x0f);
}

int32_t read_varint(struct reader *r)
{
    uint32_t v = read_uvarint(r);

    return (int32_t)(v >> 1) ^ -(int32_t)(v & 1);
}

int64_t read_varlong(struct reader *r)
{
    uint64_t v = read_base128(r, 10, 1);

    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

struct str read_bytes(struct reader *r, size_t n)
{
    const unsigned char *p = reader_take(r, n);

    return p ? str_of((const char *)p, n) : STR_NULL;
}

/* Reads n bytes, where -1 is null and less is an error. */
static struct str read_counted(struct reader *r, int64_t n, int64_t most)
{
    if (n == -1)
        return STR_NULL;
    if (n < 0 || n > most) {
        reader_spoil(r);
        return STR_NULL;
    }
    return read_bytes(r, (size_t)n);
}

struct str read_string(struct reader *r, bool compact)
{
    int64_t n = compact ? (int64_t)read_uvarint(r) - 1 : read_i16(r);

    return r->bad ? STR_NULL : read_counted(r, n, INT16_MAX);
}

struct str read_blob(struct reader *r, bool compact)
{
    int64_t n = compact ? (int64_t)read_uvarint(r) - 1 : read_i32(r);

    return r->bad ? STR_NULL : read_counted(r, n, INT32_MAX);
}

void read_tags(struct reader *r)
{
    uint32_t count = read_uvarint(r);
    int64_t last = -1;

    for (uint32_t i = 0; i < count && !r->bad; i++) {
        uint32_t tag = read_uvarint(r);

        if (tag <= last)
            reader_spoil(r);
        last = tag;
        read_bytes(r, read_uvarint(r));
    }
}

/* ---- writing */

void put_i8(struct buf *b, int8_t v)
{
    buf_put_char(b, (char)v);
}

void put_i16(struct buf *b, int16_t v)
{
    char *p = buf_grow(b, 2);

    if (p)
        store_u16(p, (uint16_t)v);
}

void put_i32(struct buf *b, int32_t v)
{
    put_u32(b, (uint32_t)v);
}

void put_i64(struct buf *b, int64_t v)
{
    char *p = buf_grow(b, 8);

    if (p)
        store_u64(p, (uint64_t)v);
}

void put_u32(struct buf *b, uint32_t v)
{
    char *p = buf_grow(b, 4);

    if (p)
        store_u32(p, v);
}

static void put_base128(struct buf *b, uint64_t v)
{
    while (v >= 0x80) {
        buf_put_char(b, (char)(v | 0x80));
        v >>= 7;
    }
    buf_put_char(b, (char)v);
}

static uint64_t zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

void put_uvarint(struct buf *b, uint32_t v)
{
    put_base128(b, v);
}

void put_varint(struct buf *b, int32_t v)
{
    put_base128(b, zigzag(v));
}

void put_varlong(struct buf *b, int64_t v)
{
    put_base128(b, zigzag(v));
}

void put_string(struct buf *b, struct str s, bool compact)
{
    if (s.n > INT16_MAX) {
        b->bad = true;
        return;
    }
    if (compact)
        put_uvarint(b, s.p ? (uint32_t)s.n + 1 : 0);
    else
        put_i16(b, s.p ? (int16_t)s.n : -1);
    if (s.p)
        buf_put_str(b, s);
}

void put_blob(struct buf *b, struct str s, bool compact)
{
    if (s.n > INT32_MAX) {
        b->bad = true;
        return;
    }
    if (compact)
        put_uvarint(b, s.p ? (uint32_t)s.n + 1 : 0);
    else
        put_i32(b, s.p ? (int32_t)s.n : -1);
    if (s.p)
        buf_put_str(b, s);
}

static size_t base128_size(uint64_t v)
{
    size_t n = 1;

    while (v >= 0x80) {
        v >>= 7;
        n++;
    }
    return n;
}

size_t uvarint_size(uint32_t v)
{
    return base128_size(v);
}

size_t varint_size(int32_t v)
{
    return base128_size(zigzag(v));
}

size_t varlong_size(int64_t v)
{
    return base128_size(zigzag(v));
}
