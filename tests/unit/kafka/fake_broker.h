/* fake_broker.h -- a small broker on the loop of the test: reads requests, answers by a script.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sockets are polled every millisecond by a timer of the loop, so nothing here blocks and nothing runs
 * beside the test. ApiVersions and Metadata are answered from the fake's fields unless `on_request` takes
 * the request (returns true).
 */
#ifndef TESTS_UNIT_KAFKA_FAKE_BROKER_H
#define TESTS_UNIT_KAFKA_FAKE_BROKER_H

#include "base/alloc.h"
#include "kafka/cluster.h"
#include "unit/test.h"
#include "wire/frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKE_CONNS 16
#define FAKE_KEYS  128

struct fake_conn {
    int fd; /* -1: free */
    struct buf in, out;
    size_t sent; /* of what was ever put into out */
};

struct fake_request {
    struct fake_conn *conn;
    const struct api *api;
    int version;
    int32_t correlation_id;
    struct str client_id;
    void *body;
};

struct fake_topic {
    const char *name;
    struct uuid id;
    int32_t error;
    int32_t partitions, leader, leader_epoch;
};

struct fake {
    struct loop *l;
    struct timer poll;
    int fd, port;
    struct fake_conn conns[FAKE_CONNS];
    struct arena arena; /* of one request */
    bool (*on_request)(struct fake *f, struct fake_request *q);
    void *arg;
    const char *raw; /* sent as soon as somebody connects, then the connection is closed */
    size_t raw_n;
    size_t cut_at;      /* close after this many bytes of answers on a connection; 0: never */
    size_t chunk;       /* most bytes per send; 0: no limit */
    int max[FAKE_KEYS]; /* offered at most; 0: all that we speak */
    bool hide_range;    /* the refusal of ApiVersions is empty, as before 2.4 */
    uint32_t accepted, asked[FAKE_KEYS];
    int last_version[FAKE_KEYS];
    /* The cluster, for Metadata. */
    const char *cluster_id;
    const struct kafka_metadata_response_broker *brokers;
    int32_t brokers_n, controller;
    const struct fake_topic *topics;
    int32_t topics_n;
    int32_t metadata_error;
};

static inline void fake_hang_up(struct fake_conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    buf_fini(&c->in);
    buf_fini(&c->out);
    c->sent = 0;
}

static inline void fake_answer(struct fake_request *q, int version, const void *response)
{
    struct buf *b = &q->conn->out;
    size_t at = b->n;
    struct encoding to = { .head = b };

    put_i32(b, 0);
    frame_response_write(b, q->api, version, q->correlation_id);
    CHECK_EQ(codec_encode(q->api->response, version, response, &to), E_OK);
    store_u32(b->p + at, (uint32_t)(b->n - at - 4));
}

#include "unit/kafka/fake_answers.h"

static inline void fake_handle(struct fake *f, struct fake_conn *c, struct str frame)
{
    struct reader r = reader_of(frame.p, frame.n);
    struct frame_request head;
    struct fake_request q = { .conn = c };
    enum err e = frame_request_read(&r, &head);

    CHECK_EQ(e, E_OK);
    q.api = api_find(head.key);
    q.version = head.version;
    q.correlation_id = head.correlation_id;
    q.client_id = head.client_id;
    arena_reset(&f->arena);
    q.body = arena_alloc(&f->arena, q.api->request->size);
    CHECK_EQ(codec_decode(q.api->request, q.version, &r, &f->arena, q.body), E_OK);
    CHECK_EQ(reader_left(&r), 0);
    f->asked[head.key]++;
    f->last_version[head.key] = head.version;
    if (f->on_request && f->on_request(f, &q))
        return;
    if (head.key == API_API_VERSIONS)
        fake_versions(f, &q);
    else if (head.key == API_METADATA)
        fake_metadata(f, &q);
}

static inline void fake_read(struct fake *f, struct fake_conn *c)
{
    char bytes[65536];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        fake_hang_up(c);
        return;
    }
    if (n > 0)
        buf_put(&c->in, bytes, (size_t)n);
    while (c->fd >= 0 && c->in.n >= 4) {
        size_t size = load_u32(c->in.p);

        if (c->in.n < 4 + size)
            return;
        fake_handle(f, c, str_of(c->in.p + 4, size));
        if (c->fd >= 0)
            buf_shift(&c->in, 4 + size);
    }
}

static inline void fake_write(struct fake *f, struct fake_conn *c)
{
    size_t n = c->out.n;
    ssize_t put;

    if (f->cut_at)
        n = MIN(n, f->cut_at - c->sent);
    if (f->chunk)
        n = MIN(n, f->chunk);
    put = n ? send(c->fd, c->out.p, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    if (put > 0) {
        buf_shift(&c->out, (size_t)put);
        c->sent += (size_t)put;
    }
    if (f->cut_at && c->sent == f->cut_at)
        fake_hang_up(c);
}

static inline void fake_accept(struct fake *f)
{
    struct fake_conn *c = f->conns;
    int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK);

    if (fd < 0)
        return;
    f->accepted++;
    while (c->fd >= 0)
        c++;
    CHECK(c < f->conns + FAKE_CONNS);
    c->fd = fd;
    buf_init(&c->in, 256 * MiB);
    buf_init(&c->out, 256 * MiB);
    if (!f->raw)
        return;
    buf_put(&c->out, f->raw, f->raw_n);
    fake_write(f, c);
    shutdown(c->fd, SHUT_WR);
}

static inline void fake_poll(struct timer *t)
{
    struct fake *f = container_of(t, struct fake, poll);

    if (f->fd >= 0)
        fake_accept(f);
    for (struct fake_conn *c = f->conns; c < f->conns + FAKE_CONNS; c++) {
        if (c->fd >= 0)
            fake_read(f, c);
        if (c->fd >= 0)
            fake_write(f, c);
    }
    timer_set_ms(f->l, t, 1);
}

/* On a free port of 127.0.0.1, or on the one given. */
static inline void fake_listen(struct fake *f, int port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(in);
    int on = 1;

    in.sin_port = htons((uint16_t)port);
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    CHECK_EQ(bind(f->fd, (struct sockaddr *)&in, sizeof(in)), 0);
    CHECK_EQ(listen(f->fd, 64), 0);
    CHECK_EQ(getsockname(f->fd, (struct sockaddr *)&in, &size), 0);
    f->port = ntohs(in.sin_port);
}

static inline void fake_start(struct fake *f, struct loop *l)
{
    *f = (struct fake){ .l = l, .fd = -1, .cluster_id = "fake", .controller = -1 };
    for (struct fake_conn *c = f->conns; c < f->conns + FAKE_CONNS; c++)
        c->fd = -1;
    arena_init(&f->arena, 64 * MiB);
    fake_listen(f, 0);
    timer_init(&f->poll, fake_poll);
    timer_set_ms(l, &f->poll, 0);
}

/* Nobody listens any more, and all connections are cut. */
static inline void fake_die(struct fake *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    for (struct fake_conn *c = f->conns; c < f->conns + FAKE_CONNS; c++)
        fake_hang_up(c);
}

static inline void fake_stop(struct fake *f)
{
    fake_die(f);
    timer_cancel(f->l, &f->poll);
    arena_fini(&f->arena);
}

#endif
