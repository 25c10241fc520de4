/* flow_store.c -- positions in MirrorMaker's topic, pairs in ours.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A position goes out only when the pair that covers it is acknowledged (they lie in two topics, with leaders of their
 * own), so a position that is ahead of the pair means that somebody else wrote it (relay_ask.c, relay_jump). And as
 * long as that is so, none of ours goes out.
 */
#include "mirror/flow_store.h"

#include "base/log.h"
#include "mirror/flow_txn.h"
#include "mirror/formats.h"

void flow_store_put_pair(struct flow *f, struct relay *r, const struct pair *pair)
{
    struct buf key, value;
    struct pair p = *pair;

    if (p.reserved > 0) /* at most once */
        p.reserved = MAX(p.reserved, p.source);
    buf_init(&key, 64 * KiB);
    buf_init(&value, 64 * KiB);
    state_format_pair_key(&key, relay_topic(r), relay_partition(r));
    state_format_pair(&value, &p);
    state_add_copy(&value, r->target_topic, r->filter_id);
    relay_map_store(r, &p, &value);
    r->state_ticket = topic_writer_put(f->state, -1, buf_str(&key), buf_str(&value), -1);
    buf_fini(&key);
    buf_fini(&value);
}

/* At most once, all that may have been sent counts as copied. */
static int64_t position_of(const struct pair *p)
{
    return MAX(p->source, p->reserved);
}

static void put_position(struct flow *f, struct relay *r, int64_t next)
{
    struct position_key k = { .connector = f->connector, .cluster = f->config->source_alias,
                              .topic = relay_topic(r), .partition = relay_partition(r) };
    struct buf key, value;

    buf_init(&key, 64 * KiB);
    buf_init(&value, 64);
    formats_position_key(&k, &key);
    formats_position_value(next - 1, &value);
    r->positions_ticket = topic_writer_put(f->positions, -1, buf_str(&key), buf_str(&value), -1);
    buf_fini(&key);
    buf_fini(&value);
}

/* The positions whose pairs are acknowledged. */
static void put_covered(struct flow *f)
{
    uint64_t acked = topic_writer_acked(f->state);
    struct list_node *n, *next;

    LIST_EACH_SAFE(n, next, &f->covered) {
        struct relay *r = container_of(n, struct relay, covered_node);

        if (acked < r->covered_ticket)
            continue;
        list_remove(n);
        put_position(f, r, r->covered_to);
    }
}

/* The pair of every relay that moved; a relay stays on the list until its position has gone out too. */
static void put_pairs(struct flow *f)
{
    struct list_node *n;

    put_covered(f);
    LIST_EACH(n, &f->dirty) {
        struct relay *r = container_of(n, struct relay, dirty_node);
        struct pair p;

        if (relay_take_position(r, &p))
            flow_store_put_pair(f, r, &p);
    }
}

void flow_store_put(struct flow *f, struct relay *r, const struct pair *p)
{
    flow_store_put_pair(f, r, p);
    if (position_of(p) > 0)
        put_position(f, r, position_of(p));
}

bool flow_store_has(const struct flow *f, const struct relay *r)
{
    return topic_writer_acked(f->state) >= r->state_ticket &&
           topic_writer_acked(f->positions) >= r->positions_ticket;
}

void flow_store_relay(struct flow *f, struct relay *r)
{
    struct pair p;

    if (!list_is_linked(&r->dirty_node) || f->txn)
        return;
    if (relay_take_position(r, &p))
        flow_store_put_pair(f, r, &p);
    list_remove(&r->dirty_node);
    if (!r->registered || position_of(&p) <= 0 || r->jump > position_of(&p))
        return;
    r->covered_to = position_of(&p);
    r->covered_ticket = r->state_ticket;
    if (!list_is_linked(&r->covered_node))
        list_add_tail(&f->covered, &r->covered_node);
    put_covered(f);
}

void flow_store_all(struct flow *f)
{
    struct list_node *n;

    if (f->txn) {
        flow_txn_close(f);
        return;
    }
    while ((n = list_first(&f->dirty)))
        flow_store_relay(f, container_of(n, struct relay, dirty_node));
    offset_syncs_flush(f);
}

static int64_t pair_interval_ms(const struct flow *f)
{
    return f->config->delivery == FLOW_AT_LEAST_ONCE ? STORE_PAIR_LEAST_MS : STORE_PAIR_MS;
}

static void on_pairs_due(struct timer *t)
{
    struct flow *f = container_of(t, struct flow, flush_state);

    if (f->txn)
        flow_txn_close(f); /* positions that moved over nothing to copy */
    else
        put_pairs(f);
    timer_set_ms(f->loop, t, pair_interval_ms(f));
}

