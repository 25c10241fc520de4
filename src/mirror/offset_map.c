/* offset_map.c -- an offset map grows at its end, is cut there, and is thinned at its beginning.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/offset_map_int.h"

#include "base/alloc.h"
#include "base/must.h"

#include <string.h>

struct offset_map *offset_map_new(int64_t source, int64_t target, enum offset_reason before)
{
    struct offset_map *m = mem_new(sizeof(*m));

    m->source = m->source_end = m->open_source = m->at_source = source;
    m->target = m->target_end = m->open_target = m->at_target = target;
    m->before = (uint8_t)before;
    buf_init(&m->bytes, 64 * MiB);
    return m;
}

void offset_map_free(struct offset_map **mp)
{
    struct offset_map *m = *mp;

    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        mem_free(m->blocks[i].bytes);
    mem_free(m->blocks);
    mem_free(m->gone);
    buf_fini(&m->bytes);
    mem_free(m);
    *mp = NULL;
}

void offset_map_note_gone(struct offset_map *m, uint32_t number)
{
    if (m->gone_n == m->gone_room) {
        m->gone_room = MAX(m->gone_room * 2, 8);
        m->gone = mem_resize(m->gone, m->gone_room, sizeof(*m->gone));
    }
    m->gone[m->gone_n++] = number;
    m->dirty = true;
}

static void flush_again(struct offset_map *m)
{
    if (m->times)
        offset_step_put(&m->bytes, &m->again);
    if (m->times > 1)
        offset_step_put_again(&m->bytes, m->times - 1);
    m->times = 0;
}

static void close_block(struct offset_map *m)
{
    struct offset_block *b;

    flush_again(m);
    if (m->n == m->room) {
        m->room = MAX(m->room + m->room / 2, 4);
        m->blocks = mem_resize(m->blocks, m->room, sizeof(*m->blocks));
    }
    b = &m->blocks[m->n++];
    *b = (struct offset_block){ .source = m->open_source, .target = m->open_target, .changed = true,
                                .bytes = mem_new(m->bytes.n), .n = (uint32_t)m->bytes.n,
                                .number = m->next_number++ };
    memcpy(b->bytes, m->bytes.p, m->bytes.n);
    m->block_bytes += m->bytes.n;
    m->dirty = true;
    buf_fini(&m->bytes); /* most partitions close few; the next block begins small */
    m->open_source = m->at_source;
    m->open_target = m->at_target;
}

static void put_steps(struct offset_map *m, const struct offset_step *s, int64_t times)
{
    if (m->times && !offset_step_eq(&m->again, s))
        flush_again(m);
    m->again = *s;
    m->times += times;
    m->at_source += (s->source_gap + s->source_n) * times;
    m->at_target += (s->target_gap + s->target_n) * times;
    if (m->bytes.n >= OFFSET_BLOCK)
        close_block(m);
}

/* The run can grow no more. */
static void end_run(struct offset_map *m)
{
    if (m->has_run)
        put_steps(m, &m->run, 1);
    m->has_run = false;
}

void offset_map_push(struct offset_map *m, const struct offset_step *s, int64_t times)
{
    if (times < 1)
        return;
    end_run(m);
    if (times > 1)
        put_steps(m, s, times - 1);
    m->run = *s;
    m->has_run = true;
    m->source_end = MAX(m->source_end, m->at_source + s->source_gap + s->source_n);
    m->target_end = MAX(m->target_end, m->at_target + s->target_gap + s->target_n);
}

static void add(struct offset_map *m, int64_t source, int64_t source_n, int64_t target, int64_t target_n,
                enum offset_reason reason)
{
    struct offset_step s;

    if (source < m->source_end)
        offset_map_cut_source(m, source);
    if (target < m->target_end)
        offset_map_cut_target(m, target);
    if (m->has_run && m->run.reason == reason &&
        source == m->at_source + m->run.source_gap + m->run.source_n &&
        target == m->at_target + m->run.target_gap + m->run.target_n) {
        m->run.source_n += source_n;
        m->run.target_n += target_n;
    } else {
        end_run(m);
        s = (struct offset_step){ .source_gap = source - m->at_source, .target_gap = target - m->at_target,
                                  .source_n = source_n, .target_n = target_n, .reason = (uint8_t)reason };
        offset_map_push(m, &s, 1);
    }
    m->source_end = source + source_n;
    m->target_end = target + target_n;
}

