/* relay_records.c -- opens batches that cannot be relayed as they are, and merges neighbours that are small.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A small batch costs as much as a large one: a request holds one batch of a partition, five may be on their way.
 * So when one answer brings a row of small batches (a backlog: a mirror that keeps up gets one or two at a time), they
 * leave as one. Merged are only neighbours with nothing dropped between them that share format, codec, kind of time and
 * leader epoch, and of transactions only batches of the same producer; the flow writes for one origin. Records, their
 * order and their times stay as they are. A partition begins to merge when it meets COALESCE_ROW small batches in a row,
 * and ends when COALESCE_PATIENCE answers brought no two. Messages of v0 and v1 are always merged.
 *
 * The bytes of what is made lie in blocks of the pool, so that the budget knows of them.
 */
#include "mirror/relay_records.h"

#include "base/alloc.h"
#include "base/must.h"

#include <inttypes.h>
#include <string.h>

#define COALESCE_ROW      8
#define COALESCE_PATIENCE 16

/* Up to this many bytes a batch is small: beyond, opening it costs more than its request. */
static const size_t small_bytes[] = {
    [CODEC_NONE] = 4 * KiB, [CODEC_GZIP] = 512, [CODEC_SNAPPY] = 2 * KiB, [CODEC_LZ4] = 2 * KiB,
    [CODEC_ZSTD] = 1 * KiB,
};

/* What the record path gives back, one call per batch that it made. */
struct made {
    struct relay *relay;
    int32_t leader_epoch;
    enum outgoing_made kind;
    int32_t merged; /* source batches, for the first batch made */
    size_t size_max;     /* a record that is larger is not sent, nor what follows it */
    int64_t oversize_at; /* that record's source offset; -1: none */
    size_t oversize_bytes;
};

static struct slice copy_to_pool(struct relay *r, struct str bytes)
{
    struct block *b = pool_take(r->flow->pool, MAX(bytes.n, 1), 0);
    struct slice s;

    must_say(b, "no memory for a batch that was made");
    memcpy(b->data, bytes.p, bytes.n);
    s = slice_of(b, b->data, bytes.n);
    block_drop(&b);
    return s;
}

/* Before anything is made, so that the sequence is still that of the first record behind. */
static void on_skipped(void *arg, const struct record_run *runs, int32_t n)
{
    struct made *m = arg;
    const struct record_run *last = &runs[n - 1];

    if (!m->relay->skip_unseen)
        relay_map_skipped(m->relay, runs, n);
    relay_skipped(m->relay, last->index + last->count, last->source + last->count, m->leader_epoch);
}

static void on_made(void *arg, const struct record_path_batch *made)
{
    struct made *m = arg;
    struct outgoing *o;

    if (m->oversize_at >= 0)
        return;
    if (BATCH_HEADER_SIZE + made->payload.n > m->size_max) {
        m->oversize_at = made->source_first;
        m->oversize_bytes = BATCH_HEADER_SIZE + made->payload.n;
        return;
    }
    o = outgoing_new();
    memcpy(o->header, made->header, BATCH_HEADER_SIZE);
    o->payload = copy_to_pool(m->relay, made->payload);
    o->source_base = made->source_first;
    o->source_last = made->source_last;
    o->count = made->count;
    o->leader_epoch = m->leader_epoch;
    o->timestamp_ms = made->max_timestamp;
    o->made = m->kind;
    o->merged = m->merged;
    m->merged = 0;
    relay_map_note(o, made->runs, made->runs_n);
    relay_send(m->relay, o);
}

/* The record path over n neighbours. */
static enum err run(struct relay *r, const struct walk_step *last, const struct str *sources, size_t n)
{
    struct made m = { .relay = r, .leader_epoch = last->batch.leader_epoch, .merged = (int32_t)n,
                      .size_max = relay_size_max(r), .oversize_at = -1 };
    const struct record_path_options options = {
        .start = r->walked,
        .transforms = r->transforms,
        .skip_records = r->skip,
        .keep_append_time = true,
        .stamp = relay_stamp(r),
        .size_max = m.size_max == SIZE_MAX ? 0 : m.size_max,
        .recompress = r->limits.codec >= 0,
        .codec = r->limits.codec,
        .level = r->limits.level,
        .times = relay_times(r, &last->batch),
        .skipped = on_skipped,
        .emit = on_made,
        .arg = &m,
    };
    struct record_path_result result;
    enum err e;

