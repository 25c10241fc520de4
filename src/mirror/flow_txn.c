/* flow_txn.c -- opens, closes, commits and aborts the transactions of a flow on one worker.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  closed --batches--> open --time, size--> flushing --all acknowledged--> storing --> ending --> closed
 *    ^                  |                      |                             |           +--> fenced
 *    |                  +----------------------+--------- failure -----------+
 *    +---------------------------- aborting <------------+      aborting --> fenced
 *
 *  fenced  our identity is not ours any more: another process has it, or the coordinator aborted a transaction that was open
 *          for longer than transaction.timeout.ms. The director gives the flow back to the group, and whoever holds it
 *          next (this process, it may be) takes the ids over and reads what was committed.
 *
 *   I-1  a batch is sent only while open, a pair or position only while storing, EndTxn only with all of them acknowledged
 *   I-2  a relay's `committed` pair is what a reader of committed records would find stored
 *   I-3  after an abort every relay that took part stands at its committed pair, with nothing on its way
 */
#include "mirror/flow_txn.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"
#include "mirror/flow_store.h"

#include <stdio.h>

#define CLOSE_LIMIT_MS 10000 /* then the transaction goes on without those who are late */
#define TO(state)      (1u << (state))

enum flow_txn_state {
    FLOW_TXN_CLOSED,
    FLOW_TXN_OPEN,
    FLOW_TXN_FLUSHING,
    FLOW_TXN_STORING,
    FLOW_TXN_ENDING,
    FLOW_TXN_ABORTING,
    FLOW_TXN_FENCED,
};

static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [FLOW_TXN_CLOSED] = { "closed", TO(FLOW_TXN_OPEN) | TO(FLOW_TXN_ABORTING) },
    [FLOW_TXN_OPEN] = { "open", TO(FLOW_TXN_FLUSHING) | TO(FLOW_TXN_ABORTING) },
    [FLOW_TXN_FLUSHING] = { "flushing", TO(FLOW_TXN_STORING) | TO(FLOW_TXN_ABORTING) },
    [FLOW_TXN_STORING] = { "storing", TO(FLOW_TXN_ENDING) | TO(FLOW_TXN_ABORTING) },
    [FLOW_TXN_ENDING] = { "ending", TO(FLOW_TXN_CLOSED) | TO(FLOW_TXN_FENCED) },
    [FLOW_TXN_ABORTING] = { "aborting", TO(FLOW_TXN_CLOSED) | TO(FLOW_TXN_FENCED) },
    [FLOW_TXN_FENCED] = { "fenced", 0 },
};

struct flow_txn {
    struct flow *flow;
    struct txn *txn;
    enum flow_txn_state state;
    struct task step;
    struct timer timer;      /* open: the interval; flushing: the limit */
    struct list_node held;   /* relays that hold batches */
    struct list_node joined; /* relays that have sent or stored something in it */
    size_t bytes;
    bool close, again, late, failed;
    struct fault fault;
};

static void txn_goto(struct flow_txn *x, enum flow_txn_state to)
{
    must(states[x->state].next & TO(to));
    log_event(EV_TXN_STATE, kv_str("id", txn_who(x->txn)->id), kv_c("was", states[x->state].name),
              kv_c("now", states[to].name));
    x->state = to;
}

void flow_txn_wake(struct flow *f)
{
    task_wake(f->loop, &f->txn->step);
}

static void join(struct flow_txn *x, struct relay *r)
{
    if (!list_is_linked(&r->joined_node))
        list_add_tail(&x->joined, &r->joined_node);
}

/* --- aborting --- */

/* Of partitions that were released meanwhile: the pair stays, or is the one before. */
static void settle_kept(struct flow_txn *x, bool committed)
{
    struct kept_pair *k, *next;

    HASH_ITER(hh, x->flow->kept, k, next) {
        if (k->in_txn && committed) {
            k->committed = k->pair;
            k->has_committed = true;
        } else if (k->in_txn && k->has_committed) {
            k->pair = k->committed;
        } else if (k->in_txn) {
            flow_kept_free(x->flow, k);
            continue;
        }
        k->in_txn = false;
    }
}

