/* arena.c -- chunked bump allocation with one end.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Chunks double from 1 KiB to 64 KiB, so a small answer stays small; a request larger than
 * that gets a chunk of its own. The first chunk is kept over a reset.
 */
#include "base/arena.h"

#include "base/alloc.h"
#include "base/must.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_LEAST (1 * KiB)
#define CHUNK_MOST (64 * KiB)
#define ALIGN 16

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of data */
    size_t used;
    size_t pad; /* keeps data aligned to 16 */
    char data[];
};

void arena_init(struct arena *a, size_t max)
{
    *a = (struct arena){ .max = max };
}

static void free_chunks(struct arena_chunk *c)
{
    while (c) {
        struct arena_chunk *next = c->next;

        mem_free(c);
        c = next;
    }
}

void arena_reset(struct arena *a)
{
    struct arena_chunk *keep = a->chunks;

    a->used = 0;
    if (!keep)
        return;
    free_chunks(keep->next);
    keep->next = NULL;
    memset(keep->data, 0, keep->used);
    keep->used = 0;
}

void arena_fini(struct arena *a)
{
    free_chunks(a->chunks);
    a->chunks = NULL;
    a->used = 0;
}

void *arena_try(struct arena *a, size_t size)
{
    struct arena_chunk *c = a->chunks;
    void *p;

    if (size > a->max - MIN(a->used, a->max))
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!c || c->size - c->used < size) {
        size_t want = c ? MIN(c->size * 2, CHUNK_MOST) : CHUNK_LEAST;

        want = MAX(want, size);
        c = mem_new(sizeof(*c) + want);
        c->size = want;
        c->next = a->chunks;
        a->chunks = c;
    }
    p = c->data + c->used;
    c->used += size;
    a->used += size;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    void *p = arena_try(a, size);

    must_say(p, "an arena passed its maximum");
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t total;

    must(!__builtin_mul_overflow(count, size, &total));
    return arena_alloc(a, total);
}

struct str arena_str(struct arena *a, struct str s)
{
    char *p;

    if (!s.p)
        return s;
    p = arena_alloc(a, s.n + 1);
    memcpy(p, s.p, s.n);
    return str_of(p, s.n);
}

struct str arena_fmt(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    char *p;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    must(n >= 0);
    p = arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return str_of(p, (size_t)n);
}
