/* produce_part.c -- one partition's batches: when the next may go, and what an answer means for all.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The broker takes a batch only in its turn (sequence numbers), so one failure fails all that are in flight
 * behind it. They come back as "out of order" and mean nothing: the first failure decides, the others are
 * awaited, and all are sent again from there, one at a time until one succeeds. "Out of order" with
 * nothing failed in front is a different matter: the broker's idea of the partition is not ours, and only
 * the owner can find out.
 */
#include "kafka/produce_link.h"

#include "base/must.h"
#include "loop/backoff.h"

#include <stdio.h>

#define HEADER_PRODUCER_ID    43
#define HEADER_PRODUCER_EPOCH 51

static struct outgoing *head(const struct list_node *list)
{
    struct list_node *n = list_first(list);

    return n ? container_of(n, struct outgoing, node) : NULL;
}

static int64_t producer_id_of(const struct outgoing *o)
{
    return (int64_t)load_u64(o->header + HEADER_PRODUCER_ID);
}

static int16_t producer_epoch_of(const struct outgoing *o)
{
    return (int16_t)load_u16(o->header + HEADER_PRODUCER_EPOCH);
}

/* The broker may have forgotten the producer id since records of that time. */
static bool is_forgotten(const struct producer *p, int64_t timestamp_ms)
{
    return p->id_memory_ms > 0 && loop_wall_ms(p->loop) - timestamp_ms > p->id_memory_ms;
}

/* How many may be in flight with this one. The broker keeps order for a producer id that it knows on the
 * partition, and for no other. */
static uint32_t window(const struct produce_part *part, const struct outgoing *next)
{
    int64_t id = producer_id_of(next);

    if (next->careful || id < 0 || id != part->producer_id ||
        producer_epoch_of(next) != part->producer_epoch)
        return 1;
    return part->window;
}

static int32_t leader_of(const struct produce_part *part)
{
    const struct topic_meta *t = part->topic;

    return t->known && part->partition < t->parts_n ? t->parts[part->partition].leader : -1;
}

/* False: not now. */
static bool follow_leader(struct producer *p, struct produce_part *part)
{
    int32_t leader = leader_of(part);

    if (part->link && part->link->broker == leader)
        return true;
    if (part->in_flight_n)
        return false; /* I-4: the answers come first */
    if (part->link)
        produce_link_remove(part);
    if (leader >= 0) {
        produce_link_add(produce_link_get(p, leader), part);
        return true;
    }
    list_add_tail(&p->homeless, &part->node);
    if (!timer_is_set(&p->homeless_timer))
        timer_set_ms(p->loop, &p->homeless_timer, PRODUCE_HOMELESS_MS);
    return false;
}

/* Behind a new connection there may be a broker that has started anew and knows one batch, not five. */
static void note_connection(struct produce_part *part)
{
    if (part->connection == part->link->connection)
        return;
    part->connection = part->link->connection;
    part->window = 1;
}

void produce_part_place(struct producer *p, struct produce_part *part)
{
    struct outgoing *next = head(&part->queue);
    struct produce_link *k;

    list_remove(&part->node);
    if (part->stopped || part->failing || !next || !follow_leader(p, part))
        return;
    k = part->link;
    note_connection(part);
    if (part->in_flight_n >= window(part, next))
        return;
    if (next->done)
        return; /* written already: it is told, and the next one placed, when those in front are */
    if (part->not_before_ms <= loop_now_ms(p->loop)) {
        list_add_tail(&k->ready, &part->node);
    } else {
        list_add_tail(&k->delayed, &part->node);
        k->due_ms = MIN(k->due_ms, part->not_before_ms);
    }
    task_wake(p->loop, &k->step);
}

struct outgoing *produce_part_take(struct produce_part *part)
{
    struct outgoing *o = head(&part->queue);

    must(o && !o->done && !part->failing && !part->stopped);
    note_connection(part);
    list_remove(&o->node);
    list_remove(&part->node);
    list_add_tail(&part->in_flight, &o->node);
    if (producer_id_of(o) != part->producer_id || producer_epoch_of(o) != part->producer_epoch) {
        part->producer_id = producer_id_of(o);
        part->producer_epoch = producer_epoch_of(o);
        part->window = 1;
    }
    if (part->careful || o->careful || is_forgotten(part->link->p, part->timestamp_ms))
        /* the broker may not know the id (any more): the first is alone */
        part->window = 1;
    part->careful = o->careful;
    part->timestamp_ms = o->timestamp_ms;
    part->in_flight_n++;
    o->tries++;
    return o;
}

