/* test_fetcher.c -- sessions, leaders, errors and budget of the fetcher, against fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
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

static void take(struct taker *t, const struct fetched *f)
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

static void on_fetched(struct fetch_part *p, const struct fetched *f)
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

static void set_up(struct rig *t, bool with_id)
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

static void tear_down(struct rig *t)
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

static void add(struct rig *t, int i)
{
    fetcher_add(t->f, &t->t[i].part);
}

/* Appends n batches of two records, of about this many bytes. */
static void feed(struct rig *t, int i, int n, size_t size)
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

static bool all_read(void *arg)
{
    struct rig *t = arg;

    for (int i = 0; i < PARTS; i++)
        if (t->t[i].part.state != FETCH_OUT && t->t[i].next < t->g->parts[i].end)
            return false;
    return true;
}

static void check_read(struct rig *t)
{
    CHECK(test_run_until(t->l, all_read, t, 10000));
    for (int i = 0; i < PARTS; i++)
        if (t->t[i].part.state != FETCH_OUT)
            CHECK_EQ(t->t[i].next, t->g->parts[i].end);
}

TEST(two_brokers)
{
    struct rig t;

    set_up(&t, true);
    for (int i = 0; i < PARTS; i++) {
        t.g->parts[i].leader = 1 + i % 2;
        feed(&t, i, 20 + i, 1000);
        add(&t, i);
    }
    check_read(&t);
    CHECK_EQ(t.t[0].error, 0);
    CHECK(t.g->fetch->over[0] > 0 && t.g->fetch->over[1] > 0);
    CHECK(t.g->fetch->version >= 13);
    CHECK_EQ(fetcher_counts(t.f)->session_restarts, 0);
    CHECK_EQ(t.g->fetch->fulls, 2);
    tear_down(&t);
}

TEST(session_names_what_changed)
{
    struct rig t;
    uint32_t listed, requests;

    set_up(&t, true);
    for (int i = 0; i < PARTS; i++)
        add(&t, i);
    test_run_ms(t.l, 50);
    CHECK_EQ(t.g->fetch->listed, PARTS);
    for (int k = 0; k < 10; k++) {
        feed(&t, k, 1, 100);
        check_read(&t);
    }
    test_run_ms(t.l, 150);
    listed = t.g->fetch->listed - PARTS;
    requests = t.g->fetch->requests;
    CHECK_EQ(listed, 10); /* the new offset of each, once */
    CHECK_EQ(t.g->fetch->fulls, 1);
    /* Idle: no more than a poll per fetch.max.wait.ms. */
    test_run_ms(t.l, 300);
    CHECK(t.g->fetch->requests - requests <= 4);
    CHECK_EQ(t.g->fetch->max_wait_ms, 100);
    CHECK_EQ(t.t[39].high_watermark, 0);
    /* The log's end is told without records. */
    CHECK(t.t[39].calls > 0);
    tear_down(&t);
}

static bool has_kept(void *arg)
{
    return ((struct rig *)arg)->t[0].kept.b != NULL;
}

TEST(rest_and_removal_are_forgotten)
{
    struct rig t;
    int calls;

    set_up(&t, true);
    for (int i = 0; i < 3; i++)
        add(&t, i);
    t.t[0].keep = true;
    feed(&t, 0, 3, 100);
    CHECK(test_run_until(t.l, has_kept, &t, 5000));
    test_run_ms(t.l, 120);
    CHECK_EQ(t.g->fetch->forgotten, 1); /* it rests */
    CHECK(t.g->fetch->max_wait_ms <= 50);
    calls = t.t[0].calls;
    feed(&t, 0, 3, 100);
    test_run_ms(t.l, 120);
    CHECK_EQ(t.t[0].calls, calls);
    slice_drop(&t.t[0].kept);
    t.t[0].keep = false;
    fetcher_resume(t.f, &t.t[0].part, 0);
    check_read(&t);
    /* Gone, and back within one turn: forgotten first, then added. */
    fetcher_remove(t.f, &t.t[1].part);
    fetcher_add(t.f, &t.t[1].part);
    fetcher_remove(t.f, &t.t[2].part);
    feed(&t, 1, 5, 100);
    feed(&t, 2, 5, 100);
    check_read(&t);
    CHECK_EQ(t.t[2].next, 0);
    CHECK_EQ(t.g->fetch->forgotten, 3);
    CHECK_EQ(t.g->fetch->fulls, 1);
    tear_down(&t);
}

