/* conn_write.c -- requests out: encoded at once, written by vectors that point to where the bytes are.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A request is its head with cuts; each cut refers to the two parts of a records field. As parts in the
 * order of the wire, for n cuts:
 *
 *     head[0..at0] | r0.head | r0.body | head[at0..at1] | r1.head | r1.body | ... | head[..end]
 *       part 0        part 1    part 2      part 3                                   part 3n
 *
 * Everything that was sent during a turn leaves with as few system calls as vectors allow.
 */
#include "kafka/conn_int.h"

#include "base/alloc.h"
#include "base/must.h"
#include "wire/frame.h"

#include <stdio.h>
#include <string.h>

/* The name in quotas and broker logs where none is configured. */
#define DEFAULT_CLIENT_ID STR("heliostat")

static struct flight *flight_get(struct conn *c)
{
    struct list_node *n = list_first(&c->spare);
    struct flight *f;

    if (n) {
        list_remove(n);
        c->spares_n--;
        return container_of(n, struct flight, node);
    }
    f = mem_new(sizeof(*f));
    list_init(&f->node);
    buf_init(&f->head, CONN_FRAME_MAX);
    return f;
}

void conn_flight_free(struct flight *f)
{
    buf_fini(&f->head);
    mem_free(f->cuts);
    mem_free(f);
}

void conn_recycle(struct conn *c, struct flight *f)
{
    if (c->spares_n == CONN_SPARES_MAX || f->head.room > CONN_SPARE_ROOM) {
        conn_flight_free(f);
        return;
    }
    f->call = NULL;
    list_add_head(&c->spare, &f->node);
    c->spares_n++;
}

static enum err encode_once(struct conn *c, struct flight *f, const void *request)
{
    struct buf *b = &f->head;
    struct encoding to = { .head = b, .cuts = f->cuts, .cuts_max = f->cuts_room };
    struct str client_id = c->config->client_id;
    enum err e;

    buf_clear(b);
    put_i32(b, 0); /* the size, when it is known */
    frame_request_header(b, f->api, f->version, f->correlation_id,
                         client_id.n ? client_id : DEFAULT_CLIENT_ID);
    e = codec_encode(f->api->request, f->version, request, &to);
    f->cuts_n = to.cuts_n;
    return e;
}

/* Cuts grow until they suffice: only the codec knows how many records fields a request has. */
static enum err encode(struct conn *c, struct flight *f, const void *request)
{
    size_t total;
    enum err e;

    for (;;) {
        if (!f->cuts_room)
            f->cuts_room = CONN_CUTS_LEAST;
        if (!f->cuts)
            f->cuts = mem_array(f->cuts_room, sizeof(*f->cuts));
        e = encode_once(c, f, request);
        if (e != E_LIMIT || f->head.bad || f->cuts_n < f->cuts_room ||
            f->cuts_room == CONN_CUTS_MAX)
            break;
        mem_free(f->cuts);
        f->cuts = NULL;
        f->cuts_room *= 2;
    }
    if (e)
        return e;
    total = f->head.n;
    for (size_t i = 0; i < f->cuts_n; i++)
        total += f->cuts[i].r.head.n + f->cuts[i].r.body.n;
    if (f->head.bad || total > CONN_FRAME_MAX)
        return E_LIMIT;
    store_u32(f->head.p, (uint32_t)(total - 4));
    return E_OK;
}

static struct flight *flight_of(struct list_node *list, const struct call *call)
{
    struct list_node *n;

    LIST_EACH(n, list)
    {
        struct flight *f = container_of(n, struct flight, node);

        if (f->call == call)
            return f;
    }
    return NULL;
}

/* A call leaves: before its first byte without a trace; after its last byte the answer will be skipped; in
 * between nothing but the end of the connection helps, for its bytes may go away. */
static void let_go(struct call *call)
{
    struct conn *c = call->holder;
    struct flight *f = flight_of(&c->out, call);

    if (!f) {
        f = c->in.flight && c->in.flight->call == call ? c->in.flight : flight_of(&c->sent, call);
        must(f);
        f->call = NULL;
        return;
    }
    f->call = NULL;
    if (f->begun) {
        conn_fail(c, E_CANCELED, "%s was canceled while it was being written", f->api->name);
        return;
    }
    list_remove(&f->node);
    c->in_flight--;
    conn_recycle(c, f);
}

