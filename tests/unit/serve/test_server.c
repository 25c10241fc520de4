/* test_server.c -- the HTTP server over loopback: good clients, rude ones, too many of them, and its end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "serve/server.h"
#include "unit/serve/view_case.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct rig {
    struct cell cell;
    struct server *server;
    int port, freed, open_fds;
};

static int count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void rig_start(struct rig *r, int32_t partitions)
{
    char why[200];

    signal(SIGPIPE, SIG_IGN);
    r->freed = view_cases_freed;
    r->open_fds = count_fds();
    cell_init(&r->cell);
    cell_put(&r->cell, &view_case_new(partitions)->snapshot);
    r->server = server_start(STR("127.0.0.1:0"), &r->cell, NULL, why, sizeof(why));
    CHECK(r->server);
    r->port = atoi(strrchr(server_address(r->server), ':') + 1); /* allowed: our own address */
    CHECK(r->port > 0);
}

/* Every view that was put is freed once nobody is left, every descriptor closed. */
static void rig_stop(struct rig *r, int views)
{
    server_stop(&r->server);
    CHECK(!r->server);
    cell_fini(&r->cell);
    CHECK_EQ(view_cases_freed - r->freed, views);
    CHECK_EQ(count_fds(), r->open_fds);
}

static int dial(const struct rig *r)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)r->port) };
    struct timeval limit = { .tv_sec = 20 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void put(int fd, const char *text)
{
    CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
}

/* Reads until the other side closes, or most bytes. */
static void take_all(int fd, struct buf *out)
{
    char piece[65536];
    ssize_t n;

    while ((n = read(fd, piece, sizeof(piece))) > 0)
        buf_put(out, piece, (size_t)n);
}

/* What comes back for these bytes, until the server closes. */
static struct buf talk(const struct rig *r, const char *request)
{
    int fd = dial(r);
    struct buf out;

    buf_init(&out, (size_t)GiB);
    put(fd, request);
    take_all(fd, &out);
    close(fd);
    return out;
}

static void expect(const struct rig *r, const char *request, const char *begins, const char *holds)
{
    struct buf b = talk(r, request);

    if (!str_starts(buf_str(&b), str_c(begins)) || str_find(buf_str(&b), str_c(holds), 0) < 0)
        print_error("for %.60s: %.*s\n", request, (int)MIN(b.n, 400), b.p);
    CHECK(str_starts(buf_str(&b), str_c(begins)));
    CHECK(str_find(buf_str(&b), str_c(holds), 0) >= 0);
    buf_fini(&b);
}

#define CLOSE "Connection: close\r\n\r\n"

TEST(answers)
{
    struct rig r;

    rig_start(&r, 10);
    expect(&r, "GET /healthz HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ", "\"healthy\":true");
    expect(&r, "GET /v1/status HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ", "Content-Type: application/json");
    expect(&r, "GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", "heliostat_ready 1\n");
    expect(&r, "GET /v1/status?flow=a->b&partitions=false HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ",
           "\"partitions\":[]");
    expect(&r, "GET / HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ", "<title>Heliostat");
    expect(&r, "GET /nothing HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 404 ", "\"error\":");
    expect(&r, "POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n" CLOSE "{}", "HTTP/1.1 405 ",
           "Allow: GET, HEAD");
    expect(&r, "DELETE / HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 405 ", "\"error\":");
    expect(&r, "GET http://elsewhere/healthz HTTP/1.1\r\nHost: elsewhere\r\n" CLOSE, "HTTP/1.1 200 ", "healthy");
    rig_stop(&r, 1);
}

TEST(head_has_no_body)
{
    struct rig r;
    struct buf b;

    rig_start(&r, 10);
    b = talk(&r, "HEAD /v1/status HTTP/1.1\r\nHost: x\r\n" CLOSE);
    CHECK(str_starts(buf_str(&b), STR("HTTP/1.1 200 ")));
    CHECK(str_ends(buf_str(&b), STR("\r\n\r\n")));
    buf_fini(&b);
    rig_stop(&r, 1);
}

TEST(one_connection_for_many_requests)
{
    struct rig r;
    int fd;
    struct buf b;
    size_t n = 0;

    rig_start(&r, 300); /* longer than a piece: chunked */
    fd = dial(&r);
    for (int i = 0; i < 5; i++)
        put(fd, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n");
    put(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n" CLOSE);
    buf_init(&b, 64 * MiB);
    take_all(fd, &b);
    close(fd);
    for (int64_t at = 0; (at = str_find(buf_str(&b), STR("HTTP/1.1 200 "), (size_t)at)) >= 0; at++)
        n++;
    CHECK_EQ(n, 6);
    buf_fini(&b);
    rig_stop(&r, 1);
}

TEST(junk_is_harmless)
{
    static const char *const junk[] = {
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon here\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET /%zz%00 HTTP/1.1\r\nHost: x\r\n" CLOSE,
        "GET /v1/status?%%%=%%& HTTP/1.1\r\nHost: x\r\n" CLOSE,
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", /* a TLS client's hello */
    };
    struct rig r;
    char noise[3000];

    rig_start(&r, 1);
    for (size_t i = 0; i < COUNT(junk); i++) {
        int fd = dial(&r);
        char answer[400];

        put(fd, junk[i]);
        shutdown(fd, SHUT_WR);
        while (read(fd, answer, sizeof(answer)) > 0)
            ;
        close(fd);
    }
    srand(1); /* allowed: the same noise in each run */
    for (int round = 0; round < 200; round++) {
        int fd = dial(&r);

        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (char)rand(); /* allowed: as above */
        (void)!write(fd, noise, sizeof(noise));
        close(fd);
    }
    expect(&r, "GET /healthz HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ", "healthy");
    rig_stop(&r, 1);
}

/* A head, or a body, beyond the limit ends in a refusal or a close, and never in memory. */
TEST(sizes_are_bounded)
{
    struct rig r;
    char line[1000];
    int fd;

    rig_start(&r, 1);
    memset(line, 'a', sizeof(line));
    memcpy(line, "X-Long: ", 8);
    memcpy(line + sizeof(line) - 2, "\r\n", 2);
    fd = dial(&r);
    put(fd, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < 100000; i++)
        if (write(fd, line, sizeof(line)) < 0)
            break;
    CHECK(errno == EPIPE || errno == ECONNRESET);
    close(fd);
    fd = dial(&r);
    put(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
    errno = 0;
    for (int i = 0; i < 100000; i++)
        if (write(fd, line, sizeof(line)) < 0)
            break;
    CHECK(errno == EPIPE || errno == ECONNRESET);
    close(fd);
    expect(&r, "GET /healthz HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ", "healthy");
    rig_stop(&r, 1);
}

/* Whoever does not read keeps one piece and a reference; others are answered meanwhile; whoever leaves in the middle
 * leaves nothing behind. */
TEST(slow_readers)
{
    struct rig r;
    int fd[10];
    struct buf b;

    rig_start(&r, 20000);
    for (size_t i = 0; i < COUNT(fd); i++) {
        fd[i] = dial(&r);
        put(fd[i], "GET /v1/status HTTP/1.1\r\nHost: x\r\n" CLOSE);
    }
    expect(&r, "GET /healthz HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ", "healthy");
    cell_put(&r.cell, &view_case_new(1)->snapshot);
    expect(&r, "GET /v1/status HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ", "\"partitions_count\":1,");
    for (size_t i = 1; i < COUNT(fd); i++) {
        char some[1000];

        CHECK(read(fd[i], some, sizeof(some)) > 0);
        close(fd[i]);
    }
    buf_init(&b, 64 * MiB);
    take_all(fd[0], &b);
    CHECK(b.n > 20000 * 300);
    CHECK(str_ends(buf_str(&b), STR("0\r\n\r\n")));
    close(fd[0]);
    buf_fini(&b);
    rig_stop(&r, 2);
}

TEST(stops_while_answers_are_under_way)
{
    struct rig r;
    int fd[5];

    rig_start(&r, 20000);
    for (size_t i = 0; i < COUNT(fd); i++) {
        char some[100];

        fd[i] = dial(&r);
        put(fd[i], "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n");
        CHECK(read(fd[i], some, sizeof(some)) > 0);
    }
    server_stop(&r.server);
    for (size_t i = 0; i < COUNT(fd); i++)
        close(fd[i]);
    rig_stop(&r, 1);
}

/* The hundred-first waits until one of the others has gone. */
TEST(connections_are_bounded)
{
    struct rig r;
    int fd[100], late;
    char some[100];
    struct pollfd p;

    rig_start(&r, 1);
    for (size_t i = 0; i < COUNT(fd); i++) {
        fd[i] = dial(&r);
        put(fd[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        CHECK(read(fd[i], some, sizeof(some)) > 0);
    }
    late = dial(&r);
    put(late, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    p = (struct pollfd){ .fd = late, .events = POLLIN };
    CHECK_EQ(poll(&p, 1, 300), 0);
    close(fd[7]);
    CHECK_EQ(poll(&p, 1, 10000), 1);
    CHECK(read(late, some, sizeof(some)) > 0);
    close(late);
    for (size_t i = 0; i < COUNT(fd); i++)
        if (i != 7)
            close(fd[i]);
    expect(&r, "GET /healthz HTTP/1.1\r\nHost: x\r\n" CLOSE, "HTTP/1.1 200 ", "healthy");
    rig_stop(&r, 1);
}

TEST(addresses)
{
    static const char *const bad[] = { "", "8380", "host", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000",
                                       "127.0.0.1:-1", "::1:80", "999.1.1.1:80" };
    struct cell cell;
    char why[300];
    struct rig r;
    struct server *s;

    cell_init(&cell);
    for (size_t i = 0; i < COUNT(bad); i++) {
        why[0] = '\0';
        CHECK(!server_start(str_c(bad[i]), &cell, NULL, why, sizeof(why)));
        CHECK(why[0]);
    }
    s = server_start(STR("[::1]:0"), &cell, NULL, why, sizeof(why));
    if (s) { /* the machine may have no IPv6 */
        CHECK(str_starts(str_c(server_address(s)), STR("[::1]:")));
        server_stop(&s);
    }
    rig_start(&r, 1);
    CHECK(!server_start(str_c(server_address(r.server)), &cell, NULL, why, sizeof(why)));
    CHECK(str_find(str_c(why), STR("in use"), 0) > 0);
    rig_stop(&r, 1);
    cell_fini(&cell);
}

TESTS(RUN(answers), RUN(head_has_no_body), RUN(one_connection_for_many_requests), RUN(junk_is_harmless),
      RUN(sizes_are_bounded), RUN(slow_readers), RUN(stops_while_answers_are_under_way),
      RUN(connections_are_bounded), RUN(addresses))
