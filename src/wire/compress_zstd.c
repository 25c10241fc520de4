/* compress_zstd.c -- zstd frames.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Java's producers stream, so most frames do not say their size; where one does, room for all of
 * it spares a copy through the library's window.
 */
#include "wire/compress_codecs.h"

void compress_zstd_init(struct zstd *z)
{
    *z = (struct zstd){ .in = NULL };
}

void compress_zstd_fini(struct zstd *z)
{
    ZSTD_freeDCtx(z->in);
    ZSTD_freeCCtx(z->out);
    compress_zstd_init(z);
}

static size_t guess(struct str in, const struct sink *to)
{
    unsigned long long size = ZSTD_getFrameContentSize(in.p, in.n);

    return size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR
               ? compress_sink_guess(to, in)
               : (size_t)size;
}

enum err compress_zstd_unpack(struct zstd *z, struct str in, struct sink *to)
{
    ZSTD_inBuffer from = { in.p, in.n, 0 };
    size_t more = 1;

    if (!z->in)
        z->in = ZSTD_createDCtx();
    if (!z->in)
        return E_NO_MEMORY;
    ZSTD_DCtx_reset(z->in, ZSTD_reset_session_only);
    while (more > 0 || from.pos < from.size) {
        ZSTD_outBuffer into;
        size_t before = from.pos;

        if (to->n == 0) {
            size_t want = before == 0 ? guess(in, to) : compress_sink_guess(to, in);

            if (!compress_sink_room(to, want))
                return E_LIMIT;
        }
        into = (ZSTD_outBuffer){ to->p, to->n, 0 };
        more = ZSTD_decompressStream(z->in, &into, &from);
        if (ZSTD_isError(more))
            return E_CODEC;
        compress_sink_wrote(to, into.pos);
        if (more > 0 && into.pos == 0 && from.pos == before)
            return E_CODEC; /* cut short */
    }
    return E_OK;
}

enum err compress_zstd_pack(struct zstd *z, int level, struct str in, struct buf *out)
{
    size_t room = ZSTD_compressBound(in.n), size;
    char *p;

    if (level == COMPRESS_LEVEL_DEFAULT)
        level = ZSTD_CLEVEL_DEFAULT;
    else if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel())
        return E_INVALID;
    if (!z->out)
        z->out = ZSTD_createCCtx();
    if (!z->out)
        return E_NO_MEMORY;
    must(!ZSTD_isError(ZSTD_CCtx_setParameter(z->out, ZSTD_c_compressionLevel, level)));
    p = buf_grow(out, room);
    if (!p)
        return E_LIMIT;
    size = ZSTD_compress2(z->out, p, room, in.p, in.n);
    if (ZSTD_isError(size))
        return E_NO_MEMORY; /* the room suffices, so nothing else is left */
    out->n -= room - size;
    return E_OK;
}
