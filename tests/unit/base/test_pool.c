/* test_pool.c -- budget, free stack, waiters and oversize blocks of the payload pool.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/pool.h"

#include "base/rand.h"
#include "unit/test.h"

#include <stdio.h>

#define BLOCK (256 * KiB)

static struct block *take(struct pool *p, size_t size)
{
    struct block *b;

    CHECK(pool_reserve(p, size));
    b = pool_take(p, size, size);
    CHECK(b);
    CHECK(b->size >= size);
    memset(b->data, 0x5a, b->size);
    return b;
}

TEST(last_in_first_out)
{
    struct pool *p = pool_new(BLOCK, 8 * BLOCK);
    struct block *a = take(p, BLOCK), *b = take(p, BLOCK);
    char *data_a = a->data, *data_b = b->data;

    block_drop(&a);
    block_drop(&b);
    CHECK(!a);
    CHECK_EQ(pool_used(p), 0);
    b = take(p, BLOCK);
    a = take(p, BLOCK / 2 + 1);
    CHECK(b->data == data_b);
    CHECK(a->data == data_a);
    block_drop(&a);
    block_drop(&b);
    pool_free(&p);
    CHECK(!p);
    pool_free(&p);
}

TEST(budget)
{
    struct pool *p = pool_new(BLOCK, 3 * BLOCK);
    struct block *b = take(p, BLOCK);

    CHECK_EQ(pool_max(p), 3 * BLOCK);
    CHECK(!pool_reserve(p, 2 * BLOCK + 1));
    CHECK(pool_reserve(p, 2 * BLOCK));
    CHECK(!pool_reserve(p, 1));
    CHECK_EQ(pool_used(p), 3 * BLOCK);
    pool_unreserve(p, 2 * BLOCK);
    CHECK_EQ(pool_used(p), BLOCK);
    block_drop(&b);
    CHECK_EQ(pool_used(p), 0);
    CHECK_EQ(pool_peak(p), 3 * BLOCK);
    /* More than there ever will be must not wait for ever. */
    CHECK(pool_reserve(p, 4 * BLOCK));
    CHECK(!pool_reserve(p, 1));
    pool_unreserve(p, 4 * BLOCK);
    pool_free(&p);
}

/* The first batch of a fetch comes whole, however large. */
TEST(oversize)
{
    struct pool *p = pool_new(BLOCK, 2 * BLOCK);
    struct block *b, *usual = take(p, BLOCK);

    CHECK(pool_reserve(p, BLOCK));
    b = pool_take(p, 5 * BLOCK + 1, BLOCK);
    CHECK(b);
    memset(b->data, 1, b->size);
    CHECK(pool_used(p) >= 6 * BLOCK + 1);
    CHECK(!pool_reserve(p, 1));
    block_drop(&usual); /* past the budget: not kept */
    block_drop(&b);
    CHECK_EQ(pool_used(p), 0);
    CHECK(pool_take(p, SIZE_MAX, 0) == NULL);
    CHECK_EQ(pool_used(p), 0);
    pool_free(&p);
}

/* A short answer pays only for itself. */
TEST(small)
{
    struct pool *p = pool_new(BLOCK, 2 * BLOCK);
    struct block *b;

    CHECK(pool_reserve(p, BLOCK));
    b = pool_take(p, 100, BLOCK);
    CHECK(b);
    CHECK(pool_used(p) < 200);
    block_drop(&b);
    CHECK(pool_reserve(p, 0));
    b = pool_take(p, 0, 0);
    CHECK(b && b->data);
    block_drop(&b);
    pool_free(&p);
}

static size_t resident_bytes(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f && fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (size_t)pages * 4 * KiB;
}

/* What lies unused goes back to the system (the sanitizer keeps freed memory for a while). */
TEST(trim_gives_memory_back)
{
    struct pool *p = pool_new(BLOCK, 100 * BLOCK);
    struct block *blocks[100];
    size_t full;

    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = take(p, BLOCK);
    full = resident_bytes();
    for (size_t i = 0; i < COUNT(blocks); i++)
        block_drop(&blocks[i]);
    pool_trim(p);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(resident_bytes() + 90 * BLOCK < full);
#else
    (void)full;
#endif
    pool_free(&p);
}

struct sleeper {
    struct pool_waiter w;
    struct pool *pool;
    int *order;
    int woken_as;
    bool again; /* waits again from inside wake */
};

static void on_wake(struct pool_waiter *w)
{
    struct sleeper *s = container_of(w, struct sleeper, w);

    CHECK(!w->waiting);
    s->woken_as = ++*s->order;
    if (s->again)
        pool_wait(s->pool, w);
}

/* Answers of a broker that is far: the memory of the last one serves for the next. */
TEST(large_blocks_are_reused)
{
    struct pool *p = pool_new(BLOCK, 20 * BLOCK);
    struct block *a = take(p, 3 * BLOCK), *b = take(p, BLOCK + 1);
    char *four = a->data, *two = b->data;

    CHECK_EQ(a->size, 4 * BLOCK);
    CHECK_EQ(b->size, 2 * BLOCK);
    block_drop(&a);
    block_drop(&b);
    a = take(p, 4 * BLOCK);
    b = take(p, 2 * BLOCK);
    CHECK(a->data == four);
    CHECK(b->data == two);
    block_drop(&a);
    a = take(p, BLOCK / 8 + 1);
    CHECK_EQ(a->size, BLOCK / 4);
    block_drop(&a);
    block_drop(&b);
    pool_free(&p);
}

