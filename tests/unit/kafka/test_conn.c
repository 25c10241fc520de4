/* test_conn.c -- negotiation, requests and answers, broken and foreign peers, cancels.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/kafka/conn_rig.h"

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

static struct fake_request swallowed;

static bool keep_metadata(struct fake *f, struct fake_request *q)
{
    (void)f;
    if (q->api->key != API_METADATA)
        return false;
    swallowed = *q;
    return true;
}

static bool is_silent(void *arg)
{
    return conn_silent_ms(((struct rig *)arg)->conn) > 0;
}

static bool is_not_silent(void *arg)
{
    return !is_silent(arg);
}

static bool is_answered(void *arg)
{
    return !call_is_busy(arg);
}

/* An answer that does not come is seen long before the connection is cut for it, and is over with the answer. */
TEST(silence)
{
    static const struct kafka_metadata_response nothing;
    struct rig r;
    struct call a;
    int64_t began_ms;

    rig_start(&r);
    r.fake.on_request = keep_metadata;
    rig_connect(&r);
    CHECK_EQ(conn_silent_ms(r.conn), 0);
    metadata_call(&a);
    began_ms = loop_now_ms(r.l);
    CHECK_EQ(conn_send(r.conn, &a), E_OK);
    CHECK_EQ(conn_silent_ms(r.conn), 0);
    CHECK(test_run_until(r.l, is_silent, &r, 9000));
    CHECK(loop_now_ms(r.l) - began_ms >= CONN_SILENT_MS);
    CHECK(conn_is_ready(r.conn));
    fake_answer(&swallowed, swallowed.version, &nothing);
    CHECK(test_run_until(r.l, is_answered, &a, 5000));
    CHECK(test_run_until(r.l, is_not_silent, &r, 5000));
    CHECK_EQ(a.error, E_OK);
    call_fini(&a);
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

TESTS(RUN(negotiates), RUN(knows_features), RUN(asks_and_is_answered), RUN(cut_at_every_byte),
      RUN(foreign_peers), RUN(nobody_listens), RUN(time_out_closes), RUN(silence), RUN(cancels),
      RUN(close_cancels), RUN(nonsense_breaks))
