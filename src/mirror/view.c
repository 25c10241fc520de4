/* view.c -- puts the whole picture together from what the directors know.
 * SPDX-License-Identifier: Apache-2.0
 *
 * view_build runs on the control thread; what it makes is immutable and may be read anywhere.
 */
#include "mirror/view.h"

#include "mirror/view_build.h"

#include "base/alloc.h"
#include "mirror/checkpoints.h"
#include "mirror/director_internal.h"

#include <stdlib.h>

#define VIEW_ARENA_MAX (2 * GiB)
#define VIEW_FAULTS_MAX 1000 /* the partitions' own rows have all of them */
#define VIEW_LOSSES_MAX 10000

static void free_view(struct snapshot *s)
{
    struct view *v = container_of(s, struct view, snapshot);

    arena_fini(&v->arena);
    mem_free(v);
}

static void add_fault(struct view *v, const struct fault *f, struct str flow, struct str topic,
                      int32_t partition)
{
    if (fault_is_set(f) && v->faults_n < VIEW_FAULTS_MAX)
        v->faults[v->faults_n++] =
            (struct view_fault){ .fault = *f, .flow = flow, .topic = topic, .partition = partition };
}

static void add_losses(struct view *v, const struct view_flow *f, const struct view_loss *losses, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        struct view_loss *to = losses[i].repeat ? v->repeats : v->losses;
        int32_t *to_n = losses[i].repeat ? &v->repeats_n : &v->losses_n;

        if (*to_n == VIEW_LOSSES_MAX)
            continue;
        to += (*to_n)++;
        *to = losses[i];
        to->flow = f->name;
        to->topic = arena_str(&v->arena, to->topic);
        to->cause = arena_str(&v->arena, to->cause);
    }
}

static void add_report(struct view_flow *to, struct view *v, const struct flow_report *rep)
{
    to->records += rep->counts.records;
    to->bytes += rep->counts.bytes;
    to->relayed_batches += rep->counts.relayed_batches;
    to->decoded_batches += rep->counts.decoded_batches;
    to->coalesced_batches += rep->counts.coalesced_batches;
    to->dropped_batches += rep->counts.dropped_batches;
    to->retries += rep->counts.retries;
    to->repeated_records += rep->counts.repeated_records;
    to->lost_records += rep->counts.lost_records;
    to->foreign_records += rep->counts.foreign_records;
    to->positions_stored_ms = MAX(to->positions_stored_ms, rep->positions_stored_ms);
    add_fault(v, &rep->fault, to->name, STR_NULL, -1);
    to->offset_syncs += rep->offset_syncs;
    add_fault(v, &rep->syncs_fault, to->name, STR_NULL, -1);
    for (int32_t i = 0; i < rep->partitions_n; i++) {
        struct view_partition *p = &to->partitions[to->partitions_n++];

        *p = rep->partitions[i];
        p->topic = arena_str(&v->arena, p->topic);
        p->target_topic = arena_str(&v->arena, p->target_topic);
        if (p->lag_records > 0)
            to->lag_records += p->lag_records;
        if (p->lag_bytes > 0)
            to->lag_bytes += p->lag_bytes;
        add_fault(v, &p->fault, to->name, p->topic, p->partition);
    }
    add_losses(v, to, rep->losses, rep->losses_n);
}

