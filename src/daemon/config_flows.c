/* config_flows.c -- which flows a file makes, and what each of their options is.
 * SPDX-License-Identifier: Apache-2.0
 *
 * MirrorMaker 2 builds maps by copying prefixes in a fixed order; here the same order is read backwards:
 * for each option the places where it may stand are tried from the strongest to the weakest. For the flow
 * S->T, with X the cluster of a client and "security keys" bootstrap.servers, security.protocol, ssl.*
 * and sasl.*:
 *
 *   option of the flow     S->T.k                        k               (rows OWN: S->T.k only)
 *   option of the worker   k (a few prefixes)            T.k
 *   client of the mirror   S->T.source.consumer.k        X.consumer.k    X.k and k, if a security key
 *                          S->T.consumer.k               S->T.source.cluster.k, if a security key
 *   producer of records    S->T.producer.override.k      T.producer.k    T.k and k, if a security key
 *
 * So A->B.consumer.k is weaker than A.consumer.k, and the bare consumer.k counts for nothing: as there.
 */
#include "base/must.h"
#include "daemon/config_internal.h"

#include <string.h>

struct step {
    enum { IN_FLOW, IN_CLUSTER, AT_TOP, NO_STEP } base;
    struct str infix;
    bool security_only;
};

#define ENDS_BITS 16384

#define ROLE_SYNCS_AT_TARGET ROLE_COUNT /* second row of ROLE_SYNCS_WRITER */

#define MIRROR_STEPS(side, kind)                                                                   \
    {                                                                                              \
        { IN_FLOW, STR(side "." kind "."), false }, { IN_CLUSTER, STR(kind "."), false },          \
            { IN_CLUSTER, STR(""), true }, { AT_TOP, STR(""), true },                              \
            { IN_FLOW, STR(kind "."), false }, { IN_FLOW, STR(side ".cluster."), true },           \
        {                                                                                          \
            NO_STEP, STR(""), false                                                                \
        }                                                                                          \
    }

static const struct role {
    bool at_source;
    enum client_kind kind;
    size_t at;
    const char *id; /* of the client, behind the user's own and the flow */
    struct step steps[7];
} roles[] = {
    [ROLE_SOURCE] = { true, CLIENT_CONSUMER, offsetof(struct flow_config, source),
                      "MirrorSourceConnector-0|replication-consumer",
                      MIRROR_STEPS("source", "consumer") },
    [ROLE_TARGET] = { false,
                      CLIENT_PRODUCER,
                      offsetof(struct flow_config, target),
                      NULL,
                      { { IN_FLOW, STR("producer.override."), false },
                        { IN_CLUSTER, STR("producer."), false },
                        { IN_CLUSTER, STR(""), true },
                        { AT_TOP, STR(""), true },
                        { NO_STEP, STR(""), false } } },
    [ROLE_SOURCE_ADMIN] = { true, CLIENT_ADMIN, offsetof(struct flow_config, source_admin),
                            "MirrorSourceConnector|replication-source-admin",
                            MIRROR_STEPS("source", "admin") },
    [ROLE_TARGET_ADMIN] = { false, CLIENT_ADMIN, offsetof(struct flow_config, target_admin),
                            "MirrorSourceConnector|replication-target-admin",
                            MIRROR_STEPS("target", "admin") },
    [ROLE_TARGET_READER] = { false, CLIENT_CONSUMER, offsetof(struct flow_config, target_reader),
                             "MirrorCheckpointConnector-0|checkpoints-target-consumer",
                             MIRROR_STEPS("target", "consumer") },
    [ROLE_SYNCS_WRITER] = { true, CLIENT_PRODUCER, offsetof(struct flow_config, syncs_writer),
                            "MirrorSourceConnector-0|offset-syncs-source-producer",
                            MIRROR_STEPS("source", "producer") },
    [ROLE_SYNCS_AT_TARGET] = { false, CLIENT_PRODUCER, offsetof(struct flow_config, syncs_writer),
                               "MirrorSourceConnector-0|offset-syncs-target-producer",
                               MIRROR_STEPS("target", "producer") },
};

/* One alias and what flows into it share. */
struct cluster {
    struct str alias, dotted; /* "A", "A." */
    bool missed;              /* its lack of addresses was reported */
    struct str_pair *storage; /* offset.storage.<config> */
    size_t storage_count;
    bool storage_known;
};

