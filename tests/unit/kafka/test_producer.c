/* test_producer.c -- order through retries, windows, refusals, and hard stops, against fake logs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/producer.h"

#include "unit/kafka/fake_cluster.h"

#define PARTS 4

struct writer {
    struct rig *rig;
    struct produce_part part;
    bool careful; /* its batches are */
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
static struct outgoing *make(const struct writer *w, int64_t pid, int32_t number)
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

static void on_acked(struct produce_part *p, struct outgoing *o, const struct produced *r)
{
    struct writer *w = container_of(p, struct writer, part);

    CHECK_EQ(o->source_base, 2 * w->acked);
    CHECK_EQ(r->base_offset, w->next_base);
    w->acked++;
    w->next_base += o->count;
}

static void on_refused(struct produce_part *p, struct outgoing *o, int32_t kerr, struct str message)
{
    struct writer *w = container_of(p, struct writer, part);

    (void)message;
    CHECK_EQ(o->source_base, 2 * w->acked); /* the oldest */
    w->refused = o;
    w->refused_kerr = kerr;
    w->refusals++;
}

static void on_waiting(struct produce_part *p, struct outgoing *o, int32_t kerr, enum err e,
                       const char *text)
{
    struct writer *w = container_of(p, struct writer, part);

    CHECK_EQ(o->source_base, 2 * w->acked);
    CHECK(kerr || e);
    CHECK(text);
    w->waits++;
}

static void set_up(struct rig *t, bool with_id)
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

static void drop_all(struct list_node *list)
{
    struct list_node *n;

    while ((n = list_first(list))) {
        struct outgoing *o = container_of(n, struct outgoing, node);

        list_remove(n);
        outgoing_free(&o);
    }
}

static void tear_down(struct rig *t)
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

static void put(struct rig *t, int i, int n)
{
    for (; n > 0; n--) {
        struct outgoing *o = make(&t->w[i], t->pid, t->w[i].sent++);

        o->careful = t->w[i].careful;
        producer_send(t->p, &t->w[i].part, o);
    }
}

static bool all_acked(void *arg)
{
    struct rig *t = arg;

    for (int i = 0; i < PARTS; i++)
        if (t->w[i].acked < t->w[i].sent)
            return false;
    return true;
}

/* The log holds batches 0 … n-1 once each, in order. */
static void check_log(struct rig *t, int i, int n)
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

static void check_all(struct rig *t)
{
    CHECK(test_run_until(t->l, all_acked, t, 20000));
    for (int i = 0; i < PARTS; i++) {
        check_log(t, i, t->w[i].sent);
        CHECK_EQ(producer_pending(&t->w[i].part), 0);
    }
}

TEST(order_and_packing)
{
    struct rig t;

    set_up(&t, true);
    for (int i = 0; i < PARTS; i++)
        put(&t, i, 200);
    check_all(&t);
    CHECK_EQ(producer_counts(t.p)->batches, 800);
    CHECK_EQ(producer_counts(t.p)->retries, 0);
    /* One batch of each partition per request. */
    CHECK(producer_counts(t.p)->requests <= 250);
    CHECK_EQ(t.g->produce_version, 13);
    tear_down(&t);
}

static bool one_held(void *arg)
{
    return ((struct rig *)arg)->g->held >= 1;
}

static bool five_held(void *arg)
{
    return ((struct rig *)arg)->g->held >= 5;
}

TEST(first_batch_goes_alone)
{
    struct rig t;

    set_up(&t, true);
    t.g->hold = true;
    put(&t, 0, 10);
    CHECK(test_run_until(t.l, one_held, &t, 5000));
    test_run_ms(t.l, 30);
    CHECK_EQ(t.g->held, 1);
    CHECK_EQ(t.g->parts[0].batches_n, 1);
    t.g->hold = false;
    for (int k = 0; k < FAKE_CONNS; k++)
        fake_hang_up(
            &t.g->brokers[0].conns[k]); /* the answer is lost: the first goes again, alone */
    check_all(&t);
    /* Another producer id begins alone too. */
    t.pid = 78;
    t.w[0].part.producer_id = 77;
    t.g->held = 0;
    t.g->hold = true;
    t.g->parts[0].pids_n = 0;
    put(&t, 0, 5);
    CHECK(test_run_until(t.l, one_held, &t, 5000));
    test_run_ms(t.l, 30);
    CHECK_EQ(t.g->held, 1);
    tear_down(&t); /* a hard stop with a request on its way */
}

TEST(retriable_in_the_middle)
{
    struct rig t;
    static const int32_t errors[] = { KERR_NOT_ENOUGH_REPLICAS, KERR_REQUEST_TIMED_OUT,
                                      KERR_LEADER_NOT_AVAILABLE,
                                      KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND };

    set_up(&t, true);
    put(&t, 0, 3);
    check_all(&t);
    for (size_t k = 0; k < COUNT(errors); k++) {
        log_fail(&t.g->parts[0], errors[k], k % 2); /* odd ones are appended all the same */
        log_fail(&t.g->parts[0], errors[k], false);
        put(&t, 0, 20);
        put(&t, 1, 20);
        check_all(&t);
    }
    CHECK_EQ(t.w[0].refusals, 0);
    CHECK(t.w[0].waits > 0);
    CHECK(producer_counts(t.p)->retries > 0);
    tear_down(&t);
}

