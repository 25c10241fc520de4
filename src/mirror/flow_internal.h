/* flow_internal.h -- what flow.c and relay*.c share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_FLOW_INTERNAL_H
#define MIRROR_FLOW_INTERNAL_H

#include "kafka/asker.h"
#include "kafka/fetcher.h"
#include "kafka/producer.h"
#include "kafka/topic_writer.h"
#include "kafka/txn.h"
#include "loop/backoff.h"
#include "mirror/flow.h"
#include "mirror/offset_syncs.h"
#include "mirror/policy.h"
#include "mirror/relay_map.h"
#include "mirror/transforms.h"
#include "wire/batch.h"

#include <uthash.h>

/* Where a released partition stood: its topic may come back, and is the same one then as long as its id is. */
struct kept_pair {
    UT_hash_handle hh;
    struct pair pair, committed;
    bool in_txn, has_committed; /* the pair stands in a transaction that is not committed yet */
    struct offset_map *map; /* NULL: none */
    int64_t losses;
    bool registered, anew;
    size_t key_n;
    char key[];
};

struct flow {
    struct loop *loop;
    struct pool *pool;
    const struct flow_config *config;
    int64_t producer_id;
    int64_t careful_age_ms; /* older than this, the target may forget our producer id at any moment (rules 2.6); -1: all are */
    struct str connector;
    struct arena names; /* what the identity pointed to */
    struct cluster *source, *target;
    struct fetcher *fetcher;
    struct producer *producer;
    struct asker *ask_source, *ask_target;
    struct fetcher *tail; /* reads the ends of copies; made when first needed, like its pool */
    struct pool *tail_pool;
    struct comparer *comparer; /* made when first needed */
    struct topic_writer *positions, *state;
    struct cluster *syncs_cluster;  /* of the next; NULL likewise */
    struct topic_writer *syncs;     /* offset syncs; NULL: not told */
    uint64_t syncs_put;
    struct topic_writer *notes; /* parts of maps and losses, never in a transaction; else it is `state` */
    struct flow_txn *txn; /* NULL: batches are written outside of transactions */
    struct transforms *transforms; /* NULL: none */
    struct policy *policy;         /* with these: names of copies before they rename them */
    struct record_path *record_path; /* made at the first batch that needs it */
    struct gather *gather;           /* likewise */
    void (*ask_limits)(void *arg, struct str target_topic, int64_t raise_to);
    void *ask_limits_arg;
    struct cluster_listener source_changed, target_changed;
    struct relay **relays;
    size_t relays_n, relays_room;
    struct flow_silent silent[2]; /* source, target: at the last tick */
    struct kept_pair *kept;
    struct timer tick, flush_state, flush_positions;
    struct list_node dirty;            /* relays whose pair changed since it was last put */
    struct list_node waiting;          /* relays that wait for a topic, a leader or a retry */
    struct list_node storing, covered; /* relays that wait until a pair is acknowledged: to go on, to put the position */
    size_t maps_memory, maps_memory_max; /* of all relays' offset maps */
    struct flow_counts gone;  /* counts of relays that are no more */
    struct view_loss losses[64];
    int32_t losses_n;
    struct arena loss_names;
    int64_t positions_stored_ms;

    bool draining;
    struct timer drain_limit;
    struct task drain_check;
    int drain_stage;
    void (*drain_done)(void *arg, bool stored);
    void *drain_arg;
};

enum relay_state {
    RELAY_IDLE,
    RELAY_WAITING,     /* for its topics and leaders, or after a failure */
    RELAY_ASKING,      /* where both ends stand */
    RELAY_REGISTERING, /* its first pair is on the way to the state topic */
    RELAY_COPYING,
    RELAY_HALTED,
    RELAY_DRAINING,
};

/* Steps of RELAY_ASKING, in order. */
enum relay_question { ASKING_END, ASKING_PRODUCER, ASKING_LOG_END, ASKING_END_AGAIN, ASKING_SOURCE };

struct relay {
    struct flow *flow;
    struct str topic, target_topic;
    int32_t partition;
    enum relay_state state;
    struct task step;
    struct list_node dirty_node, waiting_node, storing_node, covered_node, held_node, joined_node;
    struct topic_meta *source_meta, *target_meta;
    struct fetch_part fetch;
    struct produce_part produce;
    struct fault fault;
    struct backoff backoff;
    int64_t not_before_ms;
    bool awaits_metadata; /* nothing but the topics is missing */