static int by_name(const void *a, const void *b)
{
    const struct view_partition *x = a, *y = b;
    int c = str_cmp(x->topic, y->topic);

    return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

/* A flow whose every partition waits for a leader that does not answer copies nothing. */
static void judge_answers(struct view_flow *f)
{
    for (int64_t i = 0; i < f->partitions_n; i++)
        if (!str_eq(str_c(f->partitions[i].fault.code), STR(VIEW_NO_ANSWER)))
            return;
    if (f->partitions_n == 0)
        return;
    f->ready = false;
    if (!fault_is_set(&f->fault))
        f->fault = f->partitions[0].fault;
}

static void add_flow(struct view *v, const struct director *d)
{
    struct view_flow *f = &v->flows[v->flows_n++];
    struct mirrored *m, *next;
    size_t rows = 0;

    for (int32_t i = 0; i < d->ports_n; i++)
        rows += d->reports[i] ? (size_t)d->reports[i]->partitions_n : 0;
    *f = (struct view_flow){
        .name = arena_str(&v->arena, d->config->name),
        .source = arena_str(&v->arena, d->config->source_alias),
        .target = arena_str(&v->arena, d->config->target_alias),
        .state = director_shown_state(d),
        .delivery = flow_config_delivery(d->config),
        .enabled = d->config->enabled,
        .ready = d->ready || director_is_standby(d),
        .standby = director_is_standby(d),
        .topics = HASH_COUNT(d->topics),
        .last_refresh_ms = d->last_refresh_ms,
        .heartbeats = d->heartbeats,
        .configs_altered = d->configs.altered,
        .configs_differ = d->configs.differ,
        .configs_compared_ms = d->configs.last_ms,
        .acls_created = d->acls.created,
        .acls_deleted = d->acls.deleted,
        .acls_wanted = d->acls.wanted,
        .acls_differ = d->acls.differ,
        .acls_compared_ms = d->acls.last_ms,
        .acls_none = arena_str(&v->arena, director_acls_none(d)),
        .fault = d->fault,
        .partitions = arena_array(&v->arena, rows, sizeof(struct view_partition)),
    };
    if (d->group) {
        f->group = arena_str(&v->arena, group_name(d->group));
        f->holder = arena_str(&v->arena, group_holder(d->group));
    }
    add_fault(v, &d->fault, f->name, STR_NULL, -1);
    add_fault(v, &d->configs.fault, f->name, STR_NULL, -1);
    add_fault(v, &d->acls.fault, f->name, STR_NULL, -1);
    add_fault(v, &d->acls.refusal, f->name, STR_NULL, -1);
    if (d->checkpoints)
        checkpoints_view(d->checkpoints, &f->groups, &v->arena);
    add_fault(v, &f->groups.fault, f->name, STR_NULL, -1);
    HASH_ITER(hh, d->topics, m, next) {
        add_fault(v, &m->fault, f->name, arena_str(&v->arena, m->name), -1);
        add_fault(v, &m->config_fault, f->name, arena_str(&v->arena, m->name), -1);
    }
    add_losses(v, f, d->losses, d->losses_n);
    for (int32_t i = 0; i < d->ports_n; i++)
        if (d->reports[i])
            add_report(f, v, d->reports[i]);
    if (f->partitions_n)
        qsort(f->partitions, (size_t)f->partitions_n, sizeof(*f->partitions), by_name);
    judge_answers(f);
}

static bool has_cluster(const struct view *v, struct str alias)
{
    for (int32_t i = 0; i < v->clusters_n; i++)
        if (str_eq(v->clusters[i].alias, alias))
            return true;
    return false;
}

static void add_cluster(struct view *v, struct cluster *cl)
{
    const struct broker_meta *brokers;
    struct view_cluster *c;
    size_t n;

    if (!cl || has_cluster(v, cluster_name(cl)))
        return;
    n = cluster_brokers(cl, &brokers);
    c = &v->clusters[v->clusters_n++];
    *c = (struct view_cluster){
        .alias = arena_str(&v->arena, cluster_name(cl)),
        .cluster_id = arena_str(&v->arena, cluster_id(cl)),
        .fault = *cluster_fault(cl),
        .brokers = arena_array(&v->arena, n, sizeof(struct view_broker)),
        .brokers_n = (int32_t)n,
    };
    for (size_t i = 0; i < n; i++) {
        c->brokers[i] = (struct view_broker){ .id = brokers[i].id,
                                              .port = brokers[i].port,
                                              .host = arena_str(&v->arena, brokers[i].host) };
        c->brokers[i].state = cluster_broker_state(cl, brokers[i].id, &c->brokers[i].rtt_us);
    }
    add_fault(v, &c->fault, STR_NULL, STR_NULL, -1);
}

/* Data runs on the workers' connections, so they see first that a broker does not answer. */
static void mark_slow(struct view *v, struct str alias, const struct flow_silent *s)
{
    for (int32_t i = 0; i < v->clusters_n; i++)
        for (int32_t k = 0; str_eq(v->clusters[i].alias, alias) && k < v->clusters[i].brokers_n; k++)
            for (size_t n = 0; n < s->n; n++)
                if (v->clusters[i].brokers[k].id == s->at[n].id)
                    v->clusters[i].brokers[k].state = "slow";
}

static void mark_all_slow(struct view *v, const struct director *d)
{
    for (int32_t i = 0; i < d->ports_n; i++) {
        if (!d->reports[i])
            continue;
        mark_slow(v, d->config->source_alias, &d->reports[i]->silent[0]);
        mark_slow(v, d->config->target_alias, &d->reports[i]->silent[1]);
    }
}

/* One pool per worker is seen by every flow of that worker: the first flow that reports speaks for all. */
static void add_memory(struct view *v, const struct director *d)
{
    uint64_t used = 0, peak = 0, max = 0;

    for (int32_t i = 0; i < d->ports_n; i++) {
        if (!d->reports[i])
            continue;
        used += d->reports[i]->pool_used;
        peak += d->reports[i]->pool_peak;
        max += d->reports[i]->pool_max;
    }
    v->memory_used = MAX(v->memory_used, used);
    v->memory_peak = MAX(v->memory_peak, peak);
    v->memory_max = MAX(v->memory_max, max);
}

struct view *view_build(const struct view_process *p, struct director *const *directors, int32_t n)
{
    struct view *v = mem_new(sizeof(*v));

    snapshot_init(&v->snapshot, free_view);
    arena_init(&v->arena, (size_t)VIEW_ARENA_MAX);
    v->version = arena_str(&v->arena, p->version);
    v->commit = arena_str(&v->arena, p->commit);
    v->instance = arena_str(&v->arena, p->instance);
    v->start_time_ms = p->start_time_ms;
    v->made_ms = p->now_ms;
    v->workers = p->workers;
    v->flows = arena_array(&v->arena, (size_t)n, sizeof(*v->flows));
    v->clusters = arena_array(&v->arena, (size_t)n * 2, sizeof(*v->clusters));
    v->faults = arena_array(&v->arena, VIEW_FAULTS_MAX, sizeof(*v->faults));
    v->repeats = arena_array(&v->arena, VIEW_LOSSES_MAX, sizeof(*v->repeats));
    v->losses = arena_array(&v->arena, VIEW_LOSSES_MAX, sizeof(*v->losses));
    for (int32_t i = 0; i < n; i++) {
        add_flow(v, directors[i]);
        add_cluster(v, director_cluster(directors[i], false));
        add_cluster(v, director_cluster(directors[i], true));
        add_memory(v, directors[i]);
    }
    for (int32_t i = 0; i < n; i++)
        mark_all_slow(v, directors[i]);
    return v;
}
