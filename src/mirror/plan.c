/* plan.c -- keeps what one look at the topics has brought together.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/plan.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

#define SAID_MAX 160 /* bytes of a broker's own words that are repeated */

struct plan *plan_new(struct arena *a, size_t topics_max, int64_t now_ms)
{
    struct plan *p = arena_alloc(a, sizeof(*p));

    p->arena = a;
    p->now_ms = now_ms;
    p->topics_max = topics_max;
    p->wants = arena_array(a, topics_max, sizeof(*p->wants));
    p->ids = arena_array(a, topics_max, sizeof(*p->ids));
    p->haves = arena_array(a, topics_max * 2, sizeof(*p->haves)); /* routes too */
    p->refused = arena_array(a, topics_max, sizeof(*p->refused));
    p->faults = arena_array(a, topics_max * 2, sizeof(*p->faults));
    return p;
}

static void add_fault_of(struct plan *p, struct str target_name, const struct topic_want *want, const char *code,
                         struct str text)
{
    struct plan_described *f;

    if (p->faults_n == p->topics_max * 2)
        return;
    f = &p->faults[p->faults_n++];
    f->target_name = target_name;
    f->want = want;
    fault_set(&f->fault, p->now_ms, code, "%.*s", STR_ARG(text));
}

static void add_fault(struct plan *p, struct str target_name, int32_t kerr, struct str text)
{
    add_fault_of(p, target_name, NULL, kerr_name(kerr), text);
}

/* What to do, with the right that is missing where one is. */
static const char *advice(int32_t kerr, const char *right)
{
    static _Thread_local char text[200];

    if (kerr_class(API_METADATA, kerr) != K_DENIED)
        return kerr_advice(kerr);
    snprintf(text, sizeof(text),
             "; grant %s on it to the principal of this connection (User:ANONYMOUS where the listener does not "
             "authenticate)", right);
    return text;
}

/* A copy that no broker would create is not even asked for: no partition of it could ever start. */
static void judge_name(struct plan *p, struct topic_want *w, const struct policy *policy)
{
    struct str why = topics_name_fault(w->target_name, p->arena);
    if (str_is_null(why) && policy_is_own(policy, w->name, w->target_name))
        why = arena_fmt(p->arena, "a rule of heliostat.topic.map gives its copy the name %.*s, which is that of an internal "
                        "topic: mend the rule", STR_ARG(w->target_name));

    w->unnameable = !str_is_null(why);
    if (w->unnameable)
        add_fault(p, w->target_name, KERR_INVALID_TOPIC_EXCEPTION, why);
}

void plan_add_source(struct plan *p, const struct policy *policy, struct filter *f,
                     const struct kafka_metadata_response_topic *t)
{
    enum policy_verdict v = policy_mirrors(policy, f, t->name);
    struct topic_want *w;

    if (t->is_internal)
        v = POLICY_INTERNAL;
    if (!policy_verdict_is_yes(v)) {
        p->refused[p->refused_n++] = (struct plan_refused){ arena_str(p->arena, t->name), v };
        return;
    }
    w = &p->wants[p->wants_n];
    p->ids[p->wants_n++] = t->topic_id;
    w->name = arena_str(p->arena, t->name);
    w->route = w->target_name = policy_remote(policy, w->name, p->arena);
    w->partitions = t->error_code ? 0 : t->partitions.n;
    w->by_rule = v == POLICY_HEARTBEATS;
    judge_name(p, w, policy);
    if (t->error_code && !w->unnameable)
        add_fault(p, w->target_name, t->error_code,
                  arena_fmt(p->arena, "the source does not describe topic %.*s: %s%s", STR_ARG(w->name),
                            kerr_text(t->error_code), advice(t->error_code, "Describe")));
}

/* --- records that go elsewhere than to the copy --- */

void plan_route(struct plan *p, struct transforms *t)
{
    for (size_t i = 0; t && i < p->wants_n; i++) {
        struct topic_want *w = &p->wants[i];
        struct str why;

        if (w->unnameable)
            continue;
        w->route = transforms_route(t, w->target_name, p->arena);
        why = str_eq(w->route, w->target_name) ? STR_NULL : topics_name_fault(w->route, p->arena);
        if (str_is_null(why))
            continue;
        w->unnameable = true;
        add_fault_of(p, w->target_name, w, kerr_name(KERR_INVALID_TOPIC_EXCEPTION),
                     arena_fmt(p->arena, "a RegexRouter renames the copy %.*s: %.*s", STR_ARG(w->target_name), STR_ARG(why)));
    }
}

