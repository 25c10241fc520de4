/* pool.c -- payload blocks with a budget, a free stack and a line of waiters.
 * SPDX-License-Identifier: Apache-2.0
 *
 *                 reserve             take                  last drop
 *     budget ---------------> reserved -----> block in use ----------+--> budget
 *                                                |  ^                |
 *                                                v  | take           v
 *                                             (system)  <------- free stack
 *
 * Three kinds of block, by the size asked for: small ones come from the heap, so that the answer to
 * an idle long-poll does not hold a whole block while its one record is on the way; usual ones all
 * have block_size bytes and go through the free stack; large ones (answers of a broker that is far)
 * are block_size times a power of two and have a stack of their own, for new memory costs the kernel
 * more than copying into it does. What lies unused for long goes back to the system (pool_tidy).
 *
 * Always: used = reserved + in_blocks. in_blocks + stacked <= MAX(max, in_blocks): what lies unused
 * never makes the pool larger than its budget.
 */
#include "base/pool.h"

#include "base/alloc.h"
#include "base/must.h"

#include <sys/mman.h>

/* From here on memory is mapped, so that giving it back shrinks the process whatever the heap
 * holds. The sanitizer sees overruns only in heap memory, so there everything is heap. */
#define MAP_FROM    (64 * KiB)
#define PAGE        (4 * KiB)
#define SMALL_SHARE 4 /* a block is small up to block_size / 4 */

#if defined(__SANITIZE_ADDRESS__)
#define USE_MMAP false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define USE_MMAP false
#endif
#endif
#ifndef USE_MMAP
#define USE_MMAP true
#endif