struct maker {
    struct loader *l;
    struct cluster *clusters;
    size_t n;
    struct client_config client_defaults;
    struct flow_config flow_defaults;
    bool *client_named, *flow_named; /* by row: some key of the file ends in the row's, so it may be meant */
};

enum client_kind config_role_kind(enum config_role role)
{
    return roles[role].kind;
}

const struct client_config *config_role_client_of(const struct flow_config *f,
                                                  enum config_role role)
{
    return (const void *)((const char *)f + roles[role].at);
}

struct str config_flow_name(struct loader *l, struct str source, struct str target)
{
    return arena_fmt(l->a, "%.*s->%.*s", STR_ARG(source), STR_ARG(target));
}

bool config_is_security_row(const struct opt_row *row)
{
    struct str key = str_c(row->key);

    return str_eq(key, STR("bootstrap.servers")) || str_eq(key, STR("security.protocol")) ||
           str_starts(key, STR("ssl.")) || str_starts(key, STR("sasl."));
}

bool config_is_security_key(struct str key)
{
    const struct opt_row *row = key.n && (key.p[0] == 'b' || key.p[0] == 's')
                                    ? opt_find(&client_opts, key, CLIENT_ALL)
                                    : NULL;

    return row && config_is_security_row(row);
}

static const struct prop *find_client(struct loader *l, const struct role *r,
                                      struct str flow_dotted, struct str cluster_dotted,
                                      const struct opt_row *row)
{
    bool security = config_is_security_row(row);
    struct str key = str_c(row->key);

    for (const struct step *s = r->steps; s->base != NO_STEP; s++) {
        struct str base = s->base == IN_FLOW      ? flow_dotted
                          : s->base == IN_CLUSTER ? cluster_dotted
                                                  : STR("");
        const struct prop *p;

        if (s->security_only && !security)
            continue;
        p = config_find(l, base, s->infix, key);
        if (p)
            return p;
    }
    return NULL;
}

/* Reads bootstrap.servers once for its entry. */
static void parse_endpoints(struct loader *l, const struct prop *p, const struct str_list *list)
{
    struct config_entry *e = config_entry_of(l, p);
    struct client_endpoint *at;

    if (list->n > CONFIG_ENDPOINTS_MAX) {
        config_report(l, p, CONFIG_ERROR, "more than %d addresses; a few are enough",
                      CONFIG_ENDPOINTS_MAX);
        return;
    }
    at = arena_array(l->a, list->n + 1, sizeof(*at));
    for (size_t i = 0; i < list->n; i++) {
        if (!client_endpoint_parse(list->at[i], l->a, &at[i]))
            continue;
        if (e->resolved)
            config_report(l, p, CONFIG_ERROR, "element %zu is not host:port; write host:port",
                          i + 1);
        else
            config_report(l, p, CONFIG_ERROR,
                          "\"%.*s\" is not host:port; write host:port, or [address]:port for IPv6",
                          STR_ARG(str_part(list->at[i], 0, 80)));
        return;
    }
    e->endpoints = at;
    e->endpoint_count = list->n;
}

static void take_special(struct loader *l, const struct opt_row *row, const struct prop *p,
                         struct client_config *c)
{
    struct config_entry *e = config_entry_of(l, p);

    if (row->at == offsetof(struct client_config, bootstrap_servers)) {
        if (!e->endpoints && !e->refused)
            parse_endpoints(l, p, &c->bootstrap_servers);
        c->bootstrap = e->endpoints;
        c->bootstrap_count = e->endpoint_count;
    } else if (row->at == offsetof(struct client_config, auto_offset_reset)) {
        if (client_reset_parse(c->auto_offset_reset, &c->reset, &c->reset_back_ms))
            config_report(
                l, p, CONFIG_ERROR,
                "the value is not known; write earliest, latest, none or by_duration:PT1H");
    } else if (row->at == offsetof(struct client_config, security_protocol)) {
        if (c->security_protocol != CLIENT_PLAINTEXT)
            config_report(l, p, CONFIG_ERROR,
                          "%.*s cannot be spoken yet: TLS and SASL come with a later release; only "
                          "PLAINTEXT listeners can be reached",
                          STR_ARG(e->resolved ? STR("the given protocol") : str_trim(p->value)));
    }
}

