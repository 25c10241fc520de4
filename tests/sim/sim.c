/* sim.c -- the event queue: a binary heap by time, ties broken by the seed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim.h"

#include "base/alloc.h"
#include "base/must.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define EPOCH_MS INT64_C(1790000000000) /* the wall clock at the start of every run */

static struct {
    uint64_t seed;
    int64_t now_us, jumped_ms;
    struct rand rand;
    struct rand *luck; /* instead of it */
    struct sim_event **heap;
    size_t count, room;
    uint64_t ran;
    bool trace;
} world;

void sim_begin(uint64_t seed)
{
    world.seed = seed;
    world.now_us = 1 * SIM_S;
    rand_init(&world.rand, seed);
}

int64_t sim_now_us(void)
{
    return world.now_us;
}

int64_t sim_wall_ms(void)
{
    return EPOCH_MS + world.jumped_ms + world.now_us / 1000;
}

void sim_wall_jump(int64_t by_ms)
{
    world.jumped_ms += by_ms;
}

struct rand *sim_rand(void)
{
    return &world.rand;
}

void sim_rand_use(struct rand *r)
{
    world.luck = r;
}

int64_t sim_between(int64_t least, int64_t most)
{
    must(least <= most);
    return least + (int64_t)rand_below(world.luck ? world.luck : &world.rand, (uint64_t)(most - least) + 1);
}

bool sim_chance(int64_t percent)
{
    return sim_between(0, 99) < percent;
}

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->luck < b->luck;
}

static void put_at(size_t i, struct sim_event *e)
{
    world.heap[i] = e;
    e->heap_at = i + 1;
}

/* Moves e, whose place is i, to where its time belongs. */
static void settle(size_t i, struct sim_event *e)
{
    while (i > 0 && is_before(e, world.heap[(i - 1) / 2])) {
        put_at(i, world.heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < world.count && is_before(world.heap[child + 1], world.heap[child]))
            child++;
        if (child >= world.count || !is_before(world.heap[child], e))
            break;
        put_at(i, world.heap[child]);
        i = child;
    }
    put_at(i, e);
}

void sim_event_cancel(struct sim_event *e)
{
    size_t i = e->heap_at - 1;
    struct sim_event *last;

    if (!e->heap_at)
        return;
    e->heap_at = 0;
    last = world.heap[--world.count];
    if (last != e)
        settle(i, last);
}

void sim_event_set(struct sim_event *e, int64_t after_us)
{
    sim_event_cancel(e);
    e->at_us = world.now_us + MAX(after_us, 0);
    e->luck = rand_next(&world.rand);
    if (world.count == world.room) {
        world.room = MAX(world.room * 2, 64);
        world.heap = mem_resize(world.heap, world.room, sizeof(struct sim_event *));
    }
    settle(world.count++, e);
}

void sim_event_hurry(struct sim_event *e, int64_t after_us)
{
    if (!sim_event_is_set(e) || e->at_us > world.now_us + after_us)
        sim_event_set(e, after_us);
}

void sim_run(int64_t span_us)
{
    int64_t until_us = world.now_us + span_us;

    while (world.count > 0 && world.heap[0]->at_us <= until_us) {
        struct sim_event *e = world.heap[0];

        world.now_us = e->at_us;
        sim_event_cancel(e);
        world.ran++;
        e->fn(e);
    }
    world.now_us = until_us;
}

uint64_t sim_events_run(void)
{
    return world.ran;
}

void sim_trace(bool on)
{
    world.trace = on;
}

void sim_say(const char *fmt, ...)
{
    va_list ap;

    if (!world.trace)
        return;
    fprintf(stderr, "%10.3f ", (double)world.now_us / 1e6);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

void sim_fail(const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "seed %llu failed at %.3f s: ", (unsigned long long)world.seed,
            (double)world.now_us / 1e6);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    fflush(NULL);
    _Exit(1);
}
