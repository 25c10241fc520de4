/* comparer_int.h -- what comparer.c and comparer_read.c share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_COMPARER_INT_H
#define MIRROR_COMPARER_INT_H

#include "mirror/comparer.h"
#include "wire/compress.h"

struct comparer {
    struct cluster *source, *target;
    int8_t isolation_level;
    struct pool *pool;
    struct fetcher *from, *copy;
    struct asker *ask_source, *ask_target;
    struct compress *compress;
    struct buf area, scratch; /* of one batch */
    struct list_node waiting; /* struct comparison */
    int running;
};

/* Adds the records of an answer to the list of its side, as many as go in, and moves `next`. Gives why it could not; then
 * *code is a short name. committed: what was aborted is left out. */
const char *comparer_read(struct comparer *co, struct comparer_side *s, const struct fetched *f, bool committed,
                          const char **code);

#endif
