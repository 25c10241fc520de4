/* probe.c -- asks a real cluster through the cluster's own calls and prints what it answers.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     kafka_probe HOST PORT TOPIC      creates TOPIC if need be, describes it, reads it to its end
 *
 * One fact a line, "name value...", for tests/kafka/test_probe.py. Leaves with 1 when an answer does not come.
 */
#include "base/log.h"
#include "kafka/topic_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loop *loop;
static struct cluster *cluster;
static struct timer patience;
static long records;
static bool read_whole;

static void on_late(struct timer *t)
{
    (void)t;
    fprintf(stderr, "probe: no answer in time: %s\n", cluster_fault(cluster)->text);
    exit(1);
}

static void on_done(struct call *c)
{
    (void)c;
    loop_stop(loop);
}

static void on_changed(struct cluster_listener *ls)
{
    (void)ls;
    loop_stop(loop);
}

/* Runs one call to its end, again while its route is wrong. */
static void ask(const struct route *route, struct call *c, int api, const void *request)
{
    call_init(c, api, request, on_done);
    if (cluster_call(cluster, route, c) == E_OK)
        while (call_is_busy(c))
            loop_run(loop);
    if (!c->error)
        return;
    fprintf(stderr, "probe: %s: %s\n", err_name(c->error), c->text);
    exit(1);
}

static void print_cluster(void)
{
    const struct broker_meta *brokers;
    size_t n = cluster_brokers(cluster, &brokers);

    printf("cluster %.*s\n", STR_ARG(cluster_id(cluster)));
    for (size_t i = 0; i < n; i++)
        printf("broker %d %.*s:%d\n", brokers[i].id, STR_ARG(brokers[i].host), brokers[i].port);
}

static void create(const char *topic)
{
    struct kafka_create_topics_request q;
    struct kafka_create_topics_request_topic t;
    struct kafka_create_topics_request_config config = { .name = STR("cleanup.policy"),
                                                         .value = STR("compact") };
    struct route route = { .kind = ROUTE_CONTROLLER };
    const struct kafka_create_topics_response *r;
    struct call c;

    codec_init(&kafka_create_topics_request_msg, &q);
    codec_init(&kafka_create_topics_request_topic_msg, &t);
    t.name = str_c(topic);
    t.num_partitions = 3;
    t.replication_factor = 1;
    t.configs.at = &config;
    t.configs.n = 1;
    q.topics.at = &t;
    q.topics.n = 1;
    ask(&route, &c, API_CREATE_TOPICS, &q);
    r = c.response;
    printf("created %s version %d\n", kerr_name(r->topics.at[0].error_code), c.version);
    call_fini(&c);
}

static void describe(const char *topic)
{
    struct kafka_describe_configs_request q;
    struct kafka_describe_configs_request_resource res;
    struct route route = { .kind = ROUTE_ANY };
    const struct kafka_describe_configs_response *r;
    struct call c;

    codec_init(&kafka_describe_configs_request_msg, &q);
    codec_init(&kafka_describe_configs_request_resource_msg, &res);
    res.resource_type = 2;
    res.resource_name = str_c(topic);
    res.configuration_keys.n = -1;
    q.resources.at = &res;
    q.resources.n = 1;
    ask(&route, &c, API_DESCRIBE_CONFIGS, &q);
    r = c.response;
    printf("configs %d version %d\n", r->results.at[0].configs.n, c.version);
    for (int32_t i = 0; i < r->results.at[0].configs.n; i++) {
        const struct kafka_describe_configs_response_config *k = &r->results.at[0].configs.at[i];

        if (k->config_source == 1)
            printf("config %.*s %.*s\n", STR_ARG(k->name), STR_ARG(k->value));
    }
    call_fini(&c);
}

static void on_rested(struct timer *t)
{
    (void)t;
    loop_stop(loop);
}

