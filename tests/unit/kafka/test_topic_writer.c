/* test_topic_writer.c -- keys, tickets, order and retries of the topic writer, against fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/topic_writer.h"

#include "unit/kafka/fake_cluster.h"
#include "wire/record.h"

#define PARTS 25

struct rig {
    struct loop *l;
    struct fake_log *g;
    struct client_endpoint at;
    struct client_config config;
    struct cluster *cluster;
    struct topic_writer *w;
    int idles, faults;
};

static void on_idle(void *arg)
{
    ((struct rig *)arg)->idles++;
}

static void on_fault(void *arg, const struct fault *f)
{
    struct rig *t = arg;

    t->faults += fault_is_set(f);
}

static void set_up(struct rig *t)
{
    struct topic_writer_ops ops = { .on_idle = on_idle, .on_fault = on_fault, .arg = t };

    *t = (struct rig){ 0 };
    t->l = loop_new("test");
    t->g = log_start(t->l, PARTS, true);
    t->at = (struct client_endpoint){ .host = STR("127.0.0.1"),
                                      .port = (uint16_t)t->g->brokers[0].port };
    t->config = test_config(&t->at, 1);
    t->cluster = cluster_new(t->l, &t->config, STR("A"));
    t->w = topic_writer_new(t->cluster, STR("t"), &ops);
}

static void tear_down(struct rig *t)
{
    topic_writer_free(&t->w);
    cluster_free(&t->cluster);
    log_stop(t->g);
    loop_free(&t->l);
}

static bool is_idle(void *arg)
{
    return topic_writer_is_idle(((struct rig *)arg)->w);
}

static void settle(struct rig *t)
{
    CHECK(test_run_until(t->l, is_idle, t, 10000));
    CHECK_EQ(topic_writer_acked(t->w), topic_writer_put(t->w, 24, STR("end"), STR_NULL, -1) - 1);
    CHECK(test_run_until(t->l, is_idle, t, 10000));
}

/* "key=value " of all records of a partition. */
static struct str log_text(struct rig *t, int partition, struct buf *out)
{
    struct log_part *p = log_part(t->g, partition);

    buf_init(out, 1 * MiB);
    for (size_t i = 0; i < p->batches_n; i++) {
        struct str s = str_of(p->batches[i].bytes, p->batches[i].n);
        struct record_reader r;
        struct record rec;
        struct batch h;

        CHECK_EQ(batch_peek(s, &h), BATCH_V2);
        r = record_reader_of(str_part(s, BATCH_HEADER_SIZE, s.n), h.count);
        while (record_next(&r, &rec))
            buf_fmt(out, "%.*s=%.*s ", STR_ARG(rec.key), STR_ARG(rec.value));
    }
    return buf_str(out);
}

static uint64_t put(struct rig *t, const char *key, const char *value)
{
    return topic_writer_put(t->w, 0, str_c(key), str_c(value), 7);
}

TEST(newest_value_in_order)
{
    struct rig t;
    struct buf b;

    set_up(&t);
    CHECK_EQ(put(&t, "a", "1"), 1);
    CHECK_EQ(put(&t, "b", "1"), 2);
    CHECK_EQ(put(&t, "a", "2"), 3);
    CHECK_EQ(put(&t, "c", NULL), 4);
    CHECK_EQ(topic_writer_acked(t.w), 0);
    settle(&t);
    CHECK_STR(log_text(&t, 0, &b), "b=1 a=2 c= ");
    buf_fini(&b);
    CHECK_EQ(t.g->parts[0].batches_n, 1);
    CHECK(t.idles >= 1);
    CHECK_EQ(t.faults, 0);
    CHECK_EQ(t.g->pids_given, 1);
    tear_down(&t);
}

static bool is_held(void *arg)
{
    return ((struct rig *)arg)->g->held > 0;
}

TEST(tickets)
{
    struct rig t;
    struct buf b;

    set_up(&t);
    t.g->hold = true;
    put(&t, "a", "1");
    CHECK(test_run_until(t.l, is_held, &t, 5000));
    CHECK_EQ(put(&t, "a", "2"), 2); /* 1 is on its way: both are written */
    CHECK_EQ(put(&t, "b", "1"), 3);
    CHECK_EQ(put(&t, "a", "3"), 4); /* takes 2's place */
    CHECK_EQ(topic_writer_acked(t.w), 0);
    t.g->hold = false;
    for (int k = 0; k < FAKE_CONNS; k++)
        fake_hang_up(&t.g->brokers[0].conns[k]); /* written, and the answer lost */
    settle(&t);
    CHECK_STR(log_text(&t, 0, &b), "a=1 b=1 a=3 ");
    buf_fini(&b);
    CHECK(t.faults > 0);
    CHECK(!fault_is_set(topic_writer_fault(t.w)));
    tear_down(&t);
}

