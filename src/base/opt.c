/* opt.c -- reads and writes the values of options by their rows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers, flags and words are read as Kafka's ConfigDef reads them: the text is trimmed first; flags
 * in any case of letters; lists at commas. Each refusal is a sentence that says what to write instead.
 */
#include "base/opt.h"

#include "base/alloc.h"
#include "base/must.h"

#include <string.h>

#define OPT_SHOW_MAX 80 /* bytes of a wrong value that are repeated in an error */

/* The value in quotes for an error text; nothing of a secret one, no control characters. */
static struct str shown(const struct opt_row *row, struct str text, struct arena *a)
{
    struct str s;

    if (row->secret == OPT_SECRET || opt_key_is_secret(str_c(row->key)))
        return STR("the value");
    s = arena_fmt(a, "\"%.*s%s\"", STR_ARG(str_part(text, 0, OPT_SHOW_MAX)),
                  text.n > OPT_SHOW_MAX ? "..." : "");
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            ((char *)s.p)[i] = '?';
    return s;
}

/* The alternatives of a row one after the other, without their synonyms; false at the end. */
static bool next_choice(struct str *rest, struct str *group)
{
    do {
        if (!str_next(rest, ' ', group))
            return false;
    } while (group->n == 0);
    return true;
}

static struct str choices_text(const struct opt_row *row, struct arena *a)
{
    struct str rest = str_c(row->choices);
    struct str all = STR("");
    struct str group;

    while (next_choice(&rest, &group)) {
        struct str first = group;

        (void)str_next(&group, '|', &first);
        all = arena_fmt(a, "%.*s%s%.*s", STR_ARG(all), all.n ? ", " : "", STR_ARG(first));
    }
    return all;
}

static enum err parse_choice(const struct opt_row *row, struct str text, int *out, struct arena *a,
                             struct str *why)
{
    struct str rest = str_c(row->choices);
    struct str group, word;

    for (int i = 0; next_choice(&rest, &group); i++) {
        while (str_next(&group, '|', &word)) {
            if (row->type == OPT_CHOICE_ANY ? str_eq_nocase(word, text) : str_eq(word, text)) {
                *out = i;
                return E_OK;
            }
        }
    }
    if (row->type == OPT_CLASS)
        *why = arena_fmt(a,
                         "the Java class %.*s cannot run here; of these classes Heliostat does the "
                         "same natively: %.*s",
                         STR_ARG(shown(row, text, a)), STR_ARG(choices_text(row, a)));
    else
        *why = arena_fmt(a, "%.*s is not one of the known words; write one of: %.*s",
                         STR_ARG(shown(row, text, a)), STR_ARG(choices_text(row, a)));
    return E_INVALID;
}

static enum err parse_flag(const struct opt_row *row, struct str text, bool *out, struct arena *a,
                           struct str *why)
{
    bool yes = str_eq_nocase(text, STR("true"));

    if (!yes && !str_eq_nocase(text, STR("false"))) {
        *why = arena_fmt(a, "%.*s is neither true nor false; write one of the two",
                         STR_ARG(shown(row, text, a)));
        return E_INVALID;
    }
    *out = yes;
    return E_OK;
}

/* Bytes with an optional unit. */
static bool parse_size(struct str text, int64_t *out)
{
    static const struct {
        struct str unit;
        int64_t bytes;
    } units[] = { { STR("KiB"), KiB }, { STR("MiB"), MiB }, { STR("GiB"), GiB } };
    int64_t by = 1;

    for (size_t i = 0; i < COUNT(units); i++) {
        if (text.n > 3 && str_eq_nocase(str_part(text, text.n - 3, text.n), units[i].unit)) {
            by = units[i].bytes;
            text = str_trim(str_part(text, 0, text.n - 3));
        }
    }
    return str_to_i64(text, out) && !__builtin_mul_overflow(*out, by, out);
}

static enum err parse_number(const struct opt_row *row, struct str text, int64_t *out,
                             struct arena *a, struct str *why)
{
    bool good = row->type == OPT_SIZE ? parse_size(text, out) : str_to_i64(text, out);

    if (good && *out >= row->least && *out <= row->most)
        return E_OK;
    *why = arena_fmt(a, "%.*s is %s; write a %s from %lld to %lld", STR_ARG(shown(row, text, a)),
                     !good               ? "not a whole number"
                     : *out < row->least ? "too small"
                                         : "too large",
                     row->type == OPT_SIZE          ? "size in bytes, or with KiB, MiB, GiB,"
                     : row->type == OPT_DURATION_MS ? "time in milliseconds"
                                                    : "whole number",
                     (long long)row->least, (long long)row->most);
    return E_INVALID;
}

