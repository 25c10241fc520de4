/* server_int.h -- what server.c and server_send.c share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SERVE_SERVER_INT_H
#define SERVE_SERVER_INT_H

#include "base/list.h"
#include "loop/thread.h"
#include "mirror/view.h"
#include "serve/answer.h"
#include "serve/server.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#define SERVER_HEADERS_MAX (16 * KiB)
#define SERVER_BODY_MAX    (64 * KiB)
#define SERVER_CONNS_MAX   100
#define SERVER_IDLE_S      20  /* without a byte in either direction */
#define SERVER_REQUEST_MS  30000  /* from connecting, or from the last answer, to a whole request */
#define SERVER_ANSWER_MS   300000 /* from the request to the last byte of its answer */

/* A connection. */
struct client {
    struct list_node node;
    struct server *server;
    struct evhttp_connection *evcon;
    struct sending *sending; /* an answer that goes out in pieces */
    int64_t deadline_ms;
};

struct server {
    struct event_base *base;
    struct evhttp *http;
    struct evhttp_bound_socket *socket;
    struct event *stop, *adopt, *sweep;
    struct evutil_monotonic_timer *clock;
    int stop_fd;
    struct thread *thread;
    struct cell *view;
    struct order_desk *desk;
    struct snapshot *seen; /* the newest view at the last sweep */
    int64_t seen_ms;
    struct list_node clients;
    int conns; /* clients, and what waits for on_adopt */
    struct bufferevent *fresh[SERVER_CONNS_MAX];
    int fresh_n;
    bool full; /* accepts no more */
    char address[80];
};

int64_t server_now_ms(const struct server *s);
struct client *server_find_client(struct server *s, const struct evhttp_connection *evcon);

/* server_send.c: the answer to any request. */
void server_take_request(struct evhttp_request *req, void *arg);
/* The client's connection is about to go. */
void server_forget_sending(struct client *c);

#endif
