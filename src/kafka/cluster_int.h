/* cluster_int.h -- the inside of a cluster, shared by cluster*.c and link.c.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   cluster.c        the object, what it tells, faults, brokers
 *   cluster_boot.c   a connection for metadata: known brokers in turn, the bootstrap list
 *   cluster_meta.c   when to ask for metadata, and the request
 *   cluster_merge.c  what an answer changes
 *   cluster_topics.c watched topics, leaders learned elsewhere
 *   cluster_route.c  calls by route, the waiting line
 *   cluster_coord.c  coordinators of groups and transactional ids
 */
#ifndef KAFKA_CLUSTER_INT_H
#define KAFKA_CLUSTER_INT_H

#include "kafka/bootstrap.h"
#include "kafka/cluster.h"
#include "loop/backoff.h"

#define CLUSTER_TOPICS_PER_REQUEST 2000
#define CLUSTER_TOPICS_MAX         1000000
#define CLUSTER_BROKERS_MAX        10000
#define CLUSTER_COORDINATORS_MAX   100000
#define CLUSTER_UNKNOWN            (-1)

enum link_state { LINK_OFF, LINK_OPENING, LINK_RESTING, LINK_READY };

struct link {
    struct cluster *cluster;
    struct loop *loop;
    struct list_node node; /* cluster->links */
    int32_t broker_id;
    const char *role;
    link_fn *fn;
    void *arg;
    enum link_state state;
    bool wanted;
    bool dozing;              /* closed for being idle; the next use wakes it */
    bool down_due, down_once; /* LINK_DOWN has still to be told */
    struct conn *conn;        /* while opening or ready */
    struct backoff backoff;
    uint32_t attempt;
    int64_t up_ms;
    int64_t silent_since_ms; /* the last connection ended without the answer that was due, or none came up; 0: no */
    struct timer timer; /* rest, or idle */
    struct task task;
    enum err error;
    char text[CALL_TEXT_MAX];
};

/* A watched topic: what the users see, and when to ask for it. */
struct topic {
    struct topic_meta meta;
    bool due;     /* belongs into the next request */
    bool asked;   /* is in the request that is on its way */
    bool trouble; /* the last answer had an error that may pass, or a partition without leader */
};

enum seat_state { SEAT_EMPTY, SEAT_RESTING, SEAT_NAMING, SEAT_OPENING, SEAT_READY, SEAT_ASKING, SEAT_HALTED };

/* The connection on which metadata is asked, and the search for one. */
struct seat {
    enum seat_state state;
    struct conn *conn;
    int32_t broker_id;   /* -1: a bootstrap address */
    bool bootstrap;      /* this round goes through the bootstrap list */
    bool named;          /* its canonical names are there, if they are asked for */
    struct bootstrap names;
    size_t tried, count; /* of this round */
    uint32_t rounds;     /* failed ones in a row */
    size_t first;        /* where the round began in its list */
    int64_t ready_ms;
    struct backoff backoff;
    struct timer timer;
    struct timer trigger; /* set while metadata is wanted and has not come */
};

struct coordinator;

struct cluster {
    struct loop *loop;
    const struct client_config *config;
    char *name;
    char *id; /* NULL: unknown */
    struct fault fault;
    bool answering; /* a broker answered the last time one was asked */

    struct broker_meta *brokers; /* by rising id */
    size_t brokers_n;
    int32_t controller;

    struct topic **topics; /* by name */
    size_t topics_n, topics_room;
    struct list_node listeners;
    bool changed; /* listeners have still to be told */

    struct seat seat;
    struct task meta_task; /* seat and metadata */
    struct timer meta_timer;
    struct call meta_call;
    struct kafka_metadata_request meta_request;
    struct arena meta_arena; /* of the request */
    bool refresh;            /* somebody asked for fresh metadata */
    struct backoff gap;      /* between requests while nothing changes */
    int64_t not_before_ms;   /* the gap's end */
    int64_t full_due_ms;     /* metadata.max.age */

    struct list_node links;
    struct list_node waits; /* struct route_wait */
    struct task route_task;
    struct timer route_timer;
    struct link **call_links; /* for calls by route, one per broker, as needed */
    size_t call_links_n;
    size_t any_at;                    /* place in brokers for ROUTE_ANY */
    struct coordinator *coordinators; /* hash table */
};

/* cluster.c */
bool cluster_address(const struct cluster *cl, struct conn_address *to); /* by to->broker_id */
void cluster_add_link(struct cluster *cl, struct link *k);
/* Adds a broker or moves it; the strings are copied. True when that changed anything. */
bool cluster_put_broker(struct cluster *cl, const struct broker_meta *b);
void cluster_keep_brokers(struct cluster *cl, int32_t *ids,
                          size_t n);   /* forgets all others; sorts ids */
void cluster_tell(struct cluster *cl); /* listeners, from the loop, when something changed */

/* cluster_boot.c */
void cluster_seat_init(struct cluster *cl);
void cluster_seat_fini(struct cluster *cl);
void cluster_seat_step(struct cluster *cl);
/* The seat's connection is of no more use; the next candidate is tried. */
void cluster_seat_failed(struct cluster *cl, enum err e, const char *text);
/* Metadata is wanted: known brokers have metadata.recovery.rebootstrap.trigger.ms from the first time on. */
void cluster_seat_want(struct cluster *cl);
/* A metadata answer was good. */
void cluster_seat_served(struct cluster *cl);
/* False: metadata.recovery.strategy does not allow it (KIP-899, KIP-1102). */
bool cluster_seat_rebootstrap(struct cluster *cl);
void cluster_seat_halt(struct cluster *cl);

/* cluster_meta.c */
void cluster_meta_init(struct cluster *cl);
void cluster_meta_fini(struct cluster *cl);
void cluster_meta_step(struct cluster *cl);

/* cluster_topics.c */
/* NULL: not watched; *at is then where it would stand. */
struct topic *cluster_find_topic(const struct cluster *cl, struct str name, size_t *at);
void cluster_topic_free(struct topic *t);

/* cluster_merge.c */
/* Sets cl->changed when the answer told something new. */
void cluster_merge(struct cluster *cl, const struct kafka_metadata_response *r);

/* cluster_route.c */
void cluster_route_init(struct cluster *cl);
void cluster_route_fini(struct cluster *cl);
void cluster_route_wake(struct cluster *cl);
/* Ends every waiting call of that coordinator. */
void cluster_route_refuse(struct cluster *cl, enum route_kind kind, struct str key, int32_t kerr,
                          const char *text);

/* cluster_coord.c: the broker id, or CLUSTER_UNKNOWN while it is being found out. */
int32_t cluster_coordinator(struct cluster *cl, enum route_kind kind, struct str key);
void cluster_coordinator_forget(struct cluster *cl, enum route_kind kind, struct str key);
void cluster_coordinators_fini(struct cluster *cl);

#endif
