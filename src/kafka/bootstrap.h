/* bootstrap.h -- the bootstrap list by canonical names: client.dns.lookup = resolve_canonical_bootstrap_servers_only.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each name of bootstrap.servers becomes one address per record that it has, under the name that the record has
 * backwards (KIP-302): what certificates and Kerberos know brokers by behind an alias. Looked up anew for each round
 * through the list. One loop.
 */
#ifndef KAFKA_BOOTSTRAP_H
#define KAFKA_BOOTSTRAP_H

#include "kafka/client_config.h"
#include "loop/loop.h"
#include "net/dns.h"

#define BOOTSTRAP_MAX 1000 /* addresses of one list */

struct bootstrap {
    struct loop *loop;
    const struct client_config *config;
    void (*done)(struct bootstrap *b);
    struct dns_query *query;
    struct timer limit; /* of one question */
    size_t asked;       /* names of the config that were resolved */
    struct net_addr addrs[DNS_ADDRS_MAX];
    int addrs_n, addr_at;
    struct client_endpoint *list; /* what was found so far; own memory */
    size_t n;
};

void bootstrap_init(struct bootstrap *b, struct loop *l, const struct client_config *config,
                    void (*done)(struct bootstrap *b));
/* done comes once from the loop: list and n are good until the next start. A name that is not answered in time is left
 * out; when none is, n is 0. */
void bootstrap_start(struct bootstrap *b);
void bootstrap_cancel(struct bootstrap *b); /* no done after this; the list stays as it is */
void bootstrap_fini(struct bootstrap *b);

#endif
