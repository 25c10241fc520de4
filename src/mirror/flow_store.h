/* flow_store.h -- keeps a flow's positions and pairs in its two topics at the target.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Worker's thread. Pairs go out every STORE_PAIR_MS (STORE_PAIR_LEAST_MS), positions every offset.flush.interval.ms, each only for
 * partitions that moved; both at a clean end. A failure is kept and tried again, and never stops the data.
 */
#ifndef MIRROR_FLOW_STORE_H
#define MIRROR_FLOW_STORE_H

#include "mirror/flow_internal.h"

#define STORE_PAIR_MS       5000
#define STORE_PAIR_LEAST_MS 1000 /* at least once, where what is written since then is written again after a crash */

void flow_store_start(struct flow *f, const struct flow_identity *id);
void flow_store_stop(struct flow *f);

/* Puts what moved since the last time, of all relays or one. */
void flow_store_all(struct flow *f);
void flow_store_relay(struct flow *f, struct relay *r);
/* Puts this pair and position of a relay; flow_store_has: they are acknowledged. */
void flow_store_put(struct flow *f, struct relay *r, const struct pair *p);
void flow_store_put_pair(struct flow *f, struct relay *r, const struct pair *pair);
bool flow_store_has(const struct flow *f, const struct relay *r);
/* Everything that was put is acknowledged. */
bool flow_store_is_done(const struct flow *f);

/* Another process has taken the flow over: nothing is stored any more. */
bool flow_store_is_shut_out(const struct flow *f);

/* The worse of the two topics' faults; code "" when none. */
const struct fault *flow_store_fault(const struct flow *f);

#endif
