/* compress.h -- packs and unpacks the record area of a batch with the codecs that Kafka knows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the record path comes here; relayed batches stay as they are. A context keeps the state of
 * all codecs, so that no batch pays for setting one up; each worker has one, used on its thread.
 * What is written is what Java's producers write and all clients read: gzip, snappy in xerial
 * chunks of 32 KiB, an LZ4 frame of independent 64 KiB blocks, zstd.
 */
#ifndef WIRE_COMPRESS_H
#define WIRE_COMPRESS_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/batch.h"

#define COMPRESS_LEVEL_DEFAULT INT32_MIN

struct compress;

struct compress *compress_new(void);
void compress_free(struct compress **c); /* clears the pointer; NULL is fine */

/* Appends the unpacked bytes to out. E_LIMIT: they would pass out->max (so a small bomb costs
 * no more than that); E_CODEC: damaged, cut short, or an unknown codec. On failure out is as
 * before. */
enum err compress_unpack(struct compress *c, int codec, struct str in, struct buf *out) WARN_UNUSED;

/* Appends the packed bytes to out. E_LIMIT: what the codec may need at worst would pass out->max;
 * E_CODEC: unknown codec; E_INVALID: a level outside the codec's range, which is gzip 1..9, lz4 1..17
 * (high compression from 3), zstd as the library; snappy and none ignore it. On failure out is as
 * before. E_NO_MEMORY from either: the library could not set up its state. */
enum err compress_pack(struct compress *c, int codec, int level, struct str in,
                       struct buf *out) WARN_UNUSED;

#endif
