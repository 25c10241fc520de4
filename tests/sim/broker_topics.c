/* broker_topics.c -- topics of a simulated cluster come, grow, shrink at their heads and go; and their configs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "broker.h"

#include "base/must.h"

#include <stdio.h>
#include <string.h>

#define PROPAGATE_US (300 * SIM_MS)
#define NAME_LIMIT   249

bool broker_topic_name_ok(struct str name)
{
    bool ok = name.n > 0 && name.n <= NAME_LIMIT && !str_eq(name, STR(".")) && !str_eq(name, STR(".."));

    for (size_t i = 0; ok && i < name.n; i++)
        ok = (name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= 'A' && name.p[i] <= 'Z') ||
             (name.p[i] >= '0' && name.p[i] <= '9') || strchr("._-", name.p[i]);
    return ok;
}

/* --- configs --- */

/* Those that are numbers, and those that are words. */
static const char *const numbers[] = {
    "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms", "index.interval.bytes",
    "local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms", "max.message.bytes",
    "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "message.timestamp.difference.max.ms",
    "min.compaction.lag.ms", "min.insync.replicas", "retention.bytes", "retention.ms", "segment.bytes",
    "segment.index.bytes", "segment.jitter.ms", "segment.ms", "compression.gzip.level", "compression.lz4.level",
    "compression.zstd.level",
};
static const char *const words[] = {
    "cleanup.policy", "compression.type", "message.format.version", "message.timestamp.type", "preallocate",
    "min.cleanable.dirty.ratio", "unclean.leader.election.enable", "remote.storage.enable",
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    "message.downconversion.enable",
};

static bool is_among(const char *const *names, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(name, str_c(names[i])))
            return true;
    return false;
}

static int32_t check_config(const struct kafka_create_topics_request_config *k)
{
    int64_t n;

    if (is_among(numbers, COUNT(numbers), k->name))
        return str_to_i64(k->value, &n) ? KERR_NONE : KERR_INVALID_CONFIG;
    return is_among(words, COUNT(words), k->name) ? KERR_NONE : KERR_INVALID_CONFIG;
}

static void set_config(struct sim_topic *t, const struct kafka_create_topics_request_config *k)
{
    int64_t n = 0;

    (void)str_to_i64(k->value, &n);
    must(t->configs_n < SIM_CONFIGS);
    snprintf(t->configs[t->configs_n].name, sizeof(t->configs[0].name), "%.*s", STR_ARG(k->name));
    snprintf(t->configs[t->configs_n++].value, sizeof(t->configs[0].value), "%.*s", STR_ARG(k->value));
    if (str_eq(k->name, STR("cleanup.policy"))) {
        t->compact = str_find(k->value, STR("compact"), 0) >= 0;
        t->compact_only = t->compact && str_find(k->value, STR("delete"), 0) < 0;
    } else if (str_eq(k->name, STR("message.timestamp.type"))) {
        t->log_append_time = str_eq(k->value, STR("LogAppendTime"));
    } else if (str_eq(k->name, STR("message.timestamp.difference.max.ms"))) {
        t->before_max_ms = t->after_max_ms = n;
    } else if (str_eq(k->name, STR("message.timestamp.before.max.ms"))) {
        t->before_max_ms = n == INT64_MAX ? 0 : n;
    } else if (str_eq(k->name, STR("message.timestamp.after.max.ms"))) {
        t->after_max_ms = n;
    } else if (str_eq(k->name, STR("max.message.bytes"))) {
        t->max_message_bytes = (int32_t)n;
    } else if (str_eq(k->name, STR("min.insync.replicas"))) {
        t->min_isr = (int32_t)n;
    } else if (str_eq(k->name, STR("segment.bytes"))) {
        t->segment_bytes = (int32_t)n;
    }
}

