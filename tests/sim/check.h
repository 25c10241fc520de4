/* check.h -- what must hold: nothing lost, nothing twice, in order, equal; positions behind acknowledgements.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "feed.h"

struct check;

/* loose: answers are corrupted anywhere, also where no checksum is; then only wrong data is a failure. */
struct check *check_new(struct feed *f, struct sim_cluster *target, bool loose);

/* Any time: every copy is a first part of the truth, every stored pair is true. Fails the run otherwise. */
void check_now(struct check *c);
/* Whether every copy is whole. */
bool check_is_complete(struct check *c);
/* What is missing, for the words of a failure. */
void check_describe(struct check *c);
uint64_t check_records(const struct check *c);

#endif
