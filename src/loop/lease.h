/* lease.h -- a right that ends by itself: one thread prolongs it, others look whether it still holds.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For what a process may do only as long as nobody else can have been told to do it (decision 4). Whoever stood still --
 * SIGSTOP, a frozen machine -- sees on its own that the right is over, before any message of another thread reaches it.
 * Any thread.
 */
#ifndef LOOP_LEASE_H
#define LOOP_LEASE_H

#include "loop/loop.h"

struct lease {
    _Atomic int64_t until_ms; /* of the monotonic clock that all loops share; 0: over */
};

static inline void lease_set(struct lease *l, int64_t until_ms)
{
    l->until_ms = until_ms;
}

/* l: NULL for a right that does not end. */
static inline bool lease_is_over(const struct lease *l, const struct loop *loop)
{
    return l && loop_clock_now_ms(loop) >= l->until_ms;
}

#endif
