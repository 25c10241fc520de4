/* relay_ask.c -- finds out where a partition stands at both ends before anything is copied.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The target is asked in four questions to one leader (kafka-relay-rules 5.5): its end, what it remembers of
 * our producer id, its end beyond the high watermark, and its end once more. Followers answer the middle two
 * with old state and no error; the outer two prove that a leader of one epoch gave them. From the pair (S, T, N)
 * and these answers follows how many records from S on are in the target already: they are skipped, nothing is
 * guessed. The source is asked only for a first start or after its log moved away from under us.
 */
#include "base/log.h"
#include "mirror/flow_store.h"
#include "mirror/flow_txn.h"

#include <inttypes.h>
#include <stdio.h>

#define UNSETTLED_MS    100
#define UNSETTLED_QUIET 5 /* looks before it is a fault, or others are held to have written */
#define ROUNDS_MAX 4 /* somebody else may write all the time */

static void ask_next(struct relay *r, enum relay_question q);

/* Under which the records beyond the pair were written, or would be. */
static int64_t asked_id(const struct relay *r)
{
    return r->has_pair && r->pair.producer_id >= 0 ? r->pair.producer_id : r->flow->producer_id;
}

/* The text of an answer that is no use; false when it is good. */
static bool is_refused(struct relay *r)
{
    const struct ask *a = &r->ask;
    enum kerr_class class;

    if (a->error) {
        relay_fail(r, err_name(a->error), "%s", a->text[0] ? a->text : err_text(a->error));
        return true;
    }
    if (!a->kerr)
        return false;
    class = kerr_class(a->kind == ASK_OFFSET ? API_LIST_OFFSETS : API_DESCRIBE_PRODUCERS, a->kerr);
    cluster_refresh(r->flow->source);
    cluster_refresh(r->flow->target);
    if (class == K_DENIED)
        relay_halt(r, kerr_name(a->kerr),
                   "topic %.*s: %s; grant Describe and Read at the source, Describe and Write at the "
                   "target, to the principal of this connection",
                   STR_ARG(a->topic->name), kerr_text(a->kerr));
    else
        relay_fail(r, kerr_name(a->kerr), "topic %.*s: %s%s", STR_ARG(a->topic->name), kerr_text(a->kerr),
                   kerr_advice(a->kerr));
    return true;
}

/* Our producer id at the target is no more than a help: without it the log end must do. */
static void take_producer(struct relay *r)
{
    const struct ask *a = &r->ask;

    r->producer_found = !a->error && !a->kerr && a->found && a->last_sequence >= 0;
    r->last_sequence = a->last_sequence;
    r->last_epoch_seen = a->producer_epoch;
}

static bool producer_is_usable(const struct ask *a)
{
    if (a->error)
        return a->error == E_VERSION;
    return !a->kerr || kerr_class(API_DESCRIBE_PRODUCERS, a->kerr) == K_DENIED;
}

/* A refused sequence that asking does not explain, or a source that moved: a new epoch, counted from 0, after the pair
 * that says so. What is late and of the old one is not counted, and refused once there is anything of the new one. */
static void new_epoch(struct relay *r)
{
    char name[400];
    bool moved = r->chain_ends && r->order_refusals < 3;

    r->chain_ends = false;
    if (r->pair.epoch == INT16_MAX)
        return;
    r->pair.epoch++;
    r->pair.sequence = 0;
    r->pair.target = r->target_log_end;
    r->skip = 0;
    r->registered = false;
    r->order_refusals = 0;
    relay_name(r, name, sizeof(name));
    log_event(EV_SEQUENCE, kv_c("relay", name),
              kv_c("text", moved ? "the source has moved; the chain begins anew with the next epoch"
                                 : "the sequence stays refused; the chain begins anew with the next epoch"));
}

