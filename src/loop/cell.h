/* cell.h -- a place that always holds the newest version of something many threads read.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One thread builds an immutable snapshot and puts it; any thread gets the newest, reads it as long as it
 * likes and drops it. The last drop frees it, on whatever thread that is.
 */
#ifndef LOOP_CELL_H
#define LOOP_CELL_H

#include "base/util.h"

#include <pthread.h>
#include <stdatomic.h>

/* Embedded in the owner's struct, which does not change once it is put. */
struct snapshot {
    _Atomic(uint32_t) refs;
    void (*free)(struct snapshot *s);
};

/* Begins with one reference, which is the caller's. */
void snapshot_init(struct snapshot *s, void (*free)(struct snapshot *s));
/* One more reference for a holder of one. */
struct snapshot *snapshot_ref(struct snapshot *s);
/* Clears the pointer. NULL is fine. */
void snapshot_drop(struct snapshot **s);

struct cell {
    pthread_mutex_t lock; /* held for a few instructions, never while anything is freed */
    struct snapshot *now;
};

void cell_init(struct cell *c);
void cell_fini(struct cell *c); /* drops what it holds */

/* Takes over the caller's reference; NULL empties the cell. */
void cell_put(struct cell *c, struct snapshot *s);

/* The newest, with a reference of the caller's own; NULL when nothing was put yet. */
struct snapshot *cell_get(struct cell *c) WARN_UNUSED;

#endif
