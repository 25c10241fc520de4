/* null_api.c -- one handler per API, and the table that names them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "null_api.h"

#include "wire/frame.h"
#include "wire/kerr.h"

#include <stdio.h>
#include <string.h>

#define ARENA_MAX (64 * MiB)

/* What a handler may need of its request. */
struct asked {
    struct null_api *api;
    int version;
    struct null_answer *out;
    void **session;
};

typedef void handler(const struct asked *k, const void *request, void *response);

static void *array(const struct asked *k, int32_t n, size_t size)
{
    return arena_array(&k->api->arena, (size_t)MAX(n, 0), size);
}

static void do_produce(const struct asked *k, const void *request, void *response)
{
    null_produce(k->api, k->version, request, response);
}

static void do_fetch(const struct asked *k, const void *request, void *response)
{
    null_fetch(k->api, k->version, request, response, k->out, k->session);
}

static void do_list_offsets(const struct asked *k, const void *request, void *response)
{
    const struct kafka_list_offsets_request *q = request;
    struct kafka_list_offsets_response *r = response;

    r->topics.n = q->topics.n;
    r->topics.at = array(k, q->topics.n, sizeof(*r->topics.at));
    for (int32_t i = 0; i < q->topics.n; i++) {
        const struct kafka_list_offsets_request_topic *qt = &q->topics.at[i];
        struct kafka_list_offsets_response_topic *rt = &r->topics.at[i];
        struct null_topic *t = null_log_find(k->api->log, qt->name, NULL);

        rt->name = qt->name;
        rt->partitions.n = qt->partitions.n;
        rt->partitions.at = array(k, qt->partitions.n, sizeof(*rt->partitions.at));
        for (int32_t j = 0; j < qt->partitions.n; j++) {
            const struct null_part *p = null_topic_part(t, qt->partitions.at[j].partition_index);
            struct kafka_list_offsets_response_partition *out = &rt->partitions.at[j];

            codec_init(&kafka_list_offsets_response_partition_msg, out);
            out->partition_index = qt->partitions.at[j].partition_index;
            out->error_code = p ? 0 : KERR_UNKNOWN_TOPIC_OR_PARTITION;
            out->leader_epoch = p ? 0 : -1;
            if (p)
                out->offset = qt->partitions.at[j].timestamp == -2 ? p->start : p->end;
        }
    }
}

static void put_topic(const struct asked *k, const struct null_topic *t, struct str name,
                      struct kafka_metadata_response_topic *out)
{
    static int32_t node = NULL_NODE_ID;