/* One config of the answer, when it is asked for. */
static void put_config(const struct kafka_describe_configs_request_resource *want,
                       struct kafka_describe_configs_response_result *out, const char *name, const char *value,
                       int8_t source)
{
    struct kafka_describe_configs_response_config *c = &out->configs.at[out->configs.n];
    bool asked = want->configuration_keys.n <= 0;

    for (int32_t i = 0; i < want->configuration_keys.n; i++)
        asked = asked || str_eq(want->configuration_keys.at[i], str_c(name));
    for (int32_t i = 0; i < out->configs.n; i++)
        asked = asked && !str_eq(out->configs.at[i].name, str_c(name));
    if (!asked)
        return;
    codec_init(&kafka_describe_configs_response_config_msg, c);
    c->name = str_c(name);
    c->value = str_c(value);
    c->config_source = source;
    out->configs.n++;
}

/* A cluster without an authorizer. */
bool broker_describe_acls(struct sim_request *q)
{
    struct kafka_describe_acls_response r;

    codec_init(&kafka_describe_acls_response_msg, &r);
    r.error_code = KERR_SECURITY_DISABLED;
    r.error_message = STR("No Authorizer is configured.");
    broker_answer(q, &r);
    return true;
}

bool broker_describe_configs(struct sim_request *q)
{
    const struct kafka_describe_configs_request *m = q->msg;
    struct kafka_describe_configs_response r;

    codec_init(&kafka_describe_configs_response_msg, &r);
    r.results.at = arena_array(&q->arena, (size_t)m->resources.n, sizeof(*r.results.at));
    r.results.n = m->resources.n;
    for (int32_t i = 0; i < m->resources.n; i++) {
        const struct kafka_describe_configs_request_resource *want = &m->resources.at[i];
        struct kafka_describe_configs_response_result *out = &r.results.at[i];
        struct sim_topic *t = broker_topic_find(q->broker->cluster, want->resource_name);

        codec_init(&kafka_describe_configs_response_result_msg, out);
        out->resource_type = want->resource_type;
        out->resource_name = want->resource_name;
        out->error_message = STR_NULL;
        out->configs.at = arena_array(&q->arena, SIM_CONFIGS + 1, sizeof(*out->configs.at));
        if (!t) {
            out->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
            continue;
        }
        for (int k = 0; k < t->configs_n; k++)
            put_config(want, out, t->configs[k].name, t->configs[k].value, 1);
        put_config(want, out, "retention.ms", "604800000", 5);
    }
    broker_answer(q, &r);
    return true;
}

/* --- CreateTopics --- */

/* Where there is no forwarding (before KRaft) only the controller does it. */
static bool is_not_controller(const struct sim_request *q)
{
    return q->broker->cluster->newness < 2 && q->broker->id != q->broker->cluster->controller;
}

/* A topic that is named again is answered once. */
static bool is_named_before(const struct kafka_create_topics_request *m,
                            const struct kafka_create_topics_request_topic *want)
{
    for (const struct kafka_create_topics_request_topic *t = m->topics.at; t < want; t++)
        if (str_eq(t->name, want->name))
            return true;
    return false;
}

static int32_t check_topic(struct sim_request *q, const struct kafka_create_topics_request_topic *want)
{
    const struct kafka_create_topics_request *m = q->msg;
    int named = 0;

    for (int32_t i = 0; i < m->topics.n; i++)
        named += str_eq(m->topics.at[i].name, want->name);
    if (named > 1)
        return KERR_INVALID_REQUEST;
    if (is_not_controller(q))
        return KERR_NOT_CONTROLLER;
    if (!broker_topic_name_ok(want->name))
        return KERR_INVALID_TOPIC_EXCEPTION;
    if (broker_topic_find(q->broker->cluster, want->name))
        return KERR_TOPIC_ALREADY_EXISTS;
    if (want->num_partitions == 0 || want->num_partitions < -1 || want->num_partitions > SIM_PARTS)
        return KERR_INVALID_PARTITIONS;
    if (want->replication_factor > q->broker->cluster->brokers_n || want->replication_factor == 0)
        return KERR_INVALID_REPLICATION_FACTOR;
    for (int32_t i = 0; i < want->configs.n; i++)
        if (check_config(&want->configs.at[i]))
            return KERR_INVALID_CONFIG;
    return KERR_NONE;
}

