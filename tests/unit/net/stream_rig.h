/* stream_rig.h -- one stream under test, a resolver that answers what the test has set, and a peer that echoes.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_NET_STREAM_RIG_H
#define TESTS_UNIT_NET_STREAM_RIG_H

#include "net/stream.h"

#include "base/alloc.h"
#include "unit/net/peer.h"

#include <stdio.h>

/* --- a resolver that answers what the test has set --- */

struct dns_query {
    struct task task;
    dns_fn *fn;
    void *arg;
};

static struct {
    enum err error;
    bool silent;
    int count;
    struct net_addr addrs[3];
} names;

static inline void dns_answer(struct task *t)
{
    struct dns_query *q = container_of(t, struct dns_query, task);

    q->fn(q->arg, names.error, names.addrs, names.count);
    mem_free(q);
}

struct dns_query *dns_resolve(struct loop *l, struct str host, int port, dns_fn *fn, void *arg)
{
    struct dns_query *q = mem_new(sizeof(*q));

    (void)host;
    (void)port;
    task_init(&q->task, dns_answer);
    q->fn = fn;
    q->arg = arg;
    if (!names.silent)
        task_wake(l, &q->task);
    return q;
}

void dns_cancel(struct dns_query **q)
{
    if (!*q)
        return;
    task_cancel(&(*q)->task);
    mem_free(*q);
    *q = NULL;
}

/* --- the stream under test --- */

struct one {
    struct loop *l;
    struct stream *s;
    struct stream_options options;
    struct timer end;
    int opened, readable, writable, failed;
    int close_at; /* enum stream_event + 1 */
    bool ignore_errors, stop_at_open;
    size_t got, put, put_max;
    enum err error, io_error;
    char text[500];
    char buffer[256 * KiB];
};

static struct one o;

static inline void over(void)
{
    stream_close(&o.s);
    loop_stop(o.l);
}

static inline void on_end(struct timer *t)
{
    (void)t;
    loop_stop(o.l);
}

static inline bool io_failed(enum err e)
{
    o.io_error = e;
    if (e && !o.ignore_errors)
        over();
    return e;
}

static inline void read_some(void)
{
    struct iovec iov = { o.buffer, sizeof(o.buffer) };
    size_t got = 0;

    if (io_failed(stream_readv(o.s, &iov, 1, &got)))
        return;
    for (size_t i = 0; i < got; i++)
        if (o.buffer[i] != peer_byte(o.got + i))
            fail_msg("wrong byte at %zu", o.got + i);
    o.got += got;
}

static inline void write_some(void)
{
    while (o.put < o.put_max) {
        size_t put = 0, n = MIN(sizeof(o.buffer), o.put_max - o.put);
        struct iovec iov[2] = { { o.buffer, n / 5 }, { o.buffer + n / 5, n - n / 5 } };

        for (size_t i = 0; i < n; i++)
            o.buffer[i] = peer_byte(o.put + i);
        if (io_failed(stream_writev(o.s, iov, 2, &put)))
            return;
        o.put += put;
        if (put < n)
            return;
    }
}

static inline void on_event(struct stream *s, enum stream_event ev, void *arg)
{
    CHECK(s == o.s);
    CHECK(arg == &o);
    o.opened += ev == STREAM_OPEN;
    o.readable += ev == STREAM_READABLE;
    o.writable += ev == STREAM_WRITABLE;
    o.failed += ev == STREAM_FAILED;
    if (ev == STREAM_FAILED) {
        o.error = stream_error(s);
        snprintf(o.text, sizeof(o.text), "%s", stream_error_text(s));
    }
    if (ev == STREAM_OPEN && o.stop_at_open)
        loop_stop(o.l);
    if ((int)ev + 1 == o.close_at) {
        stream_close(&o.s);
        timer_set_ms(o.l, &o.end, 20); /* time for what must not come any more */
    } else if (ev == STREAM_READABLE)
        read_some();
    else if (ev == STREAM_OPEN || ev == STREAM_WRITABLE)
        write_some();
    if (ev == STREAM_FAILED)
        over();
}

static inline void one_init(void)
{
    memset(&names, 0, sizeof(names));
    memset(&o, 0, sizeof(o));
    o.l = loop_new("test");
    o.options = (struct stream_options){ .send_buffer = -1,
                                         .receive_buffer = -1,
                                         .connect_timeout_ms = 5000 };
    timer_init(&o.end, on_end);
}

static inline void one_open(const char *host, int port)
{
    o.s = stream_open(o.l, str_c(host), port, &o.options, on_event, &o);
    CHECK_EQ(o.opened + o.failed, 0);
}

static inline void run_for(int64_t ms)
{
    timer_set_ms(o.l, &o.end, ms);
    loop_run(o.l);
    timer_cancel(o.l, &o.end);
}

static inline void one_fini(void)
{
    stream_close(&o.s);
    loop_free(&o.l);
}

/* --- a peer that echoes --- */

struct echo {
    struct thread *thread;
    int listener;
    size_t most; /* leaves after so many bytes */
    bool reset;
};

static inline void echo_run(void *arg)
{
    struct echo *e = arg;
    int fd = accept(e->listener, NULL, NULL);
    static char bytes[128 * KiB];
    size_t sum = 0;

    while (sum < e->most) {
        ssize_t n = recv(fd, bytes, MIN(sizeof(bytes), e->most - sum), 0);

        if (n <= 0)
            break;
        for (ssize_t at = 0, sent; at < n; at += sent) {
            sent = send(fd, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
            if (sent < 0)
                break;
        }
        sum += (size_t)n;
    }
    if (e->reset)
        peer_drop_with_reset(fd);
    else
        close(fd);
}

static inline void echo_start(struct echo *e)
{
    names.count = 1;
    e->listener = peer_listen(AF_INET, 1, &names.addrs[0]);
    e->thread = thread_start("echo", echo_run, e);
}

static inline void echo_join(struct echo *e)
{
    thread_join(&e->thread);
    close(e->listener);
}

#endif
