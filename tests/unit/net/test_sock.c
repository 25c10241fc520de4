/* test_sock.c -- connect, readiness, bytes both ways, ends of all kinds.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net/sock.h"

#include "unit/net/peer.h"

#include <stdio.h>

#define BULK (8 * MiB)

/* One connection under test: what came, what went, and how it ended. */
struct one {
    struct loop *l;
    struct sock *s;
    struct timer end;
    int calls, connected;
    size_t got, put, put_max;
    enum err connect_error, error;
    bool close_in_callback, wants_nothing;
    char buffer[64 * KiB];
};

static void one_over(struct one *o)
{
    sock_close(&o->s);
    loop_stop(o->l);
}

static void on_end(struct timer *t)
{
    loop_stop(container_of(t, struct one, end)->l);
}

static void one_read(struct one *o)
{
    struct iovec iov[2] = { { o->buffer, 1000 }, { o->buffer + 1000, sizeof(o->buffer) - 1000 } };
    size_t got = 0;

    o->error = sock_readv(o->s, iov, 2, &got);
    if (o->error) {
        one_over(o);
        return;
    }
    for (size_t i = 0; i < got; i++)
        if (o->buffer[i] != peer_byte(o->got + i))
            fail_msg("wrong byte at %zu", o->got + i);
    o->got += got;
}

static void one_write(struct one *o)
{
    size_t put = 0, n = MIN(sizeof(o->buffer), o->put_max - o->put);
    struct iovec iov[2] = { { o->buffer, n / 3 }, { o->buffer + n / 3, n - n / 3 } };

    for (size_t i = 0; i < n; i++)
        o->buffer[i] = peer_byte(o->put + i);
    o->error = sock_writev(o->s, iov, 2, &put);
    if (o->error) {
        one_over(o);
        return;
    }
    o->put += put;
    if (o->put == o->put_max)
        sock_want(o->s, SOCK_READABLE);
}

static void on_ready(struct sock *s, unsigned what, void *arg)
{
    struct one *o = arg;

    o->calls++;
    CHECK(s == o->s);
    CHECK(what);
    if (o->close_in_callback) {
        sock_close(&o->s);
        return;
    }
    if (!o->connected) {
        CHECK_EQ(what, SOCK_WRITABLE);
        o->connected = 1;
        o->connect_error = sock_connected(s);
        if (o->connect_error)
            one_over(o);
        else if (!o->wants_nothing)
            sock_want(s, SOCK_READABLE | (o->put_max ? SOCK_WRITABLE : 0));
        return;
    }
    if (what & SOCK_READABLE)
        one_read(o);
    if (o->s && what & SOCK_WRITABLE)
        one_write(o);
}

static void one_init(struct one *o, const struct net_addr *to)
{
    *o = (struct one){ .l = loop_new("test") };
    timer_init(&o->end, on_end);
    CHECK_EQ(sock_connect(o->l, to, 128 * KiB, -1, on_ready, o, &o->s), E_OK);
    CHECK_EQ(o->calls, 0);
}

static void one_fini(struct one *o)
{
    timer_cancel(o->l, &o->end);
    sock_close(&o->s);
    sock_close(&o->s);
    loop_free(&o->l);
}

static struct one o;

TEST(refused)
{
    struct net_addr to;
    char text[NET_PEER_MAX];

    peer_absent(AF_INET, &to);
    one_init(&o, &to);
    snprintf(text, sizeof(text), "127.0.0.1:%d", peer_port(&to));
    assert_string_equal(sock_peer(o.s), text);
    loop_run(o.l);
    CHECK_EQ(o.connect_error, E_REFUSED);
    CHECK_EQ(o.calls, 1);
    one_fini(&o);
}

/* --- against a peer on its own thread --- */

struct peer {
    struct thread *thread;
    int listener;
    size_t receive, send; /* how many bytes, in this order */
    bool reset;
    size_t received;
    bool right;
};

