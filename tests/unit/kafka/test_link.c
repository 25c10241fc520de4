/* test_link.c -- a link connects again, backs off, dozes, follows its broker's address.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/link.h"

#include "base/log.h"
#include "unit/kafka/fake_broker.h"
#include "unit/kafka/kafka_test.h"

struct rig {
    struct loop *l;
    struct fake a, b;
    struct kafka_metadata_response_broker broker;
    struct client_endpoint bootstrap;
    struct client_config config;
    struct cluster *cl;
    struct link *k;
    int ups, downs, want_ups, want_downs;
    enum err last;
};

static void on_link(struct link *k, enum link_event ev, void *arg)
{
    struct rig *r = arg;

    if (ev == LINK_UP) {
        CHECK(link_conn(k) != NULL);
        r->ups++;
        return;
    }
    r->downs++;
    r->last = link_error(k);
    CHECK(!r->last || !link_conn(k)); /* asking a dozing one would wake it */
}

static bool is_up(void *arg)
{
    return cluster_is_up(((struct rig *)arg)->cl);
}

static bool is_there(void *arg)
{
    struct rig *r = arg;

    return r->ups >= r->want_ups && r->downs >= r->want_downs;
}

static void expect(struct rig *r, int ups, int downs)
{
    r->want_ups = ups;
    r->want_downs = downs;
    CHECK(test_run_until(r->l, is_there, r, 5000));
}

static void rig_start(struct rig *r)
{
    *r = (struct rig){ .l = loop_new("test") };
    log_setup(LOG_TEXT, LOG_ERROR, NULL, NULL);
    fake_start(&r->a, r->l);
    fake_start(&r->b, r->l);
    r->broker = (struct kafka_metadata_response_broker){ .node_id = 1,
                                                         .host = STR("127.0.0.1"),
                                                         .port = r->a.port };
    r->a.brokers = r->b.brokers = &r->broker;
    r->a.brokers_n = r->b.brokers_n = 1;
    r->bootstrap =
        (struct client_endpoint){ .host = STR("127.0.0.1"), .port = (uint16_t)r->b.port };
    r->config = test_config(&r->bootstrap, 1);
    r->cl = cluster_new(r->l, &r->config, STR("A"));
    CHECK(test_run_until(r->l, is_up, r, 5000));
    r->k = link_new(r->cl, 1, "test", on_link, r);
}

static void rig_stop(struct rig *r)
{
    link_free(&r->k);
    cluster_free(&r->cl);
    test_run_ms(r->l, 2);
    fake_stop(&r->a);
    fake_stop(&r->b);
    loop_free(&r->l);
}

TEST(connects_only_while_wanted)
{
    struct rig r;

    rig_start(&r);
    test_run_ms(r.l, 10);
    CHECK_EQ(r.a.accepted, 0);
    link_want(r.k, true);
    CHECK(!link_conn(r.k));
    expect(&r, 1, 0);
    link_want(r.k, false);
    CHECK(!link_conn(r.k));
    test_run_ms(r.l, 10);
    CHECK_EQ(r.downs, 0);
    CHECK_EQ(r.a.accepted, 1);
    link_want(r.k, true);
    expect(&r, 2, 0);
    rig_stop(&r);
}

TEST(connects_again)
{
    struct rig r;

    rig_start(&r);
    link_want(r.k, true);
    expect(&r, 1, 0);
    fake_die(&r.a);
    expect(&r, 1, 4); /* lost, and refused again and again */
    CHECK_EQ(r.last, E_REFUSED);
    CHECK(strstr(link_error_text(r.k), "refused"));
    fake_listen(&r.a, r.a.port);
    expect(&r, 2, 4);
    link_reset(r.k);
    CHECK(!link_conn(r.k));
    expect(&r, 3, 5);
    rig_stop(&r);
}

TEST(follows_the_address)
{
    struct rig r;

    rig_start(&r);
    link_want(r.k, true);
    expect(&r, 1, 0);
    r.broker.port = r.b.port;
    cluster_refresh(r.cl);
    expect(&r, 2, 1);
    CHECK_EQ(r.b.accepted, 2);
    rig_stop(&r);
}

TEST(unknown_broker)
{
    struct rig r;

    rig_start(&r);
    link_free(&r.k);
    r.k = link_new(r.cl, 9, "test", on_link, &r);
    link_want(r.k, true);
    expect(&r, 0, 1);
    CHECK_EQ(r.last, E_NO_BROKER);
    r.broker.node_id = 9;
    expect(&r, 1, 1);
    rig_stop(&r);
}

TEST(dozes_when_idle)
{
    struct rig r;

    rig_start(&r);
    r.config.connections_max_idle_ms = 30;
    link_want(r.k, true);
    expect(&r, 1, 0);
    expect(&r, 1, 1);
    CHECK_EQ(r.last, E_OK);
    test_run_ms(r.l, 60);
    CHECK_EQ(r.ups, 1);
    CHECK(!link_conn(r.k)); /* wakes it */
    expect(&r, 2, 1);
    rig_stop(&r);
}

TESTS(RUN(connects_only_while_wanted), RUN(connects_again), RUN(follows_the_address),
      RUN(unknown_broker), RUN(dozes_when_idle))
