/* sched.c -- a binary heap of timers and a run list that is worked off once per turn.
 * SPDX-License-Identifier: Apache-2.0
 *
 *       readiness, messages         wake            run
 *      --------------------> marks ------> tasks --------> x_step()
 *       timers that are due
 *
 * S-1  A timer fires at or after its time, and timers of one time fire in the order they were set.
 * S-2  What is set or woken from inside a turn cannot keep that turn from ending: a timer set to "now"
 *      fires in the next turn, and a task runs at most once per turn.
 * S-3  A timer or task is off its list before its fn is called, so fn may set it again or free it.
 */
#include "loop/sched.h"

#include "base/alloc.h"
#include "base/must.h"

void sched_init(struct sched *s)
{
    *s = (struct sched){ .turn = 1 };
    list_init(&s->run);
    list_init(&s->next);
}

void sched_fini(struct sched *s)
{
    for (size_t i = 0; i < s->count; i++)
        s->heap[i]->heap_at = 0;
    mem_free(s->heap);
    while (!list_is_empty(&s->run))
        list_remove(list_first(&s->run));
    while (!list_is_empty(&s->next))
        list_remove(list_first(&s->next));
    sched_init(s);
}

/* --- the heap --- */

static bool is_sooner(const struct timer *a, const struct timer *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void place(struct sched *s, size_t i, struct timer *t)
{
    s->heap[i] = t;
    t->heap_at = i + 1;
}

static void sift_up(struct sched *s, size_t i, struct timer *t)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;

        if (!is_sooner(t, s->heap[parent]))
            break;
        place(s, i, s->heap[parent]);
        i = parent;
    }
    place(s, i, t);
}

static void sift_down(struct sched *s, size_t i, struct timer *t)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= s->count)
            break;
        if (child + 1 < s->count && is_sooner(s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_sooner(s->heap[child], t))
            break;
        place(s, i, s->heap[child]);
        i = child;
    }
    place(s, i, t);
}

/* Puts t where its time belongs, given that place i is free for it. */
static void settle(struct sched *s, size_t i, struct timer *t)
{
    if (i > 0 && is_sooner(t, s->heap[(i - 1) / 2]))
        sift_up(s, i, t);
    else
        sift_down(s, i, t);
}

static void heap_add(struct sched *s, struct timer *t)
{
    if (s->count == s->room) {
        s->room = MAX(64, 2 * s->room);
        s->heap = mem_resize(s->heap, s->room, sizeof(struct timer *));
    }
    s->count++;
    sift_up(s, s->count - 1, t);
}

static void heap_remove(struct sched *s, struct timer *t)
{
    size_t i = t->heap_at - 1;
    struct timer *last;

    must(i < s->count && s->heap[i] == t);
    s->count--;
    last = s->heap[s->count];
    t->heap_at = 0;
    if (last != t)
        settle(s, i, last);
}

/* --- one turn --- */

static void fire_timers(struct sched *s, int64_t now_us)
{
    uint64_t end = s->order; /* what is set from here on belongs to the next turn (S-2) */

    for (int n = 0; n < SCHED_TIMERS_MAX && s->count > 0; n++) {
        struct timer *t = s->heap[0];

        /* One set during this turn is due at now_us or later and comes after all that were due before:
         * when it is at the top, only such are left. */
        if (t->at_us > now_us || t->order >= end)
            return;
        heap_remove(s, t);
        t->fn(t);
    }
}

static void run_tasks(struct sched *s)
{
    struct list_node *n;

    for (int ran = 0; ran < SCHED_TASKS_MAX && (n = list_first(&s->run)); ran++) {
        struct task *t = container_of(n, struct task, node);

        list_remove(n);
        t->turn = s->turn;
        t->fn(t);
    }
    s->turn++;
    while ((n = list_first(&s->next))) {
        list_remove(n);
        list_add_tail(&s->run, n);
    }
}

void sched_run(struct sched *s, int64_t now_us)
{
    fire_timers(s, now_us);
    run_tasks(s);
}

bool sched_is_pending(const struct sched *s)
{
    return !list_is_empty(&s->run);
}

int64_t sched_next_us(const struct sched *s)
{
    return s->count > 0 ? s->heap[0]->at_us : SCHED_NEVER;
}

/* --- the part of loop.h that is the same in every world --- */

void task_init(struct task *t, void (*fn)(struct task *t))
{
    *t = (struct task){ .fn = fn };
    list_init(&t->node);
}

void task_wake(struct loop *l, struct task *t)
{
    struct sched *s = loop_sched(l);

    loop_check(l);
    if (!list_is_linked(&t->node))
        list_add_tail(t->turn == s->turn ? &s->next : &s->run, &t->node);
}

void task_cancel(struct task *t)
{
    list_remove(&t->node);
}

void timer_init(struct timer *t, void (*fn)(struct timer *t))
{
    *t = (struct timer){ .fn = fn };
}

void timer_set_ms(struct loop *l, struct timer *t, int64_t after_ms)
{
    struct sched *s = loop_sched(l);
    int64_t now_us = loop_now_us(l);
    int64_t most_ms = (SCHED_NEVER - 1 - now_us) / 1000;

    loop_check(l);
    t->at_us = now_us + 1000 * CLAMP(after_ms, 0, most_ms);
    t->order = s->order++;
    if (timer_is_set(t))
        settle(s, t->heap_at - 1, t);
    else
        heap_add(s, t);
}

void timer_cancel(struct loop *l, struct timer *t)
{
    loop_check(l);
    if (timer_is_set(t))
        heap_remove(loop_sched(l), t);
}
