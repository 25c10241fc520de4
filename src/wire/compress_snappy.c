/* compress_snappy.c -- snappy, in the chunks of Java's xerial library and raw.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     82 'S' 'N' 'A' 'P' 'P' 'Y' 00 | version int32 = 1 | oldest reader int32 = 1
 *     length int32, raw snappy | length int32, raw snappy | ...
 *
 * Java's producers write this; others write one raw block. Readers must take both, and a second
 * header where a chunk may begin, which is what joining two streams gives.
 */
#include "wire/compress_codecs.h"

#include "wire/prim.h"

#include <snappy-c.h>
#include <string.h>

#define CHUNK       (32 * KiB)
#define HEADER_SIZE 16

static const char header[HEADER_SIZE] = "\x82SNAPPY\0\0\0\0\1\0\0\0\1";

static bool header_at(struct str in)
{
    return in.n >= HEADER_SIZE && memcmp(in.p, header, 8) == 0;
}

static enum err unpack_raw(struct str in, struct buf *out)
{
    size_t size, left = out->max - MIN(out->n, out->max);
    char *p;

    if (snappy_uncompressed_length(in.p, in.n, &size) != SNAPPY_OK)
        return E_CODEC;
    if (size > left)
        return E_LIMIT;
    p = buf_grow(out, size);
    must(p);
    return snappy_uncompress(in.p, in.n, p, &size) == SNAPPY_OK ? E_OK : E_CODEC;
}

enum err compress_snappy_unpack(struct str in, struct buf *out)
{
    struct reader r = reader_of(in.p, in.n);

    if (!header_at(in))
        return unpack_raw(in, out);
    while (reader_left(&r) > 0) {
        struct str rest = str_of((const char *)r.p, reader_left(&r)), chunk;
        enum err e;

        if (header_at(rest)) {
            (void)read_bytes(&r, HEADER_SIZE);
            continue;
        }
        chunk = read_bytes(&r, read_u32(&r));
        if (r.bad)
            return E_CODEC;
        e = unpack_raw(chunk, out);
        if (e)
            return e;
    }
    return E_OK;
}

enum err compress_snappy_pack(struct str in, struct buf *out)
{
    buf_put(out, header, HEADER_SIZE);
    for (size_t at = 0; at < in.n; at += CHUNK) {
        struct str part = str_part(in, at, at + CHUNK);
        size_t size = snappy_max_compressed_length(part.n), room = size;
        char *p = buf_grow(out, 4 + room);

        if (!p)
            return E_LIMIT;
        must(snappy_compress(part.p, part.n, p + 4, &size) == SNAPPY_OK);
        store_u32(p, (uint32_t)size);
        out->n -= room - size;
    }
    return out->bad ? E_LIMIT : E_OK;
}
