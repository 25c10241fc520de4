/* test_conn.c -- negotiation, requests and answers, broken and foreign peers, cancels.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/conn.h"

#include "base/log.h"
#include "unit/kafka/fake_broker.h"
#include "unit/kafka/kafka_test.h"

struct rig {
    struct loop *l;
    struct fake fake;
    struct client_config config;
    struct conn *conn;
    int ready, failed;
    enum err error;
    char text[CALL_TEXT_MAX];
    int dones_at_failure;    /* calls come first */
    struct call *when_ready; /* sent at once */
};

static struct kafka_metadata_request metadata;
static int dones;

static void count_done(struct call *c)
{
    (void)c;
    dones++;
}

static void on_conn(struct conn *c, enum conn_event ev, void *arg)
{
    struct rig *r = arg;

    if (ev == CONN_READY) {
        r->ready++;
        if (r->when_ready)
            CHECK_EQ(conn_send(c, r->when_ready), E_OK);
        return;
    }
    r->failed++;
    r->error = conn_error(c);
    r->dones_at_failure = dones;
    snprintf(r->text, sizeof(r->text), "%s", conn_error_text(c));
    conn_close(&r->conn);
}

static void rig_open(struct rig *r)
{
    struct conn_address to = { .host = STR("127.0.0.1"), .port = r->fake.port, .broker_id = 7 };

    r->ready = r->failed = 0;
    r->conn = conn_open(r->l, &r->config, &to, on_conn, r);
}

static void rig_start(struct rig *r)
{
    static const struct client_endpoint none = { .host = { "127.0.0.1", 9 }, .port = 1 };

    *r = (struct rig){ .l = loop_new("test") };
    log_setup(LOG_TEXT, LOG_ERROR, NULL, NULL);
    fake_start(&r->fake, r->l);
    r->config = test_config(&none, 1);
    codec_init(&kafka_metadata_request_msg, &metadata);
    metadata.topics.at = NULL;
    metadata.topics.n = 0;
    dones = 0;
}

static void rig_stop(struct rig *r)
{
    conn_close(&r->conn);
    test_run_ms(r->l, 2);
    fake_stop(&r->fake);
    loop_free(&r->l);
}

static bool is_settled(void *arg)
{
    struct rig *r = arg;

    return r->ready || r->failed;
}

static bool has_failed(void *arg)
{
    return ((struct rig *)arg)->failed > 0;
}

static bool is_done(void *arg)
{
    return !call_is_busy(arg);
}

static void rig_connect(struct rig *r)
{
    rig_open(r);
    CHECK(test_run_until(r->l, is_settled, r, 5000));
    CHECK_EQ(r->ready, 1);
}

static void metadata_call(struct call *c)
{
    call_init(c, API_METADATA, &metadata, count_done);
    c->version_max = 12;
}

TEST(negotiates)
{
    static const struct {
        int max; /* of ApiVersions at the broker */
        bool hide_range;
        uint32_t asked;
        int last;
    } cases[] = { { 5, false, 1, 3 }, { 4, false, 1, 3 }, { 3, false, 1, 3 }, { 2, false, 2, 2 },
                  { 1, false, 2, 1 }, { 2, true, 2, 0 },  { -1, false, 2, 0 } };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rig r;

        rig_start(&r);
        r.fake.max[API_API_VERSIONS] = cases[i].max;
        r.fake.hide_range = cases[i].hide_range;
        r.fake.max[API_FETCH] = 10;
        r.fake.max[API_DESCRIBE_PRODUCERS] = -1;
        rig_connect(&r);
        CHECK_EQ(r.fake.asked[API_API_VERSIONS], cases[i].asked);
        CHECK_EQ(r.fake.last_version[API_API_VERSIONS], cases[i].last);
        CHECK_EQ(conn_version(r.conn, API_FETCH, -1), 10);
        CHECK_EQ(conn_version(r.conn, API_FETCH, 7), 7);
        CHECK_EQ(conn_version(r.conn, API_FETCH, 1), -1);
        CHECK_EQ(conn_version(r.conn, API_DESCRIBE_PRODUCERS, -1), -1);
        CHECK_EQ(conn_version(r.conn, 99, -1), -1);
        CHECK(conn_rtt_us(r.conn) >= 0);
        rig_stop(&r);
    }
}

