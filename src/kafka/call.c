/* call.c -- the life of a call, whoever holds it: begin, pass on, end, cancel.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   idle/done -- begin --> waiting -- (conn) --> sent
 *       ^                     |                   |
 *       |                     +-------+-----------+
 *       |                             v
 *       +--- done is called --- ending (on the run list)
 *
 * Each call has its own place on the run list, so an outcome is told from the loop whatever became of the
 * holder meanwhile, and in the order in which outcomes were found.
 */
#include "kafka/call.h"

#include "base/alloc.h"
#include "base/must.h"

#include <stdio.h>
#include <string.h>

static void tell(struct task *t)
{
    struct call *c = container_of(t, struct call, told);

    must(c->state == CALL_ENDING);
    c->state = CALL_DONE;
    c->done(c);
}

static void drop_answer(struct call *c)
{
    if (c->bytes.b)
        slice_drop(&c->bytes);
    else
        mem_free((char *)(uintptr_t)c->bytes.p); /* ours: only const for readers */
    c->bytes = (struct slice){ 0 };
    c->response = NULL;
    arena_reset(&c->arena);
}

void call_init(struct call *c, int api, const void *request, void (*done)(struct call *c))
{
    *c = (struct call){
        .api = api, .request = request, .done = done, .version_max = -1, .broker_id = -1
    };
    arena_init(&c->arena, CALL_ARENA_MAX);
    task_init(&c->told, tell);
    timer_init(&c->deadline, NULL);
    list_init(&c->node);
}

void call_fini(struct call *c)
{
    must_say(!call_is_busy(c), "a call that is on its way was freed");
    drop_answer(c);
    arena_fini(&c->arena);
}

void call_begin(struct call *c, struct loop *l, void *holder, void (*let_go)(struct call *c))
{
    must_say(!call_is_busy(c), "a call was started twice");
    drop_answer(c);
    c->loop = l;
    c->error = E_OK;
    c->text[0] = '\0';
    c->kerr = 0;
    c->version = -1;
    c->throttle_ms = 0;
    c->broker_id = -1;
    c->state = CALL_WAITING;
    call_pass(c, holder, let_go);
}

void call_pass(struct call *c, void *holder, void (*let_go)(struct call *c))
{
    must(call_is_held(c));
    c->holder = holder;
    c->let_go = let_go;
}

/* The holder is out; neither timer nor reservation stays. */
static void release(struct call *c)
{
    timer_cancel(c->loop, &c->deadline);
    list_remove(&c->node);
    c->holder = NULL;
    c->let_go = NULL;
    if (c->pool && c->reserved) {
        size_t n = c->reserved;

        c->reserved = 0;
        pool_unreserve(c->pool, n);
    }
}

void call_end(struct call *c, enum err e, const char *text)
{
    must(call_is_held(c));
    release(c);
    c->error = e;
    if (text)
        snprintf(c->text, sizeof(c->text), "%s", text);
    c->state = CALL_ENDING;
    task_wake(c->loop, &c->told);
}

void call_undo(struct call *c)
{
    size_t reserved = c->reserved;

    must(c->state == CALL_WAITING);
    c->reserved = 0;
    release(c);
    c->reserved = reserved;
    c->state = CALL_IDLE;
}

void call_cancel(struct call *c)
{
    if (call_is_held(c)) {
        c->let_go(c);
        if (call_is_held(c)) /* else the holder broke and has ended it */
            call_end(c, E_CANCELED, NULL);
    }
    if (c->state == CALL_ENDING) {
        c->error = E_CANCELED;
        snprintf(c->text, sizeof(c->text), "%s", err_text(E_CANCELED));
    }
}

void call_drop(struct call *c)
{
    call_cancel(c);
    if (c->state != CALL_ENDING)
        return;
    task_cancel(&c->told);
    c->state = CALL_DONE;
}
