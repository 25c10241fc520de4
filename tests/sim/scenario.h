/* scenario.h -- one run: two clusters, a feed, a mirror, faults from the seed, and the checks.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "check.h"
#include "mirror_sim.h"

/* Kinds of faults; a scenario has some of them. */
enum fault_kind {
    FAULT_CUT,          /* one connection, at any byte */
    FAULT_CUT_ALL,      /* all of one broker */
    FAULT_MOVE_LEADER,
    FAULT_RESTART,      /* of a broker, of one cluster */
    FAULT_SLOW,         /* a broker takes its time */
    FAULT_SILENT,       /* a broker's network swallows everything */
    FAULT_THROTTLE,
    FAULT_REPLICAS,     /* too few in sync at the target */
    FAULT_KILL,         /* kill -9 of the mirror, and a start */
    FAULT_CLOCK,        /* the wall clock jumps */
    FAULT_TOPICS,       /* new topics, and more partitions */
    FAULT_PAYLOAD,      /* wrong bytes in fetched batches, where the checksum sees them */
    FAULT_OLD,          /* records of weeks ago, for which the target forgets producers (rules 2.6) */
    FAULT_STOP,         /* SIGTERM, and kill -9 before or after the end of it, and a start */
    FAULT_KINDS,
};

struct scenario {
    uint64_t seed;
    struct sim_cluster *source, *target;
    struct feed *feed;
    struct check *check;
    struct mirror *mirror; /* NULL: killed, not started yet */
    char config[4096];
    int64_t memory_max;
    unsigned faults; /* bits of fault_kind */
    bool corrupt;    /* any byte of 10 % of all answers */
    int64_t feed_us; /* how long is written, and faults happen */

    /* faults.c */
    struct sim_event next_fault, start_again, end_stop;
    bool stopping;
    struct sim_event well[2][SIM_BROKERS]; /* ends what troubles a broker */
    int64_t fault_pause_us;
    uint64_t faults_done, kills;
};

/* All that the seed decides, then the run; of the faults all happen, or some that the seed picks. Ends the process
 * when something does not hold. */
void scenario_run(uint64_t seed, unsigned faults, bool all, bool corrupt);

/* faults.c */
void faults_start(struct scenario *s);
void faults_stop(struct scenario *s); /* everything is well again */

#endif
