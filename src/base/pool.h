/* pool.h -- the payload budget of one worker: counted blocks and slices of them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lifetime "payload": fetched bytes on their way to produce. A pool belongs to one worker and
 * is used on its thread only, so counts are plain integers. The pool is the back-pressure: a
 * fetch reserves budget before it asks the broker; no budget, no fetch. Freed blocks are kept
 * and reused last-in first-out (the bytes are still in the cache), and given back to the
 * system by pool_trim.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/list.h"
#include "base/str.h"

struct pool;

struct block {
    struct pool *pool;
    uint32_t refs;
    size_t size; /* usable bytes at data */
    char *data;
    struct block *next; /* in one of the pool's free stacks */
};

/* Part of a block, kept alive by one reference. b == NULL: nothing held. */
struct slice {
    struct block *b;
    const char *p;
    size_t n;
};

/* Who waits for budget: put on the pool's list by pool_wait, woken in order when budget returns.
 * The wake function must only note and wake its owner. */
struct pool_waiter {
    struct list_node node;
    void (*wake)(struct pool_waiter *w);
    bool waiting;
};

/* block_size is the usual size of a block (one fetch response); max_bytes the budget. */
struct pool *pool_new(size_t block_size, size_t max_bytes);
void pool_free(struct pool **p); /* every block must be back */

/* Takes n bytes of budget ahead of a fetch; false: not now. Give back with pool_unreserve,
 * or turn into a block with pool_take. An empty pool grants any n: a request larger than the
 * budget must not wait for ever. */
bool pool_reserve(struct pool *p, size_t n);
void pool_unreserve(struct pool *p, size_t n);

/* A block of at least size bytes, with one reference, paid from `reserved` bytes that the caller
 * holds; what size exceeds them is taken on top even past the budget (one response may be larger
 * than asked: the first batch of a fetch always comes whole), and what is left of them returns: a
 * block much smaller than block_size pays only for itself. NULL only when the system has no
 * memory; the reservation then stays with the caller. */
struct block *pool_take(struct pool *p, size_t size, size_t reserved);

void pool_wait(struct pool *p, struct pool_waiter *w);
void pool_cancel(struct pool *p, struct pool_waiter *w);

struct block *block_ref(struct block *b);
void block_drop(struct block **b); /* clears the pointer; NULL is fine */

struct slice slice_of(struct block *b, const char *p, size_t n); /* takes a reference */
struct slice slice_ref(const struct slice *s);                   /* one more reference */
void slice_drop(struct slice *s);

size_t pool_used(const struct pool *p); /* bytes reserved or in blocks */
size_t pool_peak(const struct pool *p); /* the most that ever were */
size_t pool_max(const struct pool *p);
void pool_trim(struct pool *p); /* frees what lies unused */
/* Frees as much as lay unused all the time since the last call: for a timer. */
void pool_tidy(struct pool *p);

#endif
