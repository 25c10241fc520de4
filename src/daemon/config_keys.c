/* config_keys.c -- what each key of the file means, and what to say about those that mean nothing.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A key belongs to a flow (A->B.rest), to a cluster (A.rest) or to the top level. The rest is looked up in
 * the option tables; what MirrorMaker 2 reads elsewhere is told where to go, what nobody knows gets the
 * nearest name. .properties text has no comments behind a value, yet people and even Kafka's own pages
 * write them: where the value could never hold one, it is cut off, with a warning.
 */
#include "daemon/config_internal.h"

enum verdict { GOOD, IDLE, MISPLACED, UNKNOWN };

struct place {
    enum { TOP, CLUSTER, FLOW } scope;
    struct str source, target; /* aliases; a cluster's is source */
    struct str prefix;         /* "A.", "A->B.", with a client's prefix behind it */
    struct str rest;           /* the key of the table */
    enum client_kind kind;     /* 0: no client's key */
    enum verdict verdict;
    const struct opt_row *row;
    const char *advice; /* of MISPLACED: %s stands for the rest of the key */
};

#define MISPLACED_OVERRIDE(side) \
    "Connect gives it to its own client for positions, not to what mirrors; write it as " side ".%s behind the flow"

static const struct client_prefix {
    struct str text;
    enum client_kind kind;
    bool in_cluster; /* A.text too; else only A->B.text */
    const char *idle; /* why it has no effect; NULL: it has */
} client_prefixes[] = {
    { STR("consumer.override."), CLIENT_CONSUMER, false, MISPLACED_OVERRIDE("source") },
    { STR("consumer."), CLIENT_CONSUMER, true, NULL },
    { STR("producer.override."), CLIENT_PRODUCER, false, NULL },
    { STR("producer."), CLIENT_PRODUCER, true, NULL },
    { STR("admin.override."), CLIENT_ADMIN, false, MISPLACED_OVERRIDE("target") },
    { STR("admin."), CLIENT_ADMIN, true, NULL },
    { STR("source.consumer."), CLIENT_CONSUMER, false, NULL },
    { STR("source.producer."), CLIENT_PRODUCER, false, NULL },
    { STR("source.admin."), CLIENT_ADMIN, false, NULL },
    { STR("target.consumer."), CLIENT_CONSUMER, false,
      "topics of the mirror's own are read by its admin client; what that client needs stands behind target.admin" },
    { STR("target.producer."), CLIENT_PRODUCER, false, NULL },
    { STR("target.admin."), CLIENT_ADMIN, false, NULL },
};

/* The longest alias that begins s and is followed by `end`; null: none. */
static struct str alias_at(const struct loader *l, struct str s, struct str end)
{
    const struct str_list *aliases = &l->c->process.clusters;
    struct str best = STR_NULL;

    for (size_t i = 0; i < aliases->n; i++) {
        struct str a = aliases->at[i];

        if (a.n + end.n <= s.n && (str_is_null(best) || a.n > best.n) && str_starts(s, a) &&
            str_starts(str_part(s, a.n, s.n), end))
            best = a;
    }
    return best;
}

static void skip(struct place *at, struct str key, size_t n)
{
    at->prefix = str_part(key, 0, at->prefix.n + n);
    at->rest = str_part(key, at->prefix.n, key.n);
}

static void split_scope(const struct loader *l, struct str key, struct place *at)
{
    struct str source = alias_at(l, key, STR("->"));
    struct str target;

    *at = (struct place){ .scope = TOP, .prefix = str_part(key, 0, 0), .rest = key };
    if (!str_is_null(source)) {
        target = alias_at(l, str_part(key, source.n + 2, key.n), STR("."));
        if (!str_is_null(target)) {
            at->scope = FLOW;
            at->source = source;
            at->target = target;
            skip(at, key, source.n + 2 + target.n + 1);
            return;
        }
    }
    source = alias_at(l, key, STR("."));
    if (!str_is_null(source)) {
        at->scope = CLUSTER;
        at->source = source;
        skip(at, key, source.n + 1);
    }
}

static void judge_row(struct place *at, const struct opt_row *row)
{
    at->row = row;
    at->verdict = row->value ? GOOD : IDLE;
}