/* A coordinator that has just moved in says so for a moment. */
static void ask_coordinator(const struct route *route, struct call *c, const void *request)
{
    struct timer rest;

    timer_init(&rest, on_rested);
    for (;;) {
        const struct kafka_describe_groups_response *r;

        ask(route, c, API_DESCRIBE_GROUPS, request);
        r = c->response;
        if (kerr_class(API_DESCRIBE_GROUPS, r->groups.at[0].error_code) != K_REFRESH &&
            kerr_class(API_DESCRIBE_GROUPS, r->groups.at[0].error_code) != K_AGAIN)
            return;
        call_fini(c);
        cluster_reroute(cluster, route);
        timer_set_ms(loop, &rest, 100);
        while (timer_is_set(&rest))
            loop_run(loop);
    }
}

static void find_group(void)
{
    struct kafka_describe_groups_request q;
    struct str group = STR("probe");
    struct route route = { .kind = ROUTE_GROUP, .key = group };
    const struct kafka_describe_groups_response *r;
    struct call c;

    codec_init(&kafka_describe_groups_request_msg, &q);
    q.groups.at = &group;
    q.groups.n = 1;
    ask_coordinator(&route, &c, &q);
    r = c.response;
    printf("group %s %.*s version %d broker %d\n", kerr_name(r->groups.at[0].error_code),
           STR_ARG(r->groups.at[0].group_state), c.version, c.broker_id);
    call_fini(&c);
}

static void on_record(void *arg, const struct topic_record *r)
{
    (void)arg;
    printf("record %d %lld key %.*s value %.*s\n", r->partition, (long long)r->offset,
           STR_ARG(r->key), STR_ARG(r->value));
    records++;
}

static void on_read(void *arg, enum err e, int32_t kerr)
{
    (void)arg;
    read_whole = true;
    printf("read %ld %s %s\n", records, err_name(e), kerr_name(kerr));
    loop_stop(loop);
}

static void print_topic(const struct topic_meta *t)
{
    printf("topic %.*s partitions %d error %s id ", STR_ARG(t->name), t->parts_n,
           kerr_name(t->error));
    for (size_t i = 0; i < sizeof(t->id.b); i++)
        printf("%02x", t->id.b[i]);
    printf("\n");
    for (int32_t i = 0; i < t->parts_n; i++)
        printf("partition %d leader %d epoch %d isr %d\n", i, t->parts[i].leader,
               t->parts[i].leader_epoch, t->parts[i].isr_n);
}

static void run(const char *topic)
{
    struct topic_reader_ops ops = { .on_record = on_record, .on_done = on_read };
    struct cluster_listener listener = { .changed = on_changed };
    struct topic_reader *reader;
    struct topic_meta *t;

    cluster_listen(cluster, &listener);
    while (!cluster_is_up(cluster))
        loop_run(loop);
    print_cluster();
    create(topic);
    t = cluster_watch(cluster, str_c(topic));
    while (!t->known || t->error || t->parts[0].leader < 0)
        loop_run(loop);
    print_topic(t);
    describe(topic);
    find_group();
    reader = topic_reader_start(cluster, str_c(topic), &ops);
    while (!read_whole)
        loop_run(loop);
    topic_reader_free(&reader);
    cluster_unwatch(cluster, &t);
    cluster_unlisten(&listener);
}

int main(int argc, char **argv)
{
    struct client_endpoint at;
    struct client_config config;
    struct arena memory;

    if (argc != 4) {
        fprintf(stderr, "usage: kafka_probe HOST PORT TOPIC\n");
        return 2;
    }
    arena_init(&memory, MiB);
    opt_defaults(&client_opts, &config, &memory);
    at = (struct client_endpoint){ .host = str_c(argv[1]),
                                   .port = (uint16_t)strtol(argv[2], NULL, 10) };
    config.cluster = STR("probe");
    config.bootstrap = &at;
    config.bootstrap_count = 1;
    log_setup(LOG_TEXT, LOG_DEBUG, NULL, NULL);
    loop = loop_new("probe");
    timer_init(&patience, on_late);
    timer_set_ms(loop, &patience, 60000);
    cluster = cluster_new(loop, &config, STR("probe"));
    run(argv[3]);
    timer_cancel(loop, &patience);
    cluster_free(&cluster);
    loop_free(&loop);
    arena_fini(&memory);
    return 0;
}
