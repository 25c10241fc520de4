/* overlap.c -- finds the source's records in the tail of a copy.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The copy is walked once. As long as its records are the source's next ones, one by one, nothing is looked up. Where
 * they are not, the place in the source is looked for anew, and only by what stands there once: a record of which the
 * source's list has no second, else a row of two, or of ROW records where times do not count. So a mirror that began
 * again at an older place is followed through its repeats, and records that are all alike (same bytes, same millisecond)
 * never lead to a wrong place: what cannot be told apart is undecided, and counts as not copied.
 *
 * `front` is how far the source is known to be in the copy, without a hole: a record that is missing there stops it, unless
 * compaction explains that, which leaves a later record of the same key.
 */
#include "mirror/overlap.h"

#include "base/alloc.h"

#include <string.h>

#define ROW  8 /* without times: records in a row that stand for their place */
#define LOST SIZE_MAX

/* Where a key stands in the source's list; open addressing. */
struct slot {
    uint64_t key;
    uint32_t at;    /* index of the last */
    uint32_t count; /* 0: free */
};

struct table {
    struct slot *slots;
    size_t mask;
};

struct finder {
    const struct overlap_list *source, *copy;
    size_t known;
    bool timed;
    uint64_t *source_keys, *copy_keys;
    struct table single, row;
    struct table later; /* keys of the copy, at their last places; made when first needed */
    size_t next;  /* of the source: what the copy's next record would be; LOST */
    size_t front;
    size_t doubt; /* front may be too far, and is sure up to here; LOST: it is not in doubt */
    bool found;   /* any place */
    struct overlap_answer *out;
};