/* Nothing is written before a pair that it can be counted from is stored (I-4). */
static void store_pair(struct relay *r)
{
    relay_goto(r, RELAY_REGISTERING);
    if (r->flow->txn) {
        r->stored = false;
        relay_mark_dirty(r);
        flow_txn_close(r->flow);
        return;
    }
    flow_store_put_pair(r->flow, r, &r->pair);
    relay_wake(r);
}

/* Somebody else (MirrorMaker, after us) has copied up to r->jump: go on there. */
void relay_jump(struct relay *r)
{
    char name[400];

    relay_name(r, name, sizeof(name));
    log_event(EV_SEQUENCE, kv_c("relay", name),
              kv_c("text", "the stored position is beyond ours: another mirror has copied since"));
    relay_map_unseen(r, r->jump, r->target_log_end);
    relay_move_source(r, r->jump);
    r->pair.target = r->target_log_end;
    if (!r->flow->txn) /* which may be aborted */
        r->jump = -1;
}

/* Somebody else goes on in our chain (a process that does not know yet that this one has taken over): its refusals
 * are explained, and a new epoch would be wrong as long as it lives. */
static void see_rival(struct relay *r)
{
    if (r->producer_found && r->order_refusals && r->last_sequence != r->asked_sequence)
        r->order_refusals = 1;
    r->asked_sequence = r->last_sequence;
}

/* The source begins at gap_to only. Of the records that the target has beyond the pair, those of the gap are taken for
 * one per offset: exact where nothing was missing there, else some come twice rather than never, and it is said. */
static void bridge_gap(struct relay *r)
{
    int64_t gone = r->gap_to - r->pair.source, covered = MIN(r->skip, gone);
    char name[400];

    flow_note_loss(r->flow, r, r->pair.source + covered, r->gap_to - 1, -1,
                   r->flow->config->source.reset == CLIENT_RESET_LATEST
                       ? "the source's log began behind the position, and auto.offset.reset is latest"
                       : "the source deleted them before they were copied (retention or DeleteRecords)");
    relay_name(r, name, sizeof(name));
    if (covered > 0)
        log_event(EV_DUPLICATES, kv_c("relay", name), kv_int("from_offset", r->gap_to),
                  kv_int("to_offset", r->gap_to + r->skip),
                  kv_c("cause", "retention took records that had been copied but not stored as such"));
    r->pair.sequence = (r->pair.sequence + covered) % SEQUENCE_MOD;
    r->skip -= covered;
    if (covered > 0)
        relay_map_unseen(r, r->gap_to, r->target_log_end - r->skip);
    r->pair.target = r->target_log_end - r->skip;
    relay_move_source(r, r->gap_to);
    r->gap_to = -1;
    r->chain_ends = true;
}

void relay_await_replicas(struct relay *r)
{
    if (++r->unsettled <= UNSETTLED_QUIET)
        relay_rest(r, UNSETTLED_MS);
    else
        relay_fail(r, kerr_name(KERR_NOT_ENOUGH_REPLICAS),
                   "%" PRId64 " records at the end of %.*s-%d are not on all replicas in sync yet; waiting for its "
                   "followers%s", r->target_log_end - r->target_end, STR_ARG(r->target_topic), r->partition,
                   kerr_advice(KERR_NOT_ENOUGH_REPLICAS));
}

/* What is to be skipped may lie above the high watermark: a clean election can still take it away, and the pair must
 * not move over it (I-2). Nothing could be written meanwhile either, for the same replicas are missing. And where
 * sequence and log end do not agree, a batch of ours that was late may have come between the two questions: it is looked
 * again before others are held to have written. */
static bool is_unsettled(struct relay *r)
{
    bool above = r->skip > 0 && r->target_end < r->target_log_end;
    bool late = r->skip_unseen && !r->tail_known; /* where batches were looked at, all up to the end were */

    if (!above && !(late && r->unsettled < UNSETTLED_QUIET)) {
        r->unsettled = 0;
        return false;
    }
    relay_await_replicas(r);
    return true;
}

