/* regex_class.c -- Java's character classes with union and intersection, and character escapes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The oddities of Java 9 and later are kept. All single characters below 256 of one class are one set
 * ("bits") that is joined last, or just before an "&&", and keeps growing after it was joined. What stands right
 * of "&&" runs to the next "&" or the end; a later part of it replaces an earlier nested class. A '^' counts
 * right behind '[' only and negates the whole result.
 */
#include "mirror/regex_node.h"

#include <string.h>

static struct set *leaf(struct parser *p, enum set_type type)
{
    struct set *s = arena_alloc(p->a, sizeof(*s));

    s->type = (uint8_t)type;
    s->plain = true;
    return s;
}

struct set *regex_range(struct parser *p, uint32_t lo, uint32_t hi)
{
    struct set *s = leaf(p, SET_RANGE);

    s->lo = lo;
    s->hi = hi;
    return s;
}

struct set *regex_text(struct parser *p, const char *text)
{
    struct set *s = leaf(p, SET_TEXT);

    s->text = text;
    return s;
}

struct set *regex_set(struct parser *p, enum set_type type, struct set *a, struct set *b)
{
    struct set *s = leaf(p, type);

    s->a = a;
    s->b = b;
    s->plain = type == SET_OR && a->plain && b->plain;
    if (!s->plain) {
        s->depth = (uint16_t)(MAX(a->depth, b ? b->depth : 0) + 1);
        if (s->depth > REGEX_SET_DEPTH_MAX)
            regex_refuse(p, "a class joined from too many parts");
        s->depth = MIN(s->depth, REGEX_SET_DEPTH_MAX);
    }
    return s;
}

static struct set *either(struct parser *p, struct set *a, struct set *b)
{
    return a ? regex_set(p, SET_OR, a, b) : b;
}

static void put_bit(struct set *s, uint32_t c)
{
    s->bits[c / 64] |= UINT64_C(1) << (c % 64);
}

/* -------------------------------------------------------------------- case */

