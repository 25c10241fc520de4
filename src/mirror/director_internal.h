/* director_internal.h -- what the director's files share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_DIRECTOR_INTERNAL_H
#define MIRROR_DIRECTOR_INTERNAL_H

#include "kafka/cluster.h"
#include "kafka/group.h"
#include "kafka/topic_reader.h"
#include "kafka/topic_writer.h"
#include "kafka/txn.h"
#include "loop/backoff.h"
#include "mirror/director.h"
#include "mirror/director_acls.h"
#include "mirror/director_gone.h"
#include "mirror/director_limits.h"
#include "mirror/director_prepare.h"
#include "mirror/plan.h"
#include "mirror/filter.h"
#include "mirror/policy.h"
#include "mirror/topics.h"
#include "mirror/transforms.h"

#include <uthash.h>

enum director_state {
    DIRECTOR_WAITING,   /* for the first answer of both clusters */
    DIRECTOR_PREPARING, /* internal topics (director_prepare.c) */
    DIRECTOR_JOINING,   /* until the flow is ours to run (director_own.c) */
    DIRECTOR_TAKING,    /* transactional ids are taken over (director_txn.c) */
    DIRECTOR_LOADING,   /* positions and pairs (director_load.c) */
    DIRECTOR_NAMING,    /* the producer id (director_load.c) */
    DIRECTOR_REFRESHING, /* topics (director_topics.c) */
    DIRECTOR_RUNNING,   /* until the next refresh */
    DIRECTOR_LOSING,    /* another process runs it now: until our flows are gone */
    DIRECTOR_REFUSED,
    DIRECTOR_STOPPING,
    DIRECTOR_STOPPED,
};

/* A stored beginning of one partition. */
struct stored {
    UT_hash_handle hh;
    struct relay_start start;
    struct offset_part *parts; /* of its offset map, in no order; their bytes are own memory */
    size_t parts_n, parts_room;
    struct offset_part rest;   /* from the pair, likewise */
    struct str copy;           /* the pair's topic of the target, likewise; null: not told */
    uint32_t filter;           /* what left records out */
    bool has_rest;
    size_t key_n;
    char key[]; /* "topic\0partition" */
};

/* A topic that is mirrored. */
struct mirrored {
    UT_hash_handle hh;
    struct str name, target_name; /* own memory */
    struct str route; /* where the records go, likewise: target_name, unless a transform renames it */
    struct uuid id;
    int32_t partitions; /* handed to workers: [0, partitions) */
    int32_t replicas;   /* of the copy; 0: not known */
    bool seen;          /* in this refresh */
    struct fault fault;
    struct fault config_fault; /* a config of the copy that cannot be made the source's */
};

#define DIRECTOR_WRITERS_MAX 4096

/* Steps of DIRECTOR_LOADING. */
enum load_step {
    LOAD_STATE,
    LOAD_FENCE,       /* shuts earlier writers out (director_fence.c) */
    LOAD_STATE_AGAIN, /* what they may have written in between */
    LOAD_POSITIONS,
};

enum refresh_step {
    REFRESH_LIST_SOURCE,
    REFRESH_INTERNAL, /* somebody may have deleted one, or altered it */
    REFRESH_LIST_TARGET,
    REFRESH_CONFIGS,
    REFRESH_CREATE,
    REFRESH_GROW,
    REFRESH_ROUTES, /* topics that transforms send records to */
    REFRESH_GONE,   /* topics deleted at the source (director_gone.c) */
    REFRESH_DONE,
};

/* Who makes the configs of copies those of their sources (director_configs.c). */
struct director_configs {
    enum configs_state {
        CONFIGS_OFF,
        CONFIGS_RESTING, /* until the next round, or the next try */
        CONFIGS_SOURCE,
        CONFIGS_TARGET,
        CONFIGS_ALTERING,
    } state;
    struct task step;
    struct timer timer;
    struct backoff backoff;
    struct call call;
    struct arena round; /* the names below */
    struct str *names;  /* topics of this round */
    size_t names_n, at; /* the portion under way begins at `at` */
    struct arena arena; /* of the portion: its topics and requests */
    struct config_topic *topics;
    size_t topics_n;
    struct filter *exclude;
    union {
        struct kafka_describe_configs_request describe;
        struct kafka_incremental_alter_configs_request alter;
    } request;
    uint64_t altered;    /* entries */
    int64_t differing;   /* entries of the round so far that are not the source's and stay so */
    int64_t differ;      /* of the last full round */
    int64_t last_ms;     /* wall clock of its end; 0: never */
    struct fault fault;
};

struct director {
    struct loop *loop;
    const struct flow_config *config;
    struct policy *policy;
    struct filter *topic_filter;
    struct transforms *transforms; /* made at the first look for topics; NULL: none */
    struct cluster *source, *target;
    struct cluster_listener source_changed, target_changed;
    enum director_state state;
    struct task step;
    struct timer retry;   /* after a failure */
    struct timer refresh; /* the next look for topics */
    struct timer stop_limit;
    struct backoff backoff;
    struct fault fault;
    int64_t later_since_ms; /* director_later: since when; 0: not */
    bool ready; /* the first plan was applied */
    int64_t last_refresh_ms;

    /* The call under way, with its request and all that it points to. */
    struct call call;
    struct arena arena; /* reset with each call */
    union {
        struct kafka_metadata_request metadata;
        struct kafka_create_topics_request create;
        struct kafka_create_partitions_request grow;
        struct kafka_delete_topics_request delete;
        struct kafka_describe_configs_request configs;
        struct kafka_init_producer_id_request init;
    } request;

    /* Fencing. */
    struct txn_who *txns; /* one per worker, and those of earlier runs with more workers */
    int32_t txns_n;       /* taken over so far */
    int64_t txns_stored;  /* how many may be in use, says the state topic */

