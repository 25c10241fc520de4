/* regex.c -- compiles and matches: Java's pattern as sorted literals and a few PCRE2 programs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A list of topics is mostly names, joined with '|'. Alternatives at the top that are plain text go into a sorted
 * array; the others are gathered into programs of some KiB each, since PCRE2 has a limit of 64 KiB per
 * program. Cutting there is sound because flags were resolved by the parser; a pattern with back-references
 * stays whole. Matching is interpreted with limits on steps, depth and heap, so its time is bounded.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "mirror/regex.h"

#include "base/alloc.h"
#include "mirror/regex_node.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATCH_STEPS_MAX 1000000
#define MATCH_DEPTH_MAX 100000
#define MATCH_HEAP_KIB  (16 * 1024)
#define PROGRAM_SIZE    (8 * KiB)
#define NESTING_MAX     2000 /* of PCRE2 parentheses; the parser's own limit is lower */
#define NAME_BYTES_MAX  (1 * MiB)
#define NAME_ROOM       (4 * KiB) /* of a name that a rule makes; Kafka takes 249 bytes */

struct regex {
    struct str *literals; /* sorted */
    size_t literals_n;
    char *text; /* of the literals */
    pcre2_code **programs;
    size_t programs_n;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    uint32_t exact_to;
    bool exact_cr;
    const char *exact_why;
    struct buf scratch; /* a name with U+FFFD for what was not UTF-8 */

    /* For regex_replace only. */
    bool replacing;
    int groups;
    bool repeated[REGEX_GROUPS_MAX + 2]; /* groups whose match is not certain */
    struct arena names_memory;
    struct group_name *names;
};

/* ------------------------------------------------------------------- UTF-8 */

/* Takes one character off s; a malformed part, cut as Java cuts it, gives U+FFFD. */
static uint32_t take_char(struct str *s)
{
    const unsigned char *p = (const unsigned char *)s->p;
    uint32_t c = p[0], least = 0x80, most = 0xbf;
    size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1, i = 1;

    if (c < 0x80 || c < 0xc2 || c > 0xf4) {
        *s = str_part(*s, 1, s->n);
        return c < 0x80 ? c : 0xfffd;
    }
    if (c == 0xe0 || c == 0xf0)
        least = c == 0xe0 ? 0xa0 : 0x90;
    if (c == 0xf4)
        most = 0x8f;
    c &= 0x3fu >> more;
    for (; i <= more && i < s->n && p[i] >= least && p[i] <= most; i++) {
        c = c << 6 | (p[i] & 0x3f);
        least = 0x80;
        most = 0xbf;
    }
    *s = str_part(*s, i, s->n);
    return i <= more || (c | 0x7ff) == 0xdfff ? 0xfffd : c;
}

static void put_char(struct buf *b, uint32_t c)
{
    if (c >= 0x10000)
        buf_put_char(b, (char)(0xf0 | c >> 18));
    if (c >= 0x800)
        buf_put_char(b, (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3f) : 0xe0 | c >> 12));
    if (c >= 0x80)
        buf_put_char(b, (char)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6));
    buf_put_char(b, (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c));
}

/* ------------------------------------------------------------------ quoting */

