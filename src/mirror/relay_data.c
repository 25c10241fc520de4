/* relay_data.c -- the data path of one partition: fetch answers in, batches out, acknowledgements back.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs in callbacks of fetcher and producer, which come from the loop and never from inside a call of ours.
 */
#include "base/log.h"
#include "mirror/flow_store.h"
#include "mirror/flow_txn.h"
#include "mirror/relay_records.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TROUBLE_RETRY_MS 200 /* of the source, while batches are on their way */

static struct walk_aborted aborted_get(const void *list, int32_t i)
{
    const struct fetch_aborted *a = list;

    return (struct walk_aborted){ .producer_id = a[i].producer_id, .first_offset = a[i].first_offset };
}

/* The source was cut back to diverging_end: what it lost is in the target already. */
static void diverge(struct relay *r, const struct fetched *f)
{
    char name[400], text[200];

    snprintf(text, sizeof(text),
             "the source log was cut at %" PRId64 " (leader epoch %d), before position %" PRId64
             "; records between were copied and are now lost at the source",
             f->diverging_end, f->diverging_epoch, f->fetch_offset);
    relay_name(r, name, sizeof(name));
    log_event(EV_SEQUENCE, kv_c("relay", name), kv_c("text", text));
    relay_map_note_cut(r, f->diverging_end, f->fetch_offset);
    if (r->skip > 0 && f->diverging_end <= r->pair.source) { /* in the target, and of what is lost: not those that come */
        r->pair.target = r->skip_unseen ? r->target_log_end : r->pair.target + r->skip;
        r->pair.sequence = r->next_sequence;
        r->registered = false;
    }
    if (f->diverging_end < r->pair.source) {
        r->pair.passed = MAX(r->pair.passed, r->pair.source);
        r->pair.source = f->diverging_end;
        r->pair.leader_epoch = f->diverging_epoch; /* as far as that both agree */
        r->registered = false;
        r->chain_ends = true;
    }
    relay_restart(r);
}

void relay_send(struct relay *r, struct outgoing *o)
{
    const struct flow *f = r->flow;

    if (r->changing) { /* the rest of a batch of which the first records are in the target: it is fetched again */
        outgoing_free(&o);
        return;
    }
    o->asks = f->producer_id >= 0; /* how long the broker remembers an id is its own affair, and may be seconds */
    o->careful = !f->txn && /* an open transaction keeps the id known */
                 (f->producer_id < 0 || f->careful_age_ms < 0 || o->timestamp_ms < 0 ||
                  o->timestamp_ms < loop_wall_ms(f->loop) - f->careful_age_ms);
    r->next_sequence = (r->next_sequence + o->count) % SEQUENCE_MOD;
    relay_hand_over(r, o);
}

struct batch_stamp relay_stamp(const struct relay *r)
{
    if (r->flow->producer_id < 0)
        return (struct batch_stamp){ .producer_id = -1, .producer_epoch = -1, .base_sequence = -1 };
    return (struct batch_stamp){ .producer_id = r->pair.producer_id, .producer_epoch = r->pair.epoch,
                                 .base_sequence = (int32_t)r->next_sequence };
}

/* R1: a new header in front of the payload as it lies in the fetch block. */
static void relay_batch(struct relay *r, const struct walk_step *s, struct block *block)
{
    struct outgoing *o = outgoing_new();
    struct batch_stamp stamp = relay_stamp(r);

    batch_restamp(s->p, s->batch.size, &stamp, o->header);
    o->payload = slice_of(block, s->p + BATCH_HEADER_SIZE, s->batch.size - BATCH_HEADER_SIZE);
    o->source_base = s->batch.base_offset;
    o->source_last = batch_last_offset(&s->batch);
    o->count = s->batch.count;
    o->leader_epoch = s->batch.leader_epoch;
    o->timestamp_ms = s->batch.max_timestamp;
    relay_send(r, o);
}

/* The pair moves over records that are in the target already: all three of its counts, or it would be false. */
void relay_skipped(struct relay *r, int64_t records, int64_t next, int32_t leader_epoch)
{
    r->skip -= records;
    r->counts.skipped_records += (uint64_t)records;
    if (r->skip_unseen && r->skip > 0)
        return; /* the pair can only move over all of them */
    if (r->skip_unseen) {
        records = (r->next_sequence - r->pair.sequence + SEQUENCE_MOD) % SEQUENCE_MOD;
        relay_map_unseen(r, next, r->target_log_end);
        r->pair.target = r->target_log_end - records;
        r->skip_unseen = false;
    }
    r->pair.sequence = (r->pair.sequence + records) % SEQUENCE_MOD;
    r->pair.target += records;
    r->pair.source = next;
    r->pair.leader_epoch = leader_epoch;
    relay_mark_dirty(r);
    if (r->skip == 0)
        flow_store_relay(r->flow, r); /* at once: a process that is killed again and again would skip ever more */
}

