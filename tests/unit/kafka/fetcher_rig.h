/* fetcher_rig.h -- a fetcher with a taker per partition, before fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_KAFKA_FETCHER_RIG_H
#define TESTS_UNIT_KAFKA_FETCHER_RIG_H

#include "kafka/fetcher.h"

#include "unit/kafka/fake_cluster.h"

#define PARTS 40

struct taker {
    struct rig *rig;
    struct fetch_part part;
    int64_t next; /* offset of the next record that may come */
    int calls, errors;
    int32_t error;
    int64_t diverging_end;
    int64_t high_watermark;
    int aborted_n;
    bool keep; /* does not resume by itself, and keeps the slice */
    struct slice kept;
};

struct rig {
    struct loop *l;
    struct fake_log *g;
    struct client_endpoint at;
    struct client_config config;
    struct cluster *cluster;
    struct pool *pool;
    struct fetcher *f;
    struct topic_meta *topic;
    struct taker t[PARTS];
};

static inline void take(struct taker *t, const struct fetched *f)
{
    struct str bytes = str_of(f->records.p, f->records.n);
    struct batch b;

    CHECK_EQ(f->fetch_offset, t->next);
    while (batch_peek(bytes, &b) == BATCH_V2) {
        CHECK(b.base_offset <= t->next);
        CHECK(batch_last_offset(&b) >= t->next);
        t->next = batch_last_offset(&b) + 1;
        t->part.last_epoch = b.leader_epoch;
        bytes = str_part(bytes, b.size, bytes.n);
    }
    CHECK(t->next > f->fetch_offset); /* a whole batch at least */
}

static inline void on_fetched(struct fetch_part *p, const struct fetched *f)
{
    struct taker *t = container_of(p, struct taker, part);

    t->calls++;
    if (f->error) {
        t->errors++;
        t->error = f->error;
        return;
    }
    t->high_watermark = f->high_watermark;
    t->aborted_n = f->aborted_n;
    for (int32_t i = 1; i < f->aborted_n; i++)
        CHECK(f->aborted[i - 1].first_offset < f->aborted[i].first_offset);
    if (f->diverging) {
        t->diverging_end = f->diverging_end;
        return;
    }
    if (!f->records.n)
        return;
    take(t, f);
    p->offset = t->next;
    if (t->keep)
        t->kept = slice_ref(&f->records);
    else
        fetcher_resume(t->rig->f, p, 0);
}

static inline void set_up(struct rig *t, bool with_id)
{
    *t = (struct rig){ 0 };
    t->l = loop_new("test");
    t->g = log_start(t->l, PARTS, with_id);
    t->at = (struct client_endpoint){ .host = STR("127.0.0.1"),
                                      .port = (uint16_t)t->g->brokers[0].port };
    t->config = test_config(&t->at, 1);
    t->config.fetch_max_bytes = 50 * MiB;
    t->config.max_partition_fetch_bytes = 1 * MiB;
    t->config.fetch_min_bytes = 1;
    t->config.fetch_max_wait_ms = 100;
    t->config.client_rack = STR("r1");
    t->cluster = cluster_new(t->l, &t->config, STR("A"));
    t->topic = cluster_watch(t->cluster, STR("t"));
    t->pool = pool_new(1 * MiB, 16 * MiB);
    t->f = fetcher_new(t->cluster, t->pool, 1);
    for (int i = 0; i < PARTS; i++) {
        t->t[i] = (struct taker){ .rig = t };
        t->t[i].part = (struct fetch_part){
            .topic = t->topic, .partition = i, .last_epoch = -1, .on_fetched = on_fetched
        };
    }
}

static inline void tear_down(struct rig *t)
{
    for (int i = 0; i < PARTS; i++) {
        fetcher_remove(t->f, &t->t[i].part);
        slice_drop(&t->t[i].kept);
    }
    fetcher_free(&t->f);
    pool_free(&t->pool);
    cluster_unwatch(t->cluster, &t->topic);
    cluster_free(&t->cluster);
    log_stop(t->g);
    loop_free(&t->l);
}

static inline void add(struct rig *t, int i)
{
    fetcher_add(t->f, &t->t[i].part);
}

/* Appends n batches of two records, of about this many bytes. */
static inline void feed(struct rig *t, int i, int n, size_t size)
{
    struct log_part *p = log_part(t->g, i);
    char *value = mem_new(size + 1);

    memset(value, 'x', size);
    for (; n > 0; n--) {
        struct batch_builder b;
        struct str bytes;

        batch_builder_init(&b, 32 * MiB);
        CHECK_EQ(batch_builder_add(&b, STR_NULL, str_of(value, size / 2), 5), E_OK);
        CHECK_EQ(batch_builder_add(&b, STR_NULL, str_of(value, size / 2), 6), E_OK);
        bytes = batch_builder_finish(&b, NULL);
        log_append(p, bytes.p, bytes.n);
        batch_builder_fini(&b);
    }
    mem_free(value);
}

static inline bool all_read(void *arg)
{
    struct rig *t = arg;

    for (int i = 0; i < PARTS; i++)
        if (t->t[i].part.state != FETCH_OUT && t->t[i].next < t->g->parts[i].end)
            return false;
    return true;
}

static inline void check_read(struct rig *t)
{
    CHECK(test_run_until(t->l, all_read, t, 10000));
    for (int i = 0; i < PARTS; i++)
        if (t->t[i].part.state != FETCH_OUT)
            CHECK_EQ(t->t[i].next, t->g->parts[i].end);
}

#endif
