/* conn.c -- a connection's life: opening, up, broken; what it knows and tells.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   opening --stream open--> hello --ApiVersions--> up
 *      |                       |                     |
 *      +-----------------------+---------------------+--> broken (every call ended, CONN_FAILED told)
 *
 * The owner is called from two tasks only, as their last act, so it may close the connection there; stream
 * callbacks never call it. Reading is in conn_read.c, writing in conn_write.c, negotiation in conn_hello.c.
 *
 *   I-1  flights are answered in the order in which they were written
 *   I-2  a broken connection has no stream and no flights
 */
#include "kafka/conn.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"
#include "kafka/conn_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void on_work(struct task *t)
{
    struct conn *c = container_of(t, struct conn, work);

    conn_write(c);
    if (!c->ready_due || c->state != CONN_UP)
        return;
    c->ready_due = false;
    c->fn(c, CONN_READY, c->arg); /* may have closed c */
}

static void on_broken(struct task *t)
{
    struct conn *c = container_of(t, struct conn, broken);

    /* The outcome of a call that was told once already in this turn comes in the next; so do we, behind it. */
    if (!c->broken_once) {
        c->broken_once = true;
        task_wake(c->loop, t);
        return;
    }
    c->fn(c, CONN_FAILED, c->arg); /* may have closed c */
}

static void on_stream(struct stream *s, enum stream_event ev, void *arg)
{
    struct conn *c = arg;

    (void)s;
    switch (ev) {
    case STREAM_OPEN:
        c->state = CONN_HELLO;
        conn_hello_start(c);
        break;
    case STREAM_READABLE:
        conn_read(c);
        break;
    case STREAM_WRITABLE:
        c->blocked = false;
        task_wake(c->loop, &c->work);
        break;
    case STREAM_FAILED:
        conn_read_failed(c, stream_error(c->stream));
        break;
    }
}

/* Doubles with each failure up to the configured maximum (KIP-601). */
static int64_t setup_timeout_ms(const struct client_config *config, uint32_t attempt)
{
    int64_t ms = MAX(config->socket_connection_setup_timeout_ms, 1);
    int64_t most = MAX(config->socket_connection_setup_timeout_max_ms, ms);

    for (uint32_t i = 0; i < attempt && ms < most; i++)
        ms = MIN(ms * 2, most);
    return ms;
}

static char *peer_text(struct str host, int port)
{
    size_t room = host.n + 16;
    char *p = mem_new(room);
    bool v6 = memchr(host.p, ':', host.n) != NULL;

    snprintf(p, room, v6 ? "[%.*s]:%d" : "%.*s:%d", STR_ARG(host), port);
    return p;
}

struct conn *conn_open(struct loop *l, const struct client_config *config,
                       const struct conn_address *to, conn_fn *fn, void *arg)
{
    struct conn *c = mem_new(sizeof(*c));
    struct stream_options o = {
        .send_buffer = config->send_buffer_bytes,
        .receive_buffer = config->receive_buffer_bytes,
        .connect_timeout_ms = setup_timeout_ms(config, to->attempt),
        .first_address = to->attempt,
    };

    loop_check(l);
    *c = (struct conn){
        .loop = l, .config = config, .fn = fn, .arg = arg, .broker_id = to->broker_id, .rtt_us = -1
    };
    c->peer = peer_text(to->host, to->port);
    c->last_used_ms = c->opened_ms = loop_now_ms(l);
    task_init(&c->work, on_work);
    task_init(&c->broken, on_broken);
    list_init(&c->out);
    list_init(&c->sent);
    list_init(&c->spare);
    for (size_t i = 0; i < CONN_KEYS; i++)
        c->offered[i].max = -1;
    call_init(&c->hello, API_API_VERSIONS, &c->hello_request, NULL);
    c->stream = stream_open(l, to->host, to->port, &o, on_stream, c);
    return c;
}

static void end_flights(struct list_node *list, enum err e, const char *text)
{
    struct list_node *n;

    while ((n = list_first(list))) {
        struct flight *f = container_of(n, struct flight, node);

        list_remove(n);
        if (f->call)
            call_end(f->call, e, text);
        conn_flight_free(f);
    }
}

/* What is common to breaking and closing: nothing is left on the connection. */
static void shut(struct conn *c, enum err e, const char *text)
{
    stream_close(&c->stream);
    conn_read_fini(c);
    end_flights(&c->sent, e, text);
    end_flights(&c->out, e, text);
    c->in_flight = 0;
    task_cancel(&c->work);
}

