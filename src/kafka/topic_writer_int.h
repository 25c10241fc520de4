/* topic_writer_int.h -- the inside of the topic writer, shared by topic_writer*.c.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   I-1  `tickets` is sorted by first ticket and holds every record that is not acknowledged
 *   I-2  the map knows the records that are not being sent, by (partition of the put, key)
 */
#ifndef KAFKA_TOPIC_WRITER_INT_H
#define KAFKA_TOPIC_WRITER_INT_H

#include "base/map.h"
#include "kafka/topic_writer.h"
#include "loop/backoff.h"
#include "wire/batch_builder.h"

struct pending {
    struct list_node node;   /* unplaced, or of its partition: queue or sending */
    struct list_node ticket; /* tickets */
    UT_hash_handle hh;
    bool mapped;
    uint64_t first;    /* ticket of its first put */
    int32_t partition; /* of the put; -1: by the key */
    int64_t timestamp_ms;
    struct str value; /* own memory, or null */
    bool has_key;
    size_t key_n;
    char key[]; /* the partition (map key), then the record's key */
};

struct writer_part {
    struct topic_writer *w;
    int32_t partition;
    struct list_node queue, sending;
    struct batch_builder builder;
    uint32_t identity; /* for which next_sequence counts */
    int32_t next_sequence;
    int64_t producer_id; /* for which it counts, in transactions */
    int16_t producer_epoch;
    struct call call;
    struct kafka_produce_request request;
    struct kafka_produce_request_topic topic_data;
    struct kafka_produce_request_partition partition_data;
    struct timer retry;
    struct backoff backoff;
};

struct topic_writer {
    struct loop *loop;
    struct cluster *cluster;
    struct topic_meta *topic;
    struct topic_writer_ops ops;
    struct cluster_listener listener;
    struct fault fault;
    struct task step;
    struct timer look; /* for the topic, or again for the producer id */

    struct pending *map;
    struct list_node unplaced, tickets;
    size_t pending_n, keep_max; /* on tickets; below keep_max a newer value of a key replaces none */
    uint64_t last_ticket;
    struct writer_part **parts; /* by number; NULL: never written */
    int32_t parts_n;

    enum { ID_NONE, ID_ASKED, ID_HELD, ID_WITHOUT } id_state;
    uint32_t identity; /* counts producer ids */
    int64_t producer_id;
    int16_t producer_epoch;
    bool given;    /* the id is the caller's: no other is ever asked for */
    bool shut_out; /* somebody has written with a later epoch of it */
    struct call id_call;
    struct kafka_init_producer_id_request id_request;
    struct backoff id_backoff;
    struct txn *txn; /* NULL: none */
};

/* topic_writer.c */
struct str topic_writer_key(const struct pending *r); /* null: none */
void topic_writer_unmap(struct topic_writer *w, struct pending *r);
void topic_writer_drop(struct topic_writer *w, struct pending *r);
void topic_writer_set_fault(struct topic_writer *w, const char *code, const char *text);
void topic_writer_clear_fault(struct topic_writer *w);

/* topic_writer_part.c */
struct writer_part *topic_writer_part_get(struct topic_writer *w, int32_t partition);
void topic_writer_part_free(struct topic_writer *w, struct writer_part *wp);
/* Sends the next batch, or the last one again, if it may. */
void topic_writer_part_step(struct writer_part *wp);

#endif
