/* relay_map.h -- keeps a partition's offset map in step with what is acknowledged.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whatever writes records to the target ends here: relay_map_acked for each batch that is acknowledged, relay_map_skipped
 * for records found in the target after a restart. Both come before the pair moves. Everything that moves the pair
 * otherwise (gaps, jumps, cuts) is taken over by relay_map_follow when copying begins. Worker's thread.
 */
#ifndef MIRROR_RELAY_MAP_H
#define MIRROR_RELAY_MAP_H

#include "mirror/offset_map.h"
#include "mirror/record_path.h"

struct relay;
struct outgoing;
struct pair;

/* Says which source offsets the records of a batch have, when they are not source_base, source_base + 1 and so on. The
 * runs are copied into o->note; their indexes count the records of this batch. */
void relay_map_note(struct outgoing *o, const struct record_run *runs, int32_t n);

/* The batch is in the target from this offset on. */
void relay_map_acked(struct relay *r, const struct outgoing *o, int64_t target);

/* Records that were in the target already; the first one is at the pair's target offset. */
void relay_map_skipped(struct relay *r, const struct record_run *runs, int32_t n);

/* A stretch in which records lie whose places are not known one by one. Begins at the pair. */
void relay_map_unseen(struct relay *r, int64_t source_end, int64_t target_end);

/* The map ends where the pair is: over what holds nothing to copy, or back to it. */
void relay_map_follow(struct relay *r);

/* The target lost its last n records (n < 0: all from its present end on): the pair's source offset goes back to the
 * first of them. *lost gets their number. False: the map is not exact there, and the pair went back far enough. */
bool relay_map_go_back(struct relay *r, int64_t n, int64_t *lost);

/* The source lost what it had in [from, to); of that, what was copied before stays in the target. For the ledger. */
void relay_map_note_cut(struct relay *r, int64_t from, int64_t to);

/* What was stored; NULL: nothing. The relay's from here on. */
void relay_map_take(struct relay *r, struct offset_map *m);
/* The map without its relay; the caller owns it. */
struct offset_map *relay_map_give(struct relay *r);
/* Puts what was closed since, and adds the rest to the pair's record: with the pair, all of the map up to it. */
void relay_map_store(struct relay *r, const struct pair *p, struct buf *value);

struct offset_answer relay_map_answer(struct relay *r, bool to_target, int64_t offset);

void relay_map_free(struct relay *r);

#endif