bool plan_accepts_nothing(const struct plan *p)
{
    for (size_t i = 0; i < p->wants_n; i++)
        if (!p->wants[i].by_rule)
            return false;
    return true;
}

bool plan_misses_route(const struct plan *p, const struct topic_want *w)
{
    return !w->unnameable && !str_eq(w->route, w->target_name) && !plan_find_have(p, w->route);
}

void plan_take_route(struct plan *p, struct str route, int32_t kerr)
{
    if (kerr == KERR_NONE || kerr == KERR_LEADER_NOT_AVAILABLE)
        return;
    for (size_t i = 0; i < p->wants_n; i++) {
        struct topic_want *w = &p->wants[i];

        if (!w->unnameable && str_eq(w->route, route))
            add_fault_of(p, w->target_name, w, kerr_name(kerr),
                         arena_fmt(p->arena, "a RegexRouter sends the records to %.*s, which the target does not have and "
                                   "does not make by itself: create it with %d partitions there, or rename with "
                                   "heliostat.topic.map, which does", STR_ARG(route), w->partitions));
    }
}

/* --- two topics, one copy --- */

static int by_copy(const void *a, const void *b)
{
    const struct topic_want *x = *(struct topic_want *const *)a, *y = *(struct topic_want *const *)b;
    int c = str_cmp(x->route, y->route);

    return c ? c : str_cmp(x->name, y->name);
}

static void refuse(struct plan *p, struct topic_want *w, const struct topic_want *other, bool goes_on)
{
    w->unnameable = true;
    add_fault_of(p, w->target_name, w, "COLLISION",
                 arena_fmt(p->arena, "the copy would be named %.*s, and so would that of topic %.*s%s: one copy takes one "
                           "topic; mend heliostat.topic.map (or the transform that renames), or leave one of them out "
                           "with topics.exclude", STR_ARG(w->route), STR_ARG(other->name),
                           goes_on ? ", which has it already and goes on" : ""));
}

/* all[0..n): the topics of one copy. */
static void judge_collision(struct plan *p, struct topic_want **all, size_t n, bool (*is_ours)(void *arg, struct str topic),
                            void *arg)
{
    size_t ours = 0, owner = 0;

    for (size_t i = 0; i < n; i++) {
        if (!is_ours || !is_ours(arg, all[i]->name))
            continue;
        owner = i;
        ours++;
    }
    for (size_t i = 0; i < n; i++)
        if (ours != 1 || i != owner)
            refuse(p, all[i], ours == 1 ? all[owner] : all[i ? 0 : 1], ours == 1);
}

void plan_refuse_collisions(struct plan *p, bool (*is_ours)(void *arg, struct str topic), void *arg)
{
    struct topic_want **all = arena_array(p->arena, p->wants_n, sizeof(*all));
    size_t n = 0;

    for (size_t i = 0; i < p->wants_n; i++)
        if (!p->wants[i].unnameable)
            all[n++] = &p->wants[i];
    if (n)
        qsort(all, n, sizeof(*all), by_copy);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && str_eq(all[i]->route, all[end]->route); end++)
            ;
        if (end - i > 1)
            judge_collision(p, all + i, end - i, is_ours, arg);
    }
}

void plan_add_target(struct plan *p, const struct kafka_metadata_response_topic *t)
{
    if (t->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION)
        return;
    if (t->error_code && t->error_code != KERR_LEADER_NOT_AVAILABLE)
        add_fault(p, arena_str(p->arena, t->name), t->error_code,
                  arena_fmt(p->arena, "the target does not describe the copy %.*s: %s%s", STR_ARG(t->name),
                            kerr_text(t->error_code), advice(t->error_code, "Describe")));
    p->haves[p->haves_n++] = (struct topic_have){
        .name = arena_str(p->arena, t->name),
        .partitions = t->partitions.n,
        .replicas = t->partitions.n > 0 ? MAX(t->partitions.at[0].replica_nodes.n, 0) : 0,
    };
}

static bool is_about(const struct plan_described *f, const struct topic_want *w)
{
    return f->want ? f->want == w : str_eq(f->target_name, w->target_name);
}

static bool is_faulty(const struct plan *p, const struct topic_want *w)
{
    for (size_t i = 0; i < p->faults_n; i++)
        if (is_about(&p->faults[i], w))
            return true;
    return false;
}

