/* feed.c -- writes seeded batches into the source and keeps the truth.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feed.h"

#include "base/alloc.h"
#include "base/must.h"
#include "tally.h"
#include "wire/compress.h"
#include "wire/prim.h"
#include "wire/record.h"

#include <string.h>

#define RECORDS_MAX  30
#define UNIQUE       8 /* bytes at the front of each record: no two are equal */
#define VALUE_USUAL  200
#define VALUE_LARGE  30000
#define OLD_MS       (30 * 86400 * INT64_C(1000))

static uint64_t mix(uint64_t h, struct str s)
{
    return (h ^ (str_is_null(s) ? 0x5bd1e995u : str_hash(s))) * 0x9e3779b97f4a7c15u;
}

uint64_t feed_digest(const struct record *r, int64_t timestamp_ms)
{
    uint64_t h = mix(mix(1, r->key), r->value);

    h = mix(h, r->header_count ? r->headers : STR(""));
    h ^= (uint64_t)r->header_count * 0xc2b2ae3d27d4eb4fu;
    return h ^ ((uint64_t)timestamp_ms * 0x165667b19e3779f9u);
}

static void note(struct feed_part *p, struct truth t)
{
    if (p->n == p->room) {
        p->room = MAX(p->room * 2, 256);
        p->truths = mem_resize(p->truths, p->room, sizeof(*p->truths));
    }
    p->truths[p->n++] = t;
}

/* --- one batch --- */

static struct str some_bytes(struct buf *b, int64_t most, bool unique)
{
    static uint64_t count;
    size_t at = b->n, from = unique ? UNIQUE : 0, n = from + (size_t)sim_between(0, most);
    char *p = buf_grow(b, n);

    if (unique)
        store_u64(p, ++count * 0x9e3779b97f4a7c15u);
    /* Runs, so that codecs have something to do. */
    for (size_t i = from; i < n; i++)
        p[i] = (char)(i % 16 == 0 ? sim_between(0, 255) : p[i - 1]);
    return str_of(b->p + at, n);
}

static void fill_record(struct record *r, struct buf *scratch, const struct feed_shape *s)
{
    struct buf headers;

    buf_clear(scratch);
    (void)buf_grow(scratch, 2 * VALUE_LARGE + 1024); /* no move under the strings */
    buf_clear(scratch);
    r->value = sim_chance(5) ? STR_NULL
                             : some_bytes(scratch, s->large && sim_chance(5) ? VALUE_LARGE : VALUE_USUAL, true);
    if (str_is_null(r->value))
        r->key = some_bytes(scratch, 20, true);
    else
        r->key = sim_chance(20) && !s->compacted ? STR_NULL : some_bytes(scratch, 20, false);
    r->header_count = sim_chance(20) ? (int32_t)sim_between(1, 3) : 0;
    buf_init(&headers, 4 * KiB);
    for (int32_t i = 0; i < r->header_count; i++) {
        struct record_header h = { .key = STR("h"),
                                   .value = sim_chance(20) ? STR_NULL : some_bytes(scratch, 10, false) };

        record_put_header(&headers, &h);
    }
    r->headers = str_of(scratch->p + scratch->n, headers.n);
    buf_put(scratch, headers.p, headers.n);
    buf_fini(&headers);
}

struct making {
    struct batch b;
    struct buf area, scratch;
    struct record records[RECORDS_MAX];
    uint64_t digests[RECORDS_MAX];
    int64_t times[RECORDS_MAX];
};

static void fill_area(struct making *m, const struct feed_shape *s)
{
    int32_t delta = 0;

    for (int32_t i = 0; i < m->b.count; i++) {
        struct record *r = &m->records[i];

        *r = (struct record){ .timestamp_delta = sim_between(-20, 20), .offset_delta = delta++ };
        if (s->compacted && sim_chance(20))
            delta += (int32_t)sim_between(1, 5); /* what the cleaner took */
        fill_record(r, &m->scratch, s);
        m->times[i] = m->b.base_timestamp + r->timestamp_delta;
        m->b.max_timestamp = MAX(m->b.max_timestamp, m->times[i]);
        m->digests[i] = feed_digest(r, m->times[i]);
        record_put(&m->area, r);
        /* Digest the strings anew when the batch's own time is what readers see. */
        if (m->b.attributes & BATCH_LOG_APPEND_TIME)
            m->digests[i] = feed_digest(r, sim_wall_ms());
    }
    if (m->b.attributes & BATCH_LOG_APPEND_TIME)
        m->b.max_timestamp = sim_wall_ms();
    m->b.last_offset_delta = delta - 1;
    if (delta != m->b.count)
        tally(TALLY_HOLES);
}

