/* config.c -- loads an mm2.properties file: the steps, the process's own options, problems, settings.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The file is kept whole (struct props, one struct config_entry beside each entry). Each value is read
 * once, by the row that its key means, and copied from there into every flow that it counts for; so a
 * problem is reported once, at its line, however many flows share it.
 */
#include "daemon/config.h"

#include "base/alloc.h"
#include "base/must.h"
#include "daemon/config_internal.h"
#include "daemon/providers.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_ARENA_MAX ((size_t)1 << 32)
#define CONFIG_TEXT_MAX  2000 /* bytes of one problem's text */

static const struct opt_row rows[] = {
#define OPT(where, type, name, key, alias, value, least, most, when, secret, doc)                  \
    OPT_ROW(struct process_config, PROCESS_##where, type, name, key, alias, value, least, most,    \
            when, secret, doc)
#define CHOICE(where, type, name, key, alias, value, choices, when, doc)                           \
    OPT_ROW_CHOICE(struct process_config, PROCESS_##where, type, name, key, alias, value, choices, \
                   when, doc)
#define NO_EFFECT(where, key, why) OPT_ROW_NO_EFFECT(PROCESS_##where, key, why)
#include "daemon/process.opt"
#undef OPT
#undef CHOICE
#undef NO_EFFECT
};

static const char *where_text(unsigned where)
{
    (void)where;
    return "KEY";
}

const struct opt_table config_opts = {
    .name = "process",
    .title = "The whole process",
    .rows = rows,
    .count = COUNT(rows),
    .where_text = where_text,
};

struct config_entry *config_entry_of(struct loader *l, const struct prop *p)
{
    return &l->entries[p - l->props->at];
}

static void report(struct loader *l, struct config_problem problem, const char *fmt, va_list ap)
{
    struct config *c = l->c;
    char text[CONFIG_TEXT_MAX];

    if (problem.severity == CONFIG_ERROR)
        c->error_count++;
    if (c->problem_count == CONFIG_PROBLEMS_MAX)
        return;
    vsnprintf(text, sizeof(text), fmt, ap);
    problem.text = arena_str(l->a, str_c(text));
    if (c->problem_count == l->problem_room) {
        size_t room = l->problem_room ? l->problem_room * 2 : 16;
        struct config_problem *more = arena_array(l->a, room, sizeof(*more));

        if (c->problem_count)
            memcpy(more, l->problems, c->problem_count * sizeof(*more));
        l->problems = more;
        l->problem_room = room;
        c->problems = more;
    }
    l->problems[c->problem_count++] = problem;
}

void config_report(struct loader *l, const struct prop *p, enum config_severity severity,
                   const char *fmt, ...)
{
    struct config_problem problem = { p->file, p->line, p->key, severity, STR_NULL };
    va_list ap;

    if (severity == CONFIG_ERROR) {
        if (config_entry_of(l, p)->refused)
            return; /* one error per entry is enough */
        config_entry_of(l, p)->refused = true;
    }
    va_start(ap, fmt);
    report(l, problem, fmt, ap);
    va_end(ap);
}

void config_report_key(struct loader *l, struct str key, enum config_severity severity,
                       const char *fmt, ...)
{
    struct config_problem problem = { l->c->file, 0, arena_str(l->a, key), severity, STR_NULL };
    va_list ap;

    va_start(ap, fmt);
    report(l, problem, fmt, ap);
    va_end(ap);
}

struct prop *config_find(const struct loader *l, struct str a, struct str b, struct str c)
{
    char key[OPT_KEY_MAX];
    size_t n = a.n + b.n + c.n;

    if (n > sizeof(key))
        return NULL;
    memcpy(key, a.p, a.n);
    memcpy(key + a.n, b.p, b.n);
    memcpy(key + a.n + b.n, c.p, c.n);
    return props_find(l->props, str_of(key, n));
}

