/* director_configs_alter.c -- what differs between a topic and its copy, and the requests that make it equal.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The changes of a topic go together; refused together, they go one by one, so that the refused entry is known and holds
 * up no other. Thread: control.
 */
#include "mirror/director_configs_int.h"

#include "base/log.h"

#define OP_SET    0
#define OP_DELETE 1
#define SAID_MAX  160 /* bytes of a broker's own words that are repeated */

/* min.insync.replicas above the number of replicas would make the copy refuse all that is written to it. */
static bool is_unbearable(struct director_configs *c, struct config_topic *t, const struct topic_change *h)
{
    const struct mirrored *m = director_configs_find_mirrored(director_configs_owner(c), t->name);
    int64_t wanted;

    if (!m || m->replicas <= 0 || !str_eq(h->name, STR("min.insync.replicas")) || str_is_null(h->value) ||
        !str_to_i64(h->value, &wanted) || wanted <= m->replicas)
        return false;
    director_configs_refuse(c, t, "TOO_FEW_REPLICAS", h->name,
           arena_fmt(&c->arena, "min.insync.replicas of %.*s stays %.*s: the source has %.*s and the copy only %d replica%s; "
                     "give the copy more replicas, or put min.insync.replicas into config.properties.exclude",
                     STR_ARG(t->target_name), STR_ARG(h->was), STR_ARG(h->value), m->replicas,
                     m->replicas == 1 ? "" : "s"));
    t->differing++;
    return true;
}

static void tell_difference(struct director_configs *c, const struct config_topic *t, enum event event,
                            const struct topic_change *h)
{
    log_event(event, kv_str("flow", director_configs_owner(c)->config->name), kv_str("topic", t->target_name),
              kv_str("config", h->name), kv_str("was", h->was), kv_str("now", h->value));
}

static void compare(struct director_configs *c, struct config_topic *t)
{
    struct director *d = director_configs_owner(c);
    struct topic_sides sides = { .source = t->source, .source_n = t->source_n, .target = t->target,
                                 .target_n = t->target_n };
    size_t n, kept = 0;

    t->changes = arena_array(&c->arena, t->source_n, sizeof(*t->changes));
    n = topics_changes(&sides, c->exclude, d->config->defaults_from_source,
                       d->config->oversize == FLOW_OVERSIZE_RAISE, t->changes);
    for (size_t i = 0; i < n; i++) {
        if (d->config->sync_dry_run) {
            tell_difference(c, t, EV_CONFIG_DIFFERS, &t->changes[i]);
            t->differing++;
        } else if (!is_unbearable(c, t, &t->changes[i])) {
            t->changes[kept++] = t->changes[i];
        }
    }
    t->changes_n = kept;
    t->done = kept == 0;
}

static void changed(struct director_configs *c, struct config_topic *t, size_t i)
{
    c->altered++;
    tell_difference(c, t, EV_CONFIG_ALTERED, &t->changes[i]);
}

static void take_refusal(struct director_configs *c, struct config_topic *t,
                         const struct kafka_incremental_alter_configs_response_resource *r)
{
    enum kerr_class class = kerr_class(API_INCREMENTAL_ALTER_CONFIGS, r->error_code);
    const struct topic_change *h = &t->changes[t->at];

    if (class == K_GONE) {
        t->done = true;
        return;
    }
    if (class != K_DENIED && !t->singly && t->changes_n > 1) {
        t->singly = true; /* which of them it is, the answer does not say */
        return;
    }
    director_configs_refuse(c, t, kerr_name(r->error_code), h->name,
           arena_fmt(&c->arena, "%.*s of %.*s cannot be made %.*s as at the source: %s%s%s%.*s", STR_ARG(h->name),
                     STR_ARG(t->target_name), STR_ARG(str_is_null(h->value) ? STR("the default") : h->value),
                     kerr_text(r->error_code),
                     class == K_DENIED ? "; grant AlterConfigs on it, or set sync.topic.configs.enabled = false" : "",
                     r->error_message.n ? "; it says: " : "", STR_ARG(str_part(r->error_message, 0, SAID_MAX))));
    t->differing += class == K_DENIED && !t->singly ? (int64_t)t->changes_n : 1;
    t->at++;
    t->done = class == K_DENIED || t->at == t->changes_n;
}

