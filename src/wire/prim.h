/* prim.h -- bounded reader and writer of Kafka's primitive types.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A reader that ran out of bytes or met an impossible length stays bad and gives zeros; a writer
 * that is full stays full; both say so once at the end. Nothing here allocates but the writer's
 * buf. Any thread; one owner.
 */
#ifndef WIRE_PRIM_H
#define WIRE_PRIM_H

#include "base/buf.h"
#include "base/str.h"

#include <string.h>

struct reader {
    const unsigned char *p;
    const unsigned char *end;
    bool bad;
};

static inline struct reader reader_of(const void *p, size_t n)
{
    const unsigned char *from = p ? p : (const void *)""; /* no arithmetic on NULL */

    return (struct reader){ .p = from, .end = from + n };
}

static inline size_t reader_left(const struct reader *r)
{
    return (size_t)(r->end - r->p);
}

/* Big-endian access to a fixed place. */
static inline uint16_t load_u16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return __builtin_bswap16(v);
}

static inline uint32_t load_u32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return __builtin_bswap32(v);
}

static inline uint64_t load_u64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return __builtin_bswap64(v);
}

void store_u16(void *p, uint16_t v);
void store_u32(void *p, uint32_t v);
void store_u64(void *p, uint64_t v);

/* A bad reader is also an empty one, so every later read fails on the same test of length. */
static inline void reader_spoil(struct reader *r)
{
    r->bad = true;
    r->p = r->end;
}

/* The next n bytes, or NULL. What reads numbers is inline: a fetch answer has thousands. */
static inline const unsigned char *reader_take(struct reader *r, size_t n)
{
    const unsigned char *p = r->p;

    if (reader_left(r) < n) {
        reader_spoil(r);
        return NULL;
    }
    r->p += n;
    return p;
}

static inline uint16_t read_u16(struct reader *r)
{
    const unsigned char *p = reader_take(r, 2);

    return p ? load_u16(p) : 0;
}

static inline uint32_t read_u32(struct reader *r)
{
    const unsigned char *p = reader_take(r, 4);

    return p ? load_u32(p) : 0;
}

static inline int8_t read_i8(struct reader *r)
{
    const unsigned char *p = reader_take(r, 1);

    return p ? (int8_t)*p : 0;
}

static inline int16_t read_i16(struct reader *r)
{
    return (int16_t)read_u16(r);
}

static inline int32_t read_i32(struct reader *r)
{
    return (int32_t)read_u32(r);
}

static inline int64_t read_i64(struct reader *r)
{
    const unsigned char *p = reader_take(r, 8);

    return p ? (int64_t)load_u64(p) : 0;
}

uint32_t read_uvarint_long(struct reader *r); /* of any length */

/* At most 5 bytes and 32 bits. */
static inline uint32_t read_uvarint(struct reader *r)
{
    if (r->p < r->end && *r->p < 0x80) /* nearly always */
        return *r->p++;
    return read_uvarint_long(r);
}

int32_t read_varint(struct reader *r);             /* zig-zag */
int64_t read_varlong(struct reader *r);            /* zig-zag, at most 10 bytes */
struct str read_bytes(struct reader *r, size_t n); /* points into the input */
/* int16 length (compact: uvarint length + 1); -1 (0) gives the null string. */
struct str read_string(struct reader *r, bool compact);
/* int32 length (compact: uvarint length + 1). */
struct str read_blob(struct reader *r, bool compact);
/* Skips a section of tagged fields, which must stand in rising order. */
void read_tags(struct reader *r);

void put_i8(struct buf *b, int8_t v);
void put_i16(struct buf *b, int16_t v);
void put_i32(struct buf *b, int32_t v);
void put_i64(struct buf *b, int64_t v);
void put_u32(struct buf *b, uint32_t v);
void put_uvarint(struct buf *b, uint32_t v);
void put_varint(struct buf *b, int32_t v);
void put_varlong(struct buf *b, int64_t v);
void put_string(struct buf *b, struct str s, bool compact); /* null allowed; 32767 bytes at most */
void put_blob(struct buf *b, struct str s, bool compact);

size_t uvarint_size(uint32_t v);
size_t varint_size(int32_t v);
size_t varlong_size(int64_t v);

#endif