TEST(cut_with_five_in_flight)
{
    struct rig t;

    set_up(&t, true);
    put(&t, 0, 1);
    check_all(&t);
    t.g->hold = true;
    put(&t, 0, 12);
    CHECK(test_run_until(t.l, five_held, &t, 5000));
    test_run_ms(t.l, 20);
    CHECK_EQ(t.g->held, 5);
    t.g->hold = false;
    for (int k = 0; k < FAKE_CONNS; k++)
        fake_hang_up(&t.g->brokers[0].conns[k]);
    check_all(&t); /* the broker knows all five and says so */
    CHECK_EQ(t.w[0].refusals, 0);
    tear_down(&t);
}

TEST(cut_in_between)
{
    struct rig t;

    set_up(&t, true);
    for (int round = 0; round < 12; round++) {
        t.g->cut_in = 1 + round % 6;
        t.g->cut_appends = round % 2;
        for (int i = 0; i < PARTS; i++)
            put(&t, i, 15);
        check_all(&t);
    }
    tear_down(&t);
}

static bool is_refused(void *arg)
{
    return ((struct rig *)arg)->w[0].refusals > 0;
}

TEST(out_of_order_at_the_head)
{
    struct rig t;
    struct list_node list;
    struct outgoing *o;

    set_up(&t, true);
    put(&t, 0, 5);
    check_all(&t);
    t.g->parts[0].pids[0].seen_n = 1; /* the broker was restarted, and has lost its end */
    t.g->parts[0].pids[0].seen[0].last = 3;
    put(&t, 0, 8);
    CHECK(test_run_until(t.l, is_refused, &t, 5000));
    CHECK_EQ(t.w[0].refused_kerr, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    test_run_ms(t.l, 50);
    CHECK_EQ(t.w[0].refusals, 1);
    CHECK_EQ(t.g->parts[0].batches_n, 5);
    list_init(&list);
    producer_take_back(t.p, &t.w[0].part, &list);
    CHECK_EQ(producer_pending(&t.w[0].part), 0);
    for (int k = 0; k < 8; k++) {
        CHECK(!list_is_empty(&list));
        o = container_of(list_first(&list), struct outgoing, node);
        CHECK_EQ(o->source_base, 2 * (5 + k));
        list_remove(&o->node);
        outgoing_free(&o);
    }
    CHECK(list_is_empty(&list));
    tear_down(&t);
}

TEST(refusals_and_resume)
{
    static const struct {
        int32_t kerr;
    } cases[] = { { KERR_MESSAGE_TOO_LARGE },
                  { KERR_INVALID_RECORD },
                  { KERR_TOPIC_AUTHORIZATION_FAILED },
                  { KERR_INVALID_PRODUCER_EPOCH },
                  { KERR_CORRUPT_MESSAGE },
                  { KERR_POLICY_VIOLATION } };
    struct rig t;

    set_up(&t, true);
    put(&t, 0, 2);
    check_all(&t);
    for (size_t k = 0; k < COUNT(cases); k++) {
        t.w[0].refusals = 0;
        log_fail(&t.g->parts[0], cases[k].kerr, false);
        put(&t, 0, 8);
        put(&t, 1, 8);
        CHECK(test_run_until(t.l, is_refused, &t, 5000));
        CHECK_EQ(t.w[0].refused_kerr, cases[k].kerr);
        test_run_ms(t.l, 20);
        CHECK_EQ(t.w[0].refusals, 1);
        producer_resume(t.p, &t.w[0].part);
        check_all(&t);
    }
    tear_down(&t);
}

TEST(careful)
{
    struct rig t;
    struct list_node list;

    set_up(&t, true);
    t.w[0].careful = true;
    put(&t, 0, 5);
    check_all(&t);
    log_fail(&t.g->parts[0], KERR_NOT_ENOUGH_REPLICAS, false); /* definite: sent again */
    put(&t, 0, 1);
    check_all(&t);
    t.g->cut_in = 1;
    t.g->cut_appends = true;
    put(&t, 0, 4);
    CHECK(test_run_until(t.l, is_refused, &t, 5000));
    CHECK_EQ(t.w[0].refused_kerr, KERR_NETWORK_EXCEPTION);
    CHECK(t.w[0].refused->unsure);
    test_run_ms(t.l, 30);
    CHECK_EQ(t.g->parts[0].produced, 8); /* not sent again */
    list_init(&list);
    producer_take_back(t.p, &t.w[0].part, &list);
    drop_all(&list);
    tear_down(&t);
}

TEST(leader_moves)
{
    struct rig t;

    for (int tell = 0; tell < 2; tell++) {
        set_up(&t, tell);
        t.g->tell_leader = tell;
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < PARTS; i++)
                put(&t, i, 10);
            test_run_ms(t.l, round == 0 ? 30 : 3);
            for (int i = 0; i < PARTS; i++) {
                t.g->parts[i].leader = 3 - t.g->parts[i].leader;
                t.g->parts[i].epoch++;
                put(&t, i, 10);
            }
            check_all(&t);
        }
        tear_down(&t);
    }
}

