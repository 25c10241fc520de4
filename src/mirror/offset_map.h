/* offset_map.h -- which target offset every source offset of a partition became, both ways.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A map is a row of runs (source, target, length): inside a run the difference is constant, between runs lie source
 * offsets that hold nothing to copy (markers, aborted and compacted records) or target offsets that are not ours. A
 * new run costs about a byte, a repeated pattern nothing; a partition without holes is one run for its life. Runs lie
 * encoded in blocks of about 1 KiB, so a search is a bisection and one short walk. A closed block never changes but by
 * thinning or cutting, so it is stored once (relay_map.c). No I/O; one owner, one thread.
 */
#ifndef MIRROR_OFFSET_MAP_H
#define MIRROR_OFFSET_MAP_H

#include "base/buf.h"

struct offset_map;

/* Why an answer is a range. */
enum offset_reason {
    OFFSET_SURE,
    OFFSET_THINNED,  /* the map had outgrown its limit */
    OFFSET_EXPIRED,  /* the target's log begins after it */
    OFFSET_LOST,     /* the stored map was lost or incomplete */
    OFFSET_UNSEEN,   /* written just before a crash, while others wrote as well */
    OFFSET_REASONS,
};

enum offset_kind {
    OFFSET_EXACT,   /* the same record */
    OFFSET_NEXT,    /* the record was not copied (or is not ours): the next that exists */
    OFFSET_END,     /* nothing copied follows yet: where the next record will be, or after */
    OFFSET_RANGE,   /* between `offset` and `last` */
    OFFSET_NOT_YET, /* not copied yet: the nearest is `of` -> `offset`, short_by offsets before */
    OFFSET_UNKNOWN, /* nothing has been copied */
};

struct offset_answer {
    enum offset_kind kind;
    enum offset_reason reason; /* of a range */
    int64_t offset, last;      /* last: of a range, the greatest that it may be */
    int64_t of;                /* the asked side's offset of the record that `offset` holds */
    int64_t short_by;
};

/* An empty map that begins at these two offsets. reason: of what lies before them; OFFSET_SURE: not copied. */
struct offset_map *offset_map_new(int64_t source, int64_t target, enum offset_reason before);
void offset_map_free(struct offset_map **m);

/* count records from `source` on are at `target` on, one by one. What lies between the end of the map and here was not
 * copied (source) or is not ours (target). Offsets before the map's end say that the end was wrong: it is cut. */
void offset_map_add(struct offset_map *m, int64_t source, int64_t target, int64_t count);
/* Somewhere in these stretches lie records, in order; which is which is not known. */
void offset_map_add_range(struct offset_map *m, int64_t source, int64_t source_n, int64_t target, int64_t target_n,
                          enum offset_reason reason);
/* All before these offsets is settled: the end of the map, where nothing goes back. */
void offset_map_advance(struct offset_map *m, int64_t source, int64_t target);

/* The source lost what it had from `source` on: other records will come under these offsets. */
void offset_map_cut_source(struct offset_map *m, int64_t source);
/* The target lost what it had from `target` on. Afterwards the map ends after the last record that is left. */
void offset_map_cut_target(struct offset_map *m, int64_t target);
/* The target offset of the n-th record from the end (1: the last); false: not that many, or not known exactly. */
bool offset_map_from_end(const struct offset_map *m, int64_t n, int64_t *target);
/* How many records are in the target from `target` on; false: not known exactly. */
bool offset_map_count_from(const struct offset_map *m, int64_t target, int64_t *records);
/* The target's log begins here now: older runs are of no use. */
void offset_map_forget(struct offset_map *m, int64_t target);
/* Gives up exactness of the oldest part; false when nothing is left to give up. */
bool offset_map_thin(struct offset_map *m);

struct offset_answer offset_map_to_target(const struct offset_map *m, int64_t source);
struct offset_answer offset_map_to_source(const struct offset_map *m, int64_t target);

struct offset_map_stats {
    int64_t source, target;           /* where it begins */
    int64_t source_end, target_end;
    size_t memory, encoded;           /* bytes: all, and of the runs alone */
    uint32_t blocks, thinned;         /* closed blocks; of these without their runs */
};
void offset_map_stats(const struct offset_map *m, struct offset_map_stats *out);
size_t offset_map_memory(const struct offset_map *m);

/* Storing. A part is a closed block under its number, or the rest: all that is in no closed block before `number`. */
struct offset_part {
    uint32_t number;
    int64_t source, target; /* where it begins */
    struct str runs;        /* encoded */
    /* Of the rest: */
    int64_t source_end, target_end; /* where the map ends */
    uint8_t before;                 /* enum offset_reason of what lies before the whole map */
};
/* The oldest closed block that has changed since it was put; false: none. Then the caller puts it and says under which
 * ticket it will know that it is stored; later, up to which ticket all is. */
bool offset_map_is_dirty(const struct offset_map *m); /* a part has changed or is gone */
bool offset_map_next_part(const struct offset_map *m, struct offset_part *out);
void offset_map_part_put(struct offset_map *m, uint32_t number, uint64_t ticket);
/* The number of a block that is no more; false: none. */
bool offset_map_take_gone(struct offset_map *m, uint32_t *number);
void offset_map_stored(struct offset_map *m, uint64_t ticket);
/* The rest, with every closed block that may not be stored yet, as far as it has room. out holds the bytes. */
void offset_map_rest(const struct offset_map *m, size_t room, struct buf *out, struct offset_part *part);

/* A map from its parts: closed blocks sorted by number, then the rest, up to the pair that was stored with it. What
 * contradicts itself or is missing becomes a range. Never NULL. Parts of a number that is in the rest are out of date
 * and ignored. */
struct offset_map *offset_map_restore(const struct offset_part *parts, size_t n, const struct offset_part *rest,
                                      int64_t pair_source, int64_t pair_target);

const char *offset_kind_name(enum offset_kind k);
const char *offset_reason_text(enum offset_reason r);

#endif
