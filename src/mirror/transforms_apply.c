/* transforms_apply.c -- resolves a chain for one copy, and does to records what is left of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/transforms_int.h"

#include "base/alloc.h"

struct transforms_plan {
    uint32_t filter_id;
    size_t n;
    struct step {
        const struct transform *t;
        const struct predicate *when; /* of records; NULL: always */
    } at[];
};

/* --- by the name alone --- */

/* Whether the transform applies to the topic, as far as its name says; a predicate of records may still say no. */
static bool may_apply(const struct transform *t, struct str topic)
{
    return !t->when || t->when->kind != PREDICATE_TOPIC || (regex_match_full(t->when->topic, topic) == REGEX_YES) != t->negate;
}

static struct str rename_topic(const struct transform *t, struct str topic, struct arena *a)
{
    struct str name = regex_rename(t->topic, topic, t->replacement, a);

    return str_is_null(name) ? topic : name;
}

struct str transforms_route(struct transforms *t, struct str copy, struct arena *a)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->at[i].kind == TRANSFORM_ROUTE && may_apply(&t->at[i], copy))
            copy = rename_topic(&t->at[i], copy, a);
    return copy;
}

/* --- the plan --- */

static void describe(struct buf *b, const struct step *s)
{
    buf_fmt(b, "%d %d %d", s->t->kind, s->when ? (int)s->when->kind : -1, s->when && s->t->negate);
    if (s->when)
        buf_fmt(b, " %zu:%.*s", s->when->header.n, STR_ARG(s->when->header));
    buf_fmt(b, " %zu:%.*s", s->t->header.key.n, STR_ARG(s->t->header.key));
    for (size_t i = 0; i < s->t->headers.n; i++)
        buf_fmt(b, " %zu:%.*s", s->t->headers.at[i].n, STR_ARG(s->t->headers.at[i]));
    buf_put_char(b, '\n');
}

/* Headers that come and go count as well, where a filter behind them looks. */
static uint32_t filter_id(const struct transforms_plan *p)
{
    size_t end = p->n;
    struct buf text;
    uint32_t id;

    while (end > 0 && p->at[end - 1].t->kind != TRANSFORM_FILTER)
        end--;
    if (end == 0)
        return 0;
    buf_init(&text, 16 * MiB);
    for (size_t i = 0; i < end; i++)
        describe(&text, &p->at[i]);
    id = (uint32_t)str_hash(buf_str(&text));
    buf_fini(&text);
    return id ? id : 1;
}

struct transforms_plan *transforms_plan_new(struct transforms *t, struct str copy)
{
    struct transforms_plan *p;
    struct arena a;

    if (!t)
        return NULL;
    p = mem_new(sizeof(*p) + t->n * sizeof(p->at[0]));
    arena_init(&a, 1 * MiB);
    for (size_t i = 0; i < t->n; i++) {
        const struct transform *x = &t->at[i];

        if (!may_apply(x, copy))
            continue;
        if (x->kind == TRANSFORM_ROUTE)
            copy = rename_topic(x, copy, &a);
        else
            p->at[p->n++] = (struct step){ x, x->when && x->when->kind != PREDICATE_TOPIC ? x->when : NULL };
    }
    arena_fini(&a);
    p->filter_id = filter_id(p);
    if (p->n == 0)
        transforms_plan_free(&p);
    return p;
}

void transforms_plan_free(struct transforms_plan **p)
{
    mem_free(*p);
    *p = NULL;
}

bool transforms_drop_all(const struct transforms_plan *p)
{
    for (size_t i = 0; p && i < p->n; i++)
        if (p->at[i].t->kind == TRANSFORM_FILTER && !p->at[i].when)
            return true;
    return false;
}

uint32_t transforms_filter_id(const struct transforms_plan *p)
{
    return p ? p->filter_id : 0;
}

/* --- records --- */

/* The headers as they are now: the record's own, or in scratch. */
struct headers {
    struct buf *scratch;
    struct str own; /* while not in scratch */
    size_t at, n;   /* in scratch */
    int32_t count;
    bool in_scratch;
};

static struct str headers_now(const struct headers *h)
{
    return h->in_scratch ? str_part(buf_str(h->scratch), h->at, h->at + h->n) : h->own;
}

static bool has_header(const struct headers *h, struct str key)
{
    struct str rest = headers_now(h);
    struct record_header x;

    while (record_header_next(&rest, &x))
        if (str_eq(x.key, key))
            return true;
    return false;
}

/* Room for a copy of what there is and `more`, so that nothing moves while it is copied. */
static bool make_room(struct headers *h, size_t more)
{
    size_t was = h->scratch->n, need = headers_now(h).n + more;

    if (need && !buf_grow(h->scratch, need))
        return false;
    h->scratch->n = was;
    return true;
}

static void moved(struct headers *h, size_t start)
{
    h->at = start;
    h->n = h->scratch->n - start;
    h->in_scratch = true;
}

static void insert_header(struct headers *h, const struct record_header *x)
{
    size_t start = h->scratch->n;

    if (!make_room(h, x->key.n + x->value.n + 16))
        return;
    buf_put_str(h->scratch, headers_now(h));
    record_put_header(h->scratch, x);
    moved(h, start);
    h->count++;
}

static bool is_listed(const struct str_list *list, struct str key)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->at[i], key))
            return true;
    return false;
}

static void drop_headers(struct headers *h, const struct str_list *names)
{
    size_t start = h->scratch->n;
    struct record_header x;
    struct str rest;

    if (!make_room(h, 16))
        return;
    rest = headers_now(h);
    while (record_header_next(&rest, &x)) {
        if (is_listed(names, x.key))
            h->count--;
        else
            record_put_header(h->scratch, &x);
    }
    moved(h, start);
}

static bool holds(const struct step *s, const struct record *r, const struct headers *h)
{
    bool yes;

    if (!s->when)
        return true;
    yes = s->when->kind == PREDICATE_TOMBSTONE ? str_is_null(r->value) : has_header(h, s->when->header);
    return yes != s->t->negate;
}

/* Up to step `end`; false: the record is left out. */
static bool run(const struct transforms_plan *p, size_t end, const struct record *r, struct headers *h)
{
    for (size_t i = 0; i < end; i++) {
        const struct step *s = &p->at[i];

        if (!holds(s, r, h))
            continue;
        if (s->t->kind == TRANSFORM_FILTER)
            return false;
        if (s->t->kind == TRANSFORM_INSERT_HEADER)
            insert_header(h, &s->t->header);
        else
            drop_headers(h, &s->t->headers);
    }
    return true;
}

static struct headers headers_of(const struct record *r, struct buf *scratch)
{
    buf_clear(scratch);
    return (struct headers){ .scratch = scratch, .own = r->headers, .count = r->header_count };
}

bool transforms_apply(const struct transforms_plan *p, struct record *r, struct buf *scratch)
{
    struct headers h = headers_of(r, scratch);

    if (!run(p, p->n, r, &h))
        return false;
    r->headers = headers_now(&h);
    r->header_count = h.count;
    return true;
}

bool transforms_keeps(const struct transforms_plan *p, const struct record *r, struct buf *scratch)
{
    struct headers h = headers_of(r, scratch);
    size_t end = p->n;

    while (end > 0 && p->at[end - 1].t->kind != TRANSFORM_FILTER)
        end--;
    return run(p, end, r, &h);
}