    m.kind = n > 1 && last->batch.magic == 2 ? OUTGOING_COALESCED : OUTGOING_DECODED;
    if (!r->flow->record_path)
        r->flow->record_path = record_path_new();
    if (!r->limits_ms)
        relay_ask_limits(r, 0); /* until they are told, the source's codec will do */
    e = record_path_merge(r->flow->record_path, sources, n, &options, &result);
    if (e)
        return e;
    r->counts.retimed_records += (uint64_t)result.retimed;
    r->counts.filtered_records += (uint64_t)result.filtered;
    if (m.oversize_at >= 0)
        relay_oversize(r, m.oversize_at, m.oversize_bytes);
    return E_OK;
}

bool relay_goes_on(const struct relay *r)
{
    return r->state == RELAY_COPYING && r->oversize_at < 0;
}

bool relay_decode(struct relay *r, const struct walk_step *s)
{
    struct str source = str_of(s->p, s->batch.size);
    enum err e = run(r, s, &source, 1);

    if (e)
        relay_halt(r, err_name(e),
                   "the batch at offset %" PRId64 " of %.*s-%d of the source cannot be read: %s; look at it with "
                   "kafka-dump-log.sh, and delete the records up to it to go on behind it",
                   s->batch.base_offset, STR_ARG(r->topic), r->partition, err_text(e));
    return e == E_OK && relay_goes_on(r);
}

void relay_gather_begin(struct relay *r)
{
    struct flow *f = r->flow;

    if (!f->gather)
        f->gather = mem_new(sizeof(*f->gather));
    f->gather->n = f->gather->bytes = 0;
    f->gather->met = false;
}

void relay_gather_end(struct relay *r)
{
    if (r->flow->gather->met)
        r->answers_without = 0;
    else if (r->coalescing && ++r->answers_without >= COALESCE_PATIENCE)
        r->coalescing = false;
}

static bool may_merge(const struct relay *r, const struct walk_step *s)
{
    int codec = s->batch.attributes & BATCH_CODEC_MASK;

    if ((s->action != WALK_RELAY && s->action != WALK_DECODE) || transforms_drop_all(r->transforms))
        return false;
    if (s->batch.magic < 2)
        return true;
    if (r->jump > r->walked) /* another mirror's records follow those that are skipped: none of them may go out with these */
        return false;
    return r->flow->config->coalesce && s->batch.size <= small_bytes[codec] && !relay_must_retime(r, &s->batch);
}

/* Whether two neighbours may share a batch. */
static bool are_alike(const struct batch *a, const struct batch *b)
{
    const int16_t kind = BATCH_CODEC_MASK | BATCH_LOG_APPEND_TIME | BATCH_TRANSACTIONAL;

    return a->magic == b->magic && !((a->attributes ^ b->attributes) & kind) &&
           a->leader_epoch == b->leader_epoch &&
           (!(a->attributes & BATCH_TRANSACTIONAL) ||
            (a->producer_id == b->producer_id && a->producer_epoch == b->producer_epoch));
}

bool relay_gather(struct relay *r, const struct walk_step *s)
{
    struct gather *g = r->flow->gather;

    if (!may_merge(r, s))
        return false;
    if (g->n > 0 && (g->n == GATHER_BATCHES_MAX || g->bytes + s->batch.size > GATHER_BYTES_MAX ||
                     !are_alike(&g->steps[g->n - 1].batch, &s->batch)))
        return false;
    g->steps[g->n] = *s;
    g->sources[g->n++] = str_of(s->p, s->batch.size);
    g->bytes += s->batch.size;
    return true;
}

size_t relay_gathered(struct relay *r)
{
    size_t n = r->flow->gather->n;

    r->flow->gather->n = r->flow->gather->bytes = 0;
    return n;
}

/* The rule of the partition: see the top. */
static bool pays(struct relay *r, size_t n)
{
    struct gather *g = r->flow->gather;

    if (n < 2)
        return false;
    if (g->steps[0].batch.magic < 2)
        return true;
    if (n >= COALESCE_ROW)
        r->coalescing = true;
    g->met = true;
    return r->coalescing;
}

bool relay_merge(struct relay *r, size_t n)
{
    struct gather *g = r->flow->gather;

    /* What cannot be read is told by each batch on its own. */
    return pays(r, n) && run(r, &g->steps[n - 1], g->sources, n) == E_OK;
}
