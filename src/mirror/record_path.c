/* record_path.c -- opens a batch, leaves out what must go, and closes it again as one or several batches.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     source batch --unpack--> records --survey--> first kept, how many
 *                                 |
 *                                 +--encode with dense deltas--> area --pack--> packed --fits?--> made
 *                                          ^                                      |
 *                                          +-------- each half of the records <---+ no
 *
 * Always: what is left out stands at the front (offsets rise), so the kept records are a tail of
 * the source's and a position in it is a plain copy of the reader. Deltas get smaller or stay, so
 * an area is never larger than the records it was made from. Nothing is emitted before all is made.
 */
#include "mirror/record_path.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/must.h"
#include "wire/compress.h"
#include "wire/record.h"

#define PACKED_MAX                                                                                 \
    (3 * (size_t)RECORD_PATH_UNPACKED_MAX) /* no codec needs more, not even at worst */
#define KEPT_MEMORY (4 * MiB)              /* what a buffer may keep between batches */

/* A batch that was made, as places in the buffers, which still may move. */
struct made {
    struct record_path_batch b;
    size_t payload_at;
    size_t runs_at;
};

struct record_path {
    struct compress *compress;
    struct buf unpacked; /* the source's records */
    struct buf area;     /* records being encoded */
    struct buf packed;   /* payloads of all batches made */
    struct buf runs;     /* struct record_run, of all batches made */
    struct buf skipped;  /* struct record_run, of skipped records */
    struct buf made;     /* struct made */
};

/* Records that stand together in the source's area. */
struct range {
    struct record_reader at;
    int32_t n;
    size_t bytes;
};

/* One call of record_path_run. */
struct job {
    struct record_path *rp;
    const struct record_path_options *o;
    struct batch source;
    int codec;
    bool append_time;      /* records get the time of the batch */
    int32_t next_sequence; /* of the next batch made, or -1 */
};

struct record_path *record_path_new(void)
{
    struct record_path *rp = mem_new(sizeof(*rp));

    rp->compress = compress_new();
    buf_init(&rp->unpacked, RECORD_PATH_UNPACKED_MAX);
    buf_init(&rp->area, RECORD_PATH_UNPACKED_MAX);
    buf_init(&rp->packed, PACKED_MAX);
    buf_init(&rp->runs, SIZE_MAX);
    buf_init(&rp->skipped, SIZE_MAX);
    buf_init(&rp->made, SIZE_MAX);
    return rp;
}

void record_path_free(struct record_path **rp)
{
    if (!*rp)
        return;
    compress_free(&(*rp)->compress);
    buf_fini(&(*rp)->unpacked);
    buf_fini(&(*rp)->area);
    buf_fini(&(*rp)->packed);
    buf_fini(&(*rp)->runs);
    buf_fini(&(*rp)->skipped);
    buf_fini(&(*rp)->made);
    mem_free(*rp);
    *rp = NULL;
}

static void clear(struct buf *b)
{
    if (b->room > KEPT_MEMORY)
        buf_fini(b);
    else
        buf_clear(b);
}

static void clear_all(struct record_path *rp)
{
    clear(&rp->unpacked);
    clear(&rp->area);
    clear(&rp->packed);
    clear(&rp->runs);
    clear(&rp->skipped);
    clear(&rp->made);
}

static enum err job_open(struct job *j, struct str bytes, struct str *records)
{
    enum err e;

    if (batch_peek(bytes, &j->source) != BATCH_V2 || j->source.size != bytes.n)
        return E_INVALID;
    if (j->source.attributes & BATCH_CONTROL)
        return E_INVALID;
    if (!batch_crc_ok(bytes.p, bytes.n))
        return E_CORRUPT;
    j->codec = j->source.attributes & BATCH_CODEC_MASK;
    j->append_time = j->o->keep_append_time && (j->source.attributes & BATCH_LOG_APPEND_TIME);
    j->next_sequence = j->o->stamp.base_sequence;
    *records = str_part(bytes, BATCH_HEADER_SIZE, bytes.n);
    if (records->n > RECORD_PATH_UNPACKED_MAX)
        return E_LIMIT;
    if (j->codec == CODEC_NONE || j->source.count == 0)
        return E_OK;
    e = compress_unpack(j->rp->compress, j->codec, *records, &j->rp->unpacked);
    *records = buf_str(&j->rp->unpacked);
    return e;
}

static void note_run(struct buf *runs, size_t runs_at, int64_t source, int32_t index)
{
    struct record_run *last = NULL, run = { .source = source, .index = index, .count = 1 };

    if (runs->n > runs_at)
        last = (struct record_run *)(void *)(runs->p + runs->n) - 1;
    if (last && last->source + last->count == source)
        last->count++;
    else
        buf_put(runs, &run, sizeof(run));
}

/* Reads everything once, and finds the records that stay. */
static enum err survey(const struct job *j, struct str records, struct range *kept,
                       struct record_path_result *out)
{
    struct record_reader r = record_reader_of(records, j->source.count);
    int32_t last = -1;
    struct record rec;

    kept->at = r;
    while (record_next(&r, &rec)) {
        if (rec.offset_delta <= last || rec.offset_delta > j->source.last_offset_delta)
            return E_MALFORMED;
        last = rec.offset_delta;
        if (j->source.base_offset + rec.offset_delta < j->o->start)
            out->trimmed++;
        else if (out->skipped < j->o->skip_records)
            note_run(&j->rp->skipped, 0, j->source.base_offset + rec.offset_delta, (int32_t)out->skipped++);
        else
            continue;
        kept->at = r;
    }
    kept->n = kept->at.left;
    kept->bytes = reader_left(&kept->at.in);
    return record_reader_end(&r);
}

