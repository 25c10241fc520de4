/* pool.c -- payload blocks with a budget, a free stack and a line of waiters.
 * SPDX-License-Identifier: Apache-2.0
 *
 *                 reserve             take                  last drop
 *     budget ---------------> reserved -----> block in use ----------+--> budget
 *                                                |  ^                |
 *                                                v  | take           v
 *                                             (system)  <------- free stack
 *
 * Small blocks come from the heap, so that the answer to an idle long-poll does not hold a whole block
 * while its one record is on the way. The others have block_size bytes times or through a power of two,
 * and a free stack for each such size: new memory costs the kernel more than copying into it does, for it
 * clears every page. What lies unused for long goes back to the system (pool_tidy).
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
/* Where data begins in mapped memory. The kernel copies with `rep movsb`, and some processors (Zen 3) are ten times
 * slower at it when the target stands 1 to 31 bytes further into its page than the source into its own. Batches stand
 * about as far into a fetch answer as into the produce request that they leave with, and the kernel's buffers begin
 * with a page as mapped memory does: without the shift that happens for whole batches at a time. */
#define SHIFT       1024
#define SMALL_SHARE 16 /* a block is small up to block_size / 16 */
#define STACKS      24 /* of block_size / 8, / 4, / 2, block_size, * 2, ... */

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
    size_t stacked; /* bytes in the free stacks */
    size_t idle;    /* the least that was stacked since the last pool_tidy */
    struct block *unused[STACKS];
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
    char *p;

    if (!is_mapped(size))
        return mem_try(size);
    p = mmap(NULL, size + SHIFT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p + SHIFT;
}

static void block_free(struct block *b)
{
    if (!is_mapped(b->size))
        mem_free(b->data);
    else
        must(munmap(b->data - SHIFT, b->size + SHIFT) == 0);
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
    p->block_size = round_up(block_size, PAGE * SMALL_SHARE);
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

/* Frees unused blocks, the largest first, until at most `most` bytes of them are left. */
static void shrink(struct pool *p, size_t most)
{
    for (size_t i = STACKS; i-- > 0;)
        while (p->stacked > most && p->unused[i])
            block_free(unstack(p, &p->unused[i]));
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

/* The size of the blocks in a stack. */
static size_t size_in(const struct pool *p, size_t stack)
{
    return (p->block_size / SMALL_SHARE * 2) << stack;
}

/* The stack whose blocks are just large enough; STACKS: none, for such a size no budget was made. */
static size_t stack_for(const struct pool *p, size_t size)
{
    size_t i = 0;

    while (i < STACKS && size_in(p, i) < size)
        i++;
    return i < STACKS && size_in(p, i) <= MAX(p->max, p->block_size) ? i : STACKS;
}

static struct block *find_block(struct pool *p, size_t size)
{
    size_t i = stack_for(p, size);

    if (size <= p->block_size / SMALL_SHARE)
        return block_new(p, round_up(MAX(size, 1), 64));
    if (i == STACKS)
        return block_new(p, round_up(size, PAGE));
    return p->unused[i] ? unstack(p, &p->unused[i]) : block_new(p, size_in(p, i));
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
    size_t i = stack_for(p, b->size);

    p->in_blocks -= b->size;
    if (i < STACKS && b->size == size_in(p, i) && p->in_blocks + p->stacked + b->size <= p->max) {
        b->next = p->unused[i];
        p->unused[i] = b;
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