static void peer_run(void *arg)
{
    struct peer *p = arg;
    int fd = accept(p->listener, NULL, NULL);
    static char bytes[256 * KiB];
    ssize_t n;

    p->right = true;
    while (p->received < p->receive && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            p->right = p->right && bytes[i] == peer_byte(p->received + (size_t)i);
        p->received += (size_t)n;
    }
    for (size_t sent = 0; sent < p->send; sent += (size_t)n) {
        size_t room = MIN(sizeof(bytes), p->send - sent);

        for (size_t i = 0; i < room; i++)
            bytes[i] = peer_byte(sent + i);
        n = send(fd, bytes, room, MSG_NOSIGNAL);
        if (n < 0)
            break;
    }
    if (p->reset)
        peer_drop_with_reset(fd);
    else
        close(fd);
}

static void peer_start(struct peer *p, int family, struct net_addr *to)
{
    p->listener = peer_listen(family, 1, to);
    p->thread = thread_start("peer", peer_run, p);
}

static void peer_join(struct peer *p)
{
    thread_join(&p->thread);
    close(p->listener);
}

TEST(bulk_both_ways)
{
    static const int families[] = { AF_INET, AF_INET6 };

    for (size_t i = 0; i < COUNT(families); i++) {
        struct peer p = { .receive = BULK, .send = BULK };
        struct net_addr to;

        peer_start(&p, families[i], &to);
        one_init(&o, &to);
        o.put_max = BULK;
        loop_run(o.l);
        CHECK_EQ(o.connect_error, E_OK);
        CHECK_EQ(o.error, E_CLOSED);
        CHECK_EQ(o.put, BULK);
        CHECK_EQ(o.got, BULK);
        peer_join(&p);
        CHECK_EQ(p.received, BULK);
        CHECK(p.right);
        one_fini(&o);
    }
}

TEST(reset_mid_way)
{
    struct peer p = { .receive = 100 * KiB, .reset = true };
    struct net_addr to;

    peer_start(&p, AF_INET, &to);
    one_init(&o, &to);
    o.put_max = BULK;
    loop_run(o.l);
    CHECK_EQ(o.error, E_CLOSED);
    CHECK(o.put < BULK);
    peer_join(&p);
    one_fini(&o);
}

TEST(close_in_callback)
{
    struct peer p = { .send = 10 };
    struct net_addr to;

    peer_start(&p, AF_INET, &to);
    one_init(&o, &to);
    o.close_in_callback = true;
    timer_set_ms(o.l, &o.end, 20);
    loop_run(o.l);
    CHECK_EQ(o.calls, 1);
    CHECK(!o.s);
    peer_join(&p);
    one_fini(&o);
}

/* Nothing is told while nothing is wanted, though bytes and the peer's end are there. */
TEST(nothing_wanted)
{
    struct peer p = { .send = 10 };
    struct net_addr to;

    peer_start(&p, AF_INET, &to);
    one_init(&o, &to);
    o.wants_nothing = true;
    peer_join(&p);
    timer_set_ms(o.l, &o.end, 50);
    loop_run(o.l);
    CHECK_EQ(o.connected, 1);
    CHECK_EQ(o.calls, 1);
    sock_want(o.s, SOCK_READABLE);
    loop_run(o.l);
    CHECK_EQ(o.got, 10);
    CHECK_EQ(o.error, E_CLOSED);
    one_fini(&o);
}

/* A socket that is closed before it is connected, and one closed just before its loop goes. */
TEST(closed_early)
{
    struct net_addr to;
    int listener = peer_listen(AF_INET, 1, &to);

    one_init(&o, &to);
    sock_close(&o.s);
    timer_set_ms(o.l, &o.end, 10);
    loop_run(o.l);
    CHECK_EQ(o.calls, 0);
    one_fini(&o);
    one_init(&o, &to);
    one_fini(&o);
    close(listener);
}

TESTS(RUN(refused), RUN(bulk_both_ways), RUN(reset_mid_way), RUN(close_in_callback),
      RUN(nothing_wanted), RUN(closed_early))
