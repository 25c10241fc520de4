/* order.h -- questions from the HTTP thread to the partitions, which live on the workers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An order goes from the asking thread to the control thread, to the worker that has the partition (each of the flow's
 * is asked in turn), and is answered there; the asker waits at its gate, not long. It is counted: whoever is last,
 * asker or answerer, frees it.
 */
#ifndef MIRROR_ORDER_H
#define MIRROR_ORDER_H

#include "base/arena.h"
#include "loop/cell.h"
#include "loop/gate.h"
#include "loop/loop.h"
#include "mirror/offset_map.h"

#define ORDER_OFFSETS_MAX 2000
#define ORDER_WAIT_MS 1000

struct director;
struct flow_port;

/* Where orders are handed in. The owner (daemon/control.c) closes it before what it points to goes away. */
struct order;
struct order_desk {
    struct loop *control;
    bool (*send)(struct order_desk *desk, struct order *o); /* to the next worker; false: there is none left */
    struct director *const *directors;
    int32_t directors_n;
    bool closed;
};

struct order {
    struct snapshot snapshot; /* first: its references */
    struct msg msg;
    struct gate done;
    struct arena arena;
    struct order_desk *desk;
    int32_t port; /* the next one to ask */

    /* Asked; before order_put. */
    struct str flow, topic;
    int32_t partition;
    bool to_target; /* offsets are the source's */
    int64_t *offsets;
    int32_t n;

    /* Answered; after the gate is open. */
    struct offset_answer *answers;
    bool found; /* the partition is here */
};

struct order *order_new(void);
/* Hands it in and waits. False: nobody answered in time; it may still be answered, to nobody. */
bool order_ask(struct order_desk *desk, struct order *o);
void order_drop(struct order **o);

/* For those who carry it: the answer is there, or there is none. Gives up the carrier's reference. */
void order_done(struct order *o);

#endif
