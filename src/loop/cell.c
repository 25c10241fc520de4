/* cell.c -- a pointer under a lock and the counts behind it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reading the pointer and counting oneself must be one step, else the snapshot may be freed between the
 * two. A lock does that; readers come a few times a second, so nothing cleverer would be noticed.
 */
#include "loop/cell.h"

#include "base/must.h"

void snapshot_init(struct snapshot *s, void (*free)(struct snapshot *s))
{
    atomic_init(&s->refs, 1);
    s->free = free;
}

struct snapshot *snapshot_ref(struct snapshot *s)
{
    must(atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed) > 0);
    return s;
}

void snapshot_drop(struct snapshot **s)
{
    struct snapshot *old = *s;
    uint32_t refs;

    *s = NULL;
    if (!old)
        return;
    refs = atomic_fetch_sub_explicit(&old->refs, 1, memory_order_acq_rel);
    must(refs > 0);
    if (refs == 1)
        old->free(old);
}

void cell_init(struct cell *c)
{
    must(pthread_mutex_init(&c->lock, NULL) == 0);
    c->now = NULL;
}

void cell_fini(struct cell *c)
{
    snapshot_drop(&c->now);
    must(pthread_mutex_destroy(&c->lock) == 0);
}

void cell_put(struct cell *c, struct snapshot *s)
{
    struct snapshot *old;

    must(pthread_mutex_lock(&c->lock) == 0);
    old = c->now;
    c->now = s;
    must(pthread_mutex_unlock(&c->lock) == 0);
    snapshot_drop(&old);
}

struct snapshot *cell_get(struct cell *c)
{
    struct snapshot *s;

    must(pthread_mutex_lock(&c->lock) == 0);
    s = c->now ? snapshot_ref(c->now) : NULL;
    must(pthread_mutex_unlock(&c->lock) == 0);
    return s;
}
