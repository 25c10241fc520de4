/* tally.h -- counts what happened in runs, so that a kind of fault that never happens is noticed.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_TALLY_H
#define SIM_TALLY_H

#include <stdint.h>

/*    name              what is counted */
#define TALLIES(T)                                                          \
    T(CUT,              "connections lost, at any byte")                    \
    T(RESET,            "of these, what had arrived was lost too")          \
    T(WRITE_TORN,       "writes that took a part of the bytes")             \
    T(READ_TORN,        "deliveries that ended inside a message")           \
    T(REORDERED,        "bytes that overtook older ones of another connection") \
    T(CORRUPT_PAYLOAD,  "answers with a wrong byte under a checksum")       \
    T(CORRUPT_ANY,      "answers with a wrong byte anywhere")               \
    T(SLOW,             "brokers that became slow")                         \
    T(SILENT,           "brokers whose network swallows everything")        \
    T(STUCK,            "brokers that take requests and do not answer")     \
    T(THROTTLE,         "brokers that throttle")                            \
    T(LEADER_MOVE,      "leaders that moved")                               \
    T(TRUNCATED,        "of these, unacknowledged records were lost")       \
    T(UNCLEAN,          "unclean elections that lost acknowledged records") \
    T(RESTART,          "brokers that restarted")                           \
    T(CRASH,            "brokers that lost what was not on their disk")     \
    T(PRODUCERS_CUT,    "producers of which a restart left one batch")      \
    T(PRODUCERS_GONE,   "producers that were forgotten for their age")      \
    T(MISTAKEN,         "producers about whose last sequence a leader was mistaken") \
    T(REPLICAS,         "partitions with too few replicas in sync")         \
    T(FLAPS,            "times when replicas were in sync at one write and not at the next") \
    T(BEHIND,           "partitions whose replicas stayed behind")          \
    T(TIMED_OUT,        "writes whose replication took too long")           \
    T(SESSION_LOST,     "fetch sessions that a broker dropped or refused")  \
    T(METADATA_OLD,     "metadata answers with an old leader")              \
    T(METADATA_LIES,    "metadata answers that contradict themselves")      \
    T(TOPIC_NEW,        "topics and partitions that were added")            \
    T(SOURCE_ANEW,      "source topics deleted and made anew")              \
    T(TARGET_ANEW,      "copies deleted and made anew")                     \
    T(RETENTION,        "log starts that moved")                            \
    T(HOLES,            "batches with holes, or empty, as the cleaner leaves them") \
    T(ABORTED,          "transactions that were aborted")                   \
    T(FOLLOWER,         "fetch answers of followers")                       \
    T(SIZE_LIMIT,       "copies that stopped taking large batches")         \
    T(CLOCK,            "jumps of the wall clock")                          \
    T(KILL,             "kill -9 of the mirror")                            \
    T(STOP,             "SIGTERM of the mirror")                            \
    T(ZOMBIE,           "mirrors that woke up beside another one")          \
    T(ZOMBIE_LATE,      "of these, whose flow that one had taken over")     \
    T(NO_MEMORY,        "payload blocks that the system did not give")

enum tally {
#define T(name, what) TALLY_##name,
    TALLIES(T)
#undef T
    TALLIES_N,
};

/* Counts go there; the caller clears it. */
void tally_into(uint64_t *counts);
void tally(enum tally t);
const char *tally_text(enum tally t);

#endif
