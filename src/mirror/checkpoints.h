/* checkpoints.h -- follows the consumer groups of a flow: their checkpoints, and their positions at the target.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One per flow that is ours to run. In rounds it asks the source for the groups and their positions, the workers for
 * the target's offsets, writes what changed to <S>.checkpoints.internal (MirrorMaker 2's format), and commits to those
 * groups of the target that have no members. One bad group or partition never holds up another. Control thread.
 */
#ifndef MIRROR_CHECKPOINTS_H
#define MIRROR_CHECKPOINTS_H

#include "kafka/cluster.h"
#include "mirror/flow_config.h"
#include "mirror/flow_port.h"
#include "mirror/policy.h"

struct checkpoints;
struct view_groups;

struct checkpoints_ops {
    /* The worker that has the partition, and the name of its copy; NULL: it is not mirrored. */
    struct flow_port *(*find)(void *arg, struct str topic, int32_t partition, struct str *target_topic);
    void *arg;
};

/* NULL when neither emit.checkpoints.enabled nor sync.group.offsets.enabled asks for it. All must outlive it. */
struct checkpoints *checkpoints_new(struct loop *l, const struct flow_config *config, const struct policy *policy,
                                    struct cluster *source, struct cluster *target, const struct checkpoints_ops *ops);
/* Drops what is on its way. */
void checkpoints_free(struct checkpoints **c);

/* Strings go into the arena. */
void checkpoints_view(const struct checkpoints *c, struct view_groups *out, struct arena *a);

#endif
