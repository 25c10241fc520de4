/* test_sched.c -- the timer heap, the run list and back-off, with a clock of the test's own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loop/sched.h"

#include "loop/backoff.h"
#include "unit/test.h"

/* The smallest back end: the test turns it by hand. */
struct loop {
    struct sched sched;
    int64_t now_us;
};

static struct loop l;

struct sched *loop_sched(struct loop *lp)
{
    return &lp->sched;
}

int64_t loop_now_us(const struct loop *lp)
{
    return lp->now_us;
}

void loop_check(const struct loop *lp)
{
    (void)lp;
}

static void turn(int64_t ms)
{
    l.now_us += 1000 * ms;
    sched_run(&l.sched, l.now_us);
}

/* A timer and a task that note the order in which they came. */
struct probe {
    struct timer timer;
    struct task task;
    int fired, ran;
    int place;
    int64_t again_ms;     /* -1: not again */
    struct probe *wakes;  /* from its task */
    struct probe *cancel; /* from its timer or task */
};

static int places;

static void on_fire(struct timer *t)
{
    struct probe *p = container_of(t, struct probe, timer);

    CHECK(!timer_is_set(t));
    p->fired++;
    p->place = ++places;
    if (p->again_ms >= 0)
        timer_set_ms(&l, t, p->again_ms);
    if (p->cancel)
        timer_cancel(&l, &p->cancel->timer);
}

static void on_run(struct task *t)
{
    struct probe *p = container_of(t, struct probe, task);

    p->ran++;
    p->place = ++places;
    if (p->wakes)
        task_wake(&l, &p->wakes->task);
    if (p->cancel)
        task_cancel(&p->cancel->task);
}

static void begin(struct probe *p, size_t count)
{
    l.now_us = 1000000;
    places = 0;
    sched_init(&l.sched);
    for (size_t i = 0; i < count; i++) {
        p[i] = (struct probe){ .again_ms = -1 };
        timer_init(&p[i].timer, on_fire);
        task_init(&p[i].task, on_run);
    }
}

TEST(timers_in_order)
{
    struct probe p[5];

    begin(p, COUNT(p));
    CHECK_EQ(sched_next_us(&l.sched), SCHED_NEVER);
    timer_set_ms(&l, &p[0].timer, 20);
    timer_set_ms(&l, &p[1].timer, 10);
    timer_set_ms(&l, &p[2].timer, 10);
    timer_set_ms(&l, &p[3].timer, -5);
    timer_set_ms(&l, &p[4].timer, INT64_MAX);
    CHECK_EQ(sched_next_us(&l.sched), l.now_us);
    turn(0);
    CHECK_EQ(p[3].fired, 1);
    CHECK_EQ(sched_next_us(&l.sched), l.now_us + 10000);
    turn(9);
    CHECK_EQ(places, 1);
    timer_set_ms(&l, &p[1].timer, 1); /* moved behind p[2], which has the same time */
    turn(1);
    CHECK_EQ(p[2].place, 2);
    CHECK_EQ(p[1].place, 3);
    turn(100);
    CHECK_EQ(p[0].fired, 1);
    CHECK(timer_is_set(&p[4].timer));
    timer_cancel(&l, &p[4].timer);
    timer_cancel(&l, &p[4].timer);
    CHECK_EQ(sched_next_us(&l.sched), SCHED_NEVER);
    sched_fini(&l.sched);
}

TEST(timer_set_to_now_waits_a_turn)
{
    struct probe p[2];

    begin(p, COUNT(p));
    p[0].again_ms = 0;
    timer_set_ms(&l, &p[0].timer, 0);
    for (int i = 1; i <= 3; i++) {
        turn(0);
        CHECK_EQ(p[0].fired, i);
    }
    /* A timer may take back another that is due in the same turn. */
    p[0].again_ms = -1;
    p[0].cancel = &p[1];
    timer_set_ms(&l, &p[1].timer, 0);
    turn(0);
    CHECK_EQ(p[0].fired, 4);
    CHECK_EQ(p[1].fired, 0);
    sched_fini(&l.sched);
}

