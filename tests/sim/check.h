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
/* After an orderly stop: the positions and pairs that are stored cover all that is copied. */
void check_all_stored(struct check *c);
/* At the end: what retention took before it was copied was told, and nothing else. */
void check_losses(struct check *c);
/* The copy of the topic was deleted, and may be deleted again before anybody looks. */
void check_note_anew(struct check *c, const struct feed_topic *t);
/* From now on and for so long a partition may say that its cause does not pass by itself. */
void check_excuse_halt(struct check *c, int64_t for_us);

struct sim_topic *check_copy_of(const struct check *c, const struct feed_topic *t); /* NULL: none yet */
/* What is missing, for the words of a failure. */
void check_describe(struct check *c);
uint64_t check_records(const struct check *c);

#endif
