/* regex_java.c -- parses java.util.regex syntax: alternatives, groups, quantifiers, anchors, flags.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Follows Java 17 also where it is odd, since an operator's pattern works by those rules today:
 * a flag group lasts to the end of the group around it; one quantifier belongs to an atom, and "{2}" after it
 * repeats nothing; ']' and '}' alone are literals; \11 is \1 followed by '1' unless eleven groups were opened.
 * tests/regex compares with the JDK, pattern by pattern and name by name.
 */
#include "mirror/regex_node.h"

#include <string.h>

#define TERMINATORS "\\n\\r\\x{85}\\x{2028}\\x{2029}"
#define INSIDE_CRLF "(?<=\\r)(?=\\n)"

static struct node *literal(struct parser *p, uint32_t c)
{
    struct set *set = regex_literal(p, c);
    struct node *n;

    if (set)
        return regex_one(p, set);
    if ((c | 0x7ff) == 0xdfff)
        regex_only(p, 0xffff, "lone surrogates");
    n = regex_node(p, NODE_CHAR);
    n->c = c;
    return n;
}

static struct node *where(struct parser *p, const char *text)
{
    struct node *n = regex_node(p, NODE_WHERE);

    n->text = text;
    return n;
}

/* ----------------------------------------------------------------- anchors */

static struct node *caret(struct parser *p)
{
    if (!(p->flags & FLAG_MULTILINE))
        return where(p, "\\A");
    if (p->flags & FLAG_UNIX_LINES)
        return where(p, "(?!\\z)(?:\\A|(?<=\\n))");
    return where(p, "(?!\\z)(?:\\A|(?<=[" TERMINATORS "])(?!" INSIDE_CRLF "))");
}

static struct node *dollar(struct parser *p, bool multiline)
{
    if (p->flags & FLAG_UNIX_LINES)
        return where(p, multiline ? "(?=\\n|\\z)" : "(?=\\n?\\z)");
    if (multiline)
        return where(p, "(?:\\z|(?=[" TERMINATORS "])(?!" INSIDE_CRLF "))");
    return where(p, "(?:\\z|(?=\\r\\n\\z)|(?=[" TERMINATORS "]\\z)(?!" INSIDE_CRLF "))");
}

static struct node *dot(struct parser *p)
{
    static const char no_terminator[] = TERMINATORS;

    if (p->flags & FLAG_DOTALL)
        return regex_one(p, regex_range(p, 0, 0x10ffff));
    if (p->flags & FLAG_UNIX_LINES)
        return regex_one(p, regex_set(p, SET_NOT, regex_range(p, '\n', '\n'), NULL));
    return regex_one(p, regex_set(p, SET_NOT, regex_text(p, no_terminator), NULL));
}

/* -------------------------------------------------------------- quantifiers */

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

/* The digits from c on; *c is what follows them. */
static int32_t count(struct parser *p, uint32_t *c)
{
    int64_t v = 0;

    while (is_digit(*c)) {
        v = v * 10 + (*c - '0');
        if (v > INT32_MAX)
            regex_fail(p, "illegal repetition range");
        *c = regex_read(p);
    }
    if (v > REGEX_REPEAT_MAX)
        regex_refuse(p, "a repetition count above 65535");
    return (int32_t)v;
}

static enum repeat_how how(struct parser *p)
{
    uint32_t c = regex_peek(p);

    if (c != '?' && c != '+')
        return REPEAT_GREEDY;
    regex_next(p);
    return c == '?' ? REPEAT_LAZY : REPEAT_POSSESSIVE;
}

/* {n} {n,} {n,m}; the cursor is at the brace. */
static void braces(struct parser *p, int32_t *min, int32_t *max)
{
    uint32_t c = regex_at(p, p->at + 1);

    if (!is_digit(c)) {
        regex_fail(p, "illegal repetition '{'");
        return;
    }
    c = regex_skip(p);
    *min = count(p, &c);
    *max = *min;
    if (c == ',') {
        c = regex_read(p);
        *max = -1;
        if (c != '}')
            *max = count(p, &c);
    }
    if (c != '}')
        regex_fail(p, "unclosed counted repetition");
    else if (*max >= 0 && *max < *min)
        regex_fail(p, "illegal repetition range");
}

/* Wraps n in the quantifier that follows, if one does. */
static struct node *quantified(struct parser *p, struct node *n)
{
    uint32_t c = regex_peek(p);
    struct node *r;
    int32_t min = 0, max = -1;

    switch (c) {
    case '?':
        max = 1;
        regex_next(p);
        break;
    case '+':
        min = 1;
        regex_next(p);
        break;
    case '*':
        regex_next(p);
        break;
    case '{':
        braces(p, &min, &max);
        break;
    default:
        return n;
    }
    r = regex_node(p, NODE_REPEAT);
    r->how = (uint8_t)how(p);
    r->min = min;
    r->max = max;
    r->kids = n;
    return r;
}

/* ------------------------------------------------------------------- groups */

