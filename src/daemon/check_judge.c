/* check_judge.c -- finds what would not go well, and decides the exit code.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An error is what keeps something from being copied; all else is a warning, and leaves the exit code alone.
 */
#include "daemon/check_int.h"

#include "kafka/cluster.h"

/* A creation that asks for more replicas than there are brokers fails. */
static void judge_replicas(struct check_flow *f)
{
    const struct plan *p = f->plan;
    const struct broker_meta *unused;
    int target_brokers = (int)cluster_brokers(director_cluster(f->director, true), &unused);

    if (f->config->enabled && f->config->replication_factor > target_brokers)
        check_add(f, p->creates_n ? CONFIG_ERROR : CONFIG_WARNING,
                  "replication.factor = %d, but %.*s has %d broker%s: %s; set replication.factor to %d at most",
                  f->config->replication_factor, STR_ARG(f->config->target_alias), target_brokers,
                  target_brokers == 1 ? "" : "s",
                  p->creates_n ? "no topic can be created" : "topics to come could not be created",
                  target_brokers);
}

static void judge_own_topics(struct check_flow *f)
{
    const struct broker_meta *unused;
    int target_brokers = (int)cluster_brokers(director_cluster(f->director, true), &unused);
    struct cluster *source = director_cluster(f->director, false); /* NULL: a flow of heartbeats needs none */
    int source_brokers = source ? (int)cluster_brokers(source, &unused) : 0;
    const struct plan *p = f->plan;

    for (size_t i = 0; i < p->internals_n; i++) {
        const struct plan_internal *t = &p->internals[i];
        int brokers = t->at_target ? target_brokers : source_brokers;

        if (t->wrong.n)
            check_add(f, t->forgets ? CONFIG_ERROR : CONFIG_WARNING, "topic %.*s at %.*s: %.*s", STR_ARG(t->name),
                      STR_ARG(t->at_target ? f->config->target_alias : f->config->source_alias), STR_ARG(t->wrong));
        if (!t->missing || t->replication_factor <= brokers)
            continue;
        check_add(f, t->needed ? CONFIG_ERROR : CONFIG_WARNING,
                  "topic %.*s cannot be created at %.*s: %d replicas, %d broker%s; set %s to %d at most",
                  STR_ARG(t->name), STR_ARG(t->at_target ? f->config->target_alias : f->config->source_alias),
                  t->replication_factor, brokers, brokers == 1 ? "" : "s", t->factor_key, brokers);
    }
}

/* More partitions than the source means that keyed records spread otherwise. */
static void judge_partitions(struct check_flow *f)
{
    size_t n;
    struct check_topic *t = check_topics(f, &n);

    for (size_t i = 0; i < n; i++)
        if (t[i].have > t[i].want->partitions && t[i].want->partitions)
            check_add(f, CONFIG_WARNING,
                      "topic %.*s: its copy has %d partitions, the source %d; the others stay empty",
                      STR_ARG(t[i].want->name), t[i].have, t[i].want->partitions);
}

static bool has_error(struct check_flow *f)
{
    struct check_topic *t;
    size_t n;

    for (size_t i = 0; i < f->findings_n; i++)
        if (f->findings[i].severity == CONFIG_ERROR)
            return true;
    if (!f->plan)
        return false;
    t = check_topics(f, &n);
    for (size_t i = 0; i < n; i++)
        if (t[i].fault)
            return true;
    return false;
}

void check_judge(struct check *c)
{
    for (size_t i = 0; i < c->flows_n; i++) {
        struct check_flow *f = &c->flows[i];

        if (f->plan) {
            judge_replicas(f);
            judge_own_topics(f);
            judge_partitions(f);
            check_limits_judge(f);
            if (f->config->enabled && plan_accepts_nothing(f->plan))
                check_add(f, CONFIG_WARNING, "topics and topics.exclude accept no topic of the source");
        }
        if (f->unreachable)
            c->code = 3;
        else if (has_error(f) && c->code == 0)
            c->code = 1;
    }
}
