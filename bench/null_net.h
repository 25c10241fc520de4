/* null_net.h -- the null broker's connections: frames in, answers out by vectors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Requests of a connection are answered in order, one at a time. An answer may be held for a while (a fetch
 * that finds nothing); nothing else of that connection is read meanwhile. One thread, epoll.
 */
#ifndef NULL_NET_H
#define NULL_NET_H

#include "base/arena.h"
#include "null_log.h"

/* The content of a records field of an answer: copies of the batch from one on, cut at `bytes`. */
struct null_run {
    int64_t first_offset;
    size_t bytes;
};

#define NULL_RUNS_MAX 1024

struct null_conn;

/* What a handler fills: the encoding holds the answer, `runs` stands for its cuts in their order. */
struct null_answer {
    struct encoding encoding;
    struct null_run runs[NULL_RUNS_MAX];
    size_t runs_n;
    int64_t hold_ms;
};

/* Answers one request; false closes the connection. The frame begins behind its size. `session` is what
 * the connection keeps for its fetches, one pointer that the handler makes and frees (frame.p NULL: now). */
typedef bool null_handler(void *arg, struct str frame, struct null_answer *out, void **session);

struct null_net;

/* Port 0: a free one. NULL when it cannot listen. */
struct null_net *null_net_new(int port, const struct null_batch *batch, null_handler *fn, void *arg);
int null_net_port(const struct null_net *n);
/* Until SIGTERM or SIGINT. */
void null_net_run(struct null_net *n);
void null_net_free(struct null_net **n);

#endif
