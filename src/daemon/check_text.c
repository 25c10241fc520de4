/* check_text.c -- what check tells, for people.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/table.h"
#include "daemon/check_int.h"
#include "kafka/cluster.h"

#define REFUSED_SHOWN 100 /* per flow; --json has all */
#define ACLS_SHOWN    100 /* likewise */
#define CONFIGS_SHOWN 200 /* bytes of a topic's configs */

static void put_clusters(struct check *c, struct buf *out)
{
    size_t n;
    struct cluster **all = check_clusters(c, &n);

    for (size_t i = 0; i < n; i++) {
        const struct broker_meta *brokers;
        size_t brokers_n = cluster_brokers(all[i], &brokers);

        buf_fmt(out, "cluster %.*s: ", STR_ARG(cluster_name(all[i])));
        if (!cluster_is_up(all[i])) {
            buf_fmt(out, "not reached: %s\n",
                    fault_is_set(cluster_fault(all[i])) ? cluster_fault(all[i])->text : "no answer in time");
            continue;
        }
        buf_fmt(out, "id %.*s, %zu broker%s:", STR_ARG(cluster_id(all[i])), brokers_n,
                brokers_n == 1 ? "" : "s");
        for (size_t k = 0; k < brokers_n; k++)
            buf_fmt(out, " %.*s:%d", STR_ARG(brokers[k].host), brokers[k].port);
        buf_put_char(out, '\n');
    }
}

static void put_configs(struct table *t, const struct plan_create *c)
{
    struct buf text;

    buf_init(&text, 64 * KiB);
    for (size_t i = 0; c && i < c->configs_n && text.n < CONFIGS_SHOWN; i++)
        buf_fmt(&text, "%s%.*s=%.*s", i ? " " : "", STR_ARG(c->configs[i].name),
                STR_ARG(c->configs[i].value));
    if (text.n >= CONFIGS_SHOWN)
        buf_fmt(&text, " ...");
    table_put(t, "%s", buf_cstr(&text));
    buf_fini(&text);
}

static void put_topics(struct check_flow *f, struct buf *out)
{
    size_t n;
    struct check_topic *all = check_topics(f, &n);
    struct table t;

    table_init(&t, "|ACTION|TOPIC|TARGET TOPIC|+PARTITIONS|+AT TARGET|+REPLICAS|CONFIGS OR FAULT");
    for (size_t i = 0; i < n; i++) {
        table_put(&t, " ");
        table_put(&t, "%s", all[i].action);
        table_put(&t, "%.*s", STR_ARG(all[i].want->name));
        if (str_eq(all[i].want->route, all[i].want->target_name))
            table_put(&t, "%.*s", STR_ARG(all[i].want->target_name));
        else
            table_put(&t, "%.*s (records: %.*s)", STR_ARG(all[i].want->target_name), STR_ARG(all[i].want->route));
        table_put_int(&t, all[i].want->partitions);
        table_put_int(&t, all[i].have ? all[i].have : -1);
        if (all[i].create && f->config->replication_factor < 0)
            table_put(&t, "default");
        else
            table_put_int(&t, all[i].create ? f->config->replication_factor : -1);
        if (all[i].fault)
            table_put(&t, "%s: %s", all[i].fault->code, all[i].fault->text);
        else
            put_configs(&t, all[i].create);
    }
    if (n)
        table_print(&t, out);
    table_fini(&t);
}

static void put_refused(struct check_flow *f, struct buf *out)
{
    const struct plan *p = f->plan;

    for (size_t i = 0; i < p->refused_n && i < REFUSED_SHOWN; i++)
        buf_fmt(out, "  not copied: %.*s: %.*s\n", STR_ARG(p->refused[i].topic),
                STR_ARG(check_refusal(f, &p->refused[i])));
    if (p->refused_n > REFUSED_SHOWN)
        buf_fmt(out, "  not copied: %zu more topics (--json names all)\n", p->refused_n - REFUSED_SHOWN);
}

static void put_internals(const struct check_flow *f, struct buf *out)
{
    for (size_t i = 0; i < f->plan->internals_n; i++) {
        const struct plan_internal *t = &f->plan->internals[i];

        buf_fmt(out, "  own topic: %.*s at %.*s: %s", STR_ARG(t->name),
                STR_ARG(t->at_target ? f->config->target_alias : f->config->source_alias),
                t->missing ? "will be created" : "is there");
        if (t->missing)
            buf_fmt(out, ", %d partition%s, %d replica%s", t->partitions, t->partitions == 1 ? "" : "s",
                    t->replication_factor, t->replication_factor == 1 ? "" : "s");
        buf_put_char(out, '\n');
    }
}

static void put_acls(const struct check_flow *f, struct buf *out)
{
    const struct flow_config *c = f->config;
    struct str none;
    const struct acls *acls = check_acls(f, &none);
    size_t missing = acls ? acls_count(acls, ACL_CREATE) : 0, shown = 0;

    if (none.n)
        buf_fmt(out, "  ACLs: none are copied, cluster %.*s keeps none\n", STR_ARG(none));
    if (!acls)
        return;
    buf_fmt(out, "  ACLs: %zu of %.*s are wanted at %.*s, %zu to be created\n", acls->wanted, STR_ARG(c->source_alias),
            STR_ARG(c->target_alias), missing);
    for (size_t i = 0; i < acls->n && shown < ACLS_SHOWN; i++) {
        if (acls_due(&acls->at[i]) != ACL_CREATE)
            continue;
        buf_fmt(out, "  ACL to be created: %.*s\n", STR_ARG(acls_text(&acls->at[i].acl, &f->check->arena)));
        shown++;
    }
    if (missing > shown)
        buf_fmt(out, "  ACL to be created: %zu more (--json names all)\n", missing - shown);
}

static void put_flow(struct check_flow *f, struct buf *out)
{
    const struct flow_config *c = f->config;

    buf_fmt(out, "\nflow %.*s: ", STR_ARG(c->name));
    buf_fmt(out, "%s", c->enabled ? check_delivery(c) : "not enabled: heartbeats only");
    if (f->plan && !c->enabled)
        buf_put_char(out, '\n');
    else if (f->plan)
        buf_fmt(out, "; %zu topics are copied, %zu to be created, %zu to be grown, %zu not copied\n",
                f->plan->wants_n, f->plan->creates_n, f->plan->grows_n, f->plan->refused_n);
    else
        buf_fmt(out, "%s\n", f->check->offline ? "; not asked (--offline)" : "; no plan");
    if (f->plan) {
        put_topics(f, out);
        put_internals(f, out);
        put_refused(f, out);
        put_acls(f, out);
    }
    for (size_t i = 0; i < f->findings_n; i++)
        buf_fmt(out, "  %s: %.*s\n", f->findings[i].severity == CONFIG_ERROR ? "ERROR" : "warning",
                STR_ARG(f->findings[i].text));
}

void check_put_text(struct check *c, struct buf *out)
{
    const struct config *g = c->config;

    buf_fmt(out, "%.*s: %zu flow%s, %zu warning%s\n", STR_ARG(g->file), g->flow_count,
            g->flow_count == 1 ? "" : "s", g->problem_count - g->error_count,
            g->problem_count - g->error_count == 1 ? "" : "s");
    put_clusters(c, out);
    for (size_t i = 0; i < c->flows_n; i++)
        put_flow(&c->flows[i], out);
}
