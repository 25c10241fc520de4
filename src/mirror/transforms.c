/* transforms.c -- reads a chain of transforms out of a flow's settings, by Connect's names of keys.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/transforms_int.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>

#define CHAIN_MEMORY (16 * MiB)

#define BYTES                                                                                        \
    "it works on fields, and what is mirrored are bytes without fields: MirrorMaker 2 would fail with the first " \
    "record; set headers where records are produced, or transform behind the mirror"

static const struct {
    const char *class;
    enum transform_kind kind;
    const char *refusal;
} classes[] = {
#define TRANSFORM(class, kind, refusal) { class, TRANSFORM_##kind, refusal },
#include "mirror/transform.def"
#undef TRANSFORM
};

static const struct {
    const char *class;
    enum predicate_kind kind;
} predicate_classes[] = {
    { "org.apache.kafka.connect.transforms.predicates.TopicNameMatches", PREDICATE_TOPIC },
    { "org.apache.kafka.connect.transforms.predicates.HasHeaderKey", PREDICATE_HEADER },
    { "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone", PREDICATE_TOMBSTONE },
};

/* Reading: one fault ends it. */
struct reading {
    const struct flow_config *c;
    struct transforms *t;
    struct arena *a;
    struct transforms_fault *fault;
};

static enum err fail(struct reading *r, struct str key, const char *fmt, ...) PRINTF_LIKE(3, 4);
static enum err fail(struct reading *r, struct str key, const char *fmt, ...)
{
    char text[1000];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    *r->fault = (struct transforms_fault){ arena_str(r->a, key), arena_str(r->a, str_c(text)) };
    return E_INVALID;
}

static struct str key_of(struct reading *r, const char *list, struct str alias, const char *name)
{
    return arena_fmt(r->a, "%s.%.*s.%s", list, STR_ARG(alias), name);
}

/* The setting's value, not trimmed; null: it is not there. */
static struct str find(struct reading *r, const char *list, struct str alias, const char *name)
{
    struct str key = key_of(r, list, alias, name);

    for (size_t i = 0; i < r->c->transform_settings_n; i++)
        if (str_eq(r->c->transform_settings[i].key, key))
            return r->c->transform_settings[i].value;
    return STR_NULL;
}

/* A setting that has to be there and not be empty. */
static enum err need(struct reading *r, const char *list, struct str alias, const char *name, struct str *out)
{
    struct str value = str_trim(find(r, list, alias, name));

    if (value.n == 0)
        return fail(r, key_of(r, list, alias, name),
                    "missing: %s names \"%.*s\"; write %.*s.%s.%.*s.%s (MirrorMaker 2 reads it for a single flow only)", list,
                    STR_ARG(alias), STR_ARG(r->c->name), list, STR_ARG(alias), name);
    *out = arena_str(&r->t->memory, value);
    return E_OK;
}

static enum err need_regex(struct reading *r, const char *list, struct str alias, const char *name, bool replacing,
                           struct regex **out)
{
    struct regex_error why;
    struct str pattern;
    enum err e = need(r, list, alias, name, &pattern);

    if (e)
        return e;
    e = replacing ? regex_compile_replacing(pattern, out, &why) : regex_compile(pattern, out, &why);
    return e ? fail(r, key_of(r, list, alias, name), "%s; mend the pattern", why.text) : E_OK;
}

static bool is_class(struct str name, const char *class)
{
    struct str row = str_c(class);

    return str_ends(row, STR("*")) ? str_starts(name, str_part(row, 0, row.n - 1)) : str_eq(name, row);
}

static enum err read_predicate(struct reading *r, struct str alias)
{
    struct predicate *p = &r->t->predicates[r->t->predicates_n];
    struct str type;
    enum err e = need(r, "predicates", alias, "type", &type);
    size_t i = 0;

    if (e)
        return e;
    while (i < COUNT(predicate_classes) && !is_class(type, predicate_classes[i].class))
        i++;
    if (i == COUNT(predicate_classes))
        return fail(r, key_of(r, "predicates", alias, "type"),
                    "the Java class \"%.*s\" cannot run here; of predicates there are TopicNameMatches, HasHeaderKey and "
                    "RecordIsTombstone of org.apache.kafka.connect.transforms.predicates", STR_ARG(type));
    r->t->predicates_n++;
    p->alias = arena_str(&r->t->memory, alias);
    p->kind = predicate_classes[i].kind;
    if (p->kind == PREDICATE_TOPIC)
        return need_regex(r, "predicates", alias, "pattern", false, &p->topic);
    return p->kind == PREDICATE_HEADER ? need(r, "predicates", alias, "name", &p->header) : E_OK;
}

static enum err read_condition(struct reading *r, struct transform *t)
{
    struct str name = str_trim(find(r, "transforms", t->alias, "predicate"));
    struct str negate = str_trim(find(r, "transforms", t->alias, "negate"));

