/* addr.c -- addresses as text, the same in the real and the simulated world.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net/dns.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(struct sockaddr_in6) <= NET_ADDR_SIZE, "an address of either kind fits");

void net_addr_format(const struct net_addr *a, char *text, size_t room)
{
    char host[INET6_ADDRSTRLEN] = "?";
    struct sockaddr_storage s = { 0 };

    memcpy(&s, a->u.bytes, MIN(a->size, sizeof(a->u.bytes)));
    if (s.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&s;

        inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
        snprintf(text, room, "%s:%d", host, ntohs(in->sin_port));
    } else if (s.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&s;

        inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof(host));
        snprintf(text, room, "[%s]:%d", host, ntohs(in->sin6_port));
    } else {
        snprintf(text, room, "?");
    }
}
