/* compress_gzip.c -- gzip by zlib.
 * SPDX-License-Identifier: Apache-2.0
 *
 * As Java reads it: members may follow each other, and what follows the last one is ignored.
 */
#include "wire/compress_codecs.h"

#include <string.h>

#define GZIP_WINDOW  (MAX_WBITS + 16) /* zlib's way to say: gzip, not zlib */
#define MEMORY_LEVEL 8

void compress_gzip_init(struct gzip *g)
{
    *g = (struct gzip){ .in_ready = false };
}

void compress_gzip_fini(struct gzip *g)
{
    if (g->in_ready)
        inflateEnd(&g->in);
    if (g->out_ready)
        deflateEnd(&g->out);
    g->in_ready = g->out_ready = false;
}

static bool start_in(struct gzip *g)
{
    if (!g->in_ready)
        g->in_ready = inflateInit2(&g->in, GZIP_WINDOW) == Z_OK;
    return g->in_ready && inflateReset(&g->in) == Z_OK;
}

static bool member_follows(const z_stream *z)
{
    return z->avail_in >= 2 && z->next_in[0] == 0x1f && z->next_in[1] == 0x8b;
}

enum err compress_gzip_unpack(struct gzip *g, struct str in, struct sink *to)
{
    z_stream *z = &g->in;

    if (!start_in(g))
        return E_NO_MEMORY;
    z->next_in = (Bytef *)(uintptr_t)in.p; /* zlib's member lacks const */
    z->avail_in = (uInt)in.n;
    for (;;) {
        size_t room;
        int status;

        if (to->n == 0 && !compress_sink_room(to, compress_sink_guess(to, in)))
            return E_LIMIT;
        room = MIN(to->n, UINT32_MAX);
        z->next_out = (Bytef *)to->p;
        z->avail_out = (uInt)room;
        status = inflate(z, Z_NO_FLUSH);
        compress_sink_wrote(to, room - z->avail_out);
        if (status == Z_STREAM_END && !member_follows(z))
            return E_OK;
        if (status == Z_STREAM_END)
            status = inflateReset(z);
        else if (status == Z_BUF_ERROR && to->n == 0)
            status = Z_OK;
        if (status != Z_OK)
            return status == Z_MEM_ERROR ? E_NO_MEMORY : E_CODEC;
    }
}

static bool start_out(struct gzip *g, int level)
{
    if (g->out_ready && g->level == level)
        return deflateReset(&g->out) == Z_OK;
    if (g->out_ready)
        deflateEnd(&g->out);
    memset(&g->out, 0, sizeof(g->out));
    g->level = level;
    g->out_ready = deflateInit2(&g->out, level, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
                                Z_DEFAULT_STRATEGY) == Z_OK;
    return g->out_ready;
}

enum err compress_gzip_pack(struct gzip *g, int level, struct str in, struct buf *out)
{
    z_stream *z = &g->out;
    size_t bound;
    char *p;

    if (level == COMPRESS_LEVEL_DEFAULT)
        level = Z_DEFAULT_COMPRESSION;
    else if (level < Z_BEST_SPEED || level > Z_BEST_COMPRESSION)
        return E_INVALID;
    if (!start_out(g, level))
        return E_NO_MEMORY;
    bound = deflateBound(z, in.n);
    p = buf_grow(out, bound);
    if (!p)
        return E_LIMIT;
    z->next_in = (Bytef *)(uintptr_t)in.p;
    z->avail_in = (uInt)in.n;
    z->next_out = (Bytef *)p;
    z->avail_out = (uInt)bound;
    must(deflate(z, Z_FINISH) == Z_STREAM_END);
    out->n -= z->avail_out;
    return E_OK;
}
