/* status_json.c -- /v1/status: the whole view as JSON, in pieces.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  head -> (flow -> rows... -> flow's end)... -> clusters -> faults... -> losses... -> repeats... -> end
 *
 * The members and their meaning are a contract (scripts read them): more may be added, none changes. A number that
 * is not known is -1. One step writes one of the things above, so an answer about 100,000 partitions needs no
 * more memory than one about ten.
 */
#include "serve/handlers.h"

#include "base/json.h"

#include <stdio.h>

enum step { HEAD, FLOW, ROWS, FLOW_END, CLUSTERS, FAULTS, LOSSES, REPEATS, END };

static bool is_wanted(const struct answer *a, struct str flow)
{
    return a->flow < 0 || str_eq(a->view->flows[a->flow].name, flow);
}

static void put_head(struct answer *a, struct json *j)
{
    const struct view *v = a->view;

    json_open(j, '{');
    json_put_str(j, "version", v->version);
    json_put_str(j, "commit", v->commit);
    json_put_str(j, "instance", v->instance);
    json_put_int(j, "start_time_ms", v->start_time_ms);
    json_put_int(j, "made_ms", v->made_ms);
    json_put_bool(j, "ready", view_is_ready(v, NULL));
    json_put_int(j, "workers", v->workers);
    json_key(j, "memory");
    json_open(j, '{');
    json_put_uint(j, "used_bytes", v->memory_used);
    json_put_uint(j, "peak_bytes", v->memory_peak);
    json_put_uint(j, "max_bytes", v->memory_max);
    json_close(j, '}');
    json_key(j, "flows");
    json_open(j, '[');
    a->at_flow = MAX(a->flow, 0);
    a->step = FLOW;
}

/* Partitions with a fault, and what is wrong with the flow or one of its topics. */
static int64_t count_faults(const struct view *v, const struct view_flow *f)
{
    int64_t n = 0;

    for (int64_t i = 0; i < f->partitions_n; i++)
        n += fault_is_set(&f->partitions[i].fault);
    for (int32_t i = 0; i < v->faults_n; i++)
        n += v->faults[i].partition < 0 && str_eq(v->faults[i].flow, f->name);
    return n;
}

static void put_groups(struct json *j, const struct view_groups *g)
{
    json_key(j, "groups");
    if (!g->followed) {
        json_null(j);
        return;
    }
    json_open(j, '{');
    json_put_int(j, "followed", g->groups);
    json_put_int(j, "active_at_target", g->active);
    json_put_int(j, "positions", g->positions);
    json_put_int(j, "exact", g->exact);
    json_put_int(j, "behind", g->behind);
    json_put_int(j, "ranges", g->ranges);
    json_put_int(j, "unknown", g->unknown);
    json_put_int(j, "synced", g->committed);
    json_put_int(j, "ahead_at_target", g->ahead);
    json_put_uint(j, "checkpoints", g->checkpoints);
    json_put_uint(j, "commits", g->commits);
    json_put_uint(j, "rounds", g->rounds);
    json_put_int(j, "last_round_ms", g->last_round_ms);
    json_put_int(j, "last_sync_ms", g->last_sync_ms);
    json_put_int(j, "round_ms", g->round_ms);
    json_put_int(j, "refused", g->refused_groups);
    json_key(j, "refused_groups");
    json_open(j, '[');
    for (int32_t i = 0; i < g->refused_n; i++) {
        json_open(j, '{');
        json_put_str(j, "group", g->refused[i].group);
        fault_put_members(j, &g->refused[i].fault);
        json_close(j, '}');
    }
    json_close(j, ']');
    fault_put(j, &g->fault);
    json_close(j, '}');
}

