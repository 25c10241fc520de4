/* regex_emit.c -- writes the tree as a PCRE2 pattern that spells everything out.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written for PCRE2_UTF | PCRE2_DOTALL without PCRE2_UCP: '.' is any character and nothing else depends on an
 * option. Groups capture only when something refers back. A possessive quantifier gets an atomic body,
 * because Java never goes back into a finished round of it.
 */
#include "mirror/regex_node.h"

#define NEVER "[^\\x{0}-\\x{10ffff}]"

static void emit_char(struct buf *out, uint32_t c)
{
    if ((c | 32) >= 'a' && (c | 32) <= 'z')
        buf_put_char(out, (char)c);
    else if ((c >= '0' && c <= '9') || c == '_')
        buf_put_char(out, (char)c);
    else if ((c | 0x7ff) == 0xdfff)
        buf_put_str(out, STR(NEVER)); /* a lone surrogate is in no name */
    else
        buf_fmt(out, "\\x{%x}", c);
}

/* ----------------------------------------------------------------- classes */

static void emit_range(uint32_t lo, uint32_t hi, struct buf *out)
{
    if ((lo | 0x7ff) == 0xdfff)
        lo = 0xe000;
    if ((hi | 0x7ff) == 0xdfff)
        hi = 0xd7ff;
    if (lo == hi)
        emit_char(out, lo);
    else if (lo < hi)
        buf_fmt(out, "\\x{%x}-\\x{%x}", lo, hi);
}

static bool has_bit(const struct set *s, uint32_t c)
{
    return c < 256 && s->bits[c / 64] >> (c % 64) & 1;
}

static void emit_bits(const struct set *s, struct buf *out)
{
    for (uint32_t c = 0, to; c < 256; c = to + 1) {
        to = c;
        if (!has_bit(s, c))
            continue;
        while (has_bit(s, to + 1))
            to++;
        emit_range(c, to, out);
    }
}

/* What stands between the brackets for a plain set. Joined sets lean to the left: a loop goes down there. */
static void emit_items(const struct set *s, struct buf *out)
{
    for (; s->type == SET_OR; s = s->a)
        emit_items(s->b, out);
    if (s->type == SET_RANGE)
        emit_range(s->lo, s->hi, out);
    else if (s->type == SET_BITS)
        emit_bits(s, out);
    else
        buf_put_str(out, str_c(s->text));
}

/* Always one thing that a quantifier may follow. */
static void emit_set(const struct set *s, struct buf *out)
{
    size_t start = out->n;
    bool negative = false;

    while (s->type == SET_NOT) {
        negative = !negative;
        s = s->a;
    }
    if (s->plain) {
        size_t empty;

        buf_put_str(out, negative ? STR("[^") : STR("["));
        empty = out->n;
        emit_items(s, out);
        if (out->n > empty) {
            buf_put_char(out, ']');
            return;
        }
        out->n = start; /* PCRE2 would read "[]" otherwise */
        buf_put_str(out, negative ? STR(".") : STR(NEVER));
        return;
    }
    buf_put_str(out, negative ? STR("(?:(?!") : STR("(?:"));
    if (s->type == SET_AND)
        buf_put_str(out, STR("(?="));
    emit_set(s->a, out);
    buf_put_char(out, s->type == SET_AND ? ')' : '|');
    emit_set(s->b, out);
    buf_put_str(out, negative ? STR(").)") : STR(")"));
}

/* ------------------------------------------------------------------- nodes */

static void emit_open(const struct parser *p, const struct node *n, struct buf *out)
{
    if (n->type == NODE_LOOK)
        buf_fmt(out, "(?%s%c", n->behind ? "<" : "", n->negative ? '!' : '=');
    else if (n->type == NODE_ATOMIC)
        buf_put_str(out, STR("(?>"));
    else if (n->type == NODE_GROUP && n->group > 0 && p->refs)
        buf_put_char(out, '(');
    else
        buf_put_str(out, STR("(?:"));
}

static void emit_alternatives(const struct parser *p, const struct node *n, struct buf *out)
{
    for (const struct node *k = n->kids; k; k = k->next) {
        if (k != n->kids)
            buf_put_char(out, '|');
        regex_emit(p, k, out);
    }
}

static void emit_repeat(const struct parser *p, const struct node *n, struct buf *out)
{
    const struct node *body = n->kids;
    bool bare = body->type == NODE_ONE || (body->type == NODE_CHAR && (body->c | 0x7ff) != 0xdfff);

    if (bare) {
        regex_emit(p, body, out);
    } else {
        buf_put_str(out, n->how == REPEAT_POSSESSIVE ? STR("(?:(?>") : STR("(?:"));
        regex_emit(p, body, out);
        buf_put_str(out, n->how == REPEAT_POSSESSIVE ? STR("))") : STR(")"));
    }
    if (n->min == 0 && n->max < 0)
        buf_put_char(out, '*');
    else if (n->min == 1 && n->max < 0)
        buf_put_char(out, '+');
    else if (n->max < 0)
        buf_fmt(out, "{%d,}", n->min);
    else
        buf_fmt(out, "{%d,%d}", n->min, n->max);
    if (n->how != REPEAT_GREEDY)
        buf_put_char(out, n->how == REPEAT_LAZY ? '?' : '+');
}

static void emit_reference(const struct parser *p, const struct node *n, struct buf *out)
{
    if (n->group > p->groups)
        buf_put_str(out, STR("(?!)")); /* Java: never set, so never equal */
    else
        buf_fmt(out, n->nocase ? "(?i:\\g{%d})" : "\\g{%d}", n->group);
}

void regex_emit(const struct parser *p, const struct node *n, struct buf *out)
{
    switch ((enum node_type)n->type) {
    case NODE_EMPTY:
        buf_put_str(out, STR("(?:)"));
        break;
    case NODE_CHAR:
        emit_char(out, n->c);
        break;
    case NODE_ONE:
        emit_set(n->set, out);
        break;
    case NODE_WHERE:
        buf_put_str(out, str_c(n->text));
        break;
    case NODE_SEQ:
        for (const struct node *k = n->kids; k; k = k->next)
            regex_emit(p, k, out);
        break;
    case NODE_REPEAT:
        emit_repeat(p, n, out);
        break;
    case NODE_REF:
        emit_reference(p, n, out);
        break;
    case NODE_GROUP:
    case NODE_ATOMIC:
    case NODE_LOOK:
        emit_open(p, n, out);
        emit_alternatives(p, n->kids->type == NODE_ALT ? n->kids : n, out);
        buf_put_char(out, ')');
        break;
    case NODE_ALT:
        buf_put_str(out, STR("(?:"));
        emit_alternatives(p, n, out);
        buf_put_char(out, ')');
        break;
    }
}
