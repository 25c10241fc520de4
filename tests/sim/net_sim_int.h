/* net_sim_int.h -- the simulated network's two ends and what lies between.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   client  sock --write--> [ under way | arrived ] up ----> server
 *           sock <--read--- [ arrived | under way ] down <-- server
 *
 * W-1  A pipe has one event, so its bytes arrive in order whatever the seed says.
 * W-2  The client's end goes with sock_close, the server's with the last byte that the client wrote.
 */
#ifndef SIM_NET_SIM_INT_H
#define SIM_NET_SIM_INT_H

#include "net/sock.h"
#include "net_sim.h"

#define SIM_PORT 9092

struct pipe {
    struct sim_event deliver;
    struct buf bytes;
    size_t taken, arrived; /* taken <= arrived <= bytes.n */
    int64_t sent_us; /* when the last of them were sent */
    bool ended; /* nothing more is written */
};

struct sim_conn {
    struct list_node node;
    struct sim_listener *listener;
    struct pipe up, down;
    struct sock *client; /* NULL: closed, or its process has died */
    void *server;
    size_t room;
    bool gone; /* the server's end */
    struct sim_event reap;
};

struct sock {
    struct list_node node; /* on its loop */
    struct loop *loop;
    struct sim_conn *conn;
    struct sim_event dial;
    struct sim_listener *to; /* NULL: nobody lives there */
    bool connecting, announce, closed, broken;
    enum err error;
    unsigned want;
    sock_ready_fn *on_ready;
    void *arg;
    char peer[NET_PEER_MAX];
};

/* net_sim.c */
struct sim_conn *net_sim_conn_new(struct sock *s);
void net_sim_conn_free(struct sim_conn *c); /* soon: callers may still stand in it */
void net_sim_schedule(struct sim_conn *c, struct pipe *p);
void net_sim_compact(struct pipe *p);
struct sim_listener *net_sim_find(const struct net_addr *addr);
/* The n-th address of a name; false: it has not so many. */
bool net_sim_lookup(struct str host, int n, struct net_addr *out);
/* The last name that leads there; null: none. */
struct str net_sim_name_of(const struct net_addr *addr);

#endif
