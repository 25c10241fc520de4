/* server.c -- the HTTP server: its thread, its connections and their limits.
 * SPDX-License-Identifier: Apache-2.0
 *
 * evhttp does HTTP. It closes what is silent for SERVER_IDLE_S; what dribbles is closed by deadlines that the sweep
 * looks at once a second. Beyond SERVER_CONNS_MAX connections nobody is accepted until one has gone: the backlog of the
 * system waits. (libevent 2.1 has no such limit: see on_adopt.)
 *
 * Made and stopped by the control thread; all between runs on the server's own. The two share the cell, and an eventfd
 * that ends the thread.
 */
#include "serve/server.h"

#include "serve/server_int.h"

#include "base/alloc.h"
#include "base/must.h"
#include "net/dns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SWEEP_S 1
#define HOST_MAX 256

int64_t server_now_ms(const struct server *s)
{
    struct timeval now;

    must(evutil_gettime_monotonic(s->clock, &now) == 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_usec / 1000;
}

struct client *server_find_client(struct server *s, const struct evhttp_connection *evcon)
{
    struct list_node *n;

    LIST_EACH(n, &s->clients) {
        struct client *c = container_of(n, struct client, node);

        if (c->evcon == evcon)
            return c;
    }
    return NULL;
}

static void accept_more(struct server *s, bool yes)
{
    struct evconnlistener *l = evhttp_bound_socket_get_listener(s->socket);

    s->full = !yes;
    if (yes)
        evconnlistener_enable(l);
    else
        evconnlistener_disable(l);
}

static void on_close(struct evhttp_connection *evcon, void *arg)
{
    struct client *c = arg;
    struct server *s = c->server;

    (void)evcon;
    server_forget_sending(c);
    list_remove(&c->node);
    mem_free(c);
    s->conns--;
    if (s->full && s->conns < SERVER_CONNS_MAX)
        accept_more(s, true);
}

/* evhttp of libevent 2.1 tells nobody of a connection before its first request. But the bufferevent that it asked for
 * in on_accept has it as the argument of its callbacks as soon as it is set up, which is before this event runs. */
static void on_adopt(evutil_socket_t fd, short what, void *arg)
{
    struct server *s = arg;

    (void)fd;
    (void)what;
    for (int i = 0; i < s->fresh_n; i++) {
        struct client *c = mem_new(sizeof(*c));
        void *evcon = NULL;

        bufferevent_getcb(s->fresh[i], NULL, NULL, NULL, &evcon);
        must(evcon);
        c->server = s;
        c->evcon = evcon;
        c->deadline_ms = server_now_ms(s) + SERVER_REQUEST_MS;
        list_add_tail(&s->clients, &c->node);
        evhttp_connection_set_closecb(c->evcon, on_close, c);
    }
    s->fresh_n = 0;
}

/* CLOSE_ON_FREE, or evhttp closes a socket before its events are taken off epoll: by then the number may be another
 * socket's. */
static struct bufferevent *on_accept(struct event_base *base, void *arg)
{
    struct server *s = arg;
    struct bufferevent *b = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

    if (!b || s->fresh_n == SERVER_CONNS_MAX)
        return b; /* evhttp makes one of its own, or gives up on this connection */
    s->fresh[s->fresh_n++] = b;
    event_active(s->adopt, EV_TIMEOUT, 1);
    if (++s->conns >= SERVER_CONNS_MAX)
        accept_more(s, false);
    return b;
}

static void note_view(struct server *s)
{
    struct snapshot *now = cell_get(s->view);

    if (now != s->seen)
        s->seen_ms = server_now_ms(s);
    snapshot_drop(&s->seen);
    s->seen = now;
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
    struct server *s = arg;
    int64_t now = server_now_ms(s);
    struct list_node *n, *after;

    (void)fd;
    (void)what;
    note_view(s);
    LIST_EACH_SAFE(n, after, &s->clients) {
        struct client *c = container_of(n, struct client, node);

        if (now >= c->deadline_ms)
            evhttp_connection_free(c->evcon); /* calls on_close */
    }
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    struct server *s = arg;

    (void)fd;
    (void)what;
    event_base_loopbreak(s->base);
}

static void run(void *arg)
{
    struct server *s = arg;

    must(event_base_dispatch(s->base) == 0 || event_base_got_break(s->base));
}

static void note_address(struct server *s)
{
    struct net_addr a = { 0 };
    struct sockaddr_storage ss;
    socklen_t n = sizeof(ss);

    if (getsockname(evhttp_bound_socket_get_fd(s->socket), (struct sockaddr *)&ss, &n) == 0) {
        a.size = (uint32_t)MIN(n, sizeof(a.u.bytes));
        memcpy(a.u.bytes, &ss, a.size);
    }
    net_addr_format(&a, s->address, sizeof(s->address));
}

static bool start_listening(struct server *s, struct str listen, char *why, size_t room)
{
    char host[HOST_MAX];
    uint16_t port;

    if (!net_addr_split(listen, host, sizeof(host), &port)) {
        snprintf(why, room, "%.*s is no address: host:port, or [host]:port for IPv6", STR_ARG(listen));
        return false;
    }
    errno = 0;
    s->socket = evhttp_bind_socket_with_handle(s->http, host, port);
    if (!s->socket) {
        snprintf(why, room, "cannot listen on %.*s: %s", STR_ARG(listen),
                 errno ? strerror(errno) : "the name does not resolve");
        return false;
    }
    note_address(s);
    return true;
}

static void set_limits(struct evhttp *http)
{
    evhttp_set_max_headers_size(http, SERVER_HEADERS_MAX);
    evhttp_set_max_body_size(http, SERVER_BODY_MAX);
    evhttp_set_timeout(http, SERVER_IDLE_S);
    /* All of them, so that a refusal is ours, in JSON. */
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                         EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
                                         EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
}

/* libevent's own words; ours are in the log. */
static void say_nothing(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

static void free_server(struct server *s)
{
    if (s->http)
        evhttp_free(s->http); /* closes every connection: on_close */
    if (s->adopt)
        event_free(s->adopt);
    if (s->sweep)
        event_free(s->sweep);
    if (s->stop)
        event_free(s->stop);
    if (s->stop_fd >= 0)
        close(s->stop_fd);
    event_base_free(s->base);
    evutil_monotonic_timer_free(s->clock);
    snapshot_drop(&s->seen);
    mem_free(s);
}

struct server *server_start(struct str listen, struct cell *view, struct order_desk *desk, char *why, size_t room)
{
    struct server *s = mem_new(sizeof(*s));
    struct timeval every = { .tv_sec = SWEEP_S };

    event_set_log_callback(say_nothing);
    s->view = view;
    s->desk = desk;
    list_init(&s->clients);
    s->base = event_base_new();
    s->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    s->http = evhttp_new(s->base);
    s->clock = evutil_monotonic_timer_new();
    must_say(s->base && s->http && s->clock && s->stop_fd >= 0,
             "the system has no descriptors left at start");
    must(evutil_configure_monotonic_time(s->clock, 0) == 0);
    set_limits(s->http);
    evhttp_set_bevcb(s->http, on_accept, s);
    evhttp_set_gencb(s->http, server_take_request, s);
    if (!start_listening(s, listen, why, room)) {
        free_server(s);
        return NULL;
    }
    s->stop = event_new(s->base, s->stop_fd, EV_READ | EV_PERSIST, on_stop, s);
    s->adopt = event_new(s->base, -1, 0, on_adopt, s);
    s->sweep = event_new(s->base, -1, EV_PERSIST, on_sweep, s);
    must(s->stop && s->adopt && s->sweep);
    must(event_add(s->stop, NULL) == 0 && event_add(s->sweep, &every) == 0);
    s->seen_ms = server_now_ms(s);
    s->thread = thread_start("http", run, s);
    return s;
}

void server_stop(struct server **sp)
{
    struct server *s = *sp;
    uint64_t one = 1;

    if (!s)
        return;
    must(write(s->stop_fd, &one, sizeof(one)) == sizeof(one));
    thread_join(&s->thread);
    free_server(s);
    *sp = NULL;
}

const char *server_address(const struct server *s)
{
    return s->address;
}
