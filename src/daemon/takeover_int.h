/* takeover_int.h -- what the files of `takeover` share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a flow, one after the other (takeover_flow.c): its plan of topics, its group (takeover_group.c), the stored
 * positions (takeover_positions.c), the comparison of each partition, and with --apply the exact positions. All is then
 * printed (takeover_text.c).
 */
#ifndef DAEMON_TAKEOVER_INT_H
#define DAEMON_TAKEOVER_INT_H

#include "daemon/config.h"
#include "kafka/group.h"
#include "kafka/topic_reader.h"
#include "kafka/topic_writer.h"
#include "mirror/comparer.h"
#include "mirror/director.h"
#include "mirror/plan.h"

/* Whose positions are taken over. */
enum takeover_from { FROM_MM2, FROM_GROUP, FROM_REPLICATOR };

struct takeover_args {
    bool apply, back, fence, json;
    enum takeover_from from;
    const char *from_name;  /* as --from says it: "mm1", ... */
    struct str from_group;  /* FROM_GROUP: at the source */
    struct str offsets;     /* the topic of Connect's positions; null: the flow's own */
    struct str configs;     /* the topic of Connect's configs; null: the flow's own */
    struct str connector;   /* whose positions count; null: MirrorSourceConnector, else any */
    struct str group;       /* of the Connect workers; null: <S>-mm2 */
    int64_t limit_ms;
};

struct takeover_part {
    const struct topic_want *want;
    int32_t partition;
    int64_t stored; /* the source offset that the stored position goes on at; -1: there is none */
    bool named;     /* by the connector that counts */
    bool copied;    /* there is a copy to compare with */
    bool started, known;
    struct comparison c;
};

struct takeover_member {
    struct str id, client_id, host;
};

struct takeover;

enum takeover_step { STEP_PLAN, STEP_GROUP, STEP_EVICT, STEP_TASKS, STEP_FENCE, STEP_HOLD, STEP_POSITIONS, STEP_COMPARE,
                     STEP_CREATE, STEP_WRITE, STEP_LEAVE, STEP_LEAVING, STEP_DONE };

struct takeover_flow {
    struct takeover *all;
    const struct flow_config *config;
    struct director *director;
    const struct plan *plan;
    enum takeover_step step;
    struct arena arena;
    struct task work;
    struct timer again;
    struct call call;
    union {
        struct kafka_describe_groups_request describe;
        struct kafka_leave_group_request leave;
        struct kafka_init_producer_id_request init;
        struct kafka_offset_fetch_request fetch;
        struct kafka_create_topics_request create;
    } request;
    struct str group_name, offsets_topic;
    struct str group_state, protocol_type;
    struct takeover_member *members;
    size_t members_n;
    int evictions;
    int64_t tasks;  /* that had transactional ids: Connect's topic of configs says so; -1: none ever */
    int64_t fenced; /* transactional ids so far */
    struct str fencing; /* the one that is asked for */
    struct group_config hold;
    struct group *group;
    struct topic_reader *reader;
    struct str connector; /* that counts; null: none was found */
    struct str other_connector; /* and one whose positions do not; null: none */
    struct topic_writer *writer;
    int64_t written;
    int64_t target_sum; /* of all ends, when they were compared last */
    struct comparer *comparer;
    struct takeover_part *parts;
    size_t parts_n, open;
    struct fault fault; /* why it went no further */
    int code;           /* exit code */
};

struct takeover {
    const struct config *config;
    const struct takeover_args *args;
    struct loop *loop;
    struct timer limit, reach;
    struct takeover_flow *flows;
    size_t flows_n, open;
    int code;
};

/* takeover_flow.c */
void takeover_run(struct takeover *t);
void takeover_end(struct takeover *t);
void takeover_wake(struct takeover_flow *f);
void takeover_wait(struct takeover_flow *f); /* the same step again, after a moment */
/* The flow ends here. */
void takeover_fail(struct takeover_flow *f, int code, const char *name, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Sends f->call, or ends the flow. */
void takeover_call(struct takeover_flow *f, struct cluster *cl, int api, const struct route *r, void (*fill)(struct call *c),
                   void (*done)(struct call *c));
/* False: the answer is there. Otherwise it is tried again, or the flow has ended. */
bool takeover_call_failed(struct takeover_flow *f, const char *what, int32_t kerr, struct cluster *cl, const struct route *r);

/* takeover_group.c: each begins a step, and wakes the flow when it is over. */
void takeover_group(struct takeover_flow *f);
void takeover_evict(struct takeover_flow *f);
void takeover_fence(struct takeover_flow *f);
void takeover_hold(struct takeover_flow *f);
/* With words for people: who is in the group. */
struct str takeover_members(struct takeover_flow *f);
bool takeover_is_blind(const struct takeover_flow *f); /* nobody in the flow's own group says nothing of whom we take over from */

/* takeover_positions.c */
void takeover_tasks(struct takeover_flow *f);
void takeover_positions(struct takeover_flow *f);
void takeover_create(struct takeover_flow *f);
void takeover_write(struct takeover_flow *f);

/* takeover_text.c */
void takeover_put_text(struct takeover *t, struct buf *out);
void takeover_put_json(struct takeover *t, struct buf *out);

#endif
