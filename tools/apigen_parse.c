/* apigen_parse.c -- reads one .api file.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     # Comment lines above the request tell what the API is for.
 *     request NAME key=N versions=A-B flexible=N|none to=WHOM safe=yes|no
 *       FIELD  TYPE[?[N+]]  [VERSIONS]  [= DEFAULT]  [tag=N]  [ignorable]  [# words]
 *         FIELD of the struct above, two blanks deeper
 *     response
 *       ...
 *
 * WHOM is any, controller, leader, group-coordinator or txn-coordinator; it may be repeated when
 * lost if safe=yes. TYPE is bool, int8, int16, uint16, int32, uint32, int64, float64, uuid,
 * string, bytes, records or the name of a struct; [] before it makes an array. A struct's fields
 * follow indented where its name is used first in a message; later uses of the name repeat it.
 * TYPE? may be null, TYPE?7+ from version 7. VERSIONS is 3+, 2-4 or 5; without it the field is in
 * all versions. A field with a tag travels in the tagged section.
 */
#include "apigen.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8
#define WORDS_MAX 12

struct parser {
    const char *path;
    int line;
    struct api *api;
    struct half *half;           /* NULL before the request line */
    struct def *open[DEPTH_MAX]; /* the struct whose fields stand at each depth */
    int depth;                   /* deepest that a field may stand now */
    char *words[WORDS_MAX];
    int words_n;
    const char *comment; /* behind the # of this line, or NULL */
};

static const struct {
    const char *name, *c;
} targets[] = {
    { "any", "API_TO_ANY" },
    { "controller", "API_TO_CONTROLLER" },
    { "leader", "API_TO_LEADER" },
    { "group-coordinator", "API_TO_GROUP_COORDINATOR" },
    { "txn-coordinator", "API_TO_TXN_COORDINATOR" },
};

/* ListOffsets and timeoutMs become list_offsets and timeout_ms. */
static char *snake(const char *name, int (*letter)(int))
{
    char *out = keep(2 * strlen(name) + 1);
    size_t n = 0;

    for (size_t i = 0; name[i]; i++) {
        if (i && isupper((unsigned char)name[i]))
            out[n++] = '_';
        out[n++] = (char)letter((unsigned char)name[i]);
    }
    return out;
}

static int number(const struct parser *p, const char *text)
{
    char *end;
    long v = strtol(text, &end, 10);

    if (end == text || *end || v < 0 || v > INT16_MAX)
        fail(p->path, p->line, "'%s' is not a small number", text);
    return (int)v;
}

/* "3+", "2-4" or "5". */
static void versions(const struct parser *p, const char *text, int *since, int *until)
{
    char *copy = format("%s", text);
    char *dash = strchr(copy, '-');
    size_t n = strlen(copy);

    if (dash) {
        *dash = '\0';
        *since = number(p, copy);
        *until = number(p, dash + 1);
    } else if (n && copy[n - 1] == '+') {
        copy[n - 1] = '\0';
        *since = number(p, copy);
        *until = p->api->max;
    } else {
        *since = *until = number(p, copy);
    }
    if (*since > *until)
        fail(p->path, p->line, "versions '%s' are empty", text);
}

/* Cuts the line into words; what follows a # is the comment. */
static void split(struct parser *p, char *line)
{
    char *hash = strchr(line, '#');

    p->words_n = 0;
    p->comment = NULL;
    if (hash) {
        *hash++ = '\0';
        while (*hash == ' ')
            hash++;
        hash[strcspn(hash, "\r\n")] = '\0';
        p->comment = format("%s", hash);
    }
    for (char *at = line;;) {
        at += strspn(at, " \t\r\n");
        if (!*at)
            return;
        if (p->words_n == WORDS_MAX)
            fail(p->path, p->line, "more than %d words", WORDS_MAX);
        p->words[p->words_n++] = at;
        at += strcspn(at, " \t\r\n");
        if (*at)
            *at++ = '\0';
    }
}

/* The value of "name=value" among the words of a request line. */
static const char *value_of(const struct parser *p, const char *name)
{
    size_t n = strlen(name);

    for (int i = 2; i < p->words_n; i++)
        if (!strncmp(p->words[i], name, n) && p->words[i][n] == '=')
            return p->words[i] + n + 1;
    fail(p->path, p->line, "%s= is missing", name);
}

static const char *target(const struct parser *p, const char *name)
{
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        if (!strcmp(targets[i].name, name))
            return targets[i].c;
    fail(p->path, p->line, "to=%s is not known", name);
}

