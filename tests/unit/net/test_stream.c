/* test_stream.c -- names, addresses in turn, deadlines, failures in words, and bytes through a kind.
 * SPDX-License-Identifier: Apache-2.0
 */
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

static void dns_answer(struct task *t)
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

static void over(void)
{
    stream_close(&o.s);
    loop_stop(o.l);
}

static void on_end(struct timer *t)
{
    (void)t;
    loop_stop(o.l);
}

static bool io_failed(enum err e)
{
    o.io_error = e;
    if (e && !o.ignore_errors)
        over();
    return e;
}

static void read_some(void)
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

static void write_some(void)
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

static void on_event(struct stream *s, enum stream_event ev, void *arg)
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

static void one_init(void)
{
    memset(&names, 0, sizeof(names));
    memset(&o, 0, sizeof(o));
    o.l = loop_new("test");
    o.options = (struct stream_options){ .send_buffer = -1,
                                         .receive_buffer = -1,
                                         .connect_timeout_ms = 5000 };
    timer_init(&o.end, on_end);
}

static void one_open(const char *host, int port)
{
    o.s = stream_open(o.l, str_c(host), port, &o.options, on_event, &o);
    CHECK_EQ(o.opened + o.failed, 0);
}

static void run_for(int64_t ms)
{
    timer_set_ms(o.l, &o.end, ms);
    loop_run(o.l);
    timer_cancel(o.l, &o.end);
}

static void one_fini(void)
{
    stream_close(&o.s);
    loop_free(&o.l);
}

/* --- on the way to being open --- */

TEST(names_that_fail)
{
    one_init();
    names.error = E_RESOLVE;
    one_open("broker.example", 9092);
    assert_string_equal(stream_peer(o.s), "broker.example:9092");
    loop_run(o.l);
    CHECK_EQ(o.failed, 1);
    CHECK_EQ(o.error, E_RESOLVE);
    assert_string_equal(o.text, "broker.example:9092: the host name cannot be resolved");
    one_fini();

    one_init();
    names.silent = true;
    o.options.connect_timeout_ms = 10;
    one_open("broker.example", 9092);
    loop_run(o.l);
    CHECK_EQ(o.error, E_TIMEOUT);
    assert_string_equal(o.text, "broker.example:9092: no answer within 10 ms");
    one_fini();

    one_init();
    names.silent = true;
    one_open("broker.example", 9092);
    one_fini(); /* closed while the resolver is asked */
}

TEST(refused)
{
    char want[200];

    one_init();
    names.count = 1;
    peer_absent(AF_INET, &names.addrs[0]);
    one_open("127.0.0.1", peer_port(&names.addrs[0]));
    loop_run(o.l);
    CHECK_EQ(o.error, E_REFUSED);
    snprintf(want, sizeof(want), "127.0.0.1:%d: connection refused", peer_port(&names.addrs[0]));
    assert_string_equal(o.text, want);
    one_fini();

    /* All addresses of a name are tried and told. */
    one_init();
    names.count = 2;
    peer_absent(AF_INET6, &names.addrs[0]);
    peer_absent(AF_INET, &names.addrs[1]);
    one_open("broker1", 9);
    loop_run(o.l);
    CHECK_EQ(o.failed, 1);
    snprintf(
        want, sizeof(want),
        "[::1]:%d (broker1:9): connection refused; 127.0.0.1:%d (broker1:9): connection refused",
        peer_port(&names.addrs[0]), peer_port(&names.addrs[1]));
    assert_string_equal(o.text, want);
    one_fini();
}

