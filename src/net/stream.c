/* stream.c -- from a host name to bytes that flow, and what went wrong on the way.
 * SPDX-License-Identifier: Apache-2.0
 *
 *             +------- refused, late -------+
 *             v                             |
 *  naming -> dialing -> connecting ---------+-> shaking -> open
 *    |         |  no address left                  |         |
 *    +---------+------------> failed <-------------+---------+
 *
 * N-1  Callbacks note and wake; step() moves. Only an open stream calls its owner straight from readiness,
 *      since that is the data path.
 * N-2  Every call to the owner may close the stream, so nothing is touched after tell() unless it says so.
 * N-3  The socket is polled for writing only after a write that found no room.
 */
#include "net/stream.h"

#include "base/alloc.h"
#include "base/must.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 400

enum state { NAMING, DIALING, CONNECTING, SHAKING, OPEN, FAILED };

#define TO(state) (1u << (state))

static const unsigned moves[] = {
    [NAMING] = TO(DIALING) | TO(FAILED),
    [DIALING] = TO(CONNECTING) | TO(FAILED),
    [CONNECTING] = TO(DIALING) | TO(SHAKING),
    [SHAKING] = TO(OPEN) | TO(FAILED),
    [OPEN] = TO(FAILED),
    [FAILED] = 0,
};

struct stream {
    struct loop *loop;
    stream_fn *fn;
    void *arg;
    const struct stream_kind *kind; /* NULL: plain */
    void *kind_state;
    struct sock *sock;
    bool paused;
    bool blocked;  /* the last write found no room */
    bool has_more; /* a kind may hold bytes that the socket does not announce */
    bool telling;  /* the owner is being called: the struct stays until it returns */
    bool closed;   /* by the owner in that call */
    enum state state;
    enum err error;
    struct task step;
    struct setup {
        struct stream_options options;
        struct str host;
        struct dns_query *query;
        struct timer deadline;
        bool ended; /* the resolver or the connect */
        bool late;  /* the deadline has passed */
        uint32_t count, tried;
        struct net_addr addrs[DNS_ADDRS_MAX];
    } setup;
    char *name;              /* "broker1:9092", as asked for */
    char peer[NET_PEER_MAX]; /* "" until an address is tried */
    size_t text_size;
    char text[TEXT_MAX];
};

/* --- words --- */

static void PRINTF_LIKE(2, 3) say(struct stream *s, const char *fmt, ...)
{
    size_t room = sizeof(s->text) - s->text_size;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(s->text + s->text_size, room, fmt, args);
    va_end(args);
    if (n > 0)
        s->text_size += MIN((size_t)n, room - 1);
}

static void say_cause(struct stream *s, enum err e)
{
    const char *words =
        s->kind_state && s->kind->error_text ? s->kind->error_text(s->kind_state) : NULL;

    if (words)
        say(s, "%s", words);
    else if (e == E_REFUSED)
        say(s, "connection refused");
    else if (e == E_TIMEOUT && s->setup.late)
        say(s, "no answer within %lld ms", (long long)s->setup.options.connect_timeout_ms);
    else if (e == E_CLOSED)
        say(s, "closed by the peer");
    else
        say(s, "%s", err_text(e));
}

/* Notes one failure; those of several addresses stand side by side. */
static void note_error(struct stream *s, enum err e)
{
    s->error = e;
    say(s, "%s%s", s->text_size ? "; " : "", stream_peer(s));
    if (strcmp(stream_peer(s), s->name) != 0)
        say(s, " (%s)", s->name);
    if (s->state == SHAKING)
        say(s, ": %s handshake", s->kind->name);
    say(s, ": ");
    say_cause(s, e);
}

/* --- on the way to being open --- */

static void stream_goto(struct stream *s, enum state to)
{
    must(moves[s->state] & TO(to));
    s->state = to;
}

static void set_deadline(struct stream *s)
{
    s->setup.late = false;
    if (s->setup.options.connect_timeout_ms > 0)
        timer_set_ms(s->loop, &s->setup.deadline, s->setup.options.connect_timeout_ms);
}

static void on_deadline(struct timer *t)
{
    struct stream *s = container_of(t, struct stream, setup.deadline);

    s->setup.late = true;
    task_wake(s->loop, &s->step);
}

