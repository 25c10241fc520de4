/* relay_limits.c -- what a partition does when the target refuses a batch for its size or its times.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limits are learned from refusals: the first one makes the partition ask the control thread what the topic takes, and
 * wait. From then on larger batches go through the record path, which splits them on record borders. What is known is
 * forgotten after LIMITS_FRESH_MS, so that a limit that was raised is noticed: the next large batch is sent whole. A batch
 * below the limit may be refused too (the broker packs it anew, larger): then half of its size is the limit.
 *
 * A record that alone is too large waits until all before it are acknowledged; then the policy of heliostat.oversize
 * decides. `skip` moves the pair past it and stores that pair before anything else is written, so that records counted
 * after a crash never include it, whatever the limit is by then.
 */
#include "base/log.h"
#include "mirror/relay_records.h"

#include <inttypes.h>
#include <stdio.h>

#define LIMITS_FRESH_MS 60000
#define RAISE_STEP      MiB
#define EDGE_MS         60000 /* how far inside of what is taken a new time lies: clocks differ, and batches wait */

static bool limits_are_fresh(const struct relay *r)
{
    return r->limits_ms && loop_now_ms(r->flow->loop) - r->limits_ms < LIMITS_FRESH_MS;
}

void relay_ask_limits(struct relay *r, int64_t raise_to)
{
    if (!r->flow->ask_limits || (r->limits_asked && !raise_to))
        return;
    r->limits_asked = true;
    r->flow->ask_limits(r->flow->ask_limits_arg, r->target_topic, raise_to);
}

void relay_take_limits(struct relay *r, const struct topic_limits *limits)
{
    r->limits = *limits;
    r->limits_ms = MAX(loop_now_ms(r->flow->loop), 1);
    r->limits_asked = false;
    if (r->size_max)
        r->size_max = MIN(r->size_max, limits->batch_bytes);
    if (r->state != RELAY_WAITING && r->state != RELAY_HALTED)
        return;
    r->not_before_ms = 0;
    relay_wake(r);
}

size_t relay_size_max(struct relay *r)
{
    if (r->size_max && !limits_are_fresh(r))
        r->size_max = 0;
    return r->size_max ? (size_t)r->size_max : SIZE_MAX;
}

/* What the target takes is not known well enough: ask, and go on when it is told. */
static void ask_and_wait(struct relay *r, const struct outgoing *o, int32_t kerr)
{
    r->limits_ms = 0;
    relay_fail(r, kerr_name(kerr), "the target refuses the batch at source offset %" PRId64 " (%s); asking what topic "
               "%.*s takes", o->source_base, kerr_text(kerr), STR_ARG(r->target_topic));
    relay_ask_limits(r, 0);
}

/* For people: what the topic takes. */
static const char *limit_text(const struct relay *r, char *text, size_t room)
{
    if (r->limits.known)
        snprintf(text, room, "%" PRId64, r->limits.batch_bytes);
    else
        snprintf(text, room, "less (how much cannot be read: %s)", kerr_text(r->limits.kerr));
    return text;
}

static void skip_record(struct relay *r, int64_t at, size_t bytes)
{
    char cause[240], limit[160];

    snprintf(cause, sizeof(cause), "a record of %zu bytes, the target topic takes %s (heliostat.oversize = skip)", bytes,
             limit_text(r, limit, sizeof(limit)));
    flow_note_loss(r->flow, r, at, at, 1, cause);
    r->pair.source = at + 1;
    r->registered = false;
    relay_restart(r);
}

static void raise_limit(struct relay *r, int64_t at, size_t bytes)
{
    int64_t to = ((int64_t)bytes + RAISE_STEP - 1) / RAISE_STEP * RAISE_STEP;
    int32_t kerr = r->limits.kerr;
    char limit[160];

    relay_halt(r, kerr_name(KERR_MESSAGE_TOO_LARGE),
               "the record at source offset %" PRId64 " takes %zu bytes, topic %.*s of the target takes %s"
               "; its max.message.bytes is being raised to %" PRId64 "%s%s",
               at, bytes, STR_ARG(r->target_topic), limit_text(r, limit, sizeof(limit)), to, kerr ? ", which was refused: " : "",
               kerr ? kerr_text(kerr) : "");
    r->limits_ms = 0;
    r->size_max = 0;
    if (!kerr)
        relay_ask_limits(r, to);
    r->limits.kerr = 0; /* the next time it is tried again */
}

