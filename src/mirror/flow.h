/* flow.h -- one flow's data plane on one worker: its clusters, its relays, its positions.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A flow S->T has one struct flow on each worker; the partitions are spread over them. The director
 * (director.h, control thread) decides which partitions a worker carries; it talks to flows through
 * messages (flow_port.h). Everything here runs on the worker's thread.
 */
#ifndef MIRROR_FLOW_H
#define MIRROR_FLOW_H

#include "base/pool.h"
#include "kafka/cluster.h"
#include "kafka/txn.h"
#include "loop/loop.h"
#include "mirror/flow_config.h"
#include "mirror/relay.h"
#include "mirror/topic_limits.h"
#include "mirror/view.h"

struct flow;

/* What the control side found out before data may move. Strings are copied. */
struct flow_identity {
    int64_t producer_id;     /* -1: batches carry none, or that of a transaction */
    int64_t id_memory_ms;    /* how long the target remembers a producer id after its last record's time */
    struct txn_who txn;      /* id null: no transactions */
    int64_t writer_id;       /* of what writes positions and pairs; -1: it asks for its own */
    struct str state_topic;  /* mm2-heliostat.<S>.internal */
    struct str positions_topic;
    struct str connector;    /* first member of position keys */
    const struct lease *lease; /* nothing is sent once it is over; NULL: never. Outlives the flow */
};

/* Brokers of one side that owe an answer. */
#define FLOW_SILENT_MAX 8
struct flow_silent {
    struct broker_silence at[FLOW_SILENT_MAX];
    size_t n;
};

struct flow_counts {
    uint64_t records, bytes, relayed_batches, decoded_batches, dropped_batches, retries;
    uint64_t foreign_records; /* target offsets between ours that others took */
    uint64_t skipped_records, coalesced_batches, retimed_records, filtered_records;
    uint64_t repeated_records, lost_records;
};

/* config and pool must outlive it. */
struct flow *flow_new(struct loop *l, struct pool *pool, const struct flow_config *config,
                      const struct flow_identity *id);

/* Everything stops at once. Call flow_drain before for a clean end. */
void flow_free(struct flow **f);

/* Who is asked what topics of the target take; the answers come by flow_take_limits. */
void flow_on_limits_ask(struct flow *f, void (*ask)(void *arg, struct str target_topic, int64_t raise_to), void *arg);
void flow_take_limits(struct flow *f, struct str target_topic, const struct topic_limits *limits);

void flow_adopt(struct flow *f, struct str topic, struct str target_topic, int32_t partition,
                const struct relay_start *start);
void flow_release(struct flow *f, struct str topic, int32_t partition);

/* Asks the source soon what topics it has: one was deleted and made anew. */
void flow_refresh_source(struct flow *f);

/* Stops fetching, waits for acknowledgements, stores positions, then calls done once from the loop; after
 * limit_ms at the latest, with stored = false when something could not be stored. */
void flow_drain(struct flow *f, int64_t limit_ms, void (*done)(void *arg, bool stored), void *arg);

/* Answers the order when its partition is here. */
struct order;
void flow_answer(struct flow *f, struct order *o);

/* Answers all questions of it. */
struct translation;
void flow_translate(struct flow *f, struct translation *t);
/* How long the target remembers a producer id. */
void flow_take_memory(struct flow *f, int64_t id_memory_ms);

/* A report for the view: an array of partitions in the arena, and totals. */
struct flow_report {
    struct arena arena;
    struct view_partition *partitions;
    int32_t partitions_n;
    struct flow_counts counts;
    struct view_loss *losses; /* all known so far, oldest first, bounded */
    int32_t losses_n;
    int64_t positions_stored_ms;
    bool shut_out;      /* a successor does not let us store anything any more */
    struct fault fault; /* of positions or state topic; code "" when none */
    uint64_t offset_syncs;      /* put so far */
    struct fault syncs_fault;   /* of their topic */
    struct flow_silent silent[2]; /* source, target */
    uint64_t pool_used, pool_peak, pool_max;
};
/* The caller owns the report: flow_report_free. */
struct flow_report *flow_report(struct flow *f);
void flow_report_free(struct flow_report **r);

#endif
