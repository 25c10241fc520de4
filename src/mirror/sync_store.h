/* sync_store.h -- which offset syncs MirrorMaker 2 remembers of a partition, and how it translates by them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * mm2-spec 5.4 and 5.5, rule for rule: for heliostat.offset.translation = mm2. Pure; one owner.
 */
#ifndef MIRROR_SYNC_STORE_H
#define MIRROR_SYNC_STORE_H

#include "base/util.h"

#define SYNC_STORE_SLOTS 64

struct sync_slot {
    int64_t upstream, downstream;
    uint64_t id; /* counts what was put: two slots hold the same sync when it is equal */
};

/* Zeroed: empty. */
struct sync_store {
    struct sync_slot slots[SYNC_STORE_SLOTS]; /* the newest first */
    uint64_t count;
};

void sync_store_put(struct sync_store *s, int64_t upstream, int64_t downstream);

/* The target offset; -1: it is older than all that is remembered, or nothing is. */
int64_t sync_store_translate(const struct sync_store *s, int64_t upstream);

#endif
