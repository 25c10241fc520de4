/* backoff.h -- exponential back-off with jitter, as Kafka's clients do (KIP-580).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Doubles from least to most milliseconds, jitter -20..+20 %. Owner's thread.
 */
#ifndef LOOP_BACKOFF_H
#define LOOP_BACKOFF_H

#include "base/rand.h"

struct backoff {
    int64_t least_ms, most_ms;
    uint32_t failures;
};

void backoff_init(struct backoff *b, int64_t least_ms, int64_t most_ms);
/* Counts one more failure and gives the wait for it. */
int64_t backoff_next_ms(struct backoff *b, struct rand *r);
void backoff_reset(struct backoff *b);

#endif