    /* Where it stands. */
    struct pair pair;       /* acknowledged */
    int64_t walked;         /* next source offset to look at */
    int64_t next_sequence;  /* of the next batch to send, not reduced yet by what is in flight */
    int64_t skip;           /* records from `walked` on that are in the target already */
    int unsettled;          /* times that these were not on all replicas yet, or not all told */
    int64_t jump;           /* a stored position beyond which another writer has copied; -1 none */
    bool anew; /* the source topic is another one: what is in the target tells nothing of it */
    bool has_pair, from_earliest, dirty, position_changed, registered;
    uint64_t state_ticket, positions_ticket, covered_ticket;
    int64_t covered_to; /* the position to be put once the pair of covered_ticket is acknowledged */

    /* What its delivery mode needs (relay_send.c). */
    struct list_node held; /* struct outgoing that may not leave yet */
    size_t held_bytes;
    bool reserving;        /* at most once: the pair that lets them go is on its way */
    bool passing;          /* at most once: what may have been sent is being looked at, and not sent */
    int64_t pass_written;  /* of it, how many records are in the target */
    int64_t lost_from, lost_n;
    bool changing;         /* the pair is another mode's, or its chain ends, and records beyond it are counted: nothing is sent before */
    bool refused_surely;   /* the oldest batch is not in the target, nor any behind it */
    struct pair put, committed; /* transactions: as in the open one, and as in the last that was committed */
    bool has_committed, put_registers, stored; /* `put` is what REGISTERING waits for; it is committed */
    int64_t doubt;         /* without sequences: records that may be in the target beyond the pair, at most */
    int64_t txn_producer_id, txn_sequence;
    int16_t txn_epoch;

    uint32_t order_refusals; /* in a row, without an ack between */
    bool chain_ends;         /* the source has moved: what may be on its way still must not count for what comes */
    int64_t losses; /* the number of its next loss */

    /* Which target offset each source offset became; NULL until there is something to tell. */
    struct offset_map *map;
    enum offset_reason map_before; /* what lies before it */
    bool skip_unseen; /* others have written among the records that are skipped: their places are not known */

    struct sync_cadence cadence;
    struct sync_run *open_runs; /* acknowledged in the transaction that is open; freed with the relay */
    int32_t open_runs_n, open_runs_room;

    /* Questions. */
    enum relay_question question;
    struct ask ask;
    int64_t target_end, target_log_end, still_end; /* still_end: of the round before, -1 none */
    int32_t rounds;       /* of questions, because the end moved */
    int64_t asked_id; /* the producer id that the target was asked about */
    bool producer_found;
    int32_t last_sequence, asked_sequence; /* now, and when it was asked before */
    int16_t last_epoch_seen;
    struct fetch_part tail; /* the end of the copy, where the broker does not tell (relay_tail.c) */
    bool tail_known;
    int64_t tail_records;
    struct comparison *comparison; /* under way, else NULL (relay_compare.c) */
    int64_t compared_from;
    bool compared; /* what another mirror wrote is known */
    int64_t out_of_range; /* the offset that was refused; -1: none */
    int64_t source_earliest;
    int64_t gap_to; /* where the source goes on behind a gap that was found; -1: none */
    struct uuid target_id; /* of the copy, when its end was asked for */
    int32_t target_epoch;  /* likewise: of its leader */
    bool ask_again;        /* either end is another one by now: once nothing is on its way */

    /* What is seen. */
    int64_t high_watermark, last_stable, log_start;
    int64_t acked_timestamp_ms;
    struct flow_counts counts;
    uint64_t empty_answers;
    size_t answer_bytes; /* of the last fetch answer that brought any */
    bool resting;        /* has fetched enough until something of it is written */
    /* What the target takes (relay_limits.c). */
    struct topic_limits limits;
    int64_t limits_ms;    /* when they were told (loop time); 0: never, or out of date */
    bool limits_asked;
    int64_t size_max;     /* of batches that the record path makes, and beyond which it makes them; 0: no limit known */
    int64_t oversize_at;  /* the record that is too large, once all before it are acknowledged; -1: none */
    size_t oversize_bytes;
    int64_t retime_before; /* source offset: records before it get times that the target takes; -1: none */

    /* Transforms; NULL: none touches its records. */
    struct transforms_plan *transforms;
    uint32_t filter_id; /* of what leaves records out; 0: nothing */
    bool filter_changed; /* records beyond the pair were written with another filter, so they cannot be counted */
    bool coalescing;     /* the last answers brought many small batches */
    uint32_t answers_without; /* in a row, while coalescing */
};

/* Bytes of a partition on their way, in the queue and in flight, beyond which it is not fetched. */
#define RELAY_QUEUE_USUAL (512 * KiB)
#define RELAY_QUEUE_MOST  (8 * MiB) /* of a target that is far */

/* relay_data.c */
void relay_send(struct relay *r, struct outgoing *o);
struct batch_stamp relay_stamp(const struct relay *r);
/* The pair moves over records that are in the target already. */
void relay_skipped(struct relay *r, int64_t records, int64_t next, int32_t leader_epoch);
void relay_fetch_on(struct relay *r); /* lets a resting partition be fetched, if it may */
void relay_on_fetched(struct fetch_part *p, const struct fetched *f);
void relay_on_acked(struct produce_part *p, struct outgoing *o, const struct produced *r);

