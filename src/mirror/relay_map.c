/* relay_map.c -- keeps a partition's offset map in step with what is acknowledged.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/relay_map.h"

#include "base/alloc.h"
#include "mirror/flow_internal.h"

#include <string.h>

#define REST_MOST (24 * KiB) /* encoded bytes of a map in one pair */

struct note {
    int32_t n;
    struct record_run runs[];
};

void relay_map_note(struct outgoing *o, const struct record_run *runs, int32_t n)
{
    size_t bytes = (size_t)n * sizeof(*runs);
    struct note *note;

    if (n < 2)
        return; /* source_base says it all */
    note = mem_new(sizeof(*note) + bytes);
    note->n = n;
    memcpy(note->runs, runs, bytes);
    o->note = note;
}

/* The relay's map; made when the first record or range comes. */
static struct offset_map *get_map(struct relay *r)
{
    if (!r->map) {
        r->map = offset_map_new(MAX(r->pair.source, 0), MAX(r->pair.target, 0), r->map_before);
        r->flow->maps_memory += offset_map_memory(r->map);
    }
    return r->map;
}

/* Closed blocks go out at once, so that the rest, which goes with every pair, stays small. Tickets are one more than the
 * writer's: what was loaded has ticket 1. */
static void put_parts(struct relay *r)
{
    struct offset_part p;
    struct buf key, value;
    uint32_t gone;

    buf_init(&key, 64 * KiB);
    buf_init(&value, 64 * KiB);
    while (offset_map_next_part(r->map, &p)) {
        buf_clear(&key);
        buf_clear(&value);
        state_format_part_key(&key, r->topic, r->partition, p.number);
        state_format_part(&value, &p);
        offset_map_part_put(r->map, p.number,
                            topic_writer_put(r->flow->notes, -1, buf_str(&key), buf_str(&value), -1) + 1);
    }
    while (offset_map_take_gone(r->map, &gone)) {
        buf_clear(&key);
        state_format_part_key(&key, r->topic, r->partition, gone);
        topic_writer_put(r->flow->notes, -1, buf_str(&key), STR_NULL, -1);
    }
    buf_fini(&key);
    buf_fini(&value);
}

/* The flow's maps share one limit; the largest gives up exactness first. */
static void keep_limit(struct flow *f)
{
    while (f->maps_memory > f->maps_memory_max) {
        struct relay *largest = NULL;
        size_t before;

        for (size_t i = 0; i < f->relays_n; i++)
            if (f->relays[i]->map &&
                (!largest || offset_map_memory(f->relays[i]->map) > offset_map_memory(largest->map)))
                largest = f->relays[i];
        if (!largest)
            return;
        before = offset_map_memory(largest->map);
        if (!offset_map_thin(largest->map))
            return;
        if (largest->registered)
            put_parts(largest);
        f->maps_memory += offset_map_memory(largest->map) - before;
    }
}

static void changed(struct relay *r, size_t before)
{
    if (offset_map_is_dirty(r->map) && r->registered)
        put_parts(r);
    r->flow->maps_memory += offset_map_memory(r->map) - before;
    if (r->flow->maps_memory > r->flow->maps_memory_max)
        keep_limit(r->flow);
}

void relay_map_acked(struct relay *r, const struct outgoing *o, int64_t target)
{
    const struct note *note = o->note;
    struct offset_map *m = get_map(r);
    size_t before = offset_map_memory(m);

    if (!note) {
        offset_map_add(m, o->source_base, target, o->count);
        offset_syncs_acked(r, o->source_base, target, o->count);
    }
    for (int32_t i = 0; note && i < note->n; i++) {
        const struct record_run *run = &note->runs[i];

        offset_map_add(m, run->source, target + run->index, run->count);
        offset_syncs_acked(r, run->source, target + run->index, run->count);
    }
    changed(r, before);
}

void relay_map_skipped(struct relay *r, const struct record_run *runs, int32_t n)
{
    struct offset_map *m = get_map(r);
    size_t before = offset_map_memory(m);

    for (int32_t i = 0; i < n; i++)
        offset_map_add(m, runs[i].source, r->pair.target + runs[i].index, runs[i].count);
    changed(r, before);
}

