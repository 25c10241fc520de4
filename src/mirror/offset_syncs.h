/* offset_syncs.h -- tells acknowledged records as offset syncs, for MirrorMaker 2 and its tools.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The topic mm2-offset-syncs.<T>.internal is for MirrorMaker 2, which may take over from us and translates by it, and
 * for tools; we ourselves translate by the offset map. Nothing waits for it: what cannot be written is kept, newest per
 * partition, and a topic that is missing is a fault that others than the data see. Worker's thread.
 */
#ifndef MIRROR_OFFSET_SYNCS_H
#define MIRROR_OFFSET_SYNCS_H

#include "mirror/sync_cadence.h"

struct flow;

struct relay;

/* The writer, if the flow has emit.offset-syncs.enabled. */
void offset_syncs_start(struct flow *f);
void offset_syncs_stop(struct flow *f);

void offset_syncs_acked(struct relay *r, int64_t source, int64_t target, int64_t count);
/* Of what was acknowledged in a transaction nothing is told before it is committed. */
void offset_syncs_ended(struct relay *r, bool committed);
/* The last record of each partition that has none: with the positions, as MirrorMaker 2 does. */
void offset_syncs_flush(struct flow *f);
/* Nothing is on its way, or it cannot be written anyway. */
bool offset_syncs_are_done(const struct flow *f);

#endif
