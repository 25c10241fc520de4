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

bool net_addr_split(struct str text, char *host, size_t room, uint16_t *port)
{
    int64_t colon = str_rfind_char(text, ':'), number;
    struct str h;

    if (colon < 0 || !str_to_i64(str_part(text, (size_t)colon + 1, text.n), &number) || number < 0 ||
        number > 65535)
        return false;
    h = str_part(text, 0, (size_t)colon);
    if (h.n >= 2 && h.p[0] == '[' && h.p[h.n - 1] == ']')
        h = str_part(h, 1, h.n - 1);
    else if (str_rfind_char(h, ':') >= 0)
        return false; /* an IPv6 address without brackets */
    if (h.n == 0)
        h = STR("0.0.0.0");
    if (h.n >= room)
        return false;
    snprintf(host, room, "%.*s", STR_ARG(h));
    *port = (uint16_t)number;
    return true;
}