/* What does the work of a Java class that cannot run here. */
static const struct {
    const char *key, *instead;
} class_advice[] = {
    { "topic.filter.class", "what it accepts can be said with topics and topics.exclude" },
    { "group.filter.class", "what it accepts can be said with groups and groups.exclude" },
    { "config.property.filter.class", "what it leaves out can be said with config.properties.exclude" },
    { "replication.policy.class",
      "one that keeps all names is IdentityReplicationPolicy, names by other rules are made with heliostat.topic.map" },
    { "forwarding.admin.class", "topics are made by the principal of TARGET.admin.*" },
    { "key.converter", "records are copied byte for byte whatever is in them: remove it" },
    { "value.converter", "records are copied byte for byte whatever is in them: remove it" },
    { "header.converter", "headers are copied byte for byte whatever is in them: remove it" },
};

static struct str with_advice(struct loader *l, const struct opt_row *row, struct str why)
{
    for (size_t i = 0; i < COUNT(class_advice); i++)
        if (strcmp(class_advice[i].key, row->key) == 0)
            return arena_fmt(l->a, "%.*s; %s", STR_ARG(why), class_advice[i].instead);
    return why;
}

/* Reads the value of an entry for the first time. */
static void parse_entry(struct loader *l, const struct prop *p, const struct opt_row *row)
{
    struct config_entry *e = config_entry_of(l, p);
    struct opt_row here = *row;
    struct str why;
    enum err bad;

    here.at = offsetof(struct config_entry, value);
    here.key = p->key.p; /* a secret by the whole key's name too */
    if (e->resolved)
        here.secret = OPT_SECRET;
    bad = opt_parse(&here, p->value, e, l->a, &why);
    e->parsed_by = row;
    e->sound = !bad;
    if (bad && row->type == OPT_CLASS && !str_is_null(why))
        why = with_advice(l, row, why);
    if (!str_is_null(why))
        config_report(l, p, bad ? CONFIG_ERROR : CONFIG_WARNING, "%.*s", STR_ARG(why));
}

void config_take(struct loader *l, const struct prop *p, const struct opt_row *row, void *into,
                 uint32_t *origin)
{
    struct config_entry *e = config_entry_of(l, p);

    if (e->parsed_by != row)
        parse_entry(l, p, row);
    if (!e->sound)
        return;
    memcpy((char *)into + row->at, &e->value, opt_size(row->type));
    *origin = (uint32_t)(p - l->props->at) + 1;
}

static void take_process(struct loader *l)
{
    opt_defaults(&config_opts, &l->c->process, l->a);
    l->origins->process = arena_array(l->a, config_opts.count, sizeof(uint32_t));
    for (size_t i = 0; i < config_opts.count; i++) {
        const struct opt_row *row = &config_opts.rows[i];
        struct prop *p = props_find(l->props, str_c(row->key));

        if (p && row->value)
            config_take(l, p, row, &l->c->process, &l->origins->process[i]);
    }
}

/* --set key=value: the text behind the first '=' is the value, without escapes. */
static void apply_sets(struct loader *l, const struct config_args *args)
{
    for (size_t i = 0; i < args->set_count; i++) {
        struct str rest = args->sets[i];
        struct str key;
        bool cut = str_find(rest, STR("="), 0) >= 0;

        if (!cut || !str_next(&rest, '=', &key) || str_trim(key).n == 0) {
            config_report_key(l, STR("--set"), CONFIG_ERROR, "argument %zu has no %s; write --set key=value",
                              i + 1, cut ? "key before the '='" : "'='");
            continue;
        }
        if (props_put(l->props, str_trim(key), rest, STR("--set"), 0))
            config_report_key(l, STR("--set"), CONFIG_ERROR, "too many keys");
    }
}

static void report_repeated(struct loader *l)
{
    for (size_t i = 0; i < l->props->n; i++) {
        const struct prop *p = &l->props->at[i];

        if (p->before)
            config_report(l, p, CONFIG_WARNING,
                          "given before in line %d, and the last one counts; remove one of them",
                          p->before);
    }
}

