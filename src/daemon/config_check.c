/* config_check.c -- what is well formed by itself and does not fit together.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each check looks at finished flows and reports at the line that gave the value, if one did.
 */
#include "daemon/config_internal.h"
#include "mirror/topic_map.h"
#include "mirror/topics.h"
#include "net/dns.h"

#include <string.h>

/* The entry behind a flow's or client's member; NULL: its default. */
static const struct prop *origin_of(struct loader *l, const struct opt_table *t,
                                    const uint32_t *origins, const char *key)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].key, key) == 0 && t->rows[i].value)
            return origins[i] ? &l->props->at[origins[i] - 1] : NULL;
    return NULL;
}

static const struct prop *flow_origin(struct loader *l, size_t flow, const char *key)
{
    return origin_of(l, &flow_opts, l->origins->flows[flow].flow, key);
}

static const struct prop *target_origin(struct loader *l, size_t flow, const char *key)
{
    return origin_of(l, &client_opts, l->origins->flows[flow].client[ROLE_TARGET], key);
}

/* Warnings about one entry that several flows share are given once. */
static void warn_once(struct loader *l, const struct prop *p, const char *text)
{
    for (size_t i = 0; i < l->c->problem_count; i++)
        if (l->problems[i].line == p->line && str_eq(l->problems[i].key, p->key) &&
            str_eq(l->problems[i].text, str_c(text)))
            return;
    config_report(l, p, CONFIG_WARNING, "%s", text);
}

/* How batches are written: values that would break the promise of heliostat.delivery are set right. */
static void check_delivery(struct loader *l, size_t i)
{
    struct flow_config *f = &l->flows[i];
    const struct prop *acks = target_origin(l, i, "acks");
    const struct prop *in_flight = target_origin(l, i, "max.in.flight.requests.per.connection");

    if (acks && f->delivery == FLOW_EXACTLY_ONCE && f->target.acks != CLIENT_ACKS_ALL) {
        warn_once(l, acks,
                  "exactly-once delivery needs all, and all is used; remove it, or set "
                  "heliostat.delivery = at-least-once");
        f->target.acks = CLIENT_ACKS_ALL;
    }
    if (f->exactly_once_source_support == FLOW_EOS_ENABLED && f->delivery != FLOW_EXACTLY_ONCE)
        warn_once(l, flow_origin(l, i, "heliostat.delivery"),
                  "this is weaker than exactly.once.source.support = enabled, and it is used: no transactions");
    if (in_flight && f->target.max_in_flight > 5) {
        warn_once(l, in_flight, "more than 5 cannot be kept in order, and 5 is used; write 1 to 5");
        f->target.max_in_flight = 5;
    }
}

static void check_names(struct loader *l, size_t i)
{
    const struct flow_config *f = &l->flows[i];
    const struct prop *separator = flow_origin(l, i, "replication.policy.separator");
    const struct prop *clusters = props_find(l->props, STR("clusters"));

    if (separator && !topics_name_fits(f->replication_policy_separator))
        warn_once(l, separator,
                  "Kafka takes only letters, digits, '.', '_' and '-' in names of topics, so "
                  "no topic can be created with it; blanks at its end count too");
    if (clusters && !(topics_name_fits(f->source_alias) && topics_name_fits(f->target_alias)))
        warn_once(l, clusters,
                  "Kafka takes only letters, digits, '.', '_' and '-' in names of topics, so "
                  "topics named after such an alias cannot be created");
}

static bool same_addresses(const struct client_config *a, const struct client_config *b)
{
    if (a->bootstrap_count == 0 || a->bootstrap_count != b->bootstrap_count)
        return false;
    for (size_t i = 0; i < a->bootstrap_count; i++)
        if (a->bootstrap[i].port != b->bootstrap[i].port ||
            !str_eq_nocase(a->bootstrap[i].host, b->bootstrap[i].host))
            return false;
    return true;
}

static void check_addresses(struct loader *l, size_t i)
{
    const struct flow_config *f = &l->flows[i];
    const struct prop *p =
        origin_of(l, &client_opts, l->origins->flows[i].client[ROLE_TARGET], "bootstrap.servers");

    if (p && f->enabled && same_addresses(&f->source, &f->target))
        config_report(
            l, p, CONFIG_ERROR,
            "source and target of the flow %.*s have the same addresses; a cluster cannot be "
            "mirrored into itself",
            STR_ARG(f->name));
}

static const struct flow_config *reverse_of(struct loader *l, const struct flow_config *f)
{
    for (size_t i = 0; i < l->c->flow_count; i++) {
        const struct flow_config *r = &l->flows[i];

        if (r->enabled && str_eq(r->source.cluster, f->target.cluster) &&
            str_eq(r->target.cluster, f->source.cluster))
            return r;
    }
    return NULL;
}

