/* fetch_link.h -- the inside of the fetcher: one broker, its session, and the partitions read from it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shared by fetcher.c and fetch_*.c only. Where a partition stands (fetch_put decides):
 *
 *    state     due   in session   list
 *    WANTED    yes   either       wanted    to be named in the next request
 *    ASKED           yes          asked     the session knows all that is to know: costs nothing
 *    RESTING         yes          leaving   to be forgotten by the next request
 *    WANTED    no    yes          leaving
 *    RESTING         no           resting
 *    WANTED    no    no           delayed   until not_before_ms
 *    any, without a leader        fetcher's homeless
 *
 *   I-1  one request is in flight per link, so the session's epoch is never in doubt
 *   I-2  an answer counts for a partition only if the partition still wants what the session was told
 *   I-3  a request costs what has changed, not what there is (but for the first of a session)
 */
#ifndef KAFKA_FETCH_LINK_H
#define KAFKA_FETCH_LINK_H

#include "base/limits.h"
#include "kafka/fetcher.h"
#include "kafka/part_table.h"
#include "loop/backoff.h"

#define FETCH_BYTES_LEAST   (128 * KiB) /* asked of a broker that has little to give */
#define FETCH_PART_LEAST    (32 * KiB)
#define FETCH_SLOW_US       20000 /* full answers that take longer come from far: ask for more */
#define FETCH_SLOW_RUN      8     /* so many of them in a row */
#define FETCH_RESUME_MS     50    /* longest wait of a poll while a partition may resume */
#define FETCH_RESUME_FOR_MS 2000  /* a partition that rests longer will not resume at once */
#define FETCH_ERRORS_TOLD   3     /* in a row, of those that may pass by themselves */
#define FETCH_HOMELESS_MS   1000  /* how often metadata is asked for on behalf of such */

/* Still in the broker's session, but no longer ours. */
struct fetch_forgotten {
    char *topic;
    struct uuid id;
    int32_t partition;
};

struct fetch_link {
    struct fetcher *f;
    int32_t broker;
    UT_hash_handle hh;
    struct link *link;

    struct list_node wanted, asked, leaving, resting, delayed;
    size_t parts_n;
    size_t behind_n;       /* partitions that have more to give */
    int64_t session_bytes; /* sum of session_max_bytes in the session */
    struct fetch_forgotten *forgotten;
    size_t forgotten_n, forgotten_room;

    int32_t session_id;
    int32_t session_epoch; /* of the next request; 0: a new session */
    uint32_t session_no;   /* counts sessions, so that a stale answer is known */
    bool by_id;            /* this session names topics by id (version 13 and up) */

    struct call call;
    struct kafka_fetch_request request;
    struct arena arena;
    size_t ask_bytes;
    int64_t fastest_us; /* of the last full_n full answers */
    uint32_t full_n;
    int64_t rested_ms; /* when a partition last began to rest */
    int64_t not_before_ms;
    int64_t due_ms; /* when the first of those that back off may go on */
    struct backoff backoff;
    struct pool_waiter waiter;
    struct task step;
    struct timer timer;
};

struct fetcher {
    struct loop *loop;
    struct cluster *cluster;
    const struct client_config *config;
    struct pool *pool;
    int8_t isolation_level;
    struct fetch_link *links; /* by broker id */
    struct part_table table;
    struct list_node homeless;
    struct task settle; /* gives homes */
    struct timer homeless_timer;
    struct timer near_timer; /* ends the time of preferred replicas */
    size_t near_n;           /* partitions read from one */
    struct cluster_listener listener;
    struct fetch_aborted *aborted; /* sorted copy for the callback */
    size_t aborted_room;
    bool min_bytes_told;
    struct fetcher_counts counts;
};

/* The most that one answer may be asked to bring. */
static inline size_t fetch_bytes_most(const struct fetcher *f)
{
    return MAX(MIN((size_t)MAX(f->config->fetch_max_bytes, 0), pool_max(f->pool) / 4), 1);
}

/* fetch_link.c */
struct fetch_link *fetch_link_get(struct fetcher *f, int32_t broker);
void fetch_link_free(struct fetch_link *k);
/* Puts the partition, which is on no list, where its state belongs. */
void fetch_put(struct fetch_link *k, struct fetch_part *p);
/* Takes it off the link; what the session still holds is noted as forgotten. */
void fetch_take_off(struct fetch_part *p);
void fetch_set_behind(struct fetch_part *p, bool behind);
void fetch_link_wake(struct fetch_link *k);
void fetch_link_back_off(struct fetch_link *k);

/* fetch_session.c: nothing of the session holds any more; the next request opens another. */
void fetch_session_lost(struct fetch_link *k);
/* Fills k->request, to be sent at this version. */
void fetch_session_build(struct fetch_link *k, int version);
/* The request is on its way: the session will know. */
void fetch_session_sent(struct fetch_link *k);

/* fetch_answer.c */
void fetch_answer(struct fetch_link *k);
/* Tells the owner and lets the partition rest. */
void fetch_tell_error(struct fetcher *f, struct fetch_part *p, int32_t kerr);

/* fetcher.c: gives the partition, which is on no link, the link of the broker to be read from. */
void fetcher_place(struct fetcher *f, struct fetch_part *p);
/* Takes it off its link first, if it must be read from another broker now. */
void fetcher_move(struct fetcher *f, struct fetch_part *p);
/* Reads from this broker for a time; -1: from the leader. */
void fetcher_set_near(struct fetcher *f, struct fetch_part *p, int32_t broker);

#endif
