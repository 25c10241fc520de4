/* relay_moved.c -- a topic at either end that is another one than before, under the same name.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the topic's id tells: offsets and leader epochs of the new one begin at 0 as the old one's did. Thread: the
 * worker's.
 */
#include "base/log.h"
#include "mirror/flow_internal.h"

#include <string.h>

/* From its start, after what is there. */
static void begin_anew(struct relay *r)
{
    r->pair.passed = MAX(r->pair.passed, r->pair.source);
    r->anew = true;
    r->pair.source = r->pair.reserved = 0;
    r->pair.leader_epoch = -1;
    r->jump = r->out_of_range = -1;
    r->registered = false;
}

bool relay_see_source_id(struct relay *r)
{
    const struct uuid *now = &r->source_meta->id;
    char name[400];

    if (state_id_is_zero(now))
        return true;
    if (r->has_pair && !state_id_is_zero(&r->pair.topic_id) &&
        memcmp(now, &r->pair.topic_id, sizeof(*now)) != 0) {
        if (r->flow->config->recreated == FLOW_RECREATED_HALT) {
            relay_halt(r, "SOURCE_RECREATED",
                       "source topic %.*s was deleted and made anew: its offsets mean other records than those that were "
                       "copied; set heliostat.source.recreated to restart to copy it from its start after what is there, "
                       "or to ignore to go on at offset %lld", STR_ARG(r->topic), (long long)r->pair.source);
            return false;
        }
        relay_name(r, name, sizeof(name));
        log_event(EV_RELAY_ANEW, kv_c("relay", name), kv_int("was_at", r->pair.source));
        if (r->flow->config->recreated == FLOW_RECREATED_RESTART)
            begin_anew(r);
    }
    r->pair.topic_id = *now;
    return true;
}

void relay_ask_again(struct relay *r)
{
    if (!r->ask_again || r->state != RELAY_COPYING || relay_pending(r) != 0)
        return;
    r->ask_again = false;
    relay_restart(r);
}

/* The source topic was deleted and made anew while it is read: the pair says of which one it is. No fetch may name the
 * new one before: it would go on at the old one's offset. */
void relay_see_source(struct relay *r)
{
    const struct topic_meta *t = r->source_meta;

    if ((r->state == RELAY_COPYING || r->state == RELAY_REGISTERING) && t->known && !t->error &&
        !state_id_is_zero(&t->id) && !state_id_is_zero(&r->pair.topic_id) &&
        memcmp(&t->id, &r->pair.topic_id, sizeof(t->id)) != 0) {
        r->ask_again = true;
        fetcher_remove(r->flow->fetcher, &r->fetch);
        relay_ask_again(r);
    }
}

static bool is_reading_tail(const struct relay *r)
{
    return r->state == RELAY_ASKING && r->tail.state != FETCH_OUT;
}

/* A leader of another epoch may have lost what was acknowledged, and an idle partition would never hear of it; nor is an
 * end reached that was cut off while it was read. */
static void see_leader(struct relay *r, const struct topic_meta *t)
{
    int32_t epoch = r->partition < t->parts_n ? t->parts[r->partition].leader_epoch : -1;

    if ((r->state != RELAY_COPYING && !is_reading_tail(r)) || epoch < 0 || r->target_epoch < 0 || epoch == r->target_epoch)
        return;
    if (is_reading_tail(r)) {
        relay_restart(r);
        return;
    }
    r->target_epoch = epoch;
    r->ask_again = true;
    relay_ask_again(r);
}

void relay_see_target(struct relay *r)
{
    const struct topic_meta *t = r->target_meta;
    bool same = memcmp(&t->id, &r->target_id, sizeof(t->id)) == 0;

    if ((r->state != RELAY_COPYING && r->state != RELAY_REGISTERING && r->state != RELAY_DRAINING && !is_reading_tail(r)) ||
        !t->known || t->error)
        return;
    if (same || state_id_is_zero(&t->id) || state_id_is_zero(&r->target_id)) {
        see_leader(r, t);
        return;
    }
    /* It was deleted and made anew under us: what was acknowledged is gone, so ask and go back. */
    r->jump = -1;
    relay_fail(r, kerr_name(KERR_UNKNOWN_TOPIC_ID),
               "topic %.*s of the target was deleted and made anew; what was lost with it is copied again",
               STR_ARG(t->name));
}