static void log_failed(const struct conn *c)
{
    log_event(EV_CONN_FAILED, kv_str("cluster", c->config->cluster), kv_int("broker", c->broker_id),
              kv_c("peer", c->peer), kv_err("why", c->error), kv_c("text", c->text));
}

void conn_break(struct conn *c, enum err e, const char *text)
{
    if (c->state == CONN_BROKEN)
        return;
    snprintf(c->text, sizeof(c->text), "%s", text);
    c->error = e;
    /* A broker that closes an idle connection does what it is told to; nobody needs to know. */
    if (e != E_CLOSED || c->state != CONN_UP || c->in_flight)
        log_failed(c);
    c->state = CONN_BROKEN;
    shut(c, e, c->text);
    task_wake(c->loop, &c->broken);
}

void conn_fail(struct conn *c, enum err e, const char *fmt, ...)
{
    char text[CALL_TEXT_MAX];
    va_list ap;
    int n;

    n = snprintf(text, sizeof(text), "%s: ", c->peer);
    n = MIN(n, (int)sizeof(text) - 1);
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
    va_end(ap);
    conn_break(c, e, text);
}

void conn_close(struct conn **cp)
{
    struct conn *c = *cp;
    struct list_node *n;

    if (!c)
        return;
    *cp = NULL;
    loop_check(c->loop);
    call_drop(&c->hello);
    shut(c, E_CANCELED, err_text(E_CANCELED));
    task_cancel(&c->broken);
    while ((n = list_first(&c->spare))) {
        list_remove(n);
        conn_flight_free(container_of(n, struct flight, node));
    }
    call_fini(&c->hello);
    mem_free(c->peer);
    mem_free(c);
}

bool conn_is_ready(const struct conn *c)
{
    return c->state == CONN_UP;
}

int conn_version(const struct conn *c, int api, int cap)
{
    const struct api *a = api_find(api);
    int least, most;

    if (!a || api >= CONN_KEYS)
        return -1;
    least = MAX(a->min, c->offered[api].min);
    most = MIN(a->max, c->offered[api].max);
    if (cap >= 0)
        most = MIN(most, cap);
    return most >= least ? most : -1;
}

int conn_feature(const struct conn *c, struct str name)
{
    for (size_t i = 0; i < c->features_n; i++)
        if (str_eq(str_c(c->features[i].name), name))
            return c->features[i].level;
    return -1;
}

enum err conn_send(struct conn *c, struct call *call)
{
    int version;

    loop_check(c->loop);
    must_say(c->state == CONN_UP, "a call was sent on a connection that is not ready");
    version = conn_version(c, call->api, call->version_max);
    if (version < 0)
        return E_VERSION;
    return conn_put(c, call, api_find(call->api), version);
}

size_t conn_in_flight(const struct conn *c)
{
    return c->in_flight;
}

int64_t conn_throttled_until_ms(const struct conn *c)
{
    return c->throttled_until_ms > loop_now_ms(c->loop) ? c->throttled_until_ms : 0;
}

int64_t conn_last_used_ms(const struct conn *c)
{
    return c->last_used_ms;
}

int64_t conn_age_ms(const struct conn *c)
{
    return loop_now_ms(c->loop) - MAX(c->answered_ms, c->opened_ms);
}

int64_t conn_silent_ms(const struct conn *c)
{
    const struct list_node *n = c->sent.next;
    const struct flight *f = c->in.flight;
    int64_t since_ms, wait_ms, usual_ms = MAX(3 * c->rtt_us / 1000, CONN_SILENT_MS);

    if (!f && n != &c->sent)
        f = container_of(n, const struct flight, node);
    if (!f)
        return 0;
    since_ms = MAX(MAX(f->sent_ms, c->answered_ms), c->throttled_until_ms);
    wait_ms = loop_now_ms(c->loop) - since_ms;
    return wait_ms >= usual_ms + f->wait_ms ? wait_ms : 0;
}

int64_t conn_rtt_us(const struct conn *c)
{
    return c->rtt_us;
}

enum err conn_error(const struct conn *c)
{
    return c->error;
}

const char *conn_error_text(const struct conn *c)
{
    return c->text;
}

const char *conn_peer(const struct conn *c)
{
    return c->peer;
}
