/* copy_probe.c -- copies one topic by fetcher and producer alone, without flow, state or control plane.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     copy_probe SOURCE_PORT TOPIC TARGET_PORT TARGET_TOPIC [SECONDS]
 *
 * To try the data path against real brokers on 127.0.0.1, and to measure it. Both topics must exist and have
 * as many partitions. Ends when all is copied and nothing has come for a second, or after SECONDS with
 * status 1, and prints what it did.
 */
#include "kafka/fetcher.h"
#include "kafka/producer.h"

#include "base/alloc.h"
#include "base/must.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define QUEUE_MAX        (2 * MiB)          /* of one partition, before it rests */
#define PRODUCER_ID_BASE (INT64_C(1) << 62) /* no cluster has given out one as high */

struct lane {
    struct probe *p;
    struct fetch_part in;
    struct produce_part out;
    int32_t sequence;
    int64_t next; /* source offset after the last acknowledged */
    int64_t end;  /* high watermark of the source; not known yet: without end */
    bool resting;
};

struct probe {
    struct loop *l;
    struct client_endpoint at[2];
    struct client_config config[2];
    struct cluster *source, *target;
    struct topic_meta *from, *to;
    struct pool *pool;
    struct fetcher *f;
    struct producer *w;
    struct lane *lanes;
    int32_t lanes_n;
    struct timer tick;
    uint64_t records, bytes, seen, refusals;
    int64_t producer_id; /* of this run */
    int64_t started_ms, last_ms, end_ms;
    uint64_t last_records;
};

static void send_batch(struct lane *n, const struct fetched *f, const char *at,
                       const struct batch *b)
{
    struct outgoing *o = outgoing_new();
    struct batch_stamp stamp = { .producer_id = n->p->producer_id, .base_sequence = n->sequence };

    must_say(b->count == b->last_offset_delta + 1, "the probe copies dense batches only");
    n->sequence = (int32_t)(((uint32_t)n->sequence + (uint32_t)b->count) & INT32_MAX);
    batch_restamp(at, b->size, &stamp, o->header);
    o->payload = slice_of(f->records.b, at + BATCH_HEADER_SIZE, b->size - BATCH_HEADER_SIZE);
    o->source_base = b->base_offset;
    o->source_last = batch_last_offset(b);
    o->count = b->count;
    producer_send(n->p->w, &n->out, o);
}

static void on_fetched(struct fetch_part *part, const struct fetched *f)
{
    struct lane *n = container_of(part, struct lane, in);
    struct str bytes = str_of(f->records.p, f->records.n);
    struct batch b;

    if (f->error || f->diverging) {
        fprintf(stderr, "fetch %d: %s\n", part->partition, kerr_name(f->error));
        fetcher_resume(n->p->f, part, 500);
        return;
    }
    n->end = f->high_watermark;
    while (batch_peek(bytes, &b) == BATCH_V2) {
        if (!(b.attributes & BATCH_CONTROL) && b.count > 0)
            send_batch(n, f, bytes.p, &b);
        part->offset = batch_last_offset(&b) + 1;
        part->last_epoch = b.leader_epoch;
        bytes = str_part(bytes, b.size, bytes.n);
    }
    if (!f->records.n)
        return;
    n->resting = producer_pending(&n->out) >= QUEUE_MAX;
    if (!n->resting)
        fetcher_resume(n->p->f, part, 0);
}

static void on_acked(struct produce_part *part, struct outgoing *o, const struct produced *r)
{
    struct lane *n = container_of(part, struct lane, out);

    must(r->base_offset >= -1);
    must_say(o->source_base >= n->next, "an acknowledgement came twice or out of order");
    n->next = o->source_last + 1;
    n->p->records += (uint64_t)o->count;
    n->p->bytes += BATCH_HEADER_SIZE + o->payload.n;
    if (n->resting && producer_pending(part) < QUEUE_MAX / 2) {
        n->resting = false;
        fetcher_resume(n->p->f, &n->in, 0);
    }
}

static void on_refused(struct produce_part *part, struct outgoing *o, int32_t kerr,
                       struct str message)
{
    struct lane *n = container_of(part, struct lane, out);

    n->p->refusals++;
    fprintf(stderr, "produce %d, source offset %" PRId64 ": %s %.*s\n", part->partition,
            o->source_base, kerr_name(kerr), STR_ARG(message));
}

static void on_waiting(struct produce_part *part, struct outgoing *o, int32_t kerr, enum err e,
                       const char *text)
{
    fprintf(stderr, "produce %d, source offset %" PRId64 " waits: %s %s\n", part->partition,
            o->source_base, kerr ? kerr_name(kerr) : err_name(e), text);
}

static void begin(struct probe *p)
{
    p->lanes_n = p->from->parts_n;
    p->lanes = mem_array((size_t)p->lanes_n, sizeof(*p->lanes));
    for (int32_t i = 0; i < p->lanes_n; i++) {
        struct lane *n = &p->lanes[i];

        n->p = p;
        n->end = INT64_MAX;
        n->in = (struct fetch_part){
            .topic = p->from, .partition = i, .last_epoch = -1, .on_fetched = on_fetched
        };
        n->out = (struct produce_part){ .topic = p->to,
                                        .partition = i,
                                        .on_acked = on_acked,
                                        .on_refused = on_refused,
                                        .on_waiting = on_waiting };
        producer_attach(p->w, &n->out);
        fetcher_add(p->f, &n->in);
    }
    p->started_ms = p->last_ms = loop_now_ms(p->l);
}