static int by_have(const void *a, const void *b)
{
    return str_cmp(((const struct topic_have *)a)->name, ((const struct topic_have *)b)->name);
}

const struct topic_have *plan_find_have(const struct plan *p, struct str target_name)
{
    struct topic_have key = { .name = target_name };

    return p->haves_n ? bsearch(&key, p->haves, p->haves_n, sizeof(key), by_have) : NULL;
}

void plan_decide(struct plan *p)
{
    struct topic_action *actions = arena_array(p->arena, p->wants_n, sizeof(*actions));
    size_t n;

    if (p->haves_n)
        qsort(p->haves, p->haves_n, sizeof(*p->haves), by_have);
    n = topics_plan(p->wants, p->wants_n, p->haves, p->haves_n, actions);
    p->creates = arena_array(p->arena, n, sizeof(*p->creates));
    p->grows = arena_array(p->arena, n, sizeof(*p->grows));
    p->create_of = arena_array(p->arena, p->wants_n, sizeof(*p->create_of));
    p->grow_of = arena_array(p->arena, p->wants_n, sizeof(*p->grow_of));
    for (size_t i = 0; i < n; i++) {
        size_t want = (size_t)(actions[i].want - p->wants);

        if (is_faulty(p, actions[i].want))
            continue;
        if (actions[i].kind == TOPIC_CREATE) {
            p->create_of[want] = &p->creates[p->creates_n++];
            *p->create_of[want] = (struct plan_create){ .want = actions[i].want };
        } else {
            p->grow_of[want] = &p->grows[p->grows_n++];
            *p->grow_of[want] = (struct plan_grow){ .want = actions[i].want, .was = actions[i].was };
        }
    }
}

struct topic_config *plan_entries(struct arena *a, const struct kafka_describe_configs_response_result *r, size_t *n)
{
    struct topic_config *all = arena_array(a, (size_t)MAX(r->configs.n, 0), sizeof(*all));

    *n = (size_t)MAX(r->configs.n, 0);
    for (size_t i = 0; i < *n; i++) {
        const struct kafka_describe_configs_response_config *e = &r->configs.at[i];

        all[i] = (struct topic_config){ arena_str(a, e->name), arena_str(a, e->value), e->config_source,
                                        e->read_only, e->is_sensitive };
    }
    return all;
}

static void take_configs(struct plan *p, struct plan_create *c,
                         const struct kafka_describe_configs_response_result *r,
                         struct filter *exclude, const struct flow_config *config)
{
    size_t n;
    const struct topic_config *all = plan_entries(p->arena, r, &n);
    const struct topic_config **chosen = arena_array(p->arena, n, sizeof(void *));

    n = topics_creation_configs(all, n, exclude, config->defaults_from_source, chosen);
    c->configs = arena_array(p->arena, n, sizeof(*c->configs));
    for (size_t i = 0; i < n; i++)
        c->configs[i] = *chosen[i];
    c->configs_n = n;
}

void plan_add_configs(struct plan *p, const struct kafka_describe_configs_response *r,
                      const struct flow_config *config)
{
    struct filter *exclude = NULL;
    struct str_list none = { 0 };
    struct str why;

    if (filter_new(&config->config_properties_exclude, &none, p->arena, &exclude, &why))
        return; /* the configuration was checked */
    for (int32_t i = 0; i < r->results.n; i++) {
        const struct kafka_describe_configs_response_result *t = &r->results.at[i];

        for (size_t j = 0; j < p->creates_n; j++) {
            struct plan_create *c = &p->creates[j];

            if (c->described || !str_eq(c->want->name, t->resource_name))
                continue;
            c->described = true;
            if (t->error_code)
                fault_set(&c->fault, p->now_ms, kerr_name(t->error_code),
                          "the source does not tell the topic's configs: %s; grant DescribeConfigs on it",
                          kerr_text(t->error_code));
            else
                take_configs(p, c, t, exclude, config);
        }
    }
    filter_free(&exclude);
    for (size_t j = 0; j < p->creates_n; j++) /* a topic left out of the answer is not asked for again */
        if (!p->creates[j].described && r->results.n == 0)
            p->creates[j].described = true;
}

/* Creations and growths are sorted by target name (topics_plan). */
struct plan_create *plan_find_create(struct plan *p, struct str target_name)
{
    size_t low = 0, high = p->creates_n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = str_cmp(p->creates[mid].want->target_name, target_name);

