/* translation.c -- a list of questions that travels, and how a worker answers it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/translation.h"

#include "base/alloc.h"
#include "mirror/flow_internal.h"

#include <stdlib.h>

struct translation *translation_new(void (*done)(struct translation *t, void *asker), void *asker)
{
    struct translation *t = mem_new(sizeof(*t));

    arena_init(&t->arena, 1024 * (size_t)MiB);
    t->done = done;
    t->asker = asker;
    return t;
}

void translation_add(struct translation *t, const struct question *q)
{
    struct question *copy;

    if (t->n == t->room) {
        t->room = MAX(t->room * 2, 64);
        t->at = mem_resize(t->at, (size_t)t->room, sizeof(*t->at));
    }
    copy = &t->at[t->n++];
    *copy = *q;
    copy->answer = (struct offset_answer){ .kind = OFFSET_UNKNOWN };
    /* Questions come topic by topic, so most names need no copy of their own. */
    copy->topic = t->n > 1 && str_eq(t->at[t->n - 2].topic, q->topic) ? t->at[t->n - 2].topic
                                                                      : arena_str(&t->arena, q->topic);
}

void translation_free(struct translation **tp)
{
    struct translation *t = *tp;

    arena_fini(&t->arena);
    mem_free(t->at);
    mem_free(t);
    *tp = NULL;
}

void translation_back(struct msg *m, struct loop *l)
{
    struct translation *t = container_of(m, struct translation, msg);

    (void)l;
    if (t->asker)
        t->done(t, t->asker);
    else
        translation_free(&t);
}

static int compare(const struct relay *r, struct str topic, int32_t partition)
{
    int c = str_cmp(r->topic, topic);

    return c ? c : (r->partition > partition) - (r->partition < partition);
}

static int by_name(const void *a, const void *b)
{
    const struct relay *const *x = a, *const *y = b;

    return compare(*x, (*y)->topic, (*y)->partition);
}

static struct relay *find(struct relay **sorted, size_t n, const struct question *q)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare(sorted[mid], q->topic, q->partition);

        if (c == 0)
            return sorted[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

void flow_translate(struct flow *f, struct translation *t)
{
    struct relay **sorted = mem_array(MAX(f->relays_n, 1), sizeof(struct relay *));

    loop_check(f->loop);
    for (size_t i = 0; i < f->relays_n; i++)
        sorted[i] = f->relays[i];
    qsort(sorted, f->relays_n, sizeof(struct relay *), by_name);
    for (int32_t i = 0; i < t->n; i++) {
        struct relay *r = find(sorted, f->relays_n, &t->at[i]);

        t->at[i].answer = (struct offset_answer){ .kind = OFFSET_UNKNOWN };
        if (r)
            t->at[i].answer = relay_map_answer(r, true, t->at[i].offset);
    }
    mem_free(sorted);
}
