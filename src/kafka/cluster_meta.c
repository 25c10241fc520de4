/* cluster_meta.c -- when to ask for metadata, for which topics, and what to do with the answer.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One request at a time, by name, for the topics that are due: new ones at once; all of them after
 * metadata.max.age.ms or on demand (cluster_refresh); those with trouble (an error that may pass, a partition
 * without leader) again and again. Demand and trouble wait for a gap after the last answer, which doubles
 * from retry.backoff.ms to retry.backoff.max.ms while answers tell nothing new.
 */
#include "kafka/cluster_int.h"

#include "base/alloc.h"
#include "base/log.h"
#include "wire/kerr.h"

#include <string.h>

/* Two clusters behind one address: nothing that was learned may be mixed with the other's. */
static bool is_other_cluster(struct cluster *cl, struct str id)
{
    if (!id.p || !cl->id || str_eq(id, str_c(cl->id)))
        return false;
    log_event(EV_CLUSTER_CHANGED, kv_c("cluster", cl->name), kv_c("was", cl->id),
              kv_str("now", id));
    fault_set(&cl->fault, loop_wall_ms(cl->loop), "CLUSTER_ID_CHANGED",
              "the cluster id was %s and is %.*s now: another cluster answers at %s; check "
              "bootstrap.servers and restart",
              cl->id, STR_ARG(id), conn_peer(cl->seat.conn));
    cluster_seat_halt(cl);
    return true;
}

static void come_up(struct cluster *cl, struct str id)
{
    if (!cl->id && id.p)
        cl->id = mem_copy_str(id.p, id.n);
    if (cl->answering)
        return;
    cl->changed = true;
    log_event(EV_CLUSTER_UP, kv_c("cluster", cl->name),
              kv_c("cluster_id", cl->id ? cl->id : "unknown"),
              kv_int("brokers", (int64_t)cl->brokers_n));
}

static void set_gap(struct cluster *cl)
{
    if (cl->changed)
        backoff_reset(&cl->gap);
    cl->not_before_ms = loop_now_ms(cl->loop) + backoff_next_ms(&cl->gap, loop_rand(cl->loop));
}

/* False: the answer was of no use. */
static bool accept_answer(struct cluster *cl, const struct kafka_metadata_response *r)
{
    if (r->error_code == KERR_REBOOTSTRAP_REQUIRED && cluster_seat_rebootstrap(cl))
        return false;
    if (r->error_code) {
        cluster_seat_failed(cl, E_KAFKA, kerr_name(r->error_code));
        return false;
    }
    if (is_other_cluster(cl, r->cluster_id))
        return false;
    if (r->brokers.n <= 0) {
        cluster_seat_failed(cl, E_NO_BROKER, "the broker that was asked knows of no brokers yet");
        return false;
    }
    cluster_merge(cl, r);
    come_up(cl, r->cluster_id);
    set_gap(cl);
    cluster_seat_served(cl);
    return true;
}

static void on_answer(struct call *c)
{
    struct cluster *cl = container_of(c, struct cluster, meta_call);
    /* When the connection broke, cluster_boot.c hears of it next. */
    bool good = c->error == E_OK && accept_answer(cl, c->response);

    cl->refresh |= !good;
    for (size_t i = 0; i < cl->topics_n; i++) {
        struct topic *t = cl->topics[i];

        if (t->asked) {
            t->due |= !good;
            t->trouble |= good && !t->meta.known; /* the answer left it out */
        }
        t->asked = false;
    }
    task_wake(cl->loop, &cl->meta_task);
    cluster_route_wake(cl);
    cluster_tell(cl);
}

static void fill_request(struct call *c)
{
    struct cluster *cl = container_of(c, struct cluster, meta_call);
    struct kafka_metadata_request *q = &cl->meta_request;

    /* Before version 4 it is the broker that decides, and the field must keep its default. */
    q->allow_auto_topic_creation = c->version < 4;
}

