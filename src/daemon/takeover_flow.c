/* takeover_flow.c -- the steps of `takeover` for one flow.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   plan -> group -> [evict] -> [tasks -> fence -> hold] -> positions -> compare -> [create -> write -> leave] -> done
 *
 * In brackets: with --apply only. As long as members of the group have just been put out their last records may still be on
 * the way, so the comparison is repeated until the copies stand still. One loop carries all flows.
 */
#include "daemon/takeover_int.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>

#define AGAIN_MS 200
#define VERSION_NAMES_TOPICS 9 /* of OffsetFetch: later ones have ids alone */
#define REACH_MS 10000 /* as check has */
#define STILL_MS 3000 /* heartbeat.interval.ms of Connect: as long a worker may not know that it is out */

void takeover_wake(struct takeover_flow *f)
{
    task_wake(f->all->loop, &f->work);
}

void takeover_wait(struct takeover_flow *f)
{
    timer_set_ms(f->all->loop, &f->again, AGAIN_MS);
}

static void flow_done(struct takeover_flow *f)
{
    f->step = STEP_DONE;
    f->all->code = MAX(f->all->code, f->code);
    if (--f->all->open == 0)
        loop_stop(f->all->loop);
}

void takeover_fail(struct takeover_flow *f, int code, const char *name, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list ap;

    if (f->step == STEP_DONE)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fault_set(&f->fault, loop_wall_ms(f->all->loop), name, "%s", text);
    f->code = code;
    flow_done(f);
}

void takeover_call(struct takeover_flow *f, struct cluster *cl, int api, const struct route *r, void (*fill)(struct call *c),
                   void (*done)(struct call *c))
{
    call_fini(&f->call);
    call_init(&f->call, api, &f->request, done);
    f->call.fill = fill;
    if (api == API_OFFSET_FETCH)
        f->call.version_max = VERSION_NAMES_TOPICS;
    if (cluster_call(cl, r, &f->call))
        takeover_fail(f, 3, err_name(E_NO_BROKER), "cluster %.*s cannot be asked", STR_ARG(cluster_name(cl)));
}

bool takeover_call_failed(struct takeover_flow *f, const char *what, int32_t kerr, struct cluster *cl, const struct route *r)
{
    if (!f->call.error && !kerr)
        return false;
    if (f->call.error == E_VERSION) {
        takeover_fail(f, 1, err_name(E_VERSION), "%s: the broker does not know the request", what);
        return true;
    }
    if (!f->call.error) {
        switch (kerr_class(f->call.api, kerr)) {
        case K_AGAIN:
        case K_REFRESH:
        case K_REJOIN:
            break;
        default:
            takeover_fail(f, 1, kerr_name(kerr), "%s: %s", what, kerr_text(kerr));
            return true;
        }
    }
    cluster_reroute(cl, r);
    takeover_wait(f);
    return true;
}

/* --- the comparison --- */

static bool is_there(const struct topic_meta *t, int32_t partition)
{
    return t->known && !t->error && partition < t->parts_n && t->parts[partition].leader >= 0;
}

static void compare_end(struct takeover_flow *f, struct takeover_part *p)
{
    cluster_unwatch(director_cluster(f->director, false), &p->c.source);
    cluster_unwatch(director_cluster(f->director, true), &p->c.target);
    p->started = false;
}

static void on_compared(struct comparison *c)
{
    struct takeover_flow *f = c->arg;
    struct takeover_part *p = container_of(c, struct takeover_part, c);

    p->known = !fault_is_set(&c->fault) || c->denied;
    compare_end(f, p);
    f->open--;
    if (p->known)
        takeover_wake(f);
    else
        takeover_wait(f);
}

/* The topics' metadata must be there before. */
static void start_part(struct takeover_flow *f, struct takeover_part *p)
{
    struct cluster *source = director_cluster(f->director, false), *target = director_cluster(f->director, true);

    if (!p->started) {
        p->c = (struct comparison){ .partition = p->partition, .position = p->stored, .done = on_compared, .arg = f };
        p->c.source = cluster_watch(source, p->want->name);
        p->c.target = cluster_watch(target, p->want->target_name);
        p->started = true;
    }
    if (p->c.comparer || !is_there(p->c.source, p->partition) || !is_there(p->c.target, p->partition))
        return;
    f->open++;
    comparer_start(f->comparer, &p->c);
}

