/* topic_map.c -- rules "PATTERN -> NAME" over the regex front end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/topic_map.h"

#include "base/alloc.h"
#include "mirror/regex.h"

struct rule {
    struct regex *re;
    struct str name;
};

struct topic_map {
    struct arena memory; /* the names */
    struct rule *rules;
    size_t n;
};

/* "PATTERN -> NAME", cut at its last arrow. */
static bool split(struct str rule, struct str *pattern, struct str *name)
{
    int64_t at = -1;

    for (int64_t next; (next = str_find(rule, STR("->"), (size_t)(at + 1))) >= 0;)
        at = next;
    if (at < 0)
        return false;
    *pattern = str_trim(str_part(rule, 0, (size_t)at));
    *name = str_trim(str_part(rule, (size_t)at + 2, rule.n));
    return pattern->n > 0 && name->n > 0;
}

static enum err rule_init(struct rule *r, struct str text, struct topic_map *m, struct arena *a, struct str *why)
{
    struct str pattern, name;
    struct regex_error e;
    const char *wrong;

    if (!split(text, &pattern, &name)) {
        *why = arena_fmt(a, "rule `%.*s` is not PATTERN -> NAME (the list is split at commas first, so a comma cannot "
                         "stand inside a rule)", STR_ARG(text));
        return E_INVALID;
    }
    if (regex_compile_replacing(pattern, &r->re, &e)) {
        *why = arena_fmt(a, "rule `%.*s`: %s (the list is split at commas first)", STR_ARG(text), e.text);
        return E_INVALID;
    }
    r->name = arena_str(&m->memory, name);
    if (regex_replacement_fits(r->re, r->name, &wrong))
        return E_OK;
    *why = arena_fmt(a, "rule `%.*s`: in the name, %s", STR_ARG(text), wrong);
    return E_INVALID;
}

enum err topic_map_new(const struct str_list *rules, struct arena *a, struct topic_map **out, struct str *why)
{
    struct topic_map *m = mem_new(sizeof(*m));
    enum err e = E_OK;

    arena_init(&m->memory, 64 * MiB);
    m->rules = mem_array(rules->n, sizeof(*m->rules));
    while (!e && m->n < rules->n) {
        e = rule_init(&m->rules[m->n], rules->at[m->n], m, a, why);
        m->n++;
    }
    if (e) {
        topic_map_free(&m);
        return e;
    }
    *out = m;
    return E_OK;
}

void topic_map_free(struct topic_map **mp)
{
    struct topic_map *m = *mp;

    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        regex_free(&m->rules[i].re);
    mem_free(m->rules);
    arena_fini(&m->memory);
    mem_free(m);
    *mp = NULL;
}

struct str topic_map_apply(struct topic_map *m, struct str topic, struct arena *a)
{
    struct str name = STR_NULL;

    for (size_t i = 0; str_is_null(name) && i < m->n; i++)
        name = regex_rename(m->rules[i].re, topic, m->rules[i].name, a);
    return name;
}
