/* suggest.c -- nearest name by edit distance.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/suggest.h"

#define FAR (SUGGEST_NAME_MAX + 1)

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool same(struct str a, size_t i, struct str b, size_t j)
{
    return lower(a.p[i]) == lower(b.p[j]);
}

size_t suggest_distance(struct str a, struct str b, size_t most)
{
    /* Three rows of the usual table: two back, one back, this one. */
    uint8_t rows[3][SUGGEST_NAME_MAX + 1];
    uint8_t *two = rows[0], *one = rows[1], *now = rows[2];

    if (a.n > SUGGEST_NAME_MAX || b.n > SUGGEST_NAME_MAX ||
        (a.n > b.n ? a.n - b.n : b.n - a.n) > most)
        return most + 1;
    for (size_t j = 0; j <= b.n; j++)
        one[j] = (uint8_t)j;
    /* Only the band where the distance can be `most` is filled in; what lies beside it is too far. */
    for (size_t i = 1; i <= a.n; i++) {
        uint8_t *free_row = two;
        size_t least = i;
        size_t from = i > most ? i - most : 1, to = MIN(b.n, i + most);

        now[from - 1] = (uint8_t)(from == 1 ? i : FAR);
        if (to < b.n)
            now[to + 1] = FAR;
        for (size_t j = from; j <= to; j++) {
            size_t d = (size_t)one[j - 1] + !same(a, i - 1, b, j - 1);

            d = MIN(d, (size_t)one[j] + 1);
            d = MIN(d, (size_t)now[j - 1] + 1);
            if (i > 1 && j > 1 && same(a, i - 1, b, j - 2) && same(a, i - 2, b, j - 1))
                d = MIN(d, (size_t)two[j - 2] + 1);
            now[j] = (uint8_t)d;
            least = MIN(least, d);
        }
        if (least > most + 1) /* a swap can still make up for one */
            return most + 1;
        two = one;
        one = now;
        now = free_row;
    }
    return MIN((size_t)one[b.n], most + 1);
}

/* Bit k of a letter's four says that it occurs more than k times. One edit takes at most one bit out and brings one in,
 * so the bits that only one of two names has are the least that they can differ by: most candidates need no table. */
struct suggest_mark suggest_mark(struct str s)
{
    struct suggest_mark m = { { 0, 0 } };

    for (size_t i = 0; i < s.n; i++) {
        unsigned letter = (unsigned)lower(s.p[i]) & 31;
        uint64_t *bits = &m.bits[letter / 16];
        unsigned at = letter % 16 * 4;

        *bits |= ((*bits << 1 | UINT64_C(1) << at) & UINT64_C(15) << at);
    }
    return m;
}

static size_t least_distance(const struct suggest_mark *a, const struct suggest_mark *b)
{
    int more = 0, less = 0;

    for (int i = 0; i < 2; i++) {
        more += __builtin_popcountll(a->bits[i] & ~b->bits[i]);
        less += __builtin_popcountll(b->bits[i] & ~a->bits[i]);
    }
    return (size_t)MAX(more, less);
}

void suggest_init(struct suggest *s, struct str wrong)
{
    *s = (struct suggest){ .wrong = wrong, .best = STR_NULL, .mark = suggest_mark(wrong) };
}

/* emit.heartbeats of emit.heartbeats.enabled */
static bool is_beginning(struct str s, struct str of)
{
    return s.n >= 4 && of.n > s.n && str_starts(of, s) && of.p[s.n] == '.';
}

void suggest_offer(struct suggest *s, struct str candidate)
{
    struct suggest_mark m = suggest_mark(candidate);

    suggest_offer_marked(s, candidate, &m);
}

void suggest_offer_marked(struct suggest *s, struct str candidate, const struct suggest_mark *m)
{
    size_t limit = MAX(MAX(candidate.n, s->wrong.n) / 4, 1);
    size_t most = str_is_null(s->best) ? limit : MIN(limit, s->distance - 1);
    size_t d;

    if (!str_is_null(s->best) && s->distance == 0)
        return;
    d = most + 1;
    if (candidate.n <= s->wrong.n + most && s->wrong.n <= candidate.n + most &&
        least_distance(&s->mark, m) <= most)
        d = suggest_distance(s->wrong, candidate, most);
    if (d > limit && is_beginning(s->wrong, candidate))
        d = limit;
    if (d > most)
        return;
    s->best = candidate;
    s->distance = d;
}
