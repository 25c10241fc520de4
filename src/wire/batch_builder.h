/* batch_builder.h -- builds a whole uncompressed v2 batch of our own records.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For what we write ourselves into internal topics: positions, syncs, checkpoints, heartbeats,
 * state. Nothing of what is relayed comes here. One owner, one thread.
 */
#ifndef WIRE_BATCH_BUILDER_H
#define WIRE_BATCH_BUILDER_H

#include "base/buf.h"
#include "wire/batch.h"

struct batch_builder {
    struct buf bytes; /* room for the header, then the records */
    int32_t count;
    int64_t base_timestamp; /* of the first record */
    int64_t max_timestamp;
};

/* size_max is the most bytes of the whole batch. */
void batch_builder_init(struct batch_builder *b, size_t size_max);
void batch_builder_fini(struct batch_builder *b);
void batch_builder_clear(struct batch_builder *b); /* empty again; keeps the memory */

/* Copies one record in; key and value may be null. E_LIMIT when it does not fit any more: the
 * batch is as before, to be finished and cleared first. */
enum err batch_builder_add(struct batch_builder *b, struct str key, struct str value,
                           int64_t timestamp_ms) WARN_UNUSED;

/* The batch, ready to be produced; at least one record must be in. Bytes are valid until the next
 * add, clear or fini. stamp NULL: not idempotent. May be called again with another stamp. */
struct str batch_builder_finish(struct batch_builder *b, const struct batch_stamp *stamp);

#endif
