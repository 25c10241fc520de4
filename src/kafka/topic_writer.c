/* topic_writer.c -- queue of keyed records per partition, one batch of each on its way at a time.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   put --> unplaced --partitions known--> queue --a batch--> sending --acknowledged--> gone
 *              |                             |                   ^  |
 *              +------ newer value of a key -+                   +--+ again, the identical batch
 *
 * Order is that of the last put: a key that gets a newer value goes to the end, so that what was put
 * between the two is not overtaken. Its first ticket stays with it, for a put that was replaced is
 * acknowledged only when its successor is.
 */
#include "kafka/topic_writer.h"

#include "kafka/topic_writer_int.h"

#include "base/murmur2.h"
#include "base/must.h"

#include <string.h>

#define WRITER_LOOK_MS 1000 /* how often a topic that is not there is looked for */

void topic_writer_set_fault(struct topic_writer *w, const char *code, const char *text)
{
    bool same = strcmp(w->fault.code, code) == 0;

    fault_set(&w->fault, loop_wall_ms(w->loop), code, "records cannot be written to topic %.*s: %s",
              STR_ARG(w->topic->name), text);
    if (!same && w->ops.on_fault)
        w->ops.on_fault(w->ops.arg, &w->fault);
}

void topic_writer_clear_fault(struct topic_writer *w)
{
    if (!fault_is_set(&w->fault))
        return;
    fault_clear(&w->fault);
    if (w->ops.on_fault)
        w->ops.on_fault(w->ops.arg, &w->fault);
}

struct str topic_writer_key(const struct pending *r)
{
    return r->has_key ? str_of(r->key + sizeof(int32_t), r->key_n - sizeof(int32_t)) : STR_NULL;
}

void topic_writer_unmap(struct topic_writer *w, struct pending *r)
{
    if (r->mapped)
        HASH_DELETE(hh, w->map, r);
    r->mapped = false;
}

void topic_writer_drop(struct topic_writer *w, struct pending *r)
{
    topic_writer_unmap(w, r);
    list_remove(&r->node);
    list_remove(&r->ticket);
    w->pending_n--;
    mem_free((char *)(uintptr_t)r->value.p);
    mem_free(r);
}

static struct str copy(struct str s)
{
    return s.p ? str_of(mem_copy_str(s.p, s.n), s.n) : s;
}

static struct pending *pending_new(int32_t partition, struct str key)
{
    size_t key_n = sizeof(partition) + key.n;
    struct pending *r = mem_new(sizeof(*r) + key_n);

    r->partition = partition;
    r->has_key = key.p != NULL;
    r->key_n = key_n;
    memcpy(r->key, &partition, sizeof(partition));
    if (key.n)
        memcpy(r->key + sizeof(partition), key.p, key.n);
    return r;
}

/* To the partitions, in order, once it is known how many there are. */
static void place(struct topic_writer *w)
{
    struct list_node *n, *after;
    int32_t count = w->topic->parts_n;

    if (count <= 0)
        return;
    LIST_EACH_SAFE(n, after, &w->unplaced)
    {
        struct pending *r = container_of(n, struct pending, node);
        struct str key = topic_writer_key(r);
        int32_t to = r->partition >= 0 ? r->partition : murmur2_partition(key, count);

        list_remove(n);
        list_add_tail(&topic_writer_part_get(w, to)->queue, n);
    }
}

static void look_again(struct topic_writer *w, int64_t after_ms)
{
    if (!timer_is_set(&w->look))
        timer_set_ms(w->loop, &w->look, after_ms);
}

static void on_look(struct timer *t)
{
    struct topic_writer *w = container_of(t, struct topic_writer, look);

    if (!list_is_empty(&w->unplaced))
        cluster_refresh(w->cluster);
    task_wake(w->loop, &w->step);
}

