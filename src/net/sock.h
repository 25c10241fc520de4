/* sock.h -- a TCP connection, non-blocking (the net half of THE SEAM: sock.c or tests/sim/net_sim.c).
 * SPDX-License-Identifier: Apache-2.0
 *
 * One owner, one loop. Readiness is level-triggered: on_ready is called from the loop, never from
 * inside a call of this module, while the socket is readable and reads are wanted, or writable and
 * writes are wanted, or once when the connect has ended.
 */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include "base/err.h"
#include "net/dns.h"

#include <sys/uio.h>

struct sock;

#define SOCK_READABLE 1u
#define SOCK_WRITABLE 2u
#define SOCK_IOV_MAX  1024

typedef void sock_ready_fn(struct sock *s, unsigned what, void *arg);

/* Starts a connect to addr. on_ready(SOCK_WRITABLE) comes when it has ended; then ask sock_connected.
 * Buffer sizes of -1 leave the system's. TCP_NODELAY and keep-alive are on. */
enum err sock_connect(struct loop *l, const struct net_addr *addr, int send_buffer,
                      int receive_buffer, sock_ready_fn *on_ready, void *arg,
                      struct sock **out) WARN_UNUSED;

/* E_OK once connected; else why not (E_REFUSED, E_UNREACHABLE, E_TIMEOUT, E_IO). */
enum err sock_connected(struct sock *s);

/* Which readiness is wanted from now on (SOCK_READABLE | SOCK_WRITABLE). */
void sock_want(struct sock *s, unsigned what);

/* E_OK with *got == 0: nothing there now. E_CLOSED: the peer's end. */
enum err sock_readv(struct sock *s, const struct iovec *iov, int count, size_t *got) WARN_UNUSED;
/* E_OK with *put less than the total: no room now. count <= SOCK_IOV_MAX. */
enum err sock_writev(struct sock *s, const struct iovec *iov, int count, size_t *put) WARN_UNUSED;

/* Closes at once and clears the pointer; no callback comes after. NULL is fine. */
void sock_close(struct sock **s);

const char *sock_peer(const struct sock *s); /* "127.0.0.1:9092" */

#endif