/* A listener whose queue is full lets a connect wait; the next address answers. */
TEST(addresses_in_turn)
{
    struct net_addr full;
    int deaf = peer_listen(AF_INET, 0, &full), listener, filler;

    filler = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(filler, (struct sockaddr *)full.u.bytes, full.size), 0);
    one_init();
    names.count = 3;
    listener = peer_listen(AF_INET, 8, &names.addrs[0]);
    peer_absent(AF_INET, &names.addrs[1]);
    names.addrs[2] = full;
    o.options.first_address = 4; /* the absent one */
    o.options.connect_timeout_ms = 50;
    o.stop_at_open = true;
    one_open("broker1", 9);
    loop_run(o.l);
    CHECK_EQ(o.opened, 1);
    CHECK_EQ(o.failed, 0);
    CHECK_EQ(stream_error(o.s), E_OK);
    assert_string_equal(stream_error_text(o.s), "");
    one_fini();

    one_init();
    names.count = 1;
    names.addrs[0] = full;
    o.options.connect_timeout_ms = 20;
    one_open("127.0.0.1", peer_port(&full));
    loop_run(o.l);
    CHECK_EQ(o.error, E_TIMEOUT);
    CHECK(strstr(o.text, ": no answer within 20 ms"));
    one_fini();
    close(filler);
    close(deaf);
    close(listener);
}

/* --- bytes --- */

struct echo {
    struct thread *thread;
    int listener;
    size_t most; /* leaves after so many bytes */
    bool reset;
};

static void echo_run(void *arg)
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

static void echo_start(struct echo *e)
{
    names.count = 1;
    e->listener = peer_listen(AF_INET, 1, &names.addrs[0]);
    e->thread = thread_start("echo", echo_run, e);
}

static void echo_join(struct echo *e)
{
    thread_join(&e->thread);
    close(e->listener);
}

/* A kind that turns every byte round, and holds back what it has read beyond 1000 bytes at a time. */
struct flip {
    struct sock *sock;
    int handshakes;
    size_t held, given;
    char bytes[64 * KiB];
};

static int flips;

static void *flip_start(struct sock *sock, struct str host, const void *config)
{
    struct flip *f = mem_new(sizeof(*f));

    CHECK_STR(host, "127.0.0.1");
    CHECK(config == &flips);
    f->sock = sock;
    flips++;
    return f;
}

static enum err flip_handshake(void *state, bool *done, unsigned *want)
{
    struct flip *f = state;

    *done = ++f->handshakes == 3;
    *want = SOCK_WRITABLE;
    return E_OK;
}

static enum err flip_readv(void *state, const struct iovec *iov, int count, size_t *got)
{
    struct flip *f = state;
    struct iovec own = { f->bytes, sizeof(f->bytes) };
    enum err e;

    (void)count;
    if (f->held == f->given) {
        f->given = 0;
        e = sock_readv(f->sock, &own, 1, &f->held);
        if (e)
            return e;
    }
    *got = MIN(1000, f->held - f->given);
    for (size_t i = 0; i < *got; i++)
        ((char *)iov->iov_base)[i] = (char)~f->bytes[f->given++];
    return E_OK;
}

static enum err flip_writev(void *state, const struct iovec *iov, int count, size_t *put)
{
    struct flip *f = state;
    char bytes[1000];
    struct iovec own = { bytes, 0 };

    for (int i = 0; i < count && own.iov_len == 0; i++) {
        own.iov_len = MIN(sizeof(bytes), iov[i].iov_len);
        for (size_t j = 0; j < own.iov_len; j++)
            bytes[j] = (char)~((char *)iov[i].iov_base)[j];
    }
    return sock_writev(f->sock, &own, 1, put);
}

static void flip_end(void *state)
{
    flips--;
    mem_free(state);
}

static const char *flip_words(void *state)
{
    (void)state;
    return "it does not turn";
}

static enum err flip_refuse(void *state, bool *done, unsigned *want)
{
    (void)state;
    (void)done;
    (void)want;
    return E_INVALID;
}

static enum err flip_wait(void *state, bool *done, unsigned *want)
{
    (void)state;
    *done = false;
    *want = SOCK_READABLE;
    return E_OK;
}

static const struct stream_kind flip = { "flip",      flip_start, flip_handshake, flip_readv,
                                         flip_writev, flip_words, flip_end };
static const struct stream_kind refuser = { "flip",      flip_start, flip_refuse, flip_readv,
                                            flip_writev, flip_words, flip_end };
static const struct stream_kind waiter = { "flip",      flip_start, flip_wait, flip_readv,
                                           flip_writev, NULL,       flip_end };