static void put_flow(struct answer *a, struct json *j)
{
    const struct view_flow *f;

    if (a->at_flow >= a->view->flows_n || (a->flow >= 0 && a->at_flow > a->flow)) {
        json_close(j, ']');
        a->step = CLUSTERS;
        return;
    }
    f = &a->view->flows[a->at_flow];
    json_open(j, '{');
    json_put_str(j, "name", f->name);
    json_put_str(j, "source", f->source);
    json_put_str(j, "target", f->target);
    json_put_c(j, "state", f->state);
    json_put_c(j, "delivery", f->delivery);
    json_put_bool(j, "ready", f->ready);
    json_put_str(j, "group", f->group);
    json_put_str(j, "holder", f->holder);
    json_put_int(j, "lag_records", f->lag_records);
    json_put_int(j, "lag_bytes", f->lag_bytes);
    json_put_int(j, "faults", count_faults(a->view, f));
    json_put_uint(j, "records", f->records);
    json_put_uint(j, "bytes", f->bytes);
    json_put_uint(j, "relayed_batches", f->relayed_batches);
    json_put_uint(j, "decoded_batches", f->decoded_batches);
    json_put_uint(j, "coalesced_batches", f->coalesced_batches);
    json_put_uint(j, "dropped_batches", f->dropped_batches);
    json_put_uint(j, "retries", f->retries);
    json_put_uint(j, "repeated_records", f->repeated_records);
    json_put_uint(j, "lost_records", f->lost_records);
    json_put_uint(j, "foreign_records", f->foreign_records);
    json_put_uint(j, "heartbeats", f->heartbeats);
    json_put_int(j, "topics", f->topics);
    json_put_int(j, "partitions_count", f->partitions_n);
    json_put_int(j, "last_refresh_ms", f->last_refresh_ms);
    json_put_int(j, "positions_stored_ms", f->positions_stored_ms);
    json_put_uint(j, "configs_altered", f->configs_altered);
    json_put_int(j, "configs_differ", f->configs_differ);
    json_put_int(j, "configs_compared_ms", f->configs_compared_ms);
    json_put_uint(j, "acls_created", f->acls_created);
    json_put_uint(j, "acls_deleted", f->acls_deleted);
    json_put_int(j, "acls_wanted", f->acls_wanted);
    json_put_int(j, "acls_differ", f->acls_differ);
    json_put_int(j, "acls_compared_ms", f->acls_compared_ms);
    json_put_str(j, "acls_none", f->acls_none);
    json_put_uint(j, "offset_syncs", f->offset_syncs);
    put_groups(j, &f->groups);
    fault_put(j, &f->fault);
    json_key(j, "partitions");
    json_open(j, '[');
    a->at_item = 0;
    a->step = a->partitions ? ROWS : FLOW_END;
}

static void put_row(struct answer *a, struct json *j)
{
    const struct view_flow *f = &a->view->flows[a->at_flow];
    const struct view_partition *p;

    if (a->at_item >= f->partitions_n) {
        a->step = FLOW_END;
        return;
    }
    p = &f->partitions[a->at_item++];
    json_open(j, '{');
    json_put_str(j, "topic", p->topic);
    json_put_int(j, "partition", p->partition);
    json_put_str(j, "target_topic", p->target_topic);
    json_put_c(j, "state", p->state);
    json_put_int(j, "next_offset", p->next_offset);
    json_put_int(j, "source_start", p->source_start);
    json_put_int(j, "source_end", p->source_end);
    json_put_int(j, "target_end", p->target_end);
    json_put_int(j, "lag_records", p->lag_records);
    json_put_int(j, "lag_bytes", p->lag_bytes);
    json_put_int(j, "lag_ms", p->lag_ms);
    json_put_uint(j, "relayed_batches", p->relayed_batches);
    json_put_uint(j, "decoded_batches", p->decoded_batches);
    json_put_uint(j, "coalesced_batches", p->coalesced_batches);
    json_put_bool(j, "coalescing", p->coalescing);
    json_put_uint(j, "retimed_records", p->retimed_records);
    json_put_uint(j, "filtered_records", p->filtered_records);
    json_put_uint(j, "dropped_batches", p->dropped_batches);
    json_put_uint(j, "records", p->records);
    json_put_uint(j, "bytes", p->bytes);
    json_put_uint(j, "skipped_records", p->skipped_records);
    json_put_int(j, "queued_bytes", p->queued_bytes);
    fault_put(j, &p->fault);
    json_close(j, '}');
}

static void put_flow_end(struct answer *a, struct json *j)
{
    json_close(j, ']');
    json_close(j, '}');
    a->at_flow++;
    a->step = FLOW;
}