static void misplaced(struct place *at, const struct opt_row *row, const char *advice)
{
    at->row = row;
    at->verdict = MISPLACED;
    at->advice = advice;
}

/* Keys behind a client's prefix; false: there is none. */
static bool judge_client(struct place *at, struct str key)
{
    for (size_t i = 0; i < COUNT(client_prefixes); i++) {
        const struct client_prefix *c = &client_prefixes[i];
        const struct opt_row *row;

        if (!str_starts(at->rest, c->text))
            continue;
        row = opt_find(&client_opts, str_part(at->rest, c->text.n, at->rest.n), c->kind);
        if (row && at->scope != FLOW && !c->in_cluster) {
            misplaced(at, row, "MirrorMaker 2 reads it for a single flow only; write SOURCE->TARGET.%s");
            return true;
        }
        if (at->scope != FLOW && !c->in_cluster)
            continue;
        skip(at, key, c->text.n);
        at->kind = c->kind;
        at->verdict = UNKNOWN;
        if (row && c->idle)
            misplaced(at, row, c->idle);
        else if (row && at->scope == TOP)
            misplaced(at, row,
                      "MirrorMaker 2 does not read it without a cluster either; write CLUSTER.%s");
        else if (row)
            judge_row(at, row);
        return true;
    }
    return false;
}

static bool is_storage(struct str rest)
{
    return str_starts(rest, STR("offset.storage.")) && rest.n > sizeof("offset.storage.") - 1;
}

static void judge_top(struct place *at, struct str key)
{
    const struct opt_row *row = opt_find(&config_opts, at->rest, PROCESS_TOP);

    if (!row)
        row = opt_find(&flow_opts, at->rest, FLOW_ANY | FLOW_WORKER);
    if (!row && config_is_security_key(at->rest))
        row = opt_find(&client_opts, at->rest, CLIENT_ALL);
    if (row) {
        judge_row(at, row);
    } else if (str_starts(at->rest, STR("config.providers.")) || is_storage(at->rest)) {
        at->verdict = GOOD;
    } else if ((row = opt_find(&flow_opts, at->rest, FLOW_OWN))) {
        misplaced(at, row,
                  "MirrorMaker 2 reads it for a single flow only; write SOURCE->TARGET.%s");
    } else if ((row = opt_find(&flow_opts, at->rest, FLOW_TARGET))) {
        misplaced(at, row, "MirrorMaker 2 reads it for a target cluster only; write TARGET.%s");
    } else if (!judge_client(at, key) && (row = opt_find(&client_opts, at->rest, CLIENT_ALL))) {
        misplaced(at, row,
                  row->where & CLIENT_CONSUMER   ? "a client's option; write SOURCE.consumer.%s"
                  : row->where & CLIENT_PRODUCER ? "a client's option; write TARGET.producer.%s"
                                                 : "a client's option; write CLUSTER.admin.%s");
    }
}

static void judge_cluster(struct place *at, struct str key)
{
    const struct opt_row *row;

    row = opt_find(&flow_opts, at->rest, FLOW_TARGET); /* admin.listeners is no client's */
    if (!row && judge_client(at, key))
        return;
    if (config_is_security_key(at->rest)) {
        judge_row(at, opt_find(&client_opts, at->rest, CLIENT_ALL));
    } else if ((row = opt_find(&flow_opts, at->rest, FLOW_TARGET | FLOW_WORKER))) {
        judge_row(at, row);
    } else if (is_storage(at->rest)) {
        at->verdict = GOOD;
    } else if ((row = opt_find(&flow_opts, at->rest, FLOW_ANY | FLOW_OWN))) {
        misplaced(at, row, "an option of flows, not of clusters; write SOURCE->TARGET.%s");
    } else if ((row = opt_find(&client_opts, at->rest, CLIENT_ALL))) {
        misplaced(
            at, row,
            row->where == CLIENT_ALL
                ? "MirrorMaker 2 gives it to its Connect worker only, which does not exist here; "
                  "write CLUSTER.consumer.%s, and the same with producer and admin"
            : row->where & CLIENT_CONSUMER ? "no client reads it there; write CLUSTER.consumer.%s"
            : row->where & CLIENT_PRODUCER ? "no client reads it there; write CLUSTER.producer.%s"
                                           : "no client reads it there; write CLUSTER.admin.%s");
    } else if ((row = opt_find(&config_opts, at->rest, PROCESS_TOP))) {
        misplaced(at, row, "an option of the whole process; write %s");
    }
}