static void on_id(struct call *c)
{
    struct topic_writer *w = container_of(c, struct topic_writer, id_call);
    const struct kafka_init_producer_id_response *r = c->response;
    enum kerr_class class = c->error ? K_AGAIN : kerr_class(API_INIT_PRODUCER_ID, r->error_code);

    w->id_state = ID_NONE;
    if (class == K_OK) {
        w->id_state = ID_HELD;
        w->identity++;
        w->producer_id = r->producer_id;
        w->producer_epoch = r->producer_epoch;
        backoff_reset(&w->id_backoff);
    } else if (class == K_DENIED || class == K_FATAL || c->error == E_VERSION) {
        w->id_state = ID_WITHOUT; /* retries may double a record: a key's last value, twice */
    } else {
        topic_writer_set_fault(w, c->error ? err_name(c->error) : kerr_name(r->error_code),
                               c->error ? c->text : kerr_text(r->error_code));
        look_again(w, backoff_next_ms(&w->id_backoff, loop_rand(w->loop)));
    }
    task_wake(w->loop, &w->step);
}

static void ask_id(struct topic_writer *w)
{
    struct route route = { .kind = ROUTE_ANY };
    enum err e;

    if (timer_is_set(&w->look))
        return; /* not yet again */
    codec_init(&kafka_init_producer_id_request_msg, &w->id_request);
    w->id_request.transactional_id = STR_NULL;
    w->id_request.transaction_timeout_ms = INT32_MAX;
    call_fini(&w->id_call);
    call_init(&w->id_call, API_INIT_PRODUCER_ID, &w->id_request, on_id);
    e = cluster_call(w->cluster, &route, &w->id_call);
    if (!e) {
        w->id_state = ID_ASKED;
        return;
    }
    topic_writer_set_fault(w, err_name(e), err_text(e));
    look_again(w, backoff_next_ms(&w->id_backoff, loop_rand(w->loop)));
}

static void note_missing(struct topic_writer *w)
{
    int32_t kerr = w->topic->error;

    if (w->topic->known && kerr)
        topic_writer_set_fault(w, kerr_name(kerr), kerr_text(kerr));
    look_again(w, WRITER_LOOK_MS);
}

static void on_step(struct task *t)
{
    struct topic_writer *w = container_of(t, struct topic_writer, step);

    if (list_is_empty(&w->tickets) || w->shut_out)
        return;
    place(w);
    if (!list_is_empty(&w->unplaced))
        note_missing(w);
    if (w->id_state == ID_NONE && !w->txn)
        ask_id(w);
    if (w->id_state != ID_HELD && w->id_state != ID_WITHOUT && !w->txn)
        return;
    for (int32_t i = 0; i < w->parts_n; i++)
        if (w->parts[i])
            topic_writer_part_step(w->parts[i]);
}

static void on_changed(struct cluster_listener *ls)
{
    struct topic_writer *w = container_of(ls, struct topic_writer, listener);

    task_wake(w->loop, &w->step);
}

struct topic_writer *topic_writer_new(struct cluster *cl, struct str topic,
                                      const struct topic_writer_ops *ops)
{
    const struct client_config *config = cluster_config(cl);
    struct topic_writer *w = mem_new(sizeof(*w));

    w->loop = cluster_loop(cl);
    loop_check(w->loop);
    w->cluster = cl;
    w->topic = cluster_watch(cl, topic);
    w->ops = *ops;
    w->listener.changed = on_changed;
    cluster_listen(cl, &w->listener);
    task_init(&w->step, on_step);
    timer_init(&w->look, on_look);
    list_init(&w->unplaced);
    list_init(&w->tickets);
    call_init(&w->id_call, API_INIT_PRODUCER_ID, &w->id_request, on_id);
    backoff_init(&w->id_backoff, config->retry_backoff_ms, config->retry_backoff_max_ms);
    return w;
}

