/* check_int.h -- what the parts of the checker share.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CHECK_INT_H
#define SIM_CHECK_INT_H

#include "check.h"
#include "wire/record.h"

/* How far one copy was compared. */
struct copy {
    uint32_t cuts;
    int64_t cut_us; /* when its log last lost something; 0: never */
    int64_t behind_us; /* when it last ended before something that the source has lost: that may be on its way still */
    size_t batch;   /* of the target's log, next */
    size_t truth;   /* next */
    uint32_t *made; /* per target offset the truth that it holds */
    size_t seen, room;
};

/* How far a partition of an internal topic was looked at. */
struct stored_seen {
    size_t batch;
    uint32_t cuts;
};

/* The last position and the last pair that were stored of a partition. */
struct stored_last {
    int64_t position, pair; /* source offset that comes next; -1: none */
    int64_t covered; /* the most that any pair has said to be copied, or to have been */
    bool older; /* the pair speaks of a topic that was deleted since */
};

/* A range that the mirror has told as lost, or as perhaps written twice. */
struct told {
    bool twice;
    char topic[64];
    int32_t partition;
    int64_t from, to;
    int64_t left; /* repetitions that it explains still */
};

#define FAULT_SLOTS 1024

struct check {
    struct feed *feed;
    struct sim_cluster *target;
    bool loose;
    struct compress *compress;
    struct buf area;
    struct copy copies[SIM_TOPICS][SIM_PARTS];
    struct stored_last last[SIM_TOPICS][SIM_PARTS];
    struct stored_seen pairs[SIM_PARTS], positions[SIM_PARTS];
    uint8_t faults[FAULT_SLOTS]; /* events of one relay since the last look, by a hash of its name */
    struct told *told;
    size_t told_n, told_room;
    int64_t excused_us; /* until then a partition may halt */
};

/* The records of a stored batch; the area stays until the next call. */
struct record_reader check_open_batch(struct check *c, const struct sim_batch *in, struct batch *b);
/* Whether the mirror has told this source offset as lost. */
bool check_was_told(const struct check *c, const char *topic, int32_t part, int64_t offset);
/* Whether it has said that this one may come again; it does so once for each that it has spoken of. */
bool check_take_told(struct check *c, const char *topic, int32_t part, int64_t offset);
/* check_stored.c: what the mirror has stored in its own topics since the last look. */
void check_stored(struct check *c);
/* check_sent.c: a new world; loose as above. */
void check_sent_start(bool loose);

#endif