/* A period in seconds. Zero stops MirrorMaker 2 where row->least is 1; elsewhere it would spin. */
static enum err parse_interval(const struct opt_row *row, struct str text, int64_t *out,
                               struct arena *a, struct str *why)
{
    int64_t s;

    if (!str_to_i64(text, &s) || s > INT64_MAX / 1000) {
        *why = arena_fmt(a, "%.*s is not a number of seconds; write one, or -1 for never",
                         STR_ARG(shown(row, text, a)));
        return E_INVALID;
    }
    if (s == 0 && row->least > 0) {
        *why = STR("0 is no period; write 1 or more seconds, or -1 for never");
        return E_INVALID;
    }
    if (s == 0) {
        *why = STR("0 would never rest and is taken as 1 second; write 1 or more");
        s = 1;
    }
    *out = s < 0 ? -1 : s * 1000;
    return E_OK;
}

struct str_list opt_split(struct str text, struct arena *a)
{
    struct str rest = str_trim(text);
    struct str_list list = { .n = 0 };
    struct str *at;
    size_t count = 1;

    if (rest.n == 0)
        return list;
    for (size_t i = 0; i < rest.n; i++)
        count += rest.p[i] == ',';
    at = arena_array(a, count, sizeof(*at));
    while (str_next(&rest, ',', &at[list.n]))
        list.n++;
    for (size_t i = 0; i < list.n; i++)
        at[i] = arena_str(a, str_trim(at[i]));
    list.at = at;
    return list;
}

/* Drops empty and repeated elements in place; a table of hashes keeps it linear. */
static void drop_idle(struct str *at, size_t *n, struct arena *a, struct str *why)
{
    size_t room = 64;
    size_t kept = 0;
    uint32_t *seen;

    while (room < *n * 2)
        room *= 2;
    seen = mem_array(room, sizeof(*seen));
    for (size_t i = 0; i < *n; i++) {
        size_t h = str_hash(at[i]) & (room - 1);

        while (seen[h] && !str_eq(at[seen[h] - 1], at[i]))
            h = (h + 1) & (room - 1);
        if (at[i].n == 0) {
            *why = STR("an empty element was dropped; remove the comma");
        } else if (seen[h]) {
            *why = arena_fmt(a, "\"%.*s\" stands in the list twice and counts once; remove one",
                             STR_ARG(str_part(at[i], 0, OPT_SHOW_MAX)));
        } else {
            at[kept] = at[i];
            seen[h] = (uint32_t)++kept;
        }
    }
    mem_free(seen);
    *n = kept;
}

static enum err parse_list(struct str text, struct str_list *out, struct arena *a, struct str *why)
{
    struct str_list list = opt_split(text, a);

    if (list.n > OPT_LIST_MAX) {
        *why = arena_fmt(a, "the list has more than %d elements; use patterns", OPT_LIST_MAX);
        return E_INVALID;
    }
    drop_idle((struct str *)list.at, &list.n, a, why);
    *out = list;
    return E_OK;
}

enum err opt_parse(const struct opt_row *row, struct str text, void *into, struct arena *a,
                   struct str *why)
{
    void *member = (char *)into + row->at;
    struct str trimmed = str_trim(text);
    int64_t n = 0;
    enum err e;

    must(row->value);
    *why = STR_NULL;
    switch (row->type) {
    case OPT_FLAG:
        return parse_flag(row, trimmed, member, a, why);
    case OPT_INT:
    case OPT_LONG:
    case OPT_SIZE:
    case OPT_DURATION_MS:
        e = parse_number(row, trimmed, &n, a, why);
        break;
    case OPT_INTERVAL_S:
        e = parse_interval(row, trimmed, &n, a, why);
        break;
    case OPT_STRING:
    case OPT_TEXT:
        *(struct str *)member = arena_str(a, trimmed);
        return E_OK;
    case OPT_RAW:
        *(struct str *)member = arena_str(a, text);
        return E_OK;
    case OPT_LIST:
        return parse_list(trimmed, member, a, why);
    case OPT_CHOICE:
    case OPT_CHOICE_ANY:
    case OPT_CLASS:
    default:
        return parse_choice(row, trimmed, member, a, why);
    }
    if (e)
        return e;
    if (row->type == OPT_INT)
        *(int32_t *)member = (int32_t)n;
    else
        *(int64_t *)member = n;
    return E_OK;
}

