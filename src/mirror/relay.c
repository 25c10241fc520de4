/* relay.c -- the life of one partition: its states, its faults, its start and end.
 * SPDX-License-Identifier: Apache-2.0
 *
 *            +------------------ failure, refusal, news from either end ----------------+
 *            v                                                                          |
 *  idle -> waiting -> asking -> registering -> copying ---------------------------------+
 *            ^  |        |           |            |
 *            |  |        +-----------+------------+--> halted --(some seconds)--> waiting
 *            |  +--> idle (drained)               |
 *            |                                    +--> draining -> idle
 *
 *  waiting      until both topics have the partition and a leader, or a back-off has passed
 *  asking       where the target ends and what the broker remembers of our producer id (relay_ask.c)
 *  registering  the first pair is on its way to the state topic: nothing is written before it is there
 *  copying      fetch answers are walked and sent on (relay_data.c)
 *  halted       the cause does not pass by itself; it is tried again now and then, so that it heals
 *               when the cause goes
 *
 *  I-1  Batches leave in source order, each record once.
 *  I-2  The pair moves only with acknowledgements, or over offsets that hold nothing to copy.
 *  I-3  sequence == records written with the producer id since the chain began, modulo 2^31.
 *  I-4  No batch is sent before a pair that it can be counted from is stored.
 *
 * Thread: the worker's.
 */
#include "mirror/relay.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"
#include "mirror/flow_internal.h"
#include "mirror/flow_txn.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HALT_RETRY_MS 10000
#define METADATA_RETRY_MS 500
#define TO(state) (1u << (state))

static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [RELAY_IDLE] = { "idle", TO(RELAY_WAITING) },
    [RELAY_WAITING] = { "waiting", TO(RELAY_ASKING) | TO(RELAY_IDLE) | TO(RELAY_HALTED) },
    [RELAY_ASKING] = { "asking", TO(RELAY_WAITING) | TO(RELAY_HALTED) | TO(RELAY_REGISTERING) |
                                     TO(RELAY_COPYING) | TO(RELAY_IDLE) },
    [RELAY_REGISTERING] = { "registering",
                            TO(RELAY_COPYING) | TO(RELAY_WAITING) | TO(RELAY_IDLE) },
    [RELAY_COPYING] = { "copying",
                        TO(RELAY_WAITING) | TO(RELAY_HALTED) | TO(RELAY_DRAINING) | TO(RELAY_IDLE) },
    [RELAY_HALTED] = { "halted", TO(RELAY_WAITING) | TO(RELAY_IDLE) },
    [RELAY_DRAINING] = { "draining", TO(RELAY_IDLE) | TO(RELAY_WAITING) | TO(RELAY_HALTED) },
};

void relay_name(const struct relay *r, char *text, size_t room)
{
    snprintf(text, room, "%.*s %.*s-%d", STR_ARG(r->flow->config->name), STR_ARG(r->topic),
             r->partition);
}

void relay_goto(struct relay *r, enum relay_state to)
{
    char name[400];

    must(states[r->state].next & TO(to));
    relay_name(r, name, sizeof(name));
    log_event(EV_RELAY_STATE, kv_c("relay", name), kv_c("was", states[r->state].name),
              kv_c("now", states[to].name));
    r->state = to;
    list_remove(&r->waiting_node);
    list_remove(&r->storing_node);
    if (to == RELAY_WAITING || to == RELAY_HALTED)
        list_add_tail(&r->flow->waiting, &r->waiting_node);
    else if (to == RELAY_REGISTERING || (to == RELAY_DRAINING && r->reserving))
        list_add_tail(&r->flow->storing, &r->storing_node);
}

void relay_wake(struct relay *r)
{
    task_wake(r->flow->loop, &r->step);
}

void relay_mark_dirty(struct relay *r)
{
    r->position_changed = true;
    if (!list_is_linked(&r->dirty_node))
        list_add_tail(&r->flow->dirty, &r->dirty_node);
}