/* Whether the copies have stood still since the last time, where somebody may still write. */
static bool is_still(struct takeover_flow *f)
{
    int64_t sum = 0, was = f->target_sum;

    for (size_t i = 0; i < f->parts_n; i++)
        sum += f->parts[i].copied ? f->parts[i].c.target_end : 0;
    f->target_sum = sum;
    return f->evictions == 0 || sum == was;
}

static void compared_all(struct takeover_flow *f)
{
    comparer_free(&f->comparer);
    if (!is_still(f)) {
        for (size_t i = 0; i < f->parts_n; i++)
            f->parts[i].known = false;
        timer_set_ms(f->all->loop, &f->again, STILL_MS);
        return;
    }
    for (size_t i = 0; i < f->parts_n; i++)
        if (f->parts[i].copied && (f->parts[i].c.sum.undecided || f->parts[i].c.denied || f->parts[i].c.open))
            f->code = 1;
    f->step = f->all->args->apply ? STEP_CREATE : STEP_LEAVE;
    takeover_wake(f);
}

#define STARTED_MAX 64 /* watched at a time */

static void compare(struct takeover_flow *f)
{
    size_t left = 0, started = 0;

    if (!f->comparer)
        f->comparer = comparer_new(director_cluster(f->director, false), director_cluster(f->director, true),
                                   (int8_t)f->config->source.isolation_level);
    for (size_t i = 0; i < f->parts_n && started < STARTED_MAX; i++) {
        struct takeover_part *p = &f->parts[i];

        if (!p->copied && !p->known) { /* nothing to compare with: as the stored position says */
            p->known = true;
            p->c.next = p->stored;
            p->c.source_start = p->c.source_end = p->c.target_end = -1;
        }
        if (p->known)
            continue;
        left++;
        started++;
        start_part(f, p);
    }
    if (left == 0)
        compared_all(f);
    else if (f->open == 0)
        takeover_wait(f); /* for metadata */
}

/* --- the steps --- */

static void on_left(void *arg)
{
    struct takeover_flow *f = arg;

    flow_done(f);
}

static void work(struct task *t)
{
    struct takeover_flow *f = container_of(t, struct takeover_flow, work);

    if (call_is_busy(&f->call))
        return;
    switch (f->step) {
    case STEP_PLAN:
    case STEP_LEAVING:
    case STEP_DONE:
        break;
    case STEP_GROUP:
        takeover_group(f);
        break;
    case STEP_EVICT:
        takeover_evict(f);
        break;
    case STEP_TASKS:
        takeover_tasks(f);
        break;
    case STEP_FENCE:
        takeover_fence(f);
        break;
    case STEP_HOLD:
        takeover_hold(f);
        break;
    case STEP_POSITIONS:
        takeover_positions(f);
        break;
    case STEP_COMPARE:
        compare(f);
        break;
    case STEP_CREATE:
        takeover_create(f);
        break;
    case STEP_WRITE:
        takeover_write(f);
        break;
    case STEP_LEAVE:
        f->step = STEP_LEAVING;
        if (f->group)
            group_leave(f->group, AGAIN_MS * 10, on_left, f);
        else
            flow_done(f);
        break;
    }
}

static void on_again(struct timer *t)
{
    takeover_wake(container_of(t, struct takeover_flow, again));
}

static void on_told(void *arg, const struct plan *p)
{
    struct takeover_flow *f = arg;

    if (f->step != STEP_PLAN)
        return;
    f->plan = p;
    if (!p) {
        takeover_fail(f, 1, director_fault(f->director)->code, "%s", director_fault(f->director)->text);
        return;
    }
    if (f->config->transform_settings_n) {
        takeover_fail(f, 1, "TRANSFORMS", "transforms change or leave out records, so the copies cannot be compared with the "
                      "source: stop MirrorMaker 2 cleanly, and `heliostat run` goes on from the positions it has stored");
        return;
    }
    f->step = STEP_GROUP;
    takeover_wake(f);
}

