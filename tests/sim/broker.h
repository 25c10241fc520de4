/* broker.h -- simulated Kafka clusters: brokers, topics, logs with the rules that a mirror meets.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All brokers of a cluster stand over one log per partition; what a follower has not got yet is what lies above
 * the high watermark. Rules cite kafka-relay-rules ("rules") by section. The world's events; no loop.
 */
#ifndef SIM_BROKER_H
#define SIM_BROKER_H

#include "base/arena.h"
#include "net_sim.h"
#include "wire/api.h"
#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/kerr.h"

#define SIM_BROKERS    3
#define SIM_TOPICS     32  /* of a feed */
#define SIM_TOPICS_ALL 256 /* of a cluster */
#define SIM_TXNS       32
#define SIM_CONFIGS    24
#define SIM_PARTS      16
#define SIM_PIDS       256
#define SIM_REMEMBERED 5 /* batches per producer id (rules 2.5) */
#define SIM_SESSIONS   64
#define SIM_WISHES     128
#define SIM_MESSAGE_MAX 1048588 /* max.message.bytes */

/* --- logs --- */

struct sim_batch {
    int64_t base, last;
    int32_t epoch;
    char *bytes;
    size_t n;
    bool gone; /* removed by compaction: its offsets hold nothing */
};

struct sim_seen {
    int32_t first, last;
    int64_t base, timestamp;
};

struct sim_pid {
    int64_t id;
    int16_t epoch;
    int64_t timestamp;
    int64_t txn_first; /* of its open transaction, -1: none */
    struct sim_seen seen[SIM_REMEMBERED]; /* newest last */
    int seen_n;
};

struct sim_aborted {
    int64_t producer_id, first, marker;
};

struct sim_part {
    struct sim_topic *topic;
    int32_t number;
    int32_t leader, epoch;         /* leader -1: none at the moment */
    int32_t old_leader, old_epoch; /* what other brokers say until news_us */
    int64_t news_us;
    struct sim_batch *batches;
    size_t batches_n, batches_room;
    int64_t start, end, high_watermark;
    int64_t follower_mark; /* high watermark of those who follow: it trails */
    uint32_t cuts; /* times that the tail was lost */
    int64_t cut_at; /* where, the last time below the high watermark; -1: never */
    int32_t cut_epoch; /* the first epoch after it */
    struct sim_pid pids[SIM_PIDS];
    int pids_n;
    struct sim_aborted *aborted;
    size_t aborted_n, aborted_room;
    struct sim_event replicate, depart;
    bool departs_asked; /* the next question for its end, not the next write, is what sets it off */
    int32_t departs_to; /* who leads after the next write; the leader: its connections end; 0: nothing happens */
    int64_t not_enough_until_us; /* fewer replicas in sync than needed */
    int64_t behind_until_us;     /* they are in sync still, and copy nothing */
};

struct sim_topic {
    struct sim_cluster *cluster;
    char name[128];
    struct uuid id;
    struct sim_part parts[SIM_PARTS];
    int32_t parts_n;
    bool internal, log_append_time;
    bool keep_tail; /* a new leader has all that the old one had */
    int64_t absent_until_us; /* deleted; made anew then, or by who asks for it */
    uint32_t births;
    int64_t known_us; /* other brokers than the controller know it from then on */
    int32_t max_message_bytes, segment_bytes, min_isr; /* 0: does not matter */
    int64_t before_max_ms, after_max_ms; /* of its records' times; 0: as the release has it */
    bool compact, compact_only;
    struct {
        char name[48], value[64];
    } configs[SIM_CONFIGS]; /* of its own */
    int configs_n;
};

/* What a coordinator knows of a transactional id. */
struct sim_txn {
    char name[96]; /* "": free */
    int64_t producer_id;
    int16_t epoch, last_epoch; /* last: the one that the last end belonged to */
    enum { TXN_EMPTY, TXN_OPEN, TXN_COMMITTED, TXN_ABORTED } state;
    struct sim_part *parts[SIM_PARTS];
    int parts_n;
};

/* --- brokers --- */

