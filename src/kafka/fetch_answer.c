/* fetch_answer.c -- takes a fetch answer apart and tells the owners of its partitions.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A callback may add, remove and resume any partition, so each is looked up when its turn comes and not
 * touched after its callback.
 */
#include "kafka/fetch_link.h"

#include "base/must.h"
#include "wire/batch.h"

#include <stdlib.h>

#define BATCH_BYTES_SANE (1 * GiB)

void fetch_tell_error(struct fetcher *f, struct fetch_part *p, int32_t kerr)
{
    const struct fetched told = {
        .error = kerr,
        .fetch_offset = p->offset,
        .high_watermark = -1,
        .last_stable_offset = -1,
        .log_start_offset = -1,
    };

    p->state = FETCH_RESTING;
    list_remove(&p->node);
    if (p->link)
        fetch_put(p->link, p);
    else
        list_add_tail(&f->homeless, &p->node);
    p->on_fetched(p, &told);
}

/* The partition of the answer, if it still wants what was asked for it. */
static struct fetch_part *find_asked(const struct fetch_link *k,
                                     const struct kafka_fetch_response_topic *t, int32_t partition)
{
    static const struct uuid none;
    struct part_topic *pt =
        part_table_find(&k->f->table, t->topic, k->call.version >= 13 ? &t->topic_id : &none);
    struct fetch_part *p = pt ? part_topic_find(pt, partition) : NULL;

    if (!p || p->link != k || !p->in_session || p->offset != p->session_offset)
        return NULL;
    return p->state == FETCH_ASKED || p->state == FETCH_WANTED ? p : NULL;
}

static void rest(struct fetch_link *k, struct fetch_part *p)
{
    p->state = FETCH_RESTING;
    k->rested_ms = loop_now_ms(k->f->loop);
    fetch_set_behind(p, false); /* others share the next answer */
    list_remove(&p->node);
    fetch_put(k, p);
}

static int64_t back_off_ms(struct fetcher *f, uint32_t errors)
{
    struct backoff b;

    backoff_init(&b, f->config->retry_backoff_ms, f->config->retry_backoff_max_ms);
    b.failures = errors - 1;
    return backoff_next_ms(&b, loop_rand(f->loop));
}

/* The answer names the new leader (KIP-951), with its address from version 16 on. */
static void learn_leader(struct fetch_link *k, const struct fetch_part *p,
                         const struct kafka_fetch_response_partition *a)
{
    const struct kafka_fetch_response *r = k->call.response;
    struct str host = STR_NULL;
    int32_t port = -1;

    if (a->current_leader.leader_id < 0)
        return;
    for (int32_t i = 0; i < r->node_endpoints.n; i++) {
        if (r->node_endpoints.at[i].node_id != a->current_leader.leader_id)
            continue;
        host = r->node_endpoints.at[i].host;
        port = r->node_endpoints.at[i].port;
    }
    cluster_learn_leader(k->f->cluster, p->topic, p->partition, a->current_leader.leader_id,
                         a->current_leader.leader_epoch, host, port);
}

/* Tries again later, silently. */
static void try_again(struct fetch_link *k, struct fetch_part *p)
{
    p->not_before_ms = loop_now_ms(k->f->loop) + back_off_ms(k->f, p->errors);
    p->state = FETCH_WANTED;
    list_remove(&p->node);
    fetch_put(k, p);
}

static void on_error(struct fetch_link *k, struct fetch_part *p,
                     const struct kafka_fetch_response_partition *a)
{
    enum kerr_class class = kerr_class(API_FETCH, a->error_code);
    bool passes = class == K_AGAIN || class == K_REFRESH || class == K_UNSURE || class == K_SESSION;

    k->f->counts.errors++;
    p->errors++;
    if (class == K_REFRESH || class == K_GONE) {
        cluster_refresh(k->f->cluster);
        learn_leader(k, p, a);
        if (p->link != k)
            return; /* it has moved at once */
    }
    if (p->preferred >= 0) {
        /* What a follower says proves nothing: its leader is asked. */
        fetcher_set_near(k->f, p, -1);
        fetcher_move(k->f, p);
        if (p->link != k)
            return;
    }
    if (passes && p->errors < FETCH_ERRORS_TOLD) {
        try_again(k, p);
        return;
    }
    k->rested_ms = loop_now_ms(k->f->loop);
    fetch_tell_error(k->f, p, a->error_code);
}