static void name_client(struct loader *l, const struct role *r, struct str flow,
                        struct client_config *c)
{
    struct str user = c->client_id;

    if (r->id)
        c->client_id = arena_fmt(l->a, "%.*s%s%.*s|%s", STR_ARG(user), user.n ? "|" : "",
                                 STR_ARG(flow), r->id);
    else if (user.n == 0)
        c->client_id = STR("connector-producer-MirrorSourceConnector-0");
}

static void make_client(struct maker *m, const struct role *r, struct flow_config *f,
                        struct str flow_dotted, struct cluster *x, uint32_t *origins)
{
    struct loader *l = m->l;
    struct client_config *c = (void *)((char *)f + r->at);
    bool needed = f->enabled || !r->at_source;

    *c = m->client_defaults;
    c->cluster = x->alias;
    for (size_t i = 0; i < client_opts.count; i++) {
        const struct opt_row *row = &client_opts.rows[i];
        const struct prop *p;

        if (!row->value || !(row->where & r->kind) || !m->client_named[i])
            continue;
        p = find_client(l, r, flow_dotted, x->dotted, row);
        if (!p)
            continue;
        config_take(l, p, row, c, &origins[i]);
        if (origins[i])
            take_special(l, row, p, c);
        if (row->at == offsetof(struct client_config, bootstrap_servers) &&
            config_entry_of(l, p)->refused)
            needed = false; /* said already */
    }
    name_client(l, r, f->name, c);
    if (c->bootstrap_count == 0 && needed && !x->missed) {
        x->missed = true;
        config_report_key(l, arena_fmt(l->a, "%.*sbootstrap.servers", STR_ARG(x->dotted)),
                          CONFIG_ERROR, "missing; write %.*sbootstrap.servers = host:port",
                          STR_ARG(x->dotted));
    }
}

/* The places of a flow's or worker's option, strongest first; see the top of this file. */
static const struct prop *find_option(struct loader *l, unsigned where, struct str flow_dotted,
                                      struct str target_dotted, struct str key)
{
    const struct prop *p = NULL;

    if (where & (FLOW_ANY | FLOW_OWN))
        p = config_find(l, flow_dotted, STR(""), key);
    if (!p && (where & (FLOW_ANY | FLOW_WORKER)))
        p = props_find(l->props, key);
    if (!p && (where & (FLOW_TARGET | FLOW_WORKER)))
        p = config_find(l, target_dotted, STR(""), key);
    return p;
}

static void take_option(struct maker *m, const struct opt_row *row, struct flow_config *f,
                        struct str flow_dotted, const struct cluster *target, uint32_t *origin)
{
    const struct prop *p =
        find_option(m->l, row->where, flow_dotted, target->dotted, str_c(row->key));

    if (!p && row->alias)
        p = find_option(m->l, row->where, flow_dotted, target->dotted, str_c(row->alias));
    if (p)
        config_take(m->l, p, row, f, origin);
}

/* Whether entry i is offset.storage.<topic config> for what is written to t; the bare key is stronger. */
static bool is_storage(const struct loader *l, const struct cluster *t, size_t i,
                       struct str *config)
{
    static const struct str prefix = STR("offset.storage.");
    struct str key = l->props->at[i].key;
    bool own = str_starts(key, t->dotted);

    if (own)
        key = str_part(key, t->dotted.n, key.n);
    *config = str_part(key, prefix.n, key.n);
    return str_starts(key, prefix) && !opt_find(&flow_opts, key, FLOW_WORKER) &&
           !(own && props_find(l->props, key));
}

static void collect_storage(struct loader *l, struct cluster *t)
{
    struct str config;
    size_t n = 0;

    for (size_t i = 0; i < l->props->n; i++)
        n += is_storage(l, t, i, &config);
    t->storage_known = true;
    t->storage = arena_array(l->a, n + 1, sizeof(*t->storage));
    for (size_t i = 0; i < l->props->n; i++)
        if (is_storage(l, t, i, &config))
            t->storage[t->storage_count++] = (struct str_pair){ config, l->props->at[i].value };
}

static void make_flow(struct maker *m, struct cluster *s, struct cluster *t, struct flow_config *f,
                      struct config_flow_origins *o)
{
    struct loader *l = m->l;
    struct str flow_dotted;

