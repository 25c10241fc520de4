/* kafka_test.h -- a configuration for tests, and a loop that runs until something has happened.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_KAFKA_TEST_H
#define TESTS_UNIT_KAFKA_TEST_H

#include "kafka/client_config.h"
#include "loop/loop.h"
#include "unit/test.h"

/* Short times, so that nothing in a test waits long for what must fail. */
static inline struct client_config test_config(const struct client_endpoint *bootstrap,
                                               size_t count)
{
    return (struct client_config){
        .cluster = STR("A"),
        .bootstrap = bootstrap,
        .bootstrap_count = count,
        .client_id = STR("tester"),
        .client_rack = STR(""),
        .metadata_max_age_ms = 300000,
        .metadata_recovery_strategy = CLIENT_RECOVERY_REBOOTSTRAP,
        .metadata_recovery_rebootstrap_trigger_ms = 300000,
        .reconnect_backoff_ms = 5,
        .reconnect_backoff_max_ms = 20,
        .retry_backoff_ms = 5,
        .retry_backoff_max_ms = 20,
        .request_timeout_ms = 10000,
        .connections_max_idle_ms = 540000,
        .socket_connection_setup_timeout_ms = 5000,
        .socket_connection_setup_timeout_max_ms = 5000,
        .send_buffer_bytes = -1,
        .receive_buffer_bytes = -1,
    };
}

struct test_until {
    struct loop *l;
    struct timer timer;
    bool (*cond)(void *arg);
    void *arg;
    int64_t end_ms;
};

static inline void test_look(struct timer *t)
{
    struct test_until *u = container_of(t, struct test_until, timer);

    if ((u->cond && u->cond(u->arg)) || loop_now_ms(u->l) >= u->end_ms)
        loop_stop(u->l);
    else
        timer_set_ms(u->l, t, 1);
}

/* True when the condition came true within the time. */
static inline bool test_run_until(struct loop *l, bool (*cond)(void *arg), void *arg, int64_t ms)
{
    struct test_until u = { .l = l, .cond = cond, .arg = arg, .end_ms = loop_now_ms(l) + ms };

    timer_init(&u.timer, test_look);
    timer_set_ms(l, &u.timer, 0);
    loop_run(l);
    timer_cancel(l, &u.timer);
    return cond && cond(arg);
}

static inline void test_run_ms(struct loop *l, int64_t ms)
{
    test_run_until(l, NULL, NULL, ms);
}

#endif
