/* takeover_positions.c -- reads the positions of another mirror, and writes exact ones in MirrorMaker 2's format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * MirrorMaker 2 and Replicator keep them in Connect's topic of offsets at the target; MirrorMaker 1, uReplicator and
 * Brooklin commit them to their consumer group at the source. What a position says may be one record late, which the
 * comparison puts right. Exact ones always go to the flow's own topic of positions, where MirrorMaker 2 and
 * `heliostat run` look for them.
 */
#include "daemon/takeover_int.h"

#include "base/alloc.h"
#include "mirror/formats.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define CREATE_TIMEOUT_MS 30000

static int by_place(const void *a, const void *b)
{
    const struct takeover_part *x = a, *y = b;
    int c = str_cmp(x->want->name, y->want->name);

    return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

static struct takeover_part *find_part(struct takeover_flow *f, struct str topic, int32_t partition)
{
    struct topic_want want = { .name = topic };
    struct takeover_part key = { .want = &want, .partition = partition };

    return f->parts_n ? bsearch(&key, f->parts, f->parts_n, sizeof(key), by_place) : NULL;
}

/* --- Connect's topic --- */

/* Of the connectors in the topic one counts: the one that was asked for, else MirrorMaker's own, else the first met. */
static bool counts(struct takeover_flow *f, struct str connector)
{
    struct str wanted = f->all->args->connector;

    if (!str_is_null(wanted)) {
        if (str_eq(connector, wanted))
            f->connector = wanted;
        return str_eq(connector, wanted);
    }
    if (str_is_null(f->connector) || str_eq(connector, STR(FORMATS_CONNECTOR))) {
        if (!str_is_null(f->connector) && !str_eq(f->connector, connector)) {
            f->other_connector = f->connector;
            for (size_t i = 0; i < f->parts_n; i++)
                f->parts[i].stored = -1;
        }
        f->connector = str_eq(f->connector, connector) ? f->connector : arena_str(&f->arena, connector);
    }
    if (str_eq(connector, f->connector))
        return true;
    if (str_is_null(f->other_connector))
        f->other_connector = arena_str(&f->arena, connector);
    return false;
}

static struct str member_str(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);

    return json_is_string(v) ? str_of(json_string_value(v), json_string_length(v)) : STR_NULL;
}

/* ["connector",{"topic":"t","partition":0}]; MirrorMaker 2's have the source's alias, too. */
static struct takeover_part *take_key(struct takeover_flow *f, const json_t *key)
{
    const json_t *name = json_array_get(key, 0), *place = json_array_get(key, 1);
    struct str topic = member_str(place, "topic"), cluster = member_str(place, "cluster");
    const json_t *partition = json_object_get(place, "partition");
    bool mm2 = f->all->args->from == FROM_MM2;
    struct takeover_part *p;

    if (!json_is_string(name) || !json_is_integer(partition) || str_is_null(topic) || json_object_get(place, "group") ||
        (mm2 ? !str_eq(cluster, f->config->source_alias) : !str_is_null(cluster)))
        return NULL;
    p = find_part(f, topic, (int32_t)json_integer_value(partition));
    return p && counts(f, str_c(json_string_value(name))) ? p : NULL;
}

/* MirrorMaker 2 stores the last offset that it copied; of others' numbers the lesser meaning is taken. */
static void on_position(void *arg, const struct topic_record *r)
{
    struct takeover_flow *f = arg;
    json_t *key = r->key.p ? json_loadb(r->key.p, r->key.n, 0, NULL) : NULL;
    struct takeover_part *p = key ? take_key(f, key) : NULL;
    int64_t offset = -1;

    if (p && !formats_parse_position_value(r->value, &offset) && offset >= 0 && offset < INT64_MAX)
        p->stored = offset + (f->all->args->from == FROM_MM2);
    else if (p)
        p->stored = -1;
    json_decref(key);
}

static void on_read(void *arg, enum err e, int32_t kerr)
{
    struct takeover_flow *f = arg;

    topic_reader_free(&f->reader);
    if (e || (kerr && kerr != KERR_UNKNOWN_TOPIC_OR_PARTITION)) {
        takeover_fail(f, 1, kerr ? kerr_name(kerr) : err_name(e), "topic %.*s cannot be read: %s", STR_ARG(f->offsets_topic),
                      kerr ? kerr_text(kerr) : err_text(e));
        return;
    }
    f->step = STEP_COMPARE;
    takeover_wake(f);
}

/* --- a consumer group --- */

