/* director_verify.c -- looks at the internal topics that are there already: whether they keep what is written to them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Somebody, or a broker that makes topics by itself, may have made them before. A topic of positions or pairs that is not
 * compacted, or not only that, forgets after a week, and all is copied again: as Connect refuses to start on it, the flow
 * waits until it is mended, and says how. Nothing is altered by itself: that topic may be another program's. Whatever else
 * is not as it would have been made is told once and used as it is, and so is what somebody alters while the flow runs.
 * Who may not read configs is not held up, as with Connect. Thread: control.
 */
#include "base/log.h"
#include "mirror/director_internal.h"

static struct internal_topic *find(struct director *d, struct str name)
{
    for (int32_t i = 0; i < d->prepare.topics_n; i++)
        if (str_eq(d->prepare.topics[i].name, name) && !d->prepare.topics[i].missing)
            return &d->prepare.topics[i];
    return NULL;
}

static void add(struct director *d, struct internal_topic *t, struct str text)
{
    t->wrong = t->wrong.n ? arena_fmt(&d->arena, "%.*s; %.*s", STR_ARG(t->wrong), STR_ARG(text)) : text;
}

static void judge_policy(struct director *d, struct internal_topic *t, struct str policy)
{
    if (t->loss == LOSES_NOTHING || str_eq(policy, STR("compact")))
        return;
    t->forgets = t->loss == LOSES_PLACE;
    add(d, t, arena_fmt(&d->arena, "its cleanup.policy is %.*s, so %s is deleted after its retention; set "
                                   "cleanup.policy=compact on it (kafka-configs.sh --alter --entity-type topics --entity-name "
                                   "%.*s --add-config cleanup.policy=compact)", STR_ARG(policy),
                        t->forgets ? "where the flow stands" : "what old offsets are translated with", STR_ARG(t->name)));
}

static void judge_shape(struct director *d, struct internal_topic *t)
{
    if (t->partitions == 1 && t->partitions_found > 1 && t->loss != LOSES_PLACE)
        add(d, t, arena_fmt(&d->arena, "it has %d partitions, of which only the first is used", t->partitions_found));
    if (t->replicas_found > 0 && t->replicas_found < t->replication_factor)
        add(d, t, arena_fmt(&d->arena, "it has %d replica%s, %s asks for %d", t->replicas_found,
                            t->replicas_found == 1 ? "" : "s", t->factor_key, t->replication_factor));
}

static void tell(struct director *d, int32_t i)
{
    struct internal_topic *t = &d->prepare.topics[i];
    uint32_t *told = &d->prepare.told[d->prepare.side];

    if (!t->wrong.n)
        *told &= ~(1u << i);
    if (!t->wrong.n || *told & 1u << i)
        return;
    *told |= 1u << i;
    log_event(EV_OWN_TOPIC, kv_str("flow", d->config->name), kv_str("topic", t->name), kv_str("text", t->wrong));
}

static void conclude(struct director *d, void (*verified)(struct director *d))
{
    const struct internal_topic *bad = NULL;

    for (int32_t i = 0; i < d->prepare.topics_n; i++) {
        struct internal_topic *t = &d->prepare.topics[i];

        if (t->missing)
            continue;
        judge_shape(d, t);
        if (d->plan_only)
            continue;
        tell(d, i);
        if (t->forgets && d->state != DIRECTOR_REFRESHING) /* what runs is not stopped by it */
            bad = t;
    }
    if (bad)
        director_fail(d, "OWN_TOPIC_FORGETS", "topic %.*s cannot be used: %.*s", STR_ARG(bad->name), STR_ARG(bad->wrong));
    else
        verified(d);
}

static void on_described(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_describe_configs_response *r = call->response;

    if (director_call_failed(d, "looking at internal topics"))
        return;
    for (int32_t i = 0; i < r->results.n; i++) {
        const struct kafka_describe_configs_response_result *one = &r->results.at[i];
        struct internal_topic *t = find(d, one->resource_name);

        if (t && one->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION)
            t->missing = true; /* deleted just now, or that broker does not know it yet: it is asked for */
        else if (t && one->error_code)
            add(d, t, arena_fmt(&d->arena, "its configs cannot be looked at (%s)%s", kerr_name(one->error_code),
                                kerr_class(API_DESCRIBE_CONFIGS, one->error_code) == K_DENIED ? "; grant DescribeConfigs on it" : ""));
        for (int32_t j = 0; t && j < one->configs.n; j++)
            if (str_eq(one->configs.at[j].name, STR("cleanup.policy")))
                judge_policy(d, t, one->configs.at[j].value);
    }
    conclude(d, d->prepare.verified);
}

void director_verify(struct director *d, void (*verified)(struct director *d))
{
    struct kafka_describe_configs_request *q = &d->request.configs;
    struct cluster *cl = d->prepare.side == 0 ? d->target : d->source;

    codec_init(&kafka_describe_configs_request_msg, q);
    q->resources.at = arena_array(&d->arena, INTERNAL_MAX, sizeof(*q->resources.at));
    q->resources.n = 0;
    for (int32_t i = 0; i < d->prepare.topics_n; i++) {
        struct kafka_describe_configs_request_resource *r = &q->resources.at[q->resources.n];

        if (d->prepare.topics[i].missing || d->prepare.topics[i].loss == LOSES_NOTHING)
            continue;
        r->resource_type = 2;
        r->resource_name = d->prepare.topics[i].name;
        r->configuration_keys.at = arena_array(&d->arena, 1, sizeof(struct str));
        r->configuration_keys.at[0] = STR("cleanup.policy");
        r->configuration_keys.n = 1;
        q->resources.n++;
    }
    if (q->resources.n == 0 || cluster_version(cl, API_DESCRIBE_CONFIGS) < 0) {
        conclude(d, verified);
        return;
    }
    d->prepare.verified = verified;
    director_call(d, cl, API_DESCRIBE_CONFIGS, ROUTE_ANY, on_described);
}
