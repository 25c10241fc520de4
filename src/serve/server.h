/* server.h -- the HTTP server: answers from the newest view, on a thread of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * libevent's evhttp does HTTP; the routes are rows of routes.def. Nothing here reaches into the data path: it reads
 * the snapshot in the cell. Requests are bounded (header and body sizes, connections, time).
 */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "base/str.h"
#include "loop/cell.h"

struct server;

/* listen is host:port or [v6]:port; port 0 takes a free one. view must outlive the server. NULL when it cannot
 * listen; then why says so. desk (may be NULL) must outlive it too. */
struct order_desk;
struct server *server_start(struct str listen, struct cell *view, struct order_desk *desk, char *why, size_t room);

/* Ends the thread and clears the pointer. NULL is fine. */
void server_stop(struct server **s);

/* The address that it listens on, "127.0.0.1:8380". */
const char *server_address(const struct server *s);

#endif