static void conclude(struct relay *r)
{
    struct flow *f = r->flow;

    if (r->producer_found && r->has_pair && r->pair.producer_id >= 0 && r->pair.producer_id == f->producer_id &&
        r->last_epoch_seen > r->pair.epoch) {
        relay_halt(r, kerr_name(KERR_INVALID_PRODUCER_EPOCH),
                   "another process writes to %.*s-%d with epoch %d of our producer id, ours is %d; "
                   "stop one of the two",
                   STR_ARG(r->target_topic), r->partition, r->last_epoch_seen, r->pair.epoch);
        return;
    }
    relay_count_skip(r);
    if (is_unsettled(r))
        return;
    see_rival(r);
    if (r->anew) {
        r->pair.source = 0;
        r->pair.leader_epoch = -1;
        r->pair.sequence = (r->pair.sequence + r->skip) % SEQUENCE_MOD;
        r->pair.target = r->target_log_end;
        r->skip = 0;
        r->skip_unseen = r->anew = false;
        r->chain_ends = true;
    }
    if (r->gap_to > r->pair.source)
        bridge_gap(r);
    r->gap_to = -1;
    relay_apply_mode(r);
    if ((r->order_refusals >= 3 || r->chain_ends) && r->pair.producer_id >= 0 && !r->changing) {
        r->changing = r->skip > 0; /* the pair moves over what is there first */
        if (!r->changing)
            new_epoch(r);
    }
    if (r->skip == 0 && r->jump > r->pair.source)
        relay_jump(r);
    relay_map_follow(r);
    r->walked = r->pair.source;
    r->next_sequence = (r->pair.sequence + r->skip) % SEQUENCE_MOD;
    if (r->registered)
        relay_begin(r);
    else
        store_pair(r);
}

/* The log moved away from under us: its bounds are known now. */
static void leave_gap(struct relay *r, int64_t earliest, int64_t latest)
{
    const struct client_config *c = &r->flow->config->source;
    int64_t lost = r->out_of_range;
    int64_t to = c->reset == CLIENT_RESET_LATEST ? latest : earliest;

    r->out_of_range = -1;
    if (lost > latest && r->pair.source <= latest) {
        ; /* cut behind the pair: what was read beyond it is read again */
    } else if (lost > latest) { /* the source was cut: what it lost is in the target already */
        char name[400], text[160];

        snprintf(text, sizeof(text), "the source log ends at %" PRId64 ", before position %" PRId64
                 "; going on at its end", latest, lost);
        relay_name(r, name, sizeof(name));
        log_event(EV_SEQUENCE, kv_c("relay", name), kv_c("text", text));
        relay_map_note_cut(r, latest, lost);
        relay_move_source(r, latest);
        r->chain_ends = true;
    } else if (c->reset == CLIENT_RESET_NONE) {
        relay_halt(r, kerr_name(KERR_OFFSET_OUT_OF_RANGE),
                   "offset %" PRId64 " of the source is gone (the log begins at %" PRId64
                   ") and auto.offset.reset is none; set it to earliest to go on with what is left",
                   lost, earliest);
        r->out_of_range = lost;
        return;
    } else if (lost < earliest) {
        r->gap_to = to;
    }
    conclude(r);
}

static void take_source(struct relay *r)
{
    const struct ask *a = &r->ask;

    if (r->out_of_range >= 0 && a->timestamp == ASK_EARLIEST) {
        r->source_earliest = a->offset;
        r->ask.timestamp = ASK_LATEST;
        asker_put(r->flow->ask_source, &r->ask);
        return;
    }
    if (r->out_of_range >= 0) {
        leave_gap(r, r->source_earliest, a->offset);
        return;
    }
    if (a->offset < 0) { /* no record is as young as asked for: begin at the end */
        r->ask.timestamp = ASK_LATEST;
        asker_put(r->flow->ask_source, &r->ask);
        return;
    }
    /* Another mirror that died before its first position was stored. */
    if (r->target_log_end > 0 && a->timestamp == ASK_EARLIEST && relay_compare(r, a->offset))
        return;
    relay_first_pair(r, a->offset);
    conclude(r);
}

