/* conn_rig.h -- one connection to the fake broker, for the tests of conn.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_KAFKA_CONN_RIG_H
#define TESTS_UNIT_KAFKA_CONN_RIG_H

#include "base/log.h"
#include "kafka/conn.h"
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

static inline void count_done(struct call *c)
{
    (void)c;
    dones++;
}

static inline void on_conn(struct conn *c, enum conn_event ev, void *arg)
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

static inline void rig_open(struct rig *r)
{
    struct conn_address to = { .host = STR("127.0.0.1"), .port = r->fake.port, .broker_id = 7 };

    r->ready = r->failed = 0;
    r->conn = conn_open(r->l, &r->config, &to, on_conn, r);
}

static inline void rig_start(struct rig *r)
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

static inline void rig_stop(struct rig *r)
{
    conn_close(&r->conn);
    test_run_ms(r->l, 2);
    fake_stop(&r->fake);
    loop_free(&r->l);
}

static inline bool is_settled(void *arg)
{
    struct rig *r = arg;

    return r->ready || r->failed;
}

static inline bool has_failed(void *arg)
{
    return ((struct rig *)arg)->failed > 0;
}

static inline bool is_done(void *arg)
{
    return !call_is_busy(arg);
}

static inline void rig_connect(struct rig *r)
{
    rig_open(r);
    CHECK(test_run_until(r->l, is_settled, r, 5000));
    CHECK_EQ(r->ready, 1);
}

static inline void metadata_call(struct call *c)
{
    call_init(c, API_METADATA, &metadata, count_done);
    c->version_max = 12;
}

#endif