/* What a fetch session wants of one partition. */
struct sim_wish {
    struct sim_topic *topic; /* NULL: there was none, by its name or its id */
    char name[128];
    struct uuid id; /* that the topic had when it was named */
    int32_t partition, epoch, last_fetched_epoch, max_bytes;
    int64_t offset;
    int64_t told_hw, told_start; /* what the last answer said */
    int64_t next_hw, next_start; /* what this one says */
};

struct sim_session {
    int32_t id, epoch; /* expected next */
    bool by_id;        /* topics by id: version 13 and later */
    int64_t used_us;
    struct sim_wish wishes[SIM_WISHES];
    int wishes_n;
};

struct sim_broker {
    struct sim_cluster *cluster;
    int32_t id;
    struct sim_listener listener;
    char host[32];
    bool up;
    int64_t stuck_until_us; /* answers nothing before */
    bool stuck_writes;      /* or only no produce: its disk hangs, what is in memory it tells */
    int64_t slow_us; /* most extra time of one request */
    int32_t throttle_ms;
    struct sim_session *sessions; /* SIM_SESSIONS */
    int32_t last_session;
    struct sim_event boot;
};

struct sim_cluster {
    const char *name;
    char id[24];
    struct sim_broker brokers[SIM_BROKERS];
    int32_t brokers_n, controller;
    struct sim_topic *topics[SIM_TOPICS_ALL];
    int32_t topics_n;
    int64_t next_pid;
    int32_t newness; /* 0..2: how new the versions are that it offers */
    struct list_node waiting; /* struct sim_request */
    int64_t replicate_us; /* most time until the high watermark follows */
    int32_t corrupt_any;     /* percent of answers with one wrong byte anywhere */
    int32_t corrupt_payload; /* percent of fetch answers with one wrong byte where the checksum sees it */
    int32_t forgets;         /* percent of batches before which producers are forgotten for their age */
    int32_t flaps;           /* percent of writes for which there are too few replicas in sync */
    int32_t metadata_lies;   /* percent of metadata answers that contradict themselves */
    bool secretive; /* what it remembers of producers is not for us: that needs Read (rules 5.5) */
    bool plain; /* nothing happens by luck, and clients may do wrong: tests/conform */
    struct sim_txn txns[SIM_TXNS];
    uint64_t requests, corrupted, announced; /* bytes of answers whose length was made wrong */
};

/* One request, from its last byte until its answer. The connection takes the next one after that (rules 5.3). */
struct sim_link;
struct sim_request {
    struct list_node node; /* on cluster.waiting, once it waits */
    struct sim_broker *broker;
    struct sim_link *link; /* NULL: the connection has gone */
    struct frame_request head;
    const struct api *api;
    struct arena arena;
    void *msg;
    struct sim_event wake;
    bool (*step)(struct sim_request *q); /* true: answered, or nothing to answer */
    int64_t until_us;                    /* a wait ends here */
    int stage;
    void *note; /* in the arena */
};

struct sim_cluster *broker_cluster_new(const char *name, int sub, int32_t brokers, int64_t latency_us);
struct sim_topic *broker_topic_new(struct sim_cluster *c, struct str name, int32_t parts);
struct sim_topic *broker_topic_find(struct sim_cluster *c, struct str name);
bool broker_topic_is_there(const struct sim_topic *t);
/* Deletes it, and makes it anew after that time, or as soon as somebody asks for it: empty, with another id. */
void broker_topic_anew(struct sim_topic *t, int64_t after_us);
bool broker_topic_name_ok(struct str name);
void broker_topic_grow(struct sim_topic *t, int32_t parts);

/* Faults. */
void broker_stop(struct sim_broker *b, int64_t for_us); /* all its connections end; back after that time */
void broker_move_leader(struct sim_part *p, int32_t to);

/* For the files of the broker. */
void broker_poke(struct sim_cluster *c); /* waiting requests look again */
void broker_answer(struct sim_request *q, void *response);
void broker_hang_up(struct sim_request *q); /* instead of an answer */
void broker_wait(struct sim_request *q, int64_t for_us);
struct sim_topic *broker_topic_by_id(struct sim_cluster *c, const struct uuid *id);
/* KERR_NONE, or why this broker does not serve the partition as its leader (rules 4.5, 4.6). */
int32_t broker_leader_error(struct sim_broker *b, struct sim_topic *t, int32_t partition, int32_t epoch,
                            struct sim_part **out);