/* Records of the batch that are in the target already, after a restart; the rest begins at *start. */
static bool skip_batch(struct relay *r, const struct batch *b)
{
    struct record_run run = { .source = b->base_offset, .count = b->count };

    if (r->skip < b->count)
        return false;
    if (!r->skip_unseen)
        relay_map_skipped(r, &run, 1);
    relay_skipped(r, b->count, batch_last_offset(b) + 1, b->leader_epoch);
    return true;
}

/* Everything up to the end of the batch has been looked at; false: the partition starts anew. */
static bool walked(struct relay *r, const struct batch *b)
{
    r->walked = MAX(r->walked, batch_last_offset(b) + 1);
    r->fetch.last_epoch = b->leader_epoch;
    if (r->changing && r->skip == 0) { /* the pair says all that is in the target: from here on it is ours */
        relay_restart(r);
        return false;
    }
    if (r->passing && r->walked >= r->pair.reserved)
        relay_passed(r);
    if (r->skip == 0 && r->jump > r->walked && relay_pending(r) == 0) {
        r->pair.source = r->walked;
        relay_jump(r);
        relay_restart(r);
        return false;
    }
    return true;
}

/* One batch; false: the partition stopped or starts anew, and the walk ends. */
static bool handle(struct relay *r, const struct walk_step *s, struct block *block)
{
    const struct batch *b = &s->batch;
    bool decode = s->action == WALK_DECODE ||
                  (s->action == WALK_RELAY &&
                   (r->transforms || b->size > relay_size_max(r) || relay_must_retime(r, b)));

    if (s->action == WALK_HALT) {
        relay_halt(r, s->code, "at offset %" PRId64 " of %.*s-%d of the source: %s", b->base_offset,
                   STR_ARG(r->topic), r->partition, s->why);
        return false;
    }
    if (s->action == WALK_RETRY) {
        char name[400];

        relay_name(r, name, sizeof(name));
        log_event(EV_CHECK_CRC, kv_c("relay", name), kv_int("offset", r->walked));
        relay_fail(r, s->code, "at offset %" PRId64 " of %.*s-%d of the source: %s; fetching it again; if it stays, "
                   "look at the disks of its leader", r->walked, STR_ARG(r->topic), r->partition, s->why);
        return false;
    }
    if (s->action == WALK_DROP || transforms_drop_all(r->transforms)) {
        r->counts.dropped_batches++;
    } else if (r->passing && batch_last_offset(b) < r->pair.reserved) {
        relay_pass(r, b);
    } else if (r->passing && b->base_offset < r->pair.reserved) {
        relay_pass(r, b);
        r->walked = r->pair.reserved;
        relay_passed(r);
        if (!relay_decode(r, s))
            return false;
    } else if (r->skip > 0 && !decode && skip_batch(r, b)) {
        ;
    } else if (decode || r->skip > 0) {
        if (!relay_decode(r, s))
            return false;
    } else {
        relay_batch(r, s, block);
    }
    return walked(r, b);
}

/* Those that were gathered: as one batch where that pays, else one by one. */
static bool handle_gathered(struct relay *r, struct block *block)
{
    const struct gather *g = r->flow->gather;
    size_t n = relay_gathered(r);

    if (relay_merge(r, n))
        return relay_goes_on(r) && walked(r, &g->steps[n - 1].batch);
    for (size_t i = 0; i < n; i++)
        if (!handle(r, &g->steps[i], block))
            return false;
    return true;
}

/* Over offsets that hold nothing to copy the pair moves without an acknowledgement. */
static void settle(struct relay *r)
{
    if (relay_pending(r) != 0 || r->passing || r->pair.source >= r->walked || r->skip_unseen)
        return;
    r->pair.source = r->walked;
    r->pair.leader_epoch = r->fetch.last_epoch;
    relay_mark_dirty(r);
}

/* All batches of an answer; false: one of them stopped the partition, and the walk ended there. */
static bool walk_steps(struct relay *r, struct walk *w, struct block *block)
{
    struct walk_step s;

    relay_gather_begin(r);
    while (walk_next(w, &s)) {
        if (!r->passing && relay_gather(r, &s))
            continue;
        if (!handle_gathered(r, block))
            return false;
        if ((r->passing || !relay_gather(r, &s)) && !handle(r, &s, block))
            return false;
    }
    if (!handle_gathered(r, block))
        return false;
    relay_gather_end(r);
    return true;
}

