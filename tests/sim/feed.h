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

enum truth_state { TRUTH_OPEN, TRUTH_THERE, TRUTH_ABORTED };

struct truth {
    int64_t offset;
    uint64_t digest;
    int64_t producer_id; /* whose transaction, -1: none */
    enum truth_state state;
};

struct feed_txn {
    int64_t producer_id, first; /* -1: not open */
    int32_t sequence;
};

#define FEED_TXNS 2

struct feed_part {
    struct sim_part *log;
    struct truth *truths; /* by offset */
    size_t n, room;
    uint32_t cuts;
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
/* The truth after the log has lost its tail. */
void feed_sync(struct feed_part *p);

struct record;
uint64_t feed_digest(const struct record *r, int64_t timestamp_ms);

#endif
