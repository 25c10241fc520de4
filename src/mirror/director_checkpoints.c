/* director_checkpoints.c -- lets the groups of a flow that is ours be followed, and tells where partitions are.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Thread: control.
 */
#include "mirror/director_internal.h"

#include "mirror/checkpoints.h"

static struct flow_port *find_port(void *arg, struct str topic, int32_t partition, struct str *target_topic)
{
    struct director *d = arg;
    struct mirrored *m;

    HASH_FIND(hh, d->topics, topic.p, topic.n, m);
    if (!m || partition < 0 || partition >= m->partitions)
        return NULL;
    *target_topic = m->route;
    return director_port_of(d, topic, partition);
}

void director_checkpoints_start(struct director *d)
{
    struct checkpoints_ops ops = { .find = find_port, .arg = d };

    d->checkpoints = checkpoints_new(d->loop, d->config, d->policy, d->source, d->target, &ops);
}

void director_checkpoints_stop(struct director *d)
{
    checkpoints_free(&d->checkpoints);
}
