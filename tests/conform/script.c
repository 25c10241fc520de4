/* script.c -- what a script knows: variables, names for what differs from broker to broker, times that it has chosen.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void script_fail(const struct script *s, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%.*s:%d: ", STR_ARG(s->file), s->line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(2);
}

static struct str find(const struct name *names, int n, struct str name)
{
    for (int i = 0; i < n; i++)
        if (str_eq(names[i].name, name))
            return names[i].value;
    return STR_NULL;
}

void script_set(struct script *s, struct str name, struct str value)
{
    int i = 0;

    while (i < s->vars_n && !str_eq(s->vars[i].name, name))
        i++;
    if (i == NAMES_MAX)
        script_fail(s, "too many variables");
    s->vars_n = MAX(s->vars_n, i + 1);
    s->vars[i] = (struct name){ arena_str(&s->arena, name), arena_str(&s->arena, value) };
}

struct str script_get(const struct script *s, struct str name)
{
    struct str value = find(s->vars, s->vars_n, name);

    if (!value.p)
        script_fail(s, "no variable is called %.*s", STR_ARG(name));
    return value;
}

struct str script_var_of(const struct script *s, struct str value)
{
    for (int i = 0; i < s->vars_n; i++)
        if (str_eq(s->vars[i].value, value))
            return s->vars[i].name;
    return STR_NULL;
}

/* Of one kind the first value that appears is called 1, and so on. */
struct str script_label(struct script *s, const char *kind, struct str value)
{
    struct str key = arena_fmt(&s->arena, "%s:%.*s", kind, STR_ARG(value));
    struct str label = find(s->labels, s->labels_n, key);
    struct str prefix = arena_fmt(&s->arena, "%s:", kind);
    int n = 1;

    if (label.p)
        return label;
    if (s->labels_n == NAMES_MAX)
        script_fail(s, "too many labels");
    for (int i = 0; i < s->labels_n; i++)
        n += str_starts(s->labels[i].name, prefix);
    label = arena_fmt(&s->arena, "%s%d", kind, n);
    s->labels[s->labels_n++] = (struct name){ key, label };
    return label;
}

void script_note_time(struct script *s, int64_t ms)
{
    if (script_has_time(s, ms))
        return;
    if (s->times_n == NAMES_MAX)
        script_fail(s, "too many times");
    s->times[s->times_n++] = ms;
}

bool script_has_time(const struct script *s, int64_t ms)
{
    for (int i = 0; i < s->times_n; i++)
        if (s->times[i] == ms)
            return true;
    return false;
}

void script_init(struct script *s)
{
    arena_init(&s->arena, 64 * MiB);
    arena_init(&s->answer_arena, 256 * MiB);
    buf_init(&s->out, 16 * MiB);
    s->peers[0].name = STR("main");
}