static void on_resolved(void *arg, enum err e, const struct net_addr *addrs, int count)
{
    struct stream *s = arg;

    s->setup.query = NULL;
    s->setup.ended = true;
    s->error = !e && count == 0 ? E_RESOLVE : e;
    if (!s->error) {
        s->setup.count = (uint32_t)MIN(count, DNS_ADDRS_MAX);
        memcpy(s->setup.addrs, addrs, s->setup.count * sizeof(*addrs));
    }
    task_wake(s->loop, &s->step);
}

/* Polls an open stream for what can be told. */
static void want(struct stream *s)
{
    unsigned what = (s->paused ? 0 : SOCK_READABLE) | (s->blocked ? SOCK_WRITABLE : 0);

    sock_want(s->sock, s->error ? 0 : what); /* a dead socket would be ready for ever */
}

static void release(struct stream *s)
{
    mem_free(s->name);
    mem_free(s);
}

/* False when the owner has closed the stream meanwhile; then it is gone. */
static bool tell(struct stream *s, enum stream_event ev)
{
    s->telling = true;
    s->fn(s, ev, s->arg);
    s->telling = false;
    if (!s->closed)
        return true;
    release(s);
    return false;
}

/* The data path: readiness of an open stream goes straight to the owner. */
static void on_ready(struct sock *sock, unsigned what, void *arg)
{
    struct stream *s = arg;

    (void)sock;
    if (s->state != OPEN) {
        s->setup.ended = true;
        task_wake(s->loop, &s->step);
        return;
    }
    if (what & SOCK_WRITABLE && s->blocked) {
        s->blocked = false;
        if (!tell(s, STREAM_WRITABLE))
            return;
        want(s); /* no change, and no system call, when the owner has filled it again */
    }
    if (what & SOCK_READABLE && !s->paused && !s->error)
        (void)tell(s, STREAM_READABLE);
}

/* Tries the next address; on_ready or the deadline tells how it went. */
static void dial(struct stream *s)
{
    const struct stream_options *o = &s->setup.options;
    uint32_t at = (o->first_address % s->setup.count + s->setup.tried) % s->setup.count;
    enum err e;

    s->setup.tried++;
    s->setup.ended = false;
    net_addr_format(&s->setup.addrs[at], s->peer, sizeof(s->peer));
    e = sock_connect(s->loop, &s->setup.addrs[at], o->send_buffer, o->receive_buffer, on_ready, s,
                     &s->sock);
    if (e) {
        note_error(s, e);
        return;
    }
    set_deadline(s);
    stream_goto(s, CONNECTING);
}

static void end_naming(struct stream *s)
{
    if (!s->setup.ended) {
        dns_cancel(&s->setup.query);
        s->error = E_TIMEOUT;
    }
    if (s->error)
        note_error(s, s->error);
    stream_goto(s, s->error ? FAILED : DIALING);
}

static void end_connecting(struct stream *s)
{
    enum err e = s->setup.ended ? sock_connected(s->sock) : E_TIMEOUT;

    if (e) {
        note_error(s, e);
        sock_close(&s->sock);
        stream_goto(s, DIALING);
        return;
    }
    s->error = E_OK; /* what went wrong with other addresses matters no more */
    s->text_size = 0;
    s->text[0] = '\0';
    set_deadline(s);
    if (s->kind)
        s->kind_state = s->kind->start(s->sock, s->setup.host, s->setup.options.kind_config);
    stream_goto(s, SHAKING);
}

/* True when the handshake has ended, well or not. */
static bool shake(struct stream *s)
{
    bool done = true;
    unsigned ready = 0;
    enum err e = E_OK;

    if (s->kind)
        e = s->setup.late ? E_TIMEOUT : s->kind->handshake(s->kind_state, &done, &ready);
    if (e) {
        note_error(s, e);
        stream_goto(s, FAILED);
        return true;
    }
    if (!done) {
        sock_want(s->sock, ready);
        return false;
    }
    timer_cancel(s->loop, &s->setup.deadline);
    s->has_more = s->kind; /* the peer's first bytes may have come with the end of its handshake */
    stream_goto(s, OPEN);
    return true;
}

static void hang_up(struct stream *s)
{
    dns_cancel(&s->setup.query);
    timer_cancel(s->loop, &s->setup.deadline);
    task_cancel(&s->step);
    if (s->kind_state)
        s->kind->end(s->kind_state);
    s->kind_state = NULL;
    sock_close(&s->sock);
}

/* Level-triggered, as the socket is: again in each turn while the kind may hold bytes. */
static void tell_more(struct stream *s)
{
    if (!s->has_more || s->paused || !tell(s, STREAM_READABLE))
        return;
    if (s->has_more && !s->paused)
        task_wake(s->loop, &s->step);
}