static void fail_unreached(struct takeover_flow *f)
{
    for (int target = 0; target < 2 && f->step != STEP_DONE; target++) {
        struct cluster *cl = director_cluster(f->director, target);

        if (cl && !cluster_is_up(cl))
            takeover_fail(f, 3, "UNREACHABLE", "cluster %.*s cannot be reached: %s", STR_ARG(cluster_name(cl)),
                          fault_is_set(cluster_fault(cl)) ? cluster_fault(cl)->text : "no answer in time");
    }
}

/* Clusters that were not reached by now are not waited for. */
static void on_reach(struct timer *t)
{
    struct takeover *all = container_of(t, struct takeover, reach);

    for (size_t i = 0; i < all->flows_n; i++)
        if (all->flows[i].step == STEP_PLAN)
            fail_unreached(&all->flows[i]);
}

/* Time is up: what is not done is not reached, or does not come to an end. */
static void on_limit(struct timer *t)
{
    struct takeover *all = container_of(t, struct takeover, limit);

    for (size_t i = 0; i < all->flows_n; i++) {
        fail_unreached(&all->flows[i]);
        takeover_fail(&all->flows[i], 3, "TIMEOUT", "not done in %d s; --timeout allows more",
                      (int)(all->args->limit_ms / 1000));
    }
}

static void flow_init(struct takeover_flow *f, struct takeover *all, const struct flow_config *config)
{
    const struct takeover_args *a = all->args;

    f->all = all;
    f->config = config;
    arena_init(&f->arena, (size_t)GiB);
    task_init(&f->work, work);
    timer_init(&f->again, on_again);
    call_init(&f->call, 0, NULL, NULL);
    f->connector = f->other_connector = STR_NULL;
    f->target_sum = -1;
    f->group_name = str_is_null(a->group) ? arena_fmt(&f->arena, "%.*s-mm2", STR_ARG(config->source_alias)) : a->group;
    f->offsets_topic = str_is_null(a->offsets) ? config->offsets_topic : a->offsets;
    f->director = director_new_check(all->loop, config, on_told, f);
}

void takeover_run(struct takeover *t)
{
    t->loop = loop_new("takeover");
    t->flows = mem_array(MAX(t->config->flow_count, 1), sizeof(*t->flows));
    for (size_t i = 0; i < t->config->flow_count; i++) {
        if (!t->config->flows[i].enabled)
            continue;
        t->open++;
        flow_init(&t->flows[t->flows_n++], t, &t->config->flows[i]);
    }
    timer_init(&t->limit, on_limit);
    timer_set_ms(t->loop, &t->limit, t->args->limit_ms);
    timer_init(&t->reach, on_reach);
    timer_set_ms(t->loop, &t->reach, REACH_MS);
    if (t->open)
        loop_run(t->loop);
    timer_cancel(t->loop, &t->limit);
    timer_cancel(t->loop, &t->reach);
}

static void flow_stop(struct takeover_flow *f)
{
    task_cancel(&f->work);
    timer_cancel(f->all->loop, &f->again);
    if (call_is_busy(&f->call))
        call_drop(&f->call);
    call_fini(&f->call);
    topic_reader_free(&f->reader);
    topic_writer_free(&f->writer);
    group_free(&f->group);
    for (size_t i = 0; i < f->parts_n; i++) {
        if (!f->parts[i].started)
            continue;
        comparer_cancel(&f->parts[i].c);
        compare_end(f, &f->parts[i]);
    }
    comparer_free(&f->comparer);
}

static void on_stopped(void *arg, bool stored)
{
    struct takeover *t = arg;

    (void)stored;
    if (--t->open == 0)
        loop_stop(t->loop);
}

void takeover_end(struct takeover *t)
{
    t->open = 0;
    for (size_t i = 0; i < t->flows_n; i++) {
        flow_stop(&t->flows[i]);
        t->open++;
        director_stop(t->flows[i].director, 0, on_stopped, t);
    }
    if (t->open)
        loop_run(t->loop);
    for (size_t i = 0; i < t->flows_n; i++) {
        director_free(&t->flows[i].director);
        mem_free(t->flows[i].parts);
        arena_fini(&t->flows[i].arena);
    }
    mem_free(t->flows);
    loop_free(&t->loop);
}
