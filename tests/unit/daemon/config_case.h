/* config_case.h -- reads configs out of texts and asks them, for the tests of daemon/config.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_DAEMON_CONFIG_CASE_H
#define TESTS_UNIT_DAEMON_CONFIG_CASE_H

#include <stdio.h>

#include "daemon/config.h"

#include "unit/test.h"

#define TWO "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:2\n"

static inline struct config *case_parse(const char *text, const char *clusters)
{
    struct str named = str_c(clusters);
    struct config_args args = { .path = STR("f"),
                                .clusters = &named,
                                .cluster_count = clusters ? 1 : 0 };
    struct config *c;
    enum err e = config_parse(&args, str_c(text), &c);

    CHECK_EQ(e != E_OK, c->error_count > 0);
    return c;
}

static inline const struct flow_config *case_flow(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->flow_count; i++)
        if (str_eq(c->flows[i].name, str_c(name)))
            return &c->flows[i];
    return NULL;
}

/* All problems, one a line. */
static inline const char *case_problems(const struct config *c, struct buf *out)
{
    buf_clear(out);
    for (size_t i = 0; i < c->problem_count; i++) {
        config_problem_format(&c->problems[i], out);
        buf_put_char(out, '\n');
    }
    return buf_cstr(out);
}

struct case_setting {
    const char *scope, *key;
    char value[4 * KiB];
    char origin[256];
};

static inline void case_visit(const struct config_setting *s, void *arg)
{
    struct case_setting *want = arg;

    if (!str_eq(s->scope, str_c(want->scope)) || !str_eq(s->key, str_c(want->key)))
        return;
    snprintf(want->value, sizeof(want->value), "%.*s", STR_ARG(s->value));
    snprintf(want->origin, sizeof(want->origin), "%.*s:%d", STR_ARG(s->origin_key), s->line);
}

/* The effective value of a setting and "key:line" where it came from (":0": default). */
static inline struct case_setting case_ask(const struct config *c, const char *scope,
                                           const char *key)
{
    struct case_setting s = { .scope = scope, .key = key };

    config_each_setting(c, case_visit, &s);
    return s;
}

#endif