static void fill_fetch(struct call *c)
{
    struct takeover_flow *f = container_of(c, struct takeover_flow, call);
    struct kafka_offset_fetch_request *q = &f->request.fetch;

    codec_init(&kafka_offset_fetch_request_msg, q);
    if (c->version < 8) {
        q->group_id = f->all->args->from_group;
        q->topics.n = -1;
        return;
    }
    q->groups.at = arena_array(&f->arena, 1, sizeof(*q->groups.at));
    q->groups.n = 1;
    q->groups.at[0].group_id = f->all->args->from_group;
    q->groups.at[0].member_id = STR_NULL;
    q->groups.at[0].member_epoch = -1;
    q->groups.at[0].topics.n = -1;
}

static void take_commit(struct takeover_flow *f, struct str topic, int32_t partition, int64_t offset)
{
    struct takeover_part *p = find_part(f, topic, partition);

    if (p)
        p->stored = offset;
}

static void on_fetched(struct call *c)
{
    struct takeover_flow *f = container_of(c, struct takeover_flow, call);
    const struct kafka_offset_fetch_response *r = c->response;
    struct route route = { .kind = ROUTE_GROUP, .key = f->all->args->from_group };
    int32_t kerr = c->error ? 0 : c->version < 8 ? r->error_code : r->groups.n ? r->groups.at[0].error_code : 0;

    if (takeover_call_failed(f, "reading the group's positions", kerr, director_cluster(f->director, false), &route))
        return;
    for (int32_t i = 0; i < r->topics.n; i++)
        for (int32_t j = 0; j < r->topics.at[i].partitions.n; j++)
            take_commit(f, r->topics.at[i].name, r->topics.at[i].partitions.at[j].partition_index,
                        r->topics.at[i].partitions.at[j].committed_offset);
    for (int32_t i = 0; r->groups.n && i < r->groups.at[0].topics.n; i++) {
        const struct kafka_offset_fetch_response_group_topic *t = &r->groups.at[0].topics.at[i];

        for (int32_t j = 0; j < t->partitions.n; j++)
            take_commit(f, t->name, t->partitions.at[j].partition_index, t->partitions.at[j].committed_offset);
    }
    f->step = STEP_COMPARE;
    takeover_wake(f);
}

/* --- the parts --- */

static void make_parts(struct takeover_flow *f)
{
    const struct plan *p = f->plan;
    size_t n = 0;

    for (size_t i = 0; i < p->wants_n; i++)
        n += (size_t)MAX(p->wants[i].partitions, 0);
    f->parts = mem_array(MAX(n, 1), sizeof(*f->parts));
    for (size_t i = 0; i < p->wants_n; i++) {
        const struct topic_have *have = plan_find_have(p, p->wants[i].target_name);

        for (int32_t k = 0; k < p->wants[i].partitions; k++) {
            struct takeover_part *part = &f->parts[f->parts_n++];

            part->want = &p->wants[i];
            part->partition = k;
            part->stored = -1;
            part->copied = have && k < have->partitions;
        }
    }
    qsort(f->parts, f->parts_n, sizeof(*f->parts), by_place);
}

void takeover_positions(struct takeover_flow *f)
{
    struct topic_reader_ops ops = { .on_record = on_position, .on_done = on_read, .arg = f };

    if (f->reader)
        return;
    if (!f->parts)
        make_parts(f);
    if (f->all->args->from == FROM_GROUP) {
        struct route route = { .kind = ROUTE_GROUP, .key = f->all->args->from_group };

        takeover_call(f, director_cluster(f->director, false), API_OFFSET_FETCH, &route, fill_fetch, on_fetched);
        return;
    }
    f->reader = topic_reader_start(director_cluster(f->director, true), f->offsets_topic, &ops);
}

/* --- how many tasks had transactional ids --- */

static void on_config(void *arg, const struct topic_record *r)
{
    struct takeover_flow *f = arg;
    struct str connector = f->all->args->connector;
    struct str key = arena_fmt(&f->arena, "tasks-fencing-%.*s",
                               STR_ARG(str_is_null(connector) ? STR(FORMATS_CONNECTOR) : connector));
    json_t *value;

    if (!str_eq(r->key, key))
        return;
    value = r->value.p ? json_loadb(r->value.p, r->value.n, 0, NULL) : NULL;
    f->tasks = MAX(f->tasks, json_integer_value(json_object_get(value, "task-count")));
    json_decref(value);
}

static struct str configs_topic(struct takeover_flow *f)
{
    struct str named = f->all->args->configs;

    return str_is_null(named) ? arena_fmt(&f->arena, "mm2-configs.%.*s.internal", STR_ARG(f->config->source_alias)) : named;
}

/* A dedicated MirrorMaker 2 without such a topic has no transactions. What cannot be read, or was named and is not there,
 * leaves it open which ids there are: then nobody is fenced, and that must not pass for done. */