/* Seals and appends; gives the base offset. */
static int64_t append(struct feed *f, struct feed_part *p, struct batch *b, struct str area)
{
    unsigned char header[BATCH_HEADER_SIZE];
    struct buf payload, whole;
    int64_t base;

    buf_init(&payload, 16 * MiB);
    buf_init(&whole, 16 * MiB);
    must(compress_pack(f->compress, b->attributes & BATCH_CODEC_MASK, COMPRESS_LEVEL_DEFAULT, area,
                       &payload) == E_OK);
    batch_seal(b, buf_str(&payload), header);
    buf_put(&whole, header, sizeof(header));
    buf_put(&whole, payload.p, payload.n);
    base = log_append(p->log, buf_str(&whole));
    buf_fini(&payload);
    buf_fini(&whole);
    return base;
}

static void write_batch(struct feed *f, struct feed_topic *t, struct feed_part *p, struct feed_txn *txn)
{
    struct making *m = mem_new(sizeof(*m));
    const struct feed_shape *s = &t->shape;
    int codec = s->codec >= 0 ? s->codec : (int)sim_between(CODEC_NONE, CODEC_ZSTD);
    int64_t base;

    m->b = (struct batch){ .magic = 2, .attributes = (int16_t)codec, .producer_id = -1,
                           .producer_epoch = -1, .base_sequence = -1,
                           .count = (int32_t)sim_between(1, sim_chance(50) ? 3 : RECORDS_MAX),
                           .base_timestamp = sim_wall_ms() - sim_between(0, 5000) };
    if (f->old && sim_chance(50))
        m->b.base_timestamp -= OLD_MS;
    if (t->topic->log_append_time)
        m->b.attributes |= BATCH_LOG_APPEND_TIME;
    if (s->compacted && sim_chance(10))
        m->b.attributes |= BATCH_DELETE_HORIZON;
    buf_init(&m->area, 16 * MiB);
    buf_init(&m->scratch, 16 * MiB);
    fill_area(m, s);
    if (txn) {
        m->b.attributes |= BATCH_TRANSACTIONAL;
        m->b.producer_id = txn->producer_id;
        m->b.producer_epoch = 0;
        m->b.base_sequence = txn->sequence;
        txn->sequence += m->b.last_offset_delta + 1;
    } else if (s->idempotent) {
        m->b.producer_id = p->producer_id;
        m->b.producer_epoch = 0;
        m->b.base_sequence = p->sequence;
        p->sequence += m->b.last_offset_delta + 1;
    }
    base = append(f, p, &m->b, buf_str(&m->area));
    if (txn && txn->first < 0)
        txn->first = base;
    for (int32_t i = 0; i < m->b.count; i++)
        note(p, (struct truth){ .offset = base + m->records[i].offset_delta, .digest = m->digests[i],
                                .producer_id = txn ? txn->producer_id : -1,
                                .state = txn ? TRUTH_OPEN : TRUTH_THERE });
    buf_fini(&m->area);
    buf_fini(&m->scratch);
    mem_free(m);
}

/* --- what the cleaner leaves, and transactions --- */

static void write_empty(struct feed *f, struct feed_part *p)
{
    struct batch b = { .magic = 2, .producer_id = -1, .producer_epoch = -1, .base_sequence = -1,
                       .last_offset_delta = (int32_t)sim_between(0, 9), .base_timestamp = -1,
                       .max_timestamp = -1 };

    tally(TALLY_HOLES);
    append(f, p, &b, STR(""));
    if (sim_chance(50)) /* or nothing at all */
        p->log->batches[p->log->batches_n - 1].gone = true;
}

/* Rules 1.3: a control batch, whose record's key is version and type. */
static void end_txn(struct feed *f, struct feed_part *p, struct feed_txn *txn, bool commit)
{
    struct batch b = { .magic = 2, .attributes = BATCH_TRANSACTIONAL | BATCH_CONTROL,
                       .producer_id = txn->producer_id, .base_sequence = -1, .count = 1,
                       .base_timestamp = sim_wall_ms(), .max_timestamp = sim_wall_ms() };
    struct record r = { .key = commit ? STR("\0\0\0\1") : STR("\0\0\0\0"), .value = STR("\0\0\0\0\0\0"),
                        .headers = STR("") };
    struct buf area;
    int64_t marker;

    buf_init(&area, 1 * KiB);
    record_put(&area, &r);
    marker = append(f, p, &b, buf_str(&area));
    buf_fini(&area);
    if (!commit)
        tally(TALLY_ABORTED);
    if (!commit)
        log_abort(p->log, txn->producer_id, txn->first, marker);
    for (size_t i = p->n; i-- > 0 && p->truths[i].offset >= txn->first;)
        if (p->truths[i].producer_id == txn->producer_id && p->truths[i].state == TRUTH_OPEN)
            p->truths[i].state = commit ? TRUTH_THERE : TRUTH_ABORTED;
    txn->first = -1;
}

static void write_something(struct feed *f, struct feed_topic *t, struct feed_part *p)
{
    struct feed_txn *txn = &p->txns[sim_between(0, FEED_TXNS - 1)];

    if (t->shape.compacted && sim_chance(15))
        write_empty(f, p);
    if (t->shape.transactional && txn->first >= 0 && sim_chance(30))
        end_txn(f, p, txn, sim_chance(60));
    else
        write_batch(f, t, p, t->shape.transactional && sim_chance(70) ? txn : NULL);
}