static void oversize_now(struct relay *r)
{
    int64_t at = r->oversize_at;
    size_t bytes = r->oversize_bytes;
    char limit[160];

    r->oversize_at = -1;
    switch ((enum flow_oversize)r->flow->config->oversize) {
    case FLOW_OVERSIZE_SKIP:
        skip_record(r, at, bytes);
        return;
    case FLOW_OVERSIZE_RAISE:
        raise_limit(r, at, bytes);
        return;
    case FLOW_OVERSIZE_HALT:
        relay_halt(r, kerr_name(KERR_MESSAGE_TOO_LARGE),
                   "the record at source offset %" PRId64 " takes %zu bytes, topic %.*s of the target takes %s"
                   "; raise its max.message.bytes (and segment.bytes) to at least %zu, or set heliostat.oversize",
                   at, bytes, STR_ARG(r->target_topic), limit_text(r, limit, sizeof(limit)), bytes);
        r->limits_ms = 0; /* it may be raised any time */
        r->size_max = 0;
        return;
    }
}

void relay_refused_size(struct relay *r, const struct outgoing *o, int32_t kerr)
{
    int64_t size = BATCH_HEADER_SIZE + (int64_t)o->payload.n;

    if (!limits_are_fresh(r)) {
        ask_and_wait(r, o, kerr);
        return;
    }
    if (o->count == 1) {
        r->oversize_at = o->source_base; /* all before it are acknowledged */
        r->oversize_bytes = (size_t)size;
        oversize_now(r);
        return;
    }
    r->size_max = r->limits.known && size > r->limits.batch_bytes ? MAX(r->limits.batch_bytes, 1) : size / 2;
    relay_restart(r);
}

void relay_oversize(struct relay *r, int64_t at, size_t bytes)
{
    r->oversize_at = at;
    r->oversize_bytes = bytes;
    relay_oversize_check(r);
}

void relay_oversize_check(struct relay *r)
{
    if (r->oversize_at >= 0 && r->state == RELAY_COPYING && relay_pending(r) == 0)
        oversize_now(r);
}

static int64_t add_time(int64_t now, int64_t distance)
{
    return distance > INT64_MAX - now ? INT64_MAX : now + distance;
}

/* What is taken without doubt; unlimited: as far as numbers go. */
static void time_bounds(const struct relay *r, int64_t now, int64_t *least, int64_t *most)
{
    int64_t before = r->limits.before_ms, after = r->limits.after_ms;

    before -= MIN(EDGE_MS, before / 2);
    after -= MIN(EDGE_MS, after / 2);
    *least = r->limits.before_ms == INT64_MAX ? 0 : MAX(now - MIN(before, now), 0);
    *most = add_time(now, r->limits.after_ms == INT64_MAX ? INT64_MAX : after);
}

bool relay_must_retime(const struct relay *r, const struct batch *b)
{
    int64_t least, most;

    if (r->retime_before < 0)
        return false;
    if (b->magic < 2 || b->base_offset < r->retime_before)
        return true;
    time_bounds(r, loop_wall_ms(r->flow->loop), &least, &most);
    return b->max_timestamp > most || (b->base_timestamp >= 0 && b->base_timestamp < least);
}

struct record_times relay_times(const struct relay *r, const struct batch *b)
{
    int64_t now = loop_wall_ms(r->flow->loop);
    bool clamp = r->flow->config->timestamp == FLOW_TIMESTAMP_CLAMP;
    struct record_times t = { .on = relay_must_retime(r, b) };

    if (!t.on)
        return t;
    time_bounds(r, now, &t.least, &t.most);
    t.below = clamp ? t.least : now;
    t.above = clamp ? t.most : now;
    return t;
}

bool relay_refused_time(struct relay *r, const struct outgoing *o)
{
    bool tried = o->source_base < r->retime_before && limits_are_fresh(r);
    char name[400];

    if (r->flow->config->timestamp == FLOW_TIMESTAMP_HALT)
        return false;
    if (tried) {
        r->limits_ms = 0; /* they are not what they were */
        return false;
    }
    if (!limits_are_fresh(r)) {
        ask_and_wait(r, o, KERR_INVALID_TIMESTAMP);
        return true;
    }
    if (r->retime_before < 0) {
        relay_name(r, name, sizeof(name));
        log_event(EV_RETIMED, kv_c("relay", name), kv_int("offset", o->source_base),
                  kv_c("policy", r->flow->config->timestamp == FLOW_TIMESTAMP_CLAMP ? "clamp" : "log-append"));
    }
    r->retime_before = MAX(r->retime_before, o->source_last + 1);
    relay_restart(r);
    return true;
}
