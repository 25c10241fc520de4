/* peer.h -- the other end of a connection, with blocking calls on a thread of its own.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_NET_PEER_H
#define TESTS_UNIT_NET_PEER_H

#include "net/dns.h"
#include "loop/thread.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Listens on a free port of 127.0.0.1, or ::1; gives the descriptor and the address. */
static inline int peer_listen(int family, int backlog, struct net_addr *addr)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(family, SOCK_STREAM, 0);
    socklen_t size = family == AF_INET ? sizeof(v4) : sizeof(v6);

    CHECK(fd >= 0);
    CHECK_EQ(bind(fd, family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, size),
             0);
    CHECK_EQ(listen(fd, backlog), 0);
    memset(addr, 0, sizeof(*addr));
    CHECK_EQ(getsockname(fd, (struct sockaddr *)addr->u.bytes, &size), 0);
    addr->size = size;
    return fd;
}

static inline int peer_port(const struct net_addr *addr)
{
    struct sockaddr_in in;

    memcpy(&in, addr->u.bytes, sizeof(in)); /* the port stands in the same place for both kinds */
    return ntohs(in.sin_port);
}

/* An address where nobody listens. */
static inline void peer_absent(int family, struct net_addr *addr)
{
    close(peer_listen(family, 1, addr));
}

static inline void peer_drop_with_reset(int fd)
{
    struct linger now = { .l_onoff = 1 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

/* What byte stands at a place of the test's stream; primes keep shifted copies from looking right. */
static inline char peer_byte(size_t at)
{
    return (char)(at % 251 + at / 65521);
}

#endif
