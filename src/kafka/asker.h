/* asker.h -- asks leaders about many partitions in few requests: offsets, and last sequences.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Questions put in one turn of the loop and going to one broker travel together (ListOffsets, DescribeProducers).
 * The leader epoch that we know goes along, so that a broker which is not the leader of that epoch says so. One loop.
 */
#ifndef KAFKA_ASKER_H
#define KAFKA_ASKER_H

#include "kafka/cluster.h"

struct asker;

enum ask_kind { ASK_OFFSET, ASK_PRODUCER };

#define ASK_LATEST (-1)
#define ASK_EARLIEST (-2)

/* Embedded in whoever asks. */
struct ask {
    struct list_node node;
    enum ask_kind kind;
    struct topic_meta *topic; /* watched by the owner */
    int32_t partition;
    int64_t timestamp;   /* ASK_OFFSET: ASK_LATEST, ASK_EARLIEST, or a time in ms */
    int32_t replica_id;  /* -1; or -2, which sees beyond the high watermark (rules 5.5 A) */
    int64_t producer_id; /* ASK_PRODUCER */
    void (*done)(struct ask *a); /* once, from the loop */

    /* The answer. */
    enum err error;       /* E_OK: an answer came, see kerr. E_VERSION: the broker does not know the API */
    int32_t kerr;
    char text[CALL_TEXT_MAX];
    int32_t leader_epoch; /* that went along */
    int64_t offset;       /* -1: none */
    bool found;           /* the broker remembers the producer id */
    int32_t last_sequence;
    int16_t producer_epoch;

    struct ask_batch *batch; /* while on its way */
};

struct asker *asker_new(struct cluster *cl);
void asker_free(struct asker **a); /* open questions are forgotten without an answer */

void asker_put(struct asker *a, struct ask *q);
/* No done after this; harmless when nothing is open. */
void asker_cancel(struct ask *q);
void asker_init_ask(struct ask *q);

#endif
