/* relay_map.c -- keeps a partition's offset map in step with what is acknowledged.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/relay_map.h"

#include "base/alloc.h"
#include "mirror/flow_internal.h"

#include <string.h>

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
        f->maps_memory += offset_map_memory(largest->map) - before;
    }
}

static void changed(struct relay *r, size_t before)
{
    r->flow->maps_memory += offset_map_memory(r->map) - before;
    if (r->flow->maps_memory > r->flow->maps_memory_max)
        keep_limit(r->flow);
}

void relay_map_acked(struct relay *r, const struct outgoing *o, int64_t target)
{
    const struct note *note = o->note;
    struct offset_map *m = get_map(r);
    size_t before = offset_map_memory(m);

    if (!note)
        offset_map_add(m, o->source_base, target, o->count);
    for (int32_t i = 0; note && i < note->n; i++)
        offset_map_add(m, note->runs[i].source, target + note->runs[i].index, note->runs[i].count);
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

void relay_map_free(struct relay *r)
{
    if (r->map)
        r->flow->maps_memory -= offset_map_memory(r->map);
    offset_map_free(&r->map);
}
