/* rand.h -- small seeded random numbers (xoshiro256**), not for secrets.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A loop owns one (loop_rand); nothing else draws randomness, so that a simulated run
 * repeats from its seed. One thread.
 */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include "base/util.h"

struct rand {
    uint64_t s[4];
};

void rand_init(struct rand *r, uint64_t seed);
uint64_t rand_next(struct rand *r);
/* Uniform in [0, below); below > 0. */
uint64_t rand_below(struct rand *r, uint64_t below);

#endif
