/* relay_send.c -- when a batch of a partition may leave, and what its delivery mode has to tell about it.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  exactly once   a batch goes to the producer as it comes
 *  at least once  likewise; after a restart the records that the target has beyond the pair are sent once more, which is
 *                 told, and stored with the pair, before (relay_count.c)
 *  at most once   batches are held until the stored pair says that they may have been sent; after a restart what
 *                 lies below `reserved` is not sent, and what of it the target does not have is told as lost
 *  transactions   batches are held until the flow's transaction takes them (flow_txn.c)
 *
 * Thread: the worker's.
 */
#include "base/log.h"
#include "mirror/flow_internal.h"
#include "mirror/flow_store.h"
#include "mirror/flow_txn.h"

static size_t size_of(const struct outgoing *o)
{
    return BATCH_HEADER_SIZE + o->payload.n;
}

size_t relay_pending(const struct relay *r)
{
    return producer_pending(&r->produce) + r->held_bytes;
}

void relay_hand_over(struct relay *r, struct outgoing *o)
{
    if (!r->flow->txn && r->flow->config->delivery != FLOW_AT_MOST_ONCE) {
        producer_send(r->flow->producer, &r->produce, o);
        return;
    }
    list_add_tail(&r->held, &o->node);
    r->held_bytes += size_of(o);
}

static void let_go(struct relay *r, struct outgoing *o)
{
    list_remove(&o->node);
    r->held_bytes -= size_of(o);
    producer_send(r->flow->producer, &r->produce, o);
}

size_t relay_send_held(struct relay *r, const struct txn_who *who)
{
    struct list_node *n;
    size_t bytes = 0;

    if (r->txn_producer_id != who->producer_id || r->txn_epoch != who->epoch) {
        r->txn_producer_id = who->producer_id;
        r->txn_epoch = who->epoch;
        r->txn_sequence = 0;
    }
    while ((n = list_first(&r->held))) {
        struct outgoing *o = container_of(n, struct outgoing, node);
        struct batch_stamp stamp = { .producer_id = who->producer_id, .producer_epoch = who->epoch,
                                     .base_sequence = (int32_t)r->txn_sequence, .transactional = true };

        batch_restamp((const char *)o->header, size_of(o), &stamp, o->header);
        r->txn_sequence = (r->txn_sequence + o->count) % SEQUENCE_MOD;
        bytes += size_of(o);
        let_go(r, o);
    }
    return bytes;
}

/* What a fetch answer gave is on its way to be held, told and sent. */
void relay_handed_over(struct relay *r)
{
    struct flow *f = r->flow;

    if (list_is_empty(&r->held) || r->reserving)
        return;
    if (f->txn) {
        flow_txn_offer(f, r);
        return;
    }
    r->pair.reserved = MAX(r->pair.reserved, container_of(r->held.prev, struct outgoing, node)->source_last + 1);
    flow_store_put(f, r, &r->pair);
    r->reserving = true;
    if (!list_is_linked(&r->storing_node))
        list_add_tail(&f->storing, &r->storing_node);
}

void relay_see_reserved(struct relay *r)
{
    struct list_node *n;

    if (!r->reserving || !flow_store_has(r->flow, r))
        return;
    r->reserving = false;
    list_remove(&r->storing_node);
    while ((n = list_first(&r->held))) {
        struct outgoing *o = container_of(n, struct outgoing, node);

        if (o->source_last >= r->pair.reserved)
            break;
        let_go(r, o);
    }
    relay_handed_over(r); /* what came meanwhile */
}

void relay_note_refusal(struct relay *r, const struct outgoing *o, enum kerr_class class)
{
    r->refused_surely = !o->unsure && class != K_UNSURE && class != K_REFRESH && class != K_AGAIN && class != K_ORDER;
}

/* The next batch of this epoch takes the sequence of the first that was not written. */
static void take_sequence_back(struct relay *r, const struct list_node *taken)
{
    const struct list_node *n = list_first(taken);

    if (n)
        r->txn_sequence = batch_base_sequence(container_of(n, struct outgoing, node)->header);
}

/* taken: what the producer gave back, oldest first. At most once: from the first that was never on the wire on, or was
 * refused, nothing has been written. In a transaction: what was on the wire may be in it. */
void relay_take_back(struct relay *r, struct list_node *taken)
{
    struct list_node *n;
    int64_t unsent = -1;
    bool wired = false;

    if (r->flow->txn)
        take_sequence_back(r, taken);
    while ((n = list_first(&r->held))) {
        list_remove(n);
        list_add_tail(taken, n);
    }
    r->held_bytes = 0;
    r->reserving = false;
    list_remove(&r->held_node);
    while ((n = list_first(taken))) {
        struct outgoing *o = container_of(n, struct outgoing, node);

        wired = wired || (o->tries > 0 && !r->refused_surely);
        if (o->tries > 0 && !r->refused_surely)
            r->doubt += MIN(o->count, INT64_MAX - r->doubt);
        if ((o->tries == 0 || r->refused_surely) && unsent < 0)
            unsent = o->source_base;
        list_remove(n);
        outgoing_free(&o);
    }
    r->refused_surely = false;
    if (r->flow->config->delivery == FLOW_AT_MOST_ONCE && unsent >= 0)
        r->pair.reserved = MIN(r->pair.reserved, unsent);
    if (r->flow->txn && wired)
        flow_txn_fail(r->flow, "IN_DOUBT", "a partition stopped with batches on their way");
}

/* At most once: a batch below `reserved` may have been sent. */
void relay_pass(struct relay *r, const struct batch *b)
{
    int64_t first = MAX(b->base_offset, r->walked);
    int64_t end = MIN(batch_last_offset(b) + 1, r->pair.reserved);
    int64_t records = b->count == b->last_offset_delta + 1 ? end - first : MIN(b->count, end - first);
    int64_t written = MIN(records, r->pass_written);

    r->pass_written -= written;
    r->counts.skipped_records += (uint64_t)written;
    if (records == written)
        return;
    if (r->lost_n == 0)
        r->lost_from = first + written;
    r->lost_n += records - written;
}

/* Nothing below `reserved` is left. */
void relay_passed(struct relay *r)
{
    r->passing = false;
    r->doubt = 0;
    if (r->lost_n)
        flow_note_loss(r->flow, r, r->lost_from, r->pair.reserved - 1, r->lost_n,
                       "at-most-once delivery: what may have been sent is not sent again");
    r->counts.lost_records += (uint64_t)r->lost_n;
    r->lost_n = 0;
    relay_map_unseen(r, MAX(r->pair.source, r->walked), r->target_log_end);
    r->pair.source = MAX(r->pair.source, r->walked);
    r->pair.target = r->target_log_end;
    relay_mark_dirty(r);
    flow_store_put(r->flow, r, &r->pair);
}

void relay_roll_back(struct relay *r)
{
    r->pair = r->put = r->committed;
    r->has_pair = r->registered = r->has_committed;
    r->changing = false;
    if (r->state == RELAY_COPYING || r->state == RELAY_DRAINING || r->state == RELAY_ASKING ||
        r->state == RELAY_REGISTERING)
        relay_restart(r);
}