static struct node *alternatives(struct parser *p);

static unsigned flag_of(uint32_t c)
{
    switch (c) {
    case 'd':
        return FLAG_UNIX_LINES;
    case 'i':
        return FLAG_NO_CASE;
    case 'x':
        return FLAG_COMMENTS;
    case 'm':
        return FLAG_MULTILINE;
    case 's':
        return FLAG_DOTALL;
    case 'u':
        return FLAG_UNICODE_CASE;
    case 'U':
        return FLAG_UNICODE_CLASS | FLAG_UNICODE_CASE;
    default:
        return 0;
    }
}

/* The letters of (?idmsux-idmsux...; each counts at once, x for the blanks that follow it too. */
static void inline_flags(struct parser *p)
{
    bool on = true;

    for (uint32_t c = regex_peek(p);; c = regex_next(p)) {
        if (c == '-' && on)
            on = false;
        else if (c == 'c')
            regex_refuse(p, "canonical equivalence, (?c)");
        else if (!flag_of(c))
            return;
        else if (on)
            p->flags |= flag_of(c);
        else
            p->flags &= ~flag_of(c);
    }
}

/* What stands behind "(?<": a look-behind or a name. */
static void less_than(struct parser *p, struct node *n)
{
    uint32_t c = regex_read(p);

    if (c == '=' || c == '!') {
        n->type = NODE_LOOK;
        n->behind = true;
        n->negative = c == '!';
        return;
    }
    n->group = regex_group_open(p);
    regex_group_call(p, regex_group_name(p, c), n->group);
}

/* Reads the head of a group, "(" included, into n; false: it was flags only, like "(?i)". */
static bool group_head(struct parser *p, struct node *n)
{
    size_t question;
    uint32_t c;

    if (regex_next(p) != '?') {
        n->group = regex_group_open(p);
        return true;
    }
    question = p->at;
    c = regex_skip(p);
    switch (c) {
    case ':':
        return true;
    case '=':
    case '!':
        n->type = NODE_LOOK;
        n->negative = c == '!';
        return true;
    case '>':
        n->type = NODE_ATOMIC;
        return true;
    case '<':
        less_than(p, n);
        return true;
    default:
        p->at = MIN(question + 1, p->n);
        inline_flags(p);
        c = regex_read(p);
        if (c == ')')
            return false;
        if (c != ':')
            regex_fail(p, "unknown inline modifier or group type");
        return true;
    }
}

/* A whole group with its quantifier; NULL when it only set flags. */
static struct node *group(struct parser *p)
{
    struct node *n = regex_node(p, NODE_GROUP);
    unsigned save = p->flags;

    if (!group_head(p, n))
        return NULL;
    if (++p->depth > REGEX_DEPTH_MAX)
        regex_refuse(p, "groups nested deeper than 200");
    n->kids = alternatives(p);
    p->depth--;
    if (regex_read(p) != ')')
        regex_fail(p, "unclosed group");
    p->flags = save;
    return quantified(p, n);
}

/* -------------------------------------------------------------------- atoms */

/* \1 and on: digits are taken while they name a group that was opened before. */
static struct node *back_reference(struct parser *p, uint32_t digit)
{
    struct node *n = regex_node(p, NODE_REF);
    int64_t group = digit - '0';

    for (uint32_t c = regex_peek(p); is_digit(c); c = regex_peek(p)) {
        if (group * 10 + (c - '0') > p->groups)
            break;
        group = group * 10 + (c - '0');
        regex_read(p);
    }
    n->group = (int32_t)group;
    return n;
}

static struct node *named_reference(struct parser *p)
{
    struct node *n = regex_node(p, NODE_REF);

    if (regex_read(p) != '<') {
        regex_fail(p, "\\k without '<' behind it");
        return n;
    }
    n->group = regex_group_find(p, regex_group_name(p, regex_read(p)));
    if (n->group == 0)
        regex_fail(p, "\\k names a group that is not defined before it");
    return n;
}

static struct node *word_border(struct parser *p, bool negative)
{
    /* Java 17 and before count letters of all scripts here, Java 19 and later [a-zA-Z0-9_]. */
    regex_only(p, 0x7f, "\\b and \\B differ between Java versions beyond ASCII");
    return where(p, negative ? "\\B" : "\\b");
}

static struct node *line_break(struct parser *p)
{
    struct node *n = regex_node(p, NODE_ALT), *crlf = regex_node(p, NODE_SEQ);

    crlf->kids = regex_one(p, regex_range(p, '\r', '\r'));
    crlf->kids->next = regex_one(p, regex_range(p, '\n', '\n'));
    n->kids = crlf;
    n->certain = true;
    crlf->next = regex_one(p, regex_text(p, "\\n-\\r\\x{85}\\x{2028}\\x{2029}"));
    p->exact_cr = false;
    return n;
}

static struct node *grapheme(struct parser *p)
{
    struct node *n = regex_node(p, NODE_ATOMIC);

