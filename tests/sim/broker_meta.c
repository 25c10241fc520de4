/* broker_meta.c -- what a simulated cluster says of itself: versions, topics, leaders.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "broker.h"

#include "base/must.h"
#include "tally.h"

#include <string.h>

#define PORT 9092

/* Most version that a cluster of each newness offers: about 2.7, 3.x and 4.x (rules 6). */
static const struct {
    int16_t key, min, max[3]; /* -1: not offered */
} offers[] = {
    { API_PRODUCE, 3, { 8, 9, 13 } },
    { API_FETCH, 4, { 11, 13, 16 } },
    { API_LIST_OFFSETS, 1, { 5, 7, 8 } },
    { API_METADATA, 0, { 9, 12, 13 } },
    { API_FIND_COORDINATOR, 0, { 3, 4, 6 } },
    { API_JOIN_GROUP, 0, { 7, 9, 9 } },
    { API_HEARTBEAT, 0, { 4, 4, 4 } },
    { API_LEAVE_GROUP, 0, { 4, 5, 5 } },
    { API_SYNC_GROUP, 0, { 5, 5, 5 } },
    { API_API_VERSIONS, 0, { 3, 3, 4 } },
    { API_CREATE_TOPICS, 2, { 5, 7, 7 } },
    { API_INIT_PRODUCER_ID, 0, { 3, 4, 5 } },
    { API_DESCRIBE_ACLS, 0, { 2, 3, 3 } },
    { API_DESCRIBE_CONFIGS, 1, { 3, 4, 4 } },
    { API_CREATE_PARTITIONS, 0, { 2, 3, 3 } },
    { API_DESCRIBE_PRODUCERS, 0, { -1, 0, 0 } },
    { API_OFFSET_COMMIT, 2, { 8, 8, 9 } },
    { API_OFFSET_FETCH, 1, { 7, 8, 9 } },
    { API_DELETE_TOPICS, 1, { 5, 6, 6 } },
    { API_DELETE_RECORDS, 0, { 2, 2, 2 } },
    { API_OFFSET_FOR_LEADER_EPOCH, 2, { 3, 4, 4 } },
    { API_ADD_PARTITIONS_TO_TXN, 0, { 2, 3, 3 } },
    { API_END_TXN, 0, { 2, 3, 5 } },
};

bool broker_api_versions(struct sim_request *q)
{
    struct kafka_api_versions_response r;
    int newness = q->broker->cluster->newness;

    codec_init(&kafka_api_versions_response_msg, &r);
    r.api_keys.at = arena_array(&q->arena, COUNT(offers), sizeof(*r.api_keys.at));
    r.api_keys.n = 0;
    if (!q->api)
        r.error_code = KERR_UNSUPPORTED_VERSION;
    for (size_t i = 0; i < COUNT(offers); i++) {
        if (offers[i].max[newness] < 0)
            continue;
        r.api_keys.at[r.api_keys.n++] = (struct kafka_api_versions_response_api_key){
            .api_key = offers[i].key, .min_version = offers[i].min, .max_version = offers[i].max[newness]
        };
    }
    broker_answer(q, &r);
    return true;
}

/* --- Metadata --- */

static void describe_part(struct sim_request *q, const struct sim_part *p,
                          struct kafka_metadata_response_partition *out)
{
    struct sim_broker *b = q->broker;
    bool old = sim_now_us() < p->news_us && b->id != p->leader;

    if (old)
        tally(TALLY_METADATA_OLD);
    int32_t leader = old ? p->old_leader : p->leader;

    codec_init(&kafka_metadata_response_partition_msg, out);
    out->partition_index = p->number;
    out->leader_id = leader;
    out->leader_epoch = old ? p->old_epoch : p->epoch;
    out->error_code = leader < 0 ? KERR_LEADER_NOT_AVAILABLE : KERR_NONE;
    out->replica_nodes.at = arena_array(&q->arena, (size_t)b->cluster->brokers_n, sizeof(int32_t));
    out->replica_nodes.n = b->cluster->brokers_n;
    for (int32_t i = 0; i < b->cluster->brokers_n; i++)
        out->replica_nodes.at[i] = i + 1;
    out->isr_nodes.at = out->replica_nodes.at;
    out->isr_nodes.n = out->replica_nodes.n;
}