    /* Preparing. */
    struct director_prepare prepare;

    /* Loading. */
    struct topic_reader *reader;
    enum load_step loading;
    bool load_lacks; /* the topic that is read: it is made first */
    struct stored *stored;
    int64_t stored_n;
    struct view_loss *losses; /* of earlier runs, oldest first; own strings */
    int32_t losses_n, losses_room;
    int64_t producer_id;
    int64_t id_memory_ms; /* how long the target remembers a producer id; 0: not asked yet */
    bool memory_due;      /* it is asked again with the next look for topics */
    struct topic_writer *namer; /* writes the producer record */
    struct str state_topic, heartbeats_topic;
    struct arena names;

    /* Whose turn it is. */
    struct str instance;
    struct group *group; /* NULL: no membership */
    uint32_t term;       /* of the group, in which this turn began */
    struct lease lease;  /* how long the group is believed; the workers look before they send */
    bool standby, leaving;
    int64_t *writers; /* registered by anybody, as the state topic says */
    size_t writers_n;
    int64_t *writer_ids; /* ours: one per port, then the director's own; -1: none given */
    struct fence *fence;

    /* Refreshing. */
    enum refresh_step refresh_step;
    struct arena plan_arena;
    struct plan *plan;
    void (*plan_only)(void *arg, const struct plan *p); /* set: told the plan instead of applying it */
    void *plan_arg;
    struct plan_internal internals[PLAN_INTERNAL_MAX]; /* with plan_only; in `names` */
    size_t internals_n;
    struct mirrored *topics;
    struct chosen *chosen; /* topics of which it was logged why (director_chosen.c) */
    int64_t partitions_n;

    /* Heartbeats. */
    struct topic_writer *heartbeat_writer;
    struct timer heartbeat;
    uint64_t heartbeats;

    struct director_limits limits;
    struct director_configs configs;
    struct director_acls acls;
    struct director_gone gone;
    struct checkpoints *checkpoints; /* NULL: not running, or not asked for */

    struct flow_port **ports;
    struct flow_report **reports;
    int32_t ports_n, ports_busy;
    bool all_stored;
    void (*stopped)(void *arg, bool stored);
    void *stopped_arg;
};

/* director.c */
void director_goto(struct director *d, enum director_state to);
void director_wake(struct director *d);
/* Notes the failure and tries the present state again after a back-off. */
void director_fail(struct director *d, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same for what a healthy cluster says while it starts: silent for the first seconds. */
void director_later(struct director *d, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* What a reader waits for, told as often as it tells it; silent for the first seconds too. arg: the director. */
void director_trouble(void *arg, const struct fault *f);
void director_well(struct director *d);
/* Sends d->call with d->request; done comes to `done`. A call that cannot start is a failure. */
void director_call(struct director *d, struct cluster *cl, int api, enum route_kind route,
                   void (*done)(struct call *c));
/* Takes a bad outcome of the call; true when there was one. */
bool director_call_failed(struct director *d, const char *what);
const char *director_shown_state(const struct director *d);

/* director_prepare.c */
void director_heartbeats_start(struct director *d);
void director_heartbeats_stop(struct director *d);

/* director_own.c */
void director_group_start(struct director *d);
void director_join(struct director *d);
bool director_is_standby(const struct director *d);
/* The flow is another process's: drops everything, then joins again. */
void director_lose(struct director *d, const char *why);
void director_lost(struct director *d); /* the last port is closed */
void director_shut_out(struct director *d);
/* False: there is nothing to leave. Else left comes, soon. */
bool director_leave(struct director *d, void (*left)(void *arg));

/* director_fence.c */
void director_fence(struct director *d);
void director_fence_end(struct director *d);
void director_writers_add(struct director *d, int64_t id);
void director_writers_remove(struct director *d, int64_t id);

/* director_txn.c */
void director_take_txns(struct director *d);
int64_t director_txns_wanted(const struct director *d); /* ids that must be taken over before positions are read */

void director_ask_memory(struct director *d); /* fills id_memory_ms, and tells the workers when it has changed */

/* director_load.c */
void director_load(struct director *d);
void director_name(struct director *d);
/* The stored beginning of a partition for this copy, taken out of the table; false: none. */
bool director_take_stored(struct director *d, struct str topic, int32_t partition, struct str copy, struct relay_start *out);
bool director_has_stored(const struct director *d, struct str topic); /* its first partition, not taken yet */
/* Each topic with a stored pair that is not taken yet, and its copy; a topic may come several times. */
void director_each_stored(struct director *d, void (*fn)(void *arg, struct str topic, struct str copy), void *arg);
void director_stored_free(struct director *d);

/* director_configs.c */
void director_configs_init(struct director_configs *c);
void director_configs_start(struct director *d); /* the first round begins now */
void director_configs_soon(struct director *d); /* the next round begins now instead of when it is due */
void director_configs_stop(struct director *d);
void director_configs_fini(struct director_configs *c);

/* director_checkpoints.c */
void director_checkpoints_start(struct director *d);
void director_checkpoints_stop(struct director *d);

/* director_chosen.c */
void director_tell_chosen(struct director *d); /* after all topics of the source were added to the plan */
void director_chosen_free(struct director *d);

/* director_topics.c */
/* A question for topics by their names, none yet, which makes none; in d->request and d->arena. */
struct kafka_metadata_request *director_ask_names(struct director *d, size_t most);
void director_refresh(struct director *d);
struct flow_port *director_port_of(struct director *d, struct str topic, int32_t partition);
void director_tell_heartbeats(struct director *d); /* for `check`, of a flow that is not enabled: no topics */
void director_topics_free(struct director *d);

#endif
