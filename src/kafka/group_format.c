/* group_format.c -- metadata and assignment of our group protocol, both ways.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/group_format.h"

#include "wire/prim.h"

#define FORMAT_VERSION 0

static bool has(const struct group_slots *s, int i)
{
    return s->bits[i / 64] >> (i % 64) & 1;
}

void group_slots_all(struct group_slots *s)
{
    memset(s, 0xff, sizeof(*s));
}

void group_slots_none(struct group_slots *s)
{
    memset(s, 0, sizeof(*s));
}

int32_t group_slots_count(const struct group_slots *s)
{
    int32_t n = 0;

    for (size_t i = 0; i < COUNT(s->bits); i++)
        n += __builtin_popcountll(s->bits[i]);
    return n;
}

/* The end of the run of equal slots that begins at i. */
static int run_end(const struct group_slots *s, int i)
{
    int end = i;

    while (end < GROUP_SLOTS && has(s, end) == has(s, i))
        end++;
    return end;
}

static void put_slots(struct buf *out, const struct group_slots *s)
{
    int32_t ranges = 0;

    for (int i = 0; i < GROUP_SLOTS; i = run_end(s, i))
        ranges += has(s, i);
    put_i32(out, ranges);
    for (int i = 0; i < GROUP_SLOTS; i = run_end(s, i)) {
        if (!has(s, i))
            continue;
        put_i16(out, (int16_t)i);
        put_i16(out, (int16_t)(run_end(s, i) - i));
    }
}

static void read_slots(struct reader *r, struct group_slots *s)
{
    int32_t ranges = read_i32(r);

    memset(s, 0, sizeof(*s));
    if (ranges < 0 || ranges > GROUP_SLOTS)
        reader_spoil(r);
    for (int32_t i = 0; i < ranges && !r->bad; i++) {
        int first = read_i16(r), count = read_i16(r);

        if (first < 0 || count < 0 || first + count > GROUP_SLOTS)
            reader_spoil(r);
        for (int k = first; k < first + count && !r->bad; k++)
            s->bits[k / 64] |= UINT64_C(1) << (k % 64);
    }
}

void group_format_metadata(struct buf *out, const struct group_metadata *m)
{
    put_i16(out, FORMAT_VERSION);
    put_i32(out, m->generation);
    put_slots(out, &m->held);
    put_string(out, str_part(m->instance, 0, GROUP_INSTANCE_MAX), false);
}

enum err group_parse_metadata(struct str bytes, struct group_metadata *out)
{
    struct reader r = reader_of(bytes.p, bytes.n);
    struct group_metadata m;

    if (read_i16(&r) < 0)
        return E_MALFORMED;
    m.generation = read_i32(&r);
    read_slots(&r, &m.held);
    m.instance = read_string(&r, false);
    if (r.bad)
        return E_MALFORMED;
    *out = m;
    return E_OK;
}

void group_format_assignment(struct buf *out, const struct group_assignment *a)
{
    put_i16(out, FORMAT_VERSION);
    put_i32(out, a->members);
    put_string(out, str_part(a->holder, 0, GROUP_INSTANCE_MAX), false);
    put_slots(out, &a->slots);
}

enum err group_parse_assignment(struct str bytes, struct group_assignment *out)
{
    struct reader r = reader_of(bytes.p, bytes.n);
    struct group_assignment a = { .members = 0 };

    if (bytes.n == 0) {
        *out = a;
        return E_OK;
    }
    if (read_i16(&r) < 0)
        return E_MALFORMED;
    a.members = read_i32(&r);
    a.holder = read_string(&r, false);
    read_slots(&r, &a.slots);
    if (r.bad)
        return E_MALFORMED;
    *out = a;
    return E_OK;
}

int32_t group_choose(const struct group_metadata *members, int32_t n, int32_t otherwise)
{
    int32_t best = -1;

    for (int32_t i = 0; i < n; i++)
        if (group_slots_count(&members[i].held) &&
            (best < 0 || members[i].generation > members[best].generation))
            best = i;
    return best >= 0 ? best : otherwise;
}
