/* overlap.h -- which of a source's records are at the end of a copy already, by comparing the records.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A mirror that died had written more than its stored position says. Two lists are compared: the source's records from
 * somewhat before the position on, and the copy's from a place on that is not behind the copies of these. Records are
 * alike when key, value, headers and time are. The copy may hold more (another writer's records, what an earlier crash
 * repeated) and less (it is compacted) than the source's list. Pure; any thread.
 */
#ifndef MIRROR_OVERLAP_H
#define MIRROR_OVERLAP_H

#include "base/util.h"
#include "wire/record.h"

struct overlap_record {
    uint64_t content; /* of key, value and headers */
    uint64_t key;     /* of the key; 0: it has none */
    int64_t time_ms;
    int64_t offset;
};

struct overlap_list {
    struct overlap_record *at;
    size_t n, room;
};

void overlap_add(struct overlap_list *l, const struct record *r, int64_t time_ms, int64_t offset);
void overlap_free(struct overlap_list *l);

struct overlap_answer {
    size_t present;   /* of the source's list: so many from its start are in the copy, the known ones among them */
    size_t copied;    /* of these, how many were found in the copy's list beyond the known ones */
    size_t missing;   /* and how many were not, for compaction took them there: later records of their keys are there */
    size_t repeats;   /* records of the copy that are there twice */
    size_t others;    /* that are none of the source's list, between or behind those that are */
    size_t undecided; /* behind the last that was recognized: alike to several of the source's. Then present is the least
                       * that is sure */
};

/* The first `known` of the source's list are in the copy. timed: times count; else, and that is where the copy has its
 * own times, whole rows must be alike before they are recognized. */
void overlap_find(const struct overlap_list *source, size_t known, const struct overlap_list *copy, bool timed,
                  struct overlap_answer *out);

#endif
