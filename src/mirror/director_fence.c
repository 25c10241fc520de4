/* director_fence.c -- makes sure that nobody but this process writes the flow's positions and pairs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every writer of the two internal topics has a producer id of its own, and its id stands in the state topic before it
 * is used. A new owner reads them, and writes one batch with the last epoch there is to each partition: from then on the
 * broker refuses whatever the old writer sends, however late it arrives. Only then are positions and pairs read.
 *
 *   ids -> registered -> confirmed -> shut out -> removed
 *
 * `confirmed` closes the last gap: after our ids are in the log the group's coordinator must say once more that the flow
 * is ours. So every id that was ever used was registered before its owner's turn ended, and the next owner, who reads
 * after that, sees it. Without a group, or where the target gives no producer ids, there is no fence. Thread: control.
 */
#include "mirror/director_internal.h"

#include "base/alloc.h"
#include "base/log.h"
#include "mirror/state.h"

#include <inttypes.h>

#define LAST_EPOCH INT16_MAX

enum fence_step { FENCE_IDS, FENCE_REGISTER, FENCE_CONFIRM, FENCE_SHUT_OUT, FENCE_REMOVE };

struct id_ask {
    struct fence *fence;
    struct call call;
    struct kafka_init_producer_id_request request;
};

/* One earlier writer, and what closes it at either topic. */
struct closer {
    int64_t producer_id;
    struct topic_writer *positions, *state;
    bool put;
};

struct fence {
    struct director *director;
    enum fence_step step;
    bool begun; /* the step's requests are out */
    struct id_ask *asks;
    int32_t asks_n, asks_busy;
    bool refused; /* no producer ids here: go on without */
    struct topic_meta *positions;
    struct topic_writer *registrar;
    struct closer *closers;
    size_t closers_n;
};

static void to_step(struct fence *f, enum fence_step to)
{
    f->step = to;
    f->begun = false;
    director_wake(f->director);
}

/* --- ids --- */

static void on_id(struct call *c)
{
    struct id_ask *a = container_of(c, struct id_ask, call);
    const struct kafka_init_producer_id_response *r = c->response;
    struct fence *f = a->fence;
    struct director *d = f->director;
    enum kerr_class class = c->error ? K_AGAIN : kerr_class(API_INIT_PRODUCER_ID, r->error_code);

    f->asks_busy--;
    if (class == K_OK)
        d->writer_ids[a - f->asks] = r->producer_id;
    else if (class == K_DENIED || class == K_FATAL || c->error == E_VERSION)
        f->refused = true;
    else if (!timer_is_set(&d->retry))
        director_fail(d, c->error ? err_name(c->error) : kerr_name(r->error_code),
                      "asking for producer ids of writers: %s", c->error ? c->text : kerr_text(r->error_code));
    director_wake(d);
}

/* Those that are still missing, all at once: a far target would make a queue long. */
static void ask_ids(struct fence *f)
{
    struct director *d = f->director;
    struct route any = { .kind = ROUTE_ANY };

    for (int32_t i = 0; i < f->asks_n; i++) {
        struct id_ask *a = &f->asks[i];

        if (d->writer_ids[i] >= 0 || call_is_busy(&a->call))
            continue;
        codec_init(&kafka_init_producer_id_request_msg, &a->request);
        a->request.transactional_id = STR_NULL;
        a->request.transaction_timeout_ms = INT32_MAX;
        call_fini(&a->call);
        call_init(&a->call, API_INIT_PRODUCER_ID, &a->request, on_id);
        if (cluster_call(d->target, &any, &a->call) == E_OK)
            f->asks_busy++;
    }
}

static void step_ids(struct fence *f)
{
    struct director *d = f->director;
    bool all = true;

    if (f->asks_busy)
        return;
    for (int32_t i = 0; i < f->asks_n; i++)
        all = all && d->writer_ids[i] >= 0;
    if (f->refused) {
        for (int32_t i = 0; i < f->asks_n; i++)
            d->writer_ids[i] = -1;
        f->closers_n = 0;
        to_step(f, FENCE_REMOVE);
    } else if (all) {
        to_step(f, FENCE_REGISTER);
    } else {
        ask_ids(f);
    }
}

/* --- registration --- */

static void on_written(void *arg)
{
    director_wake(((struct fence *)arg)->director);
}

static void on_fault(void *arg, const struct fault *fault)
{
    struct director *d = ((struct fence *)arg)->director;

    if (fault_is_set(fault))
        fault_set(&d->fault, loop_wall_ms(d->loop), fault->code, "%s", fault->text);
    else
        fault_clear(&d->fault);
}

static void put_writer(struct fence *f, int64_t id, bool there)
{
    struct buf key, value;

    buf_init(&key, 4 * KiB);
    buf_init(&value, 4 * KiB);
    state_format_writer_key(&key, id);
    state_format_writer(&value, f->director->instance);
    topic_writer_put(f->registrar, -1, buf_str(&key), there ? buf_str(&value) : STR_NULL, -1);
    buf_fini(&key);
    buf_fini(&value);
}

static void on_confirmed(void *arg)
{
    struct director *d = arg;

    if (d->fence && d->fence->step == FENCE_CONFIRM)
        to_step(d->fence, FENCE_SHUT_OUT);
}

