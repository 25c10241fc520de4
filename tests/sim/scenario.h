/* scenario.h -- one run: two clusters, a feed, a mirror, faults from the seed, and the checks.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "check.h"
#include "mirror_sim.h"
#include "tally.h"

/* Kinds of faults; a scenario has some of them.    name */
#define FAULT_KINDS_ALL(K)                                                                       \
    K(CUT,         "cut")         /* one connection, at any byte */                               \
    K(CUT_ALL,     "cut-all")     /* all of one broker */                                         \
    K(MOVE_LEADER, "move-leader")                                                                 \
    K(RESTART,     "restart")     /* of a broker, of one cluster */                               \
    K(SLOW,        "slow")        /* a broker takes its time */                                   \
    K(SILENT,      "silent")      /* a broker's network swallows everything */                    \
    K(THROTTLE,    "throttle")                                                                    \
    K(REPLICAS,    "replicas")    /* too few in sync at the target */                             \
    K(KILL,        "kill")        /* kill -9 of the mirror, and a start */                        \
    K(CLOCK,       "clock")       /* the wall clock jumps */                                      \
    K(TOPICS,      "topics")      /* new topics, and more partitions */                           \
    K(PAYLOAD,     "payload")     /* wrong bytes in fetched batches, where the checksum sees them */ \
    K(OLD,         "old")         /* records of weeks ago, for which the target forgets producers (rules 2.6) */ \
    K(STOP,        "stop")        /* SIGTERM, and kill -9 before or after the end of it, and a start */ \
    K(STUCK,       "stuck")       /* a broker takes requests and does not answer for a while */    \
    K(UNCLEAN,     "unclean")     /* a new leader without records that were acknowledged or read */ \
    K(CRASH,       "crash")       /* a broker that is alone loses what was not on its disk */      \
    K(METADATA,    "metadata")    /* answers that contradict themselves */                        \
    K(ANEW,        "anew")        /* a topic of either end is deleted and made anew */            \
    K(RETENTION,   "retention")   /* the source's log begins later */                             \
    K(SIZE,        "size")        /* a copy stops taking large batches for a while */             \
    K(ZOMBIE,      "zombie")      /* SIGSTOP, a second mirror, SIGCONT, kill -9 of the first */    \
    K(MEMORY,      "memory")      /* the system gives no memory for payload now and then */        \
    K(MISTAKEN,    "mistaken")    /* a leader is mistaken about a producer's last sequence, and tells none */

enum fault_kind {
#define KIND(id, name) FAULT_##id,
    FAULT_KINDS_ALL(KIND)
#undef KIND
    FAULT_KINDS,
};

/* An end loses records or topics. */
#define FAULTS_LOSS (1u << FAULT_UNCLEAN | 1u << FAULT_CRASH | 1u << FAULT_ANEW | 1u << FAULT_RETENTION)
#define FAULTS_ANY  ((1u << FAULT_KINDS) - 1)
#define FAULTS_MAX 256 /* in one run */

struct scenario_options {
    unsigned faults; /* bits of fault_kind */
    bool all;        /* of these all happen; else some that the seed picks */
    bool corrupt, trace;
    const char *keep; /* FAULTS_MAX flags: which of the seed's faults happen; NULL: all */
    char words[200];  /* of the command line, to repeat it */
};

/* What a run tells its parent. */
struct scenario_result {
    uint64_t tallies[TALLIES_N];
    int faults_planned;
};

struct fault_plan {
    int64_t at_us;
    enum fault_kind kind;
    uint64_t luck; /* its details come from here, so that they stay when others are left out */
};

struct scenario {
    uint64_t seed;
    struct sim_cluster *source, *target;
    struct feed *feed;
    struct check *check;
    struct mirror *mirror; /* NULL: killed, not started yet */
    struct mirror *zombie; /* an older one that stands still, or has woken up */
    char config[4096];
    int64_t memory_max;
    unsigned faults; /* bits of fault_kind */
    struct sim_cluster *lossy; /* which of the two loses records and topics: one side in one run */
    bool spare_target;         /* nothing else happens to it */
    bool corrupt;    /* any byte of 10 % of all answers */
    int64_t feed_us; /* how long is written, and faults happen */

    /* faults.c */
    struct fault_plan plan[FAULTS_MAX];
    int planned, next_plan;
    const char *keep;
    struct sim_event next_fault, start_again, end_stop, end_zombie, wake_zombie;
    bool stopping;
    struct sim_event well[2][SIM_BROKERS]; /* ends what troubles a broker */
    struct sim_event well_all;             /* ends what troubles a cluster or a topic */
    uint64_t faults_done, kills;
};

/* All that the seed decides, then the run. Ends the process when something does not hold. */
void scenario_run(uint64_t seed, const struct scenario_options *o, struct scenario_result *out);

/* faults.c */
void faults_plan(struct scenario *s, const struct scenario_options *o);
void faults_start(struct scenario *s);
void faults_stop(struct scenario *s); /* everything is well again */

/* faults_cluster.c: what happens to brokers, logs and topics */
struct sim_cluster *fault_some_cluster(struct scenario *s);
void fault_move_leader(struct scenario *s);
/* Of the next write of a partition nobody hears what became of it. */
bool fault_lose_answer(struct scenario *s);
void fault_unclean(struct scenario *s);
void fault_crash(struct scenario *s);
void fault_anew(struct scenario *s);
void fault_retention(struct scenario *s);
void fault_size(struct scenario *s);
void fault_starve(struct scenario *s);
void fault_mistake(struct scenario *s);
void fault_topics(struct scenario *s);
void fault_cluster_well(struct scenario *s);
void fault_each_part(struct sim_cluster *c, void (*fn)(struct sim_part *p));

/* faults_mirror.c: what happens to processes */
void fault_mirror_start(struct scenario *s);
void fault_kill(struct scenario *s);
void fault_stop(struct scenario *s);
void fault_zombie(struct scenario *s);

#endif
