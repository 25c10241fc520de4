/* backoff.c -- doubles the wait with each failure.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loop/backoff.h"

#include "base/must.h"

void backoff_init(struct backoff *b, int64_t least_ms, int64_t most_ms)
{
    must(least_ms >= 0);
    *b = (struct backoff){ .least_ms = least_ms, .most_ms = MAX(least_ms, most_ms) };
}

int64_t backoff_next_ms(struct backoff *b, struct rand *r)
{
    int64_t wait_ms = b->least_ms;
    int64_t jitter;

    for (uint32_t i = 0; i < b->failures && wait_ms > 0 && wait_ms < b->most_ms; i++)
        wait_ms = wait_ms > b->most_ms / 2 ? b->most_ms : 2 * wait_ms;
    if (b->failures < UINT32_MAX)
        b->failures++;
    jitter = wait_ms / 5;
    wait_ms += (int64_t)rand_below(r, (uint64_t)(2 * jitter + 1)) - jitter;
    return MIN(wait_ms, b->most_ms); /* as Kafka: the most is never passed */
}

void backoff_reset(struct backoff *b)
{
    b->failures = 0;
}
