/* compress_codecs.h -- what compress.c shares with the file of each codec; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of the libraries are made at their first use: most workers never meet most codecs.
 * Thread: the worker's.
 */
#ifndef WIRE_COMPRESS_CODECS_H
#define WIRE_COMPRESS_CODECS_H

#include "base/must.h"
#include "wire/compress.h"

#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

struct gzip {
    z_stream in, out;
    bool in_ready, out_ready;
    int level; /* of out */
};

struct lz4 {
    LZ4F_dctx *in;
    LZ4F_cctx *out;
};

struct zstd {
    ZSTD_DCtx *in;
    ZSTD_CCtx *out;
};

struct compress {
    struct gzip gzip;
    struct lz4 lz4;
    struct zstd zstd;
};

/* Room for unpacked bytes, see compress.c. */
struct sink {
    struct buf *out;
    char *p; /* n bytes to be written next */
    size_t n;
    char spare;
    bool spare_used; /* p is the spare byte, or it has been written */
};

/* Gets room, about `want` bytes if the limit allows; false: the spare byte is used up too. */
bool compress_sink_room(struct sink *s, size_t want);
void compress_sink_wrote(struct sink *s, size_t n);

/* A first guess of the unpacked size; after it, room comes in pieces of what there is already. */
static inline size_t compress_sink_guess(const struct sink *s, struct str in)
{
    return MAX(s->out->n / 2, MAX(in.n * 4, 16 * KiB));
}

void compress_gzip_init(struct gzip *g);
void compress_gzip_fini(struct gzip *g);
enum err compress_gzip_unpack(struct gzip *g, struct str in, struct sink *to) WARN_UNUSED;
enum err compress_gzip_pack(struct gzip *g, int level, struct str in, struct buf *out) WARN_UNUSED;

enum err compress_snappy_unpack(struct str in, struct buf *out) WARN_UNUSED;
enum err compress_snappy_pack(struct str in, struct buf *out) WARN_UNUSED;

void compress_lz4_init(struct lz4 *l);
void compress_lz4_fini(struct lz4 *l);
enum err compress_lz4_unpack(struct lz4 *l, struct str in, struct sink *to) WARN_UNUSED;
enum err compress_lz4_pack(struct lz4 *l, int level, struct str in, struct buf *out) WARN_UNUSED;

void compress_zstd_init(struct zstd *z);
void compress_zstd_fini(struct zstd *z);
enum err compress_zstd_unpack(struct zstd *z, struct str in, struct sink *to) WARN_UNUSED;
enum err compress_zstd_pack(struct zstd *z, int level, struct str in, struct buf *out) WARN_UNUSED;

#endif
