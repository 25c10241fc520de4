/* test_loop.c -- the libuv back end: time, timers, tasks, messages, signals, two threads.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loop/loop.h"

#include "base/alloc.h"
#include "loop/thread.h"
#include "unit/test.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct ticker {
    struct timer timer;
    struct task task;
    struct loop *l;
    int left, ran;
    int64_t set_us, now_us;
};

static void on_tick(struct timer *t)
{
    struct ticker *k = container_of(t, struct ticker, timer);
    int64_t now_us = loop_now_us(k->l);

    CHECK(now_us - k->set_us >= 5000);
    CHECK(clock_us() - k->set_us >= 5000);
    usleep(2000);
    CHECK_EQ(loop_now_us(k->l), now_us); /* time stands still within a turn */
    CHECK_EQ(loop_now_ms(k->l), now_us / 1000);
    k->set_us = now_us;
    if (--k->left)
        timer_set_ms(k->l, t, 5);
    else
        loop_stop(k->l);
}

TEST(timers)
{
    struct loop *l = loop_new("test");
    struct ticker k = { .l = l, .left = 5 };
    int64_t begin_us = clock_us();

    timer_init(&k.timer, on_tick);
    k.set_us = loop_now_us(l);
    timer_set_ms(l, &k.timer, 5);
    loop_run(l);
    CHECK_EQ(k.left, 0);
    CHECK(clock_us() - begin_us >= 25000);
    CHECK(loop_wall_ms(l) > 1700000000000);
    loop_free(&l);
    CHECK(!l);
    loop_free(&l);
}

static void on_spin(struct task *t)
{
    struct ticker *k = container_of(t, struct ticker, task);

    /* A task that wakes itself neither stops time nor timers. */
    if (k->ran++)
        CHECK(loop_now_us(k->l) > k->now_us);
    k->now_us = loop_now_us(k->l);
    usleep(10);
    if (k->left)
        task_wake(k->l, t);
}

TEST(tasks_do_not_starve_timers)
{
    struct loop *l = loop_new("test");
    struct ticker k = { .l = l, .left = 2 };

    timer_init(&k.timer, on_tick);
    task_init(&k.task, on_spin);
    k.set_us = loop_now_us(l);
    timer_set_ms(l, &k.timer, 5);
    task_wake(l, &k.task);
    loop_run(l);
    CHECK(k.ran >= 1); /* and the timers came all the same; how often is the machine's matter */
    task_cancel(&k.task);
    loop_free(&l);
}

static void sleeper(struct timer *t)
{
    struct ticker *k = container_of(t, struct ticker, timer);

    loop_stop(k->l);
}

/* A loop that waits does not burn its core. */
TEST(idle_costs_nothing)
{
    struct loop *l = loop_new("test");
    struct ticker k = { .l = l };
    clock_t before = clock();

    timer_init(&k.timer, sleeper);
    timer_set_ms(l, &k.timer, 200);
    loop_run(l);
    CHECK((clock() - before) * 1000 / CLOCKS_PER_SEC < 60);
    loop_free(&l);
}

/* --- messages --- */

#define SENDERS 3
#define EACH    20000

struct count {
    struct msg msg;
    int sender;
    int number;
};

struct sender {
    struct thread *thread;
    struct loop *l;
    int index;
};

static int seen[SENDERS];
static int total;

static void count_run(struct msg *m, struct loop *l)
{
    struct count *c = container_of(m, struct count, msg);

    CHECK_EQ(c->number, seen[c->sender]++);
    mem_free(c);
    if (loop_owner(l) && ++total == SENDERS * EACH)
        loop_stop(l);
}

static void post_count(struct loop *l, int sender, int number)
{
    struct count *c = mem_new(sizeof(*c));

    *c = (struct count){ .msg.run = count_run, .sender = sender, .number = number };
    loop_post(l, &c->msg);
}

static void send(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < EACH; i++) {
        post_count(s->l, s->index, i);
        if (i % 1000 == 0)
            usleep(100);
    }
}

TEST(messages_in_order)
{
    struct loop *l = loop_new("test");
    struct sender s[SENDERS];

    total = 0;
    memset(seen, 0, sizeof(seen));
    loop_set_owner(l, l);
    for (int i = 0; i < SENDERS; i++) {
        s[i] = (struct sender){ .l = l, .index = i };
        s[i].thread = thread_start("sender with a long name", send, &s[i]);
    }
    loop_run(l);
    for (int i = 0; i < SENDERS; i++) {
        thread_join(&s[i].thread);
        CHECK(!s[i].thread);
        CHECK_EQ(seen[i], EACH);
    }
    /* What comes after the end frees itself, and is told that the owner is gone. */
    post_count(l, 0, seen[0]);
    loop_free(&l);
    CHECK_EQ(seen[0], EACH + 1);
    CHECK_EQ(total, SENDERS * EACH);
}

/* Two loops on two threads throw a ball. */
struct ball {
    struct msg msg;
    struct loop *other;
    int left;
};

static void ball_run(struct msg *m, struct loop *l)
{
    struct ball *b = container_of(m, struct ball, msg);
    struct loop *to = b->other;

    if (b->left-- <= 1)
        loop_stop(l);
    if (b->left < 0)
        return;
    b->other = l;
    loop_post(to, m);
}

static void run_loop(void *arg)
{
    loop_run(arg);
}

TEST(ping_pong)
{
    struct loop *a = loop_new("a"), *b = loop_new("b");
    struct thread *t = thread_start("b", run_loop, b);
    struct ball ball = { .msg.run = ball_run, .other = b, .left = 5001 };

    loop_post(a, &ball.msg);
    loop_run(a);
    thread_join(&t);
    CHECK_EQ(ball.left, -1);
    loop_free(&a);
    loop_free(&b);
}

static void on_usr1(struct loop *l, int signum, void *arg)
{
    CHECK_EQ(signum, SIGUSR1);
    ++*(int *)arg;
    loop_stop(l);
}

TEST(signals)
{
    struct loop *l = loop_new("test");
    struct sigaction pipe_action;
    int count = 0;

    loop_on_signal(l, SIGUSR1, on_usr1, &count);
    kill(getpid(), SIGUSR1);
    loop_run(l);
    CHECK_EQ(count, 1);
    loop_free(&l);
    sigaction(SIGPIPE, NULL, &pipe_action);
    CHECK(pipe_action.sa_handler == SIG_IGN);
}

TESTS(RUN(timers), RUN(tasks_do_not_starve_timers), RUN(idle_costs_nothing), RUN(messages_in_order),
      RUN(ping_pong), RUN(signals))
