/* offset_map_store.c -- an offset map in parts, and back from them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/offset_map_int.h"

#include "base/alloc.h"

#include <string.h>

bool offset_map_is_dirty(const struct offset_map *m)
{
    return m->dirty;
}

bool offset_map_next_part(const struct offset_map *m, struct offset_part *out)
{
    if (!m->dirty)
        return false;
    for (size_t i = 0; i < m->n; i++) {
        const struct offset_block *b = &m->blocks[i];

        if (!b->changed)
            continue;
        *out = (struct offset_part){ .number = b->number, .source = b->source, .target = b->target,
                                     .runs = str_of((char *)b->bytes, b->n) };
        return true;
    }
    return false;
}

void offset_map_part_put(struct offset_map *m, uint32_t number, uint64_t ticket)
{
    bool more = false;

    for (size_t i = 0; i < m->n; i++) {
        struct offset_block *b = &m->blocks[i];

        if (b->number == number) {
            b->changed = false;
            b->ticket = b->ticket ? b->ticket : ticket;
        }
        more = more || b->changed;
    }
    m->dirty = more || m->gone_n > 0;
}

bool offset_map_take_gone(struct offset_map *m, uint32_t *number)
{
    m->dirty = false; /* the parts were put before */
    while (m->gone_n) {
        bool again = false; /* the number is in use once more */

        *number = m->gone[--m->gone_n];
        for (size_t i = 0; i < m->n && !again; i++)
            again = m->blocks[i].number == *number;
        if (!again)
            return true;
    }
    return false;
}

void offset_map_stored(struct offset_map *m, uint64_t ticket)
{
    m->stored = MAX(m->stored, ticket);
}

static bool is_stored(const struct offset_map *m, const struct offset_block *b)
{
    return b->ticket && b->ticket <= m->stored;
}

void offset_map_rest(const struct offset_map *m, size_t room, struct buf *out, struct offset_part *part)
{
    size_t first = m->n;
    size_t bytes = m->bytes.n;

    while (first > 0 && !is_stored(m, &m->blocks[first - 1]) && bytes + m->blocks[first - 1].n <= room)
        bytes += m->blocks[--first].n;
    *part = (struct offset_part){ .number = first < m->n ? m->blocks[first].number : m->next_number,
                                  .source = offset_part_begin(m, first, true),
                                  .target = offset_part_begin(m, first, false), .source_end = m->source_end,
                                  .target_end = m->target_end, .before = m->before };
    buf_clear(out);
    for (size_t i = first; i < m->n; i++)
        buf_put(out, m->blocks[i].bytes, m->blocks[i].n);
    buf_put(out, m->bytes.p, m->bytes.n);
    if (m->times)
        offset_step_put(out, &m->again);
    if (m->times > 1)
        offset_step_put_again(out, m->times - 1);
    if (m->has_run)
        offset_step_put(out, &m->run);
    part->runs = buf_str(out);
}

/* Where a part ends; false when its bytes make no sense. */
static bool measure(const struct offset_part *p, int64_t *source, int64_t *target, bool *thin)
{
    struct offset_reader r = offset_reader_of(p->runs, p->source, p->target);
    struct offset_group g;

    *thin = true;
    while (offset_reader_next(&r, &g))
        *thin = *thin && g.step.reason == OFFSET_THINNED;
    *source = r.source;
    *target = r.target;
    return !r.bad && p->source >= 0 && p->target >= 0 && p->runs.n <= UINT32_MAX;
}

static void restore_block(struct offset_map *m, const struct offset_part *p)
{
    int64_t source, target;
    bool thin;

    if (!measure(p, &source, &target, &thin) || !p->runs.n || p->source < m->at_source || p->target < m->at_target)
        return;
    if (m->n == m->room) {
        m->room = MAX(m->room + m->room / 2, 4);
        m->blocks = mem_resize(m->blocks, m->room, sizeof(*m->blocks));
    }
    if (m->n == 0) {
        m->source = p->source;
        m->target = p->target;
    }
    m->blocks[m->n] = (struct offset_block){ .source = p->source, .target = p->target, .n = (uint32_t)p->runs.n,
                                             .number = p->number, .ticket = 1, .thin = thin,
                                             .bytes = mem_new(p->runs.n) };
    memcpy(m->blocks[m->n++].bytes, p->runs.p, p->runs.n);
    m->block_bytes += p->runs.n;
    m->at_source = source;
    m->at_target = target;
}

static void open_at(struct offset_map *m, int64_t source, int64_t target)
{
    m->open_source = m->at_source = source;
    m->open_target = m->at_target = target;
    m->source_end = MAX(m->source_end, source);
    m->target_end = MAX(m->target_end, target);
}

static void restore_rest(struct offset_map *m, const struct offset_part *rest)
{
    struct offset_reader r = offset_reader_of(rest->runs, rest->source, rest->target);
    struct offset_group g;

    if (m->n == 0) {
        m->source = rest->source;
        m->target = rest->target;
        m->before = rest->before < OFFSET_REASONS ? rest->before : OFFSET_LOST;
    }
    open_at(m, rest->source, rest->target);
    while (offset_reader_next(&r, &g))
        offset_map_push(m, &g.step, g.times);
}

/* What the pair covers beyond the map. */
static void reach_pair(struct offset_map *m, int64_t source, int64_t target)
{
    offset_map_cut_source(m, source);
    offset_map_cut_target(m, target);
    if (target > m->target_end)
        offset_map_add_range(m, m->source_end, MAX(source - m->source_end, 0), m->target_end, target - m->target_end,
                             OFFSET_UNSEEN);
    offset_map_advance(m, source, target);
}

struct offset_map *offset_map_restore(const struct offset_part *parts, size_t n, const struct offset_part *rest,
                                      int64_t pair_source, int64_t pair_target)
{
    struct offset_map *m = offset_map_new(pair_source, pair_target, OFFSET_LOST);
    int64_t source, target;
    bool thin, good;

    if (!rest)
        return m;
    m->at_source = m->at_target = 0;
    m->stored = 1; /* the ticket of what is stored already */
    m->next_number = rest->number;
    for (size_t i = 0; i < n; i++)
        if (parts[i].number < rest->number)
            restore_block(m, &parts[i]);
    good = measure(rest, &source, &target, &thin) && rest->source >= m->at_source && rest->target >= m->at_target &&
           source <= rest->source_end && target <= rest->target_end;
    m->source_end = m->target_end = 0;
    if (good) {
        m->before = rest->before < OFFSET_REASONS ? rest->before : OFFSET_LOST;
        restore_rest(m, rest);
        offset_map_advance(m, rest->source_end, rest->target_end);
    } else if (m->n) {
        open_at(m, m->at_source, m->at_target);
        offset_map_add_range(m, m->at_source, MAX(pair_source - m->at_source, 0), m->at_target,
                             MAX(pair_target - m->at_target, 0), OFFSET_LOST);
    } else {
        offset_map_free(&m);
        return offset_map_new(pair_source, pair_target, OFFSET_LOST);
    }
    reach_pair(m, pair_source, pair_target);
    return m;
}