static void open_half(struct parser *p, struct half *half, const char *kind)
{
    struct def *d = keep(sizeof(*d));

    d->name = format("kafka_%s_%s", p->api->snake, kind);
    d->nick = "";
    half->self = d;
    p->half = half;
    p->open[0] = d;
    p->depth = 0;
}

/* Puts d behind the structs that it holds, so that C knows each before its first use. */
static void order(struct parser *p, struct half *h, struct def *d)
{
    for (int i = 0; i < h->defs_n; i++)
        if (h->defs[i] == d)
            return;
    for (int i = 0; i < d->props_n; i++)
        if (d->props[i]->of)
            order(p, h, d->props[i]->of);
    if (*d->nick && !d->props_n)
        fail(p->path, p->line, "struct %s has no fields", d->nick);
    h->defs[h->defs_n++] = d;
}

static void close_half(struct parser *p)
{
    struct half sorted = { .self = p->half->self };

    order(p, &sorted, sorted.self);
    *p->half = sorted;
}

static void parse_request(struct parser *p)
{
    struct api *a = p->api;
    const char *flexible, *safe;

    if (p->half || p->words_n != 7)
        fail(p->path, p->line, "expected: request NAME key= versions= flexible= to= safe=");
    a->name = format("%s", p->words[1]);
    a->snake = snake(a->name, tolower);
    a->upper = snake(a->name, toupper);
    a->key = number(p, value_of(p, "key"));
    versions(p, value_of(p, "versions"), &a->min, &a->max);
    flexible = value_of(p, "flexible");
    a->flexible = strcmp(flexible, "none") ? number(p, flexible) : INT16_MAX;
    a->to = target(p, value_of(p, "to"));
    safe = value_of(p, "safe");
    if (strcmp(safe, "yes") && strcmp(safe, "no"))
        fail(p->path, p->line, "safe=%s is neither yes nor no", safe);
    a->safe = !strcmp(safe, "yes");
    open_half(p, &a->request, "request");
}

/* Reads "[]name?7+" into the field. */
static void parse_type(struct parser *p, struct prop *f, const char *text)
{
    char *type = format("%s", text);
    char *mark = strchr(type, '?');

    f->array = !strncmp(type, "[]", 2);
    if (mark) {
        int until;

        *mark++ = '\0';
        f->null_since = p->api->min;
        if (*mark)
            versions(p, mark, &f->null_since, &until);
    }
    f->type = type + (f->array ? 2 : 0);
    if (!*f->type || !isalpha((unsigned char)*f->type))
        fail(p->path, p->line, "'%s' is not a type", text);
}

/* The words behind name and type, in any order. */
static void parse_rest(struct parser *p, struct prop *f)
{
    for (int i = 2; i < p->words_n; i++) {
        const char *w = p->words[i];

        if (!strcmp(w, "=") && i + 1 < p->words_n)
            f->initial = format("%s", p->words[++i]);
        else if (!strcmp(w, "ignorable"))
            f->ignorable = true;
        else if (!strncmp(w, "tag=", 4))
            f->tag = number(p, w + 4);
        else if (isdigit((unsigned char)*w))
            versions(p, w, &f->since, &f->until);
        else
            fail(p->path, p->line, "'%s' is not understood", w);
    }
    if (f->since < p->api->min || f->until > p->api->max)
        fail(p->path, p->line, "%s has versions outside %d-%d", f->name, p->api->min, p->api->max);
    if (f->tag >= 0 && f->since < p->api->flexible)
        fail(p->path, p->line, "%s has a tag before version %d", f->name, p->api->flexible);
}

static void check_number(const struct parser *p, const struct prop *f)
{
    static const struct {
        const char *type;
        long long least, most;
    } limits[] = {
        { "int8", INT8_MIN, INT8_MAX },      { "int16", INT16_MIN, INT16_MAX },
        { "uint16", 0, UINT16_MAX },         { "int32", INT32_MIN, INT32_MAX },
        { "uint32", 0, UINT32_MAX },         { "int64", INT64_MIN, INT64_MAX },
        { "float64", INT32_MIN, INT32_MAX },
    };
    char *end;
    long long v;

    errno = 0;
    v = strtoll(f->initial, &end, 0);
    if (errno || *end)
        fail(p->path, p->line, "'%s' is not a number", f->initial);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (!strcmp(limits[i].type, f->type) && v >= limits[i].least && v <= limits[i].most)
            return;
    fail(p->path, p->line, "'%s' does not fit into %s", f->initial, f->type);
}