static int by_first_offset(const void *a, const void *b)
{
    const struct fetch_aborted *x = a, *y = b;

    return (x->first_offset > y->first_offset) - (x->first_offset < y->first_offset);
}

static void take_aborted(struct fetcher *f, const struct kafka_fetch_response_partition *a,
                         struct fetched *out)
{
    int32_t n = MAX(a->aborted_transactions.n, 0); /* -1: null */

    if (!n)
        return;
    if ((size_t)n > f->aborted_room) {
        f->aborted_room = (size_t)n;
        f->aborted = mem_resize(f->aborted, f->aborted_room, sizeof(*f->aborted));
    }
    for (int32_t i = 0; i < n; i++)
        f->aborted[i] = (struct fetch_aborted){
            .producer_id = a->aborted_transactions.at[i].producer_id,
            .first_offset = a->aborted_transactions.at[i].first_offset,
        };
    qsort(f->aborted, (size_t)n, sizeof(*f->aborted), by_first_offset);
    out->aborted = f->aborted;
    out->aborted_n = n;
}

/* Notes how large the batches are; false when not even the first is there in full. It comes in full when
 * the partition is the first of an answer that has anything, and each has its turn. */
static bool has_batch(struct fetch_link *k, struct fetch_part *p, struct str records)
{
    int64_t size;

    if (records.n < 12)
        return false;
    size = 12 + (int64_t)(int32_t)load_u32(records.p + 8);
    if (size < BATCH_HEADER_SIZE || size > BATCH_BYTES_SANE)
        return true; /* the owner will see that it is not a batch */
    p->batch_bytes = (int32_t)MAX(size, p->batch_bytes - p->batch_bytes / 16);
    if (size <= (int64_t)records.n)
        return true;
    if (p->session_max_bytes >= MIN(size, k->f->config->max_partition_fetch_bytes))
        return false;
    p->state = FETCH_WANTED; /* so that the session hears of the size */
    list_remove(&p->node);
    fetch_put(k, p);
    return false;
}

/* One partition of the answer that still counts. */
static void take_part(struct fetch_link *k, struct fetch_part *p,
                      const struct kafka_fetch_response_partition *a)
{
    struct fetched f = {
        .fetch_offset = p->offset,
        .high_watermark = a->high_watermark,
        .last_stable_offset = a->last_stable_offset,
        .log_start_offset = a->log_start_offset,
        .diverging = a->diverging_epoch.end_offset >= 0 || a->diverging_epoch.epoch >= 0,
        .diverging_epoch = a->diverging_epoch.epoch,
        .diverging_end = a->diverging_epoch.end_offset,
    };

    if (a->error_code) {
        on_error(k, p, a);
        return;
    }
    p->errors = 0;
    p->high_watermark = a->high_watermark;
    fetch_set_behind(p, p->offset < a->high_watermark);
    if (a->preferred_read_replica >= 0 && a->preferred_read_replica != k->broker) {
        if (!cluster_find_broker(k->f->cluster, a->preferred_read_replica)) {
            cluster_refresh(k->f->cluster); /* it has come since we asked who is there */
            p->errors = 1;
            try_again(k, p);
            return;
        }
        fetcher_set_near(k->f, p, a->preferred_read_replica);
        fetcher_move(k->f, p);
        return;
    }
    if (f.diverging) {
        rest(k, p);
        if (f.diverging_epoch < 0 || f.diverging_end < 0) { /* no broker says so: bytes went wrong */
            fetch_tell_error(k->f, p, KERR_CORRUPT_MESSAGE);
            return;
        }
    } else if (a->records.body.n && has_batch(k, p, a->records.body)) {
        f.records.b = k->call.bytes.b;
        f.records.p = a->records.body.p;
        f.records.n = a->records.body.n;
        take_aborted(k->f, a, &f);
        rest(k, p);
    }
    p->on_fetched(p, &f);
}