static void step_register(struct fence *f)
{
    struct director *d = f->director;

    if (!f->begun)
        for (int32_t i = 0; i < f->asks_n; i++)
            put_writer(f, d->writer_ids[i], true);
    f->begun = true;
    if (!topic_writer_is_idle(f->registrar))
        return;
    to_step(f, FENCE_CONFIRM);
    group_confirm(d->group, on_confirmed);
}

/* --- the earlier ones --- */

static void put_fences(struct topic_writer *w, int32_t partitions, struct str key)
{
    for (int32_t i = 0; i < partitions; i++)
        topic_writer_put(w, i, key, STR_NULL, -1);
}

static void close_one(struct fence *f, struct closer *c)
{
    struct director *d = f->director;
    struct topic_writer_ops ops = { .on_idle = on_written, .on_fault = on_fault, .arg = f };
    struct buf key;

    c->positions = topic_writer_new_as(d->target, d->config->offsets_topic, &ops, c->producer_id, LAST_EPOCH);
    c->state = topic_writer_new_as(d->target, d->state_topic, &ops, c->producer_id, LAST_EPOCH);
    buf_init(&key, 4 * KiB);
    state_format_fence_key(&key, c->producer_id);
    put_fences(c->state, 1, buf_str(&key));
    buf_clear(&key);
    buf_fmt(&key, "[\"heliostat\",{\"fence\":%" PRId64 "}]", c->producer_id); /* for Connect: another connector's */
    put_fences(c->positions, f->positions->parts_n, buf_str(&key));
    buf_fini(&key);
}

static void step_shut_out(struct fence *f)
{
    bool all = true;

    if (f->closers_n && f->positions->parts_n <= 0)
        return; /* metadata wakes the director */
    for (size_t i = 0; i < f->closers_n; i++) {
        struct closer *c = &f->closers[i];

        if (!c->positions)
            close_one(f, c);
        all = all && topic_writer_is_idle(c->positions) && topic_writer_is_idle(c->state);
    }
    if (all)
        to_step(f, FENCE_REMOVE);
}

static void step_remove(struct fence *f)
{
    struct director *d = f->director;

    if (!f->begun)
        for (size_t i = 0; i < f->closers_n; i++)
            put_writer(f, f->closers[i].producer_id, false);
    f->begun = true;
    if (!topic_writer_is_idle(f->registrar))
        return;
    log_event(EV_FLOW_WRITERS, kv_str("flow", d->config->name), kv_int("shut_out", (int64_t)f->closers_n));
    d->loading = f->closers_n ? LOAD_STATE_AGAIN : LOAD_POSITIONS;
    director_fence_end(d);
    director_well(d);
    director_wake(d);
}

/* --- all of it --- */

static void fence_start(struct director *d)
{
    struct fence *f = mem_new(sizeof(*f));
    struct topic_writer_ops ops = { .on_idle = on_written, .on_fault = on_fault, .arg = f };

    f->director = d;
    f->positions = cluster_watch(d->target, d->config->offsets_topic);
    f->registrar = topic_writer_new(d->target, d->state_topic, &ops);
    f->asks_n = d->ports_n + 1; /* one per worker, and the director's own */
    f->asks = mem_array((size_t)f->asks_n, sizeof(*f->asks));
    d->writer_ids = mem_array((size_t)f->asks_n, sizeof(*d->writer_ids));
    for (int32_t i = 0; i < f->asks_n; i++) {
        f->asks[i].fence = f;
        call_init(&f->asks[i].call, API_INIT_PRODUCER_ID, &f->asks[i].request, on_id);
        d->writer_ids[i] = -1;
    }
    f->closers = mem_array(d->writers_n, sizeof(*f->closers));
    for (size_t i = 0; i < d->writers_n; i++)
        f->closers[f->closers_n++].producer_id = d->writers[i];
    d->fence = f;
}

void director_fence(struct director *d)
{
    if (!d->fence) {
        mem_free(d->writer_ids);
        fence_start(d);
    }
    switch (d->fence->step) {
    case FENCE_IDS:
        step_ids(d->fence);
        break;
    case FENCE_REGISTER:
        step_register(d->fence);
        break;
    case FENCE_CONFIRM:
        break;
    case FENCE_SHUT_OUT:
        step_shut_out(d->fence);
        break;
    case FENCE_REMOVE:
        step_remove(d->fence);
        break;
    }
}

void director_fence_end(struct director *d)
{
    struct fence *f = d->fence;

    if (!f)
        return;
    d->fence = NULL;
    for (int32_t i = 0; i < f->asks_n; i++) {
        call_drop(&f->asks[i].call);
        call_fini(&f->asks[i].call);
    }
    for (size_t i = 0; i < f->closers_n; i++) {
        topic_writer_free(&f->closers[i].positions);
        topic_writer_free(&f->closers[i].state);
    }
    topic_writer_free(&f->registrar);
    cluster_unwatch(d->target, &f->positions);
    mem_free(f->closers);
    mem_free(f->asks);
    mem_free(f);
}

void director_writers_add(struct director *d, int64_t id)
{
    for (size_t i = 0; i < d->writers_n; i++)
        if (d->writers[i] == id)
            return;
    if (d->writers_n == DIRECTOR_WRITERS_MAX)
        return;
    d->writers = mem_resize(d->writers, d->writers_n + 1, sizeof(*d->writers));
    d->writers[d->writers_n++] = id;
}

void director_writers_remove(struct director *d, int64_t id)
{
    for (size_t i = 0; i < d->writers_n; i++)
        if (d->writers[i] == id)
            d->writers[i--] = d->writers[--d->writers_n];
}
