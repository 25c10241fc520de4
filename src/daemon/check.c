/* check.c -- the verb `check`: what a file means and what would be done, without doing it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exit codes: 0 it can run as it is, 1 something of it would not work, 2 the file or the command line is wrong, 3 a
 * cluster that a flow needs did not answer in time.
 */
#include "daemon/check.h"

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/check_int.h"
#include "daemon/file_args.h"
#include "kafka/cluster.h"
#include "loop/deadline.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define END_LIMIT_S 2

static int64_t no_clock(void)
{
    return 0;
}

/* The directors' events say nothing here that the plan does not. */
static void say_nothing(const char *line, size_t n)
{
    (void)line;
    (void)n;
}

void check_add(struct check_flow *f, enum config_severity severity, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX * 2];
    va_list ap;

    if (f->findings_n == CHECK_FINDINGS_MAX)
        return;
    if (!f->findings)
        f->findings = arena_array(&f->check->arena, CHECK_FINDINGS_MAX, sizeof(*f->findings));
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    f->findings[f->findings_n++] =
        (struct check_finding){ severity, arena_str(&f->check->arena, str_c(text)) };
}

static int by_topic(const void *a, const void *b)
{
    return str_cmp(((const struct check_topic *)a)->want->name,
                   ((const struct check_topic *)b)->want->name);
}

struct check_topic *check_topics(struct check_flow *f, size_t *n)
{
    const struct plan *p = f->plan;
    struct check_topic *all = f->topics;

    *n = p->wants_n;
    if (all)
        return all;
    all = f->topics = arena_array(&f->check->arena, p->wants_n, sizeof(*all));
    for (size_t i = 0; i < p->creates_n; i++)
        all[p->creates[i].want - p->wants].create = &p->creates[i];
    for (size_t i = 0; i < p->grows_n; i++)
        all[p->grows[i].want - p->wants].grow = &p->grows[i];
    for (size_t i = 0; i < p->wants_n; i++) {
        const struct topic_want *w = &p->wants[i];
        const struct topic_have *have = plan_find_have(p, w->target_name);
        struct check_topic *t = &all[i];

        t->want = w;
        t->have = have ? have->partitions : 0;
        t->replicas = have ? have->replicas : 0;
        if (p->faults_n)
            t->fault = plan_fault(p, w);
        else if (t->create && fault_is_set(&t->create->fault))
            t->fault = &t->create->fault;
        t->action = t->fault ? "fault" : t->create ? "create" : t->grow ? "grow" : "keep";
    }
    if (p->wants_n)
        qsort(all, p->wants_n, sizeof(*all), by_topic);
    return all;
}

const char *check_delivery(const struct flow_config *c)
{
    return flow_config_delivery(c);
}

struct str check_refusal(struct check_flow *f, const struct plan_refused *r)
{
    struct arena *a = &f->check->arena;
    bool accepted;

    if (r->verdict == POLICY_FILTERED && f->filter)
        return arena_fmt(a, "%s: %.*s", policy_verdict_text(r->verdict),
                         STR_ARG(filter_why(f->filter, r->topic, a, &accepted)));
    return str_c(policy_verdict_text(r->verdict));
}

static void init(struct check *c, const struct config *config, bool offline)
{
    *c = (struct check){ .config = config, .offline = offline, .flows_n = config->flow_count };
    arena_init(&c->arena, (size_t)GiB);
    if (config->error_count) {
        c->code = 2;
        c->flows_n = 0;
    }
    c->flows = mem_array(c->flows_n, sizeof(*c->flows));
    for (size_t i = 0; i < c->flows_n; i++) {
        struct str why;

        c->flows[i].check = c;
        c->flows[i].config = &config->flows[i];
        if (filter_new(&config->flows[i].topics, &config->flows[i].topics_exclude, &c->arena,
                       &c->flows[i].filter, &why))
            check_add(&c->flows[i], CONFIG_ERROR, "%.*s", STR_ARG(why));
    }
}

static void fini(struct check *c)
{
    for (size_t i = 0; i < c->flows_n; i++)
        filter_free(&c->flows[i].filter);
    mem_free(c->flows);
    arena_fini(&c->arena);
}

static void say_unreached(struct check *c)
{
    size_t n;
    struct cluster **all = check_clusters(c, &n);

    for (size_t i = 0; i < n; i++)
        if (!cluster_is_up(all[i]))
            fprintf(stderr, "heliostat: cluster %.*s cannot be reached: %s\n", STR_ARG(cluster_name(all[i])),
                    fault_is_set(cluster_fault(all[i])) ? cluster_fault(all[i])->text : "no answer in time");
}

static int check(const struct config *config, const struct file_args *args)
{
    struct check c;
    struct buf out;

    init(&c, config, args->offline);
    if (c.flows_n && !args->offline)
        check_look(&c);
    if (c.code == 0)
        check_judge(&c);
    if (c.code == 3)
        say_unreached(&c);
    buf_init(&out, (size_t)GiB);
    if (args->json)
        check_put_json(&c, &out);
    else if (c.code != 2)
        check_put_text(&c, &out);
    if (out.n)
        fwrite(out.p, 1, out.n, stdout);
    buf_fini(&out);
    fflush(stdout);
    deadline_set(END_LIMIT_S, c.code, NULL); /* a look-up may still sit in the system's resolver */
    if (c.flows_n && !args->offline)
        check_look_end(&c);
    deadline_clear();
    fini(&c);
    return c.code;
}

int check_main(int argc, char **argv)
{
    struct file_args args;
    struct config *config = NULL;
    int code = file_args_parse(argc, argv, true, &args);

    if (code) {
        file_args_fini(&args);
        return code - 1;
    }
    log_setup(LOG_TEXT, LOG_ERROR, no_clock, say_nothing);
    /* Its verdict is config->error_count, which the rest goes by. */
    code = config_load(&args.config, &config);
    file_args_print_problems(config);
    code = check(config, &args);
    config_free(&config);
    file_args_fini(&args);
    return code;
}