size_t opt_size(enum opt_type type)
{
    static const size_t sizes[] = {
        [OPT_FLAG] = sizeof(OPT_C_FLAG),
        [OPT_INT] = sizeof(OPT_C_INT),
        [OPT_LONG] = sizeof(OPT_C_LONG),
        [OPT_SIZE] = sizeof(OPT_C_SIZE),
        [OPT_DURATION_MS] = sizeof(OPT_C_DURATION_MS),
        [OPT_INTERVAL_S] = sizeof(OPT_C_INTERVAL_S),
        [OPT_STRING] = sizeof(OPT_C_STRING),
        [OPT_TEXT] = sizeof(OPT_C_TEXT),
        [OPT_RAW] = sizeof(OPT_C_RAW),
        [OPT_LIST] = sizeof(OPT_C_LIST),
        [OPT_CHOICE] = sizeof(OPT_C_CHOICE),
        [OPT_CHOICE_ANY] = sizeof(OPT_C_CHOICE_ANY),
        [OPT_CLASS] = sizeof(OPT_C_CLASS),
    };

    return sizes[type];
}

void opt_defaults(const struct opt_table *t, void *into, struct arena *a)
{
    for (size_t i = 0; i < t->count; i++) {
        struct str why;

        if (t->rows[i].value)
            must(!opt_parse(&t->rows[i], str_c(t->rows[i].value), into, a, &why));
    }
}

/* By its first letter before all else: tables are long, and asked for every key of a file. */
static bool is_name(const char *name, struct str key)
{
    return name && name[0] == key.p[0] && str_eq(str_c(name), key);
}

static bool is_key_of(const struct opt_row *row, struct str key)
{
    struct str name;

    if (is_name(row->key, key) || is_name(row->alias, key))
        return true;
    if (row->value || row->key[0] != key.p[0]) /* only a key without effect may end in ".*" */
        return false;
    name = str_c(row->key);
    return str_ends(name, STR(".*")) && key.n >= name.n &&
           str_starts(key, str_part(name, 0, name.n - 1));
}

const struct opt_row *opt_find(const struct opt_table *t, struct str key, unsigned where)
{
    for (size_t i = 0; key.n && i < t->count; i++)
        if ((t->rows[i].where & where) && is_key_of(&t->rows[i], key))
            return &t->rows[i];
    return NULL;
}

static void format_choice(const struct opt_row *row, int value, struct buf *out)
{
    struct str rest = str_c(row->choices);
    struct str group;

    for (int i = 0; next_choice(&rest, &group); i++) {
        struct str first = group;

        (void)str_next(&group, '|', &first);
        if (i == value)
            buf_put_str(out, first);
    }
}

void opt_format(const struct opt_row *row, const void *from, struct buf *out)
{
    const void *member = (const char *)from + row->at;
    const struct str_list *list = member;
    int64_t ms;

    if (row->secret == OPT_SECRET) {
        buf_put_str(out, STR("(secret)"));
        return;
    }
    switch (row->type) {
    case OPT_FLAG:
        buf_put_str(out, *(const bool *)member ? STR("true") : STR("false"));
        break;
    case OPT_INT:
        buf_fmt(out, "%d", *(const int32_t *)member);
        break;
    case OPT_LONG:
    case OPT_SIZE:
    case OPT_DURATION_MS:
        buf_fmt(out, "%lld", (long long)*(const int64_t *)member);
        break;
    case OPT_INTERVAL_S:
        ms = *(const int64_t *)member;
        buf_fmt(out, "%lld", (long long)(ms < 0 ? -1 : ms / 1000));
        break;
    case OPT_STRING:
    case OPT_TEXT:
    case OPT_RAW:
        buf_put_str(out, *(const struct str *)member);
        break;
    case OPT_LIST:
        for (size_t i = 0; i < list->n; i++)
            buf_fmt(out, "%s%.*s", i ? ", " : "", STR_ARG(list->at[i]));
        break;
    case OPT_CHOICE:
    case OPT_CHOICE_ANY:
    case OPT_CLASS:
        format_choice(row, *(const int *)member, out);
        break;
    }
}

bool opt_key_is_secret(struct str key)
{
    static const struct str words[] = { STR("password"), STR("secret"),     STR("jaas"),
                                        STR("jass"),     STR("token"),      STR("credential"),
                                        STR("passwd"),   STR("passphrase"), STR("keystore.key"),
                                        STR("api.key"),  STR("apikey"),     STR("private") };

    for (size_t i = 0; i < COUNT(words); i++)
        for (size_t at = 0; at + words[i].n <= key.n; at++)
            if (str_eq_nocase(str_part(key, at, at + words[i].n), words[i]))
                return true;
    return false;
}