static void describe_topic(struct sim_request *q, struct sim_topic *t, struct str name,
                           struct kafka_metadata_response_topic *out)
{
    codec_init(&kafka_metadata_response_topic_msg, out);
    out->name = name;
    if (!t && !name.p) {
        out->error_code = KERR_UNKNOWN_TOPIC_ID;
        return;
    }
    if (name.p && !broker_topic_name_ok(name)) {
        out->error_code = KERR_INVALID_TOPIC_EXCEPTION;
        return;
    }
    if (!t || (sim_now_us() < t->known_us && q->broker->id != q->broker->cluster->controller)) {
        out->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    out->name = str_c(t->name);
    out->topic_id = t->id;
    out->is_internal = t->internal;
    out->partitions.at = arena_array(&q->arena, SIM_PARTS, sizeof(*out->partitions.at));
    out->partitions.n = t->parts_n;
    for (int32_t i = 0; i < t->parts_n; i++)
        describe_part(q, &t->parts[i], &out->partitions.at[i]);
}

static void describe_brokers(struct sim_request *q, struct kafka_metadata_response *r)
{
    struct sim_cluster *c = q->broker->cluster;

    r->brokers.at = arena_array(&q->arena, SIM_BROKERS, sizeof(*r->brokers.at));
    r->brokers.n = 0;
    for (int32_t i = 0; i < c->brokers_n; i++)
        if (c->brokers[i].up)
            r->brokers.at[r->brokers.n++] = (struct kafka_metadata_response_broker){
                .node_id = c->brokers[i].id, .host = str_c(c->brokers[i].host), .port = PORT
            };
}

/* What no cluster should say, and some have said: of the brokers, of the controller, or of one topic. */
static void lie(struct kafka_metadata_response *r)
{
    struct kafka_metadata_response_topic *t =
        r->topics.n ? &r->topics.at[sim_between(0, r->topics.n - 1)] : NULL;
    struct kafka_metadata_response_partition *p =
        t && t->partitions.n > 0 ? &t->partitions.at[sim_between(0, t->partitions.n - 1)] : NULL;

    tally(TALLY_METADATA_LIES);
    switch (sim_between(0, 7)) {
    case 0:
        r->brokers.n = 0;
        break;
    case 1:
        r->controller_id = 77;
        break;
    case 2: /* a leader that is no broker */
        if (p)
            p->leader_id = 77;
        break;
    case 3: /* a topic that is missing */
        if (t)
            *t = r->topics.at[--r->topics.n];
        break;
    case 4: /* partitions that are missing; but what keys are spread over was told right at first */
        if (p && !str_starts(t->name, STR("mm2-")))
            t->partitions.n--;
        break;
    case 5: /* a partition twice */
        if (p)
            p->partition_index = t->partitions.at[0].partition_index;
        break;
    case 6: /* no leader, but no error either */
        if (p)
            p->leader_id = -1;
        break;
    default: /* an older epoch, another leader */
        if (p) {
            p->leader_id = 1;
            p->leader_epoch = MAX(p->leader_epoch - 1, 0);
        }
        break;
    }
}

bool broker_metadata(struct sim_request *q)
{
    const struct kafka_metadata_request *m = q->msg;
    struct sim_cluster *c = q->broker->cluster;
    struct kafka_metadata_response r;
    bool all = m->topics.n < 0 || (q->head.version == 0 && m->topics.n == 0);
    int32_t n = all ? c->topics_n : m->topics.n;

    codec_init(&kafka_metadata_response_msg, &r);
    describe_brokers(q, &r);
    r.cluster_id = str_c(c->id);
    r.controller_id = c->controller;
    r.topics.at = arena_array(&q->arena, (size_t)n, sizeof(*r.topics.at));
    r.topics.n = 0;
    for (int32_t i = 0; i < n; i++) {
        struct str name = all ? str_c(c->topics[i]->name) : m->topics.at[i].name;
        struct sim_topic *t = name.p ? broker_topic_find(c, name)
                                     : broker_topic_by_id(c, &m->topics.at[i].topic_id);
        struct kafka_metadata_response_topic *out = &r.topics.at[r.topics.n];

        if (all && !broker_topic_is_there(c->topics[i]))
            continue;
        describe_topic(q, t, name, out);
        if (!t && !name.p)
            out->topic_id = m->topics.at[i].topic_id;
        if (!all || out->error_code == KERR_NONE)
            r.topics.n++;
    }
    if (broker_luck(c, c->metadata_lies))
        lie(&r);
    broker_answer(q, &r);
    return true;
}
