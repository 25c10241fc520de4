/* topic_writer_part.c -- one partition of a written topic: builds a batch and sends it until it is in.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The same batch goes again with the same sequence as long as the producer id is the same, so the broker
 * sees what it has already.
 */
#include "kafka/topic_writer_int.h"

#include "base/must.h"

#include <stdio.h>
#include <string.h>

#define WRITER_BATCH_BYTES (256 * KiB) /* a batch is closed when it is past this */
#define WRITER_BATCH_MAX   (32 * MiB) /* for one huge record; the topic's max.message.bytes judges */
#define WRITER_VERSION_EXPLICIT 11 /* the last of transaction protocol 1 */
#define WRITER_VERSION_MAX 12 /* the last that names topics: needs no id, and all brokers have it */

static void on_part_done(struct call *c);
static void on_part_retry(struct timer *t);

struct writer_part *topic_writer_part_get(struct topic_writer *w, int32_t partition)
{
    const struct client_config *config = cluster_config(w->cluster);
    struct writer_part *wp;

    if (partition >= w->parts_n) {
        int32_t n = MAX(partition + 1, w->parts_n * 2);

        w->parts = mem_resize(w->parts, (size_t)n, sizeof(*w->parts));
        memset(w->parts + w->parts_n, 0, (size_t)(n - w->parts_n) * sizeof(*w->parts));
        w->parts_n = n;
    }
    if (w->parts[partition])
        return w->parts[partition];
    wp = w->parts[partition] = mem_new(sizeof(*wp));
    wp->w = w;
    wp->producer_id = -1;
    wp->partition = partition;
    list_init(&wp->queue);
    list_init(&wp->sending);
    batch_builder_init(&wp->builder, WRITER_BATCH_MAX);
    call_init(&wp->call, API_PRODUCE, &wp->request, on_part_done);
    timer_init(&wp->retry, on_part_retry);
    backoff_init(&wp->backoff, config->retry_backoff_ms, config->retry_backoff_max_ms);
    return wp;
}

void topic_writer_part_free(struct topic_writer *w, struct writer_part *wp)
{
    if (!wp)
        return;
    call_drop(&wp->call);
    call_fini(&wp->call);
    timer_cancel(w->loop, &wp->retry);
    batch_builder_fini(&wp->builder);
    mem_free(wp);
}

static void build_batch(struct writer_part *wp)
{
    struct list_node *n;
    enum err e = E_OK;

    batch_builder_clear(&wp->builder);
    while ((n = list_first(&wp->queue)) && wp->builder.bytes.n < WRITER_BATCH_BYTES) {
        struct pending *r = container_of(n, struct pending, node);

        e = batch_builder_add(&wp->builder, topic_writer_key(r), r->value, r->timestamp_ms);
        if (e)
            break;
        topic_writer_unmap(wp->w, r);
        list_remove(n);
        list_add_tail(&wp->sending, n);
    }
    must_say(!e || wp->builder.count, "a record of an internal topic is absurdly large");
}

/* In a transaction the sequence counts for its producer id and epoch. */
static struct str stamp_in_txn(struct writer_part *wp)
{
    const struct txn_who *who = txn_who(wp->w->txn);
    struct batch_stamp stamp = { .producer_id = who->producer_id, .producer_epoch = who->epoch,
                                 .transactional = true };

    if (wp->producer_id != who->producer_id || wp->producer_epoch != who->epoch) {
        wp->producer_id = who->producer_id;
        wp->producer_epoch = who->epoch;
        wp->next_sequence = 0;
    }
    stamp.base_sequence = wp->next_sequence;
    return batch_builder_finish(&wp->builder, &stamp);
}

static struct str stamp_batch(struct writer_part *wp)
{
    struct topic_writer *w = wp->w;
    struct batch_stamp stamp = { .producer_id = w->producer_id,
                                 .producer_epoch = w->producer_epoch };

    if (w->txn)
        return stamp_in_txn(wp);
    if (w->id_state != ID_HELD)
        return batch_builder_finish(&wp->builder, NULL);
    if (wp->identity != w->identity) {
        wp->identity = w->identity;
        wp->next_sequence = 0;
    }
    stamp.base_sequence = wp->next_sequence;
    return batch_builder_finish(&wp->builder, &stamp);
}

static void part_wait(struct writer_part *wp)
{
    struct loop *l = wp->w->loop;

    timer_set_ms(l, &wp->retry, backoff_next_ms(&wp->backoff, loop_rand(l)));
}

/* A leader that is away is said at once: a call would only wait for it, and then say that it took long. */
static bool part_has_leader(struct writer_part *wp)
{
    struct topic_writer *w = wp->w;
    const struct topic_meta *t = w->topic;
    char text[120];

    if (wp->partition >= t->parts_n || t->parts[wp->partition].leader >= 0)
        return true;
    snprintf(text, sizeof(text), "partition %d has no leader; bring back a broker that has its replicas", wp->partition);
    topic_writer_set_fault(w, kerr_name(KERR_LEADER_NOT_AVAILABLE), text);
    cluster_refresh(w->cluster);
    return false;
}

