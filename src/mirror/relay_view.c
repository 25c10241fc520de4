/* relay_view.c -- how a partition looks from outside: its state, its lag, and what is wrong from where people look.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/flow_internal.h"

/* A leader that owes an answer holds the partition up, though nothing has failed yet. */
static bool is_held_up(const struct relay *r, bool target, struct fault *out)
{
    const struct topic_meta *t = target ? r->target_meta : r->source_meta;
    const struct flow_silent *s = &r->flow->silent[target];
    const struct broker_meta *b;
    int32_t leader = r->partition < t->parts_n ? t->parts[r->partition].leader : -1;

    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].id != leader)
            continue;
        b = cluster_find_broker(target ? r->flow->target : r->flow->source, leader);
        fault_set(out, loop_wall_ms(r->flow->loop) - s->at[i].ms, VIEW_NO_ANSWER,
                  "no answer for %lld s from broker %d (%.*s:%d) of the %s, which leads %.*s-%d; look at that broker: "
                  "its process or machine hangs, or packets are lost",
                  (long long)s->at[i].ms / 1000, leader, STR_ARG(b ? b->host : STR("?")), b ? b->port : 0,
                  target ? "target" : "source", STR_ARG(t->name), r->partition);
        return true;
    }
    return false;
}

/* The partition's own fault, else that of a cluster that is away, else that of a leader that owes an answer. */
static struct fault visible_fault(const struct relay *r)
{
    struct cluster *sides[] = { r->flow->source, r->flow->target };
    struct fault held = { 0 };

    if (fault_is_set(&r->fault) || r->state == RELAY_IDLE || r->state == RELAY_HALTED)
        return r->fault;
    for (size_t i = 0; i < COUNT(sides); i++)
        if (!cluster_is_up(sides[i]) && fault_is_set(cluster_fault(sides[i])))
            return *cluster_fault(sides[i]);
    if (!is_held_up(r, false, &held))
        (void)is_held_up(r, true, &held);
    return held;
}

static const char *visible_state(const struct relay *r, int64_t lag, const struct fault *fault)
{
    switch (r->state) {
    case RELAY_IDLE:
        return "idle";
    case RELAY_HALTED:
        return "halted";
    case RELAY_COPYING:
    case RELAY_DRAINING:
        if (fault_is_set(fault))
            return "retrying";
        return lag > 0 ? "copying" : r->high_watermark >= 0 ? "caught-up" : "starting";
    default:
        return fault_is_set(fault) ? "retrying" : "starting";
    }
}

void relay_view(const struct relay *r, struct view_partition *out)
{
    const struct pair *pair = r->flow->txn ? &r->committed : &r->pair; /* what is sure to stay */
    bool committed = r->flow->config->source.isolation_level == CLIENT_READ_COMMITTED;
    int64_t end = committed && r->last_stable >= 0 ? r->last_stable : r->high_watermark;
    int64_t lag = end >= 0 && pair->source >= 0 ? MAX(end - pair->source, 0) : -1;
    uint64_t per_record = r->counts.records ? r->counts.bytes / r->counts.records : 0;
    struct fault fault = visible_fault(r);

    *out = (struct view_partition){
        .topic = r->topic,
        .target_topic = r->target_topic,
        .partition = r->partition,
        .state = visible_state(r, lag, &fault),
        .next_offset = pair->source,
        .source_start = r->log_start,
        .source_end = end,
        .target_end = pair->target,
        .lag_records = lag,
        .lag_bytes = lag < 0 ? -1 : (int64_t)((uint64_t)lag * per_record),
        .lag_ms = lag > 0 && r->acked_timestamp_ms > 0
                      ? MAX(loop_wall_ms(r->flow->loop) - r->acked_timestamp_ms, 0)
                      : lag < 0 ? -1 : 0,
        .relayed_batches = r->counts.relayed_batches,
        .decoded_batches = r->counts.decoded_batches,
        .coalesced_batches = r->counts.coalesced_batches,
        .coalescing = r->coalescing,
        .retimed_records = r->counts.retimed_records,
        .filtered_records = r->counts.filtered_records,
        .dropped_batches = r->counts.dropped_batches,
        .records = r->counts.records,
        .bytes = r->counts.bytes,
        .skipped_records = r->counts.skipped_records,
        .queued_bytes = (int64_t)relay_pending(r),
        .fault = fault,
    };
}