/* relay_refusal.c */
void relay_on_fetch_error(struct relay *r, const struct fetched *f);
void relay_on_refused(struct produce_part *p, struct outgoing *o, int32_t kerr, struct str message);
void relay_on_waiting(struct produce_part *p, struct outgoing *o, int32_t kerr, enum err e, const char *text);

/* relay_moved.c */
bool relay_see_source_id(struct relay *r); /* false: it halts */
void relay_see_source(struct relay *r);
void relay_see_target(struct relay *r);
void relay_ask_again(struct relay *r); /* if that is due */

/* relay_limits.c */
void relay_ask_limits(struct relay *r, int64_t raise_to);
void relay_take_limits(struct relay *r, const struct topic_limits *limits);
/* The size above which a batch must be split; SIZE_MAX: none known. */
size_t relay_size_max(struct relay *r);
/* The refused batch is o. */
void relay_refused_size(struct relay *r, const struct outgoing *o, int32_t kerr);
/* The batch was refused for its times; false: it stays so. */
bool relay_refused_time(struct relay *r, const struct outgoing *o);
/* A record alone is larger than the target takes: the policy, as soon as all before it are acknowledged. */
void relay_oversize(struct relay *r, int64_t at, size_t bytes);
void relay_oversize_check(struct relay *r);
/* Whether the batch has times that the target would refuse. */
bool relay_must_retime(const struct relay *r, const struct batch *b);

/* relay_send.c */
size_t relay_pending(const struct relay *r); /* bytes on their way or held */
void relay_hand_over(struct relay *r, struct outgoing *o);
void relay_handed_over(struct relay *r); /* all of one fetch answer */
size_t relay_send_held(struct relay *r, const struct txn_who *who); /* in a transaction; gives the bytes */
void relay_see_reserved(struct relay *r);
void relay_take_back(struct relay *r, struct list_node *taken);
/* The oldest batch was refused: whether it, or one behind it, may be in the target all the same. */
void relay_note_refusal(struct relay *r, const struct outgoing *o, enum kerr_class class);
void relay_pass(struct relay *r, const struct batch *b);
void relay_passed(struct relay *r);
void relay_roll_back(struct relay *r);

/* relay_ask.c */
void relay_ask_start(struct relay *r);
void relay_jump(struct relay *r);
void relay_ask_source(struct relay *r); /* the target is known: the source, if need be, and the conclusion */
void relay_await_replicas(struct relay *r); /* looks again when the copy's end may be on all of them */

/* relay_count.c */
/* Another offset of the source than the pair says, from here on; the pair must be stored first. */
void relay_move_source(struct relay *r, int64_t offset);
/* Sets skip: how many records from the pair on are in the target already. */
void relay_count_skip(struct relay *r);
/* The flow's own pair for a partition that has none. */
void relay_first_pair(struct relay *r, int64_t source);
/* What was counted means what the delivery mode says. */
void relay_apply_mode(struct relay *r);

/* relay_compare.c */
/* Finds out how much of the source from position on is in the target by another mirror's hand, if that is not known yet;
 * false: it is. Otherwise relay_ask_source follows. */
bool relay_compare(struct relay *r, int64_t position);
void relay_compare_stop(struct relay *r);

/* relay_tail.c */
bool relay_tail_start(struct relay *r); /* false: there is no need */
void relay_tail_stop(struct relay *r);

/* relay.c */
void relay_goto(struct relay *r, enum relay_state to);
void relay_wake(struct relay *r);
void relay_see_metadata(struct relay *r); /* either cluster's metadata has changed */
void relay_begin(struct relay *r); /* everything is known and stored: copy */
void relay_fail(struct relay *r, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void relay_halt(struct relay *r, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void relay_well(struct relay *r);
void relay_restart(struct relay *r); /* takes back what is on its way and finds out anew where both ends stand */
void relay_rest(struct relay *r, int64_t wait_ms); /* the same after some time */
void relay_mark_dirty(struct relay *r);
void relay_name(const struct relay *r, char *text, size_t room);

/* flow_ledger.c */
/* For good: log, status and state topic. records: how many were there, -1 not known. */
void flow_note_loss(struct flow *f, struct relay *r, int64_t from, int64_t to, int64_t records, const char *cause);
/* So many records from `from` on are in the target and will be written once more; put before the pair that says so. */
void flow_note_repeat(struct flow *f, struct relay *r, int64_t from, int64_t records);

/* flow.c */
void flow_kept_free(struct flow *f, struct kept_pair *k);
void flow_drain_wake(struct flow *f);

#endif