    *f = m->flow_defaults;
    f->name = config_flow_name(l, s->alias, t->alias);
    flow_dotted = arena_fmt(l->a, "%.*s.", STR_ARG(f->name));
    o->flow = arena_array(l->a, flow_opts.count, sizeof(uint32_t));
    for (size_t i = 0; i < flow_opts.count; i++)
        if (flow_opts.rows[i].value && m->flow_named[i])
            take_option(m, &flow_opts.rows[i], f, flow_dotted, t, &o->flow[i]);
    f->source_alias = f->source_cluster_alias.n ? f->source_cluster_alias : s->alias;
    f->target_alias = f->target_cluster_alias.n ? f->target_cluster_alias : t->alias;
    f->defaults_from_source = str_eq(f->use_defaults_from, STR("source"));
    config_collect_transforms(l, flow_dotted, f);
    f->offsets_topic = f->offsets_storage_topic;
    if (f->offsets_topic.n == 0)
        f->offsets_topic = f->offset_storage_topic;
    if (f->offsets_topic.n == 0)
        f->offsets_topic = arena_fmt(l->a, "mm2-offsets.%.*s.internal", STR_ARG(s->alias));
    if (!t->storage_known)
        collect_storage(l, t);
    f->offsets_configs = t->storage;
    f->offsets_config_count = t->storage_count;
    for (int i = 0; i < ROLE_COUNT; i++) {
        const struct role *r =
            i == ROLE_SYNCS_WRITER && f->offset_syncs_location == FLOW_SYNCS_AT_TARGET
                ? &roles[ROLE_SYNCS_AT_TARGET]
                : &roles[i];

        o->client[i] = arena_array(l->a, client_opts.count, sizeof(uint32_t));
        make_client(m, r, f, flow_dotted, r->at_source ? s : t, o->client[i]);
    }
}

static bool row_is_named(const struct opt_row *row, const uint64_t *ends)
{
    uint64_t key = str_hash(str_c(row->key)) % ENDS_BITS;
    uint64_t alias = row->alias ? str_hash(str_c(row->alias)) % ENDS_BITS : key;

    return (ends[key / 64] >> (key % 64) & 1) || (ends[alias / 64] >> (alias % 64) & 1);
}

/* Whatever stands before an option in a key ends in a dot. Every end behind a dot, and every whole key, is hashed
 * once, so that the many rows that no key means are not looked for in every place of every flow. */
static void note_named(struct maker *m)
{
    uint64_t *ends = arena_array(m->l->a, ENDS_BITS / 64, sizeof(*ends));

    for (size_t i = 0; i < m->l->props->n; i++) {
        struct str key = m->l->props->at[i].key;

        for (size_t at = 0; at < key.n && key.n <= OPT_KEY_MAX; at++) {
            uint64_t h;

            if (at && key.p[at - 1] != '.')
                continue;
            h = str_hash(str_part(key, at, key.n)) % ENDS_BITS;
            ends[h / 64] |= UINT64_C(1) << (h % 64);
        }
    }
    m->client_named = arena_array(m->l->a, client_opts.count, sizeof(bool));
    for (size_t i = 0; i < client_opts.count; i++)
        m->client_named[i] = row_is_named(&client_opts.rows[i], ends);
    m->flow_named = arena_array(m->l->a, flow_opts.count, sizeof(bool));
    for (size_t i = 0; i < flow_opts.count; i++)
        m->flow_named[i] = row_is_named(&flow_opts.rows[i], ends);
}

/* MirrorMaker 2's driver does not trim here and takes all but `true` for false. */
static bool peek(const struct prop *p, bool otherwise)
{
    return p ? str_eq_nocase(p->value, STR("true")) : otherwise;
}

static bool is_wanted(struct maker *m, const struct cluster *s, const struct cluster *t)
{
    static const struct str heartbeats = STR("emit.heartbeats.enabled");
    struct str dotted = arena_fmt(m->l->a, "%.*s->%.*s.", STR_ARG(s->alias), STR_ARG(t->alias));
    const struct prop *enabled = config_find(m->l, dotted, STR(""), STR("enabled"));
    const struct prop *own = config_find(m->l, dotted, STR(""), heartbeats);
    bool by_top = peek(props_find(m->l->props, heartbeats), true);
    struct flow_config scratch;
    uint32_t origin;

    /* What is neither true nor false is said even where it makes no flow. */
    if (enabled)
        config_take(m->l, enabled, opt_find(&flow_opts, STR("enabled"), FLOW_ANY), &scratch,
                    &origin);
    if (own)
        config_take(m->l, own, opt_find(&flow_opts, heartbeats, FLOW_ANY), &scratch, &origin);
    return peek(enabled, false) || peek(own, by_top);
}

