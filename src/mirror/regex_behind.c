/* regex_behind.c -- turns Java's bounded look-behinds into alternatives of fixed length.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Java tries every length between the least and the most; PCRE2 wants one length per alternative. So a body
 * of two to four characters becomes what of it is two long, or three, or four. The work is counted: a body
 * that would become too large is refused.
 */
#include "mirror/regex_node.h"

#define WORK_MAX 1000000

struct length {
    int64_t min, max;
    bool endless; /* Java sees no maximum */
    bool
        loose; /* Java finds it not deterministic; a repeated group of such has no maximum for it */
};

struct settling {
    struct parser *p;
    int64_t work;
};

static bool tired(struct settling *s)
{
    if (++s->work > WORK_MAX)
        regex_refuse(s->p, "a look-behind of too many lengths");
    return s->p->failed;
}

static struct length measure(struct settling *s, const struct node *n);

static struct length measure_kids(struct settling *s, const struct node *n)
{
    struct length all = { 0 };
    bool alt = n->type == NODE_ALT;

    for (const struct node *k = n->kids; k; k = k->next) {
        struct length one = measure(s, k);

        if (alt && k != n->kids)
            all.min = MIN(all.min, one.min);
        else
            all.min = MIN(all.min + one.min, INT32_MAX);
        all.max = alt ? MAX(all.max, one.max) : MIN(all.max + one.max, INT32_MAX);
        all.endless |= one.endless;
        all.loose |= one.loose || (alt && k->next && !n->certain);
    }
    all.endless |= n->endless;
    return all;
}

static struct length measure_repeat(struct settling *s, const struct node *n)
{
    struct length all = measure(s, n->kids);
    bool optional = n->min == 0 && n->max == 1;

    all.endless |= n->max < 0;
    all.endless |=
        n->kids->type == NODE_GROUP && all.loose && n->how != REPEAT_POSSESSIVE && !optional;
    all.min = MIN(all.min * n->min, INT32_MAX);
    all.max = MIN(all.max * MAX(n->max, 0), INT32_MAX);
    all.loose |= n->min != n->max;
    return all;
}

static struct length measure(struct settling *s, const struct node *n)
{
    if (tired(s))
        return (struct length){ 0 };
    switch ((enum node_type)n->type) {
    case NODE_CHAR:
    case NODE_ONE:
        return (struct length){ .min = 1, .max = 1 };
    case NODE_REF:
        return (struct length){ .endless = true };
    case NODE_EMPTY:
    case NODE_LOOK:
    case NODE_WHERE:
        return (struct length){ 0 };
    case NODE_REPEAT:
        return measure_repeat(s, n);
    default:
        return measure_kids(s, n);
    }
}

static struct node *copy(struct settling *s, const struct node *n)
{
    struct node *c = regex_node(s->p, NODE_EMPTY);

    *c = *n;
    c->next = NULL;
    return c;
}

static struct node *wrap(struct settling *s, enum node_type type, struct node *kids)
{
    struct node *n = regex_node(s->p, type);

    n->kids = kids;
    return n;
}

/* A growing list of alternatives; NULL as long as there is none. */
static void add_alternative(struct settling *s, struct node **alt, struct node *first,
                            struct node *rest)
{
    struct node *seq;

    if (!first || !rest)
        return;
    first->next = rest;
    seq = wrap(s, NODE_SEQ, first);
    if (!*alt)
        *alt = wrap(s, NODE_ALT, NULL);
    seq->next = (*alt)->kids;
    (*alt)->kids = seq;
}

static struct node *cut(struct settling *s, const struct node *n, int64_t length);

/* The nodes from first on, of exactly length characters together. */
static struct node *cut_list(struct settling *s, const struct node *first, int64_t length)
{
    struct node *alt = NULL;
    struct length one;

    if (!first)
        return length == 0 ? regex_node(s->p, NODE_EMPTY) : NULL;
    one = measure(s, first);
    for (int64_t n = one.min; n <= MIN(one.max, length) && !tired(s); n++) {
        struct node *rest = cut_list(s, first->next, length - n);

        if (rest)
            add_alternative(s, &alt, cut(s, first, n), rest);
    }
    return alt;
}

