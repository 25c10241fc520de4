/* check_map.h -- compares a stored offset map with the truth, every offset of it, both ways.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CHECK_MAP_H
#define SIM_CHECK_MAP_H

#include "feed.h"
#include "mirror/state.h"

/* s is a pair with the rest of its map. Target offsets are those of a copy that nobody else writes to: the number of
 * records before. */
void check_map(const char *topic, const struct feed_part *p, const struct state_record *s);

#endif