static bool say_features(struct fake *f, struct fake_request *q)
{
    struct kafka_api_versions_response r;
    struct kafka_api_versions_response_finalized_feature feature = { .name =
                                                                         STR("transaction.version"),
                                                                     .max_version_level = 2 };
    const struct kafka_api_versions_request *asked = q->body;

    (void)f;
    CHECK_STR(asked->client_software_name, "heliostat");
    CHECK_STR(q->client_id, "tester");
    codec_init(&kafka_api_versions_response_msg, &r);
    r.finalized_features.at = &feature;
    r.finalized_features.n = 1;
    fake_answer(q, q->version, &r);
    return true;
}

TEST(knows_features)
{
    struct rig r;

    rig_start(&r);
    r.fake.on_request = say_features;
    rig_connect(&r);
    CHECK_EQ(conn_feature(r.conn, STR("transaction.version")), 2);
    CHECK_EQ(conn_feature(r.conn, STR("group.version")), -1);
    rig_stop(&r);
}

static const struct kafka_metadata_response_broker one_broker[] = {
    { .node_id = 1, .host = { "h", 1 }, .port = 9092 }
};

static void offer_metadata(struct rig *r)
{
    r->fake.brokers = one_broker;
    r->fake.brokers_n = 1;
}

TEST(asks_and_is_answered)
{
    struct rig r;
    struct call a, b;
    const struct kafka_metadata_response *m;

    rig_start(&r);
    offer_metadata(&r);
    r.fake.chunk = 1; /* answers come byte by byte */
    rig_connect(&r);
    metadata_call(&a);
    metadata_call(&b);
    b.version_max = 5;
    CHECK_EQ(conn_send(r.conn, &a), E_OK);
    CHECK_EQ(conn_send(r.conn, &b), E_OK);
    CHECK_EQ(conn_in_flight(r.conn), 2);
    CHECK(call_is_busy(&a));
    CHECK(test_run_until(r.l, is_done, &b, 5000));
    CHECK_EQ(dones, 2);
    CHECK_EQ(a.error, E_OK);
    CHECK_EQ(a.version, 12);
    CHECK_EQ(b.version, 5);
    CHECK_EQ(b.broker_id, 7);
    m = b.response;
    CHECK_STR(m->cluster_id, "fake");
    CHECK_EQ(m->brokers.n, 1);
    CHECK_EQ(conn_in_flight(r.conn), 0);
    call_fini(&a);
    call_fini(&b);
    rig_stop(&r);
}

/* The connection ends after each possible number of bytes of the two answers. */
TEST(cut_at_every_byte)
{
    struct rig r;
    struct call c;
    size_t total = 0;

    rig_start(&r);
    offer_metadata(&r);
    for (size_t cut = 1; total == 0 || cut < total; cut++) {
        dones = 0;
        r.fake.cut_at = cut;
        metadata_call(&c);
        r.when_ready = &c;
        rig_open(&r);
        CHECK(test_run_until(r.l, is_settled, &r, 5000));
        if (r.ready) {
            CHECK(test_run_until(r.l, is_done, &c, 5000));
            if (c.error == E_OK)
                total = cut;
            else
                CHECK_EQ(c.error, E_CLOSED);
            CHECK_EQ(dones, 1);
        }
        CHECK(test_run_until(r.l, has_failed, &r, 5000));
        CHECK_EQ(r.error, E_CLOSED);
        CHECK_EQ(r.dones_at_failure, dones);
        call_fini(&c);
    }
    CHECK(total > 100);
    rig_stop(&r);
}

