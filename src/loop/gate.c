/* gate.c -- a condition variable that is opened once.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loop/gate.h"

#include "base/must.h"

#include <time.h>

void gate_init(struct gate *g)
{
    pthread_condattr_t attr;

    g->open = false;
    must(pthread_mutex_init(&g->lock, NULL) == 0);
    must(pthread_condattr_init(&attr) == 0);
    must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    must(pthread_cond_init(&g->opened, &attr) == 0);
    must(pthread_condattr_destroy(&attr) == 0);
}

void gate_fini(struct gate *g)
{
    must(pthread_cond_destroy(&g->opened) == 0);
    must(pthread_mutex_destroy(&g->lock) == 0);
}

void gate_open(struct gate *g)
{
    must(pthread_mutex_lock(&g->lock) == 0);
    g->open = true;
    must(pthread_cond_broadcast(&g->opened) == 0);
    must(pthread_mutex_unlock(&g->lock) == 0);
}

bool gate_wait(struct gate *g, int64_t limit_ms)
{
    struct timespec until;
    bool open;
    int rc = 0;

    must(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    until.tv_sec += (time_t)(limit_ms / 1000);
    until.tv_nsec += (long)(limit_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    must(pthread_mutex_lock(&g->lock) == 0);
    while (!g->open && rc == 0)
        rc = pthread_cond_timedwait(&g->opened, &g->lock, &until);
    open = g->open;
    must(pthread_mutex_unlock(&g->lock) == 0);
    return open;
}
