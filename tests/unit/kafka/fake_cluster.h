/* fake_cluster.h -- starts and stops the brokers of fake_log.h, and answers for the cluster as a whole.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_KAFKA_FAKE_CLUSTER_H
#define TESTS_UNIT_KAFKA_FAKE_CLUSTER_H

#include "unit/kafka/fake_fetch.h"

static inline void log_init_producer_id(struct fake_log *g, struct fake_request *q)
{
    struct kafka_init_producer_id_response r;

    codec_init(&kafka_init_producer_id_response_msg, &r);
    r.error_code = (int16_t)g->pid_error;
    r.producer_id = g->pid_error ? -1 : g->next_pid++;
    g->pids_given += !g->pid_error;
    fake_answer(q, q->version, &r);
}

static inline void log_metadata(struct fake_log *g, struct fake_request *q)
{
    const struct kafka_metadata_request *m = q->body;
    struct kafka_metadata_response r;
    struct kafka_metadata_response_broker brokers[LOG_BROKERS];

    codec_init(&kafka_metadata_response_msg, &r);
    for (int i = 0; i < LOG_BROKERS; i++) {
        codec_init(&kafka_metadata_response_broker_msg, &brokers[i]);
        brokers[i].node_id = i + 1;
        brokers[i].host = STR("127.0.0.1");
        brokers[i].port = g->brokers[i].port;
    }
    r.cluster_id = STR("fake");
    r.controller_id = 1;
    r.brokers.at = brokers;
    r.brokers.n = LOG_BROKERS;
    r.topics.n = MAX(m->topics.n, 0);
    r.topics.at = arena_array(&g->arena, (size_t)r.topics.n, sizeof(*r.topics.at));
    for (int32_t i = 0; i < r.topics.n; i++) {
        struct kafka_metadata_response_topic *t = &r.topics.at[i];

        codec_init(&kafka_metadata_response_topic_msg, t);
        t->name = m->topics.at[i].name;
        t->error_code = (int16_t)g->topic_error;
        t->topic_id = g->id;
        t->partitions.n = g->topic_error ? 0 : g->parts_n;
        t->partitions.at = arena_array(&g->arena, LOG_PARTS, sizeof(*t->partitions.at));
        for (int32_t j = 0; j < t->partitions.n; j++) {
            codec_init(&kafka_metadata_response_partition_msg, &t->partitions.at[j]);
            t->partitions.at[j].partition_index = j;
            t->partitions.at[j].leader_id = g->parts[j].leader;
            t->partitions.at[j].leader_epoch = g->parts[j].epoch;
        }
    }
    fake_answer(q, q->version, &r);
}

static inline bool log_on_request(struct fake *f, struct fake_request *q)
{
    struct fake_log *g = f->arg;

    arena_reset(&g->arena);
    switch (q->api->key) {
    case API_METADATA:
        log_metadata(g, q);
        return true;
    case API_PRODUCE:
        log_produce(g, f, q);
        return true;
    case API_FETCH:
        fetch_fake_request(g, f, q);
        return true;
    case API_INIT_PRODUCER_ID:
        log_init_producer_id(g, q);
        return true;
    default:
        return false;
    }
}

/* All partitions are led by broker 1 at first. */
static inline struct fake_log *log_start(struct loop *l, int32_t partitions, bool with_id)
{
    struct fake_log *g = mem_new(sizeof(*g));

    g->l = l;
    g->topic = "t";
    g->id.b[0] = with_id ? 0x17 : 0;
    g->parts_n = partitions;
    g->next_pid = 4000;
    g->fetch = mem_new(sizeof(*g->fetch));
    g->fetch->g = g;
    timer_init(&g->fetch->timer, fetch_fake_poll);
    timer_set_ms(l, &g->fetch->timer, 1);
    arena_init(&g->arena, 256 * MiB);
    for (int32_t i = 0; i < LOG_PARTS; i++) {
        g->parts[i].leader = 1;
        g->parts[i].epoch = 3;
    }
    for (int i = 0; i < LOG_BROKERS; i++) {
        fake_start(&g->brokers[i], l);
        g->brokers[i].on_request = log_on_request;
        g->brokers[i].arg = g;
    }
    return g;
}

static inline void log_stop(struct fake_log *g)
{
    for (int i = 0; i < LOG_BROKERS; i++)
        fake_stop(&g->brokers[i]);
    timer_cancel(g->l, &g->fetch->timer);
    for (int32_t i = 0; i < LOG_PARTS; i++) {
        for (size_t k = 0; k < g->parts[i].batches_n; k++)
            mem_free(g->parts[i].batches[k].bytes);
        mem_free(g->parts[i].batches);
    }
    arena_fini(&g->arena);
    mem_free(g->fetch);
    mem_free(g);
}

#endif