struct restarts {
    struct rig *t;
    uint64_t want;
};

static bool has_restarted(void *arg)
{
    const struct restarts *r = arg;

    return fetcher_counts(r->t->f)->session_restarts >= r->want &&
           (uint64_t)r->t->g->fetch->fulls >= 1 + r->want;
}

TEST(session_errors)
{
    static const int32_t errors[] = { KERR_FETCH_SESSION_ID_NOT_FOUND,
                                      KERR_INVALID_FETCH_SESSION_EPOCH,
                                      KERR_FETCH_SESSION_TOPIC_ID_ERROR,
                                      KERR_UNKNOWN_SERVER_ERROR };
    struct rig t;

    set_up(&t, true);
    for (int i = 0; i < 5; i++)
        add(&t, i);
    test_run_ms(t.l, 50);
    for (size_t k = 0; k < COUNT(errors); k++) {
        t.g->fetch->error_next = errors[k];
        for (int i = 0; i < 5; i++)
            feed(&t, i, 3, 500);
        check_read(&t);
        CHECK(test_run_until(t.l, has_restarted, &(struct restarts){ &t, k + 1 }, 10000));
    }
    CHECK_EQ(fetcher_counts(t.f)->session_restarts, COUNT(errors));
    CHECK_EQ(t.g->fetch->fulls, 1 + COUNT(errors));
    for (int i = 0; i < 5; i++)
        CHECK_EQ(t.t[i].errors, 0);
    tear_down(&t);
}

TEST(without_sessions)
{
    struct rig t;

    for (int k = 0; k < 2; k++) {
        set_up(&t, false);
        t.g->fetch->refuse_sessions = true;
        t.g->brokers[0].max[API_FETCH] = k ? 4 : 0;
        for (int i = 0; i < PARTS; i++) {
            add(&t, i);
            feed(&t, i, 3, 400);
        }
        check_read(&t);
        for (int i = 0; i < PARTS; i++)
            feed(&t, i, 3, 400);
        check_read(&t);
        CHECK_EQ(t.g->fetch->fulls, t.g->fetch->requests);
        CHECK_EQ(t.g->fetch->version, k ? 4 : 12);
        tear_down(&t);
    }
}

TEST(leader_moves)
{
    struct rig t;

    for (int tell = 0; tell < 2; tell++) {
        set_up(&t, tell);
        t.g->tell_leader = tell;
        for (int i = 0; i < 8; i++)
            add(&t, i);
        for (int round = 0; round < 6; round++) {
            for (int i = 0; i < 8; i++)
                feed(&t, i, 10, 200);
            test_run_ms(t.l, 2);
            for (int i = round % 3; i < 8; i += 2) {
                t.g->parts[i].leader = 3 - t.g->parts[i].leader;
                t.g->parts[i].epoch++;
            }
            for (int i = 0; i < 8; i++)
                feed(&t, i, 10, 200);
            check_read(&t);
        }
        for (int i = 0; i < 8; i++)
            CHECK_EQ(t.t[i].errors, 0);
        tear_down(&t);
    }
}

static void fetch_fail(struct log_part *p, int32_t kerr, int times)
{
    while (times-- > 0)
        p->fetch_errors[p->fetch_errors_n++] = kerr;
}

static bool has_error(void *arg)
{
    return ((struct rig *)arg)->t[0].errors > 0;
}