static bool is_letter(uint32_t c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static uint32_t upper(uint32_t c)
{
    return is_letter(c) ? c & ~32u : c;
}

static uint32_t lower(uint32_t c)
{
    return is_letter(c) ? c | 32 : c;
}

/* The four characters beyond ASCII whose upper or lower case is an ASCII letter. */
static const struct odd {
    uint32_t c, up, low; /* low: the lower case of up */
} odds[] = {
    { 0x130, 0x130, 'i' },
    { 0x131, 'I', 'i' },
    { 0x17f, 'S', 's' },
    { 0x212a, 0x212a, 'k' },
};

static bool in(uint32_t c, uint32_t lo, uint32_t hi)
{
    return lo <= c && c <= hi;
}

struct set *regex_literal(struct parser *p, uint32_t c)
{
    bool unicode = p->flags & FLAG_UNICODE_CASE;
    struct set *s;

    if (!(p->flags & FLAG_NO_CASE))
        return NULL;
    if (unicode)
        for (size_t i = 0; i < COUNT(odds); i++)
            if (odds[i].c == c)
                c = odds[i].low;
    if (!is_letter(c)) {
        if (c > 0x7f && unicode)
            regex_only(p, 0x7f, "(?iu) with letters beyond ASCII");
        return NULL;
    }
    s = leaf(p, SET_BITS);
    put_bit(s, upper(c));
    put_bit(s, lower(c));
    for (size_t i = 0; unicode && i < COUNT(odds); i++)
        if (odds[i].low == lower(c))
            s = either(p, s, regex_range(p, odds[i].c, odds[i].c));
    return s;
}

static struct set *range(struct parser *p, uint32_t lo, uint32_t hi)
{
    struct set *s = regex_range(p, lo, hi), *more;

    if ((lo | 0x7ff) == 0xdfff || (hi | 0x7ff) == 0xdfff)
        regex_only(p, 0xffff, "lone surrogates");
    if (!(p->flags & FLAG_NO_CASE))
        return s;
    more = leaf(p, SET_BITS);
    for (uint32_t c = 'A'; c <= 'Z'; c++)
        if (in(c, lo, hi) || in(lower(c), lo, hi)) {
            put_bit(more, c);
            put_bit(more, lower(c));
        }
    s = either(p, s, more);
    if (!(p->flags & FLAG_UNICODE_CASE))
        return s;
    for (size_t i = 0; i < COUNT(odds); i++)
        if (in(odds[i].up, lo, hi) || in(odds[i].low, lo, hi))
            s = either(p, s, regex_range(p, odds[i].c, odds[i].c));
    if (hi > 0x7f)
        regex_only(p, 0x7f, "(?iu) with letters beyond ASCII");
    return s;
}

/* Adds one character to a class: to its bits if it can, else as a set of its own. */
static struct set *bits_or_single(struct parser *p, struct set *bits, uint32_t c)
{
    struct set *s;

    if (c < 256 && (p->flags & FLAG_UNICODE_CASE) && (p->flags & FLAG_NO_CASE)) {
        if (c > 0x7f)
            regex_only(p, 0x7f, "(?iu) with letters beyond ASCII");
        if (!strchr("IiSsKk", (int)c) || c == 0) {
            put_bit(bits, upper(c));
            put_bit(bits, lower(c));
            return NULL;
        }
    } else if (c < 256) {
        put_bit(bits, p->flags & FLAG_NO_CASE ? upper(c) : c);
        put_bit(bits, p->flags & FLAG_NO_CASE ? lower(c) : c);
        return NULL;
    }
    s = regex_literal(p, c);
    return s ? s : range(p, c, c);
}

/* ----------------------------------------------------------------- escapes */

static int hex(uint32_t c)
{
    if (c >= '0' && c <= '9')
        return (int)(c - '0');
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (int)((c | 32) - 'a' + 10) : -1;
}

static bool is_octal(uint32_t c, uint32_t most)
{
    return c >= '0' && c <= most;
}

static uint32_t octal(struct parser *p)
{
    uint32_t v = regex_read(p), c;

    if (!is_octal(v, '7')) {
        regex_fail(p, "illegal octal escape");
        return 0;
    }
    v -= '0';
    c = regex_peek(p);
    if (!is_octal(c, '7'))
        return v;
    regex_read(p);
    v = v * 8 + (c - '0');
    c = regex_peek(p);
    if (v > 037 || !is_octal(c, '7'))
        return v;
    regex_read(p);
    return v * 8 + (c - '0');
}

static uint32_t hexadecimal(struct parser *p)
{
    uint32_t c = regex_read(p), v = 0;

    if (hex(c) >= 0) {
        uint32_t d = regex_read(p);

        if (hex(d) >= 0)
            return (uint32_t)(hex(c) * 16 + hex(d));
    } else if (c == '{' && hex(regex_peek(p)) >= 0) {
        while (hex(c = regex_read(p)) >= 0) {
            v = v * 16 + (uint32_t)hex(c);
            if (v > 0x10ffff) {
                regex_fail(p, "a hexadecimal escape beyond U+10FFFF");
                return 0;
            }
        }
        if (c == '}')
            return v;
    }
    regex_fail(p, "illegal hexadecimal escape");
    return 0;
}

static uint32_t four_digits(struct parser *p)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++) {
        int d = hex(regex_read(p));

        if (d < 0) {
            regex_fail(p, "illegal Unicode escape");
            return 0;
        }
        v = v * 16 + (uint32_t)d;
    }
    return v;
}

/* \uhhhh, and a pair of them when they are a surrogate pair. */
static uint32_t unicode(struct parser *p)
{
    uint32_t v = four_digits(p), low;
    size_t back = p->at;

    if (v < 0xd800 || v > 0xdbff)
        return v;
    if (regex_read(p) == '\\' && regex_read(p) == 'u') {
        low = four_digits(p);
        if (low >= 0xdc00 && low <= 0xdfff)
            return 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
    }
    if (!p->failed)
        p->at = back;
    return v;
}

static uint32_t control(struct parser *p)
{
    if (p->at >= p->n) {
        regex_fail(p, "illegal control escape");
        return 0;
    }
    return regex_read(p) ^ 64;
}

struct escape regex_escape(struct parser *p, bool in_class, bool in_range)
{
    static const char simple[][2] = { "a\a", "e\033", "f\f", "n\n", "r\r", "t\t" };
    uint32_t c = regex_at(p, p->at + 1);

    if (p->at + 1 >= p->n) {
        regex_fail(p, "a backslash at the end");
        return (struct escape){ 0 };
    }
    if (c == 'p' || c == 'P') {
        p->at++;
        return (struct escape){ .set = regex_property(p, c == 'P') };
    }
    regex_skip(p);
    if (c < 0x80 && c && strchr("dDhHsSvVwW", (int)c) && !(c == 'v' && in_range))
        return (struct escape){ .set = regex_shorthand(p, c) };
    for (size_t i = 0; i < COUNT(simple); i++)
        if (c == (unsigned char)simple[i][0])
            return (struct escape){ .c = (unsigned char)simple[i][1] };
    switch (c) {
    case '0':
        return (struct escape){ .c = octal(p) };
    case 'x':
        return (struct escape){ .c = hexadecimal(p) };
    case 'u':
        return (struct escape){ .c = unicode(p) };
    case 'c':
        return (struct escape){ .c = control(p) };
    case 'v':
        return (struct escape){ .c = '\v' };
    case 'N':
        regex_refuse(p, "a character by name, \\N{...}");
        return (struct escape){ 0 };
    default:
        if (is_letter(c) || (in_class && c >= '1' && c <= '9'))
            regex_fail(p, "illegal escape");
        return (struct escape){ .c = c };
    }
}

