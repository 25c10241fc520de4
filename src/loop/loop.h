/* loop.h -- one thread's world: time, timers, run list, randomness, mailbox. THE SEAM.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two back ends, chosen by the linker: loop_uv.c (libuv) and tests/sim/loop_sim.c (virtual time from a
 * seed). All time, randomness and I/O of kafka/ and mirror/ go through here and net/. A loop is used
 * on its own thread only, but for loop_post, which any thread may call. What is scheduled runs from
 * the loop, never from inside the scheduling call.
 */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include "base/err.h"
#include "base/list.h"
#include "base/rand.h"

struct loop;

/* An activity's place on the run list: task_wake puts it there, fn runs once in this turn or the next,
 * however often it was woken before. At most once per turn: who wakes itself lets the network go first. */
struct task {
    struct list_node node;
    void (*fn)(struct task *t);
    uint64_t turn; /* the last in which it ran */
};

/* Fires once at or after its time. Embedded in its owner. */
struct timer {
    size_t heap_at; /* place in the heap + 1; 0: not armed */
    int64_t at_us;
    uint64_t order; /* timers of one time fire in the order they were set */
    void (*fn)(struct timer *t);
};

/* Between threads: an owned message that knows how to run. The receiver's loop owns it from loop_post
 * on; run must free it or keep it. */
struct msg {
    struct msg *next;
    void (*run)(struct msg *m, struct loop *l);
};

struct loop *loop_new(const char *name);
/* No other thread may post any more: join it first. Messages that have not run yet run now, and
 * loop_owner gives NULL to them, so that each can free itself. */
void loop_free(struct loop **l);

/* Runs until loop_stop, which may be called on the loop's thread only (or by a posted message). */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* Asserts that the caller is on the loop's thread (or that the loop does not run yet). */
void loop_check(const struct loop *l);

/* Monotonic time, constant within a turn; and the wall clock in ms since 1970, which may jump. */
int64_t loop_now_us(const struct loop *l);
int64_t loop_now_ms(const struct loop *l);
int64_t loop_wall_ms(const struct loop *l);
/* Monotonic time as it is, which a turn that took long is behind. */
int64_t loop_clock_now_ms(const struct loop *l);
/* The wall clock where there is no loop: for the log. Any thread. Real back end only. */
int64_t loop_clock_ms(void);

/* The loop's only source of randomness. */
struct rand *loop_rand(struct loop *l);

void task_init(struct task *t, void (*fn)(struct task *t));
void task_wake(struct loop *l, struct task *t);
/* Takes it off the run list; harmless when it is not there. A task that is on no list may be freed, from
 * its own fn too. */
void task_cancel(struct task *t);

void timer_init(struct timer *t, void (*fn)(struct timer *t));
/* Sets or moves. after_ms < 0 counts as 0. */
void timer_set_ms(struct loop *l, struct timer *t, int64_t after_ms);
void timer_cancel(struct loop *l, struct timer *t);
static inline bool timer_is_set(const struct timer *t)
{
    return t->heap_at != 0;
}

/* From any thread. Messages of one sender arrive in order. */
void loop_post(struct loop *l, struct msg *m);

/* Real back end only (the simulator delivers none): fn runs on this loop. signum as in <signal.h>. */
void loop_on_signal(struct loop *l, int signum, void (*fn)(struct loop *l, int signum, void *arg),
                    void *arg);

/* A user pointer for the owner of the loop (worker, control). */
void loop_set_owner(struct loop *l, void *owner);
void *loop_owner(struct loop *l);

#endif
