/* mailbox.c -- a stack that is pushed by all and emptied whole by one, who then turns it round.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Taking everything at once is what makes the stack simple: nobody pops single nodes, so a node that
 * comes back at the same address confuses nobody.
 */
#include "loop/mailbox.h"

void mailbox_init(struct mailbox *m)
{
    atomic_init(&m->newest, NULL);
    m->oldest = NULL;
}

bool mailbox_put(struct mailbox *m, struct msg *msg)
{
    struct msg *top = atomic_load_explicit(&m->newest, memory_order_relaxed);

    do
        msg->next = top;
    while (!atomic_compare_exchange_weak_explicit(&m->newest, &top, msg, memory_order_release,
                                                  memory_order_relaxed));
    return !top;
}

static void collect(struct mailbox *m)
{
    struct msg *msg = atomic_exchange_explicit(&m->newest, NULL, memory_order_acquire);

    while (msg) {
        struct msg *older = msg->next;

        msg->next = m->oldest;
        m->oldest = msg;
        msg = older;
    }
}

struct msg *mailbox_take(struct mailbox *m)
{
    struct msg *msg;

    if (!m->oldest)
        collect(m);
    msg = m->oldest;
    if (msg) {
        m->oldest = msg->next;
        msg->next = NULL;
    }
    return msg;
}

bool mailbox_is_empty(struct mailbox *m)
{
    return !m->oldest && !atomic_load_explicit(&m->newest, memory_order_relaxed);
}