static uint64_t mix(uint64_t h, uint64_t w)
{
    h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static uint64_t mix_str(uint64_t h, struct str s)
{
    uint64_t w = 0;
    size_t i = 0;

    h = mix(h, s.p ? s.n + 1 : 0); /* null is not empty */
    for (; i + sizeof(w) <= s.n; i += sizeof(w)) {
        memcpy(&w, s.p + i, sizeof(w));
        h = mix(h, w);
    }
    if (i < s.n) {
        w = 0;
        memcpy(&w, s.p + i, s.n - i);
        h = mix(h, w);
    }
    return h;
}

static uint64_t content_of(const struct record *r)
{
    struct str headers = r->headers;
    struct record_header header;
    uint64_t h = mix(UINT64_C(0x2545f4914f6cdd1d), (uint64_t)r->header_count);

    h = mix_str(mix_str(h, r->key), r->value);
    while (record_header_next(&headers, &header))
        h = mix_str(mix_str(h, header.key), header.value);
    return mix(h, h >> 32);
}

void overlap_add(struct overlap_list *l, const struct record *r, int64_t time_ms, int64_t offset)
{
    if (l->n == l->room) {
        l->room = MAX(l->room * 2, 256);
        l->at = mem_resize(l->at, l->room, sizeof(*l->at));
    }
    l->at[l->n++] = (struct overlap_record){ .content = content_of(r),
                                             .key = str_is_null(r->key) ? 0 : mix_str(0, r->key) | 1,
                                             .time_ms = time_ms,
                                             .offset = offset };
}

void overlap_free(struct overlap_list *l)
{
    mem_free(l->at);
    *l = (struct overlap_list){ NULL, 0, 0 };
}

static uint64_t *make_keys(const struct overlap_list *l, bool timed)
{
    uint64_t *keys = mem_array(MAX(l->n, 1), sizeof(*keys));

    for (size_t i = 0; i < l->n; i++)
        keys[i] = timed ? mix(l->at[i].content, (uint64_t)l->at[i].time_ms) : l->at[i].content;
    return keys;
}

static struct slot *slot_of(const struct table *t, uint64_t key)
{
    size_t i = (size_t)(key ^ (key >> 31)) & t->mask;

    while (t->slots[i].count && t->slots[i].key != key)
        i = (i + 1) & t->mask;
    return &t->slots[i];
}

static void table_init(struct table *t, size_t n)
{
    size_t room = 16;

    while (room < n * 2)
        room *= 2;
    t->slots = mem_array(room, sizeof(*t->slots));
    t->mask = room - 1;
}

static void table_put(struct table *t, uint64_t key, size_t at)
{
    struct slot *s = slot_of(t, key);

    s->key = key;
    s->at = (uint32_t)at;
    s->count++;
}

static size_t row_length(const struct finder *f)
{
    return f->timed ? 2 : ROW;
}

/* Of the records up to index i, row_length of them; i must have so many before it. */
static uint64_t row_key(const struct finder *f, const uint64_t *keys, size_t i)
{
    uint64_t h = 0;

    for (size_t k = row_length(f); k > 0; k--)
        h = mix(h, keys[i + 1 - k]);
    return h;
}

static void fill_tables(struct finder *f)
{
    size_t n = f->source->n;

    table_init(&f->single, n);
    table_init(&f->row, n);
    for (size_t i = 0; i < n; i++) {
        table_put(&f->single, f->source_keys[i], i);
        if (i + 1 >= row_length(f))
            table_put(&f->row, row_key(f, f->source_keys, i), i);
    }
}

/* Whether the source's records from front to `at` are missing because the copy, from its record i on, is compacted. */
static bool is_compacted(struct finder *f, size_t at, size_t i)
{
    if (!f->later.slots) {
        table_init(&f->later, f->copy->n);
        for (size_t k = 0; k < f->copy->n; k++)
            table_put(&f->later, f->copy->at[k].key, k);
    }
    for (size_t k = f->front; k < at; k++) {
        uint64_t key = f->source->at[k].key;
        const struct slot *s = slot_of(&f->later, key);

        if (!key || !s->count || s->at < i)
            return false;
    }
    return true;
}

/* Where the copy's record i stands in the source, if that is certain. */
static size_t locate(struct finder *f, size_t i)
{
    const struct slot *s = slot_of(&f->single, f->copy_keys[i]);
    size_t at = LOST;

    if (!s->count)
        return LOST;
    if (f->timed && s->count == 1)
        at = s->at;
    if (at == LOST && i + 1 >= row_length(f)) {
        s = slot_of(&f->row, row_key(f, f->copy_keys, i));
        if (s->count == 1)
            at = s->at;
    }
    /* Older records may look like later ones where times do not count: the first place is among the known. */
    if (!f->timed && at != LOST && at >= (f->found ? f->front : f->known))
        at = LOST;
    return at != LOST && at > f->front && !is_compacted(f, at, i) ? LOST : at;
}

static void recognize(struct finder *f, size_t at)
{
    if (at >= f->front || !f->found)
        f->out->undecided = 0;
    f->found = true;
    if (at >= f->front) {
        f->out->missing += at - f->front;
        f->out->copied++;
        f->front = at + 1;
        f->doubt = LOST;
    } else if (at >= f->known) {
        f->out->repeats++;
    }
    f->next = at + 1;
}

/* More of what is all alike than the source has: some of it is there twice, and it may be any. */
static void begin_doubt(struct finder *f)
{
    size_t low = f->front;

    while (low > f->known && f->source_keys[low - 1] == f->source_keys[f->front - 1])
        low--;
    if (f->doubt == LOST && low < f->front)
        f->doubt = low;
}

/* The copy's record i is not the one that would be next. */
static void search(struct finder *f, size_t i)
{
    size_t at = locate(f, i);
    bool alike = slot_of(&f->single, f->copy_keys[i])->count > 0;

    if (at != LOST) {
        recognize(f, at);
        return;
    }
    if (alike) {
        if (f->next == f->front && f->front > 0 && f->copy_keys[i] == f->source_keys[f->front - 1])
            begin_doubt(f);
        f->out->undecided++;
    } else if (f->found) {
        f->out->others++;
    }
    f->next = LOST;
}

void overlap_find(const struct overlap_list *source, size_t known, const struct overlap_list *copy, bool timed,
                  struct overlap_answer *out)
{
    struct finder f = { .source = source, .copy = copy, .known = known, .timed = timed, .next = LOST,
                        .front = known, .doubt = LOST, .out = out };

    *out = (struct overlap_answer){ .present = known };
    f.source_keys = make_keys(source, timed);
    f.copy_keys = make_keys(copy, timed);
    fill_tables(&f);
    for (size_t i = 0; i < copy->n; i++) {
        if (f.next < source->n && f.copy_keys[i] == f.source_keys[f.next])
            recognize(&f, f.next);
        else
            search(&f, i);
    }
    if (f.doubt != LOST) {
        out->undecided += f.front - f.doubt;
        f.front = f.doubt;
    }
    out->present = f.front;
    mem_free(f.source_keys);
    mem_free(f.copy_keys);
    mem_free(f.single.slots);
    mem_free(f.row.slots);
    mem_free(f.later.slots);
}
