/* compress_lz4.c -- LZ4 frames.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Java's reader takes independent blocks only, and stops at the end of the first frame.
 */
#include "wire/compress_codecs.h"

#define LEVEL_MIN 1
#define LEVEL_MAX 17

void compress_lz4_init(struct lz4 *l)
{
    *l = (struct lz4){ .in = NULL };
}

void compress_lz4_fini(struct lz4 *l)
{
    LZ4F_freeDecompressionContext(l->in);
    LZ4F_freeCompressionContext(l->out);
    compress_lz4_init(l);
}

enum err compress_lz4_unpack(struct lz4 *l, struct str in, struct sink *to)
{
    if (!l->in && LZ4F_isError(LZ4F_createDecompressionContext(&l->in, LZ4F_VERSION)))
        return E_NO_MEMORY;
    LZ4F_resetDecompressionContext(l->in);
    for (;;) {
        size_t taken = in.n, given, more;

        if (to->n == 0 && !compress_sink_room(to, compress_sink_guess(to, in)))
            return E_LIMIT;
        given = to->n;
        more = LZ4F_decompress(l->in, to->p, &given, in.p, &taken, NULL);
        if (LZ4F_isError(more))
            return E_CODEC;
        compress_sink_wrote(to, given);
        in = str_of(in.p + taken, in.n - taken);
        if (more == 0)
            return E_OK;
        if (taken == 0 && given == 0)
            return E_CODEC; /* cut short */
    }
}

enum err compress_lz4_pack(struct lz4 *l, int level, struct str in, struct buf *out)
{
    LZ4F_preferences_t how = {
        .frameInfo = { .blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent },
        .compressionLevel = level == COMPRESS_LEVEL_DEFAULT ? 0 : level,
        .autoFlush = 1,
    };
    size_t room = LZ4F_HEADER_SIZE_MAX + LZ4F_compressBound(in.n, &how);
    size_t head, body, tail;
    char *p;

    if (level != COMPRESS_LEVEL_DEFAULT && (level < LEVEL_MIN || level > LEVEL_MAX))
        return E_INVALID;
    if (!l->out && LZ4F_isError(LZ4F_createCompressionContext(&l->out, LZ4F_VERSION)))
        return E_NO_MEMORY;
    p = buf_grow(out, room);
    if (!p)
        return E_LIMIT;
    head = LZ4F_compressBegin(l->out, p, room, &how);
    if (LZ4F_isError(head))
        return E_NO_MEMORY;
    body = LZ4F_compressUpdate(l->out, p + head, room - head, in.p, in.n, NULL);
    must(!LZ4F_isError(body));
    tail = LZ4F_compressEnd(l->out, p + head + body, room - head - body, NULL);
    must(!LZ4F_isError(tail));
    out->n -= room - head - body - tail;
    return E_OK;
}
