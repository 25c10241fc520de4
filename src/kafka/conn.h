/* conn.h -- one connection to one broker: version negotiation, requests out, answers in.
 * SPDX-License-Identifier: Apache-2.0
 *
 * opening -> hello (ApiVersions) -> up -> broken. Answers come in request order; an
 * answer that does not match closes the connection. Bytes of an answer are read straight into the call's
 * pool block. A frame of absurd length, or one that is not Kafka (HTTP, a TLS alert), ends the connection
 * with a text that says so by name. One loop. Users outside kafka/ go through cluster.h or link.h.
 */
#ifndef KAFKA_CONN_H
#define KAFKA_CONN_H

#include "kafka/call.h"
#include "kafka/client_config.h"

enum conn_event { CONN_READY, CONN_FAILED };

/* From the loop; after CONN_FAILED the connection is useless: every call on it has got its done first. */
typedef void conn_fn(struct conn *c, enum conn_event ev, void *arg);

struct conn_address {
    struct str host; /* copied */
    int port;
    int32_t broker_id; /* -1: a bootstrap address */
    uint32_t
        attempt; /* failures so far: rotates through the addresses of the name, stretches the time to connect */
};

/* config must outlive the connection. */
struct conn *conn_open(struct loop *l, const struct client_config *config,
                       const struct conn_address *to, conn_fn *fn, void *arg);
/* Every call still on it gets done with E_CANCELED (from the loop). No event after this. */
void conn_close(struct conn **c);

bool conn_is_ready(const struct conn *c);
/* The version both sides would use, at most cap (-1: none); -1 when the broker offers none that we speak. */
int conn_version(const struct conn *c, int api, int cap);
/* A finalized feature of the cluster (ApiVersions v3+), e.g. transaction.version; -1 when unknown. */
int conn_feature(const struct conn *c, struct str name);

/* Ready connections only. E_VERSION when no version fits, E_LIMIT when the request is too large, E_INVALID when
 * it cannot be said in that version. */
enum err conn_send(struct conn *c, struct call *call) WARN_UNUSED;

size_t conn_in_flight(const struct conn *c);
/* Monotonic ms until which the broker has asked us to wait (throttle_time_ms); 0: not. */
int64_t conn_throttled_until_ms(const struct conn *c);
int64_t conn_last_used_ms(const struct conn *c);
/* How long an answer that is due has not come: a hung broker, or packets that are lost. 0: all is well, which includes
 * a wait of less than some seconds or three round trips. The connection is cut by request.timeout.ms alone. */
#define CONN_SILENT_MS 5000
int64_t conn_silent_ms(const struct conn *c);
int64_t conn_age_ms(const struct conn *c); /* since its last answer, or since it was opened */
int64_t
conn_rtt_us(const struct conn *c); /* of the last ApiVersions or metadata answer, -1 unknown */

enum err conn_error(const struct conn *c);
const char *conn_error_text(const struct conn *c);
const char *conn_peer(const struct conn *c);

#endif