/* One that was deleted, to be there again, else a new one. */
static struct sim_topic *make(struct sim_cluster *c, struct str name, int32_t parts)
{
    struct sim_topic *t;

    for (int32_t i = 0; i < c->topics_n; i++) {
        if (!str_eq(name, str_c(c->topics[i]->name)))
            continue;
        c->topics[i]->absent_until_us = 0; /* the empty one that follows it is this */
        return c->topics[i];
    }
    t = broker_topic_new(c, name, parts);
    if (!c->plain)
        t->known_us = sim_now_us() + sim_between(0, PROPAGATE_US);
    return t;
}

static int32_t create(struct sim_request *q, const struct kafka_create_topics_request_topic *want,
                      struct sim_topic **out)
{
    const struct kafka_create_topics_request *m = q->msg;
    int32_t kerr = check_topic(q, want);

    if (kerr || m->validate_only)
        return kerr;
    *out = make(q->broker->cluster, want->name, want->num_partitions < 0 ? 1 : want->num_partitions);
    for (int32_t i = 0; i < want->configs.n; i++)
        set_config(*out, &want->configs.at[i]);
    sim_say("%s: topic %s with %d partitions", q->broker->cluster->name, (*out)->name, (*out)->parts_n);
    return KERR_NONE;
}

bool broker_create_topics(struct sim_request *q)
{
    const struct kafka_create_topics_request *m = q->msg;
    struct kafka_create_topics_response r;

    codec_init(&kafka_create_topics_response_msg, &r);
    r.topics.at = arena_array(&q->arena, (size_t)m->topics.n, sizeof(*r.topics.at));
    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct kafka_create_topics_request_topic *want = &m->topics.at[i];
        struct kafka_create_topics_response_topic *out = &r.topics.at[r.topics.n];
        struct sim_topic *t = NULL;

        if (q->broker->cluster->newness > 0 && is_named_before(m, want))
            continue;
        r.topics.n++;
        codec_init(&kafka_create_topics_response_topic_msg, out);
        out->name = want->name;
        out->error_message = STR_NULL;
        out->configs.n = -1;
        out->error_code = (int16_t)create(q, want, &t);
        if (out->error_code)
            continue;
        if (t)
            out->topic_id = t->id;
        else if (q->broker->cluster->newness >= 1) /* that it would have */
            out->topic_id.b[0] = 1;
        out->num_partitions = want->num_partitions < 0 ? 1 : want->num_partitions;
        out->replication_factor =
            want->replication_factor < 0 ? (int16_t)q->broker->cluster->brokers_n : want->replication_factor;
    }
    broker_answer(q, &r);
    return true;
}

/* --- CreatePartitions, DeleteTopics, DeleteRecords --- */

static int32_t grow(struct sim_request *q, const struct kafka_create_partitions_request_topic *want)
{
    const struct kafka_create_partitions_request *m = q->msg;
    struct sim_topic *t = broker_topic_find(q->broker->cluster, want->name);

    if (is_not_controller(q))
        return KERR_NOT_CONTROLLER;
    if (!t)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (want->count <= t->parts_n || want->count > SIM_PARTS)
        return KERR_INVALID_PARTITIONS;
    if (!m->validate_only)
        broker_topic_grow(t, want->count);
    return KERR_NONE;
}

bool broker_create_partitions(struct sim_request *q)
{
    const struct kafka_create_partitions_request *m = q->msg;
    struct kafka_create_partitions_response r;

    codec_init(&kafka_create_partitions_response_msg, &r);
    r.results.at = arena_array(&q->arena, (size_t)m->topics.n, sizeof(*r.results.at));
    r.results.n = m->topics.n;
    for (int32_t i = 0; i < m->topics.n; i++) {
        struct kafka_create_partitions_response_result *out = &r.results.at[i];

        codec_init(&kafka_create_partitions_response_result_msg, out);
        out->name = m->topics.at[i].name;
        out->error_message = STR_NULL;
        out->error_code = (int16_t)grow(q, &m->topics.at[i]);
    }
    broker_answer(q, &r);
    return true;
}