        if (c == 0)
            return &p->creates[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

struct plan_grow *plan_find_grow(struct plan *p, struct str target_name)
{
    size_t low = 0, high = p->grows_n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = str_cmp(p->grows[mid].want->target_name, target_name);

        if (c == 0)
            return &p->grows[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Leaves out the config that this target does not know; false when it is none of them. */
static bool drop_config(struct plan_create *c, struct str name)
{
    if (str_is_null(name))
        return false;
    for (size_t i = 0; i < c->configs_n; i++) {
        if (!str_eq(c->configs[i].name, name))
            continue;
        c->configs[i] = c->configs[--c->configs_n];
        return true;
    }
    return false;
}

/* The config that the target's words are about, the longest if several names fit; null: none. */
static struct str named_config(const struct plan_create *c, struct str message)
{
    struct str found = STR_NULL;

    for (size_t i = 0; message.n && i < c->configs_n; i++)
        if (c->configs[i].name.n > found.n && str_find(message, c->configs[i].name, 0) >= 0)
            found = c->configs[i].name;
    return found;
}

/* The copy is wanted more than one of its configs: it is made without what is refused. */
static bool do_without(struct plan *p, struct plan_create *c, const struct kafka_create_topics_response_topic *t,
                       const struct flow_config *config)
{
    struct str name = named_config(c, t->error_message);

    if (t->error_code != KERR_INVALID_CONFIG || c->configs_n == 0)
        return false;
    log_event(EV_CONFIG_REFUSED, kv_str("flow", config->name), kv_str("topic", c->want->target_name),
              kv_c("code", kerr_name(t->error_code)), kv_str("config", name),
              kv_str("text", str_part(t->error_message, 0, SAID_MAX)));
    p->configs_left = true;
    if (!drop_config(c, name))
        c->configs_n = 0; /* which of them it is, nobody says: the comparison sets them one by one */
    return true;
}

void plan_take_created(struct plan *p, struct plan_create *c,
                       const struct kafka_create_topics_response_topic *t,
                       const struct flow_config *config)
{
    if (t->error_code == KERR_NONE || t->error_code == KERR_TOPIC_ALREADY_EXISTS) {
        c->done = true;
        log_event(EV_TOPIC_CREATED, kv_str("flow", config->name), kv_str("topic", c->want->name),
                  kv_str("target_topic", c->want->target_name), kv_int("partitions", c->want->partitions),
                  kv_int("replication_factor", config->replication_factor));
        return;
    }
    if (t->error_code == KERR_INVALID_CONFIG && drop_config(c, topics_unknown_config(t->error_message)))
        return; /* once more without it */
    if (do_without(p, c, t, config))
        return;
    fault_set(&c->fault, p->now_ms, kerr_name(t->error_code),
              "topic %.*s cannot be created at the target: %s%s%s%.*s", STR_ARG(c->want->target_name),
              kerr_text(t->error_code), advice(t->error_code, "Create"), t->error_message.n ? "; it says: " : "",
              STR_ARG(str_part(t->error_message, 0, SAID_MAX)));
}

void plan_take_grown(struct plan *p, struct plan_grow *g, int32_t kerr, struct str message,
                     const struct flow_config *config)
{
    if (kerr == KERR_NONE) {
        g->done = true;
        log_event(EV_TOPIC_GROWN, kv_str("flow", config->name), kv_str("topic", g->want->name),
                  kv_str("target_topic", g->want->target_name), kv_int("was", g->was),
                  kv_int("now", g->want->partitions));
        return;
    }
    fault_set(&g->fault, p->now_ms, kerr_name(kerr),
              "topic %.*s cannot be grown from %d to %d partitions: %s%s%s%.*s", STR_ARG(g->want->target_name),
              g->was, g->want->partitions, kerr_text(kerr), advice(kerr, "Alter"), message.n ? "; it says: " : "",
              STR_ARG(str_part(message, 0, SAID_MAX)));
}

const struct fault *plan_fault(const struct plan *p, const struct topic_want *w)
{
    size_t i = (size_t)(w - p->wants);
    const struct plan_create *c = p->create_of ? p->create_of[i] : NULL;
    const struct plan_grow *g = p->grow_of ? p->grow_of[i] : NULL;

    if (c && fault_is_set(&c->fault))
        return &c->fault;
    if (g && fault_is_set(&g->fault))
        return &g->fault;
    for (size_t k = 0; k < p->faults_n; k++)
        if (is_about(&p->faults[k], w))
            return &p->faults[k].fault;
    return NULL;
}
