/* prom.c -- /metrics: the view as Prometheus text, in pieces.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every row of base/metric.def in its order: HELP and TYPE, then a sample for each thing that its labels name. What is
 * not known has no sample. A piece may end after any sample.
 */
#include "serve/handlers.h"

#include "base/metric.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TEXT_MAX 16

/* What a row has one sample of. */
enum scope { PROCESS, FLOW, PARTITION, CLUSTER, BROKER };

static enum scope scope_of(enum metric m)
{
    struct str labels = str_c(metric_get(m)->labels);

    if (str_starts(labels, STR("source target topic partition")))
        return PARTITION;
    if (str_starts(labels, STR("source target")))
        return FLOW;
    if (str_starts(labels, STR("cluster broker")))
        return BROKER;
    return str_starts(labels, STR("cluster")) ? CLUSTER : PROCESS;
}

static double cpu_seconds(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u))
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = 0, resident = 0;

    if (!f)
        return -1;
    if (fscanf(f, "%ld %ld", &pages, &resident) != 2)
        resident = -1;
    fclose(f);
    return resident < 0 ? -1 : resident * sysconf(_SC_PAGESIZE);
}

static int64_t open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int64_t n = -1; /* the one that reads the folder */

    if (!d)
        return -1;
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void put_known(struct buf *out, enum metric m, const struct str *labels, int64_t value)
{
    if (value >= 0)
        metric_put_int(out, m, labels, value);
}

static void put_time(struct buf *out, enum metric m, const struct str *labels, int64_t wall_ms)
{
    if (wall_ms > 0) /* 0: never */
        metric_put_double(out, m, labels, (double)wall_ms / 1e3);
}

static void put_fault(struct buf *out, enum metric m, struct str *labels, int code_at, const struct fault *f)
{
    if (!fault_is_set(f))
        return;
    labels[code_at] = str_c(f->code);
    metric_put_int(out, m, labels, 1);
}

static void put_process(const struct answer *a, enum metric m, struct buf *out)
{
    const struct view *v = a->view;

    switch ((int)m) {
    case METRIC_BUILD:
        metric_put_int(out, m, (const struct str[]){ v->version, v->commit, v->instance }, 1);
        break;
    case METRIC_START:
        metric_put_double(out, m, NULL, (double)v->start_time_ms / 1e3);
        break;
    case METRIC_READY:
        metric_put_int(out, m, NULL, view_is_ready(v, NULL));
        break;
    case METRIC_VIEW_AGE:
        metric_put_double(out, m, NULL, (double)a->view_age_ms / 1e3);
        break;
    case METRIC_CPU:
        metric_put_double(out, m, NULL, cpu_seconds());
        break;
    case METRIC_RSS:
        put_known(out, m, NULL, resident_bytes());
        break;
    case METRIC_FDS:
        put_known(out, m, NULL, open_descriptors());
        break;
    case METRIC_WORKERS:
        metric_put_int(out, m, NULL, v->workers);
        break;
    case METRIC_MEMORY_USED:
        metric_put_int(out, m, NULL, (int64_t)v->memory_used);
        break;
    case METRIC_MEMORY_PEAK:
        metric_put_int(out, m, NULL, (int64_t)v->memory_peak);
        break;
    case METRIC_MEMORY_MAX:
        metric_put_int(out, m, NULL, (int64_t)v->memory_max);
        break;
    case METRIC_FAULTS:
        metric_put_int(out, m, NULL, v->faults_n);
        break;
    case METRIC_LOSSES:
        metric_put_int(out, m, NULL, v->losses_n);
        break;
    default:
        break;
    }
}

