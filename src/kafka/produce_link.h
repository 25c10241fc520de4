/* produce_link.h -- the inside of the producer: one broker, and the requests on their way to it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shared by producer.c and produce_*.c only. A batch's way:
 *
 *    queue --pack--> in flight --acked--> told, freed
 *      ^                 |
 *      +-- all of the ---+ one failed: the later ones are awaited, then all go back
 *          partition's
 *
 *   I-1  a partition has at most one batch in a request; the broker would drop the other in silence
 *   I-2  batches of a partition are sent, and their acknowledgements told, in the order of producer_send
 *   I-3  while one has failed and others are unanswered, nothing new is sent
 *   I-4  a partition changes its link only with nothing in flight
 */
#ifndef KAFKA_PRODUCE_LINK_H
#define KAFKA_PRODUCE_LINK_H

#include "kafka/part_table.h"
#include "kafka/producer.h"

#define PRODUCE_REQUESTS_MAX       5   /* in flight; as many batches as the broker remembers */
#define PRODUCE_BATCHES_MAX        330 /* three pieces each, of the 1024 that one write takes */
#define PRODUCE_BYTES_MAX          (16 * MiB) /* the most of max.request.size that is used */
#define PRODUCE_VERSION_NAMES    12 /* the last that names topics */
#define PRODUCE_VERSION_EXPLICIT 11 /* the last of transaction protocol 1 */
#define PRODUCE_GRACE_MS           1000       /* how late a broker may say that time is up */
#define PRODUCE_GONE_MS            30000      /* a topic unknown for so long is told */
#define PRODUCE_SERVER_ERRORS_TOLD 10         /* unnamed failures of the broker, in a row */
#define PRODUCE_HOMELESS_MS        1000
#define PRODUCE_LEASE_MS           100        /* until a lease that was over is looked at again */

struct produce_request {
    struct produce_link *k;
    struct call call;
    bool busy;
    struct kafka_produce_request body;
    struct arena arena;
    struct outgoing *batches[PRODUCE_BATCHES_MAX]; /* NULL: answered */
    int32_t n;
};

struct produce_link {
    struct producer *p;
    int32_t broker;
    UT_hash_handle hh;
    struct link *link;
    uint32_t connection;      /* counts connections; windows hold for one */
    struct list_node ready;   /* may send now */
    struct list_node delayed; /* until not_before_ms */
    int64_t due_ms;           /* when the first of them may */
    size_t parts_n;
    struct produce_request requests[PRODUCE_REQUESTS_MAX];
    struct task step;
    struct timer timer;
};

struct producer {
    struct loop *loop;
    struct cluster *cluster;
    const struct client_config *config;
    struct produce_link *links; /* by broker id */
    struct part_table table;
    struct list_node homeless; /* have something to send and no leader */
    struct timer homeless_timer;
    struct cluster_listener listener;
    struct producer_counts counts;
    struct str transactional_id; /* null: none */
    int16_t version_max;         /* of requests, -1: no cap */
    int64_t id_memory_ms;
    const struct lease *lease; /* NULL: none */
};

/* What became of a batch. */
struct produce_failure {
    int32_t kerr; /* 0: no answer */
    enum err error;
    struct str text;
};

static inline size_t outgoing_size(const struct outgoing *o)
{
    return BATCH_HEADER_SIZE + o->payload.n;
}

/* produce_part.c: puts the partition where it may be sent from, if it may. */
void produce_part_place(struct producer *p, struct produce_part *part);
/* The oldest of the queue goes into a request. */
struct outgoing *produce_part_take(struct produce_part *part);
void produce_part_acked(struct producer *p, struct outgoing *o, const struct produced *result);
void produce_part_failed(struct producer *p, struct outgoing *o, const struct produce_failure *f);
/* The owner must decide about the oldest. */
void produce_part_refuse(struct producer *p, struct produce_part *part);
void produce_part_tell_waiting(struct produce_part *part, const struct produce_failure *f);

/* produce_link.c */
struct produce_link *produce_link_get(struct producer *p, int32_t broker);
void produce_link_free(struct produce_link *k);
void produce_link_add(struct produce_link *k, struct produce_part *part);
void produce_link_remove(struct produce_part *part);

/* produce_pack.c: the next request; false when nothing is ready. */
bool produce_pack(struct produce_link *k, struct produce_request *r);
/* It could not be sent: everything back, in order. */
void produce_unpack(struct produce_request *r, const struct produce_failure *f);

/* produce_answer.c */
void produce_answer(struct produce_request *r);

#endif
