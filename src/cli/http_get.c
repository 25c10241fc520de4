/* http_get.c -- asks a running heliostat over HTTP, with libevent's client on a loop of its own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/http_get.h"

#include "base/must.h"
#include "loop/deadline.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SILENCE_S 10 /* connecting, or waiting for the next byte */
#define WHOLE_S   120
#define BODY_MAX  (GiB - 1)
#define DEFAULT_PORT 8380

struct asking {
    struct event_base *base;
    struct http_answer *answer;
    enum evhttp_request_error error;
    bool failed, done;
};

static void on_error(enum evhttp_request_error error, void *arg)
{
    struct asking *q = arg;

    q->error = error;
    q->failed = true;
}

static const char *error_text(const struct asking *q)
{
    switch (q->error) {
    case EVREQ_HTTP_TIMEOUT:
        return "no answer in time";
    case EVREQ_HTTP_EOF:
        return "the connection was closed without an answer";
    case EVREQ_HTTP_INVALID_HEADER:
        return "what answers there does not speak HTTP";
    case EVREQ_HTTP_DATA_TOO_LONG:
        return "the answer is too long";
    default:
        return "the connection failed";
    }
}

static void on_answer(struct evhttp_request *req, void *arg)
{
    struct asking *q = arg;
    struct http_answer *a = q->answer;

    q->done = true;
    event_base_loopbreak(q->base);
    if (req && evhttp_request_get_response_code(req)) {
        struct evbuffer *in = evhttp_request_get_input_buffer(req);
        size_t n = evbuffer_get_length(in);
        char *p = buf_grow(&a->body, n);

        if (p)
            evbuffer_remove(in, p, n);
        a->status = evhttp_request_get_response_code(req);
    } else if (q->failed) {
        snprintf(a->why, sizeof(a->why), "%s", error_text(q));
    } else {
        snprintf(a->why, sizeof(a->why), "nobody listens there, or it cannot be reached");
    }
}

static void say_nothing(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

/* libevent asks the system's resolver on the spot, and that has limits of its own which may be minutes. */
static int make_request(struct evhttp_connection *c, struct evhttp_request *req, const char *path, const char *host,
                        int name_limit_s)
{
    char line[400];
    int bad;

    snprintf(line, sizeof(line), "heliostat: %.300s: the name is not answered within %d s\n", host, name_limit_s);
    deadline_set((unsigned)name_limit_s, HTTP_NOBODY, line);
    bad = evhttp_make_request(c, req, EVHTTP_REQ_GET, path);
    deadline_clear();
    return bad;
}

static void ask(const char *host, int port, const char *path, int name_limit_s, struct http_answer *answer)
{
    struct asking q = { .base = event_base_new(), .answer = answer };
    struct timeval whole = { .tv_sec = WHOLE_S };
    struct evhttp_connection *c;
    struct evhttp_request *req;

    must_say(q.base, "the system has no descriptors left");
    c = evhttp_connection_base_new(q.base, NULL, host, (uint16_t)port);
    req = evhttp_request_new(on_answer, &q);
    must(c && req);
    evhttp_connection_set_timeout(c, SILENCE_S);
    evhttp_connection_set_max_body_size(c, BODY_MAX);
    evhttp_request_set_error_cb(req, on_error);
    evhttp_add_header(evhttp_request_get_output_headers(req), "Host", host);
    evhttp_add_header(evhttp_request_get_output_headers(req), "Connection", "close");
    if (make_request(c, req, path, host, name_limit_s)) {
        snprintf(answer->why, sizeof(answer->why), "it cannot be reached");
    } else {
        event_base_loopexit(q.base, &whole);
        event_base_dispatch(q.base);
        if (!q.done)
            snprintf(answer->why, sizeof(answer->why), "no whole answer in %d s", WHOLE_S);
    }
    evhttp_connection_free(c);
    event_base_free(q.base);
}

/* The host without the brackets of an IPv6 address. */
static void copy_host(char *to, size_t room, const char *host)
{
    size_t n = strlen(host);

    if (n >= 2 && host[0] == '[' && host[n - 1] == ']')
        snprintf(to, room, "%.*s", (int)n - 2, host + 1);
    else
        snprintf(to, room, "%s", host);
}

bool http_get(const char *url, const char *path, int name_limit_s, struct http_answer *answer)
{
    struct evhttp_uri *uri;
    char whole[1000], host[300], at[1300];
    const char *scheme;

    memset(answer, 0, sizeof(*answer));
    buf_init(&answer->body, BODY_MAX);
    event_set_log_callback(say_nothing);
    signal(SIGPIPE, SIG_IGN);
    snprintf(whole, sizeof(whole), "%s%s", strstr(url, "://") ? "" : "http://", url);
    uri = evhttp_uri_parse(whole);
    scheme = uri ? evhttp_uri_get_scheme(uri) : NULL;
    if (!uri || !scheme || strcmp(scheme, "http") != 0 || !evhttp_uri_get_host(uri) ||
        !evhttp_uri_get_host(uri)[0]) {
        snprintf(answer->why, sizeof(answer->why), "it is not http://host:port");
        if (uri)
            evhttp_uri_free(uri);
        return false;
    }
    copy_host(host, sizeof(host), evhttp_uri_get_host(uri));
    snprintf(at, sizeof(at), "%s", evhttp_uri_get_path(uri) ? evhttp_uri_get_path(uri) : "");
    while (at[0] && at[strlen(at) - 1] == '/')
        at[strlen(at) - 1] = '\0';
    snprintf(at + strlen(at), sizeof(at) - strlen(at), "%s", path);
    ask(host, evhttp_uri_get_port(uri) > 0 ? evhttp_uri_get_port(uri) : DEFAULT_PORT, at,
        name_limit_s, answer);
    evhttp_uri_free(uri);
    return true;
}
