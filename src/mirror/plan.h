/* plan.h -- one look at the topics of a flow: what there is, what will be done, what went wrong.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Filled step by step by director_topics.c from the answers of both clusters; `check` prints it. Everything lies in
 * the arena given to plan_new. No I/O; control thread or cli.
 */
#ifndef MIRROR_PLAN_H
#define MIRROR_PLAN_H

#include "base/fault.h"
#include "mirror/policy.h"
#include "mirror/topics.h"
#include "mirror/transforms.h"
#include "wire/api.h"
#include "wire/kerr.h"

struct plan_create {
    const struct topic_want *want;
    struct topic_config *configs; /* name and value of what the copy is created with */
    size_t configs_n;
    bool described, done;
    struct fault fault;
};

struct plan_grow {
    const struct topic_want *want;
    int32_t was;
    bool done;
    struct fault fault;
};

struct plan_refused {
    struct str topic;
    enum policy_verdict verdict;
};

/* One of the topics that the flow keeps its books in; only `check` fills these. */
struct plan_internal {
    struct str name;
    const char *factor_key; /* of the file: what sets its replicas */
    int32_t partitions; /* that it has, or would get; so the replicas */
    int16_t replication_factor;
    bool at_target, needed, missing;
    struct str wrong; /* of one that is there; empty: nothing */
    bool forgets;     /* so that the flow would not run on it */
};
#define PLAN_INTERNAL_MAX 10

struct plan {
    struct arena *arena;
    int64_t now_ms; /* wall clock of the look, the time of its faults */
    const struct plan_internal *internals;
    size_t internals_n;
    struct topic_want *wants;
    struct uuid *ids; /* topic id of each want */
    size_t wants_n;
    struct topic_have *haves;
    size_t haves_n;
    struct plan_create *creates;
    size_t creates_n;
    struct plan_grow *grows;
    size_t grows_n;
    struct plan_create **create_of; /* by index of the want; NULL: none */
    struct plan_grow **grow_of;
    struct plan_refused *refused;
    size_t refused_n;
    struct plan_described { /* badly, at either side */
        struct str target_name;
        const struct topic_want *want; /* NULL: all of that name */
        struct fault fault;
    } *faults;
    size_t faults_n, topics_max;
    bool configs_left; /* copies were created without some of their configs */
};

struct plan *plan_new(struct arena *a, size_t topics_max, int64_t now_ms);
void plan_add_source(struct plan *p, const struct policy *policy, struct filter *f,
                     const struct kafka_metadata_response_topic *t);
/* After all sources: topics and topics.exclude accept none of them. */
bool plan_accepts_nothing(const struct plan *p);
/* Likewise: where transforms send the records of each copy. */
void plan_route(struct plan *p, struct transforms *t);
/* After plan_decide: whether the records go to a topic that is not there; the broker may make it when asked for it. */
bool plan_misses_route(const struct plan *p, const struct topic_want *w);
void plan_take_route(struct plan *p, struct str route, int32_t kerr);
/* After that: no two topics may have one copy. One that the mirror has carried before goes on, the others cannot
 * have that copy; where none has, or several have, none may. is_ours may be NULL: none has. */
void plan_refuse_collisions(struct plan *p, bool (*is_ours)(void *arg, struct str topic), void *arg);
void plan_add_target(struct plan *p, const struct kafka_metadata_response_topic *t);
void plan_decide(struct plan *p);
void plan_add_configs(struct plan *p, const struct kafka_describe_configs_response *r,
                      const struct flow_config *c);

struct plan_create *plan_find_create(struct plan *p, struct str target_name);
struct plan_grow *plan_find_grow(struct plan *p, struct str target_name);
/* Takes the broker's word on a creation: done, a fault, or fewer configs and another try: the periodic comparison of
 * configs comes back to these. Logs. */
void plan_take_created(struct plan *p, struct plan_create *c,
                       const struct kafka_create_topics_response_topic *t,
                       const struct flow_config *config);
void plan_take_grown(struct plan *p, struct plan_grow *g, int32_t kerr, struct str message,
                     const struct flow_config *config);

/* The entries of one topic, copied into a; *n gets their number. */
struct topic_config *plan_entries(struct arena *a, const struct kafka_describe_configs_response_result *r, size_t *n);

/* The copy as the target described it; NULL: it was not there. After plan_decide. */
const struct topic_have *plan_find_have(const struct plan *p, struct str target_name);

/* What is wrong with the topic; NULL: nothing. */
const struct fault *plan_fault(const struct plan *p, const struct topic_want *w);

#endif