/* Moves as far as it can. Whatever tells the owner is the last thing it does (N-2). */
static void step(struct task *t)
{
    struct stream *s = container_of(t, struct stream, step);

    for (;;) {
        switch (s->state) {
        case NAMING:
            if (!s->setup.ended && !s->setup.late)
                return;
            end_naming(s);
            continue;
        case DIALING:
            if (s->setup.tried == s->setup.count)
                stream_goto(s, FAILED);
            else
                dial(s);
            continue;
        case CONNECTING:
            if (!s->setup.ended && !s->setup.late)
                return;
            end_connecting(s);
            continue;
        case SHAKING:
            if (!shake(s))
                return;
            if (s->state == FAILED)
                continue;
            want(s);
            if (s->has_more)
                task_wake(s->loop, &s->step);
            (void)tell(s, STREAM_OPEN);
            return;
        case OPEN:
            if (s->error) {
                stream_goto(s, FAILED);
                continue;
            }
            tell_more(s);
            return;
        case FAILED:
            hang_up(s);
            (void)tell(s, STREAM_FAILED);
            return;
        }
    }
}

/* --- life --- */

static char *name_of(struct str host, int port)
{
    bool is_ipv6 = str_find(host, STR(":"), 0) >= 0;
    size_t room = host.n + sizeof("[]:-2147483648");
    char *name = mem_new(room);

    snprintf(name, room, is_ipv6 ? "[%.*s]:%d" : "%.*s:%d", STR_ARG(host), port);
    return name;
}

struct stream *stream_open(struct loop *l, struct str host, int port,
                           const struct stream_options *o, stream_fn *fn, void *arg)
{
    struct stream *s = mem_new(sizeof(*s));

    s->loop = l;
    s->fn = fn;
    s->arg = arg;
    s->kind = o->kind;
    s->name = name_of(host, port);
    s->setup.options = *o;
    s->setup.host = str_of(s->name + (s->name[0] == '['), host.n);
    task_init(&s->step, step);
    timer_init(&s->setup.deadline, on_deadline);
    set_deadline(s);
    s->setup.query = dns_resolve(l, host, port, on_resolved, s);
    return s;
}

void stream_close(struct stream **sp)
{
    struct stream *s = *sp;

    if (!s)
        return;
    *sp = NULL;
    hang_up(s);
    s->closed = true;
    if (!s->telling)
        release(s);
}

void stream_pause(struct stream *s, bool paused)
{
    s->paused = paused;
    if (s->state != OPEN || s->error)
        return;
    want(s);
    if (s->has_more && !paused)
        task_wake(s->loop, &s->step);
}

/* --- bytes --- */

static enum err end_by(struct stream *s, enum err e)
{
    note_error(s, e);
    want(s);
    task_wake(s->loop, &s->step);
    return e;
}

enum err stream_readv(struct stream *s, const struct iovec *iov, int count, size_t *got)
{
    enum err e;

    must(s->state >= OPEN);
    if (s->error)
        return s->error;
    if (!s->kind) {
        e = sock_readv(s->sock, iov, count, got);
        return e ? end_by(s, e) : E_OK;
    }
    e = s->kind->readv(s->kind_state, iov, count, got);
    if (e)
        return end_by(s, e);
    s->has_more = *got > 0;
    if (s->has_more)
        task_wake(s->loop, &s->step);
    return E_OK;
}

static size_t total(const struct iovec *iov, int count)
{
    size_t n = 0;

    for (int i = 0; i < count; i++)
        n += iov[i].iov_len;
    return n;
}

enum err stream_writev(struct stream *s, const struct iovec *iov, int count, size_t *put)
{
    size_t sent = 0;
    enum err e = E_OK;

    must(s->state >= OPEN);
    if (s->error)
        return s->error;
    if (!s->blocked) { /* else there is no room: no need to ask the system */
        e = s->kind ? s->kind->writev(s->kind_state, iov, count, &sent)
                    : sock_writev(s->sock, iov, count, &sent);
        if (e)
            return end_by(s, e);
        if (sent < total(iov, count)) {
            s->blocked = true;
            want(s);
        }
    }
    *put = sent;
    return E_OK;
}

/* --- asked from outside --- */

enum err stream_error(const struct stream *s)
{
    return s->error;
}

const char *stream_error_text(const struct stream *s)
{
    return s->text;
}

const char *stream_peer(const struct stream *s)
{
    return s->peer[0] ? s->peer : s->name;
}