void feed_sync(struct feed_part *p)
{
    if (p->cuts == p->log->cuts)
        return;
    p->cuts = p->log->cuts;
    while (p->n > 0 && p->truths[p->n - 1].state != TRUTH_LOST && p->truths[p->n - 1].offset >= p->log->end)
        p->n--;
}

static void lose(struct feed_part *p, struct truth *t)
{
    if (t->state != TRUTH_THERE)
        return;
    t->state = TRUTH_LOST;
    t->loss = p->losses;
}

void feed_cut(struct feed_part *p, int64_t was)
{
    if (!p->log)
        return;
    p->losses++;
    p->lost_us = p->cut_us = sim_now_us();
    p->cuts = p->log->cuts;
    for (size_t i = 0; i < p->n; i++) {
        if (p->truths[i].state != TRUTH_THERE || p->truths[i].offset < p->log->end)
            continue;
        if (p->truths[i].offset >= was)
            p->truths[i].state = TRUTH_ABORTED; /* nobody has seen it */
        else
            lose(p, &p->truths[i]);
    }
}

void feed_expire(struct feed_part *p)
{
    p->losses++;
    p->lost_us = sim_now_us();
    for (size_t i = 0; i < p->n; i++) {
        if (p->truths[i].offset >= p->log->start || p->truths[i].state != TRUTH_THERE)
            continue;
        lose(p, &p->truths[i]);
        p->truths[i].expired = true;
    }
}

void feed_anew(struct feed_topic *t)
{
    for (int32_t j = 0; j < SIM_PARTS; j++) {
        struct feed_part *p = &t->parts[j];

        if (!p->log)
            continue;
        p->losses++;
        p->lost_us = p->cut_us = sim_now_us();
        feed_sync(p);
        for (size_t i = 0; i < p->n; i++) {
            if (p->truths[i].state == TRUTH_OPEN)
                p->truths[i].state = TRUTH_ABORTED; /* nobody ever sees it */
            lose(p, &p->truths[i]);
        }
        for (int k = 0; k < FEED_TXNS; k++)
            p->txns[k].first = -1;
        p->cuts = p->log->cuts + 1; /* that of the birth */
        p->sequence = 0;
    }
}

static void on_next(struct sim_event *e)
{
    struct feed *f = container_of(e, struct feed, next);
    struct feed_topic *t;
    struct feed_part *p;

    if (f->stopped)
        return;
    sim_event_set(e, sim_between(100, f->pause_us));
    t = &f->topics[sim_between(0, f->topics_n - 1)];
    p = &t->parts[sim_between(0, t->topic->parts_n - 1)];
    if (!p->log) { /* a partition that was added meanwhile */
        p->log = &t->topic->parts[p - t->parts];
        p->producer_id = 1000 + sim_between(0, 1000);
        for (int i = 0; i < FEED_TXNS; i++)
            p->txns[i] = (struct feed_txn){ .producer_id = 5000 + i, .first = -1 };
    }
    if (p->log->leader < 0 || !broker_topic_is_there(t->topic))
        return;
    feed_sync(p);
    for (int64_t n = sim_between(1, 4); n > 0; n--)
        write_something(f, t, p);
}

struct feed_topic *feed_add_topic(struct feed *f, const char *name, int32_t parts)
{
    struct feed_topic *t = &f->topics[f->topics_n];

    must(f->topics_n < SIM_TOPICS);
    t->topic = broker_topic_new(f->cluster, str_c(name), parts);
    t->shape = (struct feed_shape){ .transactional = sim_chance(25), .compacted = sim_chance(25),
                                    .idempotent = sim_chance(50), .large = sim_chance(20),
                                    .codec = (int)sim_between(-1, CODEC_ZSTD) };
    t->topic->log_append_time = sim_chance(20);
    t->topic->keep_tail = t->shape.transactional;
    f->topics_n++;
    return t;
}

struct feed *feed_new(struct sim_cluster *c, int64_t pause_us)
{
    struct feed *f = mem_new(sizeof(*f));

    f->cluster = c;
    f->pause_us = pause_us;
    f->compress = compress_new();
    f->next.fn = on_next;
    sim_event_set(&f->next, 0);
    return f;
}

void feed_stop(struct feed *f)
{
    f->stopped = true;
    for (int32_t i = 0; i < f->topics_n; i++) {
        for (int32_t j = 0; j < f->topics[i].topic->parts_n; j++) {
            struct feed_part *p = &f->topics[i].parts[j];

            for (int k = 0; p->log && k < FEED_TXNS; k++)
                if (p->txns[k].first >= 0)
                    end_txn(f, p, &p->txns[k], sim_chance(50));
        }
    }
}

void feed_last(struct feed *f)
{
    for (int32_t i = 0; i < f->topics_n; i++) {
        for (int32_t j = 0; j < f->topics[i].topic->parts_n; j++) {
            struct feed_part *p = &f->topics[i].parts[j];

            if (!p->log)
                continue;
            feed_sync(p);
            write_batch(f, &f->topics[i], p, NULL);
        }
    }
}