/* Only what was not needed between two calls is given back. */
TEST(tidy)
{
    struct pool *p = pool_new(BLOCK, 20 * BLOCK);
    struct block *a = take(p, BLOCK), *b = take(p, 2 * BLOCK);
    char *data = a->data;

    block_drop(&a);
    block_drop(&b);
    pool_tidy(p); /* all of it was in use since the start */
    a = take(p, BLOCK);
    CHECK(a->data == data);
    block_drop(&a);
    pool_tidy(p);
    a = take(p, BLOCK); /* the larger lay unused */
    CHECK(a->data == data);
    block_drop(&a);
    CHECK_EQ(pool_used(p), 0);
    pool_free(&p);
}

TEST(waiters_in_order)
{
    struct pool *p = pool_new(BLOCK, 2 * BLOCK);
    struct sleeper s[4];
    int order = 0;

    for (int i = 0; i < 4; i++)
        s[i] = (struct sleeper){ .w.wake = on_wake, .pool = p, .order = &order, .again = i == 1 };
    CHECK(pool_reserve(p, 2 * BLOCK));
    for (int i = 0; i < 4; i++) {
        pool_wait(p, &s[i].w);
        pool_wait(p, &s[i].w); /* keeps its place */
    }
    pool_cancel(p, &s[2].w);
    pool_cancel(p, &s[2].w);
    CHECK(!s[2].w.waiting);
    CHECK_EQ(order, 0);
    pool_unreserve(p, BLOCK);
    CHECK_EQ(s[0].woken_as, 1);
    CHECK_EQ(s[1].woken_as, 2);
    CHECK_EQ(s[2].woken_as, 0);
    CHECK_EQ(s[3].woken_as, 3);
    CHECK(!s[0].w.waiting && s[1].w.waiting && !s[3].w.waiting);
    pool_cancel(p, &s[1].w);
    pool_unreserve(p, BLOCK);
    CHECK_EQ(order, 3);
    pool_free(&p);
}

/* Budget also returns when a block is dropped, and when an answer is shorter than reserved. */
TEST(waiters_and_blocks)
{
    struct pool *p = pool_new(BLOCK, BLOCK);
    int order = 0;
    struct sleeper s = { .w.wake = on_wake, .pool = p, .order = &order };
    struct block *b;

    CHECK(pool_reserve(p, BLOCK));
    pool_wait(p, &s.w);
    b = pool_take(p, 10, BLOCK);
    CHECK_EQ(order, 1);
    pool_wait(p, &s.w);
    block_drop(&b);
    CHECK_EQ(order, 2);
    pool_free(&p);
}

TEST(slices)
{
    struct pool *p = pool_new(BLOCK, 2 * BLOCK);
    struct block *b = take(p, BLOCK);
    struct slice s = slice_of(b, b->data + 10, 20), t = slice_ref(&s), none = { 0 };

    block_drop(&b);
    slice_drop(&s);
    CHECK(!s.b && !s.p && s.n == 0);
    CHECK_EQ(pool_used(p), BLOCK);
    CHECK_EQ(t.n, 20);
    CHECK_EQ(t.p[0], 0x5a);
    slice_drop(&t);
    slice_drop(&t);
    s = slice_ref(&none);
    slice_drop(&s);
    CHECK_EQ(pool_used(p), 0);
    pool_trim(p);
    pool_free(&p);
}

/* Random life: the sum is always right and everything comes back. */
TEST(random_life)
{
    struct pool *p = pool_new(64 * KiB, 4 * MiB);
    struct block *held[40] = { 0 };
    size_t sum = 0;
    struct rand rand;

    rand_init(&rand, 7);
    for (int round = 0; round < 20000; round++) {
        size_t i = rand_below(&rand, COUNT(held));
        size_t want = (size_t)1 << rand_below(&rand, 19);

        if (held[i]) {
            sum -= held[i]->size;
            block_drop(&held[i]);
        } else if (pool_reserve(p, want)) {
            held[i] = pool_take(p, want + rand_below(&rand, 100), want);
            CHECK(held[i]);
            held[i]->data[0] = held[i]->data[held[i]->size - 1] = 'x';
            sum += held[i]->size;
        }
        CHECK_EQ(pool_used(p), sum);
        if (round % 1000 == 0)
            pool_trim(p);
    }
    for (size_t i = 0; i < COUNT(held); i++)
        block_drop(&held[i]);
    CHECK_EQ(pool_used(p), 0);
    pool_free(&p);
}

TESTS(RUN(last_in_first_out), RUN(budget), RUN(oversize), RUN(small), RUN(trim_gives_memory_back),
      RUN(large_blocks_are_reused), RUN(tidy),
      RUN(waiters_in_order), RUN(waiters_and_blocks), RUN(slices), RUN(random_life))
