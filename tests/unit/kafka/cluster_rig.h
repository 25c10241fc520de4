/* cluster_rig.h -- a cluster seen from one loop, before fake brokers.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_KAFKA_CLUSTER_RIG_H
#define TESTS_UNIT_KAFKA_CLUSTER_RIG_H

#include "kafka/cluster.h"

#include "base/log.h"
#include "unit/kafka/fake_broker.h"
#include "unit/kafka/kafka_test.h"

#define FAKES 3

struct rig {
    struct loop *l;
    struct fake fakes[FAKES]; /* broker ids 1, 2, 3 */
    struct kafka_metadata_response_broker brokers[FAKES];
    struct fake_topic topics[2];
    struct client_endpoint bootstrap[FAKES];
    struct client_config config;
    struct cluster *cl;
    struct cluster_listener listener;
    int told;
};

static int dones;

static inline void count_done(struct call *c)
{
    (void)c;
    dones++;
}

static inline void on_changed(struct cluster_listener *ls)
{
    container_of(ls, struct rig, listener)->told++;
}

/* Brokers 1 and 2 are the cluster; 3 stands aside. Bootstrap is broker 1. */
static inline void rig_start(struct rig *r)
{
    *r = (struct rig){ .l = loop_new("test") };
    log_setup(LOG_TEXT, LOG_ERROR, NULL, NULL);
    dones = 0;
    r->topics[0] = (struct fake_topic){
        .name = "t", .id = { "one" }, .partitions = 2, .leader = 1, .leader_epoch = 5
    };
    r->topics[1] = (struct fake_topic){
        .name = "u", .id = { "two" }, .partitions = 1, .leader = 2, .leader_epoch = 0
    };
    for (int i = 0; i < FAKES; i++) {
        struct fake *f = &r->fakes[i];

        fake_start(f, r->l);
        r->brokers[i] = (struct kafka_metadata_response_broker){ .node_id = i + 1,
                                                                 .host = STR("127.0.0.1"),
                                                                 .port = f->port };
        f->brokers = r->brokers;
        f->brokers_n = 2;
        f->controller = 2;
        f->topics = r->topics;
        f->topics_n = 2;
        f->arg = r;
        r->bootstrap[i] =
            (struct client_endpoint){ .host = STR("127.0.0.1"), .port = (uint16_t)f->port };
    }
    r->config = test_config(r->bootstrap, 1);
}

static inline void rig_begin(struct rig *r)
{
    r->cl = cluster_new(r->l, &r->config, STR("A"));
    r->listener.changed = on_changed;
    cluster_listen(r->cl, &r->listener);
}

static inline void rig_stop(struct rig *r)
{
    cluster_free(&r->cl);
    test_run_ms(r->l, 2);
    for (int i = 0; i < FAKES; i++)
        fake_stop(&r->fakes[i]);
    loop_free(&r->l);
}

static inline bool is_up(void *arg)
{
    return cluster_is_up(((struct rig *)arg)->cl);
}

static inline bool is_down(void *arg)
{
    return fault_is_set(cluster_fault(((struct rig *)arg)->cl));
}

static inline bool is_known(void *arg)
{
    return ((struct topic_meta *)arg)->known;
}

static inline bool is_done(void *arg)
{
    return !call_is_busy(arg);
}

static inline void rig_up(struct rig *r)
{
    rig_begin(r);
    CHECK(test_run_until(r->l, is_up, r, 5000));
}

#endif