/* The plain numbers of a flow; -1: it has no sample. */
static int64_t flow_number(enum metric m, const struct view_flow *f)
{
    switch ((int)m) {
    case METRIC_FLOW_READY:
        return f->ready;
    case METRIC_FLOW_STANDBY:
        return f->standby;
    case METRIC_FLOW_TOPICS:
        return f->topics;
    case METRIC_FLOW_PARTITIONS:
        return f->partitions_n;
    case METRIC_FLOW_LAG_RECORDS:
        return f->lag_records;
    case METRIC_FLOW_LAG_BYTES:
        return f->lag_bytes;
    case METRIC_FLOW_RECORDS:
        return (int64_t)f->records;
    case METRIC_FLOW_BYTES:
        return (int64_t)f->bytes;
    case METRIC_FLOW_RELAYED:
        return (int64_t)f->relayed_batches;
    case METRIC_FLOW_DECODED:
        return (int64_t)f->decoded_batches;
    case METRIC_FLOW_COALESCED:
        return (int64_t)f->coalesced_batches;
    case METRIC_FLOW_DROPPED:
        return (int64_t)f->dropped_batches;
    case METRIC_FLOW_RETRIES:
        return (int64_t)f->retries;
    case METRIC_FLOW_REPEATED:
        return (int64_t)f->repeated_records;
    case METRIC_FLOW_LOST:
        return (int64_t)f->lost_records;
    case METRIC_FLOW_FOREIGN:
        return (int64_t)f->foreign_records;
    case METRIC_FLOW_HEARTBEATS:
        return (int64_t)f->heartbeats;
    case METRIC_FLOW_CONFIGS_ALTERED:
        return (int64_t)f->configs_altered;
    case METRIC_FLOW_CONFIGS_DIFFER:
        return f->configs_differ;
    case METRIC_FLOW_ACLS_CREATED:
        return (int64_t)f->acls_created;
    case METRIC_FLOW_ACLS_DELETED:
        return (int64_t)f->acls_deleted;
    case METRIC_FLOW_ACLS_DIFFER:
        return f->acls_differ;
    case METRIC_FLOW_SYNCS:
        return (int64_t)f->offset_syncs;
    case METRIC_FLOW_GROUPS:
        return f->groups.followed ? f->groups.groups : -1;
    case METRIC_FLOW_GROUPS_REFUSED:
        return f->groups.followed ? f->groups.refused_groups : -1;
    case METRIC_FLOW_CHECKPOINTS:
        return f->groups.followed ? (int64_t)f->groups.checkpoints : -1;
    case METRIC_FLOW_GROUP_COMMITS:
        return f->groups.followed ? (int64_t)f->groups.commits : -1;
    default:
        return -1;
    }
}

static void put_positions(enum metric m, const struct view_flow *f, struct buf *out)
{
    const struct view_groups *g = &f->groups;
    const struct {
        const char *how;
        int64_t n;
    } rows[] = { { "exact", g->exact }, { "behind", g->behind }, { "range", g->ranges }, { "unknown", g->unknown } };

    for (size_t i = 0; g->followed && i < COUNT(rows); i++) {
        struct str labels[3] = { f->source, f->target, str_c(rows[i].how) };

        metric_put_int(out, m, labels, rows[i].n);
    }
}

static void put_flow(enum metric m, const struct view_flow *f, struct buf *out)
{
    struct str labels[3] = { f->source, f->target };

    if (m == METRIC_FLOW_FAULT)
        put_fault(out, m, labels, 2, &f->fault);
    else if (m == METRIC_FLOW_REFRESHED)
        put_time(out, m, labels, f->last_refresh_ms);
    else if (m == METRIC_FLOW_CONFIGS_TIME)
        put_time(out, m, labels, f->configs_compared_ms);
    else if (m == METRIC_FLOW_ACLS_TIME)
        put_time(out, m, labels, f->acls_compared_ms);
    else if (m == METRIC_FLOW_STORED)
        put_time(out, m, labels, f->positions_stored_ms);
    else if (m == METRIC_FLOW_GROUPS_ROUND)
        put_time(out, m, labels, f->groups.last_round_ms);
    else if (m == METRIC_FLOW_GROUP_POSITIONS)
        put_positions(m, f, out);
    else
        put_known(out, m, labels, flow_number(m, f));
}

