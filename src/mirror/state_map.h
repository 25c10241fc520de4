/* state_map.h -- the state topic's records of offset maps and losses, as JSON.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   {"kind":"map","topic":"t","partition":0,"part":3}     {"source":10,"target":10,"runs":"base64"}
 *   {"kind":"loss","topic":"t","partition":0,"slot":1}    {"number":17,"from":5,"to":9,"records":-1,"time_ms":1,
 *                                                          "cause":"..."}, and "repeat":true where it is one
 *
 * and in a pair the rest of the map, up to the pair:
 *   "map":{"part":4,"before":0,"source_end":20,"target_end":20,"source":15,"target":15,"runs":"base64"}
 * Plain values; any thread.
 */
#ifndef MIRROR_STATE_MAP_H
#define MIRROR_STATE_MAP_H

#include "base/arena.h"
#include "mirror/offset_map.h"

struct json_t;

/* Source records that can never come to the target, or that the source lost afterwards; or, a repeat, that come once
 * more. Of each partition the last STATE_LOSS_SLOTS are kept: the slot is the number modulo that. */
#define STATE_LOSS_SLOTS 64
struct state_loss {
    int64_t number;
    bool repeat;
    int64_t from, to; /* source offsets, both included */
    int64_t records;  /* that were there; -1: not known */
    int64_t time_ms;
    struct str cause;
};

void state_format_part_key(struct buf *out, struct str topic, int32_t partition, uint32_t number);
void state_format_part(struct buf *out, const struct offset_part *p);
/* pair: the value of a pair's record, to which the map's rest is added. */
void state_add_rest(struct buf *pair, const struct offset_part *rest);
/* pair as above. copy: the topic of the target that it speaks of; filter: what leaves records out on the way there, 0: nothing. */
void state_add_copy(struct buf *pair, struct str copy, uint32_t filter);
void state_format_loss_key(struct buf *out, struct str topic, int32_t partition, int64_t number);
void state_format_loss(struct buf *out, const struct state_loss *l);

/* s as a JSON string with its quotes (state.c). */
void state_put_json(struct buf *out, struct str s);

/* For state.c. value NULL: the record was removed. What they give points into the arena. */
bool state_get_part(const struct json_t *key, const struct json_t *value, struct arena *a, struct offset_part *out);
bool state_get_rest(const struct json_t *pair, struct arena *a, struct offset_part *out);
bool state_get_loss(const struct json_t *key, const struct json_t *value, struct arena *a, struct state_loss *out);

#endif
