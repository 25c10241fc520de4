/* regex_prop.c -- Java's \p{...} properties and \d \h \s \v \w in PCRE2's words.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Java's names for POSIX classes mean ASCII unless (?U) is on; names that begin with Is are properties,
 * categories or scripts, and names that begin with In are blocks. The rows of
 * regex_prop.def give each its content.
 */
#include "mirror/regex_node.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_SIZE 64

enum kind { PLAIN, IS, POSIX };

/* text with a '^' in front: what is not in it; with a '!': certain for ASCII only. nocase: under (?i); NULL: the same. */
static const struct property {
    enum kind kind;
    const char *name;
    const char *text;
    const char *nocase;
} properties[] = {
#define PROP(kind, name, text)              { kind, name, text, NULL },
#define PROP_CASE(kind, name, text, nocase) { kind, name, text, nocase },
#define BLOCK(lo, hi, id, name)
#include "mirror/regex_prop.def"
#undef PROP
#undef PROP_CASE
#undef BLOCK
};

/* The blocks that names are written in; Java knows 300 more. */
static const struct block_row {
    uint32_t lo, hi;
    const char *id, *name;
} blocks[] = {
#define PROP(kind, name, text)
#define PROP_CASE(kind, name, text, nocase)
#define BLOCK(lo, hi, id, name) { lo, hi, id, name },
#include "mirror/regex_prop.def"
#undef PROP
#undef PROP_CASE
#undef BLOCK
};

static struct set *set_of_text(struct parser *p, const char *text)
{
    if (text[0] == '!') {
        regex_only(p, 0x7f, "a property that PCRE2 knows in part");
        text++;
    }
    if (text[0] == '^')
        return regex_set(p, SET_NOT, regex_text(p, text + 1), NULL);
    return regex_text(p, text);
}

static struct set *find_property(struct parser *p, enum kind kind, struct str name)
{
    for (size_t i = 0; i < COUNT(properties); i++) {
        const struct property *row = &properties[i];
        bool same =
            kind == PLAIN ? str_eq(name, str_c(row->name)) : str_eq_nocase(name, str_c(row->name));

        if (row->kind == kind && same)
            return set_of_text(p, p->flags & FLAG_NO_CASE && row->nocase ? row->nocase : row->text);
    }
    return NULL;
}

/* Java takes a block by its constant's name, by its name and by that without blanks. */
static bool is_block(const struct block_row *b, struct str name)
{
    size_t i = 0;

    if (str_eq_nocase(name, str_c(b->id)) || str_eq_nocase(name, str_c(b->name)))
        return true;
    for (const char *c = b->name; *c; c++)
        if (*c != ' ' &&
            (i == name.n || !str_eq_nocase(str_part(name, i, i + 1), str_of(c, 1)) || i++ > name.n))
            return false;
    return i == name.n;
}

static struct set *find_block(struct parser *p, struct str name)
{
    for (size_t i = 0; i < COUNT(blocks); i++)
        if (is_block(&blocks[i], name))
            return regex_range(p, blocks[i].lo, blocks[i].hi);
    regex_refuse(p, "a Unicode block beyond the common ones");
    return NULL;
}

/* PCRE2 knows the scripts by the same names; one that it does not know fails its compilation. */
static struct set *find_script(struct parser *p, struct str name)
{
    char *text;

    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] != '_' && ((name.p[i] | 32) < 'a' || (name.p[i] | 32) > 'z'))
            return NULL;
    if (name.n < 2)
        return NULL;
    text = arena_alloc(p->a, NAME_MAX_SIZE + 8);
    snprintf(text, NAME_MAX_SIZE + 8, "\\p{sc:%.*s}", STR_ARG(name));
    return regex_text(p, text);
}

static struct set *find_pair(struct parser *p, struct str name, struct str value)
{
    if (str_eq_nocase(name, STR("sc")) || str_eq_nocase(name, STR("script")))
        return find_script(p, value);
    if (str_eq_nocase(name, STR("blk")) || str_eq_nocase(name, STR("block")))
        return find_block(p, value);
    if (str_eq_nocase(name, STR("gc")) || str_eq_nocase(name, STR("general_category")))
        return find_property(p, PLAIN, value);
    return NULL;
}

static struct set *find(struct parser *p, struct str name)
{
    int64_t equals = str_find(name, STR("="), 0);
    struct set *s = NULL;

    if (equals >= 0)
        return find_pair(p, str_part(name, 0, (size_t)equals),
                         str_part(name, (size_t)equals + 1, name.n));
    if (str_starts(name, STR("In")))
        return find_block(p, str_part(name, 2, name.n));
    if (str_starts(name, STR("Is"))) {
        name = str_part(name, 2, name.n);
        s = find_property(p, IS, name);
        if (!s)
            s = find_property(p, POSIX, name);
        if (!s)
            s = find_property(p, PLAIN, name);
        return s ? s : find_script(p, name);
    }
    if (p->flags & FLAG_UNICODE_CLASS)
        s = find_property(p, POSIX, name);
    return s ? s : find_property(p, PLAIN, name);
}

/* Reads the name into name[]; its length, 0 when it is too long or not ASCII. */
static size_t read_name(struct parser *p, char name[NAME_MAX_SIZE])
{
    size_t n = 0;
    bool good = true, brace = regex_next(p) == '{';

    if (!brace) {
        name[0] = (char)regex_at(p, p->at);
        good = regex_read(p) < 0x80;
        return good;
    }
    regex_next(p);
    for (; p->at < p->n && regex_at(p, p->at) != '}'; p->at++) {
        good = good && n < NAME_MAX_SIZE && regex_at(p, p->at) < 0x80;
        if (good)
            name[n++] = (char)regex_at(p, p->at);
    }
    if (p->at >= p->n)
        regex_fail(p, "unclosed property name");
    p->at++;
    return good ? n : 0;
}

struct set *regex_property(struct parser *p, bool negative)
{
    char name[NAME_MAX_SIZE];
    size_t n = read_name(p, name);
    struct set *s = n && !p->failed ? find(p, str_of(name, n)) : NULL;

    if (!s) {
        regex_fail(p, "unknown character property");
        return regex_range(p, 0, 0);
    }
    return negative ? regex_set(p, SET_NOT, s, NULL) : s;
}

struct set *regex_shorthand(struct parser *p, uint32_t letter)
{
    bool unicode = p->flags & FLAG_UNICODE_CLASS;
    struct set *s;

    switch (letter | 32) {
    case 'd':
        s = regex_text(p, unicode ? "\\p{Nd}" : "0-9");
        break;
    case 'h':
        s = regex_text(
            p, "\\t \\x{a0}\\x{1680}\\x{180e}\\x{2000}-\\x{200a}\\x{202f}\\x{205f}\\x{3000}");
        break;
    case 's':
        s = regex_text(p, unicode ? "\\t-\\r\\x{85}\\p{Z}" : "\\t-\\r ");
        break;
    case 'v':
        s = regex_text(p, "\\n-\\r\\x{85}\\x{2028}\\x{2029}");
        break;
    default:
        s = regex_text(p, unicode ? "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"
                                  : "a-zA-Z0-9_");
        break;
    }
    return letter & 32 ? s : regex_set(p, SET_NOT, s, NULL);
}