void offset_map_add(struct offset_map *m, int64_t source, int64_t target, int64_t count)
{
    if (count > 0)
        add(m, source, count, target, count, OFFSET_SURE);
}

void offset_map_add_range(struct offset_map *m, int64_t source, int64_t source_n, int64_t target, int64_t target_n,
                          enum offset_reason reason)
{
    must(reason != OFFSET_SURE && source_n >= 0 && target_n >= 0);
    if (source_n || target_n)
        add(m, source, source_n, target, target_n, reason);
}

void offset_map_advance(struct offset_map *m, int64_t source, int64_t target)
{
    m->source_end = MAX(m->source_end, source);
    m->target_end = MAX(m->target_end, target);
}

/* Empty again, from here on. Blocks that were closed are no more. */
static void restart(struct offset_map *m, int64_t source, int64_t target)
{
    for (size_t i = 0; i < m->n; i++) {
        offset_map_note_gone(m, m->blocks[i].number);
        mem_free(m->blocks[i].bytes);
    }
    m->n = m->block_bytes = 0;
    m->source = m->source_end = m->open_source = m->at_source = source;
    m->target = m->target_end = m->open_target = m->at_target = target;
    m->has_run = false;
    m->times = 0;
    buf_fini(&m->bytes);
}

/* Part i becomes the open one, empty; its bytes go to `out`. What comes after it is no more: its numbers come again. */
static void reopen(struct offset_map *m, size_t i, struct buf *out)
{
    if (i == m->n)
        end_run(m); /* which may close it */
    if (i == m->n) {
        flush_again(m);
        buf_put(out, m->bytes.p, m->bytes.n);
    } else {
        buf_put(out, m->blocks[i].bytes, m->blocks[i].n);
        m->open_source = m->blocks[i].source;
        m->open_target = m->blocks[i].target;
        m->next_number = m->blocks[i].number;
        for (size_t k = i; k < m->n; k++) {
            m->block_bytes -= m->blocks[k].n;
            mem_free(m->blocks[k].bytes);
        }
        m->n = i;
    }
    m->has_run = false;
    m->times = 0;
    buf_clear(&m->bytes);
    m->at_source = m->open_source;
    m->at_target = m->open_target;
}

/* Keeps of a group what lies before the limit on one side; false: the limit was in it. */
static bool keep(struct offset_map *m, const struct offset_group *g, bool source, int64_t limit)
{
    struct offset_step s = g->step;
    int64_t gap = source ? s.source_gap : s.target_gap, n = source ? s.source_n : s.target_n;
    int64_t from = source ? g->source : g->target;
    int64_t whole = gap + n ? MIN(g->times, MAX(limit - from, 0) / (gap + n)) : g->times;

    offset_map_push(m, &s, whole);
    if (whole == g->times)
        return true;
    n = limit - (from + whole * (gap + n)) - gap;
    if (n > 0) {
        if (source || !s.reason)
            s.source_n = n;
        if (!source || !s.reason)
            s.target_n = n;
        offset_map_push(m, &s, 1);
    }
    return false;
}

static void cut(struct offset_map *m, bool source, int64_t limit)
{
    struct offset_reader r;
    struct offset_group g;
    struct buf bytes;

    buf_init(&bytes, 64 * MiB);
    reopen(m, offset_part_find(m, source, limit), &bytes);
    m->source_end = m->at_source;
    m->target_end = m->at_target;
    r = offset_reader_of(buf_str(&bytes), m->open_source, m->open_target);
    while (offset_reader_next(&r, &g))
        if (!keep(m, &g, source, limit))
            break;
    buf_fini(&bytes);
}

