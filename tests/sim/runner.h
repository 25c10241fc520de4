/* runner.h -- seeds in processes of their own, several at a time.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include "scenario.h"
#include "tally.h"

struct runner {
    struct scenario_options options;
    int jobs;
    bool first;   /* stop at the first seed that fails */
    bool quiet;   /* say nothing of failures */
    uint64_t ran, failed;
    uint64_t sums[TALLIES_N];
};

/* Runs `count` seeds from `from` on. */
void runner_seeds(struct runner *r, uint64_t from, uint64_t count);
/* Looks for few faults with which the seed fails still, and tells them. 0: it failed and was shrunk. */
int runner_shrink(struct runner *r, uint64_t seed);

#endif
