/* mirror_sim.c -- does what daemon/control.c and daemon/worker.c do, on loops of the world.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror_sim.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/must.h"
#include "daemon/config.h"
#include "loop_sim.h"
#include "mirror/view_build.h"
#include "sim.h"
#include "tally.h"

#include <stdio.h>

#define VIEW_MS  1000
#define DRAIN_MS 3500
/* The first batch of an answer comes whole, however large; of each worker's connections one may be at it. */
#define SLACK (4 * MiB)

struct mirror {
    struct config *config;
    struct loop *control;
    struct worker_world worlds[MIRROR_WORKERS];
    struct director **directors;
    int32_t directors_n, stopping;
    struct timer tick;
    bool stopped, all_stored;
    struct view *view; /* the last one; NULL: none yet */
};

/* Those that were killed: their memory stays, as that of a process that is no more but for its leaks. */
static struct {
    struct mirror *at[256];
    size_t n;
} killed;

static int32_t starving; /* percent */

static void drop_view(struct mirror *m)
{
    struct snapshot *s = m->view ? &m->view->snapshot : NULL;

    if (s)
        snapshot_drop(&s);
    m->view = NULL;
}

static void on_tick(struct timer *t)
{
    struct mirror *m = container_of(t, struct mirror, tick);
    struct view_process p = { .version = STR("0"), .commit = STR("0"), .instance = STR("sim"),
                              .now_ms = loop_wall_ms(m->control), .workers = MIRROR_WORKERS };

    drop_view(m);
    m->view = view_build(&p, m->directors, m->directors_n);
    for (int32_t i = 0; i < m->directors_n; i++)
        director_ask_reports(m->directors[i]);
    timer_set_ms(m->control, t, VIEW_MS);
}

static struct config *parse(const char *text)
{
    struct config_args args = { .path = STR("sim.properties") };
    struct config *c;
    struct buf out;

    if (config_parse(&args, str_c(text), &c) == E_OK)
        return c;
    buf_init(&out, 64 * KiB);
    for (size_t i = 0; i < c->problem_count; i++)
        config_problem_format(&c->problems[i], &out);
    sim_fail("%s", buf_cstr(&out));
}

struct mirror *mirror_start(const char *text, int64_t memory_max)
{
    struct mirror *m = mem_new(sizeof(*m));

    m->config = parse(text);
    m->control = loop_new("control");
    for (int32_t i = 0; i < MIRROR_WORKERS; i++) {
        char name[24];

        snprintf(name, sizeof(name), "worker-%d", i);
        m->worlds[i].loop = loop_new(name);
        m->worlds[i].pool = pool_new(FETCH_BLOCK_SIZE, (size_t)memory_max / MIRROR_WORKERS);
    }
    m->directors_n = (int32_t)m->config->flow_count;
    m->directors = mem_array((size_t)m->directors_n, sizeof(*m->directors));
    for (int32_t i = 0; i < m->directors_n; i++)
        m->directors[i] = director_new(m->control, &m->config->flows[i], m->worlds, MIRROR_WORKERS);
    timer_init(&m->tick, on_tick);
    timer_set_ms(m->control, &m->tick, 200);
    loop_sim_kick(m->control);
    return m;
}

void mirror_kill(struct mirror **mp)
{
    struct mirror *m = *mp;

    sim_say("kill -9");
    loop_sim_kill(m->control);
    net_sim_kill(m->control);
    for (int32_t i = 0; i < MIRROR_WORKERS; i++) {
        loop_sim_kill(m->worlds[i].loop);
        net_sim_kill(m->worlds[i].loop);
    }
    if (killed.n < COUNT(killed.at))
        killed.at[killed.n++] = m;
    *mp = NULL;
}

static void pause_all(struct mirror *m, bool paused)
{
    loop_sim_pause(m->control, paused);
    for (int32_t i = 0; i < MIRROR_WORKERS; i++)
        loop_sim_pause(m->worlds[i].loop, paused);
}

void mirror_pause(struct mirror *m)
{
    sim_say("SIGSTOP");
    pause_all(m, true);
}

void mirror_continue(struct mirror *m)
{
    sim_say("SIGCONT");
    pause_all(m, false);
}

static void on_director_stopped(void *arg, bool stored)
{
    struct mirror *m = arg;

    m->all_stored = m->all_stored && stored;
    if (--m->stopping == 0)
        m->stopped = true;
}

void mirror_stop(struct mirror *m)
{
    sim_say("SIGTERM");
    m->all_stored = true;
    m->stopping = m->directors_n;
    for (int32_t i = 0; i < m->directors_n; i++)
        director_stop(m->directors[i], DRAIN_MS, on_director_stopped, m);
    loop_sim_kick(m->control);
}