static void delete_one(struct sim_request *q, struct sim_topic *t, struct kafka_delete_topics_response_topic *out)
{
    if (is_not_controller(q)) {
        out->error_code = KERR_NOT_CONTROLLER;
    } else if (!t) {
        out->error_code = out->name.p ? KERR_UNKNOWN_TOPIC_OR_PARTITION : KERR_UNKNOWN_TOPIC_ID;
    } else {
        out->name = str_c(t->name);
        out->topic_id = t->id;
        broker_topic_anew(t, INT64_MAX / 2);
        t->compact = t->compact_only = t->log_append_time = false;
        t->before_max_ms = t->after_max_ms = 0;
        t->min_isr = t->segment_bytes = 0;
        t->configs_n = 0;
    }
}

bool broker_delete_topics(struct sim_request *q)
{
    const struct kafka_delete_topics_request *m = q->msg;
    bool named = q->head.version < 6;
    int32_t n = named ? m->topic_names.n : m->topics.n;
    struct sim_cluster *c = q->broker->cluster;
    struct kafka_delete_topics_response r;

    codec_init(&kafka_delete_topics_response_msg, &r);
    r.responses.at = arena_array(&q->arena, (size_t)n, sizeof(*r.responses.at));
    for (r.responses.n = 0; r.responses.n < n; r.responses.n++) {
        int32_t i = r.responses.n;
        struct kafka_delete_topics_response_topic *out = &r.responses.at[i];

        codec_init(&kafka_delete_topics_response_topic_msg, out);
        out->error_message = STR_NULL;
        out->name = named ? m->topic_names.at[i] : m->topics.at[i].name;
        if (!named)
            out->topic_id = m->topics.at[i].topic_id;
        delete_one(q, out->name.p ? broker_topic_find(c, out->name) : broker_topic_by_id(c, &out->topic_id), out);
    }
    broker_answer(q, &r);
    return true;
}

static void cut_head(struct sim_request *q, struct sim_topic *t,
                     const struct kafka_delete_records_request_partition *want,
                     struct kafka_delete_records_response_partition *out)
{
    struct sim_part *p = NULL;
    int64_t to = want->offset;

    out->partition_index = want->partition_index;
    out->low_watermark = -1;
    out->error_code = (int16_t)broker_leader_error(q->broker, t, want->partition_index, -1, &p);
    if (!out->error_code && t->compact_only)
        out->error_code = KERR_POLICY_VIOLATION;
    if (out->error_code)
        return;
    if (to == -1)
        to = p->high_watermark;
    if (to < 0 || to > p->high_watermark) {
        out->error_code = KERR_OFFSET_OUT_OF_RANGE;
        return;
    }
    p->start = MAX(p->start, to);
    out->low_watermark = p->start;
    broker_poke(t->cluster);
}

bool broker_delete_records(struct sim_request *q)
{
    const struct kafka_delete_records_request *m = q->msg;
    struct kafka_delete_records_response r;

    codec_init(&kafka_delete_records_response_msg, &r);
    r.topics.at = arena_array(&q->arena, (size_t)m->topics.n, sizeof(*r.topics.at));
    r.topics.n = m->topics.n;
    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct kafka_delete_records_request_topic *in = &m->topics.at[i];
        struct kafka_delete_records_response_topic *out = &r.topics.at[i];
        struct sim_topic *t = broker_topic_find(q->broker->cluster, in->name);

        out->name = in->name;
        out->partitions.at = arena_array(&q->arena, (size_t)in->partitions.n, sizeof(*out->partitions.at));
        out->partitions.n = in->partitions.n;
        for (int32_t j = 0; j < in->partitions.n; j++)
            cut_head(q, t, &in->partitions.at[j], &out->partitions.at[j]);
    }
    broker_answer(q, &r);
    return true;
}
