/* value.c -- fills any message from text: field=value field={...} field=[... ...], by the rows of its schema.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A word is a number, true, false, null, T, T+ms, T-ms, $variable, $variable+n, or text with or without quotes.
 */
#include "conform.h"

#include "wire/codec_row.h"

#include <stdlib.h>
#include <string.h>

static void blanks(struct value_text *t)
{
    while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
        t->p++;
}

static bool take(struct value_text *t, char c)
{
    blanks(t);
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

static struct str expand(struct value_text *t, struct str word)
{
    int64_t plus = str_find(word, STR("+"), 0), add, base;
    struct str name = str_part(word, 1, plus > 0 ? (size_t)plus : word.n);
    struct str value = script_get(t->s, name);

    if (plus < 0)
        return value;
    if (!str_to_i64(value, &base) || !str_to_i64(str_part(word, (size_t)plus + 1, word.n), &add))
        script_fail(t->s, "%.*s is no sum", STR_ARG(word));
    return arena_fmt(t->arena, "%lld", (long long)(base + add));
}

bool value_word(struct value_text *t, struct str *out)
{
    const char *from;

    blanks(t);
    from = t->p;
    if (t->p < t->end && *t->p == '"') {
        for (t->p++; t->p < t->end && *t->p != '"'; t->p++)
            ;
        *out = str_of(from + 1, (size_t)(t->p - from - 1));
        t->p++;
        return true;
    }
    while (t->p < t->end && !strchr(" \t=[]{}<>", *t->p))
        t->p++;
    *out = str_of(from, (size_t)(t->p - from));
    if (out->n > 1 && *from == '$')
        *out = expand(t, *out);
    return t->p > from;
}

int64_t value_number(struct script *s, struct str word)
{
    int64_t n = 0;

    if (word.n && word.p[0] == 'T') {
        if (word.n > 2 && !str_to_i64(str_part(word, 2, word.n), &n))
            script_fail(s, "%.*s is no time", STR_ARG(word));
        n = peers_zero_ms() + (word.n > 1 && word.p[1] == '-' ? -n : n);
        script_note_time(s, n);
        return n;
    }
    if (!str_to_i64(word, &n))
        script_fail(s, "%.*s is no number", STR_ARG(word));
    return n;
}

static void fill(struct value_text *t, const struct message *m, int version, void *msg, char end);

static void put_uuid(struct value_text *t, struct str word, struct uuid *u)
{
    memset(u, 0, sizeof(*u));
    if (str_eq(word, STR("0")))
        return;
    if (word.n != 2 * sizeof(u->b))
        script_fail(t->s, "%.*s is no id", STR_ARG(word));
    for (size_t i = 0; i < sizeof(u->b); i++) {
        char digits[3] = { word.p[2 * i], word.p[2 * i + 1], 0 };

        u->b[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

static void put_number(struct value_text *t, const struct field *f, struct str word, int type, void *at)
{
    int64_t n = type == W_BOOL ? str_eq(word, STR("true")) : value_number(t->s, word);

    if (strcmp(f->name, "producer_id") == 0 && n >= 0)
        script_label(t->s, "p", arena_fmt(t->arena, "%lld", (long long)n));
    switch (type) {
    case W_BOOL:
        *(bool *)at = n != 0;
        break;
    case W_I8:
        *(int8_t *)at = (int8_t)n;
        break;
    case W_I16:
        *(int16_t *)at = (int16_t)n;
        break;
    case W_I32:
        *(int32_t *)at = (int32_t)n;
        break;
    case W_I64:
        *(int64_t *)at = n;
        break;
    default:
        script_fail(t->s, "%s is of a type that scripts do not write", f->name);
    }
}

static void put_value(struct value_text *t, const struct field *f, int type, int version, void *at);

static void put_array(struct value_text *t, const struct field *f, int version, struct array *a)
{
    size_t width = row_width(f->of_type, f->of), room = 32;

    if (!take(t, '[')) {
        struct str word;

        if (!value_word(t, &word) || !str_eq(word, STR("null")))
            script_fail(t->s, "%s is a list", f->name);
        *a = (struct array){ .n = -1 };
        return;
    }
    a->at = arena_array(t->arena, room, width);
    for (a->n = 0; !take(t, ']'); a->n++) {
        if ((size_t)a->n == room || t->p == t->end)
            script_fail(t->s, "%s has no end", f->name);
        put_value(t, f, f->of_type, version, (char *)a->at + (size_t)a->n * width);
    }
}

static void put_struct(struct value_text *t, const struct field *f, int version, void *at)
{
    if (!take(t, '{'))
        script_fail(t->s, "%s is a struct", f->name);
    codec_init(f->of, at);
    fill(t, f->of, version, at, '}');
}

static void put_value(struct value_text *t, const struct field *f, int type, int version, void *at)
{
    struct str word;

    if (type == W_ARRAY) {
        put_array(t, f, version, at);
    } else if (type == W_STRUCT) {
        put_struct(t, f, version, at);
    } else if (type == W_RECORDS) {
        ((struct records *)at)->head = STR_NULL;
        ((struct records *)at)->body = records_make(t);
    } else if (!value_word(t, &word)) {
        script_fail(t->s, "%s has no value", f->name);
    } else if (type == W_UUID) {
        put_uuid(t, word, at);
    } else if (type == W_STRING || type == W_BYTES) {
        *(struct str *)at = str_eq(word, STR("null")) ? STR_NULL : word;
    } else {
        put_number(t, f, word, type, at);
    }
}

static const struct field *field_of(const struct message *m, int version, struct str name)
{
    for (const struct field *f = m->fields; f->type; f++)
        if (row_exists(f, version) && str_eq(name, str_c(f->name)))
            return f;
    return NULL;
}

static void fill(struct value_text *t, const struct message *m, int version, void *msg, char end)
{
    struct str name;

    for (;;) {
        const struct field *f;

        blanks(t);
        if (end ? take(t, end) : t->p == t->end)
            return;
        if (!value_word(t, &name) || !take(t, '='))
            script_fail(t->s, "a field of %s is expected before '%.*s'", m->name, (int)(t->end - t->p), t->p);
        f = field_of(m, version, name);
        if (!f)
            script_fail(t->s, "%s has no field %.*s in version %d", m->name, STR_ARG(name), version);
        put_value(t, f, f->type, version, row_at(f, msg));
    }
}

void value_fill(struct script *s, const struct message *m, int version, struct str text, struct arena *a, void *msg)
{
    struct value_text t = { .p = text.p, .end = text.p + text.n, .s = s, .arena = a };

    codec_init(m, msg);
    fill(&t, m, version, msg, 0);
}
