/* part_table.h -- finds somebody's partitions by what an answer calls them: topic name or id, and number.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shared by fetcher and producer. Also helps to sort the partitions of a request by topic in two passes
 * (part_topic's `turn`, `at` and `n`). One loop.
 */
#ifndef KAFKA_PART_TABLE_H
#define KAFKA_PART_TABLE_H

#include "base/map.h"
#include "kafka/cluster.h"

#include <string.h>

struct part_topic {
    struct topic_meta *meta; /* watched by the owners of the partitions */
    struct uuid id;          /* under which by_id knows it; zero: not there */
    void **parts;            /* by number; NULL: not ours */
    int32_t room, used;

    /* Scratch of whoever builds a request. */
    uint64_t turn;
    int32_t at, n;

    UT_hash_handle by_name, by_id;
};

struct part_table {
    struct part_topic *by_name, *by_id;
    uint64_t turn;
};

/* The place must be free. */
struct part_topic *part_table_add(struct part_table *t, struct topic_meta *meta, int32_t partition,
                                  void *part);
void part_table_remove(struct part_table *t, struct part_topic *pt, int32_t partition);
bool part_table_is_empty(const struct part_table *t);

/* By id when it is not zero, else by name; NULL: none of ours. */
struct part_topic *part_table_find(const struct part_table *t, struct str name,
                                   const struct uuid *id);
static inline void *part_topic_find(const struct part_topic *pt, int32_t partition)
{
    return partition >= 0 && partition < pt->room ? pt->parts[partition] : NULL;
}

/* Takes over new topic ids from the metadata; true when a known id has changed. */
bool part_table_reindex(struct part_table *t);

static inline bool uuid_is_zero(const struct uuid *id)
{
    return memcmp(id, &(struct uuid){ 0 }, sizeof(*id)) == 0;
}

/* First pass over a request's partitions: counts this one, and gives true when its topic is new in this
 * turn. A turn begins with ++t->turn. */
static inline bool part_topic_count(const struct part_table *t, struct part_topic *pt)
{
    if (pt->turn == t->turn) {
        pt->n++;
        return false;
    }
    pt->turn = t->turn;
    pt->n = 1;
    return true;
}

#endif
