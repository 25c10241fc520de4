/* null_net.c -- epoll, frames and vectors of the null broker.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   reading --whole frame--> (handler) --> writing --all written--> reading
 *                               |            ^
 *                               +--> held ---+  after hold_ms
 *
 * An answer leaves as   head | 8 bytes of offset | rest of the batch | 8 | rest | ... | head | ...
 */
#include "null_net.h"

#include "base/alloc.h"
#include "base/list.h"
#include "base/must.h"
#include "wire/prim.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX    (128 * MiB)
#define ROOM_LEAST   (64 * KiB)
#define OFFSET_BYTES 8
#define EVENTS_MAX   64

struct null_conn {
    struct list_node node;
    int fd;
    unsigned polled;
    void *session;
    char *in; /* a frame with its size in front, as far as it has come */
    size_t in_n, in_room;
    struct null_answer answer;
    struct buf head;
    struct cut cuts[NULL_RUNS_MAX];
    struct iovec *iov;
    unsigned char (*offsets)[OFFSET_BYTES];
    size_t iov_n, iov_room, offsets_n, offsets_room, iov_at;
    int64_t not_before_ms; /* the answer is held until then; 0: it is not */
};

struct null_net {
    int epoll, listener, signals, port;
    const struct null_batch *batch;
    null_handler *fn;
    void *arg;
    struct list_node conns;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* --- connections --- */

static void watch(struct null_net *n, int fd, void *arg)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = arg };

    must(epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &ev) == 0);
}

static void conn_open(struct null_net *n)
{
    int on = 1, fd = accept4(n->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct null_conn *c;

    if (fd < 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c = mem_new(sizeof(*c));
    c->fd = fd;
    c->polled = EPOLLIN;
    c->in_room = ROOM_LEAST;
    c->in = mem_resize(NULL, c->in_room, 1);
    buf_init(&c->head, FRAME_MAX);
    list_init(&c->node);
    list_add_tail(&n->conns, &c->node);
    watch(n, fd, c);
}

static void conn_close(struct null_net *n, struct null_conn *c)
{
    (void)n->fn(n->arg, STR_NULL, NULL, &c->session);
    close(c->fd);
    list_remove(&c->node);
    mem_free(c->in);
    buf_fini(&c->head);
    mem_free(c->iov);
    mem_free(c->offsets);
    mem_free(c);
}

static void conn_poll(struct null_net *n, struct null_conn *c)
{
    struct epoll_event ev = { .data.ptr = c };

    if (c->iov_at == c->iov_n)
        ev.events = EPOLLIN;
    else if (!c->not_before_ms)
        ev.events = EPOLLOUT;
    if (ev.events == c->polled)
        return;
    c->polled = ev.events;
    must(epoll_ctl(n->epoll, EPOLL_CTL_MOD, c->fd, &ev) == 0);
}

/* --- answers out --- */

static void add_piece(struct null_conn *c, const void *p, size_t size)
{
    if (!size)
        return;
    if (c->iov_n == c->iov_room) {
        c->iov_room = MAX(2 * c->iov_room, 64);
        c->iov = mem_resize(c->iov, c->iov_room, sizeof(*c->iov));
    }
    c->iov[c->iov_n++] = (struct iovec){ .iov_base = (void *)(uintptr_t)p, .iov_len = size };
}

static void add_run(const struct null_net *n, struct null_conn *c, const struct null_run *r)
{
    const struct null_batch *b = n->batch;
    int64_t offset = r->first_offset;

    for (size_t left = r->bytes; left > 0; offset += b->records) {
        size_t whole = MIN(left, b->size);
        size_t front = MIN(whole, OFFSET_BYTES);
        unsigned char *to = c->offsets[c->offsets_n++];

        store_u64(to, (uint64_t)offset);
        add_piece(c, to, front);
        add_piece(c, b->bytes + front, whole - front);
        left -= whole;
    }
}

/* Pieces point into the array of offsets: it must not move once they do. */
static void make_offsets(const struct null_net *n, struct null_conn *c)
{
    size_t want = 0;

    for (size_t i = 0; i < c->answer.runs_n; i++)
        want += c->answer.runs[i].bytes / n->batch->size + 1;
    if (want > c->offsets_room) {
        c->offsets_room = want;
        c->offsets = mem_resize(c->offsets, want, sizeof(*c->offsets));
    }
    c->offsets_n = 0;
}

static void make_pieces(const struct null_net *n, struct null_conn *c)
{
    const struct encoding *e = &c->answer.encoding;
    size_t at = 0, total = c->head.n;

    must(e->cuts_n == c->answer.runs_n && !c->head.bad);
    make_offsets(n, c);
    c->iov_n = c->iov_at = 0;
    for (size_t i = 0; i < e->cuts_n; i++) {
        add_piece(c, c->head.p + at, e->cuts[i].at - at);
        at = e->cuts[i].at;
        add_run(n, c, &c->answer.runs[i]);
        total += c->answer.runs[i].bytes;
    }
    add_piece(c, c->head.p + at, c->head.n - at);
    store_u32(c->head.p, (uint32_t)(total - 4));
}

/* False when the connection is broken. */
static bool conn_write(struct null_conn *c)
{
    while (c->iov_at < c->iov_n) {
        ssize_t put = writev(c->fd, c->iov + c->iov_at, (int)MIN(c->iov_n - c->iov_at, IOV_MAX));

        if (put < 0)
            return errno == EAGAIN || errno == EINTR;
        while (put > 0) {
            struct iovec *v = &c->iov[c->iov_at];
            size_t part = MIN((size_t)put, v->iov_len);

            v->iov_base = (char *)v->iov_base + part;
            v->iov_len -= part;
            put -= (ssize_t)part;
            c->iov_at += v->iov_len == 0;
        }
    }
    return true;
}

/* --- requests in --- */

/* Takes the frame at the front; false: the peer is not worth talking to. */
static bool take_frame(struct null_net *n, struct null_conn *c, size_t size)
{
    struct null_answer *a = &c->answer;

    buf_clear(&c->head);
    put_i32(&c->head, 0); /* the size, when it is known */
    a->encoding =
        (struct encoding){ .head = &c->head, .cuts = c->cuts, .cuts_max = COUNT(c->cuts) };
    a->runs_n = 0;
    a->hold_ms = 0;
    if (!n->fn(n->arg, str_of(c->in + 4, size - 4), a, &c->session))
        return false;
    memmove(c->in, c->in + size, c->in_n - size);
    c->in_n -= size;
    if (c->head.n > 4)
        make_pieces(n, c);
    c->not_before_ms = a->hold_ms ? now_ms() + a->hold_ms : 0;
    return c->not_before_ms || conn_write(c);
}

/* Handles what is there while its answers can be written. */
static bool take_frames(struct null_net *n, struct null_conn *c)
{
    while (c->iov_at == c->iov_n && c->in_n >= 4) {
        size_t size = 4 + (size_t)load_u32(c->in);

        if (size > FRAME_MAX)
            return false;
        if (c->in_n < size) {
            if (c->in_room < size) {
                c->in_room = size + ROOM_LEAST;
                c->in = mem_resize(c->in, c->in_room, 1);
            }
            break;
        }
        if (!take_frame(n, c, size))
            return false;
    }
    return true;
}

static bool conn_read(struct null_net *n, struct null_conn *c)
{
    ssize_t got = read(c->fd, c->in + c->in_n, c->in_room - c->in_n);

    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    c->in_n += (size_t)got;
    return take_frames(n, c);
}

static void conn_step(struct null_net *n, struct null_conn *c, unsigned what)
{
    bool good = !(what & EPOLLERR);

    if (good && what & EPOLLOUT)
        good = conn_write(c) && take_frames(n, c);
    else if (good && what & (EPOLLIN | EPOLLHUP))
        good = conn_read(n, c);
    if (good)
        conn_poll(n, c);
    else
        conn_close(n, c);
}

/* Lets go what has been held long enough; gives the wait for the next, -1: none. */
static int release_held(struct null_net *n)
{
    struct list_node *at, *after;
    int64_t now = now_ms(), wait = -1;

    LIST_EACH_SAFE(at, after, &n->conns)
    {
        struct null_conn *c = container_of(at, struct null_conn, node);

        if (!c->not_before_ms)
            continue;
        if (c->not_before_ms > now) {
            wait = wait < 0 ? c->not_before_ms - now : MIN(wait, c->not_before_ms - now);
            continue;
        }
        c->not_before_ms = 0;
        conn_step(n, c, EPOLLOUT);
    }
    return (int)wait;
}

/* --- life --- */

static bool start_listening(struct null_net *n, int port)
{
    struct sockaddr_in here = { .sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)port) };
    socklen_t size = sizeof(here);
    int on = 1;

    n->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)setsockopt(n->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(n->listener, (struct sockaddr *)&here, size) < 0 || listen(n->listener, 64) < 0 ||
        getsockname(n->listener, (struct sockaddr *)&here, &size) < 0)
        return false;
    n->port = ntohs(here.sin_port);
    return true;
}