/* ------------------------------------------------------------------ classes */

/* One item of a class; NULL: it went into bits. */
static struct set *item(struct parser *p, struct set *bits)
{
    uint32_t c = regex_peek(p), to;

    if (c == '\\') {
        struct escape e = regex_escape(p, true, regex_at(p, p->at + 2) == '-');

        if (e.set)
            return e.set;
        c = e.c;
    } else {
        regex_next(p);
    }
    if (regex_peek(p) != '-')
        return bits_or_single(p, bits, c);
    to = regex_at(p, p->at + 1);
    if (to == '[' || to == ']')
        return bits_or_single(p, bits, c);
    to = regex_next(p);
    if (to == '\\') {
        struct escape e = regex_escape(p, true, true);

        if (e.set)
            regex_fail(p, "a range that ends in a class");
        to = e.c;
    } else {
        regex_next(p);
    }
    if (to < c)
        regex_fail(p, "a range whose end is before its start");
    return range(p, c, to);
}

/* What stands right of "&&", up to the next '&' or the end; NULL: nothing. */
static struct set *right_of_and(struct parser *p)
{
    struct set *right = NULL;

    for (uint32_t c = regex_peek(p); c != ']' && c != '&' && !p->failed; c = regex_peek(p))
        right = either(p, right, regex_class(p, c == '['));
    return right;
}

struct building {
    struct set *bits;
    bool has_bits;
    struct set *sum;  /* of all before; NULL: nothing yet */
    struct set *last; /* joined or intersected last */
};

static void intersect(struct parser *p, struct building *b)
{
    struct set *right = right_of_and(p);

    if (b->has_bits) {
        if (!b->sum)
            b->sum = b->last = b->bits;
        else
            b->sum = either(p, b->sum, b->bits);
        b->has_bits = false;
    }
    if (right)
        b->last = right;
    if (b->sum && !b->last)
        regex_refuse(
            p, "\"&&\" with nothing beside it"); /* Java takes it and then throws while matching */
    else if (b->sum)
        b->sum = regex_set(p, SET_AND, b->sum, b->last);
    else if (right)
        b->sum = right;
    else
        regex_fail(p, "\"&&\" with nothing beside it");
}

static struct set *finish(struct parser *p, struct building *b, bool negative)
{
    struct set *s = b->has_bits || !b->sum ? either(p, b->sum, b->bits) : b->sum;

    return negative ? regex_set(p, SET_NOT, s, NULL) : s;
}

/* Takes the head, "[" or "[^"; true when it negates. */
static bool class_head(struct parser *p)
{
    bool bracket = regex_at(p, p->at) == '[';

    if (!bracket || regex_next(p) != '^' || regex_at(p, p->at - 1) != '[')
        return false;
    regex_next(p);
    return true;
}

struct set *regex_class(struct parser *p, bool consume)
{
    struct building b = { .bits = leaf(p, SET_BITS) };
    bool negative = consume && class_head(p);

    if (++p->depth > REGEX_DEPTH_MAX)
        regex_refuse(p, "classes nested deeper than 200");
    while (!p->failed) {
        uint32_t c = regex_peek(p);

        if (c == '[') {
            b.last = regex_class(p, true);
            b.sum = either(p, b.sum, b.last);
            continue;
        }
        if (c == '&') {
            if (regex_next(p) == '&') {
                regex_next(p);
                intersect(p, &b);
                continue;
            }
            p->at--; /* under (?x), blanks behind a single '&' swallow it: so does Java */
        }
        if (c == ']' && (b.sum || b.has_bits)) {
            if (consume)
                regex_next(p);
            break;
        }
        if (p->at >= p->n) {
            regex_fail(p, "unclosed character class");
            break;
        }
        b.last = item(p, b.bits);
        if (b.last)
            b.sum = either(p, b.sum, b.last);
        else
            b.has_bits = true;
    }
    p->depth--;
    return finish(p, &b, negative);
}
