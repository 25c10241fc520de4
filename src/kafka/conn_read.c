/* conn_read.c -- answers in: head, then the frame straight into the memory where it will stay.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     | size | correlation id | body ...            | size | correlation id | ...
 *     +------- head 8 --------+
 *            +---------- frame ---------------------+
 *
 * Reads alternate between `ahead`, which takes a head and what small answer follows it, and the frame's own
 * memory with `ahead` behind it; so a small answer costs one system call and a large one two, and of a
 * large one no more than CONN_AHEAD bytes are copied.
 *
 * Nothing that a peer sends is trusted: a length is checked against what the call may get before memory is
 * taken, and the first bytes that make no sense are looked at for what else the peer may be.
 */
#include "kafka/conn_int.h"

#include "base/alloc.h"
#include "base/must.h"
#include "wire/frame.h"
#include "wire/kerr.h"

#include <string.h>

static void close_frame(struct conn_input *in)
{
    block_drop(&in->block);
    mem_free(in->heap);
    in->heap = NULL;
    in->open = false;
}

void conn_read_fini(struct conn *c)
{
    if (c->in.flight) {
        /* Its call is still waiting: back to the head of the line, where everything is ended. */
        list_add_head(&c->sent, &c->in.flight->node);
        c->in.flight = NULL;
    }
    close_frame(&c->in);
    c->in.from = c->in.to = 0;
}

/* What a peer that does not speak Kafka looks like in its first bytes. NULL: none of these. */
static const char *foreign(const unsigned char *p, size_t n)
{
    static const struct {
        struct str bytes;
        const char *what;
    } known[] = {
        { { "HTTP", 4 }, "answers in HTTP, so this is not a Kafka port" },
        { { "\x15\x03", 2 },
          "answers with a TLS alert, so this is a TLS port: set security.protocol=SSL" },
        { { "SSH-", 4 }, "answers in SSH, so this is not a Kafka port" },
        { { "220 ", 4 }, "answers as a mail or file server, so this is not a Kafka port" },
    };

    for (size_t i = 0; i < COUNT(known); i++)
        if (n >= known[i].bytes.n && !memcmp(p, known[i].bytes.p, known[i].bytes.n))
            return known[i].what;
    return NULL;
}

void conn_read_failed(struct conn *c, enum err e)
{
    const char *what = c->in.open ? NULL : foreign(c->in.ahead + c->in.from, c->in.to - c->in.from);

    if (what)
        conn_fail(c, E_NOT_KAFKA, "%s", what);
    else if (e != E_CLOSED || c->state == CONN_OPENING)
        conn_break(c, e, stream_error_text(c->stream));
    else if (c->state == CONN_HELLO && !c->in.any)
        conn_fail(c, e,
                  "closed the connection at once: is this a TLS or SASL port, or over its "
                  "connection limit?");
    else if (c->in.open || c->in.to > c->in.from)
        conn_fail(c, e, "closed the connection in the middle of an answer");
    else
        conn_fail(c, e, "closed the connection");
}

/* Takes the memory for the open frame; its correlation id goes in front, where the decoder wants it. */
static bool take_memory(struct conn *c, const unsigned char *head)
{
    struct conn_input *in = &c->in;
    struct call *call = in->flight->call;
    char *to;

    if (call && call->pool) {
        in->block = pool_take(call->pool, in->size, call->reserved);
        if (in->block)
            call->reserved = 0;
        to = in->block ? in->block->data : NULL;
    } else {
        in->skip = !call;
        in->heap = to = mem_try(in->skip ? MIN(in->size, CONN_SKIP) : in->size);
    }
    if (!to) {
        conn_fail(c, E_NO_MEMORY, "no memory for an answer of %zu bytes", in->size);
        return false;
    }
    memcpy(to, head + 4, 4);
    in->got = 4;
    return true;
}

/* A head of CONN_HEAD bytes is there. False when the connection broke. */
static bool open_frame(struct conn *c)
{
    struct conn_input *in = &c->in;
    const unsigned char *head = in->ahead + in->from;
    struct list_node *n = list_first(&c->sent);
    struct flight *f = n ? container_of(n, struct flight, node) : NULL;
    uint32_t size = load_u32(head);
    int32_t id = (int32_t)load_u32(head + 4);
    const char *what = foreign(head, CONN_HEAD);

    if (what && (size > CONN_FRAME_MAX || !f)) {
        conn_fail(c, E_NOT_KAFKA, "%s", what);
    } else if (!f) {
        conn_fail(c, E_MALFORMED, "sent bytes that nobody asked for");
    } else if (size < 4 || size > f->frame_max) {
        conn_fail(c, E_MALFORMED,
                  "announces an answer to %s of %lld bytes; at most %zu are accepted", f->api->name,
                  (long long)(int32_t)size, f->frame_max);
    } else if (id != f->correlation_id) {
        conn_fail(c, E_MALFORMED, "sent answer %d where %d to %s was due", id, f->correlation_id,
                  f->api->name);
    } else {
        list_remove(n);
        in->open = true;
        in->skip = false;
        in->flight = f;
        in->size = size;
        in->from += CONN_HEAD;
        return take_memory(c, head);
    }
    return false;
}