    t->negate = str_eq_nocase(negate, STR("true"));
    if (negate.n && !t->negate && !str_eq_nocase(negate, STR("false")))
        return fail(r, key_of(r, "transforms", t->alias, "negate"), "neither true nor false; write one of the two");
    if (name.n == 0)
        return t->negate ? fail(r, key_of(r, "transforms", t->alias, "negate"),
                                "there is no predicate to negate; name one, or remove it")
                         : E_OK;
    for (size_t i = 0; i < r->t->predicates_n && !t->when; i++)
        if (str_eq(r->t->predicates[i].alias, name))
            t->when = &r->t->predicates[i];
    return t->when ? E_OK
                   : fail(r, key_of(r, "transforms", t->alias, "predicate"),
                          "\"%.*s\" does not stand in predicates; add it there", STR_ARG(name));
}

static enum err read_router(struct reading *r, struct transform *t)
{
    const char *wrong;
    enum err e;

    if (t->when && t->when->kind != PREDICATE_TOPIC)
        return fail(r, key_of(r, "transforms", t->alias, "predicate"),
                    "records of one partition would go to two topics, and here each has one copy, of which every offset is "
                    "known; only TopicNameMatches can decide for a RegexRouter");
    e = need_regex(r, "transforms", t->alias, "regex", true, &t->topic);
    if (!e)
        e = need(r, "transforms", t->alias, "replacement", &t->replacement);
    if (e || regex_replacement_fits(t->topic, t->replacement, &wrong))
        return e;
    return fail(r, key_of(r, "transforms", t->alias, "replacement"), "in the replacement, %s", wrong);
}

/* Connect turns the literal into a number, a boolean or text and lets the header's converter write it; what bytes they
 * become is the literal's own. */
static enum err read_header(struct reading *r, struct transform *t)
{
    enum err e = need(r, "transforms", t->alias, "header", &t->header.key);

    return e ? e : need(r, "transforms", t->alias, "value.literal", &t->header.value);
}

static enum err read_headers(struct reading *r, struct transform *t)
{
    struct str text;
    enum err e = need(r, "transforms", t->alias, "headers", &text);
    struct str_list list;
    struct str *at;

    if (e)
        return e;
    list = opt_split(text, r->a);
    at = arena_array(&r->t->memory, list.n, sizeof(*at));
    for (size_t i = 0; i < list.n; i++)
        at[i] = arena_str(&r->t->memory, list.at[i]);
    t->headers = (struct str_list){ at, list.n };
    return E_OK;
}

static enum err read_own(struct reading *r, struct transform *t)
{
    switch (t->kind) {
    case TRANSFORM_ROUTE:
        return read_router(r, t);
    case TRANSFORM_INSERT_HEADER:
        return read_header(r, t);
    case TRANSFORM_DROP_HEADERS:
        return read_headers(r, t);
    case TRANSFORM_FILTER:
    case TRANSFORM_REFUSED:
        break;
    }
    return E_OK;
}

static enum err read_transform(struct reading *r, struct str alias)
{
    struct transform *t = &r->t->at[r->t->n];
    struct str type;
    enum err e = need(r, "transforms", alias, "type", &type);
    size_t i = 0;

    if (e)
        return e;
    while (i < COUNT(classes) && !is_class(type, classes[i].class))
        i++;
    if (i == COUNT(classes) || classes[i].kind == TRANSFORM_REFUSED)
        return fail(r, key_of(r, "transforms", alias, "type"), "the transform \"%.*s\" cannot run here: %s", STR_ARG(type),
                    i < COUNT(classes) ? classes[i].refusal
                                       : "Java classes cannot; there are RegexRouter, InsertHeader, DropHeaders and Filter "
                                         "of org.apache.kafka.connect.transforms; transform behind the mirror, or keep this "
                                         "flow on MirrorMaker 2");
    r->t->n++;
    t->alias = arena_str(&r->t->memory, alias);
    t->kind = classes[i].kind;
    e = read_condition(r, t);
    return e ? e : read_own(r, t);
}

enum err transforms_new(const struct flow_config *c, struct arena *a, struct transforms **out,
                        struct transforms_fault *fault)
{
    struct transforms *t = NULL;
    struct reading r = { .c = c, .a = a, .fault = fault };
    enum err e = E_OK;

    *out = NULL;
    if (c->transforms.n == 0)
        return E_OK;
    r.t = t = mem_new(sizeof(*t));
    arena_init(&t->memory, CHAIN_MEMORY);
    t->predicates = mem_array(c->predicates.n, sizeof(*t->predicates));
    t->at = mem_array(c->transforms.n, sizeof(*t->at));
    for (size_t i = 0; !e && i < c->predicates.n; i++)
        e = read_predicate(&r, c->predicates.at[i]);
    for (size_t i = 0; !e && i < c->transforms.n; i++)
        e = read_transform(&r, c->transforms.at[i]);
    if (e)
        transforms_free(&t);
    *out = t;
    return e;
}

void transforms_free(struct transforms **tp)
{
    struct transforms *t = *tp;

    if (!t)
        return;
    for (size_t i = 0; i < t->predicates_n; i++)
        regex_free(&t->predicates[i].topic);
    for (size_t i = 0; i < t->n; i++)
        regex_free(&t->at[i].topic);
    mem_free(t->predicates);
    mem_free(t->at);
    arena_fini(&t->memory);
    mem_free(t);
    *tp = NULL;
}