bool mirror_is_stopped(const struct mirror *m, bool *stored)
{
    *stored = m->all_stored;
    return m->stopped;
}

void mirror_free(struct mirror **mp)
{
    struct mirror *m = *mp;

    timer_cancel(m->control, &m->tick);
    drop_view(m);
    for (int32_t i = 0; i < MIRROR_WORKERS; i++) {
        net_sim_sweep(m->worlds[i].loop);
        loop_free(&m->worlds[i].loop);
        pool_free(&m->worlds[i].pool);
    }
    for (int32_t i = 0; i < m->directors_n; i++)
        director_free(&m->directors[i]);
    net_sim_sweep(m->control);
    loop_free(&m->control);
    mem_free(m->directors);
    config_free(&m->config);
    mem_free(m);
    *mp = NULL;
}

void mirror_check(const struct mirror *m, size_t announced)
{
    for (int32_t i = 0; i < MIRROR_WORKERS; i++)
        if (pool_peak(m->worlds[i].pool) > pool_max(m->worlds[i].pool) + SLACK + announced)
            sim_fail("worker %d had %zu bytes in its pool, of %zu", i, pool_peak(m->worlds[i].pool),
                     pool_max(m->worlds[i].pool));
}

uint64_t mirror_turns(const struct mirror *m)
{
    uint64_t n = loop_sim_turns(m->control);

    for (int32_t i = 0; i < MIRROR_WORKERS; i++)
        n += loop_sim_turns(m->worlds[i].loop);
    return n;
}

bool mirror_is_holding(const struct mirror *m)
{
    for (int32_t i = 0; m->view && i < m->view->flows_n; i++)
        if (m->view->flows[i].enabled && (m->view->flows[i].standby || !m->view->flows[i].ready))
            return false;
    return m->view != NULL;
}

bool mirror_is_well(const struct mirror *m, char *what, size_t room)
{
    snprintf(what, room, m->view ? "it is not its turn" : "there is no view yet");
    if (!mirror_is_holding(m))
        return false;
    for (int32_t i = 0; m->view && i < m->view->flows_n; i++) {
        const struct view_flow *f = &m->view->flows[i];

        if (fault_is_set(&f->fault)) {
            snprintf(what, room, "the flow has %s: %s", f->fault.code, f->fault.text);
            return false;
        }
        for (int64_t j = 0; j < f->partitions_n; j++) {
            const struct view_partition *p = &f->partitions[j];

            snprintf(what, room, "%.*s-%d is %s: %s", STR_ARG(p->topic), p->partition, p->state, p->fault.text);
            /* One that has nothing to copy may show a fault until something comes: nobody tells it that all is well. */
            if (!str_eq(str_c(p->state), STR("copying")) && !str_eq(str_c(p->state), STR("caught-up")) &&
                p->lag_records != 0)
                return false;
        }
    }
    return m->view != NULL;
}

/* --- the budget, and memory that the system does not give: the linker puts these in the place of what they wrap --- */

bool __real_pool_reserve(struct pool *p, size_t n);
bool __wrap_pool_reserve(struct pool *p, size_t n);

/* What is asked for fits, or nothing else is out. */
bool __wrap_pool_reserve(struct pool *p, size_t n)
{
    size_t used = pool_used(p);
    bool given = __real_pool_reserve(p, n);

    if (given && used > 0 && used + n > pool_max(p))
        sim_fail("%zu bytes are given, and %zu of %zu were out", n, used, pool_max(p));
    return given;
}

void *__real_mem_try(size_t size);
void *__wrap_mem_try(size_t size);
struct block *__real_pool_take(struct pool *p, size_t size, size_t reserved);
struct block *__wrap_pool_take(struct pool *p, size_t size, size_t reserved);

static bool in_pool;

void mirror_sim_starve(int32_t percent)
{
    starving = percent;
}

static bool is_refused(void)
{
    if (!starving || !sim_chance(starving))
        return false;
    tally(TALLY_NO_MEMORY);
    return true;
}

void *__wrap_mem_try(size_t size)
{
    return !in_pool && is_refused() ? NULL : __real_mem_try(size);
}

/* Answers may find no memory; batches that are made of records must. */
struct block *__wrap_pool_take(struct pool *p, size_t size, size_t reserved)
{
    struct block *b;

    if (reserved > 0 && is_refused())
        return NULL;
    in_pool = true;
    b = __real_pool_take(p, size, reserved);
    in_pool = false;
    return b;
}
