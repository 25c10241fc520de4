/* topic_writer.h -- writes keyed records to a small (internal) topic: positions, state, heartbeats.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Records of one partition go out in order, in batches, acks=all, retried for ever with back-off. An idempotent
 * producer id (InitProducerId) of its own keeps retries from doubling them. A newer value of a key that has not been
 * sent yet replaces the older (compacted topics). Partition of a record: murmur2 of the key, as Java's default
 * partitioner, or a fixed one. One loop.
 */
#ifndef KAFKA_TOPIC_WRITER_H
#define KAFKA_TOPIC_WRITER_H

#include "kafka/txn.h"

struct topic_writer;

/* idle_fn (may be NULL) is called from the loop whenever all that was put is acknowledged. fault_fn (may be NULL)
 * whenever the fault changes. */
struct topic_writer_ops {
    void (*on_idle)(void *arg);
    void (*on_fault)(void *arg, const struct fault *f);
    /* Only with topic_writer_set_txn: the transaction must be aborted (kerr says why). */
    void (*on_refused)(void *arg, int32_t kerr);
    void *arg;
};

struct topic_writer *topic_writer_new(struct cluster *cl, struct str topic, const struct topic_writer_ops *ops);
/* Writes under a producer id that the caller was given, from the given epoch on; where the broker's memory of it differs
 * the epoch is raised. Once a later epoch of somebody else's is met it is shut out: it writes nothing any more. */
struct topic_writer *topic_writer_new_as(struct cluster *cl, struct str topic, const struct topic_writer_ops *ops,
                                         int64_t producer_id, int16_t epoch);
void topic_writer_free(struct topic_writer **w);
/* As long as no more than this many records wait, an older value of a key goes out too. Default: none. */
void topic_writer_keep_older(struct topic_writer *w, size_t most);

/* From here on everything is written in transactions of t, which must outlive the writer. Records that are put go out at
 * once; the owner commits when the writer is idle, and lets it forget when it aborts. topic_writer_wake: t has changed. */
void topic_writer_set_txn(struct topic_writer *w, struct txn *t);
void topic_writer_wake(struct topic_writer *w);
void topic_writer_forget(struct topic_writer *w);

/* Copies key and value. partition -1: by murmur2 of the key. timestamp -1: the loop's wall clock. value null: tombstone.
 * ticket grows by one per put. */
uint64_t topic_writer_put(struct topic_writer *w, int32_t partition, struct str key, struct str value, int64_t timestamp_ms);
/* All puts up to and including this ticket are acknowledged. */
uint64_t topic_writer_acked(const struct topic_writer *w);
bool topic_writer_is_idle(const struct topic_writer *w);
bool topic_writer_is_shut_out(const struct topic_writer *w);
const struct fault *topic_writer_fault(const struct topic_writer *w);
struct str topic_writer_topic(const struct topic_writer *w);

#endif
