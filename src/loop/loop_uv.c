/* loop_uv.c -- the real world: epoll, clocks and signals through libuv.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One turn of libuv and what we hang into it:
 *
 *   timers -> idle -> PREPARE ------------------> poll ----------------------> CHECK -> closing
 *     |                |                           |                             |
 *     alarm: only      may the poll sleep, and     sockets, resolver and         sched_run: timers,
 *     ends the poll    until when                  mailbox mark and wake         then tasks
 *
 * L-1  Time stands still from the end of a poll to the next PREPARE.
 * L-2  The poll does not sleep while a task waits; `idle` is active exactly then.
 * L-3  The alarm is never early: it rounds the nearest deadline up to the millisecond.
 */
#include "loop/loop_uv.h"

#include "base/alloc.h"
#include "base/must.h"
#include "loop/mailbox.h"
#include "loop/sched.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

/* Messages that run in one turn. */
#define MESSAGES_MAX 1024

struct hook {
    uv_signal_t handle;
    struct hook *next;
    struct loop *loop;
    void (*fn)(struct loop *l, int signum, void *arg);
    void *arg;
};

struct loop {
    uv_loop_t uv;
    struct {
        uv_prepare_t prepare;
        uv_check_t check;
        uv_idle_t idle;
        uv_timer_t alarm;
        uv_async_t mail;
    } on;
    struct sched sched;
    struct mailbox mailbox;
    struct task deliver;
    struct rand rand;
    struct hook *hooks;
    int64_t now_us;
    int64_t alarm_us; /* what the alarm is set for; SCHED_NEVER: not set */
    bool now_is_old;
    bool running;
    pthread_t thread; /* while running */
    void *owner;
    char name[32];
};

/* --- the turn --- */

static void on_alarm(uv_timer_t *h)
{
    struct loop *l = h->data;

    l->alarm_us = SCHED_NEVER;
}

static void on_idle(uv_idle_t *h)
{
    (void)h; /* its being active is what keeps the poll from sleeping */
}

static void set_alarm(struct loop *l)
{
    int64_t at_us = sched_next_us(&l->sched);
    uint64_t at_ms, now_ms = uv_now(&l->uv);

    if (at_us == l->alarm_us)
        return;
    l->alarm_us = at_us;
    if (at_us == SCHED_NEVER) {
        must(uv_timer_stop(&l->on.alarm) == 0);
        return;
    }
    at_ms = (uint64_t)at_us / 1000 + (at_us % 1000 != 0);
    must(uv_timer_start(&l->on.alarm, on_alarm, at_ms > now_ms ? at_ms - now_ms : 0, 0) == 0);
}

static void on_prepare(uv_prepare_t *h)
{
    struct loop *l = h->data;

    l->now_is_old = true;
    if (sched_is_pending(&l->sched))
        must(uv_idle_start(&l->on.idle, on_idle) == 0);
    else
        must(uv_idle_stop(&l->on.idle) == 0);
    set_alarm(l);
}

static void on_check(uv_check_t *h)
{
    struct loop *l = h->data;

    sched_run(&l->sched, loop_now_us(l));
}

/* --- messages --- */

static void on_mail(uv_async_t *h)
{
    struct loop *l = h->data;

    task_wake(l, &l->deliver);
}

static void deliver(struct task *t)
{
    struct loop *l = container_of(t, struct loop, deliver);
    struct msg *m;

    for (int n = 0; n < MESSAGES_MAX && (m = mailbox_take(&l->mailbox)); n++)
        m->run(m, l);
    if (!mailbox_is_empty(&l->mailbox))
        task_wake(l, t);
}

void loop_post(struct loop *l, struct msg *m)
{
    if (mailbox_put(&l->mailbox, m))
        must(uv_async_send(&l->on.mail) == 0);
}

/* --- signals --- */

static void on_signal(uv_signal_t *h, int signum)
{
    struct hook *k = h->data;

    k->fn(k->loop, signum, k->arg);
}

void loop_on_signal(struct loop *l, int signum, void (*fn)(struct loop *l, int signum, void *arg),
                    void *arg)
{
    struct hook *k = mem_new(sizeof(*k));

    loop_check(l);
    *k = (struct hook){ .next = l->hooks, .loop = l, .fn = fn, .arg = arg };
    l->hooks = k;
    k->handle.data = k;
    must(uv_signal_init(&l->uv, &k->handle) == 0);
    must(uv_signal_start(&k->handle, on_signal, signum) == 0);
}

/* --- life --- */

