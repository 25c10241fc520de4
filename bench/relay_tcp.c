/* relay_tcp.c -- the yardstick: a plain TCP relay that knows nothing of what it carries.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     relay_tcp LISTEN_PORT TARGET_HOST TARGET_PORT
 *
 * Accepts on 127.0.0.1, opens one connection to the target for each, and moves bytes both ways with read,
 * write and epoll through buffers of 1 MiB (no splice: a mirror has to see its bytes). Port 0 takes a free
 * one. The first line of output names the port; SIGTERM or SIGINT ends it, and the last line says what it
 * cost:
 *
 *     bytes=1073741824 cpu_seconds=0.412 user=0.031 system=0.381 reads=1044 writes=1102 waits=530
 *
 * One thread, everything level-triggered. A link is two descriptors and a pipe in each direction:
 *
 *     client ---- pipe[0] ---> target
 *            <--- pipe[1] ----
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_SIZE (1024 * 1024)
#define EVENTS_MAX  64

struct link;

struct end {
    struct link *link; /* NULL: the listener, or the descriptor of signals */
    int fd;
    unsigned polled;
};

struct pipe {
    struct end *from, *to;
    char *bytes;
    size_t first, last; /* what has been read and not yet written */
    bool over;          /* the reader's end has come */
    bool shut;          /* and the writer knows */
};

struct link {
    struct end end[2];
    struct pipe pipe[2];
    struct link *next; /* in the list of the dead */
};

static struct {
    int epoll;
    struct end listener, signals;
    struct addrinfo *target;
    struct link *dead; /* freed after the events that may still name them */
    unsigned long long bytes, reads, writes, waits;
} relay;

static void die(const char *what)
{
    fprintf(stderr, "relay_tcp: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void watch(struct end *e, unsigned what)
{
    struct epoll_event ev = { .events = what, .data.ptr = e };

    if (epoll_ctl(relay.epoll, EPOLL_CTL_ADD, e->fd, &ev) < 0)
        die("epoll_ctl");
    e->polled = what;
}

/* --- links --- */

static void link_close(struct link *k)
{
    for (int i = 0; i < 2; i++) {
        close(k->end[i].fd);
        k->end[i].fd = -1;
        free(k->pipe[i].bytes);
    }
    k->next = relay.dead;
    relay.dead = k;
}

static void bury(void)
{
    while (relay.dead) {
        struct link *k = relay.dead;

        relay.dead = k->next;
        free(k);
    }
}

/* A pipe reads when it is empty and writes when it is not. */
static void link_poll(struct link *k)
{
    for (int i = 0; i < 2; i++) {
        struct end *e = &k->end[i];
        const struct pipe *out = &k->pipe[i], *in = &k->pipe[1 - i];
        struct epoll_event ev = { .data.ptr = e };

        if (out->first == out->last && !out->over)
            ev.events |= EPOLLIN;
        if (in->first < in->last)
            ev.events |= EPOLLOUT;
        if (ev.events == e->polled)
            continue;
        if (epoll_ctl(relay.epoll, EPOLL_CTL_MOD, e->fd, &ev) < 0)
            die("epoll_ctl");
        e->polled = ev.events;
    }
}

/* False when the connection is broken. */
static bool pipe_read(struct pipe *p)
{
    ssize_t n;

    if (p->over || p->first < p->last)
        return true;
    n = read(p->from->fd, p->bytes, BUFFER_SIZE);
    relay.reads++;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    p->over = n == 0;
    p->first = 0;
    p->last = (size_t)n;
    return true;
}

static bool pipe_write(struct pipe *p)
{
    if (p->first < p->last) {
        ssize_t n = write(p->to->fd, p->bytes + p->first, p->last - p->first);

        relay.writes++;
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        p->first += (size_t)n;
        relay.bytes += (size_t)n;
    }
    if (p->over && p->first == p->last && !p->shut) {
        shutdown(p->to->fd, SHUT_WR);
        p->shut = true;
    }
    return true;
}

static void link_step(struct end *e, unsigned what)
{
    struct link *k = e->link;
    struct pipe *out = &k->pipe[e == &k->end[1]], *in = &k->pipe[e == &k->end[0]];
    bool good = true;

    if (what & (EPOLLIN | EPOLLHUP | EPOLLERR))
        good = pipe_read(out) && pipe_write(out);
    if (good && what & EPOLLOUT)
        good = pipe_write(in);
    if (good && what & (EPOLLHUP | EPOLLERR) && out->over)
        good = false; /* it is gone both ways: nothing can be written to it any more */
    if (!good || (k->pipe[0].shut && k->pipe[1].shut))
        link_close(k);
    else
        link_poll(k);
}

static void link_open(int client)
{
    int on = 1;
    int target = socket(relay.target->ai_family, SOCK_STREAM, 0);
    struct link *k = calloc(1, sizeof(*k));

    if (client < 0 || target < 0 || !k)
        die("new link");
    if (connect(target, relay.target->ai_addr, relay.target->ai_addrlen) < 0) {
        close(target);
        close(client);
        free(k);
        return;
    }
    k->end[0] = (struct end){ .link = k, .fd = client };
    k->end[1] = (struct end){ .link = k, .fd = target };
    for (int i = 0; i < 2; i++) {
        fcntl(k->end[i].fd, F_SETFL, O_NONBLOCK);
        setsockopt(k->end[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        k->pipe[i] = (struct pipe){ .from = &k->end[i], .to = &k->end[1 - i] };
        k->pipe[i].bytes = malloc(BUFFER_SIZE);
        if (!k->pipe[i].bytes)
            die("malloc");
        watch(&k->end[i], EPOLLIN);
    }
}

/* --- the process --- */

static int listen_on(const char *port)
{
    struct sockaddr_in here = { .sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };
    socklen_t size = sizeof(here);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&here, size) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&here, &size) < 0)
        die(port);
    printf("listening on 127.0.0.1:%d\n", ntohs(here.sin_port));
    fflush(stdout);
    return fd;
}

static int listen_for_signals(void)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, 0);
    if (fd < 0)
        die("signalfd");
    return fd;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void report(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    printf("bytes=%llu cpu_seconds=%.3f user=%.3f system=%.3f reads=%llu writes=%llu waits=%llu\n",
           relay.bytes, seconds(u.ru_utime) + seconds(u.ru_stime), seconds(u.ru_utime),
           seconds(u.ru_stime), relay.reads, relay.writes, relay.waits);
}

static void run(void)
{
    struct epoll_event ev[EVENTS_MAX];

    for (;;) {
        int n = epoll_wait(relay.epoll, ev, EVENTS_MAX, -1);

        relay.waits++;
        for (int i = 0; i < n; i++) {
            struct end *e = ev[i].data.ptr;

            if (e == &relay.signals)
                return;
            if (e == &relay.listener)
                link_open(accept(e->fd, NULL, NULL));
            else if (e->fd >= 0) /* else closed by an event just before */
                link_step(e, ev[i].events);
        }
        bury();
    }
}

int main(int argc, char **argv)
{
    static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

    if (argc != 4 || getaddrinfo(argv[2], argv[3], &hints, &relay.target) != 0) {
        fprintf(stderr, "usage: relay_tcp LISTEN_PORT TARGET_HOST TARGET_PORT\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    relay.epoll = epoll_create1(0);
    if (relay.epoll < 0)
        die("epoll_create1");
    relay.signals.fd = listen_for_signals();
    relay.listener.fd = listen_on(argv[1]);
    watch(&relay.signals, EPOLLIN);
    watch(&relay.listener, EPOLLIN);
    run();
    report();
    freeaddrinfo(relay.target);
    return 0;
}