static void on_positions_due(struct timer *t)
{
    struct flow *f = container_of(t, struct flow, flush_positions);

    if (f->txn)
        offset_syncs_flush(f);
    else
        flow_store_all(f);
    timer_set_ms(f->loop, t, f->config->offset_flush_interval_ms);
}

static void wake_storing(struct flow *f)
{
    struct list_node *n;

    LIST_EACH(n, &f->storing)
        relay_wake(container_of(n, struct relay, storing_node));
    if (f->txn)
        flow_txn_wake(f);
    flow_drain_wake(f);
}

static void on_positions_idle(void *arg)
{
    struct flow *f = arg;

    wake_storing(f);
    if (!f->txn)
        f->positions_stored_ms = loop_wall_ms(f->loop);
}

static void on_state_idle(void *arg)
{
    put_covered(arg);
    wake_storing(arg);
}

static void on_refused(void *arg, int32_t kerr)
{
    flow_txn_fail(arg, kerr_name(kerr), kerr_text(kerr));
}

static void on_fault(void *arg, const struct fault *fault)
{
    struct flow *f = arg;

    const struct topic_writer *w = topic_writer_fault(f->positions) == fault ? f->positions : f->state;

    if (fault_is_set(fault))
        log_event(EV_POSITIONS_FAULT, kv_str("flow", f->config->name), kv_str("topic", topic_writer_topic(w)),
                  kv_c("code", fault->code), kv_c("text", fault->text));
    else
        log_event(EV_POSITIONS_FAULT_OVER, kv_str("flow", f->config->name),
                  kv_str("topic", topic_writer_topic(w)));
}

static struct topic_writer *writer_new(struct flow *f, struct str topic, const struct topic_writer_ops *ops,
                                       int64_t id)
{
    return id >= 0 ? topic_writer_new_as(f->target, topic, ops, id, 0) : topic_writer_new(f->target, topic, ops);
}

void flow_store_start(struct flow *f, const struct flow_identity *id)
{
    struct topic_writer_ops positions = { .on_idle = on_positions_idle, .on_fault = on_fault,
                                          .on_refused = on_refused, .arg = f };
    struct topic_writer_ops state = { .on_idle = on_state_idle, .on_fault = on_fault,
                                      .on_refused = on_refused, .arg = f };
    struct topic_writer_ops notes = { .on_idle = on_state_idle, .on_fault = on_fault, .arg = f };

    if (str_is_null(id->txn.id)) {
        f->positions = writer_new(f, id->positions_topic, &positions, id->writer_id);
        f->state = f->notes = writer_new(f, id->state_topic, &state, id->writer_id);
    } else { /* what these two write has the transaction's producer id */
        f->positions = topic_writer_new(f->target, id->positions_topic, &positions);
        f->state = topic_writer_new(f->target, id->state_topic, &state);
        f->notes = writer_new(f, id->state_topic, &notes, id->writer_id);
    }
    timer_init(&f->flush_state, on_pairs_due);
    timer_init(&f->flush_positions, on_positions_due);
    timer_set_ms(f->loop, &f->flush_state, pair_interval_ms(f));
    timer_set_ms(f->loop, &f->flush_positions, f->config->offset_flush_interval_ms);
}

void flow_store_stop(struct flow *f)
{
    timer_cancel(f->loop, &f->flush_state);
    timer_cancel(f->loop, &f->flush_positions);
    if (f->draining) {
        timer_cancel(f->loop, &f->drain_limit);
        task_cancel(&f->drain_check);
    }
    if (f->notes != f->state)
        topic_writer_free(&f->notes);
    topic_writer_free(&f->positions);
    topic_writer_free(&f->state);
}

bool flow_store_is_done(const struct flow *f)
{
    return f->txn ? flow_txn_is_done(f) && topic_writer_is_idle(f->notes)
                  : topic_writer_is_idle(f->positions) && topic_writer_is_idle(f->state) && list_is_empty(&f->covered);
}

bool flow_store_is_shut_out(const struct flow *f)
{
    return topic_writer_is_shut_out(f->positions) || topic_writer_is_shut_out(f->notes) || flow_txn_is_fenced(f);
}

const struct fault *flow_store_fault(const struct flow *f)
{
    const struct fault *state = topic_writer_fault(f->state);

    if (f->txn && fault_is_set(flow_txn_fault(f)))
        return flow_txn_fault(f);
    if (!fault_is_set(state))
        state = topic_writer_fault(f->notes);
    return fault_is_set(state) ? state : topic_writer_fault(f->positions);
}