static void judge_flow(const struct loader *l, struct place *at, struct str key)
{
    const struct opt_row *row = opt_find(&flow_opts, at->rest, FLOW_ANY | FLOW_OWN);
    struct str cluster =
        str_starts(at->rest, STR("source.cluster.")) || str_starts(at->rest, STR("target.cluster."))
            ? str_part(at->rest, 15, at->rest.n)
            : STR_NULL;

    if (str_eq(at->source, at->target)) {
        misplaced(at, row, "a cluster is not mirrored to itself; remove %s");
    } else if (config_is_transform(l, str_part(at->prefix, 0, at->source.n + at->target.n + 3), at->rest)) {
        at->verdict = GOOD;
    } else if (row) {
        judge_row(at, row);
    } else if (judge_client(at, key)) {
        return;
    } else if (!str_is_null(cluster) && config_is_security_key(cluster)) {
        judge_row(at, opt_find(&client_opts, cluster, CLIENT_ALL));
    } else if ((row = opt_find(&flow_opts, at->rest, FLOW_TARGET | FLOW_WORKER))) {
        misplaced(at, row,
                  "an option of the worker, which MirrorMaker 2 reads for a target only; write "
                  "TARGET.%s");
    } else if (config_is_security_key(at->rest)) {
        misplaced(at, opt_find(&client_opts, at->rest, CLIENT_ALL),
                  "clients do not read it there; write CLUSTER.%s");
    } else if ((row = opt_find(&config_opts, at->rest, PROCESS_TOP))) {
        misplaced(at, row, "an option of the whole process; write %s");
    }
}

static void judge(const struct loader *l, struct str key, struct place *at)
{
    split_scope(l, key, at);
    at->verdict = UNKNOWN;
    if (at->scope == TOP)
        judge_top(at, key);
    else if (at->scope == CLUSTER)
        judge_cluster(at, key);
    else
        judge_flow(l, at, key);
}

/* Where " #" begins in a value, with the blanks before it; or the value's end. */
static size_t note_at(struct str v)
{
    for (size_t i = 1; i < v.n; i++) {
        if (v.p[i] != '#' || (v.p[i - 1] != ' ' && v.p[i - 1] != '\t'))
            continue;
        while (i > 0 && (v.p[i - 1] == ' ' || v.p[i - 1] == '\t'))
            i--;
        return i;
    }
    return v.n;
}

/* Group names may hold blanks and '#', so may free texts; names of topics, numbers and words may not. */
static bool may_hold_note(const struct opt_row *row)
{
    return row->type == OPT_TEXT || str_starts(str_c(row->key), STR("groups"));
}

static void cut_note(struct loader *l, struct prop *p, const struct opt_row *row)
{
    struct config_entry *e = config_entry_of(l, p);
    size_t at = note_at(p->value);

    if (at == p->value.n || !row || !row->value || e->resolved)
        return;
    if (may_hold_note(row)) {
        config_report(
            l, p, CONFIG_WARNING,
            "the text behind # is part of the value, there are no comments behind values; "
            "give the comment a line of its own");
        return;
    }
    p->value = arena_str(l->a, str_part(p->value, 0, at));
    config_report(
        l, p, CONFIG_WARNING,
        "taken as \"%.*s\": a comment behind a value is part of it for MirrorMaker 2; give the "
        "comment a line of its own",
        STR_ARG(str_part(p->value, 0, 200)));
}