static void set_fault(struct relay *r, enum event ev, const char *code, const char *text)
{
    char name[400];

    fault_set(&r->fault, loop_wall_ms(r->flow->loop), code, "%s", text);
    relay_name(r, name, sizeof(name));
    log_event(ev, kv_c("relay", name), kv_c("code", code), kv_c("text", text));
}

void relay_well(struct relay *r)
{
    char name[400];

    backoff_reset(&r->backoff);
    if (!fault_is_set(&r->fault))
        return;
    relay_name(r, name, sizeof(name));
    log_event(EV_RELAY_FAULT_OVER, kv_c("relay", name), kv_c("code", r->fault.code));
    fault_clear(&r->fault);
}

/* Nothing is fetched, queued or asked after this; the pair stays. */
static void stop_data(struct relay *r)
{
    struct list_node taken;

    asker_cancel(&r->ask);
    relay_tail_stop(r);
    relay_compare_stop(r);
    fetcher_remove(r->flow->fetcher, &r->fetch);
    list_init(&taken);
    producer_take_back(r->flow->producer, &r->produce, &taken);
    relay_take_back(r, &taken);
    r->resting = false;
    r->oversize_at = -1;
    r->walked = r->pair.source;
    r->skip = 0;
    r->skip_unseen = false;
}

static void stand_back(struct relay *r, enum relay_state to, int64_t wait_ms)
{
    bool draining = r->state == RELAY_DRAINING || r->flow->draining;

    stop_data(r);
    r->awaits_metadata = false;
    r->not_before_ms = loop_now_ms(r->flow->loop) + wait_ms;
    if (r->state != to)
        relay_goto(r, to);
    if (draining) {
        relay_goto(r, RELAY_IDLE);
        flow_drain_wake(r->flow);
    }
}

void relay_fail(struct relay *r, const char *code, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    set_fault(r, EV_RELAY_FAULT, code, text);
    stand_back(r, RELAY_WAITING, backoff_next_ms(&r->backoff, loop_rand(r->flow->loop)));
}

void relay_halt(struct relay *r, const char *code, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    set_fault(r, EV_RELAY_HALTED, code, text);
    stand_back(r, RELAY_HALTED, HALT_RETRY_MS);
}

void relay_rest(struct relay *r, int64_t wait_ms)
{
    stand_back(r, RELAY_WAITING, wait_ms);
}

void relay_restart(struct relay *r)
{
    stand_back(r, RELAY_WAITING, 0);
    relay_wake(r);
}

/* What keeps the partition from starting, as a fault; true when nothing does. */
static bool is_partition_there(struct relay *r, const struct topic_meta *t, struct cluster *cl)
{
    const char *side = cl == r->flow->source ? "source" : "target";
    const struct fault *cf = cluster_fault(cl);
    int64_t now = loop_wall_ms(r->flow->loop);

    if (!t->known) {
        if (fault_is_set(cf))
            fault_set(&r->fault, now, cf->code, "%s cluster: %s", side, cf->text);
        return false;
    }
    if (t->error || r->partition >= t->parts_n) {
        fault_set(&r->fault, now,
                  t->error ? kerr_name(t->error) : kerr_name(KERR_UNKNOWN_TOPIC_OR_PARTITION),
                  t->error ? "topic %.*s of the %s: %s%s"
                           : "topic %.*s of the %s has no such partition yet (%s)%s",
                  STR_ARG(t->name), side,
                  t->error ? kerr_text(t->error) : "it must be grown to match the source",
                  t->error ? kerr_advice(t->error) : "");
        return false;
    }
    if (t->parts[r->partition].leader < 0) {
        fault_set(&r->fault, now, kerr_name(KERR_LEADER_NOT_AVAILABLE),
                  "partition %d of topic %.*s of the %s has no leader%s", r->partition,
                  STR_ARG(t->name), side, kerr_advice(KERR_LEADER_NOT_AVAILABLE));
        return false;
    }
    return true;
}

