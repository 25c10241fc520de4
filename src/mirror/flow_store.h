/* flow_store.h -- keeps a flow's positions and pairs in its two topics at the target.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Worker's thread. Pairs go out every STORE_PAIR_MS, positions every offset.flush.interval.ms, each only for
 * partitions that moved; both at a clean end. A failure is kept and tried again, and never stops the data.
 */
#ifndef MIRROR_FLOW_STORE_H
#define MIRROR_FLOW_STORE_H

#include "mirror/flow_internal.h"

#define STORE_PAIR_MS 5000

void flow_store_start(struct flow *f, const struct flow_identity *id);
void flow_store_stop(struct flow *f);

/* Puts what moved since the last time, of all relays or one. */
void flow_store_all(struct flow *f);
void flow_store_relay(struct flow *f, struct relay *r);
/* Everything that was put is acknowledged. */
bool flow_store_is_done(const struct flow *f);

/* Another process has taken the flow over: nothing is stored any more. */
bool flow_store_is_shut_out(const struct flow *f);

/* The worse of the two topics' faults; code "" when none. */
const struct fault *flow_store_fault(const struct flow *f);

#endif
