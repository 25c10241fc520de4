/* txn.h -- one transactional producer: its identity, the partitions in its transaction, and how that ends.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Speaks to the coordinator only; batches are written by others (producer.h, topic_writer.h), who stamp them with the
 * identity that txn_who gives at that time. Under protocol 1 (transaction.version below 2) a partition is entered with
 * AddPartitionsToTxn before its first batch; under protocol 2 the batch enters it, and every transaction has an
 * epoch of its own. What may pass is tried again for ever; everything else is told to the owner, who aborts. After an
 * abort the epoch is another one, so that older batches are refused; it is itself refused, like a commit, when somebody
 * else has taken the transactional id, or the coordinator has ended a transaction that was open for too long. One loop.
 */
#ifndef KAFKA_TXN_H
#define KAFKA_TXN_H

#include "kafka/cluster.h"

struct txn;

struct txn_who {
    struct str id; /* transactional id */
    int32_t timeout_ms;
    int64_t producer_id;
    int16_t epoch;
    bool implicit; /* protocol 2 */
};

enum txn_part_state { TXN_PART_IN, TXN_PART_WAIT, TXN_PART_REFUSED };

struct txn_ops {
    void (*on_entered)(void *arg); /* partitions that were asked for are in, or refused */
    void (*on_ended)(void *arg, bool committed); /* of txn_commit, or of txn_abort: a new one may begin */
    /* It cannot be committed: the owner must abort. After txn_commit or txn_abort: the identity is no longer ours, by
     * another process or by the coordinator's clock, and what became of the transaction must be read. */
    void (*on_broken)(void *arg, int32_t kerr, const char *text);
    /* Something that may pass; told so that it can be shown. */
    void (*on_waiting)(void *arg, const char *code, const char *text);
    void *arg;
};

/* who is copied, its id too. The identity must be fresh from InitProducerId. */
struct txn *txn_new(struct cluster *cl, const struct txn_who *who, const struct txn_ops *ops);
/* Leaves an open transaction as it is: the next owner of the id, or the coordinator's clock, aborts it. */
void txn_free(struct txn **t);

const struct txn_who *txn_who(const struct txn *t);

/* Whether batches may go to the partition; asks for it if it is not in yet. kerr: why it was refused. */
enum txn_part_state txn_enter(struct txn *t, struct str topic, int32_t partition, int32_t *kerr);

/* Only when a batch was acknowledged in it, and none is under way. */
void txn_commit(struct txn *t);
/* Not after txn_commit. */
void txn_abort(struct txn *t);

/* Fills q for InitProducerId of a transactional id. producer_id -1: take it over, whoever has it. */
void txn_fill_init(struct kafka_init_producer_id_request *q, const struct txn_who *who);

#endif
