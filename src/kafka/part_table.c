/* part_table.c -- two hashes of topics, each with an array of partitions.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/part_table.h"

#include "base/must.h"

#include <string.h>

#define PART_ROOM_LEAST 8

static struct part_topic *find_name(const struct part_table *t, struct str name)
{
    struct part_topic *pt;

    HASH_FIND(by_name, t->by_name, name.p, name.n, pt);
    return pt;
}

static struct part_topic *find_id(const struct part_table *t, const struct uuid *id)
{
    struct part_topic *pt;

    HASH_FIND(by_id, t->by_id, id, sizeof(*id), pt);
    return pt;
}

struct part_topic *part_table_find(const struct part_table *t, struct str name,
                                   const struct uuid *id)
{
    if (!uuid_is_zero(id))
        return find_id(t, id);
    return name.p ? find_name(t, name) : NULL;
}

/* Two topics never share an id in a sane cluster; in another one the first keeps it. */
static void index_id(struct part_table *t, struct part_topic *pt)
{
    if (uuid_is_zero(&pt->meta->id) || find_id(t, &pt->meta->id))
        return;
    pt->id = pt->meta->id;
    HASH_ADD(by_id, t->by_id, id, sizeof(pt->id), pt);
}

static void unindex_id(struct part_table *t, struct part_topic *pt)
{
    if (uuid_is_zero(&pt->id))
        return;
    HASH_DELETE(by_id, t->by_id, pt);
    pt->id = (struct uuid){ 0 };
}

bool part_table_reindex(struct part_table *t)
{
    struct part_topic *pt, *after;
    bool changed = false;

    HASH_ITER(by_name, t->by_name, pt, after)
    {
        if (memcmp(&pt->id, &pt->meta->id, sizeof(pt->id)) == 0)
            continue;
        changed |= !uuid_is_zero(&pt->id);
        unindex_id(t, pt);
        index_id(t, pt);
    }
    return changed;
}

static void grow(struct part_topic *pt, int32_t least)
{
    int32_t room = MAX(MAX(pt->room * 2, PART_ROOM_LEAST), least);

    pt->parts = mem_resize(pt->parts, (size_t)room, sizeof(*pt->parts));
    memset(pt->parts + pt->room, 0, (size_t)(room - pt->room) * sizeof(*pt->parts));
    pt->room = room;
}

struct part_topic *part_table_add(struct part_table *t, struct topic_meta *meta, int32_t partition,
                                  void *part)
{
    struct part_topic *pt = find_name(t, meta->name);

    must(partition >= 0);
    if (!pt) {
        pt = mem_new(sizeof(*pt));
        pt->meta = meta;
        HASH_ADD_KEYPTR(by_name, t->by_name, meta->name.p, meta->name.n, pt);
        index_id(t, pt);
    }
    must_say(pt->meta == meta, "two watches of one topic name");
    if (partition >= pt->room)
        grow(pt, partition + 1);
    must_say(!pt->parts[partition], "a partition was added twice");
    pt->parts[partition] = part;
    pt->used++;
    return pt;
}

void part_table_remove(struct part_table *t, struct part_topic *pt, int32_t partition)
{
    must(part_topic_find(pt, partition));
    pt->parts[partition] = NULL;
    if (--pt->used > 0)
        return;
    unindex_id(t, pt);
    HASH_DELETE(by_name, t->by_name, pt);
    mem_free(pt->parts);
    mem_free(pt);
}

bool part_table_is_empty(const struct part_table *t)
{
    return t->by_name == NULL;
}
