/* net_sim.h -- the simulated network as servers and faults see it; clients use net/sock.h and net/dns.h.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A connection is two pipes. Bytes leave in order, arrive later in pieces of any size, and may never arrive when
 * the connection is cut. What a client wrote before it died still arrives, as from a kernel's buffer.
 */
#ifndef SIM_NET_SIM_H
#define SIM_NET_SIM_H

#include "base/buf.h"
#include "base/list.h"
#include "net/dns.h"
#include "sim.h"

struct sim_conn;

struct sim_listener {
    struct net_addr addr;
    bool up;     /* else connects are refused */
    bool silent; /* connects are never answered, bytes never arrive */
    int64_t latency_us; /* one way */
    int64_t bytes_per_ms;
    struct list_node conns;
    void (*on_accept)(struct sim_listener *l, struct sim_conn *c);
    /* More bytes have arrived. */
    void (*on_bytes)(struct sim_conn *c);
    /* The connection is gone; c goes after this. */
    void (*on_gone)(struct sim_conn *c);
};

/* Address 10.net.0.host:9092; names lead to any number of them. */
void net_sim_addr(struct net_addr *out, int net, int host);
void net_sim_listen(struct sim_listener *l);
void net_sim_name(const char *host, const struct net_addr *addr);

uint64_t net_sim_dials(void); /* connections that were tried */

void sim_conn_set_server(struct sim_conn *c, void *server);
void *sim_conn_server(const struct sim_conn *c);
struct sim_listener *sim_conn_listener(const struct sim_conn *c);
struct str sim_conn_arrived(const struct sim_conn *c); /* at the server, not yet taken */
void sim_conn_take(struct sim_conn *c, size_t n);
void sim_conn_send(struct sim_conn *c, const void *p, size_t n); /* to the client */

/* Cuts it now: of what is under way either side gets some first bytes. on_gone follows at once. */
void sim_conn_cut(struct sim_conn *c);
void sim_conn_cut_node(struct list_node *n); /* a node of listener.conns */
void sim_listener_cut_all(struct sim_listener *l);

#endif