static void walk_all(struct relay *r, const struct fetched *f)
{
    struct client_config const *c = &r->flow->config->source;
    bool goes_on;
    struct walk w = {
        .bytes = str_of(f->records.p, f->records.n),
        .start = r->walked,
        .check_crcs = c->check_crcs,
        .keep_append_time = true,
        .aborted_list = f->aborted,
        .aborted_n = c->isolation_level == CLIENT_READ_COMMITTED ? f->aborted_n : 0,
        .aborted_get = aborted_get,
    };

    goes_on = walk_steps(r, &w, f->records.b);
    relay_handed_over(r); /* also what came before the one that stopped it */
    if (!goes_on)
        return;
    settle(r);
    r->fetch.offset = r->walked;
    r->answer_bytes = f->records.n;
    r->resting = true;
    relay_fetch_on(r);
}

/* Memory that waits here costs more than itself: the bytes are in the processor's cache no more when they leave.
 * Past the usual queue only a partition goes on that has all but its last answer on the wire: it waits for a target
 * that is far, and not for us. */
void relay_fetch_on(struct relay *r)
{
    size_t pending = relay_pending(r);

    if (!r->resting || r->ask_again || pending >= RELAY_QUEUE_MOST)
        return;
    if (pending >= RELAY_QUEUE_USUAL && producer_unsent(&r->produce) + r->held_bytes > r->answer_bytes)
        return;
    r->resting = false;
    fetcher_resume(r->flow->fetcher, &r->fetch, 0);
}

void relay_on_fetched(struct fetch_part *p, const struct fetched *f)
{
    struct relay *r = container_of(p, struct relay, fetch);

    if (r->state != RELAY_COPYING)
        return;
    /* What is on its way is waited for: behind the pair records are counted, and where the source has lost some, others
     * would be taken for them. */
    if ((f->error || f->diverging) && relay_pending(r) != 0) {
        fetcher_resume(r->flow->fetcher, &r->fetch, TROUBLE_RETRY_MS);
        return;
    }
    if (f->error) {
        relay_on_fetch_error(r, f);
        return;
    }
    if (f->diverging) {
        diverge(r, f);
        return;
    }
    r->high_watermark = f->high_watermark >= 0 ? f->high_watermark : r->high_watermark;
    r->last_stable = f->last_stable_offset >= 0 ? f->last_stable_offset : r->last_stable;
    r->log_start = f->log_start_offset >= 0 ? f->log_start_offset : r->log_start;
    if (relay_pending(r) == 0)
        relay_well(r);
    if (f->records.n)
        walk_all(r, f);
}

/* Offsets of the target that are not ours lie between the last acknowledged batch and this one. */
static void note_foreign(struct relay *r, int64_t target)
{
    char name[400];

    if (target <= r->pair.target)
        return;
    if (r->counts.foreign_records == 0) {
        relay_name(r, name, sizeof(name));
        log_event(EV_FOREIGN, kv_c("relay", name), kv_int("from_offset", r->pair.target),
                  kv_int("to_offset", target - 1));
    }
    r->counts.foreign_records += (uint64_t)(target - r->pair.target);
}

void relay_on_acked(struct produce_part *p, struct outgoing *o, const struct produced *a)
{
    struct relay *r = container_of(p, struct relay, produce);
    uint64_t bytes = BATCH_HEADER_SIZE + o->payload.n;
    int64_t target = a->base_offset >= 0 ? a->base_offset : r->pair.target;

    if (!r->flow->txn) /* where markers lie between */
        note_foreign(r, target);
    relay_map_acked(r, o, target);
    r->pair.source = o->source_last + 1;
    r->pair.target = target + o->count;
    r->pair.sequence = (r->pair.sequence + o->count) % SEQUENCE_MOD;
    r->pair.leader_epoch = o->leader_epoch;
    r->acked_timestamp_ms = o->timestamp_ms;
    r->target_log_end = MAX(r->target_log_end, r->pair.target);
    r->counts.records += (uint64_t)o->count;
    r->counts.bytes += bytes;
    switch (o->made) {
    case OUTGOING_RELAYED:
        r->counts.relayed_batches++;
        break;
    case OUTGOING_DECODED:
        r->counts.decoded_batches++;
        break;
    case OUTGOING_COALESCED:
        r->counts.coalesced_batches += (uint64_t)o->merged;
        break;
    }
    r->order_refusals = 0;
    r->counts.retries += o->tries > 1 ? o->tries - 1 : 0;
    relay_well(r);
    if (producer_pending(p) == 0 && r->state == RELAY_COPYING)
        settle(r);
    if (r->flow->txn)
        flow_txn_wake(r->flow);
    relay_mark_dirty(r);
    relay_wake(r);
    relay_oversize_check(r);
    relay_ask_again(r);
}
