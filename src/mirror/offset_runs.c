/* offset_runs.c -- steps of an offset map as bytes, both ways.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/offset_runs.h"

#define OTHER 0xC0
#define OTHER_TARGET_GAP 1
#define OTHER_RANGE 2
#define AGAIN 0xE0

bool offset_step_eq(const struct offset_step *a, const struct offset_step *b)
{
    return a->source_gap == b->source_gap && a->target_gap == b->target_gap && a->source_n == b->source_n &&
           a->target_n == b->target_n && a->reason == b->reason;
}

static void put_number(struct buf *out, int64_t n)
{
    uint64_t v = (uint64_t)n;

    while (v >= 0x80) {
        buf_put_char(out, (char)(v | 0x80));
        v >>= 7;
    }
    buf_put_char(out, (char)v);
}

void offset_step_put(struct buf *out, const struct offset_step *s)
{
    bool plain = s->target_gap == 0 && s->reason == 0;

    if (plain && s->source_gap == 1 && s->source_n <= 128) {
        buf_put_char(out, (char)(s->source_n - 1));
        return;
    }
    if (plain && s->source_gap >= 1 && s->source_gap <= 8 && s->source_n <= 8) {
        buf_put_char(out, (char)(0x80 | (s->source_gap - 1) << 3 | (s->source_n - 1)));
        return;
    }
    buf_put_char(out, (char)(OTHER | (s->target_gap ? OTHER_TARGET_GAP : 0) | (s->reason ? OTHER_RANGE : 0)));
    put_number(out, s->source_gap);
    put_number(out, s->source_n);
    if (s->target_gap)
        put_number(out, s->target_gap);
    if (s->reason) {
        put_number(out, s->target_n);
        put_number(out, s->reason);
    }
}

void offset_step_put_again(struct buf *out, int64_t times)
{
    buf_put_char(out, (char)AGAIN);
    put_number(out, times);
}

struct offset_reader offset_reader_of(struct str bytes, int64_t source, int64_t target)
{
    const unsigned char *p = bytes.n ? (const void *)bytes.p : (const void *)"";

    return (struct offset_reader){ .p = p, .end = p + bytes.n, .source = source, .target = target };
}

static int64_t read_number(struct offset_reader *r)
{
    uint64_t v = 0;

    for (int shift = 0; shift < 63; shift += 7) {
        if (r->p == r->end)
            break;
        v |= (uint64_t)(*r->p & 0x7f) << shift;
        if (!(*r->p++ & 0x80))
            return (int64_t)v;
    }
    r->bad = true;
    return 0;
}

static void read_other(struct offset_reader *r, unsigned head, struct offset_step *s)
{
    int64_t reason;

    s->source_gap = read_number(r);
    s->source_n = s->target_n = read_number(r);
    if (head & OTHER_TARGET_GAP)
        s->target_gap = read_number(r);
    if (head & OTHER_RANGE) {
        s->target_n = read_number(r);
        reason = read_number(r);
        r->bad = r->bad || reason < 1 || reason > UINT8_MAX;
        s->reason = (uint8_t)reason;
    } else if (s->source_n == 0) {
        r->bad = true;
    }
}

/* Moves over `times` steps; false when they pass the last offset that there can be. */
static bool move(struct offset_reader *r, const struct offset_step *s, int64_t times)
{
    int64_t by_source, by_target;

    return !__builtin_add_overflow(s->source_gap, s->source_n, &by_source) &&
           !__builtin_add_overflow(s->target_gap, s->target_n, &by_target) &&
           !__builtin_mul_overflow(by_source, times, &by_source) &&
           !__builtin_mul_overflow(by_target, times, &by_target) &&
           !__builtin_add_overflow(r->source, by_source, &r->source) &&
           !__builtin_add_overflow(r->target, by_target, &r->target);
}

bool offset_reader_next(struct offset_reader *r, struct offset_group *out)
{
    struct offset_step s = { 0 };
    int64_t times = 1;
    unsigned head;

    if (r->bad || r->p == r->end)
        return false;
    head = *r->p++;
    if (head < 0x80) {
        s = (struct offset_step){ .source_gap = 1, .source_n = head + 1, .target_n = head + 1 };
    } else if (head < OTHER) {
        s.source_gap = (head >> 3 & 7) + 1;
        s.source_n = s.target_n = (head & 7) + 1;
    } else if ((head & ~3u) == OTHER) {
        read_other(r, head, &s);
    } else if (head == AGAIN) {
        s = r->last;
        times = read_number(r);
        r->bad = r->bad || times < 1 || (s.source_n == 0 && s.target_n == 0);
    } else {
        r->bad = true;
    }
    *out = (struct offset_group){ .step = s, .times = times, .source = r->source, .target = r->target };
    if (r->bad || !move(r, &s, times))
        r->bad = true;
    r->last = s;
    return !r->bad;
}