TEST(errors)
{
    static const struct {
        int32_t kerr;
        int times;
    } told[] = { { KERR_OFFSET_NOT_AVAILABLE, 3 },       { KERR_TOPIC_AUTHORIZATION_FAILED, 1 },
                 { KERR_UNKNOWN_TOPIC_OR_PARTITION, 1 }, { KERR_UNKNOWN_TOPIC_ID, 1 },
                 { KERR_OFFSET_OUT_OF_RANGE, 1 },        { KERR_CORRUPT_MESSAGE, 1 } };
    struct rig t;

    set_up(&t, true);
    add(&t, 0);
    add(&t, 1);
    for (size_t k = 0; k < COUNT(told); k++) {
        t.t[0].errors = 0;
        fetch_fail(&t.g->parts[0], told[k].kerr, told[k].times);
        feed(&t, 0, 1, 100);
        CHECK(test_run_until(t.l, has_error, &t, 5000));
        CHECK_EQ(t.t[0].error, told[k].kerr);
        feed(&t, 1, 2, 100);
        test_run_ms(t.l, 60);
        CHECK_EQ(t.t[0].errors, 1);
        CHECK(t.t[0].next < t.g->parts[0].end); /* it rests until resumed; the other one goes on */
        CHECK_EQ(t.t[1].next, t.g->parts[1].end);
        fetcher_resume(t.f, &t.t[0].part, 10);
        check_read(&t);
    }
    t.t[0].errors = 0;
    fetch_fail(&t.g->parts[0], KERR_UNKNOWN_LEADER_EPOCH, 2);
    fetch_fail(&t.g->parts[1], KERR_KAFKA_STORAGE_ERROR, 2);
    feed(&t, 0, 2, 100);
    feed(&t, 1, 2, 100);
    check_read(&t);
    CHECK_EQ(t.t[0].errors + t.t[1].errors, 0); /* passed by themselves */
    tear_down(&t);
}

TEST(truncation_and_aborted)
{
    struct rig t;

    set_up(&t, true);
    t.g->fetch->aborted = true;
    add(&t, 0);
    feed(&t, 0, 5, 100);
    check_read(&t);
    CHECK_EQ(t.t[0].aborted_n, 3);
    t.g->fetch->diverge_at = 4;
    feed(&t, 0, 5, 100);
    test_run_ms(t.l, 150);
    CHECK_EQ(t.t[0].diverging_end, 4);
    CHECK_EQ(t.t[0].next, 10); /* it rests */
    t.t[0].next = t.t[0].part.offset = 4;
    fetcher_resume(t.f, &t.t[0].part, 0);
    check_read(&t);
    tear_down(&t);
}

TEST(near_replica)
{
    struct rig t;

    set_up(&t, true);
    t.g->fetch->preferred = 2;
    for (int i = 0; i < 4; i++) {
        add(&t, i);
        feed(&t, i, 10, 300);
    }
    check_read(&t);
    CHECK(t.g->fetch->over[1] > 0);
    CHECK_EQ(t.t[0].part.preferred, 2);
    /* The follower says that it does not have it: the leader is asked, nobody is told. */
    t.g->fetch->preferred = 0;
    for (int i = 0; i < 4; i++)
        feed(&t, i, 10, 300);
    check_read(&t);
    CHECK_EQ(t.t[0].errors, 0);
    CHECK_EQ(t.t[0].part.preferred, -1);
    t.g->fetch->preferred = 2;
    for (int i = 0; i < 4; i++)
        feed(&t, i, 10, 300);
    check_read(&t);
    /* And when it dies, its readers go back. */
    t.g->fetch->preferred = 0;
    fake_die(&t.g->brokers[1]);
    for (int i = 0; i < 4; i++)
        feed(&t, i, 10, 300);
    check_read(&t);
    tear_down(&t);
}