static void build_request(struct cluster *cl)
{
    struct kafka_metadata_request *q = &cl->meta_request;
    size_t n = 0;

    codec_init(&kafka_metadata_request_msg, q);
    arena_reset(&cl->meta_arena);
    for (size_t i = 0; i < cl->topics_n && n < CLUSTER_TOPICS_PER_REQUEST; i++)
        n += cl->topics[i]->due;
    q->topics.at = arena_array(&cl->meta_arena, MAX(n, 1), sizeof(*q->topics.at));
    q->topics.n = 0;
    for (size_t i = 0; i < cl->topics_n && q->topics.n < (int32_t)n; i++) {
        struct topic *t = cl->topics[i];
        struct kafka_metadata_request_topic *to = &q->topics.at[q->topics.n];

        if (!t->due)
            continue;
        codec_init(&kafka_metadata_request_topic_msg, to);
        to->name = t->meta.name;
        q->topics.n++;
        t->due = false;
        t->asked = true;
    }
}

static void ask(struct cluster *cl)
{
    enum err e;

    build_request(cl);
    cl->seat.state = SEAT_ASKING;
    cluster_seat_want(cl);
    e = conn_send(cl->seat.conn, &cl->meta_call);
    if (!e)
        return;
    for (size_t i = 0; i < cl->topics_n; i++) {
        cl->topics[i]->due |= cl->topics[i]->asked;
        cl->topics[i]->asked = false;
    }
    cluster_seat_failed(cl, e, err_text(e));
}

/* Marks what is due by now. True: there is something to ask, if only for the brokers. */
static bool mark_due(struct cluster *cl, int64_t now_ms)
{
    bool full = now_ms >= cl->full_due_ms || (cl->refresh && now_ms >= cl->not_before_ms);
    bool any = full;

    if (full) {
        cl->refresh = false;
        cl->full_due_ms =
            now_ms + MAX(cl->config->metadata_max_age_ms, cl->config->retry_backoff_ms);
    }
    for (size_t i = 0; i < cl->topics_n; i++) {
        struct topic *t = cl->topics[i];

        t->due |= full || (t->trouble && now_ms >= cl->not_before_ms);
        any |= t->due;
    }
    return any;
}

static bool has_trouble(const struct cluster *cl)
{
    for (size_t i = 0; i < cl->topics_n; i++)
        if (cl->topics[i]->trouble)
            return true;
    return false;
}

void cluster_meta_step(struct cluster *cl)
{
    int64_t now_ms = loop_now_ms(cl->loop);
    int64_t next_ms;

    cluster_seat_step(cl);
    if (cl->seat.state != SEAT_READY || !conn_is_ready(cl->seat.conn) ||
        call_is_busy(&cl->meta_call))
        return;
    if (now_ms - cl->not_before_ms > cl->gap.most_ms)
        backoff_reset(&cl->gap);
    if (mark_due(cl, now_ms)) {
        ask(cl);
        return;
    }
    next_ms =
        cl->refresh || has_trouble(cl) ? MIN(cl->not_before_ms, cl->full_due_ms) : cl->full_due_ms;
    timer_set_ms(cl->loop, &cl->meta_timer, next_ms - now_ms);
}

static void on_meta_task(struct task *t)
{
    struct cluster *cl = container_of(t, struct cluster, meta_task);

    cluster_meta_step(cl);
    cluster_tell(cl);
}

static void on_meta_timer(struct timer *t)
{
    struct cluster *cl = container_of(t, struct cluster, meta_timer);

    task_wake(cl->loop, &cl->meta_task);
}

void cluster_meta_init(struct cluster *cl)
{
    const struct client_config *config = cl->config;

    task_init(&cl->meta_task, on_meta_task);
    timer_init(&cl->meta_timer, on_meta_timer);
    call_init(&cl->meta_call, API_METADATA, &cl->meta_request, on_answer);
    cl->meta_call.fill = fill_request;
    arena_init(&cl->meta_arena, 16 * MiB);
    backoff_init(&cl->gap, config->retry_backoff_ms,
                 MAX(config->retry_backoff_max_ms, config->retry_backoff_ms));
    cl->full_due_ms = loop_now_ms(cl->loop);
    task_wake(cl->loop, &cl->meta_task);
}

void cluster_meta_fini(struct cluster *cl)
{
    call_drop(&cl->meta_call);
    call_fini(&cl->meta_call);
    arena_fini(&cl->meta_arena);
    task_cancel(&cl->meta_task);
    timer_cancel(cl->loop, &cl->meta_timer);
}

void cluster_refresh(struct cluster *cl)
{
    if (cl->refresh)
        return;
    cl->refresh = true;
    task_wake(cl->loop, &cl->meta_task);
}
