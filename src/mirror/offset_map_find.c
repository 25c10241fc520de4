/* offset_map_find.c -- questions to an offset map.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/offset_map_int.h"

void offset_walk_init(struct offset_walk *w, const struct offset_map *m, size_t part)
{
    bool open = part == m->n;
    struct str bytes = open ? buf_str(&m->bytes) : str_of((char *)m->blocks[part].bytes, m->blocks[part].n);

    w->m = m;
    w->reader = offset_reader_of(bytes, offset_part_begin(m, part, true), offset_part_begin(m, part, false));
    w->stage = open ? 0 : 3;
}

bool offset_walk_next(struct offset_walk *w, struct offset_group *out)
{
    const struct offset_map *m = w->m;

    if (offset_reader_next(&w->reader, out))
        return true;
    if (w->stage == 0) {
        w->stage = 1;
        *out = (struct offset_group){ .step = m->again, .times = m->times, .source = w->reader.source,
                                      .target = w->reader.target };
        if (m->times)
            return true;
    }
    if (w->stage == 1) {
        w->stage = 2;
        *out = (struct offset_group){ .step = m->run, .times = 1, .source = m->at_source, .target = m->at_target };
        return m->has_run;
    }
    return false;
}

size_t offset_part_find(const struct offset_map *m, bool source, int64_t at)
{
    size_t low = 0, high = m->n; /* the answer is in [low, high] */

    while (low < high) {
        size_t mid = low + (high - low + 1) / 2;

        if (offset_part_begin(m, mid, source) <= at)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* A group as the asked side sees it. */
struct seen {
    int64_t from, gap, n;             /* of the asked side */
    int64_t to, other_gap, other_n;   /* of the other */
};

static struct seen see(const struct offset_group *g, bool source)
{
    const struct offset_step *s = &g->step;

    if (source)
        return (struct seen){ g->source, s->source_gap, s->source_n, g->target, s->target_gap, s->target_n };
    return (struct seen){ g->target, s->target_gap, s->target_n, g->source, s->source_gap, s->source_n };
}

/* The answer when `at` lies in the group. */
static bool look_in(const struct offset_group *g, bool source, int64_t at, struct offset_answer *out)
{
    struct seen s = see(g, source);
    int64_t span = s.gap + s.n;
    int64_t k = span ? (at - s.from) / span : g->times;
    int64_t in, to;

    if (k >= g->times)
        return false;
    in = (at - s.from) % span - s.gap;
    to = s.to + k * (s.other_gap + s.other_n) + s.other_gap;
    if (g->step.reason)
        *out = (struct offset_answer){ .kind = OFFSET_RANGE, .reason = g->step.reason, .offset = to,
                                       .last = to + s.other_n, .of = at };
    else
        *out = (struct offset_answer){ .kind = in < 0 ? OFFSET_NEXT : OFFSET_EXACT, .offset = to + MAX(in, 0),
                                       .of = at - MIN(in, 0) };
    return true;
}

static struct offset_answer find(const struct offset_map *m, bool source, int64_t at)
{
    int64_t begin = source ? m->source : m->target, other_begin = source ? m->target : m->source;
    int64_t end = source ? m->source_end : m->target_end, other_end = source ? m->target_end : m->source_end;
    struct offset_answer a = { .kind = OFFSET_END, .offset = other_end, .of = end };
    size_t part = offset_part_find(m, source, at);
    struct offset_walk w;
    struct offset_group g;
    int64_t other = offset_part_begin(m, part, !source);

    if (at >= end) {
        a.kind = at == end ? OFFSET_END : OFFSET_NOT_YET;
        a.short_by = at - end;
        return a;
    }
    if (at < begin && m->before)
        return (struct offset_answer){ .kind = OFFSET_RANGE, .reason = m->before, .last = other_begin, .of = at };
    offset_walk_init(&w, m, part);
    while (offset_walk_next(&w, &g)) {
        if (look_in(&g, source, MAX(at, begin), &a)) {
            a.kind = at < begin && a.kind == OFFSET_EXACT ? OFFSET_NEXT : a.kind;
            return a;
        }
        other = see(&g, source).to + g.times * (see(&g, source).other_gap + see(&g, source).other_n);
    }
    if (part < m->n) /* the block that was here is lost */
        return (struct offset_answer){ .kind = OFFSET_RANGE, .reason = OFFSET_LOST, .offset = other,
                                       .last = offset_part_begin(m, part + 1, !source), .of = at };
    return a;
}

struct offset_answer offset_map_to_target(const struct offset_map *m, int64_t source)
{
    return find(m, true, source);
}

struct offset_answer offset_map_to_source(const struct offset_map *m, int64_t target)
{
    return find(m, false, target);
}

/* A part's records, and how many of them lie after its last range; where it ends. */
struct tally {
    int64_t records, after_range, source_end, target_end;
    bool range;
};

static struct tally tally(const struct offset_map *m, size_t part)
{
    struct tally t = { .source_end = offset_part_begin(m, part, true),
                       .target_end = offset_part_begin(m, part, false) };
    struct offset_walk w;
    struct offset_group g;

    offset_walk_init(&w, m, part);
    while (offset_walk_next(&w, &g)) {
        t.source_end = g.source + g.times * (g.step.source_gap + g.step.source_n);
        t.target_end = g.target + g.times * (g.step.target_gap + g.step.target_n);
        t.records += g.step.reason ? 0 : g.times * g.step.target_n;
        t.after_range += g.times * g.step.target_n;
        if (g.step.reason) {
            t.after_range = 0;
            t.range = true;
        }
    }
    return t;
}

/* The target offset of the record with this index, among the exact ones of a part. */
static int64_t nth_of(const struct offset_map *m, size_t part, int64_t index)
{
    struct offset_walk w;
    struct offset_group g;

    offset_walk_init(&w, m, part);
    while (offset_walk_next(&w, &g)) {
        int64_t n = g.step.target_n;

        if (g.step.reason)
            continue;
        if (index < n * g.times)
            return g.target + index / n * (g.step.target_gap + n) + g.step.target_gap + index % n;
        index -= n * g.times;
    }
    return -1;
}

/* The block after a lost one does not begin where the one before ends. */
static bool is_hole_before(const struct offset_map *m, size_t part, const struct tally *t)
{
    return part < m->n && (t->source_end != offset_part_begin(m, part + 1, true) ||
                           t->target_end != offset_part_begin(m, part + 1, false));
}

bool offset_map_from_end(const struct offset_map *m, int64_t n, int64_t *target)
{
    if (n < 1)
        return false;
    for (size_t part = m->n;; part--) {
        struct tally t = tally(m, part);

        if (is_hole_before(m, part, &t))
            return false;
        if (n <= t.after_range) {
            *target = nth_of(m, part, t.records - n);
            return true;
        }
        if (t.range || part == 0)
            return false;
        n -= t.records;
    }
}

bool offset_map_count_from(const struct offset_map *m, int64_t target, int64_t *records)
{
    size_t first = offset_part_find(m, false, target);

    *records = 0;
    if (target < m->target && m->before)
        return false;
    for (size_t part = first; part <= m->n; part++) {
        struct tally t = tally(m, part);
        struct offset_walk w;
        struct offset_group g;

        if (is_hole_before(m, part, &t))
            return false;
        offset_walk_init(&w, m, part);
        while (offset_walk_next(&w, &g)) {
            int64_t span = g.step.target_gap + g.step.target_n;
            int64_t k = target <= g.target || !span ? 0 : MIN((target - g.target) / span, g.times);
            int64_t in = k < g.times ? target - (g.target + k * span) - g.step.target_gap : 0;

            if (k == g.times || !g.step.target_n)
                continue;
            if (g.step.reason)
                return false;
            *records += (g.times - k) * g.step.target_n - MAX(in, 0);
        }
    }
    return true;
}

void offset_map_stats(const struct offset_map *m, struct offset_map_stats *out)
{
    *out = (struct offset_map_stats){ .source = m->source, .target = m->target, .source_end = m->source_end,
                                      .target_end = m->target_end, .memory = offset_map_memory(m),
                                      .encoded = m->block_bytes + m->bytes.n, .blocks = (uint32_t)m->n };
    for (size_t i = 0; i < m->n; i++)
        out->thinned += m->blocks[i].thin;
}