void relay_map_unseen(struct relay *r, int64_t source_end, int64_t target_end)
{
    struct offset_map *m = get_map(r);
    size_t before = offset_map_memory(m);

    offset_map_add_range(m, r->pair.source, MAX(source_end - r->pair.source, 0), r->pair.target,
                         MAX(target_end - r->pair.target, 0), OFFSET_UNSEEN);
    changed(r, before);
}

void relay_map_follow(struct relay *r)
{
    struct offset_map *m = get_map(r);
    size_t before = offset_map_memory(m);

    offset_map_cut_source(m, r->pair.source);
    offset_map_cut_target(m, r->pair.target);
    offset_map_advance(m, r->pair.source, r->pair.target);
    changed(r, before);
}

bool relay_map_go_back(struct relay *r, int64_t n, int64_t *lost)
{
    struct offset_map *m = get_map(r);
    int64_t target = MAX(n < 0 ? r->target_log_end : MIN(r->pair.target - n, r->target_log_end), 0);
    size_t before = offset_map_memory(m);
    bool exact = (n < 0 || offset_map_from_end(m, n, &target)) && offset_map_count_from(m, target, lost);
    struct offset_map_stats s;

    r->pair.source = MIN(offset_map_to_source(m, target).offset, r->pair.source);
    offset_map_cut_target(m, target);
    offset_map_stats(m, &s);
    r->pair.source = exact ? s.source_end : r->pair.source;
    changed(r, before);
    return exact;
}

void relay_map_note_cut(struct relay *r, int64_t from, int64_t to)
{
    struct offset_answer a = offset_map_to_target(get_map(r), from);
    int64_t records = -1;

    if (a.kind == OFFSET_RANGE || !offset_map_count_from(r->map, a.offset, &records))
        records = -1;
    flow_note_loss(r->flow, r, from, to - 1, records,
                   "the source's log was cut (an unclean election): lost there, kept in the copy");
}

void relay_map_take(struct relay *r, struct offset_map *m)
{
    if (m)
        r->flow->maps_memory += offset_map_memory(m);
    r->map = m;
}

struct offset_map *relay_map_give(struct relay *r)
{
    struct offset_map *m = r->map;

    if (m)
        r->flow->maps_memory -= offset_map_memory(m);
    r->map = NULL;
    return m;
}

void relay_map_store(struct relay *r, const struct pair *p, struct buf *value)
{
    struct offset_part rest;
    struct buf bytes;

    if (p->source == r->pair.source && p->target == r->pair.target)
        relay_map_follow(r);
    else
        (void)get_map(r);
    put_parts(r);
    offset_map_stored(r->map, topic_writer_acked(r->flow->notes) + 1);
    buf_init(&bytes, 64 * KiB);
    offset_map_rest(r->map, REST_MOST, &bytes, &rest);
    state_add_rest(value, &rest);
    buf_fini(&bytes);
}

/* What is not committed may be aborted, and written again elsewhere: the map ends before it. */
static bool is_uncommitted(const struct relay *r, bool to_target, int64_t offset, struct offset_answer *out)
{
    const struct pair *c = &r->committed;
    int64_t end = to_target ? c->source : c->target;

    if (!r->has_committed || c->source < 0) {
        *out = (struct offset_answer){ .kind = OFFSET_UNKNOWN };
        return true;
    }
    if (offset < end || r->pair.source < c->source)
        return false;
    *out = (struct offset_answer){ .kind = offset == end ? OFFSET_END : OFFSET_NOT_YET,
                                   .offset = to_target ? c->target : c->source, .of = end, .short_by = offset - end };
    return true;
}

struct offset_answer relay_map_answer(struct relay *r, bool to_target, int64_t offset)
{
    struct offset_answer a;

    if (!r->has_pair || r->pair.source < 0)
        return (struct offset_answer){ .kind = OFFSET_UNKNOWN };
    if (r->flow->txn && is_uncommitted(r, to_target, offset, &a))
        return a;
    if (r->registered) /* else the end moves with the pair that is on its way to be stored */
        relay_map_follow(r);
    return to_target ? offset_map_to_target(get_map(r), offset) : offset_map_to_source(get_map(r), offset);
}

void relay_map_free(struct relay *r)
{
    if (r->map)
        r->flow->maps_memory -= offset_map_memory(r->map);
    offset_map_free(&r->map);
}
