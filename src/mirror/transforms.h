/* transforms.h -- Connect's transforms and predicates that work on topics, headers and tombstones, natively.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A chain is read once from a flow's settings (transform.def says what there is). For one copy it is resolved: what depends
 * on the topic's name alone is decided there and then (renaming, TopicNameMatches), and what is left to do with its records
 * becomes a plan; no plan: its batches need not be opened. One thread at a time for the chain, any for a plan.
 */
#ifndef MIRROR_TRANSFORMS_H
#define MIRROR_TRANSFORMS_H

#include "base/buf.h"
#include "mirror/flow_config.h"
#include "wire/record.h"

struct transforms;

struct transforms_fault {
    struct str key; /* "transforms.a.type", or "transforms", which list it stands in */
    struct str why; /* in the arena */
};

/* *out is NULL when the flow has none. E_INVALID: *fault says what is wrong. */
enum err transforms_new(const struct flow_config *c, struct arena *a, struct transforms **out,
                        struct transforms_fault *fault) WARN_UNUSED;
void transforms_free(struct transforms **t);

/* Where the records of a copy go, in a: its own name, unless a router renames it; empty: that cannot be decided. t may be
 * NULL. */
struct str transforms_route(struct transforms *t, struct str copy, struct arena *a);

/* What is done with the records of one copy. */
struct transforms_plan;
/* NULL: nothing. The plan points into t. */
struct transforms_plan *transforms_plan_new(struct transforms *t, struct str copy);
void transforms_plan_free(struct transforms_plan **p);

/* No record of the copy is written. */
bool transforms_drop_all(const struct transforms_plan *p);
/* The same number for as long as the same records are left out; 0: none ever is. */
uint32_t transforms_filter_id(const struct transforms_plan *p);

/* One record on its way; false: it is left out. Its headers may lie in scratch afterwards, which is cleared before; when
 * scratch is bad, they did not fit. */
bool transforms_apply(const struct transforms_plan *p, struct record *r, struct buf *scratch);
/* Only whether it stays. */
bool transforms_keeps(const struct transforms_plan *p, const struct record *r, struct buf *scratch);

#endif
