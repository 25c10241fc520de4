/* flow_txn.h -- a flow's transactions on one worker: batches, pairs and positions are committed together.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only with exactly.once.source.support=enabled. Relays hold their batches until the transaction takes them; every
 * heliostat.transaction.interval.ms it is closed: what was sent is acknowledged, pairs and positions are written, all is
 * committed. What cannot be committed is aborted, and the relays go back to what was. One per flow and worker, with a
 * transactional id of its own. Worker's thread.
 */
#ifndef MIRROR_FLOW_TXN_H
#define MIRROR_FLOW_TXN_H

#include "mirror/flow_internal.h"

void flow_txn_start(struct flow *f, const struct txn_who *who);
void flow_txn_stop(struct flow *f); /* an open transaction stays open: the next start aborts it */

/* r holds batches. */
void flow_txn_offer(struct flow *f, struct relay *r);
/* Something that it may wait for has happened: an acknowledgement, a stored position. */
void flow_txn_wake(struct flow *f);
/* Commits what there is, soon. */
void flow_txn_close(struct flow *f);
/* It cannot be committed; carried out from the loop. */
void flow_txn_fail(struct flow *f, const char *code, const char *text);
/* r goes away. */
void flow_txn_leave(struct flow *f, struct relay *r);

/* r stands, or will once it is closed, in the transaction that is open. */
bool flow_txn_holds(const struct flow *f, const struct relay *r);
/* r is new and goes on with a pair that flow_txn_holds was true for. */
void flow_txn_rejoin(struct flow *f, struct relay *r);

/* Nothing is open, nothing waits to be committed. */
bool flow_txn_is_done(const struct flow *f);
/* Another instance has our transactional id: nothing of ours is written any more. */
bool flow_txn_is_fenced(const struct flow *f);
const struct fault *flow_txn_fault(const struct flow *f);

#endif
