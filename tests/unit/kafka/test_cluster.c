/* test_cluster.c -- bootstrap, metadata, leaders and routes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/kafka/cluster_rig.h"

/* --- metadata --- */

TEST(comes_up)
{
    struct rig r;
    struct topic_meta *t, *u, *none;
    const struct broker_meta *brokers;
    int64_t rtt_us;

    rig_start(&r);
    fake_die(&r.fakes[2]);
    r.config.bootstrap = r.bootstrap + 1; /* 2, and 3 which is dead */
    r.config.bootstrap_count = 2;
    rig_begin(&r);
    CHECK(!cluster_is_up(r.cl));
    t = cluster_watch(r.cl, STR("t"));
    u = cluster_watch(r.cl, STR("u"));
    none = cluster_watch(r.cl, STR("none"));
    CHECK(t == cluster_watch(r.cl, STR("t")));
    CHECK(test_run_until(r.l, is_known, none, 5000));
    CHECK(cluster_is_up(r.cl));
    CHECK(!fault_is_set(cluster_fault(r.cl)));
    CHECK_STR(cluster_id(r.cl), "fake");
    CHECK_EQ(cluster_brokers(r.cl, &brokers), 2);
    CHECK_EQ(brokers[1].port, r.fakes[1].port);
    CHECK_EQ(cluster_controller(r.cl), 2);
    CHECK_EQ(t->parts_n, 2);
    CHECK_EQ(t->parts[1].leader, 1);
    CHECK_EQ(t->parts[1].leader_epoch, 5);
    CHECK_EQ(u->parts[0].leader, 2);
    CHECK_EQ(none->error, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    CHECK(r.told > 0);
    CHECK(!strcmp(cluster_broker_state(r.cl, 1, &rtt_us), "idle"));
    cluster_unwatch(r.cl, &t);
    CHECK(!t);
    rig_stop(&r);
}

TEST(fault_names_the_cause)
{
    struct rig r;

    rig_start(&r);
    for (int i = 0; i < FAKES; i++)
        fake_die(&r.fakes[i]);
    r.config.bootstrap_count = 3;
    rig_begin(&r);
    while (!strstr(cluster_fault(r.cl)->text, "(3 of 3 bootstrap servers)"))
        CHECK(test_run_until(r.l, is_down, &r, 5000));
    CHECK(strstr(cluster_fault(r.cl)->text, "connection refused"));
    CHECK(!strcmp(cluster_fault(r.cl)->code, "REFUSED"));
    fake_listen(&r.fakes[0], r.fakes[0].port);
    CHECK(test_run_until(r.l, is_up, &r, 5000));
    CHECK(!fault_is_set(cluster_fault(r.cl)));
    rig_stop(&r);
}

static bool has_asked(void *arg)
{
    struct rig *r = arg;
    uint32_t n = 0;

    for (int i = 0; i < FAKES; i++)
        n += r->fakes[i].asked[API_METADATA];
    return n >= (uint32_t)dones; /* used as a mark */
}

/* One more metadata answer, at least. */
static void refresh(struct rig *r)
{
    dones = 1;
    for (int i = 0; i < FAKES; i++)
        dones += (int)r->fakes[i].asked[API_METADATA];
    cluster_refresh(r->cl);
    CHECK(test_run_until(r->l, has_asked, r, 5000));
    test_run_ms(r->l, 5);
}

TEST(leader_epochs_do_not_fall)
{
    struct rig r;
    struct topic_meta *t;

    rig_start(&r);
    rig_begin(&r);
    t = cluster_watch(r.cl, STR("t"));
    CHECK(test_run_until(r.l, is_known, t, 5000));
    r.topics[0].leader = 2;
    r.topics[0].leader_epoch = 4;
    refresh(&r);
    CHECK_EQ(t->parts[0].leader, 1);
    CHECK_EQ(t->parts[0].leader_epoch, 5);
    r.topics[0].leader_epoch = 6;
    refresh(&r);
    CHECK_EQ(t->parts[0].leader, 2);
    r.topics[0].partitions = 1; /* an answer from before the topic grew */
    refresh(&r);
    CHECK_EQ(t->parts_n, 2);
    r.topics[0] = (struct fake_topic){
        .name = "t", .id = { "new" }, .partitions = 1, .leader = 1, .leader_epoch = 0
    };
    refresh(&r);
    CHECK_EQ(t->parts_n, 1);
    CHECK_EQ(t->parts[0].leader_epoch, 0);
    CHECK(!memcmp(&t->id, &r.topics[0].id, sizeof(t->id)));
    rig_stop(&r);
}

TEST(learns_leaders)
{
    struct rig r;
    struct topic_meta *t;
    const struct broker_meta *b;

    rig_start(&r);
    rig_begin(&r);
    t = cluster_watch(r.cl, STR("t"));
    CHECK(test_run_until(r.l, is_known, t, 5000));
    cluster_learn_leader(r.cl, t, 0, 2, 5, STR_NULL, 0);
    CHECK_EQ(t->parts[0].leader, 1); /* not newer */
    cluster_learn_leader(r.cl, t, 0, 3, 6, STR_NULL, 0);
    CHECK_EQ(t->parts[0].leader, 1); /* nobody knows broker 3 */
    cluster_learn_leader(r.cl, t, 0, 3, 6, STR("127.0.0.1"), r.fakes[2].port);
    CHECK_EQ(t->parts[0].leader, 3);
    b = cluster_find_broker(r.cl, 3);
    CHECK(b && b->port == r.fakes[2].port);
    rig_stop(&r);
}

static bool is_led(void *arg)
{
    return ((struct topic_meta *)arg)->parts[0].leader >= 0;
}

TEST(asks_again_while_there_is_trouble)
{
    struct rig r;
    struct topic_meta *t;

    rig_start(&r);
    r.topics[0].leader = -1;
    rig_begin(&r);
    t = cluster_watch(r.cl, STR("t"));
    CHECK(test_run_until(r.l, is_known, t, 5000));
    r.topics[0].leader = 2;
    CHECK(test_run_until(r.l, is_led, t, 5000));
    test_run_ms(r.l, 30);
    CHECK(r.fakes[0].asked[API_METADATA] < 20);
    rig_stop(&r);
}

#define MANY 4500

static bool has_all(void *arg)
{
    struct topic_meta **all = arg;

    for (int i = 0; i < MANY; i++)
        if (!all[i]->known)
            return false;
    return true;
}

TEST(many_topics_go_in_pieces)
{
    static struct topic_meta *all[MANY];
    struct rig r;
    char name[32];

    rig_start(&r);
    r.config.retry_backoff_ms = r.config.retry_backoff_max_ms = 60000; /* the pieces do not wait */
    rig_up(&r);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "topic-%d", i * 7919 % MANY);
        all[i] = cluster_watch(r.cl, str_c(name));
    }
    CHECK(test_run_until(r.l, has_all, all, 10000));
    CHECK_EQ(r.fakes[0].asked[API_METADATA], 4);
    for (int i = 0; i < MANY; i++)
        cluster_unwatch(r.cl, &all[i]);
    rig_stop(&r);
}

