/* cluster.h -- one Kafka cluster as seen from one loop: brokers, topics, leaders, and calls by route.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Bootstraps from the list, keeps metadata of the watched topics fresh (metadata.max.age.ms, or on demand with
 * a small gap), follows leader changes (leader epochs never go backwards), re-bootstraps when every known broker
 * is gone or the cluster asks for it (KIP-899, KIP-1102), and keeps trying for ever with back-off: an
 * unreachable cluster is a fault, never an end. One loop.
 */
#ifndef KAFKA_CLUSTER_H
#define KAFKA_CLUSTER_H

#include "base/fault.h"
#include "kafka/call.h"
#include "kafka/client_config.h"
#include "kafka/link.h"
#include "wire/kerr.h"

struct cluster;

struct broker_meta {
    int32_t id;
    struct str host; /* the cluster's memory */
    int32_t port;
    struct str rack;
};

struct part_meta {
    int32_t leader; /* broker id, -1: none */
    int32_t leader_epoch;
    int32_t error;           /* kerr of the partition */
    const int32_t *replicas; /* and the in-sync ones, for fetch from follower */
    int32_t replicas_n;
    const int32_t *isr;
    int32_t isr_n;
    int64_t doubt_ms; /* since then answers tell a lower epoch, 0: none does */
};

/* Stable address from cluster_watch to the last cluster_unwatch. Contents change at metadata updates. */
struct topic_meta {
    struct str name;
    struct uuid id; /* zero: the broker has none */
    int32_t error;  /* kerr: 0, UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED… */
    bool known;     /* an answer of some kind has come */
    bool internal;
    struct part_meta *parts;
    int32_t parts_n;
    uint32_t refs;
};

/* Told after every metadata update that changed anything, and when the cluster comes up; from the loop. The
 * cluster must not be freed there. */
struct cluster_listener {
    struct list_node node;
    void (*changed)(struct cluster_listener *ls);
};

/* config must outlive it. name is the alias, for faults and the log. Starts to connect at once. */
struct cluster *cluster_new(struct loop *l, const struct client_config *config, struct str name);
void cluster_free(struct cluster **cl);

struct loop *cluster_loop(struct cluster *cl);
const struct client_config *cluster_config(const struct cluster *cl);
struct str cluster_name(const struct cluster *cl);
struct str cluster_id(const struct cluster *cl); /* null until known */
bool cluster_is_up(const struct cluster *cl);    /* metadata is there and a broker answers */
const struct fault *cluster_fault(const struct cluster *cl);

size_t cluster_brokers(const struct cluster *cl, const struct broker_meta **out);
const struct broker_meta *cluster_find_broker(const struct cluster *cl, int32_t id);
int32_t cluster_controller(const struct cluster *cl); /* -1 unknown */
/* For /v1/status: "up", "slow" (it owes an answer), "connecting", "down", "idle" (nobody needs it), and the round trip
 * in us or -1. */
const char *cluster_broker_state(const struct cluster *cl, int32_t id, int64_t *rtt_us);

/* Brokers that owe an answer, into out[room]; gives their number. */
struct broker_silence {
    int32_t id;
    int64_t ms; /* conn_silent_ms, the longest of its connections */
};
size_t cluster_silent(const struct cluster *cl, struct broker_silence *out, size_t room);

struct topic_meta *cluster_watch(struct cluster *cl, struct str topic);
void cluster_unwatch(struct cluster *cl, struct topic_meta **t);
void cluster_listen(struct cluster *cl, struct cluster_listener *ls);
void cluster_unlisten(struct cluster_listener *ls);
/* Ask for fresh metadata soon (at most one request at a time; a small gap that doubles while nothing changes). */
void cluster_refresh(struct cluster *cl);
/* A leader learned from a produce or fetch answer (KIP-951). host null: the broker is known already. */
void cluster_learn_leader(struct cluster *cl, struct topic_meta *t, int32_t partition,
                          int32_t leader, int32_t leader_epoch, struct str host, int32_t port);

enum route_kind { ROUTE_ANY, ROUTE_CONTROLLER, ROUTE_BROKER, ROUTE_LEADER, ROUTE_GROUP, ROUTE_TXN };
struct route {
    enum route_kind kind;
    int32_t broker;           /* ROUTE_BROKER */
    struct topic_meta *topic; /* ROUTE_LEADER */
    int32_t partition;
    struct str key; /* ROUTE_GROUP, ROUTE_TXN: group or transactional id; must stay until done */
};

/* Sends when a connection by that route is ready, over the cluster's own links. The deadline counts from now:
 * E_TIMEOUT with the cluster's fault as text when no broker could be reached. Answers with NOT_CONTROLLER,
 * NOT_COORDINATOR etc. are the caller's to see; it calls cluster_reroute and asks again. */
enum err cluster_call(struct cluster *cl, const struct route *r, struct call *c) WARN_UNUSED;
/* Of the brokers that are connected for calls: the least version of an API that both sides speak, and a finalized
 * feature (transaction.version); -1 unknown, which it is until a call has been made. */
int cluster_version(const struct cluster *cl, int api);
int cluster_feature(const struct cluster *cl, struct str name);
/* Forget the cached controller or coordinator of that route. */
void cluster_reroute(struct cluster *cl, const struct route *r);

#endif