TEST(later_one_succeeds_first)
{
    struct rig t;

    set_up(&t, true);
    put(&t, 0, 2);
    check_all(&t);
    /* Appended, but the broker says it is not sure; those behind it succeed. */
    log_fail(&t.g->parts[0], KERR_REQUEST_TIMED_OUT, true);
    put(&t, 0, 5);
    check_all(&t); /* on_acked checks the order */
    tear_down(&t);
}

TEST(versions)
{
    struct rig t;
    static const int offered[] = { 7, 8, 9, 10, 11, 12, 13 };

    for (size_t k = 0; k < COUNT(offered); k++) {
        for (int with_id = 0; with_id < 2; with_id++) {
            set_up(&t, with_id);
            t.g->brokers[0].max[API_PRODUCE] = offered[k];
            for (int i = 0; i < PARTS; i++)
                put(&t, i, 3);
            check_all(&t);
            CHECK_EQ(t.g->produce_version, with_id ? offered[k] : MIN(offered[k], 12));
            tear_down(&t);
        }
    }
}

TEST(hard_stop)
{
    struct rig t;
    struct list_node list;

    set_up(&t, true);
    put(&t, 0, 1);
    check_all(&t);
    t.g->hold = true;
    put(&t, 0, 7);
    put(&t, 1, 3);
    CHECK(test_run_until(t.l, five_held, &t, 5000));
    list_init(&list);
    producer_take_back(t.p, &t.w[0].part, &list);
    for (int k = 0; k < 7; k++) {
        struct outgoing *o = container_of(list_first(&list), struct outgoing, node);

        CHECK_EQ(o->source_base, 2 * (1 + k));
        CHECK_EQ(o->unsure, k < 5);
        list_remove(&o->node);
        outgoing_free(&o);
    }
    CHECK(list_is_empty(&list));
    t.g->hold = false;
    test_run_ms(t.l, 30);
    CHECK_EQ(t.w[0].acked, 1);
    tear_down(&t);
}

static bool has_waited(void *arg)
{
    return ((struct rig *)arg)->w[0].waits > 0;
}

TEST(no_leader_and_denied)
{
    struct rig t;

    set_up(&t, true);
    t.g->parts[0].leader = -1;
    put(&t, 0, 3);
    put(&t, 1, 3);
    CHECK(test_run_until(t.l, has_waited, &t, 5000));
    CHECK_EQ(t.w[1].acked, 3);
    t.g->parts[0].leader = 2;
    t.g->parts[0].epoch++;
    check_all(&t);
    tear_down(&t);

    set_up(&t, true);
    t.g->topic_error = KERR_TOPIC_AUTHORIZATION_FAILED;
    put(&t, 0, 3);
    CHECK(test_run_until(t.l, is_refused, &t, 5000));
    CHECK_EQ(t.w[0].refused_kerr, KERR_TOPIC_AUTHORIZATION_FAILED);
    tear_down(&t);
}

/* Faults of all kinds at random, from a fixed seed: the log ends exact. */
TEST(storm)
{
    static const int32_t errors[] = { KERR_NOT_ENOUGH_REPLICAS, KERR_REQUEST_TIMED_OUT,
                                      KERR_LEADER_NOT_AVAILABLE,
                                      KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                                      KERR_KAFKA_STORAGE_ERROR };
    struct rig t;
    struct rand r;

    rand_init(&r, 20);
    set_up(&t, true);
    t.g->tell_leader = true;
    for (int round = 0; round < 60; round++) {
        int i = (int)rand_below(&r, PARTS);

        for (int k = 0; k < PARTS; k++)
            put(&t, k, (int)rand_below(&r, 12));
        switch (rand_below(&r, 4)) {
        case 0:
            log_fail(&t.g->parts[i], errors[rand_below(&r, COUNT(errors))], rand_below(&r, 2));
            break;
        case 1:
            t.g->cut_in = 1 + (int)rand_below(&r, 6);
            t.g->cut_appends = rand_below(&r, 2);
            break;
        case 2:
            t.g->parts[i].leader = 3 - t.g->parts[i].leader;
            t.g->parts[i].epoch++;
            break;
        default:
            break;
        }
        test_run_ms(t.l, (int64_t)rand_below(&r, 8));
    }
    check_all(&t);
    for (int i = 0; i < PARTS; i++)
        CHECK_EQ(t.w[i].refusals, 0);
    tear_down(&t);
}

TESTS(RUN(order_and_packing), RUN(first_batch_goes_alone), RUN(retriable_in_the_middle),
      RUN(cut_with_five_in_flight), RUN(cut_in_between), RUN(out_of_order_at_the_head),
      RUN(refusals_and_resume), RUN(careful), RUN(leader_moves), RUN(later_one_succeeds_first),
      RUN(versions), RUN(hard_stop), RUN(no_leader_and_denied), RUN(storm))
