/* sync_cadence.c -- when an offset sync is due.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/sync_cadence.h"

int32_t sync_cadence_take(struct sync_cadence *c, int64_t lag_max, int64_t source, int64_t target, int64_t count,
                          struct sync_point out[SYNC_POINTS_MAX])
{
    int64_t lag = MIN(MAX(lag_max, 0), INT64_MAX / 4), last = target + count - 1, steps;
    int32_t n = 0;

    if (count < 1)
        return 0;
    if (!c->begun || source - c->up != 1 || target < c->down || target - (c->synced + 1) >= lag) {
        c->begun = true;
        c->synced = target;
        out[n++] = (struct sync_point){ source, target };
    }
    steps = (last - c->synced) / (lag + 1);
    if (steps > 0) {
        c->synced += steps * (lag + 1);
        out[n++] = (struct sync_point){ source + (c->synced - target), c->synced };
    }
    c->up = source + count - 1;
    c->down = last;
    c->late = c->synced != last;
    return n;
}

bool sync_cadence_flush(struct sync_cadence *c, struct sync_point *out)
{
    if (!c->late)
        return false;
    c->late = false;
    *out = (struct sync_point){ c->up, c->down };
    return true;
}
