/* sock.c -- a non-blocking file descriptor and its place in libuv's epoll set.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  connecting --(connect has ended)--> open          closed: the fd is gone, the struct waits for libuv
 *      |  polls for WRITABLE             |  polls for what is wanted
 *      +-------------- sock_close -------+-----------> closed -> freed at the end of the turn
 *
 * S-1  Each change of what is polled costs libuv two epoll_ctl, so it is made only when it is a change.
 * S-2  libuv lets go of a handle at the end of a turn: until then the memory stays, and nothing is called.
 */
#include "net/sock.h"

#include "base/alloc.h"
#include "base/must.h"
#include "loop/loop_uv.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct sock {
    uv_poll_t poll;
    struct loop *loop;
    int fd; /* -1: closed */
    unsigned want;
    int polled; /* what libuv polls for: UV_READABLE | UV_WRITABLE */
    bool connecting;
    enum err connect_error;
    sock_ready_fn *on_ready;
    void *arg;
    char peer[NET_PEER_MAX];
};

static enum err err_of(int error)
{
    switch (error) {
    case 0:
        return E_OK;
    case ECONNREFUSED:
        return E_REFUSED;
    case ETIMEDOUT:
        return E_TIMEOUT;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return E_UNREACHABLE;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
        return E_CLOSED;
    case EMFILE:
    case ENFILE:
        return E_LIMIT;
    default:
        return E_IO;
    }
}

/* --- readiness --- */

static void on_poll(uv_poll_t *h, int status, int events);

static void poll_for_wanted(struct sock *s)
{
    int events = 0;

    if (s->connecting || s->want & SOCK_WRITABLE)
        events |= UV_WRITABLE;
    if (!s->connecting && s->want & SOCK_READABLE)
        events |= UV_READABLE;
    if (events == s->polled)
        return;
    s->polled = events;
    if (events)
        must(uv_poll_start(&s->poll, events, on_poll) == 0);
    else
        must(uv_poll_stop(&s->poll) == 0);
}

/* A connect to a free local port can meet itself, when the system picks that port for our end too. */
static bool is_self(int fd)
{
    struct sockaddr_storage here = { 0 }, there = { 0 };
    socklen_t here_size = sizeof(here), there_size = sizeof(there);

    return getsockname(fd, (struct sockaddr *)&here, &here_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_size) == 0 &&
           here_size == there_size && memcmp(&here, &there, here_size) == 0;
}

static void end_connect(struct sock *s)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    s->connecting = false;
    s->connect_error = error == 0 && is_self(s->fd) ? E_REFUSED : err_of(error);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct sock *s = h->data;
    unsigned what = 0;

    if (status < 0)
        s->polled = 0; /* libuv has stopped; reading or writing will tell the owner why */
    if (s->connecting) {
        end_connect(s);
        what = SOCK_WRITABLE;
    } else {
        if (events & UV_READABLE || status < 0)
            what |= SOCK_READABLE;
        if (events & UV_WRITABLE || status < 0)
            what |= SOCK_WRITABLE;
        what &= s->want;
    }
    if (what)
        s->on_ready(s, what, s->arg);
    if (s->fd >= 0)
        poll_for_wanted(s);
}

void sock_want(struct sock *s, unsigned what)
{
    loop_check(s->loop);
    s->want = what;
    poll_for_wanted(s);
}

/* --- life --- */

static void set_options(int fd, int send_buffer, int receive_buffer)
{
    int on = 1;

    /* All of these are wishes: a socket without them works. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (send_buffer >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer));
    if (receive_buffer >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
}

/* Long because the contract lists what a connect needs, each thing of another kind. */
enum err sock_connect(struct loop *l, const struct net_addr *addr, int send_buffer,
                      int receive_buffer, sock_ready_fn *on_ready, void *arg, struct sock **out)
{
    struct sockaddr_storage to = { 0 };
    struct sock *s;
    int fd;

    loop_check(l);
    must(addr->size <= sizeof(addr->u.bytes));
    memcpy(&to, addr->u.bytes, addr->size);
    fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_of(errno);
    set_options(fd, send_buffer, receive_buffer); /* before the connect: they decide its window */
    if (connect(fd, (struct sockaddr *)&to, addr->size) < 0 && errno != EINPROGRESS) {
        enum err e = err_of(errno);

        close(fd);
        return e;
    }
    s = mem_new(sizeof(*s));
    s->loop = l;
    s->fd = fd;
    s->connecting = true;
    s->on_ready = on_ready;
    s->arg = arg;
    s->poll.data = s;
    net_addr_format(addr, s->peer, sizeof(s->peer));
    must(uv_poll_init(loop_uv(l), &s->poll, fd) == 0);
    poll_for_wanted(s);
    *out = s;
    return E_OK;
}

enum err sock_connected(struct sock *s)
{
    must(!s->connecting);
    return s->connect_error;
}

static void on_closed(uv_handle_t *h)
{
    mem_free(h->data);
}

void sock_close(struct sock **sp)
{
    struct sock *s = *sp;

    if (!s)
        return;
    loop_check(s->loop);
    *sp = NULL;
    uv_close((uv_handle_t *)&s->poll, on_closed); /* takes the fd out of epoll before it goes */
    close(s->fd);
    s->fd = -1;
}

const char *sock_peer(const struct sock *s)
{
    return s->peer;
}

/* --- bytes --- */

enum err sock_readv(struct sock *s, const struct iovec *iov, int count, size_t *got)
{
    ssize_t n;

    do
        n = readv(s->fd, iov, count);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        *got = (size_t)n;
        return E_OK;
    }
    if (n == 0)
        return E_CLOSED;
    if (errno != EAGAIN)
        return err_of(errno);
    *got = 0;
    return E_OK;
}

enum err sock_writev(struct sock *s, const struct iovec *iov, int count, size_t *put)
{
    ssize_t n;

    do
        n = writev(s->fd, iov, count);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        return err_of(errno);
    *put = n < 0 ? 0 : (size_t)n;
    return E_OK;
}