void relay_begin(struct relay *r)
{
    char name[400];

    relay_name(r, name, sizeof(name));
    log_event(EV_RELAY_START, kv_c("relay", name), kv_int("offset", r->walked),
              kv_int("target_end", r->target_log_end), kv_int("skip", r->skip));
    r->registered = true;
    if (!r->passing && !r->changing)
        r->doubt = 0;
    if (r->jump <= r->walked)
        relay_mark_dirty(r); /* the stored position follows, also backwards; but not what another mirror has stored */
    relay_goto(r, RELAY_COPYING);
    relay_see_source(r); /* either end may be another one than was asked */
    relay_see_target(r);
    relay_ask_again(r);
    if (r->state != RELAY_COPYING)
        return;
    r->fetch.offset = r->walked;
    r->fetch.last_epoch = r->pair.leader_epoch;
    fetcher_add(r->flow->fetcher, &r->fetch);
}

static void step_waiting(struct relay *r)
{
    struct flow *f = r->flow;
    bool source, target;

    if (loop_now_ms(f->loop) < r->not_before_ms)
        return;
    if (flow_txn_is_fenced(f)) {
        relay_halt(r, kerr_name(KERR_PRODUCER_FENCED), "%s", flow_txn_fault(f)->text);
        return;
    }
    source = is_partition_there(r, r->source_meta, f->source);
    target = source && is_partition_there(r, r->target_meta, f->target);
    if (!source || !target) {
        cluster_refresh(source ? f->target : f->source);
        r->not_before_ms = loop_now_ms(f->loop) + METADATA_RETRY_MS;
        r->awaits_metadata = true;
        return;
    }
    r->awaits_metadata = false;
    if (!relay_see_source_id(r))
        return;
    r->target_id = r->target_meta->id;
    r->target_epoch = r->target_meta->parts[r->partition].leader_epoch;
    r->ask_again = false;
    relay_goto(r, RELAY_ASKING);
    relay_ask_start(r);
}

void relay_see_metadata(struct relay *r)
{
    if (!r->awaits_metadata)
        return;
    r->not_before_ms = 0;
    relay_wake(r);
}

static void relay_step(struct task *t)
{
    struct relay *r = container_of(t, struct relay, step);
    struct flow *f = r->flow;

    switch (r->state) {
    case RELAY_IDLE:
    case RELAY_ASKING:
        break;
    case RELAY_WAITING:
        step_waiting(r);
        break;
    case RELAY_REGISTERING:
        if (f->txn ? r->stored : topic_writer_acked(f->state) >= r->state_ticket)
            relay_begin(r);
        break;
    case RELAY_COPYING:
        relay_see_reserved(r);
        relay_fetch_on(r);
        break;
    case RELAY_HALTED:
        if (loop_now_ms(f->loop) >= r->not_before_ms) {
            relay_goto(r, RELAY_WAITING);
            step_waiting(r);
        }
        break;
    case RELAY_DRAINING:
        relay_see_reserved(r);
        if (relay_pending(r) == 0) {
            relay_goto(r, RELAY_IDLE);
            flow_drain_wake(f);
        }
        break;
    }
}

static void init_parts(struct relay *r)
{
    struct flow *f = r->flow;

    r->source_meta = cluster_watch(f->source, r->topic);
    r->target_meta = cluster_watch(f->target, r->target_topic);
    r->fetch = (struct fetch_part){ .topic = r->source_meta, .partition = r->partition,
                                    .last_epoch = -1, .on_fetched = relay_on_fetched };
    list_init(&r->fetch.node);
    r->produce = (struct produce_part){ .topic = r->target_meta, .partition = r->partition,
                                        .on_acked = relay_on_acked,
                                        .on_refused = relay_on_refused,
                                        .on_waiting = relay_on_waiting };
    producer_attach(f->producer, &r->produce);
}

/* What is done with its records; and whether that is what was done to those that an earlier process has written. */
static void take_transforms(struct relay *r, const struct relay_start *start)
{
    struct arena a;

    if (r->flow->transforms) {
        arena_init(&a, 1 * MiB);
        r->transforms = transforms_plan_new(r->flow->transforms, policy_remote(r->flow->policy, r->topic, &a));
        arena_fini(&a);
    }
    r->filter_id = transforms_filter_id(r->transforms);
    r->filter_changed = start->has_pair && start->filter_id != r->filter_id;
    r->registered = r->registered && !r->filter_changed;
}