static void put_broker(struct json *j, const struct view_broker *b)
{
    char ms[40];

    json_open(j, '{');
    json_put_int(j, "id", b->id);
    json_put_str(j, "host", b->host);
    json_put_int(j, "port", b->port);
    json_put_c(j, "state", b->state);
    json_key(j, "rtt_ms");
    if (b->rtt_us < 0)
        snprintf(ms, sizeof(ms), "-1");
    else
        snprintf(ms, sizeof(ms), "%lld.%03lld", (long long)(b->rtt_us / 1000), (long long)(b->rtt_us % 1000));
    json_raw(j, str_c(ms));
    json_close(j, '}');
}

static void put_clusters(struct answer *a, struct json *j)
{
    const struct view *v = a->view;
    const struct view_flow *only = a->flow < 0 ? NULL : &v->flows[a->flow];

    json_key(j, "clusters");
    json_open(j, '[');
    for (int32_t i = 0; i < v->clusters_n; i++) {
        const struct view_cluster *c = &v->clusters[i];

        if (only && !str_eq(c->alias, only->source) && !str_eq(c->alias, only->target))
            continue;
        json_open(j, '{');
        json_put_str(j, "alias", c->alias);
        json_put_str(j, "cluster_id", c->cluster_id);
        fault_put(j, &c->fault);
        json_key(j, "brokers");
        json_open(j, '[');
        for (int32_t k = 0; k < c->brokers_n; k++)
            put_broker(j, &c->brokers[k]);
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
    json_key(j, "faults");
    json_open(j, '[');
    a->at_item = 0;
    a->step = FAULTS;
}

static void put_faults(struct answer *a, struct json *j)
{
    const struct view_fault *f;

    if (a->at_item >= a->view->faults_n) {
        json_close(j, ']');
        json_key(j, "losses");
        json_open(j, '[');
        a->at_item = 0;
        a->step = LOSSES;
        return;
    }
    f = &a->view->faults[a->at_item++];
    if (!str_is_null(f->flow) && !is_wanted(a, f->flow))
        return;
    json_open(j, '{');
    json_put_str(j, "flow", f->flow);
    json_put_str(j, "topic", f->topic);
    json_put_int(j, "partition", f->partition);
    fault_put_members(j, &f->fault);
    json_close(j, '}');
}

static void put_range(struct answer *a, struct json *j, const struct view_loss *l)
{
    if (!is_wanted(a, l->flow))
        return;
    json_open(j, '{');
    json_put_str(j, "flow", l->flow);
    json_put_str(j, "topic", l->topic);
    json_put_int(j, "partition", l->partition);
    json_put_int(j, "from_offset", l->from_offset);
    json_put_int(j, "to_offset", l->to_offset);
    json_put_int(j, "records", l->records);
    json_put_str(j, "cause", l->cause);
    json_put_int(j, "time_ms", l->time_ms);
    json_close(j, '}');
}

static void put_losses(struct answer *a, struct json *j)
{
    if (a->at_item < a->view->losses_n) {
        put_range(a, j, &a->view->losses[a->at_item++]);
        return;
    }
    json_close(j, ']');
    json_key(j, "repeats");
    json_open(j, '[');
    a->at_item = 0;
    a->step = REPEATS;
}

static void put_repeats(struct answer *a, struct json *j)
{
    if (a->at_item < a->view->repeats_n) {
        put_range(a, j, &a->view->repeats[a->at_item++]);
        return;
    }
    json_close(j, ']');
    a->step = END;
}

static void put_end(struct answer *a, struct json *j)
{
    json_close(j, '}');
    buf_put_char(j->out, '\n');
    a->more = NULL;
}

static void more(struct answer *a, struct buf *out)
{
    static void (*const steps[])(struct answer *a, struct json *j) = {
        [HEAD] = put_head,         [FLOW] = put_flow,     [ROWS] = put_row,
        [FLOW_END] = put_flow_end, [CLUSTERS] = put_clusters, [FAULTS] = put_faults,
        [LOSSES] = put_losses,     [REPEATS] = put_repeats, [END] = put_end,
    };
    struct json j = { .out = out, .comma = a->comma };

    while (a->more && out->n < ANSWER_PIECE)
        steps[a->step](a, &j);
    a->comma = j.comma;
}

void status_answer(struct answer *a, struct buf *out)
{
    a->step = HEAD;
    a->more = more;
    more(a, out);
}