struct null_net *null_net_new(int port, const struct null_batch *batch, null_handler *fn, void *arg)
{
    struct null_net *n = mem_new(sizeof(*n));
    sigset_t set;

    n->batch = batch;
    n->fn = fn;
    n->arg = arg;
    list_init(&n->conns);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    n->epoll = epoll_create1(EPOLL_CLOEXEC);
    n->signals = signalfd(-1, &set, SFD_CLOEXEC);
    must(n->epoll >= 0 && n->signals >= 0);
    if (!start_listening(n, port)) {
        null_net_free(&n);
        return NULL;
    }
    watch(n, n->listener, &n->listener);
    watch(n, n->signals, &n->signals);
    return n;
}

int null_net_port(const struct null_net *n)
{
    return n->port;
}

void null_net_run(struct null_net *n)
{
    struct epoll_event ev[EVENTS_MAX];

    for (;;) {
        int count = epoll_wait(n->epoll, ev, EVENTS_MAX, release_held(n));

        for (int i = 0; i < count; i++) {
            if (ev[i].data.ptr == &n->signals)
                return;
            if (ev[i].data.ptr == &n->listener)
                conn_open(n);
            else
                conn_step(n, ev[i].data.ptr, ev[i].events);
        }
    }
}

void null_net_free(struct null_net **np)
{
    struct null_net *n = *np;
    struct list_node *at;

    if (!n)
        return;
    *np = NULL;
    while ((at = list_first(&n->conns)))
        conn_close(n, container_of(at, struct null_conn, node));
    close(n->listener);
    close(n->signals);
    close(n->epoll);
    mem_free(n);
}
