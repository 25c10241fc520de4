/* producer.h -- writes whole batches to partitions of one cluster, in order, without reading them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Many partitions per request, one batch of a partition per request, up to five requests in flight per connection;
 * payload is written by reference from its block. Order is kept per partition through every retry: what fails in
 * a way that may pass (kerr classes AGAIN, REFRESH, UNSURE, a lost connection) is sent again, the identical bytes
 * in the same order, one batch in flight until one succeeded (the broker answers a duplicate with its first offset),
 * unless the owner would rather be asked (careful, asks).
 * The first batch of a producer id on a partition travels alone. Everything else stops the partition and is told to
 * the owner, who decides. Throttle times are obeyed. acks=all always. One loop.
 */
#ifndef KAFKA_PRODUCER_H
#define KAFKA_PRODUCER_H

#include "kafka/cluster.h"
#include "loop/lease.h"
#include "wire/batch.h"

#define PRODUCE_TEXT_MAX 160

struct producer;
struct produce_part;
struct produce_request;

struct produced {
    int64_t base_offset; /* -1: written, but the broker does not remember where */
    int64_t log_append_time_ms;
    int64_t log_start_offset;
};

enum outgoing_made { OUTGOING_RELAYED, OUTGOING_DECODED, OUTGOING_COALESCED };

/* A batch on its way. The owner makes it (producer_batch_new), the producer owns it from producer_send until
 * on_acked or until producer_take_back. */
struct outgoing {
    struct list_node node;
    unsigned char header[BATCH_HEADER_SIZE]; /* as it goes on the wire */
    struct slice payload;  /* what follows the header: of a fetch block, or of a block of its own */
    enum outgoing_made made; /* for the owner's counts */
    int32_t merged;        /* source batches that it was made of, when OUTGOING_COALESCED */
    int64_t source_base;   /* first and last source offset that this batch covers, for the owner */
    int64_t source_last;
    int32_t count;         /* records */
    int32_t leader_epoch;  /* of the source batch */
    int64_t timestamp_ms;  /* max timestamp, for lag */
    void *note;            /* the owner's (e.g. runs of the record path); freed with mem_free */
    uint32_t tries;
    bool unsure;           /* an earlier try may be in the log */
    bool careful;          /* the broker may forget the producer id after it (old records): it is alone in flight,
                              so is the next one, and when it may have been written the owner is told */
    bool asks;             /* when it may have been written the owner is told: it can find out, and a broker that has
                              forgotten the producer id meanwhile would take it a second time */

    /* The producer's own. */
    struct produce_part *part; /* NULL once it is forgotten: its request alone keeps it */
    struct produce_request *request; /* that carries it at the moment */
    int32_t slot;              /* there */
    bool done;                 /* acknowledged ahead of an older one, which is told first */
    struct produced result;
};

struct produce_part {
    struct topic_meta *topic; /* watched by the owner */
    int32_t partition;
    /* Callbacks may send, resume and take back; they must not detach. */
    /* In order, once per batch; the producer frees o afterwards. */
    void (*on_acked)(struct produce_part *p, struct outgoing *o, const struct produced *r);
    /* o, the oldest, was refused (or is unsure and careful). The partition stands still with its queue
     * intact, in order, o first, nothing in flight, until producer_resume, or the owner takes the queue back. */
    void (*on_refused)(struct produce_part *p, struct outgoing *o, int32_t kerr, struct str message);
    /* o waits because of something that may pass; told so that it can be shown. Cleared by the next ack. */
    void (*on_waiting)(struct produce_part *p, struct outgoing *o, int32_t kerr, enum err e, const char *text);

    /* The producer's own. */
    struct list_node node; /* on a list of the link, or of the producer while there is no leader */
    struct part_topic *topic_parts;
    struct produce_link *link;
    struct list_node queue;     /* struct outgoing: not yet sent (again) */
    struct list_node in_flight; /* oldest first */
    size_t queued_bytes;
    uint32_t window;     /* 1 until the first ack on this leader, then up to 5 */
    uint32_t in_flight_n;       /* sent and not answered */
    uint32_t connection;        /* for which the window holds */
    int64_t producer_id;        /* of the last batch sent */
    int16_t producer_epoch;
    bool careful;               /* the last batch sent was */
    int64_t timestamp_ms;       /* of its records, the latest */
    bool attached, stopped;
    bool failing;               /* one has failed; the answers to the later ones are awaited */
    bool refused;               /* and in a way that is for the owner to decide */
    int64_t not_before_ms;
    int64_t failing_since_ms;   /* 0: the last try went well */
    uint32_t failures;
    int32_t failed_kerr;
    enum err failed_err;
    char failed_text[PRODUCE_TEXT_MAX];
};

struct producer *producer_new(struct cluster *cl);
void producer_free(struct producer **p);

/* All batches belong to transactions of this id; the owner stamps them so. implicit: of protocol 2 (txn.h). The id must
 * outlive the producer. */
void producer_set_transaction(struct producer *p, struct str id, bool implicit);

/* Half of the time for which the broker surely remembers a producer id, counted from the time of the last record: past it
 * a batch of unknown outcome is not sent again but told, and the next is alone in flight. 0: for ever. */
void producer_set_id_memory(struct producer *p, int64_t ms);

/* Nothing is sent while the lease is over; what is on its way stays so. It must outlive the producer. */
void producer_set_lease(struct producer *p, const struct lease *lease);

void producer_attach(struct producer *p, struct produce_part *part);
/* Queue and in-flight must be empty or taken back. */
void producer_detach(struct producer *p, struct produce_part *part);

struct outgoing *outgoing_new(void);
void outgoing_free(struct outgoing **o);

void producer_send(struct producer *p, struct produce_part *part, struct outgoing *o);
void producer_resume(struct producer *p, struct produce_part *part);
/* Empties the queue of a partition, oldest first, onto *list; the caller owns them. What is in flight is forgotten
 * (its ack will not be told) and comes too, marked unsure: for a hard stop. The partition is no longer stopped. */
void producer_take_back(struct producer *p, struct produce_part *part, struct list_node *list);
/* Bytes queued or in flight for the partition. */
size_t producer_pending(const struct produce_part *part);
/* Of these, what is in no request yet. */
size_t producer_unsent(const struct produce_part *part);

struct producer_counts {
    uint64_t requests, batches, records, bytes, retries, refusals;
};
const struct producer_counts *producer_counts(const struct producer *p);

#endif
