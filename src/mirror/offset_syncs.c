/* offset_syncs.c -- offset syncs on their way to their topic, at the source or at the target.
 * SPDX-License-Identifier: Apache-2.0
 *
 * MirrorMaker 2 has at most ten syncs on their way and thins the others; we keep a thousand, then the newest per
 * partition. What a restart finds in the target already is not told again: a sync that goes back makes MirrorMaker 2
 * forget the ones before. In transactions a sync is put once its records are committed, for what is aborted is written again
 * elsewhere.
 */
#include "mirror/offset_syncs.h"

#include "base/alloc.h"
#include "base/log.h"
#include "mirror/flow_internal.h"
#include "mirror/flow_store.h"
#include "mirror/formats.h"
#include "mirror/policy.h"

#define SYNCS_KEPT    1000
#define OPEN_RUNS_MAX 4096 /* of a partition in a transaction; what is beyond gets no sync of its own */

static void put(struct relay *r, const struct sync_point *p)
{
    struct sync_record s = { .topic = r->topic, .partition = r->partition, .upstream = p->upstream,
                             .downstream = p->downstream };
    struct buf key, value;

    buf_init(&key, 64 * KiB);
    buf_init(&value, 64);
    formats_encode_sync(&s, &key, &value);
    topic_writer_put(r->flow->syncs, 0, buf_str(&key), buf_str(&value), -1);
    r->flow->syncs_put++;
    buf_fini(&key);
    buf_fini(&value);
}

static void take(struct relay *r, const struct sync_run *run)
{
    struct flow *f = r->flow;
    struct sync_point due[SYNC_POINTS_MAX];
    int32_t n = sync_cadence_take(&r->cadence, f->config->offset_lag_max, loop_now_ms(f->loop), run, due);

    for (int32_t i = 0; i < n; i++)
        put(r, &due[i]);
}

static void hold(struct relay *r, const struct sync_run *run)
{
    struct sync_run *last = r->open_runs_n ? &r->open_runs[r->open_runs_n - 1] : NULL;

    if (last && last->source + last->count == run->source && last->target + last->count == run->target) {
        last->count += run->count;
        return;
    }
    if (r->open_runs_n == OPEN_RUNS_MAX) {
        *last = *run;
        return;
    }
    if (r->open_runs_n == r->open_runs_room) {
        r->open_runs_room = MAX(r->open_runs_room * 2, 4);
        r->open_runs = mem_resize(r->open_runs, (size_t)r->open_runs_room, sizeof(*r->open_runs));
    }
    r->open_runs[r->open_runs_n++] = *run;
}

void offset_syncs_acked(struct relay *r, int64_t source, int64_t target, int64_t count)
{
    struct sync_run run = { source, target, count };

    if (!r->flow->syncs)
        return;
    if (r->flow->txn)
        hold(r, &run);
    else
        take(r, &run);
}

void offset_syncs_ended(struct relay *r, bool committed)
{
    for (int32_t i = 0; committed && i < r->open_runs_n; i++)
        take(r, &r->open_runs[i]);
    r->open_runs_n = 0;
}

void offset_syncs_flush(struct flow *f)
{
    struct sync_point p;

    for (size_t i = 0; f->syncs && i < f->relays_n; i++)
        if (sync_cadence_flush(&f->relays[i]->cadence, &p))
            put(f->relays[i], &p);
}

static void on_idle(void *arg)
{
    flow_drain_wake(arg);
}

static void on_fault(void *arg, const struct fault *fault)
{
    struct flow *f = arg;

    flow_drain_wake(f);
    if (fault_is_set(fault))
        log_event(EV_SYNCS_FAULT, kv_str("flow", f->config->name), kv_c("code", fault->code),
                  kv_c("text", fault->text));
    else
        log_event(EV_SYNCS_FAULT_OVER, kv_str("flow", f->config->name),
                  kv_str("topic", topic_writer_topic(f->syncs)));
}

void offset_syncs_start(struct flow *f)
{
    const struct flow_config *c = f->config;
    bool at_target = c->offset_syncs_location == FLOW_SYNCS_AT_TARGET;
    struct topic_writer_ops ops = { .on_idle = on_idle, .on_fault = on_fault, .arg = f };
    struct policy *policy;

    if (!c->emit_offset_syncs_enabled)
        return;
    policy = policy_new(c);
    f->syncs_cluster = cluster_new(f->loop, &c->syncs_writer, at_target ? c->target_alias : c->source_alias);
    f->syncs = topic_writer_new(f->syncs_cluster,
                                policy_offset_syncs(policy, at_target ? c->source_alias : c->target_alias, &f->names),
                                &ops);
    topic_writer_keep_older(f->syncs, SYNCS_KEPT);
    policy_free(&policy);
}

void offset_syncs_stop(struct flow *f)
{
    topic_writer_free(&f->syncs);
    cluster_free(&f->syncs_cluster);
}

bool offset_syncs_are_done(const struct flow *f)
{
    return !f->syncs || topic_writer_is_idle(f->syncs) || fault_is_set(topic_writer_fault(f->syncs)) ||
           !cluster_is_up(f->syncs_cluster);
}
