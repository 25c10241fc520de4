/* mailbox.h -- messages from many threads to one loop, without a lock.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Internal to the back ends; everybody else uses loop_post. Any thread puts, one thread takes. The box
 * does not own what it carries.
 */
#ifndef LOOP_MAILBOX_H
#define LOOP_MAILBOX_H

#include "loop/loop.h"

#include <stdatomic.h>

struct mailbox {
    _Atomic(struct msg *) newest; /* put, not yet seen by the taker */
    struct msg *oldest;           /* the taker's, in order */
};

void mailbox_init(struct mailbox *m);

/* True when the taker may be asleep and has to be woken. From then on msg may be gone at any time. */
bool mailbox_put(struct mailbox *m, struct msg *msg) WARN_UNUSED;

/* The oldest message, or NULL. Those of one sender come in the order in which they were put. */
struct msg *mailbox_take(struct mailbox *m);

/* Whether the taker has something; the taker's thread only. */
bool mailbox_is_empty(struct mailbox *m);

#endif