/* As Java's default partitioner chooses (values from Kafka's own tests of Utils.murmur2). */
TEST(partition_by_key)
{
    static const struct {
        const char *key;
        int32_t hash;
    } cases[] = { { "21", -973932308 },
                  { "foobar", -790332482 },
                  { "a-little-bit-long-string", -985981536 },
                  { "a-little-bit-longer-string", -1486304829 },
                  { "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971 } };
    struct rig t;

    set_up(&t);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int32_t to = (cases[i].hash & INT32_MAX) % PARTS;
        size_t had = t.g->parts[to].batches_n;

        topic_writer_put(t.w, -1, str_c(cases[i].key), STR("v"), -1);
        CHECK(test_run_until(t.l, is_idle, &t, 5000));
        CHECK_EQ(t.g->parts[to].batches_n, had + 1);
    }
    tear_down(&t);
}

TEST(retries)
{
    static const int32_t errors[] = {
        KERR_NOT_ENOUGH_REPLICAS,          KERR_REQUEST_TIMED_OUT,
        KERR_NOT_LEADER_OR_FOLLOWER,       KERR_TOPIC_AUTHORIZATION_FAILED,
        KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, KERR_UNKNOWN_PRODUCER_ID,
        KERR_UNKNOWN_TOPIC_OR_PARTITION
    };
    struct rig t;
    char key[16], value[16];

    set_up(&t);
    for (size_t k = 0; k < COUNT(errors); k++) {
        log_fail(&t.g->parts[0], errors[k], errors[k] == KERR_REQUEST_TIMED_OUT);
        for (int i = 0; i < 20; i++) {
            snprintf(key, sizeof(key), "%d", i);
            snprintf(value, sizeof(value), "%zu", k);
            put(&t, key, value);
        }
        t.faults = 0;
        settle(&t);
        CHECK(t.faults > 0);
        CHECK_EQ(t.g->parts[0].end, 20 * (int64_t)(k + 1)); /* nothing twice */
    }
    CHECK_EQ(t.g->pids_given, 3); /* a new one after each loss of order */
    tear_down(&t);
}

/* A successor closes a writer's id; whatever the writer sends after that is refused, and it knows. */
TEST(shut_out)
{
    struct topic_writer_ops ops = { .on_idle = NULL };
    struct topic_writer *fence, *own;
    struct rig t;

    set_up(&t);
    own = t.w;
    t.w = topic_writer_new_as(t.cluster, STR("t"), &(struct topic_writer_ops){ .on_fault = on_fault, .arg = &t }, 77, 0);
    put(&t, "a", "1");
    settle(&t);
    log_fail(&t.g->parts[0], KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, false);
    put(&t, "a", "2");
    settle(&t); /* in the next epoch, under the same id */
    CHECK_EQ(t.g->pids_given, 0);
    CHECK(!topic_writer_is_shut_out(t.w));
    fence = topic_writer_new_as(t.cluster, STR("t"), &ops, 77, INT16_MAX);
    for (int32_t i = 0; i < PARTS; i++)
        topic_writer_put(fence, i, STR("fence"), STR_NULL, -1);
    while (!topic_writer_is_idle(fence))
        test_run_ms(t.l, 1);
    t.faults = 0;
    put(&t, "a", "3");
    while (!topic_writer_is_shut_out(t.w))
        test_run_ms(t.l, 1);
    CHECK_EQ(t.faults, 1);
    CHECK_EQ(t.g->parts[0].end, 3); /* two values and the fence */
    put(&t, "a", "4");
    test_run_ms(t.l, 30);
    CHECK_EQ(t.g->parts[0].end, 3);
    CHECK(!is_idle(&t));
    topic_writer_free(&fence);
    topic_writer_free(&own);
    tear_down(&t);
}

TEST(without_idempotence)
{
    struct rig t;
    struct batch b;

    set_up(&t);
    t.g->pid_error = KERR_CLUSTER_AUTHORIZATION_FAILED;
    put(&t, "a", "1");
    settle(&t);
    CHECK_EQ(batch_peek(str_of(t.g->parts[0].batches[0].bytes, t.g->parts[0].batches[0].n), &b),
             BATCH_V2);
    CHECK_EQ(b.producer_id, -1);
    tear_down(&t);
}

static bool is_faulty(void *arg)
{
    return ((struct rig *)arg)->faults > 0;
}

TEST(id_comes_late_and_topic_too)
{
    struct rig t;

    set_up(&t);
    t.g->pid_error = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    t.g->topic_error = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    put(&t, "a", "1");
    CHECK(test_run_until(t.l, is_faulty, &t, 10000));
    CHECK(!is_idle(&t));
    t.g->pid_error = 0;
    test_run_ms(t.l, 50);
    t.g->topic_error = 0;
    settle(&t);
    CHECK_EQ(t.g->parts[0].end, 1);
    tear_down(&t);
}

TEST(many_batches)
{
    struct rig t;
    char key[16];
    char *value = mem_new(20001);

    set_up(&t);
    memset(value, 'v', 20000);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "%d", i);
        topic_writer_put(t.w, 0, str_c(key), str_of(value, 20000), -1);
    }
    topic_writer_put(t.w, 0, STR_NULL, STR("x"), -1);
    topic_writer_put(t.w, 0, STR_NULL, STR("x"), -1); /* no keys, no merging */
    settle(&t);
    CHECK_EQ(t.g->parts[0].end, 102);
    CHECK(t.g->parts[0].batches_n >= 7);
    mem_free(value);
    tear_down(&t);
}

TEST(a_partition_without_a_leader_is_named)
{
    struct rig t;

    set_up(&t);
    t.g->parts[3].leader = -1;
    topic_writer_put(t.w, 3, STR("a"), STR("1"), -1);
    CHECK(test_run_until(t.l, is_faulty, &t, 10000));
    CHECK(!strcmp(topic_writer_fault(t.w)->code, "LEADER_NOT_AVAILABLE"));
    CHECK(strstr(topic_writer_fault(t.w)->text, "topic t: partition 3 has no leader") != NULL);
    t.g->parts[3].leader = 2;
    settle(&t);
    CHECK_EQ(t.g->parts[3].end, 1);
    CHECK(!fault_is_set(topic_writer_fault(t.w)));
    tear_down(&t);
}

TESTS(RUN(newest_value_in_order), RUN(tickets), RUN(partition_by_key), RUN(retries), RUN(shut_out),
      RUN(without_idempotence), RUN(id_comes_late_and_topic_too), RUN(many_batches),
      RUN(a_partition_without_a_leader_is_named))
