/* compress.c -- the codec table, and how every codec's output meets its limit.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unpackers pull room from a `struct sink`: pieces of the output buffer while there are any, and
 * then one spare byte. A stream that ends exactly at the limit never touches the spare; one that
 * writes it is too long. So no codec needs a special case for its last call.
 */
#include "wire/compress.h"

#include "base/alloc.h"
#include "wire/compress_codecs.h"

struct compress *compress_new(void)
{
    struct compress *c = mem_new(sizeof(*c));

    compress_gzip_init(&c->gzip);
    compress_lz4_init(&c->lz4);
    compress_zstd_init(&c->zstd);
    return c;
}

void compress_free(struct compress **c)
{
    if (!*c)
        return;
    compress_gzip_fini(&(*c)->gzip);
    compress_lz4_fini(&(*c)->lz4);
    compress_zstd_fini(&(*c)->zstd);
    mem_free(*c);
    *c = NULL;
}

bool compress_sink_room(struct sink *s, size_t want)
{
    size_t left = s->out->max - MIN(s->out->n, s->out->max);

    must(s->n == 0);
    if (s->spare_used)
        return false;
    if (left == 0) {
        s->spare_used = true;
        s->p = &s->spare;
        s->n = 1;
        return true;
    }
    s->n = CLAMP(want, 1, left);
    s->p = buf_grow(s->out, s->n);
    return s->p != NULL;
}

void compress_sink_wrote(struct sink *s, size_t n)
{
    must(n <= s->n);
    s->p += n;
    s->n -= n;
}

/* What was grown and not written goes back. False when the spare byte was written. */
static bool sink_close(struct sink *s)
{
    if (s->spare_used)
        return s->n == 1;
    s->out->n -= s->n;
    return true;
}

static enum err copy(struct str in, struct buf *out)
{
    buf_put_str(out, in);
    return out->bad ? E_LIMIT : E_OK;
}

static enum err unpack(struct compress *c, int codec, struct str in, struct sink *to)
{
    if (in.n == 0 && codec != CODEC_NONE)
        return E_CODEC; /* no codec packs anything into nothing */
    switch (codec) {
    case CODEC_NONE:
        return copy(in, to->out);
    case CODEC_GZIP:
        return compress_gzip_unpack(&c->gzip, in, to);
    case CODEC_SNAPPY:
        return compress_snappy_unpack(in, to->out);
    case CODEC_LZ4:
        return compress_lz4_unpack(&c->lz4, in, to);
    case CODEC_ZSTD:
        return compress_zstd_unpack(&c->zstd, in, to);
    default:
        return E_CODEC;
    }
}

enum err compress_unpack(struct compress *c, int codec, struct str in, struct buf *out)
{
    struct sink to = { .out = out };
    size_t before = out->n;
    enum err e = unpack(c, codec, in, &to);

    if (!sink_close(&to))
        e = E_LIMIT;
    if (e) {
        out->n = before;
        out->bad = false;
    }
    return e;
}

static enum err pack(struct compress *c, int codec, int level, struct str in, struct buf *out)
{
    switch (codec) {
    case CODEC_NONE:
        return copy(in, out);
    case CODEC_GZIP:
        return compress_gzip_pack(&c->gzip, level, in, out);
    case CODEC_SNAPPY:
        return compress_snappy_pack(in, out);
    case CODEC_LZ4:
        return compress_lz4_pack(&c->lz4, level, in, out);
    case CODEC_ZSTD:
        return compress_zstd_pack(&c->zstd, level, in, out);
    default:
        return E_CODEC;
    }
}

enum err compress_pack(struct compress *c, int codec, int level, struct str in, struct buf *out)
{
    size_t before = out->n;
    enum err e = pack(c, codec, level, in, out);

    if (e) {
        out->n = before;
        out->bad = false;
    }
    return e;
}
