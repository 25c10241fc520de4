/* sync_cadence.c -- when an offset sync is due.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/sync_cadence.h"

static bool may_tell(struct sync_cadence *c, int64_t now_ms)
{
    if (c->in_window == 0 || now_ms - c->window_ms >= SYNC_WINDOW_MS || now_ms < c->window_ms) {
        c->window_ms = now_ms;
        c->in_window = 0;
    }
    return c->in_window < SYNC_WINDOW_MAX;
}

int32_t sync_cadence_take(struct sync_cadence *c, int64_t lag_max, int64_t now_ms, const struct sync_run *run,
                          struct sync_point out[SYNC_POINTS_MAX])
{
    int64_t lag = MIN(MAX(lag_max, 0), INT64_MAX / 4), last = run->target + run->count - 1, steps;
    bool back = !c->begun || run->source <= c->up || run->target < c->down;
    int32_t n = 0;

    if (run->count < 1)
        return 0;
    if (may_tell(c, now_ms) || back) {
        if (back || run->source - c->up != 1 || run->target - (c->synced + 1) >= lag) {
            c->begun = true;
            c->synced = run->target;
            out[n++] = (struct sync_point){ run->source, run->target };
        }
        steps = (last - c->synced) / (lag + 1);
        if (steps > 0) {
            c->synced += steps * (lag + 1);
            out[n++] = (struct sync_point){ run->source + (c->synced - run->target), c->synced };
        }
    }
    c->in_window += n;
    c->up = run->source + run->count - 1;
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