static void init_handles(struct loop *l)
{
    must_say(uv_loop_init(&l->uv) == 0, "the system has no more event loops to give");
    must(uv_prepare_init(&l->uv, &l->on.prepare) == 0);
    must(uv_check_init(&l->uv, &l->on.check) == 0);
    must(uv_idle_init(&l->uv, &l->on.idle) == 0);
    must(uv_timer_init(&l->uv, &l->on.alarm) == 0);
    must_say(uv_async_init(&l->uv, &l->on.mail, on_mail) == 0, "no file descriptor for a mailbox");
    l->on.prepare.data = l->on.check.data = l->on.alarm.data = l->on.mail.data = l;
    must(uv_prepare_start(&l->on.prepare, on_prepare) == 0);
    must(uv_check_start(&l->on.check, on_check) == 0);
}

struct loop *loop_new(const char *name)
{
    struct loop *l = mem_new(sizeof(*l));
    uint64_t seed;

    /* A peer that goes away is an error of the write, not the end of the process. */
    must(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    must(getrandom(&seed, sizeof(seed), 0) == sizeof(seed));
    rand_init(&l->rand, seed);
    snprintf(l->name, sizeof(l->name), "loop %s", name);
    sched_init(&l->sched);
    mailbox_init(&l->mailbox);
    task_init(&l->deliver, deliver);
    l->alarm_us = SCHED_NEVER;
    init_handles(l);
    return l;
}

static void check_closing(uv_handle_t *h, void *arg)
{
    (void)arg;
    must_say(uv_is_closing(h), "a socket or the like outlives its loop");
}

void loop_free(struct loop **lp)
{
    struct loop *l = *lp;
    struct msg *m;

    if (!l)
        return;
    must(!l->running);
    *lp = NULL;
    l->owner = NULL;
    while ((m = mailbox_take(&l->mailbox)))
        m->run(m, l);
    uv_close((uv_handle_t *)&l->on.prepare, NULL);
    uv_close((uv_handle_t *)&l->on.check, NULL);
    uv_close((uv_handle_t *)&l->on.idle, NULL);
    uv_close((uv_handle_t *)&l->on.alarm, NULL);
    uv_close((uv_handle_t *)&l->on.mail, NULL);
    for (struct hook *k = l->hooks; k; k = k->next)
        uv_close((uv_handle_t *)&k->handle, NULL);
    uv_walk(&l->uv, check_closing, NULL);
    /* Lets closed sockets go, and waits for a cancelled look-up that sits in the system's resolver. */
    must(uv_run(&l->uv, UV_RUN_DEFAULT) == 0);
    must(uv_loop_close(&l->uv) == 0);
    for (struct hook *k = l->hooks, *next; k; k = next) {
        next = k->next;
        mem_free(k);
    }
    sched_fini(&l->sched);
    mem_free(l);
}

void loop_run(struct loop *l)
{
    must(!l->running);
    l->thread = pthread_self();
    l->running = true;
    uv_run(&l->uv, UV_RUN_DEFAULT);
    l->running = false;
}

void loop_stop(struct loop *l)
{
    loop_check(l);
    uv_stop(&l->uv);
}

void loop_check(const struct loop *l)
{
    must_say(!l->running || pthread_equal(l->thread, pthread_self()), l->name);
}

/* --- time, luck and the rest --- */

static int64_t clock_us(clockid_t clock)
{
    struct timespec t;

    must(clock_gettime(clock, &t) == 0);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t loop_now_us(const struct loop *l)
{
    struct loop *own = (struct loop *)l; /* the clock's last reading is not what const is about */

    /* Read on first use in a turn: libuv has no hook between the end of the poll and its callbacks. */
    if (l->now_is_old || !l->running) {
        own->now_us = clock_us(CLOCK_MONOTONIC); /* libuv's clock too, so alarms agree with us */
        own->now_is_old = false;
    }
    return l->now_us;
}

int64_t loop_now_ms(const struct loop *l)
{
    return loop_now_us(l) / 1000;
}

int64_t loop_clock_now_ms(const struct loop *l)
{
    (void)l;
    return clock_us(CLOCK_MONOTONIC) / 1000;
}

int64_t loop_wall_ms(const struct loop *l)
{
    (void)l;
    return loop_clock_ms();
}

int64_t loop_clock_ms(void)
{
    return clock_us(CLOCK_REALTIME) / 1000;
}

struct rand *loop_rand(struct loop *l)
{
    return &l->rand;
}

void loop_set_owner(struct loop *l, void *owner)
{
    l->owner = owner;
}

void *loop_owner(struct loop *l)
{
    return l->owner;
}

uv_loop_t *loop_uv(struct loop *l)
{
    return &l->uv;
}

struct sched *loop_sched(struct loop *l)
{
    return &l->sched;
}