TEST(tasks_run_once)
{
    struct probe p[4];

    begin(p, COUNT(p));
    CHECK(!sched_is_pending(&l.sched));
    task_cancel(&p[0].task);
    task_wake(&l, &p[1].task);
    task_wake(&l, &p[0].task);
    task_wake(&l, &p[1].task);
    CHECK(sched_is_pending(&l.sched));
    p[0].wakes = &p[2]; /* runs in the same turn: it has not run yet */
    p[2].wakes = &p[1]; /* has run: the next turn */
    turn(0);
    CHECK_EQ(p[1].ran, 1);
    CHECK_EQ(p[0].place, 2);
    CHECK_EQ(p[2].place, 3);
    CHECK(sched_is_pending(&l.sched));
    turn(0);
    CHECK_EQ(p[1].ran, 2);
    CHECK_EQ(places, 4);
    CHECK(!sched_is_pending(&l.sched));
    /* One that wakes itself runs once per turn; one that is cancelled does not run. */
    p[3].wakes = &p[3];
    p[3].cancel = &p[0];
    p[1].wakes = p[0].wakes = NULL;
    task_wake(&l, &p[3].task);
    task_wake(&l, &p[0].task);
    turn(0);
    turn(0);
    CHECK_EQ(p[3].ran, 2);
    CHECK_EQ(p[0].ran, 1);
    sched_fini(&l.sched);
    CHECK(!list_is_linked(&p[3].task.node));
}

TEST(turns_are_bounded)
{
    enum { MANY = SCHED_TASKS_MAX + 10 };
    static struct probe p[MANY];

    begin(p, MANY);
    for (int i = 0; i < MANY; i++) {
        task_wake(&l, &p[i].task);
        timer_set_ms(&l, &p[i].timer, 1);
    }
    turn(1);
    CHECK_EQ(places, SCHED_TASKS_MAX + SCHED_TIMERS_MAX);
    CHECK(sched_is_pending(&l.sched));
    CHECK(sched_next_us(&l.sched) <= l.now_us);
    turn(0);
    CHECK_EQ(places, 2 * MANY);
    sched_fini(&l.sched);
}

/* Random sets, moves and cancels against a plain search for the least. */
TEST(heap_at_random)
{
    static struct probe p[300];
    struct rand rand;

    begin(p, COUNT(p));
    rand_init(&rand, 11);
    for (int round = 0; round < 30000; round++) {
        struct probe *one = &p[rand_below(&rand, COUNT(p))];
        int64_t least = SCHED_NEVER;

        if (rand_below(&rand, 3) == 0)
            timer_cancel(&l, &one->timer);
        else
            timer_set_ms(&l, &one->timer, (int64_t)rand_below(&rand, 500));
        if (rand_below(&rand, 4) == 0)
            turn((int64_t)rand_below(&rand, 4));
        if (round % 7)
            continue;
        for (size_t i = 0; i < COUNT(p); i++)
            if (timer_is_set(&p[i].timer))
                least = MIN(least, p[i].timer.at_us);
        CHECK_EQ(sched_next_us(&l.sched), least);
    }
    sched_fini(&l.sched);
}

TEST(backoff)
{
    struct backoff b;
    struct rand rand;

    rand_init(&rand, 3);
    backoff_init(&b, 100, 1000);
    for (int64_t base = 100, i = 0; i < 50; i++) {
        int64_t got = backoff_next_ms(&b, &rand);

        CHECK(got >= base * 8 / 10 && got <= MIN(1000, base * 12 / 10));
        base = MIN(1000, 2 * base);
    }
    backoff_reset(&b);
    CHECK(backoff_next_ms(&b, &rand) <= 120);
    backoff_init(&b, 0, 0);
    CHECK_EQ(backoff_next_ms(&b, &rand), 0);
    backoff_init(&b, 500, 100);
    CHECK(backoff_next_ms(&b, &rand) <= 500);
}

TESTS(RUN(timers_in_order), RUN(timer_set_to_now_waits_a_turn), RUN(tasks_run_once),
      RUN(turns_are_bounded), RUN(heap_at_random), RUN(backoff))
