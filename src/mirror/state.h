/* state.h -- where a partition stands: the pair of source and target that belong together.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The pair is the base of exactly once without transactions (architecture.md, "after a crash"): all records
 * before `source` are in the target before `target`, and `sequence` records had then been written with the
 * producer id at `epoch`. It is stored now and then in the state topic; the target's real end tells the rest.
 * Plain values; any thread.
 */
#ifndef MIRROR_STATE_H
#define MIRROR_STATE_H

#include "base/buf.h"
#include "base/err.h"
#include "mirror/state_map.h"
#include "wire/codec.h"

struct pair {
    int64_t source;       /* next source offset */
    int64_t target;       /* target offset after the last mirrored record */
    int64_t sequence;     /* of the next record, 0 <= sequence < 2^31 */
    int64_t producer_id;
    int16_t epoch;
    int32_t leader_epoch; /* source leader epoch of the last batch, -1 unknown */
    int64_t passed;       /* where `source` has been before it went back, 0: never; positions up to there are ours */
    struct uuid topic_id; /* of the source topic: another one means that it was made anew; zero unknown */
    int64_t reserved;     /* at most once: source offsets below may have been sent and are not sent again; 0: none */
    bool transactional;   /* written in the transaction that wrote the records before it */
};

#define SEQUENCE_MOD (INT64_C(1) << 31)

/* What a stored record of the state topic says. */
enum state_kind {
    STATE_PAIR,
    STATE_PRODUCER,
    STATE_WRITER,
    STATE_PART,
    STATE_LOSS,
    STATE_TRANSACTIONS,
    STATE_OTHER,
};
struct state_record {
    enum state_kind kind;
    struct str topic; /* points into the caller's arena */
    int32_t partition;
    struct pair pair;
    struct str copy;         /* STATE_PAIR: the topic of the target; null: not told */
    uint32_t filter;         /* likewise: what leaves records out; 0: nothing */
    struct offset_part part; /* STATE_PART; STATE_PAIR with has_rest: the map's rest */
    bool has_rest;
    struct state_loss loss; /* STATE_LOSS */
    bool removed;          /* a tombstone */
    struct str origin;     /* STATE_PRODUCER, STATE_TRANSACTIONS */
    struct str cluster_id; /* of the target, when the id was taken */
    int64_t producer_id;   /* STATE_WRITER too */
    int64_t count;         /* STATE_TRANSACTIONS: how many transactional ids may be in use */
};

/* Keys and values of the state topic, one JSON object each, so that people can read them:
 *   {"kind":"pair","topic":"t","partition":0}
 *   {"source":10,"target":10,"sequence":10,"producer_id":7,"epoch":0,"leader_epoch":3,
 *    "passed":12 (only after it went back), "topic_id":"32 hexadecimal digits"}
 *   and, where they say something, "reserved":20 and "transactional":true; "copy":"A.t" and "filter":1 (state_add_copy)
 *   {"kind":"producer","origin":"A"}        {"producer_id":7,"cluster_id":"..."}
 *   {"kind":"transactions","origin":"A"}    {"count":2}
 *   {"kind":"writer","producer_id":8}       {"instance":"host-1"}
 * A writer is a producer id under which positions and pairs are written; removed once it is shut out. */
bool state_id_is_zero(const struct uuid *id);

void state_format_pair_key(struct buf *out, struct str topic, int32_t partition);
void state_format_pair(struct buf *out, const struct pair *p);
void state_format_producer_key(struct buf *out, struct str origin);
void state_format_producer(struct buf *out, int64_t producer_id, struct str cluster_id);
void state_format_transactions_key(struct buf *out, struct str origin);
void state_format_transactions(struct buf *out, int64_t count);

void state_format_writer_key(struct buf *out, int64_t producer_id);
void state_format_writer(struct buf *out, struct str instance);
/* The key of the record that shuts a writer out of a partition; its value is null. */
void state_format_fence_key(struct buf *out, int64_t producer_id);

/* E_MALFORMED for what is not ours; unknown members are ignored. value null: removed. */
enum err state_parse(struct str key, struct str value, struct arena *a,
                     struct state_record *out) WARN_UNUSED;

#endif
