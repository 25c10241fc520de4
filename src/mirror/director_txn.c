/* director_txn.c -- takes over the transactional ids of a flow before its positions are read.
 * SPDX-License-Identifier: Apache-2.0
 *
 * InitProducerId for each id aborts what its last user left open and makes everything refused that he still sends, so
 * that positions read afterwards are what is committed, and stay so. The ids are MirrorMaker 2's, one per worker
 * instead of one per task; a run with fewer workers than the last takes over the rest as well, for their count is
 * kept in the state topic. Brokers before 3.6 do not check that a batch belongs to a transaction its coordinator
 * knows of: a batch that comes late would stay open for ever, so they are refused. Thread: control.
 */
#include "mirror/director_internal.h"

#include "base/alloc.h"
#include "base/log.h"
#include "mirror/formats.h"

#include <stdio.h>
#include <stdlib.h>

#define FENCE_TIMEOUT_MS    5000
#define BUSY_MS             50 /* the last transaction is being completed */
#define VERIFYING_VERSION   4  /* of AddPartitionsToTxn: brokers from 3.6 on */
#define IMPLICIT_PRODUCE    12
#define IMPLICIT_END        5
#define TRANSACTION_VERSION 2
#define RESOURCE_BROKER     4
#define MEMORY_DEFAULT_MS   (24 * 3600 * INT64_C(1000))

/* Before 3.4 a producer id is remembered for as long as a transactional id; both are a day or more by default. */
static const char *const memory_keys[] = { "producer.id.expiration.ms", "transactional.id.expiration.ms" };

static int64_t memory_of(const struct kafka_describe_configs_response_result *r)
{
    for (size_t k = 0; k < COUNT(memory_keys); k++) {
        for (int32_t i = 0; i < r->configs.n; i++) {
            char value[24];
            int64_t ms;

            if (!str_eq(r->configs.at[i].name, str_c(memory_keys[k])))
                continue;
            snprintf(value, sizeof(value), "%.*s", STR_ARG(r->configs.at[i].value));
            ms = strtoll(value, NULL, 10);
            if (ms > 0)
                return ms;
        }
    }
    return MEMORY_DEFAULT_MS;
}

static void take_memory(struct director *d, int64_t ms)
{
    if (d->id_memory_ms && d->id_memory_ms != ms)
        for (int32_t i = 0; i < d->ports_n; i++)
            flow_port_tell_memory(d->ports[i], ms);
    d->id_memory_ms = ms;
    director_wake(d);
}

/* At start it is asked until there is an answer; later the last answer holds until the next. */
static void note_no_memory(struct director *d, enum err e)
{
    if (d->id_memory_ms)
        director_wake(d);
    else
        director_fail(d, err_name(e), "asking %.*s how long producer ids are remembered: %s",
                      STR_ARG(cluster_name(d->target)), err_text(e));
}

/* Who may not describe a broker gets the default: a day. */
static void on_memory(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_describe_configs_response *r = call->response;

    if (call->error == E_CANCELED)
        return;
    if (call->error && call->error != E_VERSION) {
        note_no_memory(d, call->error);
        return;
    }
    if (!d->id_memory_ms)
        director_well(d);
    take_memory(d, call->error || r->results.n < 1 || r->results.at[0].error_code
                       ? MEMORY_DEFAULT_MS
                       : memory_of(&r->results.at[0]));
}

void director_ask_memory(struct director *d)
{
    struct kafka_describe_configs_request *q = &d->request.configs;
    const struct broker_meta *brokers;
    struct route route = { .kind = ROUTE_BROKER };
    size_t n = (size_t)cluster_brokers(d->target, &brokers);
    enum err e;

    d->memory_due = false;
    if (n == 0) {
        note_no_memory(d, E_NO_BROKER);
        return;
    }
    route.broker = brokers[rand_below(loop_rand(d->loop), n)].id; /* another one after a failure */
    arena_reset(&d->arena);
    codec_init(&kafka_describe_configs_request_msg, q);
    q->resources.at = arena_array(&d->arena, 1, sizeof(*q->resources.at));
    q->resources.n = 1;
    q->resources.at[0].resource_type = RESOURCE_BROKER;
    q->resources.at[0].resource_name = arena_fmt(&d->arena, "%d", route.broker);
    q->resources.at[0].configuration_keys.at = arena_array(&d->arena, COUNT(memory_keys), sizeof(struct str));
    q->resources.at[0].configuration_keys.n = (int32_t)COUNT(memory_keys);
    for (size_t i = 0; i < COUNT(memory_keys); i++)
        q->resources.at[0].configuration_keys.at[i] = str_c(memory_keys[i]);
    call_fini(&d->call);
    call_init(&d->call, API_DESCRIBE_CONFIGS, &d->request, on_memory);
    d->call.timeout_ms = FENCE_TIMEOUT_MS;
    e = cluster_call(d->target, &route, &d->call);
    if (e == E_VERSION)
        take_memory(d, MEMORY_DEFAULT_MS);
    else if (e)
        note_no_memory(d, e);
}

