/* director_prepare.c -- makes the internal topics that a flow needs, and writes its heartbeats.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Those that are there are looked at first (director_verify.c). Only topics that are missing are created, so that an
 * existing set-up needs no right to create. The topics that the flow cannot do without (positions and pairs;
 * heartbeats, where the flow does nothing else) are tried until they are there; the others are for tools (mm2-spec
 * 5.9), or are made because MirrorMaker 2 makes them (positions of a flow that only writes heartbeats): they hold
 * nothing up. All are looked at again at every refresh of topics: one that somebody has deleted is made again. Thread:
 * control.
 */
#include "mirror/director_prepare.h"

#include "base/log.h"
#include "mirror/director_internal.h"
#include "mirror/formats.h"

/* The internal topics of the side whose turn it is. */
static void list_internal(struct director *d)
{
    const struct flow_config *c = d->config;
    bool target = d->prepare.side == 0, syncs_at_target = c->offset_syncs_location == FLOW_SYNCS_AT_TARGET;
    struct internal_topic *out = d->prepare.topics;
    int32_t n = 0;

    if (target) {
        out[n++] = (struct internal_topic){ .name = d->heartbeats_topic, .partitions = 1,
                                            .replication_factor = (int16_t)c->heartbeats_topic_replication_factor,
                                            .factor_key = "heartbeats.topic.replication.factor", .needed = !c->enabled };
        out[n++] = (struct internal_topic){ .name = c->offsets_topic, .partitions = c->offset_storage_partitions,
                                            .replication_factor = (int16_t)c->offset_storage_replication_factor,
                                            .factor_key = "offset.storage.replication.factor",
                                            .loss = c->enabled ? LOSES_PLACE : LOSES_NOTHING, .needed = c->enabled };
    }
    if (target && c->enabled) {
        out[n++] = (struct internal_topic){ .name = d->state_topic, .partitions = 1,
                                            .replication_factor = (int16_t)c->offset_storage_replication_factor,
                                            .factor_key = "offset.storage.replication.factor", .loss = LOSES_PLACE,
                                            .needed = true };
        out[n++] = (struct internal_topic){ .name = policy_checkpoints(d->policy, c->source_alias, &d->arena), .partitions = 1,
                                            .replication_factor = (int16_t)c->checkpoints_topic_replication_factor,
                                            .factor_key = "checkpoints.topic.replication.factor", .loss = LOSES_HELP };
    }
    if (c->enabled && c->emit_offset_syncs_enabled && target == syncs_at_target)
        out[n++] = (struct internal_topic){
            .name = policy_offset_syncs(d->policy, target ? c->source_alias : c->target_alias, &d->arena), .partitions = 1,
            .replication_factor = (int16_t)c->offset_syncs_topic_replication_factor,
            .factor_key = "offset-syncs.topic.replication.factor", .loss = LOSES_HELP };
    d->prepare.topics_n = n;
    for (int32_t i = 0; i < n; i++)
        out[i].missing = true; /* unless it is told to be there */
}

static void next_side(struct director *d)
{
    if (d->prepare.side == 0 && d->config->enabled) {
        d->prepare.side = 1;
        director_wake(d);
        return;
    }
    d->prepare.side = 0;
    director_well(d);
    if (d->state == DIRECTOR_REFRESHING || d->state == DIRECTOR_LOADING) { /* they were there before */
        d->refresh_step = REFRESH_LIST_SOURCE;
        d->load_lacks = false;
        director_wake(d);
        return;
    }
    if (d->plan_only && !d->config->enabled) {
        director_tell_heartbeats(d);
        return;
    }
    director_goto(d, d->plan_only         ? DIRECTOR_REFRESHING
                     : d->config->enabled ? DIRECTOR_JOINING
                                          : DIRECTOR_RUNNING);
    director_wake(d);
}

static bool is_fine(int32_t kerr)
{
    return kerr == KERR_NONE || kerr == KERR_TOPIC_ALREADY_EXISTS;
}

