/* test_stream_kind.c -- bytes plain and through a kind, handshakes that fail, and a close in any callback.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/net/stream_rig.h"

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

TESTS(RUN(plain_transfer), RUN(transfer_through_a_kind), RUN(handshakes_that_fail),
      RUN(closed_in_any_callback))
