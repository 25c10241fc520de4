/* topic_reader.c -- one pass over a small topic: bounds, fetch, records, done.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The topic's metadata comes first; an error there is believed when it stays for a while, for a topic that was
 * made a moment ago is not known to every broker. Then each partition goes its own way:
 *
 *   open --ask both ends--> asked --> reading --position == end--> read
 *    ^                        |          |
 *    +------ may pass --------+----------+ (offset out of range: the ends have moved)
 *
 *   R-1  the end is the high watermark at the time of asking, or the last stable offset of the first answer if
 *        that is lower: an open transaction is not waited for
 *   R-2  records are told in offset order, each at most once per partition
 *   R-3  on_done comes from a task of its own, when nothing else of the reader is on the stack
 */
#include "kafka/topic_reader.h"

#include "base/alloc.h"
#include "base/must.h"
#include "kafka/asker.h"
#include "kafka/fetcher.h"
#include "wire/compress.h"
#include "wire/record.h"

#include <stdio.h>
#include <string.h>

#define BLOCK_SIZE   (1 * MiB)
#define POOL_SIZE    (16 * MiB)
#define AREA_MAX     (256 * MiB) /* one batch, unpacked */
#define ERROR_LOOKS  4           /* at metadata, before its error is believed */
#define MARKER_ABORT 0

struct reader_part {
    struct topic_reader *reader;
    struct fetch_part fetch;
    struct ask first, last;
    int asks_open;
    enum { PART_OPEN, PART_ASKED, PART_READING, PART_READ } state;
    int64_t end;
    bool bounded; /* the last stable offset has been looked at */
};

struct topic_reader {
    struct cluster *cluster;
    struct topic_reader_ops ops;
    struct topic_meta *topic;
    struct cluster_listener listener;
    struct task step;
    struct timer again;
    int looks;
    struct fault fault;
    bool over; /* on_done is due */
    enum err error;
    int32_t kerr;

    struct reader_part *parts; /* NULL: metadata is not there yet */
    int32_t parts_n, left;
    struct pool *pool;
    struct fetcher *fetcher;
    struct asker *asker;
    struct compress *compress;
    struct buf area;
    int64_t *aborted; /* producer ids whose transaction is being skipped */
    size_t aborted_n, aborted_room;
};

static void finish(struct topic_reader *r, enum err e, int32_t kerr)
{
    if (r->over)
        return;
    r->over = true;
    r->error = e;
    r->kerr = kerr;
    task_wake(cluster_loop(r->cluster), &r->step);
}

static int64_t pause_ms(const struct topic_reader *r)
{
    return MAX(cluster_config(r->cluster)->retry_backoff_max_ms, 1);
}

static void step_later(struct topic_reader *r)
{
    if (!timer_is_set(&r->again))
        timer_set_ms(cluster_loop(r->cluster), &r->again, pause_ms(r));
}

/* partition -1: the whole topic. */
static void note_fault(struct topic_reader *r, int32_t partition, const char *code, const char *text)
{
    char place[32] = "";

    if (partition >= 0)
        snprintf(place, sizeof(place), "partition %d of ", partition);
    fault_set(&r->fault, loop_wall_ms(cluster_loop(r->cluster)), code, "%stopic %.*s: %s", place,
              STR_ARG(r->topic->name), text);
    if (r->ops.on_fault)
        r->ops.on_fault(r->ops.arg, &r->fault);
}

/* Kafka's refusal: what may pass is noted, and true; else the reader is over. */
static bool may_pass(struct topic_reader *r, int32_t partition, int api, int32_t kerr)
{
    switch (kerr_class(api, kerr)) {
    case K_DENIED:
    case K_GONE:
    case K_FATAL:
        finish(r, E_OK, kerr);
        return false;
    default:
        note_fault(r, partition, kerr_name(kerr), kerr_text(kerr));
        return true;
    }
}

static void part_read(struct reader_part *p)
{
    struct topic_reader *r = p->reader;

    fetcher_remove(r->fetcher, &p->fetch);
    p->state = PART_READ;
    if (--r->left == 0)
        finish(r, E_OK, 0);
}