    n->kids = line_break(p);
    n->kids->kids->next->set = regex_range(p, 0, 0x10ffff);
    n->endless = true;
    regex_only(p, 0x7f, "grapheme clusters");
    return n;
}

static struct node *reference(struct parser *p, struct node *n)
{
    p->refs = true;
    n->nocase = p->flags & FLAG_NO_CASE;
    if (n->nocase)
        regex_only(p, 0x7f, "a back-reference that ignores case");
    return n;
}

/* The escapes that stand for no character, \R, \X and references; NULL: it is another one. */
static struct node *special_escape(struct parser *p)
{
    uint32_t c = regex_at(p, p->at + 1);

    if (!is_digit(c) && (c == 0 || c > 'z' || !strchr("ABGRXZbkz", (int)c)))
        return NULL;
    if (c == '0')
        return NULL;
    regex_skip(p);
    switch (c) {
    case 'A':
    case 'G': /* the end of the match before: there is none, so the start */
        return where(p, "\\A");
    case 'B':
        return word_border(p, true);
    case 'R':
        return line_break(p);
    case 'X':
        return grapheme(p);
    case 'Z':
        return dollar(p, false);
    case 'b':
        if (regex_peek(p) == '{' &&
            regex_at(p, p->at + 1) == 'g') /* in Java it depends on earlier attempts */
            regex_refuse(p, "\\b{g}");
        return word_border(p, false);
    case 'k':
        return reference(p, named_reference(p));
    case 'z':
        return where(p, "\\z");
    default:
        return reference(p, back_reference(p, c));
    }
}

/* An escape outside of a class; the cursor is at the backslash. */
static struct node *escaped(struct parser *p)
{
    struct node *n = special_escape(p);
    struct escape e;

    if (n)
        return n;
    e = regex_escape(p, false, false);
    return e.set ? regex_one(p, e.set) : literal(p, e.c);
}

/* One atom with its quantifier, or NULL for flags alone. */
static struct node *piece(struct parser *p, uint32_t c)
{
    switch (c) {
    case '(':
        return group(p);
    case '[':
        return quantified(p, regex_one(p, regex_class(p, true)));
    case '\\':
        return quantified(p, escaped(p));
    case '^':
        regex_next(p);
        return quantified(p, caret(p));
    case '$':
        regex_next(p);
        return quantified(p, dollar(p, p->flags & FLAG_MULTILINE));
    case '.':
        regex_next(p);
        return quantified(p, dot(p));
    case '{':
        return quantified(p, regex_node(p, NODE_EMPTY));
    default:
        regex_next(p);
        return quantified(p, literal(p, c));
    }
}

static struct node *sequence(struct parser *p)
{
    struct node *seq = regex_node(p, NODE_SEQ);
    struct node **tail = &seq->kids;

    for (;;) {
        uint32_t c = regex_peek(p);
        struct node *n;

        if (c == '|' || c == ')' || p->at >= p->n)
            return seq;
        if (c == '*' || c == '+' || c == '?') {
            regex_fail(p, "a quantifier with nothing before it");
            return seq;
        }
        n = piece(p, c);
        if (n) {
            *tail = n;
            tail = &n->next;
        }
    }
}

static struct node *alternatives(struct parser *p)
{
    struct node *alt = regex_node(p, NODE_ALT);
    struct node **tail = &alt->kids;

    for (;;) {
        *tail = sequence(p);
        tail = &(*tail)->next;
        if (regex_peek(p) != '|')
            return alt;
        regex_next(p);
    }
}

/* Marks the groups whose captures Java and PCRE2 keep differently: those that are entered several times, or
 * left for good. */
static void mark_repeated(const struct node *n, bool repeated, bool *marks)
{
    bool optional = n->type == NODE_REPEAT && n->max == 1 && n->how != REPEAT_POSSESSIVE;

    repeated |=
        (n->type == NODE_REPEAT && !optional) || n->type == NODE_ATOMIC || n->type == NODE_LOOK;
    if (n->type == NODE_GROUP && repeated)
        marks[n->group] = true;
    for (const struct node *k = n->kids; k; k = k->next)
        mark_repeated(k, repeated, marks);
}

static void check_references(struct parser *p, const struct node *n, const bool *marks)
{
    if (n->type == NODE_REF && n->group > 0 && n->group <= p->groups && marks[n->group])
        regex_refuse(p, "a back-reference to a repeated group");
    for (const struct node *k = n->kids; k; k = k->next)
        check_references(p, k, marks);
}

struct node *regex_parse(struct parser *p)
{
    bool marks[REGEX_GROUPS_MAX + 2] = { false };
    struct node *n = alternatives(p);

    if (p->at < p->n)
        regex_fail(p, "a ')' that opens nowhere");
    if (p->refs && !p->failed) {
        mark_repeated(n, false, marks);
        check_references(p, n, marks);
        if (p->repeated)
            memcpy(p->repeated, marks, sizeof(marks));
    }
    return n;
}
