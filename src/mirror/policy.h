/* policy.h -- how topics are named at the target, and which of them go round in circles.
 * SPDX-License-Identifier: Apache-2.0
 *
 * MirrorMaker 2's DefaultReplicationPolicy and IdentityReplicationPolicy (mm2-spec section 3, rules of 4.0 and later).
 * Immutable; one
 * thread at a time where there are rules (heliostat.topic.map), else any. Results are written to an arena or point into the argument.
 */
#ifndef MIRROR_POLICY_H
#define MIRROR_POLICY_H

#include "base/arena.h"
#include "mirror/filter.h"
#include "mirror/flow_config.h"

struct policy;

/* Copies what it needs of the flow's config. */
struct policy *policy_new(const struct flow_config *config);
void policy_free(struct policy **p);

/* mm2-spec 3.1, 3.2; the null string for "none". */
struct str policy_remote(const struct policy *p, struct str topic, struct arena *a);
struct str policy_mapped(const struct policy *p, struct str topic, struct arena *a); /* by a rule; null: by none */
struct str policy_prefix(const struct policy *p, struct str prefix, struct arena *a); /* of names: without the rules */
struct str policy_source(const struct policy *p, struct str topic);
struct str policy_upstream(const struct policy *p, struct str topic);
struct str policy_original(const struct policy *p, struct str topic);
struct str policy_heartbeats(const struct policy *p);
struct str policy_offset_syncs(const struct policy *p, struct str other_alias, struct arena *a);
struct str policy_checkpoints(const struct policy *p, struct str source_alias, struct arena *a);
bool policy_is_heartbeats(const struct policy *p, struct str topic);
bool policy_is_internal(const struct policy *p, struct str topic);
/* The topic's copy would have a name that the mirror keeps its books or heartbeats under. */
bool policy_is_own(const struct policy *p, struct str topic, struct str copy);

/* Our own topic at the target: mm2-heliostat.<source>.internal. */
struct str policy_state_topic(const struct policy *p, struct str source_alias, struct arena *a);

enum policy_verdict {
    POLICY_MIRRORED,
    POLICY_HEARTBEATS, /* mirrored whatever the filter says */
    POLICY_FILTERED,   /* topics / topics.exclude */
    POLICY_INTERNAL,
    POLICY_CYCLE,      /* it has been at the target already */
};
/* mm2-spec 3.3. */
enum policy_verdict policy_mirrors(const struct policy *p, struct filter *f, struct str topic);
static inline bool policy_verdict_is_yes(enum policy_verdict v)
{
    return v == POLICY_MIRRORED || v == POLICY_HEARTBEATS;
}
const char *policy_verdict_text(enum policy_verdict v);

#endif