int64_t director_txns_wanted(const struct director *d)
{
    int64_t used = flow_config_is_transactional(d->config) ? d->ports_n : 0;

    return MAX(used, d->txns_stored);
}

static bool is_implicit(const struct director *d)
{
    return cluster_feature(d->target, STR("transaction.version")) >= TRANSACTION_VERSION &&
           cluster_version(d->target, API_PRODUCE) >= IMPLICIT_PRODUCE &&
           cluster_version(d->target, API_END_TXN) >= IMPLICIT_END;
}

/* False: not here, or not now. */
static bool is_possible(struct director *d)
{
    int version = cluster_version(d->target, API_ADD_PARTITIONS_TO_TXN);

    if (version >= VERIFYING_VERSION)
        return true;
    if (version < 0) {
        cluster_refresh(d->target); /* which connects: a lost connection is opened for a request only */
        director_fail(d, err_name(E_NO_BROKER), "no broker of %.*s is connected",
                      STR_ARG(d->config->target_alias));
        return false;
    }
    fault_set(&d->fault, loop_wall_ms(d->loop), "NO_TRANSACTIONS",
              "the brokers of %.*s are older than Kafka 3.6: a late batch could stay in an open transaction "
              "there for ever; remove exactly.once.source.support (heliostat.delivery = exactly-once needs no "
              "transactions)", STR_ARG(d->config->target_alias));
    log_event(EV_FLOW_FAULT, kv_str("flow", d->config->name), kv_c("code", d->fault.code),
              kv_c("text", d->fault.text));
    director_goto(d, DIRECTOR_REFUSED);
    return false;
}

static void note_refusal(struct director *d, int32_t kerr)
{
    struct route route = { .kind = ROUTE_TXN, .key = d->txns[d->txns_n].id };

    if (kerr == KERR_CONCURRENT_TRANSACTIONS) {
        timer_set_ms(d->loop, &d->retry, BUSY_MS);
        return;
    }
    cluster_reroute(d->target, &route);
    director_fail(d, kerr_name(kerr), "transactional id %.*s cannot be used: %s%s", STR_ARG(route.key),
                  kerr_text(kerr),
                  kerr_class(API_INIT_PRODUCER_ID, kerr) == K_DENIED
                      ? "; grant Write and Describe on it to the principal of this connection"
                      : kerr == KERR_INVALID_TRANSACTION_TIMEOUT ? "; lower producer.transaction.timeout.ms" : "");
}

static void on_fenced(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_init_producer_id_response *r = call->response;
    struct txn_who *who = &d->txns[d->txns_n];
    struct route route = { .kind = ROUTE_TXN, .key = who->id };

    if (call->error && call->error != E_CANCELED)
        cluster_reroute(d->target, &route);
    if (director_call_failed(d, "taking over a transactional id"))
        return;
    if (r->error_code) {
        note_refusal(d, r->error_code);
        return;
    }
    who->producer_id = r->producer_id;
    who->epoch = r->producer_epoch;
    who->implicit = is_implicit(d);
    log_event(EV_TXN_TAKEN, kv_str("flow", d->config->name), kv_str("id", who->id),
              kv_int("producer_id", who->producer_id), kv_int("epoch", who->epoch));
    d->txns_n++;
    director_well(d);
    director_wake(d);
}

static void take_over(struct director *d)
{
    struct txn_who *who = &d->txns[d->txns_n];
    struct route route = { .kind = ROUTE_TXN };
    enum err e;

    *who = (struct txn_who){
        .id = arena_fmt(&d->names, "%.*s-mm2-%s-%d", STR_ARG(d->config->source_alias), FORMATS_CONNECTOR,
                        d->txns_n),
        .timeout_ms = (int32_t)d->config->target.transaction_timeout_ms,
        .producer_id = -1,
        .epoch = -1,
    };
    route.key = who->id;
    txn_fill_init(&d->request.init, who);
    call_fini(&d->call);
    call_init(&d->call, API_INIT_PRODUCER_ID, &d->request, on_fenced);
    d->call.timeout_ms = FENCE_TIMEOUT_MS;
    e = cluster_call(d->target, &route, &d->call);
    if (e)
        director_fail(d, err_name(e), "%.*s: %s", STR_ARG(cluster_name(d->target)), err_text(e));
}

void director_take_txns(struct director *d)
{
    int64_t wanted = director_txns_wanted(d);

    if (flow_config_is_transactional(d->config) && !is_possible(d))
        return;
    if (d->txns_n < wanted) {
        d->txns = mem_resize(d->txns, (size_t)wanted, sizeof(*d->txns));
        take_over(d);
        return;
    }
    director_goto(d, DIRECTOR_LOADING);
    director_wake(d);
}