struct topic_writer *topic_writer_new_as(struct cluster *cl, struct str topic, const struct topic_writer_ops *ops,
                                         int64_t producer_id, int16_t epoch)
{
    struct topic_writer *w = topic_writer_new(cl, topic, ops);

    w->given = true;
    w->id_state = ID_HELD;
    w->identity = 1;
    w->producer_id = producer_id;
    w->producer_epoch = epoch;
    return w;
}

void topic_writer_free(struct topic_writer **wp)
{
    struct topic_writer *w = *wp;
    struct list_node *n;

    if (!w)
        return;
    *wp = NULL;
    call_drop(&w->id_call);
    call_fini(&w->id_call);
    for (int32_t i = 0; i < w->parts_n; i++)
        topic_writer_part_free(w, w->parts[i]);
    while ((n = list_first(&w->tickets))) {
        struct pending *r = container_of(n, struct pending, ticket);

        topic_writer_unmap(w, r);
        list_remove(n);
        mem_free((char *)(uintptr_t)r->value.p);
        mem_free(r); /* its other list went with its partition */
    }
    mem_free(w->parts);
    task_cancel(&w->step);
    timer_cancel(w->loop, &w->look);
    cluster_unlisten(&w->listener);
    cluster_unwatch(w->cluster, &w->topic);
    mem_free(w);
}

void topic_writer_keep_older(struct topic_writer *w, size_t most)
{
    w->keep_max = most;
}

void topic_writer_set_txn(struct topic_writer *w, struct txn *t)
{
    w->txn = t;
}

void topic_writer_wake(struct topic_writer *w)
{
    task_wake(w->loop, &w->step);
}

void topic_writer_forget(struct topic_writer *w)
{
    struct list_node *n;

    for (int32_t i = 0; i < w->parts_n; i++)
        topic_writer_part_free(w, w->parts[i]);
    while ((n = list_first(&w->tickets))) {
        struct pending *r = container_of(n, struct pending, ticket);

        list_init(&r->node); /* its list went with its partition */
        topic_writer_drop(w, r);
    }
    list_init(&w->unplaced);
    mem_free(w->parts);
    w->parts = NULL;
    w->parts_n = 0;
}

uint64_t topic_writer_put(struct topic_writer *w, int32_t partition, struct str key,
                          struct str value, int64_t timestamp_ms)
{
    struct pending *made = pending_new(partition, key), *r = NULL;

    loop_check(w->loop);
    must(partition >= -1);
    if (key.p)
        HASH_FIND(hh, w->map, made->key, made->key_n, r);
    if (r && w->pending_n < w->keep_max) {
        topic_writer_unmap(w, r);
        r = NULL;
    }
    if (r) {
        mem_free(made);
        mem_free((char *)(uintptr_t)r->value.p);
        list_remove(&r->node);
    } else {
        r = made;
        r->first = w->last_ticket + 1;
        list_add_tail(&w->tickets, &r->ticket);
        w->pending_n++;
        r->mapped = key.p != NULL;
        if (r->mapped)
            HASH_ADD_KEYPTR(hh, w->map, r->key, r->key_n, r);
    }
    list_add_tail(&w->unplaced, &r->node);
    r->value = copy(value);
    r->timestamp_ms = timestamp_ms >= 0 ? timestamp_ms : loop_wall_ms(w->loop);
    task_wake(w->loop, &w->step);
    return ++w->last_ticket;
}

uint64_t topic_writer_acked(const struct topic_writer *w)
{
    struct list_node *n = list_first(&w->tickets);

    return n ? container_of(n, struct pending, ticket)->first - 1 : w->last_ticket;
}

bool topic_writer_is_idle(const struct topic_writer *w)
{
    return list_is_empty(&w->tickets);
}

bool topic_writer_is_shut_out(const struct topic_writer *w)
{
    return w->shut_out;
}

struct str topic_writer_topic(const struct topic_writer *w)
{
    return w->topic->name;
}

const struct fault *topic_writer_fault(const struct topic_writer *w)
{
    return &w->fault;
}