    codec_init(&kafka_metadata_response_topic_msg, out);
    out->name = t ? t->name : name;
    if (!t) {
        out->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    out->topic_id = t->id;
    out->partitions.n = t->parts_n;
    out->partitions.at = array(k, t->parts_n, sizeof(*out->partitions.at));
    for (int32_t i = 0; i < t->parts_n; i++) {
        struct kafka_metadata_response_partition *p = &out->partitions.at[i];

        codec_init(&kafka_metadata_response_partition_msg, p);
        p->partition_index = i;
        p->leader_id = NULL_NODE_ID;
        p->leader_epoch = 0;
        p->replica_nodes.at = p->isr_nodes.at = &node;
        p->replica_nodes.n = p->isr_nodes.n = 1;
    }
}

static void do_metadata(const struct asked *k, const void *request, void *response)
{
    const struct kafka_metadata_request *q = request;
    struct kafka_metadata_response *r = response;
    struct null_log *log = k->api->log;
    bool all = q->topics.n < 0;

    r->brokers.n = 1;
    r->brokers.at = array(k, 1, sizeof(*r->brokers.at));
    codec_init(&kafka_metadata_response_broker_msg, r->brokers.at);
    r->brokers.at[0].node_id = r->controller_id = NULL_NODE_ID;
    r->brokers.at[0].host = STR("127.0.0.1");
    r->brokers.at[0].port = k->api->port;
    r->cluster_id = k->api->cluster_id;
    r->topics.n = all ? log->topics_n : q->topics.n;
    r->topics.at = array(k, r->topics.n, sizeof(*r->topics.at));
    for (int32_t i = 0; i < r->topics.n; i++) {
        struct str name = all ? log->topics[i].name : q->topics.at[i].name;

        put_topic(k,
                  all ? &log->topics[i] : null_log_find(log, name, &q->topics.at[i].topic_id),
                  name, &r->topics.at[i]);
    }
}

static void do_find_coordinator(const struct asked *k, const void *request, void *response)
{
    const struct kafka_find_coordinator_request *q = request;
    struct kafka_find_coordinator_response *r = response;

    r->node_id = NULL_NODE_ID;
    r->host = STR("127.0.0.1");
    r->port = k->api->port;
    r->coordinators.n = q->coordinator_keys.n;
    r->coordinators.at = array(k, q->coordinator_keys.n, sizeof(*r->coordinators.at));
    for (int32_t i = 0; i < q->coordinator_keys.n; i++) {
        struct kafka_find_coordinator_response_coordinator *c = &r->coordinators.at[i];

        codec_init(&kafka_find_coordinator_response_coordinator_msg, c);
        c->key = q->coordinator_keys.at[i];
        c->node_id = NULL_NODE_ID;
        c->host = r->host;
        c->port = r->port;
    }
}

static void do_api_versions(const struct asked *k, const void *request, void *response);

static void do_create_topics(const struct asked *k, const void *request, void *response)
{
    const struct kafka_create_topics_request *q = request;
    struct kafka_create_topics_response *r = response;

    r->topics.n = q->topics.n;
    r->topics.at = array(k, q->topics.n, sizeof(*r->topics.at));
    for (int32_t i = 0; i < q->topics.n; i++) {
        struct kafka_create_topics_response_topic *out = &r->topics.at[i];
        struct str name = q->topics.at[i].name;
        struct null_topic *t = null_log_find(k->api->log, name, NULL);

        codec_init(&kafka_create_topics_response_topic_msg, out);
        out->name = name;
        out->configs.n = -1;
        if (t) {
            out->error_code = KERR_TOPIC_ALREADY_EXISTS;
            continue;
        }
        t = null_log_add(k->api->log, name, MAX(q->topics.at[i].num_partitions, 1));
        if (!t) {
            out->error_code = KERR_POLICY_VIOLATION;
            continue;
        }
        out->topic_id = t->id;
        out->num_partitions = t->parts_n;
        out->replication_factor = 1;
    }
}

static void do_init_producer_id(const struct asked *k, const void *request, void *response)
{
    const struct kafka_init_producer_id_request *q = request;
    struct kafka_init_producer_id_response *r = response;

    r->producer_id = q->producer_id >= 0 ? q->producer_id : k->api->next_producer_id++;
    r->producer_epoch = (int16_t)(q->producer_id >= 0 ? q->producer_epoch + 1 : 0);
}

static void do_describe_configs(const struct asked *k, const void *request, void *response)
{
    const struct kafka_describe_configs_request *q = request;
    struct kafka_describe_configs_response *r = response;

    r->results.n = q->resources.n;
    r->results.at = array(k, q->resources.n, sizeof(*r->results.at));
    for (int32_t i = 0; i < q->resources.n; i++) {
        codec_init(&kafka_describe_configs_response_result_msg, &r->results.at[i]);
        r->results.at[i].resource_type = q->resources.at[i].resource_type;
        r->results.at[i].resource_name = q->resources.at[i].resource_name;
    }
}

/* It remembers no producer. */
static void do_describe_producers(const struct asked *k, const void *request, void *response)
{
    const struct kafka_describe_producers_request *q = request;
    struct kafka_describe_producers_response *r = response;

    r->topics.n = q->topics.n;
    r->topics.at = array(k, q->topics.n, sizeof(*r->topics.at));
    for (int32_t i = 0; i < q->topics.n; i++) {
        const struct kafka_describe_producers_request_topic *qt = &q->topics.at[i];
        struct kafka_describe_producers_response_topic *rt = &r->topics.at[i];

        rt->name = qt->name;
        rt->partitions.n = qt->partition_indexes.n;
        rt->partitions.at = array(k, qt->partition_indexes.n, sizeof(*rt->partitions.at));
        for (int32_t j = 0; j < qt->partition_indexes.n; j++) {
            codec_init(&kafka_describe_producers_response_partition_msg, &rt->partitions.at[j]);
            rt->partitions.at[j].partition_index = qt->partition_indexes.at[j];
        }
    }
}

static const struct {
    int16_t key;
    handler *fn;
} handlers[] = {
    { API_PRODUCE, do_produce },
    { API_FETCH, do_fetch },
    { API_LIST_OFFSETS, do_list_offsets },
    { API_METADATA, do_metadata },
    { API_FIND_COORDINATOR, do_find_coordinator },
    { API_API_VERSIONS, do_api_versions },
    { API_CREATE_TOPICS, do_create_topics },
    { API_INIT_PRODUCER_ID, do_init_producer_id },
    { API_DESCRIBE_CONFIGS, do_describe_configs },
    { API_DESCRIBE_PRODUCERS, do_describe_producers },
};

static void do_api_versions(const struct asked *k, const void *request, void *response)
{
    struct kafka_api_versions_response *r = response;

    (void)request;
    r->api_keys.n = (int32_t)COUNT(handlers);
    r->api_keys.at = array(k, (int32_t)COUNT(handlers), sizeof(*r->api_keys.at));
    for (size_t i = 0; i < COUNT(handlers); i++) {
        const struct api *a = api_find(handlers[i].key);

        r->api_keys.at[i] = (struct kafka_api_versions_response_api_key){ a->key, a->min, a->max };
    }
}

static handler *find_handler(int key)
{
    for (size_t i = 0; i < COUNT(handlers); i++)
        if (handlers[i].key == key)
            return handlers[i].fn;
    return NULL;
}

bool null_api_answer(void *arg, struct str frame, struct null_answer *out, void **session)
{
    struct null_api *api = arg;
    struct reader r = reader_of(frame.p, frame.n);
    struct asked k = { .api = api, .out = out, .session = session };
    struct frame_request head;
    const struct api *a;
    handler *fn;
    void *request, *response;

    if (!frame.p) {
        null_fetch_end(session);
        return true;
    }
    if (frame_request_read(&r, &head) || !(fn = find_handler(head.key))) {
        fprintf(stderr, "null_broker: a request that is not known (key %d)\n", head.key);
        return false;
    }
    api->counts.requests++;
    arena_reset(&api->arena);
    a = api_find(head.key);
    k.version = head.version;
    request = arena_alloc(&api->arena, a->request->size);
    response = arena_alloc(&api->arena, a->response->size);
    if (codec_decode(a->request, head.version, &r, &api->arena, request))
        return false;
    codec_init(a->response, response);
    fn(&k, request, response);
    frame_response_write(out->encoding.head, a, head.version, head.correlation_id);
    if (codec_encode(a->response, head.version, response, &out->encoding)) {
        fprintf(stderr, "null_broker: the answer to %s cannot be said in version %d\n", a->name,
                head.version);
        return false;
    }
    return true;
}

void null_api_init(struct null_api *a, struct null_log *log)
{
    memset(a, 0, sizeof(*a));
    a->log = log;
    a->next_producer_id = 1000;
    arena_init(&a->arena, ARENA_MAX);
}

void null_api_fini(struct null_api *a)
{
    arena_fini(&a->arena);
}
