/* director.h -- the control side of one flow: what is copied, where it begins, and which worker does it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs on the control thread. It waits for both clusters, makes the internal topics, waits for its turn where several
 * processes have the flow, reads stored positions, gets the producer id, then looks for topics every refresh.topics.interval.seconds: creates and grows their copies and
 * hands partitions to the workers. Every failure is a fault that is tried again; nothing here ends the flow but a
 * cluster that would be mirrored to itself.
 */
#ifndef MIRROR_DIRECTOR_H
#define MIRROR_DIRECTOR_H

#include "mirror/flow_port.h"

struct director;
struct plan;

/* config and worlds must outlive it. */
struct director *director_new(struct loop *l, const struct flow_config *config,
                              const struct worker_world *worlds, int32_t worlds_n);

/* For `check`: looks once at both clusters and their topics and changes nothing. told is called once from the loop:
 * with the plan, which lives as long as the director, or with NULL when the flow is refused (director_fault says why).
 * It is not called as long as a cluster cannot be reached or does not answer. No workers; ends as any other. */
struct director *director_new_check(struct loop *l, const struct flow_config *config,
                                    void (*told)(void *arg, const struct plan *p), void *arg);

/* Drains and closes everything, then calls done once from the loop, after limit_ms at the latest (a cluster may be
 * away). stored: every position is stored. */
void director_stop(struct director *d, int64_t limit_ms, void (*done)(void *arg, bool stored), void *arg);

/* The name of this process, for the other members of the group. Before the loop runs. */
void director_name_instance(struct director *d, struct str instance);

/* Only after done. */
void director_free(struct director **d);

/* Sends the order on to the next worker of its flow that may have its partition; false: there is none left. */
struct order;
struct order_desk;
bool director_send_order(struct order_desk *desk, struct order *o);

/* Asks the workers for fresh reports; view_build finds them when they have come. */
void director_ask_reports(struct director *d);

struct cluster *director_cluster(const struct director *d, bool target);
const struct flow_config *director_config(const struct director *d);
const struct fault *director_fault(const struct director *d);

#endif
