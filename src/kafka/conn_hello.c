/* conn_hello.c -- the first exchange: which APIs at which versions, which features.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Version 3 goes first: brokers from 2.4 on answer it at once, and later versions add nothing that is used
 * here. An older broker answers error 35 in the layout of version 0, from 2.4 on with the range that it
 * speaks; then the best of that range follows, or version 0.
 */
#include "kafka/conn_int.h"

#include "base/log.h"
#include "base/must.h"
#include "wire/kerr.h"

#include <stdio.h>
#include <string.h>

#define HELLO_FIRST 3

static void say_hello(struct conn *c, int version)
{
    enum err e = conn_put(c, &c->hello, api_find(API_API_VERSIONS), version);

    must_say(e == E_OK, "ApiVersions cannot be encoded");
}

static void note_features(struct conn *c, const struct kafka_api_versions_response *r)
{
    for (int32_t i = 0; i < r->finalized_features.n && c->features_n < CONN_FEATURES; i++) {
        const struct kafka_api_versions_response_finalized_feature *f =
            &r->finalized_features.at[i];
        size_t k = c->features_n;

        if (f->name.n >= CONN_FEATURE_NAME)
            continue;
        snprintf(c->features[k].name, CONN_FEATURE_NAME, "%.*s", STR_ARG(f->name));
        c->features[k].level = f->max_version_level;
        c->features_n++;
    }
}

static void note_offer(struct conn *c, const struct kafka_api_versions_response *r)
{
    for (int32_t i = 0; i < r->api_keys.n; i++) {
        const struct kafka_api_versions_response_api_key *k = &r->api_keys.at[i];

        if (k->api_key < 0 || k->api_key >= CONN_KEYS)
            continue;
        c->offered[k->api_key].min = k->min_version;
        c->offered[k->api_key].max = k->max_version;
    }
    note_features(c, r);
}

/* The version to try after a refusal of `tried`; -1: none. */
static int next_version(const struct kafka_api_versions_response *r, int tried)
{
    const struct api *a = api_find(API_API_VERSIONS);

    if (tried == 0)
        return -1;
    for (int32_t i = 0; i < r->api_keys.n; i++) {
        const struct kafka_api_versions_response_api_key *k = &r->api_keys.at[i];
        int most = MIN(k->max_version, a->max);

        if (k->api_key == API_API_VERSIONS && most >= k->min_version && most != tried)
            return most;
    }
    return 0;
}

static void on_hello(struct call *call)
{
    struct conn *c = container_of(call, struct conn, hello);
    const struct kafka_api_versions_response *r = call->response;

    if (call->error)
        return; /* the connection is broken and says why itself */
    if (r->error_code == KERR_UNSUPPORTED_VERSION) {
        int next = next_version(r, c->hello_tried);

        if (next < 0) {
            conn_fail(c, E_VERSION, "refuses every version of ApiVersions");
            return;
        }
        c->hello_tried = next;
        say_hello(c, next);
        return;
    }
    if (r->error_code) {
        conn_fail(c, E_KAFKA, "ApiVersions: %s", kerr_name(r->error_code));
        return;
    }
    note_offer(c, r);
    c->state = CONN_UP;
    c->ready_due = true;
    task_wake(c->loop, &c->work);
    log_event(EV_CONN_UP, kv_str("cluster", c->config->cluster), kv_int("broker", c->broker_id),
              kv_c("peer", c->peer));
}

void conn_hello_start(struct conn *c)
{
    c->hello.done = on_hello;
    codec_init(&kafka_api_versions_request_msg, &c->hello_request);
    c->hello_request.client_software_name = STR("heliostat");
    c->hello_request.client_software_version = STR(HELIOSTAT_VERSION);
    c->hello_tried = HELLO_FIRST;
    say_hello(c, c->hello_tried);
}
