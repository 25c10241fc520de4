/* offset_map_int.h -- what the files of the offset map share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_OFFSET_MAP_INT_H
#define MIRROR_OFFSET_MAP_INT_H

#include "mirror/offset_map.h"
#include "mirror/offset_runs.h"

#define OFFSET_BLOCK 1024 /* encoded bytes at which a block is closed */

struct offset_block {
    int64_t source, target; /* where it begins: the end of the block before, unless a stored one was lost */
    unsigned char *bytes;
    uint32_t n, number;
    uint64_t ticket; /* of its first put; 0: never put */
    bool changed;    /* since it was put */
    bool thin;
};

/* Closed blocks, then the open part: bytes, the step that may yet be repeated, and the run that may yet grow. */
struct offset_map {
    int64_t source, target;         /* where it begins */
    int64_t source_end, target_end; /* where it ends: all before is settled */
    uint8_t before;                 /* enum offset_reason: of what lies before it */
    bool has_run;
    bool dirty; /* a block is changed or gone */
    uint32_t next_number;
    struct offset_block *blocks;
    size_t n, room;
    size_t block_bytes;
    uint32_t *gone;
    size_t gone_n, gone_room;
    uint64_t stored;

    int64_t open_source, open_target; /* where the open part begins */
    int64_t at_source, at_target;     /* where it ends, without `run` */
    struct buf bytes;
    struct offset_step again; /* comes `times` times after the bytes */
    int64_t times;
    struct offset_step run;
};

/* Walks one part: a closed block, or (at m->n) the open one. */
struct offset_walk {
    const struct offset_map *m;
    struct offset_reader reader;
    int stage; /* 0 bytes, 1 the repeated step, 2 the run */
};
void offset_walk_init(struct offset_walk *w, const struct offset_map *m, size_t part);
bool offset_walk_next(struct offset_walk *w, struct offset_group *out);

/* Where part i begins, on one side. */
static inline int64_t offset_part_begin(const struct offset_map *m, size_t i, bool source)
{
    if (i == m->n)
        return source ? m->open_source : m->open_target;
    return source ? m->blocks[i].source : m->blocks[i].target;
}

/* The last part that begins at or before the offset (0 when none does). */
size_t offset_part_find(const struct offset_map *m, bool source, int64_t at);

/* Adds a step some times to the open part. */
void offset_map_push(struct offset_map *m, const struct offset_step *s, int64_t times);
void offset_map_note_gone(struct offset_map *m, uint32_t number);

#endif
