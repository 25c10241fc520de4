/* regex_node.c -- what the parts of the regex parser share: the cursor, the first failure, nodes, group names.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Under (?x) Java skips blanks and comments at every look at the pattern, in the middle of a number or a class
 * too, so that is done here and nowhere else.
 */
#include "mirror/regex_node.h"

#include <stdio.h>

/* ------------------------------------------------------------------ cursor */

static bool is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool ends_comment(const struct parser *p, uint32_t c)
{
    if (c == 0 || c == '\n')
        return true;
    return !(p->flags & FLAG_UNIX_LINES) && (c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029);
}

/* From the character c at p->at: the first that is neither blank nor comment. */
static uint32_t past_blanks(struct parser *p, uint32_t c)
{
    while ((is_space(c) || c == '#') && p->at < p->n) {
        while (is_space(c))
            c = regex_at(p, ++p->at);
        if (c == '#') {
            do
                c = regex_at(p, ++p->at);
            while (!ends_comment(p, c));
        }
    }
    return c;
}

uint32_t regex_peek(struct parser *p)
{
    uint32_t c = regex_at(p, p->at);

    return p->flags & FLAG_COMMENTS ? past_blanks(p, c) : c;
}

uint32_t regex_next(struct parser *p)
{
    if (p->at < p->n)
        p->at++;
    return regex_peek(p);
}

uint32_t regex_read(struct parser *p)
{
    uint32_t c = regex_peek(p);

    if (p->at < p->n)
        p->at++;
    return c;
}

uint32_t regex_skip(struct parser *p)
{
    uint32_t c = regex_at(p, p->at + 1);

    p->at = MIN(p->at + 2, p->n);
    return c;
}

static void fail(struct parser *p, const char *what, bool unsupported)
{
    size_t at = p->at < p->n ? p->from[p->at] : p->from[p->n];

    if (!p->failed) {
        *p->why = (struct regex_error){ .at = at, .unsupported = unsupported };
        snprintf(p->why->text, sizeof(p->why->text), "%s at byte %zu%s", what, at,
                 unsupported ? " (Java's syntax, but not supported here)" : "");
    }
    p->failed = true;
    p->at = p->n;
}

void regex_fail(struct parser *p, const char *what)
{
    fail(p, what, false);
}

void regex_refuse(struct parser *p, const char *what)
{
    fail(p, what, true);
}

void regex_only(struct parser *p, uint32_t to, const char *why)
{
    if (to < p->exact_to) {
        p->exact_to = to;
        p->exact_why = why;
    }
}

/* ------------------------------------------------------------------- nodes */

struct node *regex_node(struct parser *p, enum node_type type)
{
    struct node *n = arena_alloc(p->a, sizeof(*n));

    n->type = (uint8_t)type;
    return n;
}

struct node *regex_one(struct parser *p, struct set *set)
{
    struct node *n = regex_node(p, NODE_ONE);

    n->set = set;
    return n;
}

/* ------------------------------------------------------------- group names */

struct str regex_group_name(struct parser *p, uint32_t c)
{
    char *name = arena_alloc(p->a, 128);
    size_t n = 0;

    if (!((c | 32) >= 'a' && (c | 32) <= 'z')) {
        regex_fail(p, "a group's name has to start with a Latin letter");
        return STR("");
    }
    while (((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9')) {
        if (n == 128) {
            regex_refuse(p, "a group's name above 128 characters");
            return STR("");
        }
        name[n++] = (char)c;
        c = regex_read(p);
    }
    if (c != '>')
        regex_fail(p, "the '>' behind a group's name is missing");
    return str_of(name, n);
}

int regex_group_find(const struct parser *p, struct str name)
{
    for (const struct group_name *g = p->names; g; g = g->next)
        if (str_eq(g->name, name))
            return g->group;
    return 0;
}

int regex_group_open(struct parser *p)
{
    if (p->groups == REGEX_GROUPS_MAX)
        regex_refuse(p, "more than 1000 capturing groups");
    return ++p->groups;
}

void regex_group_call(struct parser *p, struct str name, int group)
{
    struct group_name *g;

    if (regex_group_find(p, name)) {
        regex_fail(p, "two groups of the same name");
        return;
    }
    g = arena_alloc(p->a, sizeof(*g));
    *g = (struct group_name){ .next = p->names, .name = name, .group = group };
    p->names = g;
}