struct pool {
    size_t block_size;
    size_t max;
    size_t reserved;
    size_t in_blocks; /* bytes of blocks with references */
    size_t peak;
    size_t stacked;       /* bytes in both free stacks */
    size_t idle;          /* the least that was stacked since the last pool_tidy */
    struct block *unused; /* the free stack */
    struct block *large;  /* the other, of larger blocks */
    struct list_node waiters;
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static bool is_mapped(size_t size)
{
    return USE_MMAP && size >= MAP_FROM;
}

static char *data_new(size_t size)
{
    void *p;

    if (!is_mapped(size))
        return mem_try(size);
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void block_free(struct block *b)
{
    if (!is_mapped(b->size))
        mem_free(b->data);
    else
        must(munmap(b->data, b->size) == 0);
    mem_free(b);
}

static struct block *block_new(struct pool *p, size_t size)
{
    struct block *b = mem_try(sizeof(*b));

    if (!b)
        return NULL;
    *b = (struct block){ .pool = p, .size = size, .data = data_new(size) };
    if (!b->data) {
        mem_free(b);
        return NULL;
    }
    return b;
}

struct pool *pool_new(size_t block_size, size_t max_bytes)
{
    struct pool *p = mem_new(sizeof(*p));

    must(block_size > 0);
    p->block_size = round_up(block_size, PAGE);
    p->max = max_bytes;
    list_init(&p->waiters);
    return p;
}

void pool_free(struct pool **p)
{
    if (!*p)
        return;
    must_say(pool_used(*p) == 0, "a payload block outlives its worker");
    must(list_is_empty(&(*p)->waiters));
    pool_trim(*p);
    mem_free(*p);
    *p = NULL;
}

static struct block *unstack(struct pool *p, struct block **at)
{
    struct block *b = *at;

    *at = b->next;
    p->stacked -= b->size;
    p->idle = MIN(p->idle, p->stacked);
    return b;
}

/* Frees unused blocks, large ones first, until at most `most` bytes of them are left. */
static void shrink(struct pool *p, size_t most)
{
    while (p->stacked > most)
        block_free(unstack(p, p->large ? &p->large : &p->unused));
}

void pool_trim(struct pool *p)
{
    shrink(p, 0);
}

void pool_tidy(struct pool *p)
{
    shrink(p, p->stacked - MIN(p->idle, p->stacked));
    p->idle = p->stacked;
}

/* Everyone is woken, in order: how much each one wants is known only to itself, and waking too
 * few would leave budget unused for ever. Who does not get enough waits again. */
static void wake_all(struct pool *p)
{
    struct list_node woken;

    if (list_is_empty(&p->waiters) || pool_used(p) >= p->max)
        return;
    /* The whole line moves to `woken`, so that nobody is woken twice by this call. */
    woken = p->waiters;
    woken.next->prev = woken.prev->next = &woken;
    list_init(&p->waiters);
    while (!list_is_empty(&woken)) {
        struct pool_waiter *w = container_of(list_first(&woken), struct pool_waiter, node);

        list_remove(&w->node);
        w->waiting = false;
        w->wake(w);
    }
}

bool pool_reserve(struct pool *p, size_t n)
{
    size_t used = pool_used(p);

    if (used > 0 && n > p->max - MIN(used, p->max))
        return false;
    p->reserved += n;
    p->peak = MAX(p->peak, pool_used(p));
    return true;
}

void pool_unreserve(struct pool *p, size_t n)
{
    must(n <= p->reserved);
    p->reserved -= n;
    wake_all(p);
}

static bool is_usual(const struct pool *p, size_t size)
{
    return size > p->block_size / SMALL_SHARE && size <= p->block_size;
}

static struct block *find_large(struct pool *p, size_t size)
{
    size_t room = p->block_size;

    while (room < size && room <= p->max / 2)
        room *= 2;
    if (room < size)
        return block_new(p, round_up(size, PAGE)); /* one that no budget was made for */
    for (struct block **at = &p->large; *at; at = &(*at)->next)
        if ((*at)->size == room)
            return unstack(p, at);
    return block_new(p, room);
}

static struct block *find_block(struct pool *p, size_t size)
{
    if (size > p->block_size)
        return find_large(p, size);
    if (!is_usual(p, size))
        return block_new(p, round_up(MAX(size, 1), 64));
    return p->unused ? unstack(p, &p->unused) : block_new(p, p->block_size);
}

struct block *pool_take(struct pool *p, size_t size, size_t reserved)
{
    struct block *b;

    must(reserved <= p->reserved);
    if (size > SIZE_MAX / 2)
        return NULL; /* no system has it, and rounding must not wrap */
    b = find_block(p, size);
    if (!b)
        return NULL;
    b->refs = 1;
    b->next = NULL;
    p->reserved -= reserved;
    p->in_blocks += b->size;
    p->peak = MAX(p->peak, pool_used(p));
    shrink(p, p->max - MIN(p->in_blocks, p->max));
    if (reserved > b->size)
        wake_all(p);
    return b;
}

void pool_wait(struct pool *p, struct pool_waiter *w)
{
    if (w->waiting)
        return;
    list_add_tail(&p->waiters, &w->node);
    w->waiting = true;
}

void pool_cancel(struct pool *p, struct pool_waiter *w)
{
    (void)p;
    if (!w->waiting)
        return;
    list_remove(&w->node);
    w->waiting = false;
}

struct block *block_ref(struct block *b)
{
    must(b->refs > 0 && b->refs < UINT32_MAX);
    b->refs++;
    return b;
}

/* The last reference is gone: onto its free stack if the budget has room for it there. */
static void block_return(struct block *b)
{
    struct pool *p = b->pool;
    struct block **stack = b->size > p->block_size ? &p->large : &p->unused;

    p->in_blocks -= b->size;
    if (b->size >= p->block_size && p->in_blocks + p->stacked + b->size <= p->max) {
        b->next = *stack;
        *stack = b;
        p->stacked += b->size;
    } else {
        block_free(b);
    }
    wake_all(p);
}

void block_drop(struct block **b)
{
    struct block *dropped = *b;

    if (!dropped)
        return;
    *b = NULL;
    must(dropped->refs > 0);
    if (--dropped->refs == 0)
        block_return(dropped);
}

struct slice slice_of(struct block *b, const char *p, size_t n)
{
    must(p >= b->data && n <= b->size && p - b->data <= (ptrdiff_t)(b->size - n));
    return (struct slice){ .b = block_ref(b), .p = p, .n = n };
}

struct slice slice_ref(const struct slice *s)
{
    if (s->b)
        block_ref(s->b);
    return *s;
}

void slice_drop(struct slice *s)
{
    block_drop(&s->b);
    *s = (struct slice){ 0 };
}

size_t pool_used(const struct pool *p)
{
    return p->reserved + p->in_blocks;
}

size_t pool_peak(const struct pool *p)
{
    return p->peak;
}

size_t pool_max(const struct pool *p)
{
    return p->max;
}
