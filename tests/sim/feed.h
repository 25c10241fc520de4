/* feed.h -- who writes at the source, and the truth about what it wrote.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Batches of every shape go straight into the source's logs: codecs, idempotent producers, transactions that
 * commit or abort, holes and empty batches as the cleaner leaves them, LogAppendTime. Of every record the truth
 * keeps where it is, what it is, and whether a reader of committed data sees it.
 */
#ifndef SIM_FEED_H
#define SIM_FEED_H

#include "broker.h"

/* LOST: the source lost it after somebody may have read it: of those that went together the copy has a first part. */
enum truth_state { TRUTH_OPEN, TRUTH_THERE, TRUTH_ABORTED, TRUTH_LOST };

struct truth {
    int64_t offset;
    uint64_t digest;
    int64_t producer_id; /* whose transaction, -1: none */
    enum truth_state state;
    uint32_t loss;    /* counts what went together */
    bool expired;     /* by retention: what was not copied must be told */
};

struct feed_txn {
    int64_t producer_id, first; /* -1: not open */
    int32_t sequence;
};

#define FEED_TXNS 2

struct feed_part {
    struct sim_part *log;
    struct truth *truths; /* in the order in which they were written */
    size_t n, room;
    uint32_t cuts, losses;
    int64_t lost_us, cut_us; /* when something was last lost, and when not by retention; 0: never */
    int32_t sequence;
    int64_t producer_id;
    struct feed_txn txns[FEED_TXNS];
};

/* What is written into a topic. */
struct feed_shape {
    bool transactional, compacted, idempotent, large;
    int codec; /* -1: any */
};

struct feed_topic {
    struct sim_topic *topic;
    struct feed_shape shape;
    struct feed_part parts[SIM_PARTS];
};

struct feed {
    struct sim_cluster *cluster;
    struct feed_topic topics[SIM_TOPICS];
    int32_t topics_n;
    struct sim_event next;
    int64_t pause_us; /* most time between two batches */
    bool stopped, old; /* old: some records are of weeks ago */
    struct compress *compress;
};

struct feed *feed_new(struct sim_cluster *c, int64_t pause_us);
/* A new topic of a shape that the seed chooses. */
struct feed_topic *feed_add_topic(struct feed *f, const char *name, int32_t parts);
/* Open transactions end, and nothing more is written. */
void feed_stop(struct feed *f);
/* One batch more to each partition, after that. */
void feed_last(struct feed *f);
/* The truth after the log has lost its tail, which nobody can have read. */
void feed_sync(struct feed_part *p);
/* The same after it has lost more: up to `was`, the high watermark, somebody may have read. */
void feed_cut(struct feed_part *p, int64_t was);
/* The log's start has moved. */
void feed_expire(struct feed_part *p);
/* The topic is about to be made anew. */
void feed_anew(struct feed_topic *t);

struct record;
uint64_t feed_digest(const struct record *r, int64_t timestamp_ms);

#endif