static void roll_back(struct flow_txn *x)
{
    struct list_node *n;

    settle_kept(x, false);
    while ((n = list_first(&x->joined))) {
        struct relay *r = container_of(n, struct relay, joined_node);

        list_remove(n);
        list_remove(&r->dirty_node);
        offset_syncs_ended(r, false);
        relay_roll_back(r);
    }
    topic_writer_forget(x->flow->state);
    topic_writer_forget(x->flow->positions);
}

static void abort_now(struct flow_txn *x)
{
    timer_cancel(x->flow->loop, &x->timer);
    txn_goto(x, FLOW_TXN_ABORTING);
    roll_back(x);
    x->again = x->again || x->close;
    x->failed = x->late = x->close = false;
    txn_abort(x->txn);
}

/* --- open --- */

/* False: it waits for the coordinator. */
static bool let_send(struct flow_txn *x, struct relay *r)
{
    int32_t kerr = 0;

    switch (txn_enter(x->txn, r->target_topic, r->partition, &kerr)) {
    case TXN_PART_WAIT:
        return false;
    case TXN_PART_REFUSED:
        list_remove(&r->held_node);
        relay_halt(r, kerr_name(kerr), "topic %.*s of the target cannot be written in a transaction: %s",
                   STR_ARG(r->target_topic), kerr_text(kerr));
        return true;
    case TXN_PART_IN:
        break;
    }
    list_remove(&r->held_node);
    join(x, r);
    x->bytes += relay_send_held(r, txn_who(x->txn));
    return true;
}

static void step_open(struct flow_txn *x)
{
    struct list_node offered, *n;

    list_init(&offered);
    while ((n = list_first(&x->held))) {
        list_remove(n);
        list_add_tail(&offered, n);
    }
    while ((n = list_first(&offered))) {
        struct relay *r = container_of(n, struct relay, held_node);

        list_remove(n);
        list_add_tail(&x->held, n);
        if (x->bytes < (size_t)x->flow->config->transaction_max_bytes)
            (void)let_send(x, r);
    }
    if (x->bytes >= (size_t)x->flow->config->transaction_max_bytes)
        x->close = true;
    if (!x->close)
        return;
    txn_goto(x, FLOW_TXN_FLUSHING);
    timer_set_ms(x->flow->loop, &x->timer, CLOSE_LIMIT_MS);
    task_wake(x->flow->loop, &x->step);
}

static void step_closed(struct flow_txn *x)
{
    if (list_is_empty(&x->held) && !(x->close && !list_is_empty(&x->flow->dirty)))
        return;
    txn_goto(x, FLOW_TXN_OPEN);
    x->bytes = 0;
    x->close = x->close && list_is_empty(&x->held);
    timer_set_ms(x->flow->loop, &x->timer, x->flow->config->transaction_interval_ms);
    step_open(x);
}

/* --- closing --- */

static struct relay *find_late(struct flow_txn *x)
{
    struct list_node *n;

    LIST_EACH(n, &x->joined) {
        struct relay *r = container_of(n, struct relay, joined_node);

        if (producer_pending(&r->produce) > 0)
            return r;
    }
    return NULL;
}

/* The pair and position of every relay that moved go into the transaction; false: none did. */
static bool put_all(struct flow_txn *x)
{
    struct flow *f = x->flow;
    struct list_node *n;
    bool any = false;

    while ((n = list_first(&f->dirty))) {
        struct relay *r = container_of(n, struct relay, dirty_node);
        bool registers = r->state == RELAY_REGISTERING;

        list_remove(n);
        /* What it has written must not be committed without its pair; else a pair that is not told yet can wait. */
        if (!r->registered && !registers && !list_is_linked(&r->joined_node))
            continue;
        join(x, r);
        r->put = r->pair;
        r->put_registers = registers;
        flow_store_put(f, r, &r->put);
        any = true;
    }
    return any;
}

static void step_flushing(struct flow_txn *x)
{
    struct relay *r;

    while ((r = find_late(x))) {
        if (!x->late)
            return;
        relay_fail(r, "TRANSACTION_LATE",
                   "the target has not acknowledged a batch for %d s: the transaction goes on without it",
                   CLOSE_LIMIT_MS / 1000);
        if (x->failed)
            return; /* it may have been written: all of it must be aborted */
    }
    x->late = false;
    timer_cancel(x->flow->loop, &x->timer);
    if (!put_all(x)) {
        abort_now(x); /* nothing is in it but, perhaps, partitions, whose time would run out */
        return;
    }
    txn_goto(x, FLOW_TXN_STORING);
    timer_set_ms(x->flow->loop, &x->timer, CLOSE_LIMIT_MS);
}

