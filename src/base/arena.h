/* arena.h -- memory that ends all at once: answers, plans, JSON (lifetime "call").
 * SPDX-License-Identifier: Apache-2.0
 *
 * One owner, one thread. An arena has a maximum; beyond it arena_try gives NULL, which is
 * the right thing for bytes that a peer chose. arena_alloc is for sizes of our own.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t used;                /* bytes handed out */
    size_t max;                 /* most bytes that may be handed out */
};

void arena_init(struct arena *a, size_t max);

/* Frees everything at once; the arena may be used again. */
void arena_reset(struct arena *a);
void arena_fini(struct arena *a);

/* Zeroed and aligned for any type. NULL beyond the maximum. */
void *arena_try(struct arena *a, size_t size);

/* The same, but the maximum is a bug. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_array(struct arena *a, size_t count, size_t size);

/* Copies with a NUL behind them; a null string stays null. */
struct str arena_str(struct arena *a, struct str s);
struct str arena_fmt(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