static void check_loop(struct loader *l, size_t i)
{
    const struct flow_config *f = &l->flows[i];
    const struct prop *p = flow_origin(l, i, "replication.policy.class");
    const struct prop *map = flow_origin(l, i, "heliostat.topic.map");
    const struct flow_config *r;

    if (!f->enabled)
        return;
    r = reverse_of(l, f);
    if (map && r)
        warn_once(l, map,
                  "a copy that a rule has named does not tell where it is from, so the flow in the other direction takes "
                  "it for a topic like any other; leave such names out there with topics.exclude");
    if (p && r && f->policy == FLOW_POLICY_IDENTITY && r->policy == FLOW_POLICY_IDENTITY)
        warn_once(l, p,
                  "flows in both directions keep the names of topics, so a topic that both take "
                  "would go round for ever; give each direction topics of its own");
}

static void check_listen(struct loader *l)
{
    const struct prop *p = l->origins->process
                               ? origin_of(l, &config_opts, l->origins->process, "heliostat.http.listen")
                               : NULL;
    struct str listen = l->c->process.http_listen;
    char host[256];
    uint16_t port;

    if (p && !str_eq(listen, STR("off")) && !net_addr_split(listen, host, sizeof(host), &port))
        config_report(l, p, CONFIG_ERROR,
                      "is no address to listen on; write host:port, [address]:port for IPv6, or off");
}

/* Each list of patterns is compiled once, at the entry that gave it. */
static void check_patterns(struct loader *l, size_t i)
{
    const struct flow_config *f = &l->flows[i];
    const struct {
        const char *key;
        const struct str_list *list;
    } lists[] = { { "topics", &f->topics },
                  { "topics.exclude", &f->topics_exclude },
                  { "config.properties.exclude", &f->config_properties_exclude },
                  { "groups", &f->groups },
                  { "groups.exclude", &f->groups_exclude } };

    for (size_t n = 0; n < COUNT(lists); n++) {
        const struct prop *p = flow_origin(l, i, lists[n].key);
        const struct str_list none = { .n = 0 };
        struct filter *filter = NULL;
        struct str why;

        if (!p || config_entry_of(l, p)->compiled)
            continue;
        config_entry_of(l, p)->compiled = true;
        if (!filter_new(lists[n].list, &none, l->a, &filter, &why))
            filter_free(&filter);
        else if (config_entry_of(l, p)->resolved)
            config_report(l, p, CONFIG_ERROR,
                          "the value is not a list of Java regular expressions; mend it");
        else
            config_report(l, p, CONFIG_ERROR, "%.*s; mend the pattern", STR_ARG(why));
    }
}

/* MirrorMaker 2 lets the bare key of a worker's option win, so the one with the alias does nothing beside it. */
static void check_worker_keys(struct loader *l)
{
    for (size_t i = 0; i < l->props->n; i++) {
        const struct prop *p = &l->props->at[i];

        for (size_t c = 0; c < l->c->process.clusters.n; c++) {
            struct str alias = l->c->process.clusters.at[c];
            struct str key = str_part(p->key, alias.n + 1, p->key.n);
            const struct opt_row *row = NULL;

            if (p->key.n > alias.n + 1 && str_starts(p->key, alias) && p->key.p[alias.n] == '.')
                row = opt_find(&flow_opts, key, FLOW_WORKER);
            if (row && row->value && props_find(l->props, key))
                config_report(l, p, CONFIG_WARNING,
                              "has no effect: %.*s without an alias counts for every cluster, as in MirrorMaker 2; "
                              "remove one of the two", STR_ARG(key));
        }
    }
}

static void check_topic_map(struct loader *l, size_t i)
{
    const struct prop *p = flow_origin(l, i, "heliostat.topic.map");
    struct topic_map *map = NULL;
    struct str why;

    if (!p || config_entry_of(l, p)->compiled)
        return;
    config_entry_of(l, p)->compiled = true;
    if (!topic_map_new(&l->flows[i].topic_map, l->a, &map, &why))
        topic_map_free(&map);
    else if (config_entry_of(l, p)->resolved)
        config_report(l, p, CONFIG_ERROR, "the value is not a list of rules PATTERN -> NAME; mend it");
    else
        config_report(l, p, CONFIG_ERROR, "%.*s; mend the rule", STR_ARG(why));
}

void config_check(struct loader *l)
{
    check_listen(l);
    check_worker_keys(l);
    for (size_t i = 0; i < l->c->flow_count; i++) {
        config_check_transforms(l, &l->flows[i], (const struct prop *[2]){ flow_origin(l, i, "transforms"),
                                                                             flow_origin(l, i, "predicates") });
        check_delivery(l, i);
        check_names(l, i);
        check_addresses(l, i);
        check_loop(l, i);
        check_patterns(l, i);
        check_topic_map(l, i);
    }
}
