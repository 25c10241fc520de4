/* fetcher.h -- reads partitions of one cluster: a fetch session per leader, bytes into pool blocks.
 * SPDX-License-Identifier: Apache-2.0
 *
 * KIP-227 sessions (restarted on any session error), leader epochs, last fetched epoch (truncation detection),
 * topic ids from v13 on, fetch from follower (KIP-392, client.rack), throttle times obeyed, leaders learned from
 * answers. Each request reserves budget first; without budget nothing is asked (the pool wakes us). Partitions
 * that gave data go to the end of the order. One loop.
 */
#ifndef KAFKA_FETCHER_H
#define KAFKA_FETCHER_H

#include "kafka/cluster.h"

struct fetcher;
struct fetch_part;

struct fetch_aborted {
    int64_t producer_id;
    int64_t first_offset;
};

/* One partition's part of an answer; valid during the callback only (records may be slice_ref'ed). */
struct fetched {
    int32_t error;             /* kerr; the fetcher has already asked for metadata where that helps */
    int64_t fetch_offset;      /* what was asked for */
    struct slice records;      /* n == 0: none */
    int64_t high_watermark;    /* -1 unknown */
    int64_t last_stable_offset;
    int64_t log_start_offset;
    const struct fetch_aborted *aborted; /* sorted by first_offset */
    int32_t aborted_n;
    bool diverging;            /* our history is not the log's: truncated to diverging_end in diverging_epoch */
    int32_t diverging_epoch;
    int64_t diverging_end;
};

/* Embedded in its owner. Between fetcher_add and fetcher_remove the fetcher calls on_fetched; after a call that
 * brought records, an error or divergence the partition rests until fetcher_resume says where to go on. */
struct fetch_part {
    struct topic_meta *topic; /* watched by the owner */
    int32_t partition;
    int64_t offset;           /* next to fetch; set by the owner before add and by resume */
    int32_t last_epoch;       /* leader epoch of the last batch read, -1 unknown */
    void (*on_fetched)(struct fetch_part *p, const struct fetched *f);

    /* The fetcher's own. */
    struct list_node node;    /* on one list of its link, or of the fetcher while it has none */
    struct part_topic *topic_parts;
    struct fetch_link *link;
    enum { FETCH_OUT, FETCH_RESTING, FETCH_WANTED, FETCH_ASKED } state;
    bool in_session;          /* the broker's session holds it */
    bool behind;              /* the log has, or may have, more than we have read */
    int64_t session_offset;   /* what the session believes */
    int32_t session_epoch, session_last_epoch;
    int32_t session_max_bytes;
    int32_t batch_bytes;      /* the size of the batches seen: partition_max_bytes is never less */
    int64_t high_watermark;
    int32_t preferred;        /* preferred read replica, -1 none */
    int64_t preferred_until_ms;
    int64_t not_before_ms;    /* back-off after an error */
    uint32_t errors;          /* in a row */
};

/* isolation_level: 0 read_uncommitted, 1 read_committed. Sizes and waits come from the cluster's config. */
struct fetcher *fetcher_new(struct cluster *cl, struct pool *pool, int8_t isolation_level);
void fetcher_free(struct fetcher **f); /* no partition may be on it */

void fetcher_add(struct fetcher *f, struct fetch_part *p);
/* No callback after this; harmless when not added. */
void fetcher_remove(struct fetcher *f, struct fetch_part *p);
/* Go on at p->offset (which the owner has set), not before `after_ms` from now. */
void fetcher_resume(struct fetcher *f, struct fetch_part *p, int64_t after_ms);

struct fetcher_counts {
    uint64_t requests, responses, bytes, session_restarts, errors;
};
const struct fetcher_counts *fetcher_counts(const struct fetcher *f);

#endif
