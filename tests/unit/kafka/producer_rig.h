/* producer_rig.h -- a producer with a writer per partition, before fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_KAFKA_PRODUCER_RIG_H
#define TESTS_UNIT_KAFKA_PRODUCER_RIG_H

#include "kafka/producer.h"

#include "unit/kafka/fake_cluster.h"

#define PARTS 4

struct writer {
    struct rig *rig;
    struct produce_part part;
    bool careful, asks; /* its batches are */
    int32_t sent; /* batches ever sent; the next sequence is 2 * sent */
    int32_t acked;
    int32_t refused_kerr;
    int refusals, waits;
    struct outgoing *refused;
    int64_t next_base; /* of the next acknowledgement */
};

struct rig {
    struct loop *l;
    struct fake_log *g;
    struct client_endpoint at;
    struct client_config config;
    struct cluster *cluster;
    struct producer *p;
    struct topic_meta *topic;
    struct writer w[PARTS];
    int64_t pid;
};

static struct pool *payloads;

/* Two records that name partition and batch. */
static inline struct outgoing *make(const struct writer *w, int64_t pid, int32_t number)
{
    struct outgoing *o = outgoing_new();
    struct batch_builder b;
    struct batch_stamp stamp = { .producer_id = pid, .base_sequence = 2 * number };
    char text[64];
    struct block *block;
    struct str bytes;

    if (!payloads)
        payloads = pool_new(64 * KiB, MiB);
    batch_builder_init(&b, 4096);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "%d:%d:%d", w->part.partition, number, i);
        CHECK_EQ(batch_builder_add(&b, STR_NULL, str_c(text), 1000), E_OK);
    }
    bytes = batch_builder_finish(&b, pid >= 0 ? &stamp : NULL);
    memcpy(o->header, bytes.p, BATCH_HEADER_SIZE);
    block = pool_take(payloads, bytes.n - BATCH_HEADER_SIZE, 0);
    memcpy(block->data, bytes.p + BATCH_HEADER_SIZE, bytes.n - BATCH_HEADER_SIZE);
    o->payload = slice_of(block, block->data, bytes.n - BATCH_HEADER_SIZE);
    block_drop(&block);
    o->source_base = 2 * number;
    o->source_last = 2 * number + 1;
    o->count = 2;
    batch_builder_fini(&b);
    return o;
}

static inline void on_acked(struct produce_part *p, struct outgoing *o, const struct produced *r)
{
    struct writer *w = container_of(p, struct writer, part);

    CHECK_EQ(o->source_base, 2 * w->acked);
    CHECK_EQ(r->base_offset, w->next_base);
    w->acked++;
    w->next_base += o->count;
}

static inline void on_refused(struct produce_part *p, struct outgoing *o, int32_t kerr,
                              struct str message)
{
    struct writer *w = container_of(p, struct writer, part);

    (void)message;
    CHECK_EQ(o->source_base, 2 * w->acked); /* the oldest */
    w->refused = o;
    w->refused_kerr = kerr;
    w->refusals++;
}

static inline void on_waiting(struct produce_part *p, struct outgoing *o, int32_t kerr, enum err e,
                              const char *text)
{
    struct writer *w = container_of(p, struct writer, part);

    CHECK_EQ(o->source_base, 2 * w->acked);
    CHECK(kerr || e);
    CHECK(text);
    w->waits++;
}

static inline void set_up(struct rig *t, bool with_id)
{
    *t = (struct rig){ .pid = 77 };
    t->l = loop_new("test");
    t->g = log_start(t->l, PARTS, with_id);
    t->at = (struct client_endpoint){ .host = STR("127.0.0.1"),
                                      .port = (uint16_t)t->g->brokers[0].port };
    t->config = test_config(&t->at, 1);
    t->config.max_request_size = 1 * MiB;
    t->config.max_in_flight = 5;
    t->cluster = cluster_new(t->l, &t->config, STR("A"));
    t->topic = cluster_watch(t->cluster, STR("t"));
    t->p = producer_new(t->cluster);
    for (int i = 0; i < PARTS; i++) {
        t->w[i] = (struct writer){ .rig = t };
        t->w[i].part = (struct produce_part){ .topic = t->topic,
                                              .partition = i,
                                              .on_acked = on_acked,
                                              .on_refused = on_refused,
                                              .on_waiting = on_waiting };
        producer_attach(t->p, &t->w[i].part);
    }
}

static inline void drop_all(struct list_node *list)
{
    struct list_node *n;

    while ((n = list_first(list))) {
        struct outgoing *o = container_of(n, struct outgoing, node);

        list_remove(n);
        outgoing_free(&o);
    }
}

static inline void tear_down(struct rig *t)
{
    struct list_node list;

    list_init(&list);
    for (int i = 0; i < PARTS; i++) {
        producer_take_back(t->p, &t->w[i].part, &list);
        producer_detach(t->p, &t->w[i].part);
    }
    drop_all(&list);
    producer_free(&t->p);
    cluster_unwatch(t->cluster, &t->topic);
    cluster_free(&t->cluster);
    log_stop(t->g);
    loop_free(&t->l);
}

static inline void put(struct rig *t, int i, int n)
{
    for (; n > 0; n--) {
        struct outgoing *o = make(&t->w[i], t->pid, t->w[i].sent++);

        o->careful = t->w[i].careful;
        o->asks = t->w[i].asks;
        producer_send(t->p, &t->w[i].part, o);
    }
}

static inline bool all_acked(void *arg)
{
    struct rig *t = arg;

    for (int i = 0; i < PARTS; i++)
        if (t->w[i].acked < t->w[i].sent)
            return false;
    return true;
}

/* The log holds batches 0 … n-1 once each, in order. */
static inline void check_log(struct rig *t, int i, int n)
{
    struct log_part *p = log_part(t->g, i);

    CHECK_EQ(p->batches_n, n);
    for (int k = 0; k < n; k++) {
        struct batch b;

        CHECK_EQ(batch_peek(str_of(p->batches[k].bytes, p->batches[k].n), &b), BATCH_V2);
        CHECK_EQ(b.base_sequence, 2 * k);
        CHECK_EQ(b.base_offset, 2 * k);
    }
}

static inline void check_all(struct rig *t)
{
    CHECK(test_run_until(t->l, all_acked, t, 20000));
    for (int i = 0; i < PARTS; i++) {
        check_log(t, i, t->w[i].sent);
        CHECK_EQ(producer_pending(&t->w[i].part), 0);
    }
}

#endif