bool broker_api_versions(struct sim_request *q);
bool broker_metadata(struct sim_request *q);
bool broker_create_topics(struct sim_request *q);
bool broker_create_partitions(struct sim_request *q);
bool broker_describe_configs(struct sim_request *q);
bool broker_describe_acls(struct sim_request *q);
bool broker_find_coordinator(struct sim_request *q);
bool broker_join_group(struct sim_request *q);
bool broker_sync_group(struct sim_request *q);
bool broker_heartbeat(struct sim_request *q);
bool broker_leave_group(struct sim_request *q);
bool broker_list_offsets(struct sim_request *q);
bool broker_offset_for_leader_epoch(struct sim_request *q);
bool broker_delete_topics(struct sim_request *q);
bool broker_delete_records(struct sim_request *q);
bool broker_offset_commit(struct sim_request *q);
bool broker_offset_fetch(struct sim_request *q);
bool broker_add_partitions_to_txn(struct sim_request *q);
bool broker_end_txn(struct sim_request *q);
bool broker_init_producer_id(struct sim_request *q);
bool broker_describe_producers(struct sim_request *q);
bool broker_fetch(struct sim_request *q);
bool broker_produce(struct sim_request *q);

/* What happens in so many of a hundred cases; never in a plain cluster. */
bool broker_luck(const struct sim_cluster *c, int64_t percent);
/* Why the coordinator takes no offsets from there, else KERR_NONE (broker_group.c). */
int32_t broker_group_error(struct sim_cluster *c, struct str group, int32_t generation, struct str member,
                           struct str instance);
/* Whether a transactional batch may be written there (broker_txn.c). */
int32_t broker_txn_error(struct sim_request *q, struct sim_part *p, const struct batch *b);

/* --- broker_check.c --- */

struct record_reader;
/* Of a whole records field: one batch of today's format. */
int32_t broker_check_form(struct str bytes, int version, struct batch *b);
/* All that is looked at before sequences; b is what broker_check_form has found. *wrong gets the records that a broker
 * names in its answer. */
struct sim_wrong_records {
    int32_t n, at[8];
};
int32_t broker_check_batch(const struct sim_topic *t, struct str bytes, const struct batch *b,
                           struct sim_wrong_records *wrong);
/* Sets times and their type as the leader of the topic does. */
void broker_stamp_time(const struct sim_topic *t, char *bytes, size_t n);
/* Its records; area is to be freed by buf_fini in any case. */
bool broker_unpack(struct str bytes, const struct batch *b, struct buf *area, struct record_reader *out);

/* --- broker_log.c --- */

void log_init(struct sim_part *p, struct sim_topic *t, int32_t number);
/* Appends as a leader: assigns offset and epoch. The bytes were checked. */
int64_t log_append(struct sim_part *p, struct str batch);
void log_abort(struct sim_part *p, int64_t producer_id, int64_t first, int64_t marker);
int64_t log_last_stable(const struct sim_part *p);
/* Index of the first batch that holds offset or comes after it; batches_n: none. */
size_t log_find(const struct sim_part *p, int64_t offset);
/* End offset of the epoch, and the largest epoch not above it (rules 4.5). */
int64_t log_epoch_end(const struct sim_part *p, int32_t epoch, int32_t *found);
/* The tail from offset on is lost; never what lies below the high watermark. */
void log_truncate(struct sim_part *p, int64_t offset);
/* The same, below the high watermark too: what nobody should lose. */
void log_lose(struct sim_part *p, int64_t offset);
/* Nothing was ever written to it. */
void log_clear(struct sim_part *p);
/* What a broker knows of producers after its restart: one batch each (rules 2.5). */
void log_forget(struct sim_part *p, int remembered);
struct sim_pid *log_pid(struct sim_part *p, int64_t id, bool make);
/* The leader takes the last batches of its producers for longer than they were: by more than what may be on its way, or it
 * would take the next but one for the next. */
void log_mistake(struct sim_part *p);
/* Producers whose last batch is a day old or older are forgotten (rules 2.6). */
void log_expire(struct sim_part *p);
void log_replicated(struct sim_part *p); /* the high watermark is at the end now */

#endif
