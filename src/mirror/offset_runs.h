/* offset_runs.h -- the bytes in which an offset map keeps its runs.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   0lllllll            one source offset left out, then a run of l + 1                 (a marker every few records)
 *   10ggglll            g + 1 left out, then a run of l + 1                             (compaction)
 *   110000rt G L [T] [N R]   any: source gap G, length L, if t: target gap T, if r: a range of N target offsets, reason R
 *   11100000 C          the step before, C more times
 *
 * Capital letters are unsigned base-128 numbers of at most 63 bits, low groups first. Pure; any thread.
 */
#ifndef MIRROR_OFFSET_RUNS_H
#define MIRROR_OFFSET_RUNS_H

#include "base/buf.h"

/* A gap on both sides, then a run. */
struct offset_step {
    int64_t source_gap, target_gap;
    int64_t source_n, target_n; /* equal in an exact run */
    uint8_t reason;             /* 0: exact */
};

bool offset_step_eq(const struct offset_step *a, const struct offset_step *b);
void offset_step_put(struct buf *out, const struct offset_step *s);
void offset_step_put_again(struct buf *out, int64_t times);

/* Reads steps; a step that is repeated comes once, with its number. */
struct offset_reader {
    const unsigned char *p, *end;
    int64_t source, target; /* before the step that comes next */
    struct offset_step last;
    bool bad;
};

struct offset_group {
    struct offset_step step;
    int64_t times;
    int64_t source, target; /* where its first gap begins */
};

struct offset_reader offset_reader_of(struct str bytes, int64_t source, int64_t target);
/* False at the end; bad then tells whether it came too early. Offsets never pass INT64_MAX. */
bool offset_reader_next(struct offset_reader *r, struct offset_group *out);

#endif
