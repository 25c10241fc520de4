/* walk.h -- decides for each batch of a fetch answer what is done with it, by its header alone.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The ten rules of kafka-relay-rules section 0 and the read-committed algorithm of section 4.4. Pure; no
 * allocation; one owner for the time of one answer.
 */
#ifndef MIRROR_WALK_H
#define MIRROR_WALK_H

#include "wire/batch.h"

enum walk_action {
    WALK_RELAY,  /* R0/R1: a new header, the payload as it is */
    WALK_DECODE, /* R2: the record path; messages of v0 and v1 always */
    WALK_DROP,   /* nothing of it belongs in the target */
    WALK_HALT,   /* the partition must stop; `why` says what to do */
    WALK_RETRY,  /* these bytes cannot be trusted: fetch them again */
};

struct walk_aborted {
    int64_t producer_id;
    int64_t first_offset;
};

#define WALK_ABORTED_MAX 64 /* transactions open at once in one partition's answer */

struct walk {
    struct str bytes;
    int64_t start;        /* the wanted offset: what lies before it is not copied */
    bool check_crcs;
    bool keep_append_time; /* LogAppendTime batches keep the times that consumers see: record path */
    /* Read committed: aborted transactions of this answer, sorted by first offset; n 0: none. */
    const void *aborted_list;
    int32_t aborted_n;
    struct walk_aborted (*aborted_get)(const void *list, int32_t i);

    /* The walk's own. */
    int32_t aborted_at;
    int32_t active_n;
    int64_t active[WALK_ABORTED_MAX];
};

struct walk_step {
    enum walk_action action;
    struct batch batch;
    const char *p;    /* its first byte; batch.size bytes */
    const char *code; /* HALT, RETRY: a short name for the fault */
    const char *why;  /* and a sentence for people */
};

/* The next batch; false at the end of the complete ones. After HALT or RETRY the walk must end. */
bool walk_next(struct walk *w, struct walk_step *out);

#endif
