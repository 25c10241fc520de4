/* checkpoints_answers.c -- what brokers say of groups, entered.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/checkpoints_int.h"

#include "mirror/filter.h"

#include <stdlib.h>
#include <string.h>

#define PLACES_FIRST 8

void checkpoints_take_listed(struct checkpoints *c, const struct kafka_list_groups_response_group *l, bool source)
{
    enum group_kind kind = groups_kind(l->protocol_type, l->group_type);
    struct followed *g;

    if (!source) {
        g = checkpoints_find_group(c, l->group_id);
        if (!g)
            return;
        g->active = !groups_state_is_idle(l->group_state);
        if (kind != g->kind && (kind == GROUP_SHARE || kind == GROUP_STREAMS || g->kind == GROUP_SHARE))
            checkpoints_refuse(c, g, "GROUP_KIND", "the target has a group of that name, but of another kind");
        return;
    }
    if (kind == GROUP_OTHER || !filter_accepts(c->filter, l->group_id))
        return;
    g = checkpoints_get_group(c, l->group_id);
    if (!g)
        return;
    g->seen = true;
    g->kind = kind;
    if (groups_kind_refusal(kind))
        checkpoints_refuse(c, g, "GROUP_KIND", "%s", groups_kind_refusal(kind));
    else if (kind == GROUP_SHARE && c->next_sync_ms < 0)
        checkpoints_refuse(c, g, "SHARE_GROUP", "share groups have no checkpoints; sync.group.offsets.enabled sets their "
                                                "start offsets at the target, and is off");
}

static struct str keep(struct checkpoints *c, struct str s)
{
    return arena_str(&c->arena, s);
}

/* The array doubles in the arena. */
static struct place *add_place(struct checkpoints *c, struct followed *g)
{
    size_t n = g->places_n;

    if (n == 0 || (n >= PLACES_FIRST && (n & (n - 1)) == 0)) {
        struct place *more = arena_array(&c->arena, n ? n * 2 : PLACES_FIRST, sizeof(*more));

        if (n)
            memcpy(more, g->places, n * sizeof(*more));
        g->places = more;
    }
    return &g->places[g->places_n++];
}

void checkpoints_take_position(struct checkpoints *c, struct followed *g, const struct offset_seen *s)
{
    struct str target_topic = STR_NULL;
    struct flow_port *port = c->ops.find(c->ops.arg, s->topic, s->partition, &target_topic);
    struct place *p;

    if (!port || (!s->kerr && s->offset < 0))
        return; /* not mirrored, or never committed */
    if (s->kerr) {
        checkpoints_refuse(c, g, kerr_name(s->kerr), "its position in partition %d of %.*s cannot be read: %s",
                           s->partition, STR_ARG(s->topic), kerr_text(s->kerr));
        g->failed = false; /* its other partitions go on */
        return;
    }
    p = add_place(c, g);
    *p = (struct place){ .group = g,
                         .topic = keep(c, s->topic),
                         .target_topic = keep(c, target_topic),
                         .metadata = keep(c, str_is_null(s->metadata) ? STR("") : s->metadata),
                         .partition = s->partition,
                         .upstream = s->offset,
                         .port = port,
                         .to = { GROUP_NONE, -1, -1 },
                         .there = -1 };
}

static int compare(const struct place *p, struct str target_topic, int32_t partition)
{
    int c = str_cmp(p->target_topic, target_topic);

    return c ? c : (p->partition > partition) - (p->partition < partition);
}

static int by_target(const void *a, const void *b)
{
    const struct place *y = b;

    return compare(a, y->target_topic, y->partition);
}

void checkpoints_sort(struct followed *g)
{
    if (g->places_n)
        qsort(g->places, g->places_n, sizeof(*g->places), by_target);
}

static struct place *find_place(struct followed *g, struct str target_topic, int32_t partition)
{
    size_t low = 0, high = g->places_n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare(&g->places[mid], target_topic, partition);

        if (c == 0)
            return &g->places[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

void checkpoints_take_there(struct followed *g, const struct offset_seen *s)
{
    struct place *p = find_place(g, s->topic, s->partition);

    if (!p)
        return;
    p->unreadable = s->kerr != KERR_NONE;
    p->there = s->kerr ? -1 : s->offset;
}

void checkpoints_take_committed(struct checkpoints *c, struct followed *g, int api, struct str topic,
                                int32_t partition, int32_t kerr)
{
    struct place *p = find_place(g, topic, partition);

    if (!p || !p->commit)
        return;
    if (kerr == KERR_NONE) {
        p->known->mark.synced = p->to.offset;
        p->known->mark.synced_from = p->upstream;
        g->counts.committed++;
        c->commits++;
    } else if (kerr_class(api, kerr) == K_REJOIN) {
        g->active = true; /* somebody has joined in between: the broker keeps us out */
    } else {
        checkpoints_refuse(c, g, kerr_name(kerr), "the target does not take its position in partition %d of %.*s: %s",
                           partition, STR_ARG(topic), kerr_text(kerr));
    }
}
