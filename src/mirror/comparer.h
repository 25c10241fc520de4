/* comparer.h -- reads the end of a copy and its source side by side, and tells from where on the source is missing there.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For a partition whose stored position another mirror wrote (MirrorMaker 2 stores one a minute): its copy mostly ends
 * behind that position. Records are compared (overlap.h), so neither holes, nor other batches, nor other compression matter.
 * One comparer per flow and loop carries the comparisons of its partitions, COMPARER_AT_ONCE at a time; the memory of each
 * is bounded, however much there is to compare.
 */
#ifndef MIRROR_COMPARER_H
#define MIRROR_COMPARER_H

#include "base/fault.h"
#include "kafka/asker.h"
#include "kafka/fetcher.h"
#include "mirror/overlap.h"

#define COMPARER_AT_ONCE 4
#define COMPARER_WINDOW  16384 /* records of a copy that are held against the source at a time */
#define COMPARER_CONTEXT 1024  /* source offsets before the position that are looked for, too */

struct comparer;

/* One end of a comparison. */
struct comparer_side {
    struct fetch_part fetch;
    struct ask ask;
    struct overlap_list list;
    int64_t next; /* offset behind what is in the list */
    int64_t end;  /* of the log, as it was asked for */
    size_t most;  /* records in the list */
    bool bounded, append_time;
};

/* Embedded in, or owned by, whoever asks. */
struct comparison {
    struct topic_meta *source, *target; /* watched by the owner */
    int32_t partition;
    int64_t position; /* the source offset at which the stored position would go on; -1 there is none: from the first on */
    int64_t floor;    /* of the target: copies from there on do not lie before it; 0 not known */
    void (*done)(struct comparison *c); /* once, from the loop */
    void *arg;

    /* The outcome. */
    struct fault fault;      /* set: it could not be done now */
    bool denied;             /* and never will, for the copy may not be read */
    bool open;               /* a transaction that is still open in the copy was not looked into */
    int64_t next;            /* the first source offset that is not in the copy */
    int64_t source_start;    /* of its log: above the position, retention has cut it */
    int64_t source_end, target_end;
    struct overlap_answer sum; /* of all windows; present is of no meaning */

    /* Its own. */
    struct comparer *comparer; /* NULL: idle */
    struct list_node node;
    int state;
    struct comparer_side from, copy;
    int64_t place_ms; /* the copy's first record that is not older does not lie behind what is looked for */
    bool again, widened;
};

/* isolation_level: how the mirror reads the source. */
struct comparer *comparer_new(struct cluster *source, struct cluster *target, int8_t isolation_level);
void comparer_free(struct comparer **c); /* nothing may be under way */

/* The upper part of c is filled, the rest zero. */
void comparer_start(struct comparer *co, struct comparison *c);
/* No done after this; harmless when nothing is under way. */
void comparer_cancel(struct comparison *c);

#endif
