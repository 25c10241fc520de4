/* call.h -- one request and its answer, embedded in whoever asks.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Contract (libuv's): a start that fails calls nothing back; else exactly one done comes, from the loop and
 * never from inside the start; after call_cancel it comes with E_CANCELED. The request struct, and all bytes
 * that it references, must stay until done. The answer lives in the call until call_fini or the next start.
 * Whoever carries the call (a connection, or the cluster's waiting line) is its holder. One loop.
 */
#ifndef KAFKA_CALL_H
#define KAFKA_CALL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/pool.h"
#include "loop/loop.h"
#include "wire/api.h"

#define CALL_ARENA_MAX (64 * MiB)
#define CALL_TEXT_MAX  240

struct conn;

struct call {
    /* What is asked: set by the owner between call_init and the start. */
    int api;             /* enum api_key */
    const void *request; /* struct kafka_<api>_request */
    void (*fill)(
        struct call *c); /* may be NULL; called once c->version is known, just before encoding */
    void (*done)(struct call *c);
    uint32_t epoch;      /* the owner's, so that it can tell a stale answer */
    int64_t timeout_ms;  /* 0: request.timeout.ms of the cluster */
    int64_t wait_ms;     /* what the broker may wait by agreement before it answers: a fetch's max_wait_ms */
    int16_t version_max; /* -1: no cap of the owner's */
    struct pool *pool;   /* not NULL: the answer's bytes go into a block of it (fetch) */
    size_t reserved; /* of that pool, handed over with a start that succeeds; used or given back */

    /* The outcome. */
    enum err error;  /* E_OK: `response` is there (its own error codes are the owner's matter) */
    int16_t version; /* of request and response */
    void *response;  /* struct kafka_<api>_response, in arena; strings point into `bytes` */
    struct arena arena;
    struct slice bytes; /* the answer; when b is NULL the bytes are the call's own heap memory */
    char text[CALL_TEXT_MAX]; /* for people, when error is set; names the peer */
    int32_t kerr;             /* with E_KAFKA: what the coordinator's look-up was refused with; else 0 */
    int32_t throttle_ms;      /* throttle_time_ms of the answer */
    int64_t sent_us;
    int32_t broker_id; /* who answered (-1: a bootstrap address) */

    /* The holder's own. */
    enum { CALL_IDLE, CALL_WAITING, CALL_SENT, CALL_ENDING, CALL_DONE } state;
    int32_t correlation_id;
    struct loop *loop;
    struct task told; /* brings done */
    struct timer deadline;
    void (*let_go)(struct call *c); /* the holder forgets the call at once */
    void *holder;
    struct list_node node; /* on a list of the holder's */
};

void call_init(struct call *c, int api, const void *request, void (*done)(struct call *c));
/* Frees the answer. The call must not be on its way. */
void call_fini(struct call *c);
/* done comes from the loop with E_CANCELED, unless the call is idle. A call whose bytes are already partly
 * on the wire takes its connection with it. */
void call_cancel(struct call *c);
/* The same, but no done comes: the call may be freed at once. For owners that go away. */
void call_drop(struct call *c);
static inline bool call_is_busy(const struct call *c)
{
    return c->state != CALL_IDLE && c->state != CALL_DONE;
}

/* For holders. call_begin frees the last answer and makes the call busy; call_pass hands a busy call to the
 * next holder. */
void call_begin(struct call *c, struct loop *l, void *holder, void (*let_go)(struct call *c));
void call_pass(struct call *c, void *holder, void (*let_go)(struct call *c));
/* The holder has let go already. Gives back what is reserved; done comes from the loop. text may be NULL. */
void call_end(struct call *c, enum err e, const char *text);
/* Takes back a begin that could not be carried out: nothing comes, the reservation stays with the owner. */
void call_undo(struct call *c);
/* call_is_busy, and its outcome is still open. */
static inline bool call_is_held(const struct call *c)
{
    return c->state == CALL_WAITING || c->state == CALL_SENT;
}

#endif