static bool is_alnum(uint32_t c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

struct quoting {
    uint32_t *c, *from;
    size_t n;
};

static void quote_put(struct quoting *q, uint32_t c, uint32_t from)
{
    q->c[q->n] = c;
    q->from[q->n++] = from;
}

/* Java resolves \Q...\E before anything else, by a backslash before each character that is no letter. A digit
 * right behind \Q is written \x3n, so that it does not lengthen a number before it. */
static void quote(struct quoting *q, uint32_t c, uint32_t from, bool first)
{
    if (c < 0x80 && !is_alnum(c)) {
        quote_put(q, '\\', from);
    } else if (first && c >= '0' && c <= '9') {
        quote_put(q, '\\', from);
        quote_put(q, 'x', from);
        quote_put(q, '3', from);
    }
    quote_put(q, c, from);
}

static void decode_pattern(struct parser *p, struct str pattern)
{
    struct quoting q = { .c = arena_array(p->a, pattern.n * 3 + 4, sizeof(uint32_t)),
                         .from = arena_array(p->a, pattern.n * 3 + 4, sizeof(uint32_t)) };
    bool quoted = false, first = false;
    struct str rest = pattern;

    while (rest.n) {
        uint32_t from = (uint32_t)(pattern.n - rest.n);
        bool backslash = rest.p[0] == '\\' && rest.n > 1;

        if (backslash && rest.p[1] == (quoted ? 'E' : 'Q')) {
            rest = str_part(rest, 2, rest.n);
            first = quoted = !quoted;
            continue;
        }
        if (quoted) {
            quote(&q, take_char(&rest), from, first);
            first = false;
            continue;
        }
        quote_put(&q, take_char(&rest), from);
        if (backslash)
            quote_put(&q, take_char(&rest), from);
    }
    q.from[q.n] = (uint32_t)pattern.n;
    p->c = q.c;
    p->from = q.from;
    p->n = q.n;
}

/* ---------------------------------------------------------------- compiling */

static bool is_literal(const struct node *seq)
{
    for (const struct node *k = seq->kids; k; k = k->next)
        if (k->type != NODE_CHAR || (k->c | 0x7ff) == 0xdfff)
            return false;
    return true;
}

static int by_bytes(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Moves the alternatives that are plain text out of the tree. */
static void take_literals(struct regex *re, struct node *root, size_t pattern_size)
{
    struct node **link = &root->kids;
    struct buf text;
    size_t n = 0;

    for (const struct node *k = root->kids; k; k = k->next)
        n += is_literal(k);
    re->literals = mem_array(n, sizeof(struct str));
    buf_init(&text, pattern_size + 1);
    buf_put(&text, "", 1); /* so that the empty name has an address too */
    while (*link) {
        size_t start = text.n;

        if (!is_literal(*link)) {
            link = &(*link)->next;
            continue;
        }
        for (const struct node *k = (*link)->kids; k; k = k->next)
            put_char(&text, k->c);
        re->literals[re->literals_n++] = str_of(NULL, text.n - start);
        *link = (*link)->next;
    }
    re->text = text.p;
    for (size_t i = 0, at = 1; i < n; at += re->literals[i++].n)
        re->literals[i].p = re->text + at;
    qsort(re->literals, n, sizeof(struct str), by_bytes);
}

static bool add_program(struct regex *re, struct parser *p, struct buf *pattern)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    PCRE2_UCHAR text[120];
    PCRE2_SIZE at;
    pcre2_code *code;
    int error;

    pcre2_set_parens_nest_limit(context, NESTING_MAX);
    code = pcre2_compile((PCRE2_SPTR)buf_cstr(pattern), pattern->n,
                         PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOTALL |
                             (re->replacing ? 0 : PCRE2_ANCHORED | PCRE2_ENDANCHORED),
                         &error, &at, context);
    pcre2_compile_context_free(context);
    if (!code) {
        pcre2_get_error_message(error, text, sizeof(text));
        regex_refuse(p, (const char *)text);
        return false;
    }
    re->programs = mem_resize(re->programs, re->programs_n + 1, sizeof(*re->programs));
    re->programs[re->programs_n++] = code;
    buf_clear(pattern);
    return true;
}

static void compile_tree(struct regex *re, struct parser *p, struct node *root)
{
    struct buf out;

    buf_init(&out, 64 * MiB);
    if (p->refs) {
        regex_emit(p, root, &out);
        add_program(re, p, &out);
    }
    for (const struct node *k = p->refs ? NULL : root->kids; k; k = k->next) {
        buf_put_str(&out, out.n ? STR("|") : STR(""));
        regex_emit(p, k, &out);
        if (out.bad)
            regex_refuse(p, "a pattern that grows too large");
        if ((out.n >= PROGRAM_SIZE || !k->next) && (p->failed || !add_program(re, p, &out)))
            break;
    }
    buf_fini(&out);
}

static void keep_groups(struct regex *re, const struct parser *p)
{
    re->groups = p->groups;
    for (const struct group_name *g = p->names; g; g = g->next) {
        struct group_name *mine = arena_alloc(&re->names_memory, sizeof(*mine));

        *mine = (struct group_name){ re->names, arena_str(&re->names_memory, g->name), g->group };
        re->names = mine;
    }
}

static struct regex *build(struct parser *p, struct str pattern, bool replacing)
{
    struct regex *re = mem_new(sizeof(*re));
    struct node *root;

    arena_init(&re->names_memory, 1 * MiB);
    buf_init(&re->scratch, NAME_BYTES_MAX * 3);
    re->replacing = p->refs = replacing;
    p->repeated = replacing ? re->repeated : NULL;
    decode_pattern(p, pattern);
    root = regex_parse(p);
    if (!p->failed)
        regex_settle_behind(p, root);
    if (!p->failed) {
        if (!p->refs)
            take_literals(re, root, pattern.n);
        compile_tree(re, p, root);
    }
    if (p->failed) {
        regex_free(&re);
        return NULL;
    }
    if (replacing)
        keep_groups(re, p);
    re->match = pcre2_match_data_create((uint32_t)re->groups + 1, NULL);
    re->limits = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(re->limits, MATCH_STEPS_MAX);
    pcre2_set_depth_limit(re->limits, MATCH_DEPTH_MAX);
    pcre2_set_heap_limit(re->limits, MATCH_HEAP_KIB);
    re->exact_to = p->exact_to;
    re->exact_cr = p->exact_cr;
    re->exact_why = p->exact_why;
    return re;
}

static enum err compile(struct str pattern, bool replacing, struct regex **out, struct regex_error *why)
{
    struct regex_error nowhere;
    struct arena a;
    struct parser p = { .a = &a, .exact_to = 0x10ffff, .exact_cr = true, .exact_why = "" };
    struct regex *re = NULL;

    p.why = why ? why : &nowhere;
    if (pattern.n > REGEX_PATTERN_MAX) {
        *p.why = (struct regex_error){ .text = "a pattern above 512 KiB",
                                       .at = REGEX_PATTERN_MAX,
                                       .unsupported = true };
        return E_INVALID;
    }
    /* Each character of a pattern makes a few nodes at most; what look-behinds multiply is counted there. */
    arena_init(&a, 512 * MiB + 1024 * pattern.n);
    re = build(&p, pattern, replacing);
    arena_fini(&a);
    if (!re)
        return E_INVALID;
    *out = re;
    return E_OK;
}

enum err regex_compile(struct str pattern, struct regex **out, struct regex_error *why)
{
    return compile(pattern, false, out, why);
}

enum err regex_compile_replacing(struct str pattern, struct regex **out, struct regex_error *why)
{
    return compile(pattern, true, out, why);
}

void regex_free(struct regex **re)
{
    struct regex *r = *re;

    if (!r)
        return;
    for (size_t i = 0; i < r->programs_n; i++)
        pcre2_code_free(r->programs[i]);
    mem_free(r->programs);
    mem_free(r->literals);
    mem_free(r->text);
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->limits);
    buf_fini(&r->scratch);
    arena_fini(&r->names_memory);
    mem_free(r);
    *re = NULL;
}