static void transfer(const struct stream_kind *kind, size_t bytes)
{
    struct echo e = { .most = bytes };

    one_init();
    o.options.kind = kind;
    o.options.kind_config = &flips;
    o.options.send_buffer = 128 * KiB;
    echo_start(&e);
    o.put_max = bytes;
    one_open("127.0.0.1", 9092);
    loop_run(o.l);
    echo_join(&e);
    CHECK_EQ(o.io_error, E_CLOSED);
    CHECK_EQ(o.opened, 1);
    CHECK_EQ(o.put, bytes);
    CHECK_EQ(o.got, bytes);
    CHECK(o.writable > 0);
    one_fini();
    CHECK_EQ(flips, 0);
}

TEST(plain_transfer)
{
    transfer(NULL, 16 * MiB);
}

TEST(transfer_through_a_kind)
{
    transfer(&flip, 256 * KiB);
}

TEST(handshakes_that_fail)
{
    static const struct {
        const struct stream_kind *kind;
        enum err want;
        const char *text;
    } cases[] = {
        { &refuser, E_INVALID, ": flip handshake: it does not turn" },
        { &waiter, E_TIMEOUT, ": flip handshake: no answer within 30 ms" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int listener;

        one_init();
        o.options.kind = cases[i].kind;
        o.options.kind_config = &flips;
        o.options.connect_timeout_ms = 30;
        names.count = 1;
        listener = peer_listen(AF_INET, 1, &names.addrs[0]);
        one_open("127.0.0.1", peer_port(&names.addrs[0]));
        loop_run(o.l);
        CHECK_EQ(o.opened, 0);
        CHECK_EQ(o.error, cases[i].want);
        CHECK(strstr(o.text, cases[i].text));
        one_fini();
        close(listener);
        CHECK_EQ(flips, 0);
    }
}

/* An owner that takes no notice of the error of a read or write is told once more, in words. */
TEST(peer_goes_away)
{
    for (int reset = 0; reset < 2; reset++) {
        struct echo e = { .most = 200 * KiB, .reset = reset };

        one_init();
        echo_start(&e);
        o.put_max = 64 * MiB;
        o.ignore_errors = true;
        one_open("127.0.0.1", 9092);
        loop_run(o.l);
        echo_join(&e);
        CHECK_EQ(o.failed, 1);
        CHECK_EQ(o.error, E_CLOSED);
        CHECK(strstr(o.text, ": closed by the peer"));
        one_fini();
    }
}

TEST(paused)
{
    struct echo e = { .most = 1000 };

    one_init();
    echo_start(&e);
    o.put_max = 1000;
    one_open("127.0.0.1", 9092);
    stream_pause(o.s, true);
    o.stop_at_open = true;
    loop_run(o.l);
    echo_join(&e);
    run_for(20);
    CHECK_EQ(o.opened, 1);
    CHECK_EQ(o.readable, 0);
    stream_pause(o.s, false);
    loop_run(o.l);
    CHECK_EQ(o.got, 1000);
    CHECK_EQ(o.io_error, E_CLOSED);
    one_fini();
}

TEST(closed_in_any_callback)
{
    static const struct stream_kind *const kinds[] = { NULL, &flip };

    for (size_t k = 0; k < COUNT(kinds); k++) {
        for (int at = STREAM_OPEN; at <= STREAM_FAILED; at++) {
            struct echo e = { .most = 200 * KiB };

            one_init();
            o.options.kind = kinds[k];
            o.options.kind_config = &flips;
            o.options.send_buffer = 128 * KiB;
            o.ignore_errors = true;
            o.close_at = at + 1;
            o.put_max = 16 * MiB;
            echo_start(&e);
            one_open("127.0.0.1", 9092);
            loop_run(o.l);
            CHECK(!o.s);
            echo_join(&e);
            one_fini();
            CHECK_EQ(flips, 0);
        }
    }
}

TESTS(RUN(names_that_fail), RUN(refused), RUN(addresses_in_turn), RUN(plain_transfer),
      RUN(transfer_through_a_kind), RUN(handshakes_that_fail), RUN(peer_goes_away), RUN(paused),
      RUN(closed_in_any_callback))