static int by_line(const void *x, const void *y)
{
    const struct config_problem *a = x, *b = y;

    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (!str_eq(a->key, b->key))
        return str_cmp(a->key, b->key);
    if (a->severity != b->severity)
        return a->severity < b->severity ? -1 : 1;
    return str_cmp(a->text, b->text);
}

static struct config *config_new(const struct config_args *args)
{
    struct config *c = mem_new(sizeof(*c));

    arena_init(&c->arena, CONFIG_ARENA_MAX);
    c->file = arena_str(&c->arena, args->path);
    return c;
}

static void loader_init(struct loader *l, struct config *c, const struct config_args *args)
{
    *l = (struct loader){ .c = c, .a = &c->arena, .env = args->env };
    l->origins = arena_alloc(l->a, sizeof(*l->origins));
    l->props = &l->origins->props;
    props_init(l->props, l->a);
    c->origins = l->origins;
    opt_defaults(&config_opts, &c->process, l->a);
}

enum err config_parse(const struct config_args *args, struct str text, struct config **out)
{
    struct config *c = config_new(args);
    struct props_fault fault;
    struct loader l;

    *out = c;
    loader_init(&l, c, args);
    if (props_parse(l.props, text, PROPS_LATIN1, c->file, &fault)) {
        config_report_key(&l, STR("(syntax)"), CONFIG_ERROR, "%s", fault.text);
        l.problems[0].line = fault.line;
        return E_INVALID;
    }
    apply_sets(&l, args);
    l.entries = arena_array(l.a, l.props->n + 1, sizeof(*l.entries));
    l.origins->entries = l.entries;
    for (size_t i = 0; i < l.props->n; i++)
        l.entries[i].raw = l.props->at[i].value;
    report_repeated(&l);
    providers_apply(&l);
    config_keys_place(&l);
    take_process(&l);
    config_flows_make(&l, args);
    config_keys_report(&l);
    config_check(&l);
    if (c->problem_count)
        qsort(l.problems, c->problem_count, sizeof(*l.problems), by_line);
    return c->error_count ? E_INVALID : E_OK;
}

static enum err unreadable(const struct config_args *args, const char *why, struct config **out)
{
    struct config *c = config_new(args);
    struct loader l;

    loader_init(&l, c, args);
    config_report_key(&l, STR("(file)"), CONFIG_ERROR, "%s; give a readable file", why);
    *out = c;
    return E_INVALID;
}

enum err config_load(const struct config_args *args, struct config **out)
{
    struct str path = args->path;
    char *name = mem_copy_str(path.p, path.n);
    FILE *f = fopen(name, "rb");
    struct buf text;
    enum err e;

    buf_init(&text, PROPS_BYTES_MAX + 1);
    while (f && text.n <= PROPS_BYTES_MAX) {
        size_t before = text.n;
        char chunk[64 * KiB];
        size_t n = fread(chunk, 1, MIN(sizeof(chunk), PROPS_BYTES_MAX + 1 - text.n), f);

        buf_put(&text, chunk, n);
        if (text.n == before)
            break;
    }
    if (!f || ferror(f))
        e = unreadable(args, strerror(errno), out);
    else
        e = config_parse(args, buf_str(&text), out);
    if (f)
        fclose(f);
    buf_fini(&text);
    mem_free(name);
    return e;
}

void config_free(struct config **c)
{
    if (!*c)
        return;
    arena_fini(&(*c)->arena);
    mem_free(*c);
    *c = NULL;
}

/* Text that may come from the file, without what a terminal would obey. */
static void put_clean(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        buf_put_char(out, (unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f ? '?' : s.p[i]);
}

void config_problem_format(const struct config_problem *p, struct buf *out)
{
    put_clean(out, p->file);
    if (p->line)
        buf_fmt(out, ":%d", p->line);
    buf_put_str(out, STR(": "));
    put_clean(out, str_part(p->key, 0, OPT_KEY_MAX));
    buf_put_str(out, p->severity == CONFIG_WARNING ? STR(": warning: ") : STR(": "));
    put_clean(out, p->text);
}