/* Whether the broker is far, or near, as the fastest of a run of full answers tells. A single one tells
 * nothing: where the machine is busy, the time of most answers is the time until we get to read them. */
static void measure(struct fetch_link *k, bool *far, bool *near)
{
    int64_t us = loop_now_us(k->f->loop) - k->call.sent_us;

    k->fastest_us = k->full_n ? MIN(k->fastest_us, us) : us;
    k->full_n++;
    *far = k->full_n >= FETCH_SLOW_RUN && k->fastest_us > FETCH_SLOW_US;
    *near = k->fastest_us < FETCH_SLOW_US / 4;
    if (*far || *near)
        k->full_n = 0;
}

/* Keeps answers near the usual size: less of a broker with little to give, more of one that is far. */
static void adapt(struct fetch_link *k)
{
    size_t most = MIN((size_t)MAX(k->f->config->fetch_max_bytes, 1), pool_max(k->f->pool) / 4);
    size_t got = k->call.bytes.n;
    bool far, near;

    if (got >= k->ask_bytes / 4 * 3) {
        measure(k, &far, &near);
        if (k->ask_bytes < FETCH_BYTES_USUAL || far)
            k->ask_bytes *= 2;
        else if (k->ask_bytes > FETCH_BYTES_USUAL && near)
            k->ask_bytes /= 2;
    } else if (got < k->ask_bytes / 4) {
        k->ask_bytes /= 2;
    }
    k->ask_bytes = MIN(MAX(k->ask_bytes, FETCH_BYTES_LEAST), most);
}

static void take_response(struct fetch_link *k)
{
    const struct kafka_fetch_response *r = k->call.response;

    backoff_reset(&k->backoff);
    k->session_id = r->session_id;
    k->session_epoch = k->session_epoch == INT32_MAX ? 1 : k->session_epoch + 1;
    adapt(k);
    for (int32_t i = 0; i < r->responses.n; i++) {
        const struct kafka_fetch_response_topic *t = &r->responses.at[i];

        for (int32_t j = 0; j < t->partitions.n; j++) {
            struct fetch_part *p = find_asked(k, t, t->partitions.at[j].partition_index);

            if (p)
                take_part(k, p, &t->partitions.at[j]);
        }
    }
    if (!r->session_id)
        fetch_session_lost(k); /* it keeps no session for us: all is named again */
}

/* The answer as a whole is an error. */
static void refused(struct fetch_link *k, int32_t kerr)
{
    enum kerr_class class = kerr_class(API_FETCH, kerr);

    k->f->counts.session_restarts++;
    if (kerr == KERR_FETCH_SESSION_ID_NOT_FOUND)
        k->session_id = 0; /* nothing to close there */
    fetch_session_lost(k);
    if (class == K_SESSION && k->backoff.failures == 0) {
        k->backoff.failures++; /* at once the first time, then with a wait */
        return;
    }
    fetch_link_back_off(k);
    if (class == K_REFRESH || class == K_GONE)
        cluster_refresh(k->f->cluster);
}

void fetch_answer(struct fetch_link *k)
{
    struct call *c = &k->call;
    const struct kafka_fetch_response *r = c->response;

    if (c->error) {
        /* Whether the broker has counted the request is not known: its session cannot go on. */
        if (c->epoch == k->session_no)
            fetch_session_lost(k);
        fetch_link_back_off(k);
    } else {
        k->f->counts.responses++;
        k->f->counts.bytes += c->bytes.n;
        if (c->epoch != k->session_no)
            ; /* of a session that has ended meanwhile */
        else if (r->error_code)
            refused(k, r->error_code);
        else
            take_response(k);
    }
    call_fini(c); /* the block goes when the last slice of it does */
    fetch_link_wake(k);
}
