/* check_look.c -- asks the clusters for everything that check tells, and changes nothing.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One loop carries a director of each flow, also of those that only write heartbeats (mirror/director.h: director_new_check) until every one has its plan,
 * or the time is up.
 */
#include "daemon/check_int.h"

#include "kafka/cluster.h"
#include "loop/loop.h"

struct limit {
    struct timer timer;
    struct check *check;
};

static void flow_done(struct check_flow *f)
{
    if (f->done)
        return;
    f->done = true;
    if (--f->check->open == 0)
        loop_stop(f->check->loop);
}

static void limits_done(struct check_flow *f)
{
    f->acls = check_acls_ask(f, flow_done);
    if (!f->acls)
        flow_done(f);
}

static void on_told(void *arg, const struct plan *p)
{
    struct check_flow *f = arg;

    f->told = true;
    f->plan = p;
    if (!p) {
        f->fault = *director_fault(f->director);
        flow_done(f);
        return;
    }
    f->limits = check_limits_ask(f, limits_done);
    if (!f->limits)
        limits_done(f);
}

static void on_limit(struct timer *t)
{
    loop_stop(container_of(t, struct limit, timer)->check->loop);
}

/* Why a flow has no plan though time is up. */
static void take_delay(struct check_flow *f)
{
    for (int target = 0; target < 2; target++) {
        struct cluster *cl = director_cluster(f->director, target);
        const struct fault *at = cl ? cluster_fault(cl) : NULL;

        if (!cl || cluster_is_up(cl))
            continue; /* a flow of heartbeats needs no source */
        f->unreachable = true;
        fault_set(&f->fault, 0, fault_is_set(at) ? at->code : "TIMEOUT", "cluster %.*s cannot be reached: %s",
                  STR_ARG(cluster_name(cl)), fault_is_set(at) ? at->text : "no answer in time");
        check_add(f, CONFIG_ERROR, "%s", f->fault.text);
    }
    if (f->unreachable)
        return;
    if (fault_is_set(director_fault(f->director)))
        f->fault = *director_fault(f->director);
    else
        fault_set(&f->fault, 0, "TIMEOUT", "the clusters did not tell all in %d s", CHECK_LIMIT_MS / 1000);
    check_add(f, CONFIG_ERROR, "%s", f->fault.text);
}

void check_look(struct check *c)
{
    struct limit limit = { .check = c };

    c->loop = loop_new("check");
    for (size_t i = 0; i < c->flows_n; i++) {
        struct check_flow *f = &c->flows[i];

        c->open++;
        f->director = director_new_check(c->loop, f->config, on_told, f);
    }
    timer_init(&limit.timer, on_limit);
    timer_set_ms(c->loop, &limit.timer, CHECK_LIMIT_MS);
    if (c->open)
        loop_run(c->loop);
    timer_cancel(c->loop, &limit.timer);
    for (size_t i = 0; i < c->flows_n; i++) {
        struct check_flow *f = &c->flows[i];

        if (f->director && !f->told)
            take_delay(f);
        else if (f->director && !f->plan)
            check_add(f, CONFIG_ERROR, "%s", f->fault.text);
    }
}

static void on_stopped(void *arg, bool stored)
{
    struct check *c = arg;

    (void)stored;
    if (--c->open == 0)
        loop_stop(c->loop);
}

void check_look_end(struct check *c)
{
    c->open = 0;
    for (size_t i = 0; i < c->flows_n; i++) {
        check_limits_free(&c->flows[i].limits);
        check_acls_free(&c->flows[i].acls);
        if (!c->flows[i].director)
            continue;
        c->open++;
        director_stop(c->flows[i].director, 0, on_stopped, c);
    }
    if (c->open)
        loop_run(c->loop);
    for (size_t i = 0; i < c->flows_n; i++)
        director_free(&c->flows[i].director);
    loop_free(&c->loop);
}

struct cluster **check_clusters(struct check *c, size_t *n)
{
    struct cluster **all = arena_array(&c->arena, c->flows_n * 2 + 1, sizeof(struct cluster *));

    *n = 0;
    for (size_t i = 0; i < c->flows_n * 2; i++) {
        struct director *d = c->flows[i / 2].director;
        struct cluster *cl = d ? director_cluster(d, i % 2) : NULL;
        size_t k = 0;

        while (cl && k < *n && !str_eq(cluster_name(all[k]), cluster_name(cl)))
            k++;
        if (cl && k == *n)
            all[(*n)++] = cl;
    }
    return all;
}
