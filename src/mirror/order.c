/* order.c -- the way of an order: HTTP thread -> control thread -> workers, one after the other.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/order.h"

#include "base/alloc.h"

static void free_order(struct snapshot *s)
{
    struct order *o = container_of(s, struct order, snapshot);

    gate_fini(&o->done);
    arena_fini(&o->arena);
    mem_free(o);
}

struct order *order_new(void)
{
    struct order *o = mem_new(sizeof(*o));

    snapshot_init(&o->snapshot, free_order);
    gate_init(&o->done);
    arena_init(&o->arena, 1 * MiB);
    return o;
}

void order_drop(struct order **o)
{
    struct snapshot *s = &(*o)->snapshot;

    snapshot_drop(&s);
    *o = NULL;
}

void order_done(struct order *o)
{
    gate_open(&o->done);
    order_drop(&o);
}

static void run_at_control(struct msg *m, struct loop *l)
{
    struct order *o = container_of(m, struct order, msg);

    (void)l;
    if (o->desk->closed || !o->desk->send(o->desk, o))
        order_done(o);
}

bool order_ask(struct order_desk *desk, struct order *o)
{
    o->answers = arena_array(&o->arena, (size_t)o->n, sizeof(*o->answers));
    o->desk = desk;
    o->msg.run = run_at_control;
    snapshot_ref(&o->snapshot);
    loop_post(desk->control, &o->msg);
    return gate_wait(&o->done, ORDER_WAIT_MS);
}