/* All that the source is known to have is acknowledged. */
static bool is_through(const struct probe *p)
{
    for (int32_t i = 0; i < p->lanes_n; i++)
        if (p->lanes[i].in.offset < p->lanes[i].end || producer_pending(&p->lanes[i].out))
            return false;
    return true;
}

static void on_tick(struct timer *t)
{
    struct probe *p = container_of(t, struct probe, tick);
    int64_t now = loop_now_ms(p->l);

    if (!p->lanes && p->from->parts_n && p->to->parts_n)
        begin(p);
    if (p->records != p->last_records)
        p->last_ms = now;
    p->last_records = p->records;
    if (p->lanes && ((now - p->last_ms > 1000 && is_through(p)) || now > p->end_ms)) {
        loop_stop(p->l);
        return;
    }
    timer_set_ms(p->l, t, 20);
}

static struct client_config config_for(struct client_endpoint *at, const char *port)
{
    *at = (struct client_endpoint){ .host = STR("127.0.0.1"),
                                    .port = (uint16_t)strtol(port, NULL, 10) };
    return (struct client_config){
        .cluster = STR("probe"),
        .bootstrap = at,
        .bootstrap_count = 1,
        .client_id = STR("copy_probe"),
        .metadata_max_age_ms = 300000,
        .reconnect_backoff_ms = 50,
        .reconnect_backoff_max_ms = 1000,
        .retry_backoff_ms = 100,
        .retry_backoff_max_ms = 1000,
        .request_timeout_ms = 30000,
        .connections_max_idle_ms = 540000,
        .socket_connection_setup_timeout_ms = 10000,
        .socket_connection_setup_timeout_max_ms = 30000,
        .send_buffer_bytes = -1,
        .receive_buffer_bytes = -1,
        .fetch_min_bytes = 1,
        .fetch_max_bytes = 50 * MiB,
        .fetch_max_wait_ms = 500,
        .max_partition_fetch_bytes = 1 * MiB,
        .max_request_size = 1 * MiB,
        .max_in_flight = 5,
    };
}

static void report(struct probe *p)
{
    const struct fetcher_counts *f = fetcher_counts(p->f);
    const struct producer_counts *w = producer_counts(p->w);
    double seconds = (double)MAX(p->last_ms - p->started_ms, 1) / 1000;
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    printf("records=%" PRIu64 " bytes=%" PRIu64
           " seconds=%.2f MBps=%.1f cpu_user=%.2f cpu_sys=%.2f "
           "fetches=%" PRIu64 " answers_kib=%.0f restarts=%" PRIu64 " fetch_errors=%" PRIu64
           " produces=%" PRIu64 " batches=%" PRIu64 " retries=%" PRIu64 " refusals=%" PRIu64
           " pool_peak=%zu rss_kib=%ld\n",
           p->records, p->bytes, seconds, (double)p->bytes / seconds / 1e6,
           (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6,
           (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6, f->requests,
           f->responses ? (double)f->bytes / (double)f->responses / KiB : 0, f->session_restarts,
           f->errors, w->requests, w->batches, w->retries, w->refusals, pool_peak(p->pool),
           u.ru_maxrss);
}

static void end(struct probe *p)
{
    struct list_node list, *at;

    list_init(&list);
    for (int32_t i = 0; i < p->lanes_n; i++) {
        fetcher_remove(p->f, &p->lanes[i].in);
        producer_take_back(p->w, &p->lanes[i].out, &list);
        producer_detach(p->w, &p->lanes[i].out);
    }
    while ((at = list_first(&list))) {
        struct outgoing *o = container_of(at, struct outgoing, node);

        list_remove(at);
        outgoing_free(&o);
    }
    fetcher_free(&p->f);
    producer_free(&p->w);
    cluster_unwatch(p->source, &p->from);
    cluster_unwatch(p->target, &p->to);
    cluster_free(&p->source);
    cluster_free(&p->target);
    pool_free(&p->pool);
    mem_free(p->lanes);
    loop_free(&p->l);
}

int main(int argc, char **argv)
{
    struct probe p = { 0 };
    bool bad;

    if (argc < 5) {
        fprintf(stderr, "usage: copy_probe SOURCE_PORT TOPIC TARGET_PORT TARGET_TOPIC [SECONDS]\n");
        return 2;
    }
    p.l = loop_new("probe");
    p.producer_id = PRODUCER_ID_BASE + loop_wall_ms(p.l);
    p.config[0] = config_for(&p.at[0], argv[1]);
    p.config[1] = config_for(&p.at[1], argv[3]);
    p.source = cluster_new(p.l, &p.config[0], STR("source"));
    p.target = cluster_new(p.l, &p.config[1], STR("target"));
    p.from = cluster_watch(p.source, str_c(argv[2]));
    p.to = cluster_watch(p.target, str_c(argv[4]));
    p.pool = pool_new(1 * MiB, 64 * MiB);
    p.f = fetcher_new(p.source, p.pool, 1);
    p.w = producer_new(p.target);
    p.end_ms = loop_now_ms(p.l) + (argc > 5 ? strtol(argv[5], NULL, 10) : 600) * 1000;
    timer_init(&p.tick, on_tick);
    timer_set_ms(p.l, &p.tick, 0);
    loop_run(p.l);
    report(&p);
    bad = p.refusals > 0 || !is_through(&p);
    end(&p);
    return bad;
}