/* ----------------------------------------------------------------- matching */

/* The name as valid UTF-8, its highest character, and whether it has a carriage return. */
static struct str clean(struct regex *re, struct str name, uint32_t *highest, bool *cr)
{
    struct str rest = name;

    *highest = 0;
    *cr = name.n && memchr(name.p, '\r', name.n);
    buf_clear(&re->scratch);
    while (rest.n) {
        uint32_t c = take_char(&rest);

        put_char(&re->scratch, c);
        *highest = MAX(*highest, c);
    }
    return buf_str(&re->scratch);
}

enum regex_answer regex_match_full(struct regex *re, struct str name)
{
    enum regex_answer answer = REGEX_NO;
    uint32_t highest;
    bool cr;

    if (name.n > NAME_BYTES_MAX)
        return REGEX_SLOW;
    name = clean(re, name, &highest, &cr);
    if (re->literals_n && bsearch(&name, re->literals, re->literals_n, sizeof(name), by_bytes))
        return REGEX_YES;
    if (highest > re->exact_to || (cr && !re->exact_cr))
        return REGEX_UNSURE;
    for (size_t i = 0; i < re->programs_n; i++) {
        int rc = pcre2_match(re->programs[i], (PCRE2_SPTR)name.p, name.n, 0,
                             PCRE2_NO_UTF_CHECK | (re->replacing ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0),
                             re->match, re->limits);

        if (rc >= 0)
            return REGEX_YES;
        if (rc != PCRE2_ERROR_NOMATCH)
            answer = REGEX_SLOW;
    }
    return answer;
}