static void step_storing(struct flow_txn *x)
{
    struct flow *f = x->flow;

    if (!topic_writer_is_idle(f->state) || !topic_writer_is_idle(f->positions)) {
        if (x->late)
            flow_txn_fail(f, "TRANSACTION_LATE", "the target does not acknowledge positions");
        return;
    }
    x->late = false;
    timer_cancel(f->loop, &x->timer);
    txn_goto(x, FLOW_TXN_ENDING);
    txn_commit(x->txn);
}

static void well(struct flow_txn *x)
{
    if (!fault_is_set(&x->fault))
        return;
    log_event(EV_FLOW_FAULT_OVER, kv_str("flow", x->flow->config->name), kv_c("code", x->fault.code));
    fault_clear(&x->fault);
}

static void on_ended(void *arg, bool committed)
{
    struct flow_txn *x = arg;
    struct list_node *n;

    while ((n = list_first(&x->joined))) {
        struct relay *r = container_of(n, struct relay, joined_node);

        list_remove(n);
        if (committed) {
            r->committed = r->put;
            r->has_committed = true;
            r->stored = r->stored || r->put_registers;
        }
        offset_syncs_ended(r, committed);
        r->put_registers = false;
        relay_wake(r);
    }
    settle_kept(x, committed);
    if (committed)
        x->flow->positions_stored_ms = loop_wall_ms(x->flow->loop);
    x->close = x->flow->draining || x->again;
    x->again = false;
    well(x);
    txn_goto(x, FLOW_TXN_CLOSED);
    task_wake(x->flow->loop, &x->step);
    flow_drain_wake(x->flow);
}

/* --- failures --- */

static void set_fault(struct flow_txn *x, const char *code, const char *text)
{
    fault_set(&x->fault, loop_wall_ms(x->flow->loop), code, "transaction of %.*s: %s",
              STR_ARG(txn_who(x->txn)->id), text);
}

void flow_txn_fail(struct flow *f, const char *code, const char *text)
{
    struct flow_txn *x = f->txn;

    if (x->failed || x->state == FLOW_TXN_ENDING || x->state == FLOW_TXN_ABORTING || x->state == FLOW_TXN_FENCED)
        return; /* while it ends nothing of it is under way */
    x->failed = true;
    set_fault(x, code, text);
    log_event(EV_TXN_ABORTED, kv_str("flow", f->config->name), kv_str("id", txn_who(x->txn)->id),
              kv_c("code", code), kv_c("text", text));
    flow_txn_wake(f);
}

static void on_broken(void *arg, int32_t kerr, const char *text)
{
    struct flow_txn *x = arg;
    struct flow *f = x->flow;

    if (x->state != FLOW_TXN_ABORTING && x->state != FLOW_TXN_ENDING) {
        flow_txn_fail(f, kerr_name(kerr), text);
        return;
    }
    txn_goto(x, FLOW_TXN_FENCED);
    set_fault(x, kerr_name(KERR_PRODUCER_FENCED),
              f->config->membership
                  ? "its transactional id was taken over, or it was open for longer than transaction.timeout.ms; going on "
                    "from what was committed as soon as the group says that the flow is ours"
                  : "its transactional id was taken over, or it was open for longer than transaction.timeout.ms; without "
                    "heliostat.membership nobody can tell which: see that no other process has the flow, and start this "
                    "one again");
    log_event(EV_TXN_FENCED, kv_str("flow", f->config->name), kv_str("id", txn_who(x->txn)->id));
    for (size_t i = 0; i < f->relays_n; i++)
        if (!relay_is_idle(f->relays[i]))
            relay_restart(f->relays[i]);
}

static void on_waiting(void *arg, const char *code, const char *text)
{
    set_fault(arg, code, text);
}