/* n min to max times, of exactly length characters together. Empty rounds can be left out. */
static struct node *cut_repeat(struct settling *s, const struct node *n, struct length times,
                               int64_t length)
{
    struct length one = measure(s, n);
    struct node *alt = NULL;

    if (length == 0 && (times.min == 0 || one.min == 0))
        return regex_node(s->p, NODE_EMPTY);
    if (times.max == 0)
        return NULL;
    times.min = MAX(times.min - 1, 0);
    times.max--;
    for (int64_t k = MAX(one.min, 1); k <= MIN(one.max, length) && !tired(s); k++) {
        struct node *rest = cut_repeat(s, n, times, length - k);

        if (rest)
            add_alternative(s, &alt, cut(s, n, k), rest);
    }
    return alt;
}

/* What of n is exactly length characters long; NULL: nothing. */
static struct node *cut(struct settling *s, const struct node *n, int64_t length)
{
    struct length all = measure(s, n);
    struct node *alt = NULL;

    if (tired(s) || length < all.min || length > all.max)
        return NULL;
    if (all.min == all.max)
        return copy(s, n);
    switch ((enum node_type)n->type) {
    case NODE_SEQ:
        return cut_list(s, n->kids, length);
    case NODE_GROUP:
        if (n->group > 0 && s->p->refs)
            regex_refuse(s->p, "a capturing group in a look-behind of several lengths");
        return cut(s, n->kids, length);
    case NODE_ALT:
        for (const struct node *k = n->kids; k; k = k->next)
            add_alternative(s, &alt, cut(s, k, length), regex_node(s->p, NODE_EMPTY));
        return alt;
    case NODE_REPEAT:
        if (n->how == REPEAT_POSSESSIVE)
            regex_refuse(s->p, "a possessive quantifier in a look-behind of several lengths");
        if (all.min == 0 && n->min > 0)
            regex_refuse(s->p, "an optional part repeated in a look-behind");
        return cut_repeat(s, n->kids, (struct length){ .min = n->min, .max = n->max }, length);
    default:
        regex_refuse(s->p, "an atomic group in a look-behind of several lengths");
        return NULL;
    }
}

/* A repeated condition is that condition once, or nothing; PCRE2 takes it for a variable length. */
static void calm(struct settling *s, struct node *n)
{
    if (n->type == NODE_LOOK)
        return; /* may be of any length, and is settled if it looks behind */
    for (struct node *k = n->kids; k && !s->p->failed; k = k->next)
        calm(s, k);
    if (n->type != NODE_REPEAT || measure(s, n->kids).max > 0)
        return;
    n->type = n->min == 0 ? NODE_EMPTY : NODE_GROUP;
    if (n->type == NODE_EMPTY)
        n->kids = NULL;
    n->group = 0;
}

static void settle(struct settling *s, struct node *n)
{
    struct length all = measure(s, n->kids);
    struct node *alt = NULL;

    regex_only(s->p, 0xffff, "look-behind over characters beyond U+FFFF");
    if (all.endless) /* Java refuses most of these, but by an overflow takes (?<=a*) */
        regex_refuse(s->p, "a look-behind without an obvious maximum length");
    if (all.max > REGEX_BEHIND_MAX)
        regex_refuse(s->p, "a look-behind longer than 255 characters");
    calm(s, n->kids);
    if (all.min == all.max)
        return;
    for (int64_t length = all.min; length <= all.max && !tired(s); length++)
        add_alternative(s, &alt, cut(s, n->kids, length), regex_node(s->p, NODE_EMPTY));
    if (!s->p->failed)
        n->kids = alt;
}

static void walk(struct settling *s, struct node *n)
{
    if (s->p->failed)
        return;
    for (struct node *k = n->kids; k; k = k->next)
        walk(s, k);
    if (n->type == NODE_LOOK && n->behind)
        settle(s, n);
}

void regex_settle_behind(struct parser *p, struct node *n)
{
    struct settling s = { .p = p };

    walk(&s, n);
}
