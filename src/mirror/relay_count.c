/* relay_count.c -- how many records beyond a pair are in the target already, and what follows from that.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A pair says by itself how to count: with a producer id by its sequences (or by the headers of its batches, relay_tail.c),
 * in transactions not at all, else by offsets. A pair of another delivery mode or producer id than the flow's is moved over
 * what was counted with nothing sent meanwhile; then it becomes the flow's own, is stored, and only then batches leave.
 * Thread: the worker's.
 */
#include "base/log.h"
#include "mirror/flow_internal.h"

#include <inttypes.h>
#include <stdio.h>

void relay_move_source(struct relay *r, int64_t offset)
{
    r->pair.passed = MAX(r->pair.passed, r->pair.source);
    r->pair.source = offset;
    r->pair.leader_epoch = -1;
    r->registered = false;
}

/* The target holds fewer records than were acknowledged (an unclean election, or a copy of the topic made
 * anew): go back to the first that it lost. n: how many it lost; -1: all from its present end on. Where the map does
 * not know the place exactly, rather twice than never, and it is said. */
static void go_back(struct relay *r, int64_t n)
{
    int64_t was = r->pair.source, records = n >= 0 ? n : r->pair.target - r->target_log_end;
    bool exact = relay_map_go_back(r, n, &records);
    char name[400], text[200];

    snprintf(text, sizeof(text),
             "the target lost %" PRId64 " acknowledged records; copying again from source offset %" PRId64,
             records, r->pair.source);
    relay_name(r, name, sizeof(name));
    log_event(EV_SEQUENCE, kv_c("relay", name), kv_c("text", text));
    if (!exact)
        log_event(EV_DUPLICATES, kv_c("relay", name), kv_int("from_offset", r->pair.source),
                  kv_int("to_offset", was - 1), kv_int("records", was - r->pair.source),
                  kv_c("cause", "the target lost records, and the offset map does not know which"));
    r->pair.passed = MAX(r->pair.passed, was);
    relay_move_source(r, r->pair.source);
    r->pair.target = MAX(r->target_log_end, 0);
    r->pair.sequence = ((r->pair.sequence - records) % SEQUENCE_MOD + SEQUENCE_MOD) % SEQUENCE_MOD;
    if (records > 0)
        r->jump = -1; /* the stored position speaks of what is lost: it must not undo this */
}

/* How records beyond a pair are counted: as the delivery mode that stored it does. */
enum pair_mode { PAIR_SEQUENCED, PAIR_TRANSACTIONAL, PAIR_RESERVED, PAIR_PLAIN };

static enum pair_mode mode_of(const struct pair *p)
{
    return p->producer_id >= 0 ? PAIR_SEQUENCED : p->transactional ? PAIR_TRANSACTIONAL
           : p->reserved > 0 ? PAIR_RESERVED : PAIR_PLAIN;
}

/* Whether the pair is of the flow's own mode, and of its producer id. */
static bool is_own(const struct relay *r)
{
    const struct flow *f = r->flow;

    if (r->pair.producer_id != f->producer_id)
        return false;
    switch (mode_of(&r->pair)) {
    case PAIR_SEQUENCED:
        return true;
    case PAIR_TRANSACTIONAL:
        return f->txn != NULL;
    case PAIR_RESERVED:
        return f->config->delivery == FLOW_AT_MOST_ONCE;
    case PAIR_PLAIN:
        return f->config->delivery == FLOW_AT_LEAST_ONCE;
    }
    return false;
}

static void count_sequences(struct relay *r, int64_t beyond)
{
    int64_t since;

    if (r->producer_found && r->last_epoch_seen == r->pair.epoch) {
        since = (r->last_sequence + INT64_C(1) - r->pair.sequence + SEQUENCE_MOD) % SEQUENCE_MOD;
        if (since < SEQUENCE_MOD / 2)
            r->skip = since;
        else
            go_back(r, SEQUENCE_MOD - since);
    } else if (r->producer_found) {
        return; /* an epoch of before: nothing has been written in ours */
    } else if (beyond >= 0) {
        r->skip = r->tail_known ? r->tail_records : beyond;
    } else {
        go_back(r, -1);
    }
    r->skip_unseen = r->skip > 0 && r->skip != beyond;
}