TEST(budget)
{
    struct rig t;
    uint32_t requests;

    set_up(&t, true);
    pool_free(&t.pool);
    t.pool = pool_new(1 * MiB, 1 * MiB);
    fetcher_free(&t.f);
    t.f = fetcher_new(t.cluster, t.pool, 0);
    for (int i = 0; i < 4; i++) {
        t.t[i].keep = i == 0;
        feed(&t, i, 200, 20000);
    }
    add(&t, 0);
    CHECK(test_run_until(t.l, has_kept, &t, 5000));
    for (int i = 1; i < 4; i++)
        add(&t, i);
    /* Something small may still fit; something usual does not. */
    test_run_ms(t.l, 50);
    requests = t.g->fetch->requests;
    test_run_ms(t.l, 50);
    CHECK(pool_used(t.pool) <= 2 * MiB);
    (void)requests;
    slice_drop(&t.t[0].kept);
    t.t[0].keep = false;
    fetcher_resume(t.f, &t.t[0].part, 0);
    check_read(&t);
    CHECK(pool_peak(t.pool) <= 2 * MiB);
    tear_down(&t);
}

TEST(huge_batches_and_small_caps)
{
    struct rig t;

    set_up(&t, true);
    t.config.max_partition_fetch_bytes = 40000;
    for (int i = 0; i < 6; i++) {
        feed(&t, i, 4, i % 2 ? 100000 : 3000000);
        feed(&t, i, 30, 2000);
        add(&t, i);
    }
    check_read(&t);
    tear_down(&t);
}

TEST(min_bytes_is_clamped)
{
    struct rig t;

    set_up(&t, true);
    t.config.fetch_min_bytes = 30 * MiB;
    add(&t, 0);
    test_run_ms(t.l, 60);
    CHECK(t.g->fetch->min_bytes <= t.g->fetch->max_bytes);
    tear_down(&t);
}

TEST(cut_and_come_again)
{
    struct rig t;

    set_up(&t, true);
    for (int i = 0; i < PARTS; i++)
        add(&t, i);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < PARTS; i++)
            feed(&t, i, 5, 700);
        test_run_ms(t.l, round);
        for (int k = 0; k < FAKE_CONNS; k++)
            fake_hang_up(&t.g->brokers[0].conns[k]);
        check_read(&t);
    }
    for (int i = 0; i < PARTS; i++)
        CHECK_EQ(t.t[i].errors, 0);
    tear_down(&t);
}

TEST(topic_without_home)
{
    struct rig t;

    set_up(&t, true);
    t.g->topic_error = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    add(&t, 0);
    CHECK(test_run_until(t.l, has_error, &t, 5000));
    CHECK_EQ(t.t[0].error, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    t.g->topic_error = 0;
    feed(&t, 0, 3, 100);
    fetcher_resume(t.f, &t.t[0].part, 10);
    check_read(&t);
    tear_down(&t);
}

TEST(created_anew)
{
    struct rig t;

    set_up(&t, true);
    add(&t, 0);
    feed(&t, 0, 3, 100);
    check_read(&t);
    t.g->id.b[0] = 0x18;
    CHECK(test_run_until(t.l, has_error, &t, 5000));
    test_run_ms(t.l, 50);
    CHECK_EQ(t.topic->id.b[0], 0x18);
    feed(&t, 0, 3, 100);
    fetcher_resume(t.f, &t.t[0].part, 0);
    check_read(&t);
    tear_down(&t);
}

TESTS(RUN(two_brokers), RUN(session_names_what_changed), RUN(rest_and_removal_are_forgotten),
      RUN(session_errors), RUN(without_sessions), RUN(leader_moves), RUN(errors),
      RUN(truncation_and_aborted), RUN(near_replica), RUN(budget), RUN(huge_batches_and_small_caps),
      RUN(min_bytes_is_clamped), RUN(cut_and_come_again), RUN(topic_without_home),
      RUN(created_anew))