const char *regex_limits(const struct regex *re)
{
    return re->exact_cr || *re->exact_why ? re->exact_why : "\\R next to a carriage return";
}

/* ---------------------------------------------------------------- replacing */

/* At the '$' of a reference: takes it off rest; the group, or -1 with *why. */
static int take_reference(const struct regex *re, struct str *rest, const char **why)
{
    const struct group_name *g = re->names;
    int64_t end = rest->n > 1 && rest->p[1] == '{' ? str_find(*rest, STR("}"), 0) : -1;
    int group = 0;
    size_t i = 1;

    if (end > 0) {
        struct str name = str_part(*rest, 2, (size_t)end);

        while (g && !str_eq(g->name, name))
            g = g->next;
        *rest = str_part(*rest, (size_t)end + 1, rest->n);
        *why = "it names a group that the pattern does not have";
        return g ? g->group : -1;
    }
    *why = "a $ has to be followed by the number or {name} of a group; write \\$ for the character";
    if (rest->n < 2 || rest->p[1] < '0' || rest->p[1] > '9')
        return -1;
    for (; i < rest->n && rest->p[i] >= '0' && rest->p[i] <= '9'; i++) {
        int more = group * 10 + (rest->p[i] - '0');

        if (i > 1 && more > re->groups)
            break; /* $12 with one group is $1 and a 2 */
        group = more;
    }
    *rest = str_part(*rest, i, rest->n);
    *why = "it names a group that the pattern does not have";
    return group <= re->groups ? group : -1;
}

/* name null: only looks whether it can be done. */
static bool expand(const struct regex *re, struct str replacement, struct str name, struct buf *out, const char **why)
{
    const PCRE2_SIZE *at = re->match ? pcre2_get_ovector_pointer(re->match) : NULL;
    struct str rest = replacement;

    while (rest.n) {
        int group;

        if (rest.p[0] != '$') {
            size_t escaped = rest.p[0] == '\\';

            *why = "a backslash at the end escapes nothing";
            if (rest.n == escaped)
                return false;
            if (!str_is_null(name))
                buf_put_char(out, rest.p[escaped]);
            rest = str_part(rest, 1 + escaped, rest.n);
            continue;
        }
        group = take_reference(re, &rest, why);
        if (group < 0)
            return false;
        *why = "it refers to a group that is repeated or looks around, whose match is not certain";
        if (re->repeated[group])
            return false;
        if (!str_is_null(name) && at[2 * group] != PCRE2_UNSET)
            buf_put(out, name.p + at[2 * group], at[2 * group + 1] - at[2 * group]);
    }
    return true;
}

bool regex_replacement_fits(const struct regex *re, struct str replacement, const char **why)
{
    return expand(re, replacement, STR_NULL, NULL, why);
}

enum regex_answer regex_replace(struct regex *re, struct str name, struct str replacement, struct buf *out)
{
    enum regex_answer answer = regex_match_full(re, name);
    struct str clean_name = buf_str(&re->scratch);
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(re->match);
    const char *why;

    if (answer != REGEX_YES)
        return answer;
    /* Java looks again, from the start and not for the whole name. */
    if (pcre2_match(re->programs[0], (PCRE2_SPTR)clean_name.p, clean_name.n, 0, PCRE2_NO_UTF_CHECK, re->match,
                    re->limits) < 0)
        return REGEX_SLOW;
    buf_put(out, clean_name.p, at[0]);
    (void)expand(re, replacement, clean_name, out, &why);
    buf_put(out, clean_name.p + at[1], clean_name.n - at[1]);
    return REGEX_YES;
}

struct str regex_rename(struct regex *re, struct str name, struct str replacement, struct arena *a)
{
    struct str made = STR_NULL;
    enum regex_answer answer;
    struct buf out;

    buf_init(&out, NAME_ROOM);
    answer = regex_replace(re, name, replacement, &out);
    if (answer == REGEX_YES)
        made = arena_str(a, buf_str(&out));
    else if (answer != REGEX_NO)
        made = STR("");
    buf_fini(&out);
    return made;
}