void offset_map_cut_source(struct offset_map *m, int64_t source)
{
    int64_t target_end = m->target_end;

    if (source >= m->source_end)
        return;
    if (source <= m->source) {
        restart(m, source, target_end);
        m->before = OFFSET_SURE;
        return;
    }
    cut(m, true, source);
    m->source_end = source;
    m->target_end = target_end; /* the target keeps what the source lost */
}

void offset_map_cut_target(struct offset_map *m, int64_t target)
{
    if (target >= m->target_end)
        return;
    if (target <= m->target) {
        restart(m, m->source, target);
        return;
    }
    cut(m, false, target);
    m->target_end = target;
}

void offset_map_forget(struct offset_map *m, int64_t target)
{
    size_t k = 0;

    while (k < m->n && offset_part_begin(m, k + 1, false) <= target)
        k++;
    if (!k)
        return;
    for (size_t i = 0; i < k; i++) {
        offset_map_note_gone(m, m->blocks[i].number);
        m->block_bytes -= m->blocks[i].n;
        mem_free(m->blocks[i].bytes);
    }
    m->source = offset_part_begin(m, k, true);
    m->target = offset_part_begin(m, k, false);
    m->before = OFFSET_EXPIRED;
    m->n -= k;
    memmove(m->blocks, m->blocks + k, m->n * sizeof(*m->blocks));
}

/* Block i, and the next one if asked for, becomes one range under its own number. */
static void make_thin(struct offset_map *m, size_t i, bool with_next)
{
    struct offset_block *b = &m->blocks[i];
    size_t after = i + 1 + with_next;
    struct offset_step s = { .source_n = offset_part_begin(m, after, true) - b->source,
                             .target_n = offset_part_begin(m, after, false) - b->target,
                             .reason = OFFSET_THINNED };
    struct buf bytes;

    buf_init(&bytes, 64);
    offset_step_put(&bytes, &s);
    m->block_bytes -= b->n;
    mem_free(b->bytes);
    b->bytes = mem_new(bytes.n);
    memcpy(b->bytes, bytes.p, bytes.n);
    b->n = (uint32_t)bytes.n;
    m->block_bytes += bytes.n;
    b->thin = b->changed = m->dirty = true;
    buf_fini(&bytes);
}

static void merge_thin(struct offset_map *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->n; i += 2) {
        if (i + 1 < m->n) {
            make_thin(m, i, true);
            offset_map_note_gone(m, m->blocks[i + 1].number);
            m->block_bytes -= m->blocks[i + 1].n;
            mem_free(m->blocks[i + 1].bytes);
        }
        m->blocks[kept++] = m->blocks[i];
    }
    m->n = kept;
}

bool offset_map_thin(struct offset_map *m)
{
    size_t first = 0, most;

    while (first < m->n && m->blocks[first].thin)
        first++;
    most = (m->n - first + 3) / 4;
    for (size_t i = first; i < first + most; i++)
        make_thin(m, i, false);
    if (most || m->n < 2)
        return most > 0;
    merge_thin(m);
    return true;
}

size_t offset_map_memory(const struct offset_map *m)
{
    return sizeof(*m) + m->room * sizeof(*m->blocks) + m->block_bytes + m->bytes.room +
           m->gone_room * sizeof(*m->gone);
}

const char *offset_kind_name(enum offset_kind k)
{
    static const char *const names[] = { [OFFSET_EXACT] = "exact",         [OFFSET_NEXT] = "next",
                                         [OFFSET_END] = "end",             [OFFSET_RANGE] = "range",
                                         [OFFSET_NOT_YET] = "not-copied-yet", [OFFSET_UNKNOWN] = "unknown" };

    return names[k];
}

const char *offset_reason_text(enum offset_reason r)
{
    static const char *const texts[] = {
        [OFFSET_SURE] = "",
        [OFFSET_THINNED] = "the offset map had outgrown heliostat.offset.map.max",
        [OFFSET_EXPIRED] = "the target's log begins after it",
        [OFFSET_LOST] = "copied before the present state topic was begun, or by another mirror",
        [OFFSET_UNSEEN] = "written while others wrote to the same partition, just before a restart",
    };

    return texts[r];
}
