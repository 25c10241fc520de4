/* relay.h -- carries one partition's batches from its source to its target.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A relay belongs to one flow on one worker and is used on that worker's thread only. Batches pass
 * through compressed, as they came: a relay reads batch headers, and records only where a rule demands
 * it (the record path). What each state guarantees is told at the top of relay.c.
 */
#ifndef MIRROR_RELAY_H
#define MIRROR_RELAY_H

#include "base/fault.h"
#include "mirror/state.h"

struct flow;
struct relay;
struct view_partition;

/* Where a relay begins. */
struct relay_start {
    bool has_pair;     /* from the state topic */
    struct offset_map *map; /* likewise, NULL: none; the relay takes it */
    struct pair pair;
    uint32_t filter_id; /* what left records out when the pair was stored; 0: nothing */
    int64_t losses;    /* the number of its next loss */
    int64_t next;      /* from the positions topic: resume here; -1: none */
    bool from_earliest; /* it appeared while the flow ran: auto.offset.reset does not apply */
};

/* Makes a relay and starts it. topic and target_topic are copied. */
struct relay *relay_new(struct flow *f, struct str topic, struct str target_topic,
                        int32_t partition, const struct relay_start *start);

/* Fetches no more; relay_is_idle once the last acknowledgement is in. */
void relay_drain(struct relay *r);
bool relay_is_idle(const struct relay *r);

/* Stops at once and frees; what was not acknowledged is forgotten. */
void relay_free(struct relay **r);


/* The position that may be stored now, and whether it differs from the one last taken. */
bool relay_take_position(struct relay *r, struct pair *out);

struct str relay_topic(const struct relay *r);
int32_t relay_partition(const struct relay *r);

/* Fills everything but lag times' meaning is "as of now". Strings point into the relay. */
void relay_view(const struct relay *r, struct view_partition *out);

#endif