/* --- the ends --- */

static void begin_reading(struct reader_part *p)
{
    /* After a move of the ends, what was told already is not told again. */
    p->fetch.offset = MAX(p->first.offset, p->fetch.offset);
    p->end = p->last.offset;
    if (p->fetch.offset >= p->end) {
        part_read(p);
        return;
    }
    p->state = PART_READING;
    fetcher_add(p->reader->fetcher, &p->fetch);
}

static void note_unasked(struct reader_part *p, const struct ask *q)
{
    const struct topic_meta *t = p->reader->topic;
    bool leaderless = p->fetch.partition < t->parts_n && t->parts[p->fetch.partition].leader < 0;

    note_fault(p->reader, p->fetch.partition, leaderless ? kerr_name(KERR_LEADER_NOT_AVAILABLE) : err_name(q->error),
               leaderless ? "it has no leader; bring back a broker that has its replicas" : q->text);
}

static void on_asked(struct reader_part *p, const struct ask *q)
{
    struct topic_reader *r = p->reader;
    bool good = !q->error && !q->kerr;

    if (q->error)
        note_unasked(p, q);
    else if (q->kerr && may_pass(r, p->fetch.partition, API_LIST_OFFSETS, q->kerr))
        cluster_refresh(r->cluster);
    if (!good)
        p->end = -1;
    if (--p->asks_open)
        return;
    if (p->end >= 0) {
        begin_reading(p);
        return;
    }
    p->state = PART_OPEN;
    step_later(r);
}

static void on_first(struct ask *q)
{
    on_asked(container_of(q, struct reader_part, first), q);
}

static void on_last(struct ask *q)
{
    on_asked(container_of(q, struct reader_part, last), q);
}

static void ask_ends(struct reader_part *p)
{
    p->state = PART_ASKED;
    p->end = 0;
    p->asks_open = 2;
    asker_put(p->reader->asker, &p->first);
    asker_put(p->reader->asker, &p->last);
}

/* --- records --- */

static size_t find_aborted(const struct topic_reader *r, int64_t producer_id)
{
    size_t i = 0;

    while (i < r->aborted_n && r->aborted[i] != producer_id)
        i++;
    return i;
}

/* Aborted transactions that begin at or before `last` are skipped from here to their marker. */
static void activate(struct topic_reader *r, const struct fetched *f, int32_t *next, int64_t last)
{
    for (; *next < f->aborted_n && f->aborted[*next].first_offset <= last; ++*next) {
        if (r->aborted_n == r->aborted_room) {
            r->aborted_room = MAX(r->aborted_room * 2, 16);
            r->aborted = mem_resize(r->aborted, r->aborted_room, sizeof(*r->aborted));
        }
        r->aborted[r->aborted_n++] = f->aborted[*next].producer_id;
    }
}

/* The key of a control record: int16 version, int16 type. */
static void end_transaction(struct topic_reader *r, const struct batch *b, struct str area)
{
    struct record_reader records = record_reader_of(area, b->count);
    size_t at = find_aborted(r, b->producer_id);
    struct record rec;

    if (at < r->aborted_n && record_next(&records, &rec) && rec.key.n >= 4 &&
        load_u16(rec.key.p + 2) == MARKER_ABORT)
        r->aborted[at] = r->aborted[--r->aborted_n];
}

static enum err tell_records(struct reader_part *p, const struct batch *b, struct str area)
{
    struct topic_reader *r = p->reader;
    struct record_reader in;
    struct record rec;
    int codec = b->attributes & BATCH_CODEC_MASK;

    if (codec != CODEC_NONE) {
        enum err e;

        buf_clear(&r->area);
        e = compress_unpack(r->compress, codec, area, &r->area);
        if (e)
            return e;
        area = buf_str(&r->area);
    }
    in = record_reader_of(area, b->count);
    while (record_next(&in, &rec)) {
        const struct topic_record told = {
            .partition = p->fetch.partition,
            .offset = b->base_offset + rec.offset_delta,
            .timestamp_ms = b->attributes & BATCH_LOG_APPEND_TIME
                                ? b->max_timestamp
                                : b->base_timestamp + rec.timestamp_delta,
            .key = rec.key,
            .value = rec.value,
        };

        if (told.offset >= p->fetch.offset && told.offset < p->end)
            r->ops.on_record(r->ops.arg, &told);
    }
    return record_reader_end(&in);
}