void config_keys_place(struct loader *l)
{
    struct prop *clusters = props_find(l->props, STR("clusters"));
    uint32_t origin;

    /* The aliases come first: without them no key can be placed. */
    if (clusters) {
        const struct opt_row *row = opt_find(&config_opts, clusters->key, PROCESS_TOP);

        cut_note(l, clusters, row);
        config_take(l, clusters, row, &l->c->process, &origin);
    }
    l->places = arena_array(l->a, l->props->n + 1, sizeof(*l->places));
    for (size_t i = 0; i < l->props->n; i++) {
        struct prop *p = &l->props->at[i];
        struct place at;

        judge(l, p->key, &at);
        l->places[i] = at;
        l->entries[i].row = at.verdict == GOOD ? at.row : NULL;
        if (p != clusters)
            cut_note(l, p, l->entries[i].row);
        if (at.verdict == GOOD && str_eq(at.rest, STR("security.protocol")) &&
            !str_eq_nocase(str_trim(p->value), STR("PLAINTEXT")))
            l->secured = true;
    }
}

enum table { CLIENT_TABLE, FLOW_TABLE, PROCESS_TABLE };

static void list_known(struct loader *l, enum table which)
{
    static const struct opt_table *const tables[] = { &client_opts, &flow_opts, &config_opts };
    const struct opt_table *t = tables[which];

    l->known[which] = arena_array(l->a, t->count, sizeof(*l->known[which]));
    for (size_t i = 0; i < t->count; i++) {
        struct str key = str_c(t->rows[i].key);

        if (str_ends(key, STR(".*")))
            continue;
        l->known[which][l->known_n[which]++] = (struct known_key){
            .key = key,
            .mark = suggest_mark(key),
            .where = t->rows[i].where,
            .security = which == CLIENT_TABLE && config_is_security_row(&t->rows[i]),
        };
    }
}

static void offer_known(struct loader *l, struct suggest *s, enum table which, unsigned where, bool security)
{
    if (!l->known[which])
        list_known(l, which);
    for (size_t i = 0; i < l->known_n[which]; i++) {
        const struct known_key *k = &l->known[which][i];

        if ((k->where & where) && (k->security || !security))
            suggest_offer_marked(s, k->key, &k->mark);
    }
}

/* The nearest key of the same scope. */
static struct str nearest_rest(struct loader *l, const struct place *at)
{
    struct suggest s;

    suggest_init(&s, at->rest);
    if (at->kind) {
        offer_known(l, &s, CLIENT_TABLE, at->kind, false);
    } else if (at->scope == FLOW) {
        offer_known(l, &s, FLOW_TABLE, FLOW_ANY | FLOW_OWN, false);
    } else if (at->scope == CLUSTER) {
        offer_known(l, &s, CLIENT_TABLE, CLIENT_ALL, true);
        offer_known(l, &s, FLOW_TABLE, FLOW_TARGET | FLOW_WORKER, false);
    } else {
        offer_known(l, &s, PROCESS_TABLE, PROCESS_TOP, false);
        offer_known(l, &s, FLOW_TABLE, FLOW_ANY | FLOW_WORKER, false);
        offer_known(l, &s, CLIENT_TABLE, CLIENT_ALL, true);
    }
    return s.best;
}

static void offer_names(const struct loader *l, struct suggest *s, bool flows, struct arena *a)
{
    const struct str_list *aliases = &l->c->process.clusters;

    for (size_t i = 0; i < aliases->n; i++) {
        if (!flows)
            suggest_offer(s, aliases->at[i]);
        for (size_t j = 0; flows && j < aliases->n; j++)
            if (i != j)
                suggest_offer(s, arena_fmt(a, "%.*s->%.*s", STR_ARG(aliases->at[i]),
                                           STR_ARG(aliases->at[j])));
    }
}

/* A key at top level that would be known behind another alias or flow: us.west.enabled, Us-west.… */
static struct str nearest_scope(struct loader *l, struct str key)
{
    bool flows = str_find(key, STR("->"), 0) >= 0;
    struct str best = STR_NULL;
    size_t least = SIZE_MAX;

    if (flows && l->c->process.clusters.n > 20)
        return best; /* not worth a look at hundreds of pairs for each key */
    for (size_t i = 1; i + 1 < key.n && i < SUGGEST_NAME_MAX; i++) {
        struct suggest s;
        struct str whole;
        struct place at;

        if (key.p[i] != '.')
            continue;
        suggest_init(&s, str_part(key, 0, i));
        offer_names(l, &s, flows, l->a);
        if (str_is_null(s.best) || s.distance >= least)
            continue;
        whole = arena_fmt(l->a, "%.*s%.*s", STR_ARG(s.best), STR_ARG(str_part(key, i, key.n)));
        judge(l, whole, &at);
        if (at.verdict == GOOD || at.verdict == IDLE) {
            best = whole;
            least = s.distance;
        }
    }
    return best;
}