/* What the broker said of one topic; true when the flow must wait for it. */
static bool take_refusal(struct director *d, const struct internal_topic *topic,
                         const struct kafka_create_topics_response_topic *t)
{
    bool moved = kerr_class(API_CREATE_TOPICS, t->error_code) == K_REFRESH;
    struct route route = { .kind = ROUTE_CONTROLLER };
    struct str text = arena_fmt(&d->arena, "topic %.*s cannot be created: %.*s%s(its replicas are set by %s)",
                                STR_ARG(t->name), STR_ARG(t->error_message),
                                t->error_message.n ? " " : "", topic->factor_key);

    if (moved)
        cluster_reroute(d->prepare.side == 0 ? d->target : d->source, &route);
    if (moved || topic->needed) {
        director_fail(d, kerr_name(t->error_code), "%.*s", STR_ARG(text));
        return true;
    }
    log_event(EV_TOPIC_FAULT, kv_str("flow", d->config->name), kv_str("topic", t->name),
              kv_c("code", kerr_name(t->error_code)), kv_str("text", text));
    return false;
}

static void on_created(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_create_topics_response *r = call->response;
    const struct internal_topic *list = d->prepare.topics;
    int32_t n = d->prepare.topics_n;
    bool stay = false;

    if (director_call_failed(d, "creating internal topics"))
        return;
    for (int32_t i = 0; i < r->topics.n; i++)
        for (int32_t j = 0; j < n; j++)
            if (str_eq(list[j].name, r->topics.at[i].name) && !is_fine(r->topics.at[i].error_code))
                stay = take_refusal(d, &list[j], &r->topics.at[i]) || stay;
    if (!stay)
        next_side(d);
}

/* All of them are compacted; the positions topic takes offset.storage.<config> too. */
static void add_configs(struct director *d, const struct internal_topic *topic,
                        struct kafka_create_topics_request_topic *t)
{
    const struct flow_config *c = d->config;
    size_t more = str_eq(topic->name, c->offsets_topic) ? c->offsets_config_count : 0;

    t->configs.at = arena_array(&d->arena, more + 1, sizeof(*t->configs.at));
    t->configs.n = 0;
    for (size_t i = 0; i < more; i++) {
        if (str_eq(c->offsets_configs[i].key, STR("cleanup.policy")))
            continue; /* as Connect does: it must be compact */
        t->configs.at[t->configs.n].name = c->offsets_configs[i].key;
        t->configs.at[t->configs.n++].value = c->offsets_configs[i].value;
    }
    t->configs.at[t->configs.n].name = STR("cleanup.policy");
    t->configs.at[t->configs.n++].value = STR("compact");
}

static void create_missing(struct director *d)
{
    struct kafka_create_topics_request *q = &d->request.create;
    const struct internal_topic *list = d->prepare.topics;
    int32_t n = d->prepare.topics_n;

    codec_init(&kafka_create_topics_request_msg, q);
    q->timeout_ms = 30000;
    q->topics.at = arena_array(&d->arena, (size_t)n, sizeof(*q->topics.at));
    q->topics.n = 0;
    for (int32_t i = 0; i < n; i++) {
        struct kafka_create_topics_request_topic *t = &q->topics.at[q->topics.n];

        if (!list[i].missing)
            continue;
        q->topics.n++;
        t->name = list[i].name;
        t->num_partitions = list[i].partitions;
        t->replication_factor = list[i].replication_factor;
        add_configs(d, &list[i], t);
    }
    if (q->topics.n)
        director_call(d, d->prepare.side == 0 ? d->target : d->source, API_CREATE_TOPICS,
                      ROUTE_CONTROLLER, on_created);
    else
        next_side(d);
}