static enum err take_batch(struct reader_part *p, const struct batch *b, const char *bytes)
{
    struct topic_reader *r = p->reader;
    struct str area = str_of(bytes + BATCH_HEADER_SIZE, b->size - BATCH_HEADER_SIZE);
    enum err e = E_OK;

    if (b->attributes & BATCH_CONTROL)
        end_transaction(r, b, area);
    else if (b->attributes & BATCH_TRANSACTIONAL && find_aborted(r, b->producer_id) < r->aborted_n)
        e = E_OK; /* aborted */
    else if (b->count > 0 && batch_last_offset(b) >= p->fetch.offset)
        e = tell_records(p, b, area);
    if (!e && batch_last_offset(b) >= p->fetch.offset) {
        p->fetch.offset = batch_last_offset(b) + 1;
        p->fetch.last_epoch = b->leader_epoch;
    }
    return e;
}

/* E_CORRUPT may pass, for the broker may read other bytes next time; what else is wrong stays so. */
static enum err take_batches(struct reader_part *p, const struct fetched *f)
{
    struct topic_reader *r = p->reader;
    struct str bytes = str_of(f->records.p, f->records.n);
    struct batch b;
    int32_t next = 0;

    r->aborted_n = 0;
    for (;;) {
        enum err e = E_MALFORMED;

        switch (batch_peek(bytes, &b)) {
        case BATCH_END:
            return E_OK;
        case BATCH_MALFORMED:
            return E_CORRUPT;
        case BATCH_LEGACY:
        case BATCH_UNKNOWN:
            return E_MALFORMED;
        case BATCH_V2:
            if (!batch_crc_ok(bytes.p, b.size))
                return E_CORRUPT;
            activate(r, f, &next, batch_last_offset(&b));
            e = take_batch(p, &b, bytes.p);
            break;
        }
        if (e)
            return e;
        bytes = str_part(bytes, b.size, bytes.n);
    }
}

static void on_fetch_error(struct reader_part *p, int32_t kerr)
{
    struct topic_reader *r = p->reader;

    if (kerr_class(API_FETCH, kerr) == K_RANGE) {
        fetcher_remove(r->fetcher, &p->fetch);
        p->fetch.last_epoch = -1;
        p->state = PART_OPEN;
        step_later(r);
        return;
    }
    if (may_pass(r, p->fetch.partition, API_FETCH, kerr))
        fetcher_resume(r->fetcher, &p->fetch, pause_ms(r));
}

static void on_fetched(struct fetch_part *fp, const struct fetched *f)
{
    struct reader_part *p = container_of(fp, struct reader_part, fetch);
    struct topic_reader *r = p->reader;
    int64_t wait_ms = 0;
    enum err e;

    if (r->over)
        return;
    if (f->error) {
        on_fetch_error(p, f->error);
        return;
    }
    if (!p->bounded && f->last_stable_offset >= 0) {
        p->end = MIN(p->end, f->last_stable_offset);
        p->bounded = true;
    }
    if (f->diverging) {
        fp->last_epoch = -1; /* the log was cut behind us: go on where it goes on now */
        fp->offset = CLAMP(f->diverging_end, 0, fp->offset);
    } else if (f->records.n) {
        e = take_batches(p, f);
        if (e == E_CORRUPT) {
            note_fault(r, fp->partition, err_name(e), err_text(e));
            wait_ms = pause_ms(r);
        } else if (e) {
            finish(r, e, 0);
            return;
        }
    }
    if (fp->offset >= p->end)
        part_read(p);
    else if (f->diverging || f->records.n)
        fetcher_resume(r->fetcher, fp, wait_ms);
}

/* --- the whole --- */