/* Tells one acknowledgement. */
static void tell_acked(struct producer *p, struct produce_part *part, struct outgoing *o)
{
    list_remove(&o->node);
    part->queued_bytes -= outgoing_size(o);
    part->window = (uint32_t)MIN(p->config->max_in_flight, PRODUCE_REQUESTS_MAX);
    part->failures = 0;
    part->failing_since_ms = 0;
    p->counts.batches++;
    p->counts.records += (uint64_t)o->count;
    p->counts.bytes += outgoing_size(o);
    part->on_acked(part, o, &o->result);
    o->part = NULL;
    outgoing_free(&o);
}

/* Tells all that stand at the front. One that was acknowledged early has gone back to the queue with those
 * in front of it, and is not sent again. */
static void tell_all_acked(struct producer *p, struct produce_part *part)
{
    for (;;) {
        struct outgoing *o = head(&part->in_flight);

        if (!o && !part->stopped)
            o = head(&part->queue);
        if (!o || !o->done)
            return;
        tell_acked(p, part, o);
    }
}

void produce_part_tell_waiting(struct produce_part *part, const struct produce_failure *f)
{
    char text[CALL_TEXT_MAX];
    struct outgoing *o = head(&part->queue);

    if (!o || !part->on_waiting)
        return;
    snprintf(text, sizeof(text), "%.*s", STR_ARG(f->text));
    part->on_waiting(part, o, f->kerr, f->error, text);
}

void produce_part_refuse(struct producer *p, struct produce_part *part)
{
    struct outgoing *o = head(&part->queue);

    must(o && !part->in_flight_n);
    p->counts.refusals++;
    part->stopped = true;
    part->refused = false;
    list_remove(&part->node);
    part->on_refused(part, o, part->failed_kerr, str_c(part->failed_text));
}

/* All are answered: back to the queue, in order, and again or to the owner. */
static void drained(struct producer *p, struct produce_part *part)
{
    struct produce_failure f;
    struct backoff b;
    struct list_node *n;

    while (!list_is_empty(&part->in_flight)) {
        n = part->in_flight.prev;
        list_remove(n);
        list_add_head(&part->queue, n);
    }
    part->failing = false;
    part->window = 1;
    if (part->refused) {
        produce_part_refuse(p, part);
        return;
    }
    backoff_init(&b, p->config->retry_backoff_ms, p->config->retry_backoff_max_ms);
    b.failures = part->failures++;
    part->not_before_ms = loop_now_ms(p->loop) + backoff_next_ms(&b, loop_rand(p->loop));
    p->counts.retries++;
    produce_part_place(p, part);
    f = (struct produce_failure){ .kerr = part->failed_kerr,
                                  .error = part->failed_err,
                                  .text = str_c(part->failed_text) };
    produce_part_tell_waiting(part, &f);
}

static void answered(struct producer *p, struct produce_part *part, struct outgoing *o)
{
    if (o->request) {
        o->request->batches[o->slot] = NULL;
        o->request = NULL;
    }
    must(part->in_flight_n > 0);
    part->in_flight_n--;
    tell_all_acked(p, part);
    if (part->failing && !part->in_flight_n)
        drained(p, part);
    else
        produce_part_place(p, part);
}

void produce_part_acked(struct producer *p, struct outgoing *o, const struct produced *result)
{
    o->done = true;
    o->result = *result;
    answered(p, o->part, o);
}

/* Whether the owner must decide about the first failure. */
static bool is_for_owner(const struct producer *p, const struct outgoing *o, enum kerr_class class,
                         int32_t kerr)
{
    const struct produce_part *part = o->part;
    int64_t failing_ms = loop_now_ms(p->loop) - part->failing_since_ms;

    switch (class) {
    case K_AGAIN:
        return kerr == KERR_UNKNOWN_SERVER_ERROR &&
               (o->careful || part->failures >= PRODUCE_SERVER_ERRORS_TOLD);
    case K_REFRESH: /* a leader that went after the append says so too */
    case K_UNSURE:
        return o->careful || o->asks;
    case K_GONE:
        return failing_ms >= PRODUCE_GONE_MS;
    default:
        return true;
    }
}

void produce_part_failed(struct producer *p, struct outgoing *o, const struct produce_failure *f)
{
    struct produce_part *part = o->part;
    int32_t kerr = f->kerr ? f->kerr : KERR_NETWORK_EXCEPTION;
    enum kerr_class class = kerr_class(API_PRODUCE, kerr);

    if (class == K_UNSURE)
        o->unsure = true;
    if (!part->failing) {
        part->failing = true;
        if (!part->failing_since_ms)
            part->failing_since_ms = loop_now_ms(p->loop);
        part->refused = is_for_owner(p, o, class, kerr);
        part->failed_kerr = f->kerr || part->refused ? kerr : 0;
        part->failed_err = f->error;
        snprintf(part->failed_text, sizeof(part->failed_text), "%.*s", STR_ARG(f->text));
    }
    answered(p, part, o);
}