struct relay *relay_new(struct flow *f, struct str topic, struct str target_topic,
                        int32_t partition, const struct relay_start *start)
{
    struct relay *r = mem_new(sizeof(*r));

    r->flow = f;
    r->topic = str_of(mem_copy_str(topic.p, topic.n), topic.n);
    r->target_topic = str_of(mem_copy_str(target_topic.p, target_topic.n), target_topic.n);
    r->partition = partition;
    task_init(&r->step, relay_step);
    list_init(&r->dirty_node);
    list_init(&r->waiting_node);
    list_init(&r->storing_node);
    list_init(&r->covered_node);
    list_init(&r->held_node);
    list_init(&r->joined_node);
    list_init(&r->held);
    r->txn_producer_id = -1;
    asker_init_ask(&r->ask);
    backoff_init(&r->backoff, 100, 10000);
    r->pair = start->has_pair ? start->pair
                              : (struct pair){ .source = start->next, .target = -1,
                                               .producer_id = f->producer_id, .leader_epoch = -1 };
    r->has_pair = r->registered = start->has_pair;
    take_transforms(r, start);
    r->map_before = start->has_pair ? OFFSET_LOST : OFFSET_SURE;
    relay_map_take(r, start->map);
    r->losses = start->losses;
    r->jump = start->has_pair && start->next <= MAX(start->pair.passed, start->pair.reserved) ? -1 : start->next;
    if (start->has_pair && start->pair.reserved > 0 && f->config->delivery == FLOW_AT_MOST_ONCE) {
        r->pair.reserved = MAX(r->pair.reserved, start->next); /* the position goes ahead of what is sent, too */
        r->jump = -1;
    }
    r->committed = r->pair;
    r->has_committed = start->has_pair;
    r->doubt = INT64_MAX; /* what an earlier process had on its way */
    r->from_earliest = start->from_earliest;
    r->out_of_range = r->gap_to = r->oversize_at = r->retime_before = -1;
    topic_limits_init(&r->limits);
    r->high_watermark = r->last_stable = r->log_start = r->target_end = r->target_log_end = -1;
    init_parts(r);
    relay_goto(r, RELAY_WAITING);
    relay_wake(r);
    return r;
}

void relay_drain(struct relay *r)
{
    switch (r->state) {
    case RELAY_COPYING:
        fetcher_remove(r->flow->fetcher, &r->fetch);
        relay_goto(r, RELAY_DRAINING);
        break;
    case RELAY_IDLE:
    case RELAY_DRAINING:
        break;
    default:
        stop_data(r);
        relay_goto(r, RELAY_IDLE);
        break;
    }
    relay_wake(r);
}

bool relay_is_idle(const struct relay *r)
{
    return r->state == RELAY_IDLE;
}

void relay_free(struct relay **rp)
{
    struct relay *r = *rp;

    if (!r)
        return;
    flow_txn_leave(r->flow, r);
    stop_data(r);
    producer_detach(r->flow->producer, &r->produce);
    cluster_unwatch(r->flow->source, &r->source_meta);
    cluster_unwatch(r->flow->target, &r->target_meta);
    relay_map_free(r);
    mem_free(r->open_runs);
    transforms_plan_free(&r->transforms);
    task_cancel(&r->step);
    list_remove(&r->dirty_node);
    list_remove(&r->waiting_node);
    list_remove(&r->storing_node);
    list_remove(&r->covered_node);
    mem_free((char *)(uintptr_t)r->topic.p);
    mem_free((char *)(uintptr_t)r->target_topic.p);
    mem_free(r);
    *rp = NULL;
}

bool relay_take_position(struct relay *r, struct pair *out)
{
    bool changed = r->position_changed && r->registered;

    *out = r->pair;
    r->position_changed = r->position_changed && !changed;
    return changed;
}

struct str relay_topic(const struct relay *r)
{
    return r->topic;
}

int32_t relay_partition(const struct relay *r)
{
    return r->partition;
}