static void make_parts(struct topic_reader *r)
{
    r->parts_n = r->left = r->topic->parts_n;
    r->parts = mem_array((size_t)r->parts_n, sizeof(*r->parts));
    for (int32_t i = 0; i < r->parts_n; i++) {
        struct reader_part *p = &r->parts[i];

        p->reader = r;
        p->fetch = (struct fetch_part){
            .topic = r->topic, .partition = i, .last_epoch = -1, .on_fetched = on_fetched
        };
        asker_init_ask(&p->first);
        asker_init_ask(&p->last);
        p->first.topic = p->last.topic = r->topic;
        p->first.partition = p->last.partition = i;
        p->first.timestamp = ASK_EARLIEST;
        p->last.timestamp = ASK_LATEST;
        p->first.done = on_first;
        p->last.done = on_last;
    }
}

/* True when the topic's partitions are there. */
static bool look_at_metadata(struct topic_reader *r)
{
    const struct topic_meta *t = r->topic;

    if (r->parts)
        return true;
    if (!t->known)
        return false;
    if (!t->error && t->parts_n) {
        make_parts(r);
        return true;
    }
    if (timer_is_set(&r->again))
        return false;
    if (++r->looks >= ERROR_LOOKS) {
        if (may_pass(r, -1, API_METADATA, t->error ? t->error : KERR_LEADER_NOT_AVAILABLE))
            r->looks = 0;
        else
            return false;
    }
    cluster_refresh(r->cluster);
    step_later(r);
    return false;
}

static void leave(struct topic_reader *r)
{
    for (int32_t i = 0; i < r->parts_n; i++) {
        fetcher_remove(r->fetcher, &r->parts[i].fetch);
        asker_cancel(&r->parts[i].first);
        asker_cancel(&r->parts[i].last);
    }
    cluster_unlisten(&r->listener);
    timer_cancel(cluster_loop(r->cluster), &r->again);
}

static void step(struct task *t)
{
    struct topic_reader *r = container_of(t, struct topic_reader, step);

    if (r->over) {
        leave(r);
        r->ops.on_done(r->ops.arg, r->error, r->kerr); /* may have freed r */
        return;
    }
    if (!look_at_metadata(r))
        return;
    for (int32_t i = 0; i < r->parts_n; i++)
        if (r->parts[i].state == PART_OPEN)
            ask_ends(&r->parts[i]);
}

static void on_changed(struct cluster_listener *ls)
{
    struct topic_reader *r = container_of(ls, struct topic_reader, listener);

    if (!r->parts)
        task_wake(cluster_loop(r->cluster), &r->step);
}

static void on_again(struct timer *t)
{
    struct topic_reader *r = container_of(t, struct topic_reader, again);

    task_wake(cluster_loop(r->cluster), &r->step);
}

struct topic_reader *topic_reader_start(struct cluster *cl, struct str topic,
                                        const struct topic_reader_ops *ops)
{
    struct topic_reader *r = mem_new(sizeof(*r));

    loop_check(cluster_loop(cl));
    r->cluster = cl;
    r->ops = *ops;
    r->topic = cluster_watch(cl, topic);
    r->listener.changed = on_changed;
    cluster_listen(cl, &r->listener);
    task_init(&r->step, step);
    timer_init(&r->again, on_again);
    r->pool = pool_new(BLOCK_SIZE, POOL_SIZE);
    r->fetcher = fetcher_new(cl, r->pool, CLIENT_READ_COMMITTED);
    r->asker = asker_new(cl);
    r->compress = compress_new();
    buf_init(&r->area, AREA_MAX);
    task_wake(cluster_loop(cl), &r->step);
    return r;
}

void topic_reader_free(struct topic_reader **rp)
{
    struct topic_reader *r = *rp;

    if (!r)
        return;
    *rp = NULL;
    leave(r);
    task_cancel(&r->step);
    fetcher_free(&r->fetcher);
    asker_free(&r->asker);
    pool_free(&r->pool);
    compress_free(&r->compress);
    buf_fini(&r->area);
    cluster_unwatch(r->cluster, &r->topic);
    mem_free(r->aborted);
    mem_free(r->parts);
    mem_free(r);
}
