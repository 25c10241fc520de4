/* dns.h -- host names to addresses, without blocking the loop (seam: dns.c or tests/sim/net_sim.c).
 * SPDX-License-Identifier: Apache-2.0
 *
 * All addresses of a name are given, IPv4 and IPv6, in the system's order; literals need no resolver.
 */
#ifndef NET_DNS_H
#define NET_DNS_H

#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"

#define NET_ADDR_SIZE 28 /* sockaddr_in6 */
#define DNS_ADDRS_MAX 16
#define NET_PEER_MAX  80

struct net_addr {
    union {
        char bytes[NET_ADDR_SIZE]; /* a struct sockaddr */
        uint64_t align;
    } u;
    uint32_t size;
};

struct dns_query;
typedef void dns_fn(void *arg, enum err e, const struct net_addr *addrs, int count);

/* fn is called once from the loop, never from inside. host need not stay. */
struct dns_query *dns_resolve(struct loop *l, struct str host, int port, dns_fn *fn, void *arg);

/* The name that an address has backwards; E_RESOLVE: none. fn as above; name is good until it returns. */
typedef void dns_name_fn(void *arg, enum err e, struct str name);
struct dns_query *dns_reverse(struct loop *l, const struct net_addr *a, dns_name_fn *fn, void *arg);

/* No callback after this; clears the pointer. NULL is fine. (After the callback the query is gone:
 * the owner clears its pointer there.) */
void dns_cancel(struct dns_query **q);

/* "10.0.0.1:9092" or "[::1]:9092" into text, with a NUL. */
void net_addr_format(const struct net_addr *a, char *text, size_t room);

/* "host:port" or "[v6]:port" in parts, for listening: no host is every address, port 0 a free one. False, and nothing
 * is written, when the text is neither. */
bool net_addr_split(struct str text, char *host, size_t room, uint16_t *port);

#endif