/* The aliases that --clusters names, one list out of all arguments; null list: no such argument. */
static struct str_list named_clusters(struct loader *l, const struct config_args *args)
{
    struct buf all;
    struct str_list list;

    buf_init(&all, 64 * KiB);
    for (size_t i = 0; i < args->cluster_count; i++) {
        buf_put_str(&all, args->clusters[i]);
        buf_put_char(&all, ',');
    }
    for (size_t i = 0; i < all.n; i++)
        if (all.p[i] == ' ' || all.p[i] == '\t')
            all.p[i] = ',';
    list = opt_split(buf_str(&all), l->a);
    buf_fini(&all);
    return list;
}

static bool list_has(const struct str_list *list, struct str s)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->at[i], s))
            return true;
    return false;
}

static bool find_clusters(struct maker *m)
{
    struct loader *l = m->l;
    const struct str_list *aliases = &l->c->process.clusters;
    const struct prop *p = props_find(l->props, STR("clusters"));

    if (aliases->n == 0) {
        config_report_key(
            l, STR("clusters"), CONFIG_ERROR,
            "missing; write clusters = A, B and A.bootstrap.servers, B.bootstrap.servers");
        return false;
    }
    if (aliases->n > CONFIG_CLUSTERS_MAX) {
        config_report(l, p, CONFIG_ERROR, "more than %d clusters; use several files",
                      CONFIG_CLUSTERS_MAX);
        return false;
    }
    m->clusters = arena_array(l->a, aliases->n, sizeof(*m->clusters));
    for (size_t i = 0; i < aliases->n; i++)
        m->clusters[i] =
            (struct cluster){ .alias = aliases->at[i],
                              .dotted = arena_fmt(l->a, "%.*s.", STR_ARG(aliases->at[i])) };
    m->n = aliases->n;
    return true;
}

static void check_named(struct maker *m, const struct str_list *named)
{
    for (size_t i = 0; i < named->n; i++)
        if (named->at[i].n && !list_has(&m->l->c->process.clusters, named->at[i]))
            config_report_key(m->l, STR("--clusters"), CONFIG_WARNING,
                              "\"%.*s\" is no cluster of the file and selects nothing",
                              STR_ARG(named->at[i]));
}

void config_flows_make(struct loader *l, const struct config_args *args)
{
    struct str_list named = named_clusters(l, args);
    struct maker m = { .l = l };
    struct cluster **pairs;
    size_t n = 0;

    opt_defaults(&client_opts, &m.client_defaults, l->a);
    m.client_defaults.reset = CLIENT_RESET_EARLIEST;
    opt_defaults(&flow_opts, &m.flow_defaults, l->a);
    if (!find_clusters(&m))
        return;
    note_named(&m);
    check_named(&m, &named);
    pairs = arena_array(l->a, m.n * m.n * 2, sizeof(struct cluster *));
    for (size_t i = 0; i < m.n; i++) {
        for (size_t j = 0; j < m.n; j++) {
            if (i == j || (args->cluster_count && !list_has(&named, m.clusters[j].alias)) ||
                !is_wanted(&m, &m.clusters[i], &m.clusters[j]))
                continue;
            pairs[2 * n] = &m.clusters[i];
            pairs[2 * n + 1] = &m.clusters[j];
            n++;
        }
    }
    l->flows = arena_array(l->a, n + 1, sizeof(*l->flows));
    l->origins->flows = arena_array(l->a, n + 1, sizeof(*l->origins->flows));
    for (size_t i = 0; i < n; i++)
        make_flow(&m, pairs[2 * i], pairs[2 * i + 1], &l->flows[i], &l->origins->flows[i]);
    l->c->flows = l->flows;
    l->c->flow_count = n;
    if (n == 0)
        config_report_key(l, STR("clusters"), CONFIG_ERROR,
                          "there is no flow to run; enable one with A->B.enabled = true");
}
