/* director.h -- the control side of one flow: what is copied, where it begins, and which worker does it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs on the control thread. It waits for both clusters, makes the internal topics, reads stored positions, gets
 * the producer id, then looks for topics every refresh.topics.interval.seconds: creates and grows their copies and
 * hands partitions to the workers. Every failure is a fault that is tried again; nothing here ends the flow but a
 * cluster that would be mirrored to itself.
 */
#ifndef MIRROR_DIRECTOR_H
#define MIRROR_DIRECTOR_H

#include "mirror/flow_port.h"

struct director;

/* config and worlds must outlive it. */
struct director *director_new(struct loop *l, const struct flow_config *config,
                              const struct worker_world *worlds, int32_t worlds_n);

/* Drains and closes everything, then calls done once from the loop, after limit_ms at the latest (a cluster may be
 * away). stored: every position is stored. */
void director_stop(struct director *d, int64_t limit_ms, void (*done)(void *arg, bool stored), void *arg);

/* Only after done. */
void director_free(struct director **d);

/* Asks the workers for fresh reports; view_build finds them when they have come. */
void director_ask_reports(struct director *d);

struct cluster *director_cluster(const struct director *d, bool target);
const struct flow_config *director_config(const struct director *d);

#endif
