/* client_config.h -- what one cluster connection set is configured to do; rows in client.opt.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Plain and immutable once made; made by daemon/config.c, which owns the strings. One struct serves
 * the three kinds of Kafka client: members that a kind does not know keep their defaults. Any thread.
 */
#ifndef KAFKA_CLIENT_CONFIG_H
#define KAFKA_CLIENT_CONFIG_H

#include "base/opt.h"

/* Each enum is in the order of the choices in client.opt. */
enum client_dns { CLIENT_DNS_ALL_IPS, CLIENT_DNS_CANONICAL };
enum client_recovery { CLIENT_RECOVERY_NONE, CLIENT_RECOVERY_REBOOTSTRAP };
enum client_security { CLIENT_PLAINTEXT, CLIENT_SSL, CLIENT_SASL_PLAINTEXT, CLIENT_SASL_SSL };
enum client_isolation { CLIENT_READ_UNCOMMITTED, CLIENT_READ_COMMITTED };
enum client_acks { CLIENT_ACKS_NONE, CLIENT_ACKS_LEADER, CLIENT_ACKS_ALL };
/* From auto.offset.reset; by duration: reset_back_ms before the moment it is needed. */
enum client_reset {
    CLIENT_RESET_EARLIEST,
    CLIENT_RESET_LATEST,
    CLIENT_RESET_NONE,
    CLIENT_RESET_BY_DURATION
};

/* Kinds of client, the `where` of client.opt. */
enum client_kind {
    CLIENT_CONSUMER = 1,
    CLIENT_PRODUCER = 2,
    CLIENT_ADMIN = 4,
    CLIENT_DATA = CLIENT_CONSUMER | CLIENT_PRODUCER,
    CLIENT_ALL = CLIENT_DATA | CLIENT_ADMIN,
};

struct client_endpoint {
    struct str host; /* a name or an address without brackets; NUL-terminated */
    uint16_t port;
};

struct client_config {
    struct str cluster; /* the alias in the file: "A" */
    const struct client_endpoint *bootstrap;
    size_t bootstrap_count; /* at least one in a checked config */
    enum client_reset reset;
    int64_t reset_back_ms;

#define OPT(where, type, name, key, alias, value, least, most, when, secret, doc) OPT_C_##type name;
#define CHOICE(where, type, name, key, alias, value, choices, when, doc)          OPT_C_##type name;
#define NO_EFFECT(where, key, why)
#include "kafka/client.opt"
#undef OPT
#undef CHOICE
#undef NO_EFFECT
};

extern const struct opt_table client_opts;

/* Reads one element of bootstrap.servers: host:port, [v6]:port, or protocol://host:port (the
 * protocol is skipped, as Kafka does). The host is copied into a. */
WARN_UNUSED enum err client_endpoint_parse(struct str text, struct arena *a,
                                           struct client_endpoint *out);

/* earliest, latest, none, by_duration:<ISO 8601 duration>; any case of letters. */
WARN_UNUSED enum err client_reset_parse(struct str text, enum client_reset *reset,
                                        int64_t *back_ms);

#endif