static void on_configs_read(void *arg, enum err e, int32_t kerr)
{
    struct takeover_flow *f = arg;
    bool none = !e && kerr == KERR_UNKNOWN_TOPIC_OR_PARTITION && str_is_null(f->all->args->configs);

    topic_reader_free(&f->reader);
    if ((e || kerr) && !none) {
        takeover_fail(f, e ? 3 : 1, e ? err_name(e) : kerr_name(kerr),
                      "topic %.*s of Connect's configs cannot be read: %s; it says how many transactional ids there are to "
                      "take (grant Read on it, or name the right one with --connect-configs)",
                      STR_ARG(configs_topic(f)), e ? err_text(e) : kerr_text(kerr));
        return;
    }
    f->step = STEP_FENCE;
    takeover_wake(f);
}

void takeover_tasks(struct takeover_flow *f)
{
    struct topic_reader_ops ops = { .on_record = on_config, .on_done = on_configs_read, .arg = f };

    if (f->reader)
        return;
    f->tasks = -1;
    if (!f->all->args->fence) {
        f->step = STEP_FENCE;
        takeover_wake(f);
        return;
    }
    f->reader = topic_reader_start(director_cluster(f->director, true), configs_topic(f), &ops);
}

/* --- exact ones --- */

static void on_created(struct call *c)
{
    struct takeover_flow *f = container_of(c, struct takeover_flow, call);
    const struct kafka_create_topics_response *r = c->response;
    struct route route = { .kind = ROUTE_CONTROLLER };
    int32_t kerr = !c->error && r->topics.n ? r->topics.at[0].error_code : 0;

    if (kerr == KERR_TOPIC_ALREADY_EXISTS || kerr_class(API_CREATE_TOPICS, kerr) == K_DENIED)
        kerr = 0; /* who may not make it can write to it where it is */
    if (takeover_call_failed(f, "making the topic of positions", kerr, director_cluster(f->director, true), &route))
        return;
    f->step = STEP_WRITE;
    takeover_wake(f);
}

/* As `run` would make it. */
void takeover_create(struct takeover_flow *f)
{
    const struct flow_config *c = f->config;
    struct kafka_create_topics_request *q = &f->request.create;
    struct route route = { .kind = ROUTE_CONTROLLER };
    struct kafka_create_topics_request_topic *t;

    codec_init(&kafka_create_topics_request_msg, q);
    q->timeout_ms = CREATE_TIMEOUT_MS;
    t = q->topics.at = arena_array(&f->arena, 1, sizeof(*t));
    q->topics.n = 1;
    t->name = c->offsets_topic;
    t->num_partitions = (int32_t)c->offset_storage_partitions;
    t->replication_factor = (int16_t)c->offset_storage_replication_factor;
    t->configs.at = arena_array(&f->arena, 1, sizeof(*t->configs.at));
    t->configs.n = 1;
    t->configs.at[0].name = STR("cleanup.policy");
    t->configs.at[0].value = STR("compact");
    takeover_call(f, director_cluster(f->director, true), API_CREATE_TOPICS, &route, NULL, on_created);
}

static void on_idle(void *arg)
{
    struct takeover_flow *f = arg;

    if (f->step == STEP_WRITE)
        takeover_wake(f);
}

static void put_position(struct takeover_flow *f, const struct takeover_part *p)
{
    struct position_key k = { .connector = STR(FORMATS_CONNECTOR), .cluster = f->config->source_alias,
                              .topic = p->want->name, .partition = p->partition };
    struct buf key, value;

    buf_init(&key, 64 * KiB);
    buf_init(&value, 64);
    formats_position_key(&k, &key);
    formats_position_value(p->c.next - 1, &value);
    topic_writer_put(f->writer, -1, buf_str(&key), buf_str(&value), -1);
    f->written++;
    buf_fini(&key);
    buf_fini(&value);
}

/* Only where something is to be said: what is stored there already may stay. */
void takeover_write(struct takeover_flow *f)
{
    struct topic_writer_ops ops = { .on_idle = on_idle, .arg = f };
    bool elsewhere = f->all->args->from != FROM_MM2 || !str_eq(f->offsets_topic, f->config->offsets_topic) ||
                     (!str_is_null(f->connector) && !str_eq(f->connector, STR(FORMATS_CONNECTOR)));

    if (!f->writer) {
        f->writer = topic_writer_new(director_cluster(f->director, true), f->config->offsets_topic, &ops);
        for (size_t i = 0; i < f->parts_n; i++)
            if (f->parts[i].known && f->parts[i].c.next > 0 && (elsewhere || f->parts[i].c.next > f->parts[i].stored))
                put_position(f, &f->parts[i]);
    }
    if (!topic_writer_is_idle(f->writer))
        return;
    topic_writer_free(&f->writer);
    f->step = STEP_LEAVE;
    takeover_wake(f);
}