/* Where the next bytes of the frame go, and how many fit there. */
static struct iovec frame_room(const struct conn_input *in)
{
    size_t left = in->size - in->got;
    char *p = in->block ? in->block->data : in->heap;

    if (in->skip)
        return (struct iovec){ .iov_base = p, .iov_len = MIN(left, CONN_SKIP) };
    return (struct iovec){ .iov_base = p + in->got, .iov_len = left };
}

/* throttle_time_ms of whatever answer has one. */
static int32_t throttle_of(const struct message *m, const void *response)
{
    for (const struct field *f = m->fields; f->type != W_END; f++)
        if (f->type == W_I32 && !strcmp(f->name, "throttle_time_ms"))
            return *(const int32_t *)((const char *)response + f->at);
    return 0;
}

/* An ApiVersions request that is too new is answered in the layout of version 0. */
static int answer_version(const struct flight *f, struct reader r)
{
    if (f->api->key == API_API_VERSIONS && read_i16(&r) == KERR_UNSUPPORTED_VERSION)
        return 0;
    return f->version;
}

static enum err decode(struct call *call, const struct flight *f)
{
    struct reader r = reader_of(call->bytes.p, call->bytes.n);
    int32_t id;
    void *response;
    enum err e = frame_response_header(&r, f->api, f->version, &id);

    if (e)
        return e;
    response = arena_try(&call->arena, f->api->response->size);
    if (!response)
        return E_LIMIT;
    e = codec_decode(f->api->response, answer_version(f, r), &r, &call->arena, response);
    if (e)
        return e;
    call->response = response;
    call->throttle_ms = throttle_of(f->api->response, response);
    return E_OK;
}

static void note_answer(struct conn *c, const struct call *call)
{
    c->last_used_ms = loop_now_ms(c->loop);
    if (call->throttle_ms > 0)
        c->throttled_until_ms = MAX(c->throttled_until_ms, c->last_used_ms + call->throttle_ms);
    if (call->api == API_API_VERSIONS || call->api == API_METADATA)
        c->rtt_us = loop_now_us(c->loop) - call->sent_us;
}

/* The frame is complete: its memory becomes the call's. */
static void finish_frame(struct conn *c)
{
    struct conn_input *in = &c->in;
    struct flight *f = in->flight;
    struct call *call = f->call;
    enum err e;

    in->flight = NULL;
    c->in_flight--;
    if (!call) {
        close_frame(in);
        conn_recycle(c, f);
        return;
    }
    call->bytes = (struct slice){ .b = in->block,
                                  .p = in->block ? in->block->data : in->heap,
                                  .n = in->size };
    in->block = NULL;
    in->heap = NULL;
    close_frame(in);
    e = decode(call, f);
    if (e) {
        call->response = NULL;
        list_add_head(&c->sent, &f->node);
        c->in_flight++;
        conn_fail(c, e, "the answer to %s version %d cannot be read: %s", f->api->name, f->version,
                  err_text(e));
        return;
    }
    note_answer(c, call);
    call_end(call, E_OK, NULL);
    conn_recycle(c, f);
}

/* Uses up what lies in `ahead`. False when the connection broke. */
static bool digest(struct conn *c)
{
    struct conn_input *in = &c->in;

    for (;;) {
        if (in->open && in->got == in->size)
            finish_frame(c);
        if (c->state == CONN_BROKEN)
            return false;
        if (in->open) {
            struct iovec room = frame_room(in);
            size_t n = MIN(room.iov_len, in->to - in->from);

            if (!n)
                return true;
            memcpy(room.iov_base, in->ahead + in->from, n);
            in->from += n;
            in->got += n;
        } else if (in->to - in->from < CONN_HEAD) {
            return true;
        } else if (!open_frame(c)) {
            return false;
        }
    }
}

/* One system call: the rest of the frame if one is open, and `ahead` behind it. */
static bool read_some(struct conn *c)
{
    struct conn_input *in = &c->in;
    struct iovec iov[2];
    size_t frame = 0, ahead = 0, got = 0;
    int count = 0;
    enum err e;

    memmove(in->ahead, in->ahead + in->from, in->to - in->from);
    in->to -= in->from;
    in->from = 0;
    if (in->open) {
        iov[count] = frame_room(in);
        frame = iov[count++].iov_len;
    }
    if (!in->open || in->got + frame == in->size) {
        ahead = CONN_AHEAD - in->to;
        iov[count++] = (struct iovec){ .iov_base = in->ahead + in->to, .iov_len = ahead };
    }
    e = stream_readv(c->stream, iov, count, &got);
    if (e) {
        conn_read_failed(c, e);
        return false;
    }
    in->any |= got > 0;
    if (got)
        c->answered_ms = loop_now_ms(c->loop);
    in->got += MIN(got, frame);
    in->to += got - MIN(got, frame);
    return digest(c) && got == frame + ahead;
}

void conn_read(struct conn *c)
{
    for (int i = 0; i < CONN_READS_MAX; i++)
        if (c->state == CONN_BROKEN || !read_some(c))
            return; /* what is left is announced again: readiness is level-triggered */
}
