/* thread.c -- pthreads under a name, with signals left to the main thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loop/thread.h"

#include "base/alloc.h"
#include "base/must.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

struct thread {
    pthread_t id;
    char name[16]; /* with its NUL: the system takes no more */
    void (*fn)(void *arg);
    void *arg;
};

static void *run(void *arg)
{
    struct thread *t = arg;

    (void)pthread_setname_np(pthread_self(), t->name); /* a comfort, no more */
    t->fn(t->arg);
    return NULL;
}

/* All but those that report a fault of the thread itself, or that a profiler sends. */
static void block_signals(sigset_t *before)
{
    static const int kept[] = {
        SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF
    };
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < COUNT(kept); i++)
        sigdelset(&set, kept[i]);
    must(pthread_sigmask(SIG_SETMASK, &set, before) == 0);
}

struct thread *thread_start(const char *name, void (*fn)(void *arg), void *arg)
{
    struct thread *t = mem_new(sizeof(*t));
    sigset_t before;

    t->fn = fn;
    t->arg = arg;
    snprintf(t->name, sizeof(t->name), "%s", name);
    block_signals(&before); /* a thread inherits the mask of its maker */
    must_say(pthread_create(&t->id, NULL, run, t) == 0, "the system has no thread to give");
    must(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return t;
}

void thread_join(struct thread **t)
{
    if (!*t)
        return;
    must(pthread_join((*t)->id, NULL) == 0);
    mem_free(*t);
    *t = NULL;
}