static void report_unknown(struct loader *l, const struct prop *p, const struct place *at)
{
    struct str best;

    if (l->c->problem_count == CONFIG_PROBLEMS_MAX) {
        config_report(l, p, CONFIG_WARNING, "no such option");
        return; /* nobody will see it: the nearest names of many thousands are dear */
    }
    best = nearest_rest(l, at);
    if (!str_is_null(best)) {
        config_report(l, p, CONFIG_WARNING, "no such option; did you mean %.*s%.*s?",
                      STR_ARG(at->prefix), STR_ARG(best));
        return;
    }
    if (at->scope == TOP)
        best = nearest_scope(l, p->key);
    if (!str_is_null(best))
        config_report(l, p, CONFIG_WARNING, "no such option; did you mean %.*s?", STR_ARG(best));
    else if (at->scope == TOP && str_starts(p->value, STR("->")))
        config_report(l, p, CONFIG_WARNING,
                      "no such option: a blank ends a key; write SOURCE->TARGET without blanks");
    else if (at->scope == TOP && str_find(p->key, STR("->"), 0) > 0)
        config_report(l, p, CONFIG_WARNING,
                      "names a cluster that is not in clusters; add it there or mend the name");
    else
        config_report(l, p, CONFIG_WARNING,
                      "no such option of MirrorMaker 2, Kafka's clients or Heliostat; remove it or "
                      "mend the name");
}

/* Advice with the key in place of %s, and with the alias in place of CLUSTER or TARGET where it is known. */
static void report_misplaced(struct loader *l, const struct prop *p, const struct place *at)
{
    struct str client = at->kind == CLIENT_CONSUMER   ? STR("consumer.")
                        : at->kind == CLIENT_PRODUCER ? STR("producer.")
                        : at->kind == CLIENT_ADMIN    ? STR("admin.")
                                                      : STR("");
    struct str word = at->scope == CLUSTER ? STR("CLUSTER.") : STR("TARGET.");
    struct str advice = str_c(at->advice);
    struct buf out;

    buf_init(&out, 16 * KiB);
    while (advice.n) {
        size_t used = 1;

        if (str_starts(advice, STR("%s"))) {
            buf_fmt(&out, "%.*s%.*s", STR_ARG(client), STR_ARG(at->rest));
            used = 2;
        } else if (at->scope != TOP && str_starts(advice, word)) {
            buf_fmt(&out, "%.*s.", STR_ARG(at->scope == CLUSTER ? at->source : at->target));
            used = word.n;
        } else {
            buf_put_char(&out, advice.p[0]);
        }
        advice = str_part(advice, used, advice.n);
    }
    config_report(l, p, CONFIG_WARNING, "has no effect here: %.*s", STR_ARG(buf_str(&out)));
    buf_fini(&out);
}

static void report_entry(struct loader *l, const struct prop *p)
{
    struct place at = l->places[p - l->props->at];
    bool by_alias;

    by_alias = at.row && at.row->alias && str_ends(p->key, str_c(at.row->alias));
    if (at.verdict == UNKNOWN)
        report_unknown(l, p, &at);
    else if (at.verdict == MISPLACED)
        report_misplaced(l, p, &at);
    else if (at.verdict == IDLE && !(l->secured && config_is_security_key(at.rest)))
        config_report(l, p, CONFIG_WARNING, "has no effect: %s", at.row->doc);
    else if (by_alias)
        config_report(l, p, CONFIG_WARNING,
                      "an older name, read where the new one is absent; write %s", at.row->key);
    else if (at.verdict == GOOD && at.row && at.row->when == OPT_LATER &&
             !config_entry_of(l, p)->refused)
        config_report(l, p, CONFIG_WARNING,
                      "was read and checked, but what it asks for comes with a later release");
}

void config_keys_report(struct loader *l)
{
    for (size_t i = 0; i < l->props->n; i++)
        report_entry(l, &l->props->at[i]);
}