TEST(foreign_peers)
{
    static const struct {
        const char *bytes;
        size_t n;
        enum err want;
        const char *says;
    } cases[] = {
        { "HTTP/1.1 400 Bad Request\r\n\r\n", 28, E_NOT_KAFKA, "HTTP" },
        { "\x15\x03\x01\x00\x02\x02\x46", 7, E_NOT_KAFKA, "TLS alert" },
        { "SSH-2.0-OpenSSH_9.2\r\n", 21, E_NOT_KAFKA, "SSH" },
        { "", 0, E_CLOSED, "at once: is this a TLS" },
        { "\xff\xff\xff\xff\x00\x00\x00\x01", 8, E_MALFORMED, "of -1 bytes" },
        { "\x7f\xff\xff\xff\x00\x00\x00\x01", 8, E_MALFORMED, "of 2147483647 bytes" },
        { "\x00\x00\x00\x03\x00\x00\x00\x01", 8, E_MALFORMED, "of 3 bytes" },
        { "\x00\x00\x00\x08\x00\x00\x00\x01", 8, E_CLOSED, "middle of an answer" },
        { "\x00\x00\x00\x08\x00\x00\x00\x77", 8, E_MALFORMED, "answer 119 where 1 to ApiVersions" },
        { "\x00\x00\x00\x06\x00\x00\x00\x01\x00\x00", 10, E_MALFORMED, "cannot be read" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rig r;

        rig_start(&r);
        r.fake.raw = cases[i].bytes;
        r.fake.raw_n = cases[i].n;
        rig_open(&r);
        CHECK(test_run_until(r.l, has_failed, &r, 5000));
        if (r.error != cases[i].want || !strstr(r.text, cases[i].says))
            fail_msg("case %zu: %s: %s", i, err_name(r.error), r.text);
        CHECK(strstr(r.text, "127.0.0.1:") == r.text);
        rig_stop(&r);
    }
}

TEST(nobody_listens)
{
    struct rig r;

    rig_start(&r);
    fake_die(&r.fake);
    rig_open(&r);
    CHECK(test_run_until(r.l, has_failed, &r, 5000));
    CHECK_EQ(r.error, E_REFUSED);
    CHECK(strstr(r.text, "connection refused"));
    rig_stop(&r);
}

static bool swallow_metadata(struct fake *f, struct fake_request *q)
{
    (void)f;
    return q->api->key == API_METADATA;
}

TEST(time_out_closes)
{
    struct rig r;
    struct call a, b;

    rig_start(&r);
    r.fake.on_request = swallow_metadata;
    rig_connect(&r);
    metadata_call(&a);
    metadata_call(&b);
    a.timeout_ms = 30;
    CHECK_EQ(conn_send(r.conn, &a), E_OK);
    CHECK_EQ(conn_send(r.conn, &b), E_OK);
    CHECK(test_run_until(r.l, has_failed, &r, 5000));
    CHECK_EQ(a.error, E_TIMEOUT);
    CHECK(b.error != E_OK);
    CHECK(strstr(a.text, "no answer to Metadata"));
    CHECK_EQ(r.dones_at_failure, 2);
    call_fini(&a);
    call_fini(&b);
    rig_stop(&r);
}

TEST(cancels)
{
    struct rig r;
    struct call unsent, sent, dropped, last;

    rig_start(&r);
    offer_metadata(&r);
    rig_connect(&r);
    metadata_call(&unsent);
    metadata_call(&sent);
    metadata_call(&dropped);
    metadata_call(&last);
    CHECK_EQ(conn_send(r.conn, &unsent), E_OK);
    call_cancel(&unsent);
    CHECK(call_is_busy(&unsent)); /* until its done */
    CHECK_EQ(conn_send(r.conn, &sent), E_OK);
    CHECK_EQ(conn_send(r.conn, &dropped), E_OK);
    while (sent.state != CALL_SENT)
        test_run_ms(r.l, 0);
    call_cancel(&sent);
    call_drop(&dropped);
    CHECK(!call_is_busy(&dropped));
    CHECK_EQ(conn_send(r.conn, &last), E_OK);
    CHECK(test_run_until(r.l, is_done, &last, 5000));
    CHECK_EQ(unsent.error, E_CANCELED);
    CHECK_EQ(sent.error, E_CANCELED);
    CHECK_EQ(last.error, E_OK); /* the answers of the others were skipped */
    CHECK_EQ(dones, 3);
    CHECK_EQ(r.fake.asked[API_METADATA], 3);
    call_fini(&unsent);
    call_fini(&sent);
    call_fini(&dropped);
    call_fini(&last);
    rig_stop(&r);
}

TEST(close_cancels)
{
    struct rig r;
    struct call a;

    rig_start(&r);
    r.fake.on_request = swallow_metadata;
    rig_connect(&r);
    metadata_call(&a);
    CHECK_EQ(conn_send(r.conn, &a), E_OK);
    test_run_ms(r.l, 5);
    conn_close(&r.conn);
    CHECK_EQ(dones, 0);
    CHECK(test_run_until(r.l, is_done, &a, 5000));
    CHECK_EQ(a.error, E_CANCELED);
    CHECK_EQ(r.failed, 0);
    call_fini(&a);
    rig_stop(&r);
}

static bool answer_nonsense(struct fake *f, struct fake_request *q)
{
    (void)f;
    if (q->api->key != API_METADATA)
        return false;
    put_i32(&q->conn->out, 9);
    put_i32(&q->conn->out, q->correlation_id);
    buf_put(&q->conn->out, "\xff\xff\xff\xff\xff", 5);
    return true;
}

TEST(nonsense_breaks)
{
    struct rig r;
    struct call a, b;

    rig_start(&r);
    r.fake.on_request = answer_nonsense;
    rig_connect(&r);
    metadata_call(&a);
    metadata_call(&b);
    CHECK_EQ(conn_send(r.conn, &a), E_OK);
    CHECK_EQ(conn_send(r.conn, &b), E_OK);
    CHECK(test_run_until(r.l, has_failed, &r, 5000));
    CHECK_EQ(a.error, E_MALFORMED);
    CHECK(b.error != E_OK);
    CHECK(a.response == NULL);
    call_fini(&a);
    call_fini(&b);
    rig_stop(&r);
}

/* --- payload --- */

#define RECORDS_SIZE (3 * MiB)
static char *records;

static bool answer_fetch(struct fake *f, struct fake_request *q)
{
    struct kafka_fetch_response r;
    struct kafka_fetch_response_topic t;
    struct kafka_fetch_response_partition p;

    (void)f;
    if (q->api->key != API_FETCH)
        return false;
    codec_init(&kafka_fetch_response_msg, &r);
    codec_init(&kafka_fetch_response_topic_msg, &t);
    codec_init(&kafka_fetch_response_partition_msg, &p);
    r.throttle_time_ms = 1234;
    r.responses.at = &t;
    r.responses.n = 1;
    t.topic = STR("t");
    t.partitions.at = &p;
    t.partitions.n = 1;
    p.records.body = str_of(records, RECORDS_SIZE);
    fake_answer(q, q->version, &r);
    return true;
}

TEST(answers_go_into_pool_blocks)
{
    struct rig r;
    struct call c;
    struct kafka_fetch_request q;
    struct pool *pool = pool_new(1 * MiB, 64 * MiB);
    const struct kafka_fetch_response *got;
    struct slice kept;

    records = mem_new(RECORDS_SIZE);
    for (size_t i = 0; i < RECORDS_SIZE; i++)
        records[i] = (char)(i * 7 / 3);
    rig_start(&r);
    r.fake.on_request = answer_fetch;
    rig_connect(&r);
    codec_init(&kafka_fetch_request_msg, &q);
    call_init(&c, API_FETCH, &q, count_done);
    c.version_max = 12;
    c.pool = pool;
    for (int turn = 0; turn < 3; turn++) { /* once; canceled while it arrives; again */
        CHECK(pool_reserve(pool, MiB));
        c.reserved = MiB;
        r.fake.chunk = turn == 1 ? 64 * KiB : 0;
        CHECK_EQ(conn_send(r.conn, &c), E_OK);
        if (turn == 1) {
            while (pool_used(pool) <= MiB)
                test_run_ms(r.l, 0);
            call_cancel(&c);
            r.fake.chunk = 0;
        }
        CHECK(test_run_until(r.l, is_done, &c, 5000));
        CHECK_EQ(c.error, turn == 1 ? E_CANCELED : E_OK);
    }
    got = c.response;
    CHECK_EQ(c.throttle_ms, 1234);
    CHECK(conn_throttled_until_ms(r.conn) > loop_now_ms(r.l));
    CHECK(c.bytes.b != NULL);
    kept = slice_of(c.bytes.b, got->responses.at[0].partitions.at[0].records.body.p, RECORDS_SIZE);
    call_fini(&c);
    CHECK_EQ(c.reserved, 0);
    CHECK_MEM(kept.p, records, RECORDS_SIZE); /* outlives the call */
    slice_drop(&kept);
    CHECK_EQ(pool_used(pool), 0);
    rig_stop(&r);
    pool_free(&pool);
    mem_free(records);
}

TEST(a_failed_connection_gives_the_reservation_back)
{
    struct rig r;
    struct call c;
    struct kafka_fetch_request q;
    struct pool *pool = pool_new(1 * MiB, 64 * MiB);

    rig_start(&r);
    rig_connect(&r);
    codec_init(&kafka_fetch_request_msg, &q);
    call_init(&c, API_FETCH, &q, count_done);
    c.pool = pool;
    c.version_max = 0;
    CHECK(pool_reserve(pool, MiB));
    c.reserved = MiB;
    CHECK_EQ(conn_send(r.conn, &c), E_VERSION);
    CHECK_EQ(c.reserved, MiB); /* no start, nothing handed over */
    c.version_max = 12;
    CHECK_EQ(conn_send(r.conn, &c), E_OK);
    test_run_ms(r.l, 5);
    fake_die(&r.fake);
    CHECK(test_run_until(r.l, has_failed, &r, 5000));
    CHECK(c.error != E_OK);
    CHECK_EQ(pool_used(pool), 0);
    call_fini(&c);
    rig_stop(&r);
    pool_free(&pool);
}

#define PARTS 2000

static bool check_produce(struct fake *f, struct fake_request *q)
{
    const struct kafka_produce_request *p = q->body;
    struct kafka_produce_response r;

    if (q->api->key != API_PRODUCE)
        return false;
    CHECK_EQ(p->topic_data.n, 1);
    CHECK_EQ(p->topic_data.at[0].partition_data.n, PARTS);
    for (int32_t i = 0; i < PARTS; i++) {
        struct str got = p->topic_data.at[0].partition_data.at[i].records.body;

        CHECK_EQ(got.n, 61 + (size_t)i);
        CHECK_EQ(got.p[0], (char)i);
        CHECK_MEM(got.p + 61, f->arg, (size_t)i);
    }
    codec_init(&kafka_produce_response_msg, &r);
    r.throttle_time_ms = 5;
    fake_answer(q, q->version, &r);
    return true;
}

TEST(records_are_written_by_reference)
{
    struct rig r;
    struct call c;
    struct kafka_produce_request q;
    struct kafka_produce_request_topic t;
    struct kafka_produce_request_partition *parts = mem_array(PARTS, sizeof(*parts));
    char(*heads)[61] = mem_array(PARTS, 61);
    char *body = mem_new(PARTS);

    memset(body, 'b', PARTS);
    rig_start(&r);
    r.config.send_buffer_bytes = 16 * KiB; /* so that writes are partial */
    r.fake.on_request = check_produce;
    r.fake.arg = body;
    rig_connect(&r);
    codec_init(&kafka_produce_request_msg, &q);
    codec_init(&kafka_produce_request_topic_msg, &t);
    q.acks = -1;
    q.topic_data.at = &t;
    q.topic_data.n = 1;
    t.name = STR("t");
    t.partition_data.at = parts;
    t.partition_data.n = PARTS;
    for (int32_t i = 0; i < PARTS; i++) {
        codec_init(&kafka_produce_request_partition_msg, &parts[i]);
        heads[i][0] = (char)i;
        parts[i].records = (struct records){ str_of(heads[i], 61), str_of(body, (size_t)i) };
    }
    call_init(&c, API_PRODUCE, &q, count_done);
    c.version_max = 12;
    for (int turn = 0; turn < 3; turn++) {
        CHECK_EQ(conn_send(r.conn, &c), E_OK);
        CHECK(test_run_until(r.l, is_done, &c, 5000));
        CHECK_EQ(c.error, E_OK);
        CHECK_EQ(c.throttle_ms, 5);
    }
    call_fini(&c);
    rig_stop(&r);
    mem_free(parts);
    mem_free(heads);
    mem_free(body);
}

TESTS(RUN(negotiates), RUN(knows_features), RUN(asks_and_is_answered), RUN(cut_at_every_byte),
      RUN(foreign_peers), RUN(nobody_listens), RUN(time_out_closes), RUN(cancels),
      RUN(close_cancels), RUN(nonsense_breaks), RUN(answers_go_into_pool_blocks),
      RUN(a_failed_connection_gives_the_reservation_back), RUN(records_are_written_by_reference))