/* Encodes the records into the area; gives the newest time among them. */
static int64_t encode(const struct job *j, struct range range, struct made *m)
{
    int64_t newest = INT64_MIN;
    struct record rec;

    buf_clear(&j->rp->area);
    for (int32_t i = 0; i < range.n; i++) {
        int64_t offset, time;

        must(record_next(&range.at, &rec)); /* the survey has read it */
        offset = j->source.base_offset + rec.offset_delta;
        time = (int64_t)((uint64_t)j->source.base_timestamp + (uint64_t)rec.timestamp_delta);
        if (j->append_time) {
            time = j->source.max_timestamp;
            rec.timestamp_delta = 0;
        }
        note_run(&j->rp->runs, m->runs_at, offset, i);
        newest = MAX(newest, time);
        m->b.source_first = i == 0 ? offset : m->b.source_first;
        m->b.source_last = offset;
        rec.offset_delta = i;
        record_put(&j->rp->area, &rec);
    }
    must(!j->rp->area.bad);
    m->b.count = range.n;
    return newest;
}

static void seal(struct job *j, struct made *m, int64_t newest)
{
    const struct batch h = {
        .leader_epoch = -1,
        .attributes = (int16_t)j->codec,
        .last_offset_delta = m->b.count - 1,
        .base_timestamp = j->append_time ? j->source.max_timestamp : j->source.base_timestamp,
        .max_timestamp = newest,
        .producer_id = j->o->stamp.producer_id,
        .producer_epoch = j->o->stamp.producer_epoch,
        .base_sequence = j->next_sequence,
        .count = m->b.count,
    };
    struct str packed = buf_str(&j->rp->packed);

    batch_seal(&h, str_part(packed, m->payload_at, packed.n), m->b.header);
    m->b.payload.n = packed.n - m->payload_at;
    m->b.runs_n = (int32_t)((j->rp->runs.n - m->runs_at) / sizeof(struct record_run));
    if (j->next_sequence >= 0)
        j->next_sequence =
            (int32_t)(((uint32_t)j->next_sequence + (uint32_t)m->b.count) & INT32_MAX);
    buf_put(&j->rp->made, m, sizeof(*m));
}

/* Cuts a range of two records or more near the half of its bytes; both parts get some. */
static void cut(struct range whole, struct range *first, struct range *rest)
{
    struct record_reader at = whole.at;
    struct record rec;

    *first = (struct range){ .at = whole.at };
    *rest = whole;
    while (first->n < whole.n - 1) {
        size_t bytes;

        must(record_next(&at, &rec));
        bytes = (size_t)(at.in.p - whole.at.in.p);
        if (first->n > 0 && bytes > whole.bytes / 2)
            break;
        *first = (struct range){ .at = whole.at, .n = first->n + 1, .bytes = bytes };
        *rest = (struct range){ .at = at, .n = whole.n - first->n, .bytes = whole.bytes - bytes };
    }
}

/* Makes batches of the records of a range, which is halved until each part fits. Two levels down
 * a part has at most half of the bytes or is one record, so the depth is small. */
static enum err make(struct job *j, struct range range)
{
    struct made m = { .payload_at = j->rp->packed.n, .runs_at = j->rp->runs.n };
    int64_t newest = encode(j, range, &m);
    enum err e = compress_pack(j->rp->compress, j->codec, COMPRESS_LEVEL_DEFAULT,
                               buf_str(&j->rp->area), &j->rp->packed);
    size_t size = BATCH_HEADER_SIZE + j->rp->packed.n - m.payload_at;
    struct range first, rest;

    if (e)
        return e;
    if (range.n == 1 || j->o->size_max == 0 || size <= j->o->size_max) {
        seal(j, &m, newest);
        return E_OK;
    }
    j->rp->packed.n = m.payload_at;
    j->rp->runs.n = m.runs_at;
    cut(range, &first, &rest);
    e = make(j, first);
    return e ? e : make(j, rest);
}

static void emit_all(const struct job *j)
{
    struct record_path *rp = j->rp;
    size_t n = rp->made.n / sizeof(struct made);

    for (size_t i = 0; i < n; i++) {
        struct made *m = (struct made *)(void *)rp->made.p + i;

        m->b.payload.p = rp->packed.p + m->payload_at;
        m->b.runs = (const struct record_run *)(const void *)(rp->runs.p + m->runs_at);
        if (i == n - 1)
            m->b.source_last = batch_last_offset(&j->source);
        j->o->emit(j->o->arg, &m->b);
    }
}

enum err record_path_run(struct record_path *rp, const char *p, size_t size,
                         const struct record_path_options *o, struct record_path_result *out)
{
    struct record_path_result result = { 0 };
    struct job j = { .rp = rp, .o = o };
    struct range kept = { 0 };
    struct str records;
    enum err e;

    e = job_open(&j, str_of(p, size), &records);
    if (e)
        goto out;
    e = survey(&j, records, &kept, &result);
    if (e)
        goto out;
    if (kept.n > 0)
        e = make(&j, kept);
    if (e)
        goto out;
    result.made = (int32_t)(rp->made.n / sizeof(struct made));
    if (result.skipped && o->skipped)
        o->skipped(o->arg, (const struct record_run *)(const void *)rp->skipped.p,
                   (int32_t)(rp->skipped.n / sizeof(struct record_run)));
    emit_all(&j);
    *out = result;
out:
    clear_all(rp);
    return e;
}