/* For `check`: what would be created, instead of creating it, and what is wrong with what is there. */
static void note_internal(struct director *d)
{
    for (int32_t i = 0; i < d->prepare.topics_n && d->internals_n < PLAN_INTERNAL_MAX; i++) {
        const struct internal_topic *t = &d->prepare.topics[i];

        d->internals[d->internals_n++] =
            (struct plan_internal){ .name = arena_str(&d->names, t->name),
                                    .factor_key = t->factor_key,
                                    .partitions = t->missing ? t->partitions : t->partitions_found,
                                    .replication_factor = t->missing ? t->replication_factor : (int16_t)t->replicas_found,
                                    .at_target = d->prepare.side == 0,
                                    .needed = t->needed,
                                    .missing = t->missing,
                                    .wrong = arena_str(&d->names, t->wrong),
                                    .forgets = t->forgets };
    }
    next_side(d);
}

static void take_found(struct internal_topic *t, const struct kafka_metadata_response_topic *found)
{
    t->missing = found->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION;
    t->partitions_found = found->partitions.n;
    for (int32_t i = 0; i < found->partitions.n; i++)
        t->replicas_found = i == 0 ? found->partitions.at[i].replica_nodes.n
                                   : MIN(t->replicas_found, found->partitions.at[i].replica_nodes.n);
}

static void on_listed(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_metadata_response *r = call->response;

    if (director_call_failed(d, "looking for internal topics"))
        return;
    for (int32_t i = 0; i < r->topics.n; i++)
        for (int32_t j = 0; j < d->prepare.topics_n; j++)
            if (str_eq(d->prepare.topics[j].name, r->topics.at[i].name))
                take_found(&d->prepare.topics[j], &r->topics.at[i]);
    director_verify(d, d->plan_only ? note_internal : create_missing);
}

void director_prepare(struct director *d)
{
    struct kafka_metadata_request *q;

    arena_reset(&d->arena);
    list_internal(d);
    if (d->prepare.topics_n == 0) {
        next_side(d);
        return;
    }
    q = director_ask_names(d, (size_t)d->prepare.topics_n);
    for (int32_t i = 0; i < d->prepare.topics_n; i++)
        q->topics.at[q->topics.n++].name = d->prepare.topics[i].name;
    director_call(d, d->prepare.side == 0 ? d->target : d->source, API_METADATA, ROUTE_ANY, on_listed);
}

static void beat(struct director *d)
{
    struct heartbeat_record hb = { .source = d->config->source_alias,
                                   .target = d->config->target_alias,
                                   .timestamp_ms = loop_wall_ms(d->loop) };
    struct buf key, value;

    buf_init(&key, 64 * KiB);
    buf_init(&value, 64);
    formats_encode_heartbeat(&hb, &key, &value);
    topic_writer_put(d->heartbeat_writer, 0, buf_str(&key), buf_str(&value), hb.timestamp_ms);
    d->heartbeats++;
    buf_fini(&key);
    buf_fini(&value);
}

static void on_heartbeat(struct timer *t)
{
    struct director *d = container_of(t, struct director, heartbeat);

    beat(d);
    timer_set_ms(d->loop, t, MAX(d->config->emit_heartbeats_interval_ms, 1));
}

static void on_heartbeat_fault(void *arg, const struct fault *fault)
{
    struct director *d = arg;

    if (fault_is_set(fault))
        log_event(EV_HEARTBEAT_FAULT, kv_str("flow", d->config->name), kv_c("code", fault->code),
                  kv_c("text", fault->text));
    else
        log_event(EV_HEARTBEAT_FAULT_OVER, kv_str("flow", d->config->name),
                  kv_str("topic", d->heartbeats_topic));
}

void director_heartbeats_start(struct director *d)
{
    struct topic_writer_ops ops = { .on_fault = on_heartbeat_fault, .arg = d };

    if (!d->config->emit_heartbeats_enabled || d->config->emit_heartbeats_interval_ms < 0)
        return;
    d->heartbeat_writer = topic_writer_new(d->target, d->heartbeats_topic, &ops);
    timer_init(&d->heartbeat, on_heartbeat);
    timer_set_ms(d->loop, &d->heartbeat, MAX(d->config->emit_heartbeats_interval_ms, 1));
}

void director_heartbeats_stop(struct director *d)
{
    if (!d->heartbeat_writer)
        return;
    timer_cancel(d->loop, &d->heartbeat);
    topic_writer_free(&d->heartbeat_writer);
}
