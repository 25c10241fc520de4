/* server_send.c -- takes a request apart and sends its answer, in pieces when it is long.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The next piece is made when the socket has taken the last one, so a slow reader costs one piece and a reference to
 * the view it reads. Server's thread.
 */
#include "serve/server_int.h"

#include "base/alloc.h"
#include "serve/routes.h"

#include <event2/buffer.h>
#include <string.h>

/* An answer under way that is longer than one piece. */
struct sending {
    struct client *client;
    struct evhttp_request *req;
    struct answer answer;
    struct snapshot *view;
};

static void add_headers(struct evhttp_request *req, const char *type)
{
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);

    evhttp_add_header(h, "Content-Type", type);
    evhttp_add_header(h, "Cache-Control", "no-store");
    evhttp_add_header(h, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(h, "Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                      "connect-src 'self'; frame-ancestors 'none'");
}

static struct evbuffer *as_evbuffer(const struct buf *b)
{
    struct evbuffer *e = evbuffer_new();

    if (e)
        evbuffer_add(e, b->p, b->n);
    return e;
}

static void finish(struct sending *g)
{
    g->client->sending = NULL;
    g->client->deadline_ms = server_now_ms(g->client->server) + SERVER_REQUEST_MS;
    evhttp_send_reply_end(g->req);
    snapshot_drop(&g->view);
    mem_free(g);
}

static void on_taken(struct evhttp_connection *evcon, void *arg);

/* A piece is never empty: evhttp would not tell when it is taken. */
static void send_piece(struct sending *g, const struct buf *piece)
{
    struct evbuffer *e = as_evbuffer(piece);

    if (!e || !piece->n) {
        finish(g);
    } else {
        evhttp_send_reply_chunk_with_cb(g->req, e, on_taken, g);
    }
    if (e)
        evbuffer_free(e);
}

static void on_taken(struct evhttp_connection *evcon, void *arg)
{
    struct sending *g = arg;
    struct buf piece;

    (void)evcon;
    if (!g->answer.more) {
        finish(g);
        return;
    }
    buf_init(&piece, ANSWER_PIECE_MAX);
    g->answer.more(&g->answer, &piece);
    send_piece(g, &piece);
    buf_fini(&piece);
}

void server_forget_sending(struct client *c)
{
    struct sending *g = c->sending;

    if (!g)
        return;
    c->sending = NULL;
    /* evhttp took the request off a connection that failed, and left it to us; else it frees it itself. */
    if (!evhttp_request_get_connection(g->req))
        evhttp_send_reply_end(g->req);
    snapshot_drop(&g->view);
    mem_free(g);
}

static void start_sending(struct client *c, struct evhttp_request *req, const struct answer *a,
                          const struct buf *first)
{
    struct sending *g = mem_new(sizeof(*g));

    g->client = c;
    g->req = req;
    g->answer = *a;
    g->view = snapshot_ref((struct snapshot *)(uintptr_t)&a->view->snapshot);
    c->sending = g;
    c->deadline_ms = server_now_ms(c->server) + SERVER_ANSWER_MS;
    evhttp_send_reply_start(req, a->status, routes_status_text(a->status));
    send_piece(g, first);
}

static void send_whole(struct client *c, struct evhttp_request *req, int status, const struct buf *body)
{
    struct evbuffer *e = body ? as_evbuffer(body) : NULL;

    c->deadline_ms = server_now_ms(c->server) + SERVER_REQUEST_MS;
    evhttp_send_reply(req, status, routes_status_text(status), e);
    if (e)
        evbuffer_free(e);
}

static void answer(struct client *c, struct evhttp_request *req, struct answer *a, struct buf *first)
{
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;

    if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
        a->type = "application/json";
        a->more = NULL;
        routes_refuse(a, first, 405, "GET and HEAD are answered here");
        evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
    } else {
        routes_answer(path && path[0] ? path : "/", uri ? evhttp_uri_get_query(uri) : NULL, a, first);
    }
    add_headers(req, a->type);
    if (method == EVHTTP_REQ_HEAD)
        send_whole(c, req, a->status, NULL);
    else if (a->more)
        start_sending(c, req, a, first);
    else
        send_whole(c, req, a->status, first);
}

void server_take_request(struct evhttp_request *req, void *arg)
{
    struct server *s = arg;
    struct client *c = server_find_client(s, evhttp_request_get_connection(req));
    struct snapshot *view = cell_get(s->view);
    struct answer a = { .view = view ? container_of(view, struct view, snapshot) : NULL,
                        .view_age_ms = server_now_ms(s) - s->seen_ms, .desk = s->desk };
    struct buf first;

    buf_init(&first, ANSWER_PIECE_MAX);
    if (c)
        answer(c, req, &a, &first);
    else
        evhttp_send_error(req, HTTP_SERVUNAVAIL, NULL);
    buf_fini(&first);
    snapshot_drop(&view);
}