static void part_send(struct writer_part *wp)
{
    struct topic_writer *w = wp->w;
    struct route route = { .kind = ROUTE_LEADER, .topic = w->topic, .partition = wp->partition };
    enum err e;

    codec_init(&kafka_produce_request_msg, &wp->request);
    wp->partition_data = (struct kafka_produce_request_partition){ .index = wp->partition };
    wp->partition_data.records.body = stamp_batch(wp);
    wp->topic_data = (struct kafka_produce_request_topic){ .name = w->topic->name };
    wp->topic_data.partition_data.at = &wp->partition_data;
    wp->topic_data.partition_data.n = 1;
    wp->request.acks = -1;
    wp->request.timeout_ms = (int32_t)cluster_config(w->cluster)->request_timeout_ms;
    wp->request.topic_data.at = &wp->topic_data;
    wp->request.topic_data.n = 1;
    wp->call.version_max = WRITER_VERSION_MAX;
    if (w->txn) {
        wp->request.transactional_id = txn_who(w->txn)->id;
        if (!txn_who(w->txn)->implicit)
            wp->call.version_max = WRITER_VERSION_EXPLICIT;
    }
    e = cluster_call(w->cluster, &route, &wp->call);
    if (!e)
        return;
    topic_writer_set_fault(w, err_name(e), err_text(e));
    part_wait(wp);
}

/* False: not in the transaction yet. */
static bool may_write(struct writer_part *wp)
{
    struct topic_writer *w = wp->w;
    int32_t kerr = 0;

    if (!w->txn)
        return true;
    switch (txn_enter(w->txn, w->topic->name, wp->partition, &kerr)) {
    case TXN_PART_IN:
        return true;
    case TXN_PART_WAIT:
        return false; /* topic_writer_wake tells */
    case TXN_PART_REFUSED:
        break;
    }
    topic_writer_set_fault(w, kerr_name(kerr), kerr_text(kerr));
    w->ops.on_refused(w->ops.arg, kerr);
    return false;
}

void topic_writer_part_step(struct writer_part *wp)
{
    if (call_is_busy(&wp->call) || timer_is_set(&wp->retry))
        return;
    if ((list_is_empty(&wp->sending) && list_is_empty(&wp->queue)) || !may_write(wp))
        return;
    if (list_is_empty(&wp->sending))
        build_batch(wp);
    if (part_has_leader(wp))
        part_send(wp);
    else
        part_wait(wp);
}

static void on_part_retry(struct timer *t)
{
    struct writer_part *wp = container_of(t, struct writer_part, retry);

    task_wake(wp->w->loop, &wp->w->step);
}

static void part_acked(struct writer_part *wp)
{
    struct topic_writer *w = wp->w;
    struct list_node *n;

    wp->next_sequence =
        (int32_t)(((uint32_t)wp->next_sequence + (uint32_t)wp->builder.count) & INT32_MAX);
    while ((n = list_first(&wp->sending)))
        topic_writer_drop(w, container_of(n, struct pending, node));
    backoff_reset(&wp->backoff);
    topic_writer_clear_fault(w);
    task_wake(w->loop, &w->step);
    if (list_is_empty(&w->tickets) && w->ops.on_idle)
        w->ops.on_idle(w->ops.arg);
}

/* The broker's memory of our producer id is not ours: a new one, or the next epoch of a given one, begins at 0. What
 * it might double is a key's last value. */
static void new_identity(struct writer_part *wp)
{
    struct topic_writer *w = wp->w;

    if (w->id_state != ID_HELD || wp->identity != w->identity)
        return;
    if (!w->given) {
        w->id_state = ID_NONE;
    } else if (w->producer_epoch < INT16_MAX - 1) {
        w->producer_epoch++;
        w->identity++;
    }
}

/* A later epoch of an id that is ours alone means that a successor has closed it. */
static void shut_out(struct topic_writer *w)
{
    w->shut_out = true;
    topic_writer_set_fault(w, kerr_name(KERR_INVALID_PRODUCER_EPOCH), "another process has taken the flow over");
}

static void part_refused(struct writer_part *wp, int32_t kerr)
{
    struct topic_writer *w = wp->w;

    switch (kerr_class(API_PRODUCE, kerr)) {
    case K_FENCED:
        if (w->given) {
            shut_out(w);
            return;
        }
        FALLTHROUGH;
    case K_ORDER:
    case K_REJOIN:
        if (w->txn) {
            w->ops.on_refused(w->ops.arg, kerr); /* may have let all be forgotten, wp too */
            return;
        }
        new_identity(wp);
        break;
    case K_REFRESH:
    case K_GONE:
        cluster_refresh(w->cluster);
        break;
    default:
        if (kerr == KERR_UNSUPPORTED_FOR_MESSAGE_FORMAT)
            w->id_state = ID_WITHOUT; /* a topic in an old format takes no producer ids */
        break;
    }
    topic_writer_set_fault(w, kerr_name(kerr), kerr_text(kerr));
    part_wait(wp);
}

static int32_t answer_of(const struct call *c)
{
    const struct kafka_produce_response *r = c->response;

    if (r->responses.n != 1 || r->responses.at[0].partition_responses.n != 1)
        return KERR_UNKNOWN_SERVER_ERROR;
    return r->responses.at[0].partition_responses.at[0].error_code;
}

static void on_part_done(struct call *c)
{
    struct writer_part *wp = container_of(c, struct writer_part, call);
    int32_t kerr;

    if (c->error) {
        topic_writer_set_fault(wp->w, err_name(c->error), c->text);
        part_wait(wp);
        return;
    }
    kerr = answer_of(c);
    if (kerr == KERR_NONE || kerr == KERR_DUPLICATE_SEQUENCE_NUMBER)
        part_acked(wp);
    else
        part_refused(wp, kerr);
}