static void on_deadline(struct timer *t)
{
    struct call *call = container_of(t, struct call, deadline);
    struct conn *c = call->holder;
    int64_t ms = (loop_now_us(c->loop) - call->sent_us) / 1000;

    conn_fail(c, E_TIMEOUT, "no answer to %s within %lld ms", api_find(call->api)->name,
              (long long)ms);
}

enum err conn_put(struct conn *c, struct call *call, const struct api *api, int version)
{
    struct flight *f = flight_get(c);
    enum err e;

    call_begin(call, c->loop, c, let_go);
    call->version = (int16_t)version;
    call->broker_id = c->broker_id;
    call->correlation_id = c->last_correlation_id = (c->last_correlation_id + 1) & INT32_MAX;
    if (call->fill)
        call->fill(call);
    f->call = call;
    f->api = api;
    f->version = (int16_t)version;
    f->correlation_id = call->correlation_id;
    f->frame_max = call->pool ? call->reserved + CONN_POOL_SLACK : CONN_FRAME_MAX;
    f->part = f->part_at = 0;
    f->begun = false;
    f->sent_ms = loop_now_ms(c->loop);
    f->wait_ms = call->wait_ms;
    e = encode(c, f, call->request);
    if (e) {
        call_undo(call);
        conn_recycle(c, f);
        return e;
    }
    list_add_tail(&c->out, &f->node);
    c->in_flight++;
    c->last_used_ms = loop_now_ms(c->loop);
    call->sent_us = loop_now_us(c->loop);
    call->deadline.fn = on_deadline;
    timer_set_ms(c->loop, &call->deadline,
                 call->timeout_ms ? call->timeout_ms : c->config->request_timeout_ms);
    task_wake(c->loop, &c->work);
    return E_OK;
}

static struct str part_of(const struct flight *f, size_t part)
{
    size_t i = part / 3;
    size_t from = i ? f->cuts[i - 1].at : 0;
    size_t to = i < f->cuts_n ? f->cuts[i].at : f->head.n;

    switch (part % 3) {
    case 0:
        return str_of(f->head.p + from, to - from);
    case 1:
        return f->cuts[i].r.head;
    default:
        return f->cuts[i].r.body;
    }
}

static int gather(const struct flight *f, struct iovec *iov, int room)
{
    int n = 0;

    for (size_t part = f->part; part <= 3 * f->cuts_n && n < room; part++) {
        struct str s = part_of(f, part);
        size_t skip = part == f->part ? f->part_at : 0;

        if (s.n > skip)
            iov[n++] =
                (struct iovec){ .iov_base = (char *)(uintptr_t)s.p + skip, .iov_len = s.n - skip };
    }
    return n;
}

/* Takes from *put what is of this flight; true when the flight is written to its end. */
static bool advance(struct flight *f, size_t *put)
{
    for (; f->part <= 3 * f->cuts_n; f->part++, f->part_at = 0) {
        size_t left = part_of(f, f->part).n - f->part_at;

        if (*put < left) {
            f->begun |= *put > 0;
            f->part_at += *put;
            *put = 0;
            return false;
        }
        f->begun |= left > 0;
        *put -= left;
    }
    return true;
}

static void flights_written(struct conn *c, size_t put)
{
    struct list_node *n;

    while ((n = list_first(&c->out))) {
        struct flight *f = container_of(n, struct flight, node);

        if (!advance(f, &put))
            return;
        list_remove(n);
        list_add_tail(&c->sent, n);
        if (f->call)
            f->call->state = CALL_SENT;
    }
}

/* One system call; false when there is nothing more to do now. */
static bool write_some(struct conn *c)
{
    struct iovec iov[SOCK_IOV_MAX];
    struct list_node *n;
    size_t want = 0, put = 0;
    int count = 0;
    enum err e;

    LIST_EACH(n, &c->out)
    {
        if (count == SOCK_IOV_MAX)
            break;
        count += gather(container_of(n, struct flight, node), iov + count, SOCK_IOV_MAX - count);
    }
    if (!count)
        return false;
    for (int i = 0; i < count; i++)
        want += iov[i].iov_len;
    e = stream_writev(c->stream, iov, count, &put);
    if (e) {
        conn_read_failed(c, e);
        return false;
    }
    flights_written(c, put);
    c->blocked = put < want;
    return !c->blocked;
}

void conn_write(struct conn *c)
{
    if (c->state != CONN_HELLO && c->state != CONN_UP)
        return;
    if (c->blocked)
        return;
    for (int i = 0; i < CONN_WRITES_MAX; i++)
        if (!write_some(c))
            return;
    task_wake(c->loop, &c->work);
}