static void on_entered(void *arg)
{
    struct flow_txn *x = arg;

    topic_writer_wake(x->flow->state);
    topic_writer_wake(x->flow->positions);
    task_wake(x->flow->loop, &x->step);
}

/* --- the whole --- */

static void on_step(struct task *t)
{
    struct flow_txn *x = container_of(t, struct flow_txn, step);

    if (x->failed && x->state != FLOW_TXN_ABORTING && x->state != FLOW_TXN_ENDING && x->state != FLOW_TXN_FENCED)
        abort_now(x);
    switch (x->state) {
    case FLOW_TXN_CLOSED:
        step_closed(x);
        break;
    case FLOW_TXN_OPEN:
        step_open(x);
        break;
    case FLOW_TXN_FLUSHING:
        step_flushing(x);
        if (x->state == FLOW_TXN_STORING)
            step_storing(x);
        break;
    case FLOW_TXN_STORING:
        step_storing(x);
        break;
    case FLOW_TXN_ENDING:
    case FLOW_TXN_ABORTING:
    case FLOW_TXN_FENCED:
        break;
    }
}

static void on_timer(struct timer *t)
{
    struct flow_txn *x = container_of(t, struct flow_txn, timer);

    if (x->state == FLOW_TXN_OPEN && list_is_empty(&x->joined) && !list_is_empty(&x->held))
        timer_set_ms(x->flow->loop, t, x->flow->config->transaction_interval_ms); /* nobody is let in yet */
    else if (x->state == FLOW_TXN_OPEN)
        x->close = true;
    else
        x->late = true;
    task_wake(x->flow->loop, &x->step);
}

void flow_txn_offer(struct flow *f, struct relay *r)
{
    if (!list_is_linked(&r->held_node))
        list_add_tail(&f->txn->held, &r->held_node);
    flow_txn_wake(f);
}

void flow_txn_close(struct flow *f)
{
    f->txn->close = true;
    f->txn->again = f->txn->state != FLOW_TXN_CLOSED && f->txn->state != FLOW_TXN_OPEN; /* it may come too late */
    flow_txn_wake(f);
}

void flow_txn_leave(struct flow *f, struct relay *r)
{
    if (!f->txn)
        return;
    if (list_is_linked(&r->joined_node) && f->txn->state != FLOW_TXN_ENDING)
        flow_txn_fail(f, "PARTITION_RELEASED", "a partition was taken away in the middle of it");
    list_remove(&r->held_node);
    list_remove(&r->joined_node);
}

bool flow_txn_holds(const struct flow *f, const struct relay *r)
{
    return f->txn && list_is_linked(&r->joined_node);
}

void flow_txn_rejoin(struct flow *f, struct relay *r)
{
    r->put = r->pair;
    join(f->txn, r);
}

bool flow_txn_is_done(const struct flow *f)
{
    return f->txn->state == FLOW_TXN_CLOSED && !f->txn->failed && list_is_empty(&f->txn->held) &&
           list_is_empty(&f->dirty);
}

bool flow_txn_is_fenced(const struct flow *f)
{
    return f->txn && f->txn->state == FLOW_TXN_FENCED;
}

const struct fault *flow_txn_fault(const struct flow *f)
{
    return &f->txn->fault;
}

void flow_txn_start(struct flow *f, const struct txn_who *who)
{
    struct txn_ops ops = { .on_entered = on_entered, .on_ended = on_ended, .on_broken = on_broken,
                           .on_waiting = on_waiting };
    struct flow_txn *x = mem_new(sizeof(*x));

    f->txn = x;
    x->flow = f;
    ops.arg = x;
    x->txn = txn_new(f->target, who, &ops);
    task_init(&x->step, on_step);
    timer_init(&x->timer, on_timer);
    list_init(&x->held);
    list_init(&x->joined);
    producer_set_transaction(f->producer, txn_who(x->txn)->id, who->implicit);
    topic_writer_set_txn(f->state, x->txn);
    topic_writer_set_txn(f->positions, x->txn);
}

void flow_txn_stop(struct flow *f)
{
    struct flow_txn *x = f->txn;

    if (!x)
        return;
    task_cancel(&x->step);
    timer_cancel(f->loop, &x->timer);
    txn_free(&x->txn);
    mem_free(x);
    f->txn = NULL;
}