static int64_t reset_timestamp(const struct relay *r)
{
    const struct client_config *c = &r->flow->config->source;

    if (r->from_earliest || r->out_of_range >= 0)
        return ASK_EARLIEST;
    switch (c->reset) {
    case CLIENT_RESET_LATEST:
        return ASK_LATEST;
    case CLIENT_RESET_BY_DURATION:
        return loop_wall_ms(r->flow->loop) - c->reset_back_ms;
    default:
        return ASK_EARLIEST;
    }
}

void relay_ask_source(struct relay *r)
{
    if (r->has_pair && r->out_of_range < 0) {
        conclude(r);
        return;
    }
    if (!r->has_pair && r->pair.source >= 0) { /* a position of MirrorMaker's */
        if (relay_compare(r, r->pair.source))
            return;
        relay_first_pair(r, r->pair.source);
        conclude(r);
        return;
    }
    if (!r->has_pair && !r->from_earliest && r->flow->config->source.reset == CLIENT_RESET_NONE) {
        relay_halt(r, "NO_OFFSET",
                   "there is no stored position and auto.offset.reset is none; set it to earliest or latest");
        return;
    }
    ask_next(r, ASKING_SOURCE);
}

/* The end has more than the last sequence told: batches of ours that were on their way arrived between the two questions,
 * or somebody else has written. It is asked again until both stand still, or for ROUNDS_MAX times. */
static bool is_moving(struct relay *r)
{
    bool moves = r->rounds < ROUNDS_MAX && r->producer_found && r->has_pair && r->target_log_end != r->still_end &&
                 r->target_log_end != r->pair.target + (r->last_sequence + INT64_C(1) - r->pair.sequence + SEQUENCE_MOD) %
                                                           SEQUENCE_MOD;

    r->still_end = r->target_log_end;
    r->rounds++;
    return moves;
}

static void on_answer(struct ask *a)
{
    struct relay *r = container_of(a, struct relay, ask);

    if (r->question == ASKING_PRODUCER && producer_is_usable(a)) {
        take_producer(r);
        ask_next(r, ASKING_LOG_END);
        return;
    }
    if (is_refused(r))
        return;
    switch (r->question) {
    case ASKING_END:
        r->target_end = a->offset;
        r->producer_found = false;
        r->asked_id = asked_id(r);
        ask_next(r, r->asked_id >= 0 ? ASKING_PRODUCER : ASKING_LOG_END);
        break;
    case ASKING_PRODUCER:
        break;
    case ASKING_LOG_END:
        r->target_log_end = MAX(a->offset, r->target_end);
        ask_next(r, ASKING_END_AGAIN);
        break;
    case ASKING_END_AGAIN:
        r->target_end = a->offset;
        if (is_moving(r))
            ask_next(r, ASKING_END);
        else if (!relay_tail_start(r))
            relay_ask_source(r);
        break;
    case ASKING_SOURCE:
        take_source(r);
        break;
    }
}

static void ask_next(struct relay *r, enum relay_question q)
{
    struct flow *f = r->flow;
    struct ask *a = &r->ask;

    r->question = q;
    a->done = on_answer;
    a->kind = q == ASKING_PRODUCER ? ASK_PRODUCER : ASK_OFFSET;
    a->topic = q == ASKING_SOURCE ? r->source_meta : r->target_meta;
    a->partition = r->partition;
    a->timestamp = q == ASKING_SOURCE ? reset_timestamp(r) : ASK_LATEST;
    a->replica_id = q == ASKING_LOG_END ? -2 : -1;
    a->producer_id = r->asked_id;
    asker_put(q == ASKING_SOURCE ? f->ask_source : f->ask_target, a);
}

void relay_ask_start(struct relay *r)
{
    r->order_refusals = MIN(r->order_refusals, 3);
    r->still_end = -1;
    r->rounds = 0;
    ask_next(r, ASKING_END);
}
