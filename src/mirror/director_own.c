/* director_own.c -- which process runs the flow: waits for its turn, and steps back when it is over.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  joining --the group gave us the slots--> loading ... running --lost--> losing --every flow is gone--> joining
 *
 * On a loss nothing is drained and nothing stored: what is on its way carries the sequences that the successor's own
 * batches carry, so it does no harm, and the successor has shut our writers out of the internal topics
 * (director_fence.c), so it cannot. Decision 4 tells why. Thread: control.
 */
#include "mirror/director_internal.h"

#include "base/log.h"

#include <stdio.h>

#define LEAVE_MS 400

static bool is_active(const struct director *d)
{
    return d->state == DIRECTOR_TAKING || d->state == DIRECTOR_LOADING || d->state == DIRECTOR_NAMING ||
           d->state == DIRECTOR_REFRESHING || d->state == DIRECTOR_RUNNING;
}

static void on_group_changed(void *arg)
{
    struct director *d = arg;

    if (is_active(d) && (!group_is_holding(d->group) || group_term(d->group) != d->term))
        director_lose(d, "the group's coordinator says so, or does not answer");
    director_wake(d);
}

/* As early as the target is known: brokers let a new group wait for some seconds. */
void director_group_start(struct director *d)
{
    const struct flow_config *c = d->config;
    struct group_config g = { .client = &c->target_admin,
                              .cluster = c->target_alias,
                              .cluster_id = cluster_id(d->target),
                              .instance = d->instance,
                              .session_ms = c->session_timeout_ms,
                              .heartbeat_ms = c->heartbeat_interval_ms,
                              .lease = &d->lease };

    if (d->group || !c->enabled || !c->membership || d->plan_only)
        return;
    /* MirrorMaker 2's own: the right to it is there already, and the two exclude each other. */
    g.name = arena_fmt(&d->names, "%.*s-mm2", STR_ARG(c->source_alias));
    d->group = group_new(d->loop, &g, on_group_changed, d);
}

static void note_waiting(struct director *d)
{
    if (d->standby || !group_is_waiting(d->group))
        return;
    d->standby = true;
    log_event(EV_FLOW_STANDBY, kv_str("flow", d->config->name), kv_str("group", group_name(d->group)),
              kv_str("holder", group_holder(d->group)));
}

void director_join(struct director *d)
{
    const struct fault *f;

    if (!d->group) {
        director_goto(d, flow_config_is_transactional(d->config) ? DIRECTOR_TAKING : DIRECTOR_LOADING);
        director_wake(d);
        return;
    }
    f = group_fault(d->group);
    if (group_is_holding(d->group)) {
        d->term = group_term(d->group);
        d->standby = false;
        director_well(d);
        director_goto(d, flow_config_is_transactional(d->config) ? DIRECTOR_TAKING : DIRECTOR_LOADING);
        director_wake(d);
    } else if (fault_is_set(f)) {
        fault_set(&d->fault, loop_wall_ms(d->loop), f->code, "%s", f->text);
    } else {
        director_well(d);
        note_waiting(d);
    }
}

bool director_is_standby(const struct director *d)
{
    return d->state == DIRECTOR_JOINING && d->group && group_is_waiting(d->group);
}

/* Everything that was known of the flow: the next turn reads it anew. */
static void forget(struct director *d)
{
    for (int32_t i = 0; i < d->ports_n; i++)
        flow_report_free(&d->reports[i]);
    director_topics_free(d);
    director_stored_free(d);
    director_fence_end(d);
    d->loading = LOAD_STATE;
    d->txns_n = 0;
    d->id_memory_ms = 0;
    d->memory_due = false;
    d->refresh_step = REFRESH_LIST_SOURCE;
    d->stored_n = d->partitions_n = 0;
    d->writers_n = 0;
    d->producer_id = -1;
    d->ready = d->standby = false;
}

void director_lost(struct director *d)
{
    forget(d);
    director_goto(d, DIRECTOR_JOINING);
    director_wake(d);
}

void director_lose(struct director *d, const char *why)
{
    log_event(EV_FLOW_LOST, kv_str("flow", d->config->name), kv_c("why", why));
    timer_cancel(d->loop, &d->retry);
    timer_cancel(d->loop, &d->refresh);
    call_drop(&d->call);
    topic_reader_free(&d->reader);
    topic_writer_free(&d->namer);
    director_heartbeats_stop(d);
    director_configs_stop(d);
    director_acls_stop(d);
    director_checkpoints_stop(d);
    director_fence_end(d);
    backoff_reset(&d->backoff);
    fault_clear(&d->fault);
    director_goto(d, DIRECTOR_LOSING);
    for (int32_t i = 0; i < d->ports_n; i++) {
        if (!flow_port_is_open(d->ports[i]))
            continue;
        d->ports_busy++;
        flow_port_close(d->ports[i]);
    }
    if (d->ports_busy == 0)
        director_lost(d);
}

/* A worker's writer has met its successor's fence, whatever the group says. */
void director_shut_out(struct director *d)
{
    if (!d->group || !is_active(d))
        return;
    director_lose(d, "another process has shut our writers out");
    group_renounce(d->group);
}

bool director_leave(struct director *d, void (*left)(void *arg))
{
    if (!d->group || d->leaving)
        return false;
    d->leaving = true;
    group_leave(d->group, LEAVE_MS, left, d);
    return true;
}
