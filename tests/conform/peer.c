/* peer.c -- connections of the scripts: to a real broker by blocking sockets, or to a simulated one through the simulated
 * network.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#include "base/alloc.h"
#include "base/must.h"
#include "net/sock.h"
#include "sim/broker.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define AGO_MS     5000 /* T is so long ago, and no script chooses a time between there and now */
#define ANSWER_S   40
#define RESTART_MS 700

struct peer {
    int fd;
    struct sock *sock; /* NULL: a real one */
    struct buf in;
};

static struct {
    struct sockaddr_in addr;
    struct sim_cluster *cluster; /* NULL: a real one */
    struct loop *loop;
    int64_t zero_ms;
    char prefix[40];
} world;

int64_t peers_zero_ms(void)
{
    return world.zero_ms;
}

const char *peers_prefix(void)
{
    return world.prefix;
}

void peers_real(const char *host, int port)
{
    struct timespec now;

    world.addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    must_say(inet_pton(AF_INET, host, &world.addr.sin_addr) == 1, "an IPv4 address is needed");
    clock_gettime(CLOCK_REALTIME, &now); /* allowed: a real broker looks at its clock */
    world.zero_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - AGO_MS;
    snprintf(world.prefix, sizeof(world.prefix), "conform-%llx", (unsigned long long)(world.zero_ms ^ getpid()));
}

void peers_simulated(int level)
{
    sim_begin(1);
    world.cluster = broker_cluster_new("conform", 1, 1, 100);
    world.cluster->newness = level;
    world.cluster->plain = true;
    world.cluster->replicate_us = 0;
    world.loop = loop_new("conform");
    world.zero_ms = sim_wall_ms() - AGO_MS;
    snprintf(world.prefix, sizeof(world.prefix), "conform");
}

void peers_rest(int ms)
{
    struct timespec span = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    if (world.cluster)
        sim_run(ms * SIM_MS);
    else
        nanosleep(&span, NULL); /* allowed: a real broker takes its time */
}

/* A real broker is restarted by who reads this. */
void peers_restart(void)
{
    char line[20];

    if (world.cluster) {
        broker_stop(&world.cluster->brokers[0], RESTART_MS * SIM_MS);
        sim_run(2 * RESTART_MS * SIM_MS);
        return;
    }
    printf("RESTART\n");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        exit(2);
}

static void on_ready(struct sock *s, unsigned what, void *arg)
{
    (void)s;
    (void)what;
    (void)arg;
}

static void open_real(struct peer *p)
{
    int one = 1;
    struct timeval limit = { .tv_sec = ANSWER_S };

    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must_say(p->fd >= 0, "socket");
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(p->fd, (const struct sockaddr *)&world.addr, sizeof(world.addr)) != 0) {
        fprintf(stderr, "conform: nobody listens there\n");
        exit(3);
    }
}

struct peer *peer_open(void)
{
    struct peer *p = mem_new(sizeof(*p));
    struct net_addr to;

    p->fd = -1;
    buf_init(&p->in, 128 * MiB);
    if (!world.cluster) {
        open_real(p);
        return p;
    }
    net_sim_addr(&to, 1, 1);
    must(sock_connect(world.loop, &to, 0, 0, on_ready, NULL, &p->sock) == E_OK);
    sim_run(10 * SIM_MS);
    must(sock_connected(p->sock) == E_OK);
    sock_want(p->sock, 0);
    return p;
}

bool peer_send(struct peer *p, struct str frame)
{
    for (size_t at = 0; at < frame.n;) {
        struct iovec iov = { .iov_base = (char *)(uintptr_t)frame.p + at, .iov_len = frame.n - at };
        size_t put = 0;

        if (p->sock) {
            if (sock_writev(p->sock, &iov, 1, &put))
                return false;
            if (put == 0)
                sim_run(SIM_MS);
        } else {
            ssize_t n = send(p->fd, iov.iov_base, iov.iov_len, MSG_NOSIGNAL);

            if (n <= 0)
                return false;
            put = (size_t)n;
        }
        at += put;
    }
    return true;
}

/* More bytes; false: there come none. */
static bool read_more(struct peer *p)
{
    char bytes[65536];
    size_t got = 0;

    if (p->sock) {
        struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };

        for (int64_t end = sim_now_us() + ANSWER_S * SIM_S; !got; sim_run(got ? 0 : SIM_MS))
            if (sock_readv(p->sock, &iov, 1, &got) || sim_now_us() > end)
                return false;
    } else {
        ssize_t n = recv(p->fd, bytes, sizeof(bytes), 0);

        if (n <= 0)
            return false;
        got = (size_t)n;
    }
    buf_put(&p->in, bytes, got);
    return true;
}

bool peer_receive(struct peer *p, struct buf *out)
{
    size_t size;

    while (p->in.n < 4 || p->in.n < 4 + (size_t)load_u32(p->in.p))
        if (!read_more(p))
            return false;
    size = load_u32(p->in.p);
    buf_clear(out);
    buf_put(out, p->in.p + 4, size);
    buf_shift(&p->in, 4 + size);
    return true;
}

void peer_close(struct peer **pp)
{
    struct peer *p = *pp;

    if (!p)
        return;
    if (p->sock) {
        sock_close(&p->sock);
        sim_run(10 * SIM_MS);
    }
    if (p->fd >= 0)
        close(p->fd);
    buf_fini(&p->in);
    mem_free(p);
    *pp = NULL;
}