/* --- routes --- */

static bool find_coordinator(struct fake *f, struct fake_request *q)
{
    const struct kafka_find_coordinator_request *asked = q->body;
    struct kafka_find_coordinator_response r;
    struct kafka_find_coordinator_response_coordinator c;
    struct str key;

    if (q->api->key != API_FIND_COORDINATOR)
        return false;
    key = q->version >= 4 ? asked->coordinator_keys.at[0] : asked->key;
    codec_init(&kafka_find_coordinator_response_msg, &r);
    codec_init(&kafka_find_coordinator_response_coordinator_msg, &c);
    c.key = key;
    c.node_id = r.node_id = 2;
    c.host = r.host = STR("127.0.0.1");
    c.port = r.port = ((struct rig *)f->arg)->fakes[1].port;
    c.error_code = str_eq(key, STR("denied"))           ? KERR_GROUP_AUTHORIZATION_FAILED
                   : f->asked[API_FIND_COORDINATOR] < 3 ? KERR_COORDINATOR_NOT_AVAILABLE
                                                        : 0;
    r.error_code = c.error_code;
    if (q->version >= 4) {
        r = (struct kafka_find_coordinator_response){ .coordinators = { &c, 1 } };
    }
    fake_answer(q, q->version, &r);
    return true;
}

