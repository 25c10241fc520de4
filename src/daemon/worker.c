/* worker.c -- starts and stops the data threads.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "daemon/worker.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "loop/thread.h"

#include <stdio.h>

#define TIDY_MS 5000

struct worker {
    struct loop *loop;
    struct pool *pool;
    struct thread *thread;
    struct timer tidy; /* what a burst took goes back to the system */
    struct msg stop;
};

static void on_tidy(struct timer *t)
{
    struct worker *w = container_of(t, struct worker, tidy);

    pool_tidy(w->pool);
    timer_set_ms(w->loop, t, TIDY_MS);
}

static void run(void *arg)
{
    struct worker *w = arg;

    loop_run(w->loop);
}

struct worker *worker_start(int number, size_t pool_bytes)
{
    struct worker *w = mem_new(sizeof(*w));
    char name[16];

    snprintf(name, sizeof(name), "worker-%d", number);
    w->loop = loop_new(name);
    w->pool = pool_new(FETCH_BLOCK_SIZE, pool_bytes);
    loop_set_owner(w->loop, w);
    timer_init(&w->tidy, on_tidy);
    timer_set_ms(w->loop, &w->tidy, TIDY_MS);
    w->thread = thread_start(name, run, w);
    return w;
}

struct worker_world worker_world(struct worker *w)
{
    return (struct worker_world){ .loop = w->loop, .pool = w->pool };
}

static void run_stop(struct msg *m, struct loop *l)
{
    timer_cancel(l, &container_of(m, struct worker, stop)->tidy);
    loop_stop(l);
}

void worker_stop(struct worker **wp)
{
    struct worker *w = *wp;

    if (!w)
        return;
    w->stop.run = run_stop;
    loop_post(w->loop, &w->stop);
    thread_join(&w->thread);
    loop_free(&w->loop);
    pool_free(&w->pool);
    mem_free(w);
    *wp = NULL;
}
