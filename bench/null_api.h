/* null_api.h -- what the null broker answers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One broker that leads everything, never refuses and remembers only ends of logs. One thread.
 */
#ifndef NULL_API_H
#define NULL_API_H

#include "null_net.h"
#include "wire/api.h"

struct null_api {
    struct null_log *log;
    struct str cluster_id;
    int32_t port;
    bool check;           /* verify the checksum of what is written */
    struct str watched;   /* the topic whose records are told; null: none */
    int64_t watched_until; /* records at which `done` is told */
    int64_t next_producer_id;
    struct arena arena;    /* of one request and its answer */
    struct {
        int64_t requests, fetches, produces, batches, bad_batches, records, bytes, watched;
    } counts;
};

#define NULL_NODE_ID 1

void null_api_init(struct null_api *a, struct null_log *log);
void null_api_fini(struct null_api *a);

/* The handler of null_net; arg is the struct null_api. */
null_handler null_api_answer;

/* null_fetch.c: with sessions (KIP-227), one per connection. */
void null_fetch(struct null_api *a, int version, const struct kafka_fetch_request *q,
                struct kafka_fetch_response *r, struct null_answer *out, void **session);
void null_fetch_end(void **session);

/* null_produce.c */
void null_produce(struct null_api *a, int version, const struct kafka_produce_request *q,
                  struct kafka_produce_response *r);

#endif
