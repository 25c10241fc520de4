/* test_cell.c -- readers see whole snapshots, never older than before, and the last one frees.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loop/cell.h"

#include "base/alloc.h"
#include "loop/thread.h"
#include "unit/test.h"

#define READERS 3
#define ROUNDS  20000

struct view {
    struct snapshot snapshot;
    int version, twice;
};

static _Atomic(int) alive;
static _Atomic(bool) over;
static struct cell cell;

static void view_free(struct snapshot *s)
{
    struct view *v = container_of(s, struct view, snapshot);

    v->twice = -1;
    mem_free(v);
    alive--;
}

static struct snapshot *view_new(int version)
{
    struct view *v = mem_new(sizeof(*v));

    snapshot_init(&v->snapshot, view_free);
    v->version = version;
    v->twice = 2 * version;
    alive++;
    return &v->snapshot;
}

TEST(one_thread)
{
    struct snapshot *a, *b;

    cell_init(&cell);
    CHECK(!cell_get(&cell));
    cell_put(&cell, view_new(1));
    a = cell_get(&cell);
    cell_put(&cell, view_new(2));
    CHECK_EQ(alive, 2);
    CHECK_EQ(container_of(a, struct view, snapshot)->version, 1);
    b = snapshot_ref(a);
    snapshot_drop(&a);
    CHECK(!a);
    CHECK_EQ(alive, 2);
    snapshot_drop(&b);
    CHECK_EQ(alive, 1);
    snapshot_drop(&b);
    cell_put(&cell, NULL);
    CHECK_EQ(alive, 0);
    cell_put(&cell, view_new(3));
    cell_fini(&cell);
    CHECK_EQ(alive, 0);
}

static void look(void *arg)
{
    int *last = arg;

    while (!over) {
        struct snapshot *s = cell_get(&cell);
        struct view *v;

        if (!s)
            continue;
        v = container_of(s, struct view, snapshot);
        if (v->twice != 2 * v->version || v->version < *last)
            *last = INT32_MAX;
        else
            *last = v->version;
        snapshot_drop(&s);
    }
}

TEST(many_threads)
{
    struct thread *t[READERS];
    int last[READERS] = { 0 };

    cell_init(&cell);
    for (int i = 0; i < READERS; i++)
        t[i] = thread_start("reader", look, &last[i]);
    for (int i = 1; i <= ROUNDS; i++)
        cell_put(&cell, view_new(i));
    over = true;
    for (int i = 0; i < READERS; i++) {
        thread_join(&t[i]);
        CHECK(last[i] <= ROUNDS);
    }
    CHECK_EQ(alive, 1);
    cell_fini(&cell);
    CHECK_EQ(alive, 0);
}

TESTS(RUN(one_thread), RUN(many_threads))