static int64_t partition_number(enum metric m, const struct view_partition *p)
{
    switch ((int)m) {
    case METRIC_PARTITION_LAG_RECORDS:
        return p->lag_records;
    case METRIC_PARTITION_LAG_BYTES:
        return p->lag_bytes;
    case METRIC_PARTITION_NEXT:
        return p->next_offset;
    case METRIC_PARTITION_SOURCE_START:
        return p->source_start;
    case METRIC_PARTITION_SOURCE_END:
        return p->source_end;
    case METRIC_PARTITION_TARGET_END:
        return p->target_end;
    case METRIC_PARTITION_RECORDS:
        return (int64_t)p->records;
    case METRIC_PARTITION_BYTES:
        return (int64_t)p->bytes;
    case METRIC_PARTITION_RELAYED:
        return (int64_t)p->relayed_batches;
    case METRIC_PARTITION_DECODED:
        return (int64_t)p->decoded_batches;
    case METRIC_PARTITION_COALESCED:
        return (int64_t)p->coalesced_batches;
    case METRIC_PARTITION_DROPPED:
        return (int64_t)p->dropped_batches;
    case METRIC_PARTITION_SKIPPED:
        return (int64_t)p->skipped_records;
    case METRIC_PARTITION_QUEUED:
        return p->queued_bytes;
    default:
        return -1;
    }
}

static void put_partition(enum metric m, const struct view_flow *f, const struct view_partition *p,
                          struct buf *out)
{
    char number[TEXT_MAX];
    struct str labels[5] = { f->source, f->target, p->topic };

    snprintf(number, sizeof(number), "%d", p->partition);
    labels[3] = str_c(number);
    if (m == METRIC_PARTITION_STATE) {
        labels[4] = str_c(p->state);
        metric_put_int(out, m, labels, 1);
    } else if (m == METRIC_PARTITION_FAULT) {
        put_fault(out, m, labels, 4, &p->fault);
    } else if (m == METRIC_PARTITION_LAG_SECONDS) {
        if (p->lag_ms >= 0)
            metric_put_double(out, m, labels, (double)p->lag_ms / 1e3);
    } else {
        put_known(out, m, labels, partition_number(m, p));
    }
}

static void put_cluster(enum metric m, const struct view_cluster *c, struct buf *out)
{
    struct str labels[2] = { c->alias };
    char number[TEXT_MAX];

    if (m == METRIC_CLUSTER_FAULT)
        put_fault(out, m, labels, 1, &c->fault);
    for (int32_t i = 0; i < c->brokers_n && scope_of(m) == BROKER; i++) {
        const struct view_broker *b = &c->brokers[i];

        snprintf(number, sizeof(number), "%d", b->id);
        labels[1] = str_c(number);
        if (m == METRIC_BROKER_UP)
            metric_put_int(out, m, labels, !strcmp(b->state, "up"));
        else if (m == METRIC_BROKER_RTT && b->rtt_us >= 0)
            metric_put_double(out, m, labels, (double)b->rtt_us / 1e6);
    }
}

static bool is_asked(const struct answer *a, int64_t flow)
{
    return a->flow < 0 || a->flow == flow;
}

/* One sample of a partition, or all of a narrower row; then on to what follows. at_item is -1 before a row's head. */
static void step(struct answer *a, struct buf *out)
{
    const struct view *v = a->view;
    enum metric m = (enum metric)a->step;
    enum scope scope = scope_of(m);

    if (a->at_item < 0) {
        metric_begin(out, m);
        a->at_item = a->at_flow = 0;
    }
    if (scope == PARTITION && a->partitions && a->at_flow < v->flows_n) {
        const struct view_flow *f = &v->flows[a->at_flow];

        if (a->at_item < f->partitions_n && is_asked(a, a->at_flow)) {
            put_partition(m, f, &f->partitions[a->at_item++], out);
            return;
        }
        a->at_flow++;
        a->at_item = 0;
        return;
    }
    if (scope == PROCESS)
        put_process(a, m, out);
    for (int32_t i = 0; i < v->flows_n && scope == FLOW; i++)
        if (is_asked(a, i))
            put_flow(m, &v->flows[i], out);
    for (int32_t i = 0; i < v->clusters_n && (scope == CLUSTER || scope == BROKER); i++)
        put_cluster(m, &v->clusters[i], out);
    a->step++;
    a->at_item = -1;
}

static void more(struct answer *a, struct buf *out)
{
    while (a->step < METRIC_COUNT && out->n < ANSWER_PIECE)
        step(a, out);
    if (a->step == METRIC_COUNT)
        a->more = NULL;
}

void prom_answer(struct answer *a, struct buf *out)
{
    a->type = "text/plain; version=0.0.4; charset=utf-8";
    a->step = 0;
    a->at_item = -1;
    a->more = more;
    more(a, out);
}