void relay_count_skip(struct relay *r)
{
    int64_t beyond = r->target_log_end - r->pair.target;

    r->skip = 0;
    r->passing = false;
    if (mode_of(&r->pair) == PAIR_SEQUENCED)
        count_sequences(r, beyond);
    else if (beyond < 0)
        go_back(r, -1);
    else if (mode_of(&r->pair) != PAIR_TRANSACTIONAL) /* there it is markers and what was aborted */
        r->skip = MIN(beyond, r->doubt);
}

void relay_first_pair(struct relay *r, int64_t source)
{
    const struct flow *f = r->flow;

    r->pair = (struct pair){ .source = source, .target = MAX(r->target_log_end, 0),
                             .producer_id = f->producer_id, .leader_epoch = -1,
                             .topic_id = r->source_meta->id,
                             .reserved = f->config->delivery == FLOW_AT_MOST_ONCE ? source : 0,
                             .transactional = f->txn != NULL };
    /* The id was used here before (the state topic was lost, or the mode changed): the chain goes on where the broker
     * has it. */
    if (r->producer_found && f->producer_id >= 0 && r->asked_id == f->producer_id) {
        r->pair.epoch = r->last_epoch_seen;
        r->pair.sequence = (r->last_sequence + INT64_C(1)) % SEQUENCE_MOD;
    }
    if (!r->has_pair)
        r->map_before = r->jump >= 0 ? OFFSET_LOST : OFFSET_SURE;
    r->has_pair = true;
    r->registered = false;
}

/* The pair says all that is in the target: from here on it is of the flow's own mode and producer id. */
static void adopt_pair(struct relay *r)
{
    struct pair was = r->pair;

    relay_first_pair(r, was.source);
    r->pair.leader_epoch = was.leader_epoch;
    r->pair.passed = MAX(was.passed, was.reserved); /* at most once, the position had gone ahead */
}

/* Records that an earlier process has written behind the pair went through another filter than they would now: they
 * cannot be found again by counting. Rather twice than never, and it is said. */
static void forget_count(struct relay *r)
{
    r->filter_changed = false;
    r->registered = false;
    if (r->skip == 0 || mode_of(&r->pair) == PAIR_RESERVED)
        return;
    flow_note_repeat(r->flow, r, r->pair.source, r->skip);
    r->pair.sequence = (r->pair.sequence + r->skip) % SEQUENCE_MOD;
    r->pair.target = r->target_log_end;
    r->skip = 0;
    r->skip_unseen = false;
}

void relay_apply_mode(struct relay *r)
{
    r->changing = false;
    if (r->filter_changed)
        forget_count(r);
    if (!is_own(r)) {
        r->changing = r->skip > 0;
        if (!r->changing)
            adopt_pair(r);
        return;
    }
    switch (mode_of(&r->pair)) {
    case PAIR_SEQUENCED:
    case PAIR_TRANSACTIONAL:
        return;
    case PAIR_RESERVED: /* looked at, and not sent */
        r->passing = r->pair.reserved > r->pair.source;
        r->pass_written = r->skip;
        r->lost_n = 0;
        break;
    case PAIR_PLAIN: /* sent once more: once this is stored it is certain */
        if (r->skip == 0 || r->jump > r->pair.source) /* or another mirror's, since then */
            break;
        flow_note_repeat(r->flow, r, r->pair.source, r->skip);
        r->pair.target = r->target_log_end;
        r->registered = false;
        break;
    }
    r->skip = 0;
    r->skip_unseen = false;
}