static void check_initial(const struct parser *p, const struct prop *f)
{
    const char *v = f->initial;

    if (!v)
        return;
    if (!strcmp(v, "null")) {
        if (f->null_since < 0)
            fail(p->path, p->line, "%s is null by default and may not be null", f->name);
    } else if (f->array || f->of || !strncmp(f->type, "str", 3) || !strncmp(f->type, "byt", 3)) {
        fail(p->path, p->line, "%s can only have the default null", f->name);
    } else if (!strcmp(f->type, "bool")) {
        if (strcmp(v, "true") && strcmp(v, "false"))
            fail(p->path, p->line, "%s is neither true nor false", f->name);
    } else {
        check_number(p, f);
    }
}

static struct def *parse_struct(struct parser *p, const char *nick, int depth)
{
    struct def *d = NULL;

    for (int i = 0; i < p->half->defs_n; i++)
        if (!strcmp(p->half->defs[i]->nick, nick))
            d = p->half->defs[i];
    for (int i = 0; i <= depth; i++)
        if (d == p->open[i])
            fail(p->path, p->line, "struct %s would hold itself", nick);
    if (d)
        return d;
    if (depth + 1 == DEPTH_MAX || p->half->defs_n == STRUCTS_MAX - 1)
        fail(p->path, p->line, "too many structs, or too deep");
    d = keep(sizeof(*d));
    d->nick = nick;
    d->name = format("%s_%s", p->half->self->name, nick);
    p->half->defs[p->half->defs_n++] = d;
    p->open[depth + 1] = d;
    p->depth = depth + 1;
    return d;
}

static void parse_field(struct parser *p, int indent)
{
    int depth = indent / 2 - 1;
    struct prop *f = keep(sizeof(*f));
    struct def *in;

    if (!p->half || indent % 2 || depth < 0 || depth > p->depth)
        fail(p->path, p->line, "a field stands at an indentation that fits nothing above");
    if (p->words_n < 2)
        fail(p->path, p->line, "a field needs a name and a type");
    in = p->open[depth];
    *f = (struct prop){ .name = format("%s", p->words[0]),
                        .doc = p->comment,
                        .null_since = -1,
                        .tag = -1,
                        .since = p->api->min,
                        .until = p->api->max,
                        .line = p->line };
    for (int i = 0; i < in->props_n; i++)
        if (!strcmp(in->props[i]->name, f->name))
            fail(p->path, p->line, "%s is there twice", f->name);
    parse_type(p, f, p->words[1]);
    p->depth = depth;
    if (!primitive_find(f->type))
        f->of = parse_struct(p, f->type, depth);
    parse_rest(p, f);
    check_initial(p, f);
    if (f->of && !f->array && f->null_since > f->since)
        fail(p->path, p->line, "a struct may be null in all versions or in none");
    for (int i = 0; f->tag >= 0 && i < in->props_n; i++)
        if (in->props[i]->tag == f->tag)
            fail(p->path, p->line, "tag %d is taken by %s", f->tag, in->props[i]->name);
    if (in->props_n == FIELDS_MAX)
        fail(p->path, p->line, "more than %d fields", FIELDS_MAX);
    in->props[in->props_n++] = f;
}

static void parse_line(struct parser *p, char *line)
{
    int indent = (int)strspn(line, " ");

    split(p, line);
    if (!p->words_n) {
        if (p->comment && !p->half)
            p->api->doc = p->api->doc ? format("%s %s", p->api->doc, p->comment) : p->comment;
    } else if (indent) {
        parse_field(p, indent);
    } else if (!strcmp(p->words[0], "request")) {
        parse_request(p);
    } else if (!strcmp(p->words[0], "response") && p->words_n == 1 && p->half == &p->api->request) {
        close_half(p);
        open_half(p, &p->api->response, "response");
    } else {
        fail(p->path, p->line, "expected one request, one response or a field");
    }
}

struct api *parse_file(const char *path)
{
    struct parser p = { .path = path, .api = keep(sizeof(struct api)) };
    FILE *in = fopen(path, "r");
    char line[512];

    if (!in)
        fail(path, 0, "%s", strerror(errno));
    p.api->file = path;
    while (fgets(line, sizeof(line), in)) {
        p.line++;
        if (strlen(line) == sizeof(line) - 1)
            fail(path, p.line, "the line is too long");
        parse_line(&p, line);
    }
    fclose(in);
    if (p.half != &p.api->response)
        fail(path, p.line, "the response is missing");
    if (!p.api->doc)
        fail(path, 1, "the comment that tells what the API is for is missing");
    close_half(&p);
    return p.api;
}