TEST(routes)
{
    static struct kafka_metadata_request request;
    struct rig r;
    struct topic_meta *t;
    struct call c;

    rig_start(&r);
    for (int i = 0; i < FAKES; i++) {
        r.fakes[i].on_request = find_coordinator;
        r.fakes[i].max[API_FIND_COORDINATOR] = 3;
    }
    codec_init(&kafka_metadata_request_msg, &request);
    rig_begin(&r);
    t = cluster_watch(r.cl, STR("u"));
    for (int i = 0; i < 6; i++) {
        const struct route routes[] = {
            { .kind = ROUTE_ANY },
            { .kind = ROUTE_CONTROLLER },
            { .kind = ROUTE_BROKER, .broker = 1 },
            { .kind = ROUTE_LEADER, .topic = t, .partition = 0 },
            { .kind = ROUTE_GROUP, .key = STR("g") },
            { .kind = ROUTE_TXN, .key = STR("g") },
        };
        static const int32_t want[] = { -1, 2, 1, 2, 2, 2 };

        call_init(&c, API_METADATA, &request, count_done);
        c.version_max = 12;
        CHECK_EQ(cluster_call(r.cl, &routes[i], &c), E_OK);
        CHECK(call_is_busy(&c));
        CHECK(test_run_until(r.l, is_done, &c, 5000));
        CHECK_EQ(c.error, E_OK);
        if (want[i] >= 0)
            CHECK_EQ(c.broker_id, want[i]);
        cluster_reroute(r.cl, &routes[i]);
        call_fini(&c);
    }
    rig_stop(&r);
}

TEST(a_refused_coordinator_ends_the_call)
{
    struct rig r;
    struct call c;
    struct route denied = { .kind = ROUTE_GROUP, .key = STR("denied") };

    rig_start(&r);
    r.fakes[0].on_request = r.fakes[1].on_request = find_coordinator;
    rig_up(&r);
    call_init(&c, API_LIST_GROUPS, NULL, count_done);
    CHECK_EQ(cluster_call(r.cl, &denied, &c), E_OK);
    CHECK(test_run_until(r.l, is_done, &c, 5000));
    CHECK_EQ(c.error, E_KAFKA);
    CHECK(strstr(c.text, "GROUP_AUTHORIZATION_FAILED"));
    call_fini(&c);
    rig_stop(&r);
}

TEST(waiting_calls_end)
{
    struct rig r;
    struct call late, canceled, dropped, left;
    struct route any = { .kind = ROUTE_ANY };

    rig_start(&r);
    for (int i = 0; i < FAKES; i++)
        fake_die(&r.fakes[i]);
    rig_begin(&r);
    call_init(&late, API_LIST_GROUPS, NULL, count_done);
    call_init(&canceled, API_LIST_GROUPS, NULL, count_done);
    call_init(&dropped, API_LIST_GROUPS, NULL, count_done);
    call_init(&left, API_LIST_GROUPS, NULL, count_done);
    late.timeout_ms = 50;
    CHECK_EQ(cluster_call(r.cl, &any, &late), E_OK);
    CHECK_EQ(cluster_call(r.cl, &any, &canceled), E_OK);
    CHECK_EQ(cluster_call(r.cl, &any, &dropped), E_OK);
    CHECK_EQ(cluster_call(r.cl, &any, &left), E_OK);
    call_cancel(&canceled);
    call_drop(&dropped);
    CHECK(test_run_until(r.l, is_done, &late, 5000));
    CHECK_EQ(late.error, E_TIMEOUT);
    CHECK(strstr(late.text, "connection refused"));
    CHECK_EQ(canceled.error, E_CANCELED);
    CHECK_EQ(dones, 2);
    cluster_free(&r.cl);
    CHECK(test_run_until(r.l, is_done, &left, 5000));
    CHECK_EQ(left.error, E_CANCELED);
    call_fini(&late);
    call_fini(&canceled);
    call_fini(&dropped);
    call_fini(&left);
    rig_stop(&r);
}

TESTS(RUN(comes_up), RUN(fault_names_the_cause), RUN(leader_epochs_do_not_fall),
      RUN(learns_leaders), RUN(asks_again_while_there_is_trouble), RUN(many_topics_go_in_pieces),
      RUN(routes), RUN(a_refused_coordinator_ends_the_call), RUN(waiting_calls_end))
