/* sync_store.c -- MirrorMaker 2's memory of offset syncs: distances between them grow with powers of two.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/sync_store.h"

static int64_t plus(int64_t a, uint64_t b) /* as Java's long: round the end */
{
    return (int64_t)((uint64_t)a + b);
}

static bool is_near(const struct sync_slot *x, const struct sync_slot *y, int i, int j)
{
    int64_t most = plus(y->upstream, (1ull << j) - (1ull << i));

    return x->id == y->id || most < 0 || x->upstream <= most;
}

static bool is_far(const struct sync_slot *x, const struct sync_slot *y, int i)
{
    int64_t least = plus(y->upstream, 1ull << MAX(i - 2, 0));

    return x->id == y->id || (least >= 0 && x->upstream >= least);
}

static void fill(struct sync_store *s, struct sync_slot n)
{
    for (int k = 0; k < SYNC_STORE_SLOTS; k++)
        s->slots[k] = n;
}

/* What goes into slot k: the best of the old ones from *at on, or the candidate of before. */
static struct sync_slot choose(const struct sync_store *s, const struct sync_slot *old, int k, int *at,
                               struct sync_slot candidate)
{
    const struct sync_slot *slot = s->slots;
    bool dropped = true;

    while (dropped) {
        const struct sync_slot *o = &old[*at];
        bool far = is_far(&slot[k - 1], o, k - 1);
        bool taken = far && is_near(&slot[k - 1], o, k - 1, k) &&
                     (k == SYNC_STORE_SLOTS - 1 || is_far(o, &slot[k + 1], k));
        bool twice = *at + 1 < SYNC_STORE_SLOTS && old[*at + 1].id == o->id;

        dropped = twice || !far;
        if (taken)
            candidate = *o;
        if (taken || dropped)
            ++*at;
        dropped = dropped && *at < k;
    }
    return candidate;
}

void sync_store_put(struct sync_store *s, int64_t upstream, int64_t downstream)
{
    struct sync_slot n = { upstream, downstream, ++s->count }, candidate = n;
    struct sync_slot old[SYNC_STORE_SLOTS];
    int at = 0;

    if (s->count == 1 || upstream < s->slots[0].upstream) {
        fill(s, n);
        return;
    }
    for (int k = 0; k < SYNC_STORE_SLOTS; k++)
        old[k] = s->slots[k];
    s->slots[0] = n;
    for (int k = 1; k < SYNC_STORE_SLOTS; k++) {
        candidate = choose(s, old, k, &at, candidate);
        if (is_near(&s->slots[k - 1], &s->slots[k], k - 1, k))
            return; /* the rest stays */
        s->slots[k] = candidate;
    }
}

int64_t sync_store_translate(const struct sync_store *s, int64_t upstream)
{
    const struct sync_slot *slot = &s->slots[SYNC_STORE_SLOTS - 1];

    if (s->count == 0)
        return -1;
    for (int k = 0; k < SYNC_STORE_SLOTS; k++) {
        if (s->slots[k].upstream <= upstream) {
            slot = &s->slots[k];
            break;
        }
    }
    if (slot->upstream > upstream)
        return -1;
    return slot->downstream + (slot->upstream != upstream);
}
