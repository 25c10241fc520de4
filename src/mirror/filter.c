/* filter.c -- MirrorMaker 2's include and exclude lists over the Java regex front end.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A list becomes one pattern, its elements joined by '|', as MirrorMaker 2 does: a flag such as (?i) in one element
 * holds for the following ones too. Elements are compiled one by one only to say which is to blame, or which decided.
 */
#include "mirror/filter.h"

#include "base/alloc.h"
#include "mirror/regex.h"

struct side {
    struct regex *re; /* NULL: an empty list, which matches nothing */
    struct str_list list;
};

struct filter {
    struct arena memory; /* the elements */
    struct side include, exclude;
};

static struct str join(const struct str_list *list, struct buf *out)
{
    buf_init(out, REGEX_PATTERN_MAX);
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            buf_put_char(out, '|');
        buf_put_str(out, list->at[i]);
    }
    return buf_str(out);
}

/* Which element cannot stand, else what is wrong with all of them together. */
static struct str blame(const struct str_list *list, const struct regex_error *joint,
                        struct arena *a)
{
    struct regex_error e;
    struct regex *re;

    for (size_t i = 0; i < list->n; i++) {
        if (regex_compile(list->at[i], &re, &e) == E_OK) {
            regex_free(&re);
            continue;
        }
        return arena_fmt(a, "element `%.*s`: %s%s", STR_ARG(list->at[i]), e.text,
                         list->n > 1
                             ? " (the list is split at commas first, so a comma cannot stand "
                               "inside an expression)"
                             : "");
    }
    return arena_fmt(a, "the elements joined by '|': %s", joint->text);
}

static enum err side_init(struct side *s, const struct str_list *list, struct filter *f,
                          struct arena *a, struct str *why)
{
    struct regex_error e;
    struct buf joined;
    struct str *copy = arena_array(&f->memory, list->n, sizeof(*copy));
    enum err err = E_OK;

    for (size_t i = 0; i < list->n; i++)
        copy[i] = arena_str(&f->memory, list->at[i]);
    s->list = (struct str_list){ copy, list->n };
    if (!list->n)
        return E_OK;
    join(list, &joined);
    if (joined.bad) {
        *why = arena_fmt(a, "the list is longer than %d bytes", REGEX_PATTERN_MAX);
        err = E_INVALID;
    } else if (regex_compile(buf_str(&joined), &s->re, &e)) {
        *why = blame(list, &e, a);
        err = E_INVALID;
    }
    buf_fini(&joined);
    return err;
}

enum err filter_new(const struct str_list *include, const struct str_list *exclude, struct arena *a,
                    struct filter **out, struct str *why)
{
    struct filter *f = mem_new(sizeof(*f));
    enum err e;

    arena_init(&f->memory, 64 * MiB);
    e = side_init(&f->include, include, f, a, why);
    if (!e)
        e = side_init(&f->exclude, exclude, f, a, why);
    if (e) {
        filter_free(&f);
        return e;
    }
    *out = f;
    return E_OK;
}

void filter_free(struct filter **fp)
{
    struct filter *f = *fp;

    if (!f)
        return;
    regex_free(&f->include.re);
    regex_free(&f->exclude.re);
    arena_fini(&f->memory);
    mem_free(f);
    *fp = NULL;
}

static bool matches(struct side *s, struct str name)
{
    return s->re && regex_match_full(s->re, name) == REGEX_YES;
}

/* What cannot be decided for certain counts against the name, on both sides. */
static bool is_excluded(struct side *s, struct str name)
{
    return s->re && regex_match_full(s->re, name) != REGEX_NO;
}

bool filter_accepts(struct filter *f, struct str name)
{
    return matches(&f->include, name) && !is_excluded(&f->exclude, name);
}

bool filter_includes(struct filter *f, struct str name)
{
    return matches(&f->include, name);
}

/* The element that matches by itself; the null string when only the whole does. */
static struct str element_of(const struct side *s, struct str name)
{
    for (size_t i = 0; i < s->list.n; i++) {
        struct regex *re;
        bool yes;

        if (regex_compile(s->list.at[i], &re, NULL))
            continue;
        yes = regex_match_full(re, name) == REGEX_YES;
        regex_free(&re);
        if (yes)
            return s->list.at[i];
    }
    return STR_NULL;
}

/* Says it with the element, or without when only the list as a whole matches (flags reach over elements). */
static struct str decided(const struct side *s, struct str name, const char *what, struct arena *a)
{
    struct str by = element_of(s, name);

    if (str_is_null(by))
        return arena_fmt(a, "%s by the list as a whole", what);
    return arena_fmt(a, "%s by `%.*s`", what, STR_ARG(by));
}

static struct str undecided(const struct side *s, enum regex_answer answer, const char *list,
                            struct arena *a)
{
    const char *why = answer == REGEX_SLOW ? "its expressions backtrack too much on this name"
                                           : regex_limits(s->re);

    return arena_fmt(a, "not accepted: the %s list cannot be decided (%s)", list, why);
}

struct str filter_why(struct filter *f, struct str name, struct arena *a, bool *accepted)
{
    enum regex_answer in = f->include.re ? regex_match_full(f->include.re, name) : REGEX_NO;
    enum regex_answer out = f->exclude.re ? regex_match_full(f->exclude.re, name) : REGEX_NO;

    *accepted = in == REGEX_YES && out == REGEX_NO;
    if (out == REGEX_YES)
        return decided(&f->exclude, name, "excluded", a);
    if (in == REGEX_NO)
        return STR("accepted by no element");
    if (in != REGEX_YES)
        return undecided(&f->include, in, "include", a);
    if (out != REGEX_NO)
        return undecided(&f->exclude, out, "exclude", a);
    return decided(&f->include, name, "accepted", a);
}