static void take_altered(struct director_configs *c, const struct kafka_incremental_alter_configs_response_resource *r)
{
    struct config_topic *t = director_configs_find_topic(c, r->resource_name, true);

    if (!t || t->done)
        return;
    t->answered = true;
    if (r->error_code) {
        take_refusal(c, t, r);
        return;
    }
    for (size_t i = t->singly ? t->at : 0; i < (t->singly ? t->at + 1 : t->changes_n); i++)
        changed(c, t, i);
    t->at = t->singly ? t->at + 1 : t->changes_n;
    t->done = t->at == t->changes_n;
}

static bool may_pass(int32_t kerr)
{
    switch (kerr_class(API_INCREMENTAL_ALTER_CONFIGS, kerr)) {
    case K_REFRESH:
    case K_AGAIN:
    case K_UNSURE:
        return true;
    default:
        return false;
    }
}

static void on_altered(struct call *call)
{
    struct director_configs *c = container_of(call, struct director_configs, call);
    const struct kafka_incremental_alter_configs_response *r = call->response;
    struct route controller = { .kind = ROUTE_CONTROLLER };

    if (director_configs_call_failed(c, "altering configs of copies"))
        return;
    for (int32_t i = 0; i < r->responses.n; i++) {
        int32_t kerr = r->responses.at[i].error_code;

        if (!may_pass(kerr))
            continue;
        cluster_reroute(director_configs_owner(c)->target, &controller);
        director_configs_try_later(c, kerr_name(kerr), "altering configs of copies", kerr_text(kerr));
        return;
    }
    for (int32_t i = 0; i < r->responses.n; i++)
        take_altered(c, &r->responses.at[i]);
    for (size_t i = 0; i < c->topics_n; i++) {
        struct config_topic *t = &c->topics[i];

        if (t->done || t->answered)
            continue;
        t->done = true;
        director_configs_refuse(c, t, "NO_ANSWER", STR_NULL,
               arena_fmt(&c->arena, "the target says nothing of the configs of %.*s", STR_ARG(t->target_name)));
    }
    task_wake(director_configs_owner(c)->loop, &c->step);
}

static void add_changes(struct director_configs *c, struct kafka_incremental_alter_configs_request_resource *r,
                        struct config_topic *t)
{
    size_t from = t->singly ? t->at : 0, to = t->singly ? t->at + 1 : t->changes_n;

    t->answered = false;
    r->resource_type = RESOURCE_TOPIC;
    r->resource_name = t->target_name;
    r->configs.at = arena_array(&c->arena, to - from, sizeof(*r->configs.at));
    r->configs.n = (int32_t)(to - from);
    for (size_t i = from; i < to; i++) {
        r->configs.at[i - from].name = t->changes[i].name;
        r->configs.at[i - from].value = t->changes[i].value;
        r->configs.at[i - from].config_operation = str_is_null(t->changes[i].value) ? OP_DELETE : OP_SET;
    }
}

void director_configs_alter_portion(struct director_configs *c)
{
    struct kafka_incremental_alter_configs_request *q = &c->request.alter;

    codec_init(&kafka_incremental_alter_configs_request_msg, q);
    q->resources.at = arena_array(&c->arena, c->topics_n, sizeof(*q->resources.at));
    q->resources.n = 0;
    for (size_t i = 0; i < c->topics_n; i++) {
        struct config_topic *t = &c->topics[i];

        if (!t->done && !t->changes)
            compare(c, t);
        if (!t->done)
            add_changes(c, &q->resources.at[q->resources.n++], t);
    }
    if (q->resources.n)
        director_configs_send(c, director_configs_owner(c)->target, API_INCREMENTAL_ALTER_CONFIGS, ROUTE_CONTROLLER, on_altered);
    else
        director_configs_end_portion(c);
}
