/* record_path.c -- opens batches, leaves out what must go, and closes them again as one batch or several.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     sources --unpack--> records --survey--> first kept of each, how many
 *                                 |
 *                                 +--encode with dense deltas--> area --pack--> packed --fits?--> made
 *                                          ^                                      |
 *                                          +-------- each half of the records <---+ no
 *
 * Always: what is trimmed or skipped stands at the front (offsets rise), so the kept records are in a tail of each
 * source's and a position in it is a plain copy of the reader. What a transform leaves out may stand anywhere: the survey
 * does not count it, and whoever takes records passes over it. Nothing is emitted before all is made.
 */
#include "mirror/record_path.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/must.h"
#include "wire/compress.h"
#include "wire/legacy.h"
#include "wire/record.h"

/* Deltas grow where records of several batches, or of other times, come together. */
#define AREA_MAX    (3 * (size_t)RECORD_PATH_UNPACKED_MAX)
#define PACKED_MAX  (3 * AREA_MAX) /* no codec needs more, not even at worst */
#define KEPT_MEMORY (4 * MiB)              /* what a buffer may keep between batches */

/* A batch that was made, as places in the buffers, which still may move. */
struct made {
    struct record_path_batch b;
    size_t payload_at;
    size_t runs_at;
};

struct record_path {
    struct compress *compress;
    struct buf unpacked; /* the sources' records */
    struct buf scratch;  /* of the unpacking of v0 and v1 */
    struct buf sources;  /* struct source */
    struct buf area;     /* records being encoded */
    struct buf packed;   /* payloads of all batches made */
    struct buf runs;     /* struct record_run, of all batches made */
    struct buf skipped;  /* struct record_run, of skipped records */
    struct buf made;     /* struct made */
    struct buf headers;  /* of one record that a transform has changed */
};

/* One batch that is being read. */
struct source {
    struct batch head;
    struct str records;        /* in the fetched bytes, or */
    size_t unpacked_at;        /* in `unpacked`, which still may move while others are opened */
    bool unpacked, append_time; /* append_time: its records get the time of the batch */
    struct record_reader at;   /* the first record that stays */
    int32_t kept;              /* from there on */
};

/* Records that stand together in the sources' areas. */
struct range {
    size_t source;
    struct record_reader at; /* in that one */
    int32_t n;
    size_t bytes;
};

/* One call of record_path_merge. */
struct job {
    struct record_path *rp;
    const struct record_path_options *o;
    struct source *sources;
    size_t sources_n;
    int codec, level;
    int64_t retimed;
    int32_t next_sequence; /* of the next batch made, or -1 */
};

struct record_path *record_path_new(void)
{
    struct record_path *rp = mem_new(sizeof(*rp));

    rp->compress = compress_new();
    buf_init(&rp->unpacked, RECORD_PATH_UNPACKED_MAX);
    buf_init(&rp->scratch, RECORD_PATH_UNPACKED_MAX);
    buf_init(&rp->sources, SIZE_MAX);
    buf_init(&rp->area, AREA_MAX);
    buf_init(&rp->packed, PACKED_MAX);
    buf_init(&rp->runs, SIZE_MAX);
    buf_init(&rp->skipped, SIZE_MAX);
    buf_init(&rp->made, SIZE_MAX);
    buf_init(&rp->headers, RECORD_PATH_UNPACKED_MAX);
    return rp;
}

void record_path_free(struct record_path **rp)
{
    if (!*rp)
        return;
    compress_free(&(*rp)->compress);
    buf_fini(&(*rp)->unpacked);
    buf_fini(&(*rp)->scratch);
    buf_fini(&(*rp)->sources);
    buf_fini(&(*rp)->area);
    buf_fini(&(*rp)->packed);
    buf_fini(&(*rp)->runs);
    buf_fini(&(*rp)->skipped);
    buf_fini(&(*rp)->made);
    buf_fini(&(*rp)->headers);
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
    clear(&rp->scratch);
    clear(&rp->sources);
    clear(&rp->area);
    clear(&rp->packed);
    clear(&rp->runs);
    clear(&rp->skipped);
    clear(&rp->made);
    clear(&rp->headers);
}

/* The records of a v2 batch, unpacked if they are packed. */
static enum err open_batch(const struct job *j, struct source *s, struct str bytes)
{
    int codec = s->head.attributes & BATCH_CODEC_MASK;

    if (s->head.attributes & BATCH_CONTROL)
        return E_INVALID;
    if (!batch_crc_ok(bytes.p, bytes.n))
        return E_CORRUPT;
    s->append_time = j->o->keep_append_time && (s->head.attributes & BATCH_LOG_APPEND_TIME);
    s->records = str_part(bytes, BATCH_HEADER_SIZE, bytes.n);
    if (s->records.n > RECORD_PATH_UNPACKED_MAX)
        return E_LIMIT;
    if (codec == CODEC_NONE || s->head.count == 0)
        return E_OK;
    s->unpacked = true;
    return compress_unpack(j->rp->compress, codec, s->records, &j->rp->unpacked);
}

static enum err open_source(const struct job *j, struct source *s, struct str bytes)
{
    struct record_path *rp = j->rp;
    enum batch_next kind = batch_peek(bytes, &s->head);
    enum err e;

    s->unpacked_at = rp->unpacked.n;
    if ((kind != BATCH_V2 && kind != BATCH_LEGACY) || s->head.size != bytes.n)
        return E_INVALID;
    if (kind == BATCH_V2) {
        e = open_batch(j, s, bytes);
    } else {
        s->unpacked = true;
        e = legacy_crc_ok(bytes.p, bytes.n)
                ? legacy_unpack(rp->compress, bytes.p, bytes.n, &rp->scratch, &rp->unpacked, &s->head)
                : E_CORRUPT;
    }
    if (!e && s->unpacked)
        s->records.n = rp->unpacked.n - s->unpacked_at;
    return e;
}

static enum err job_open(struct job *j, const struct str *sources, size_t n)
{
    int64_t last = -1;

    j->sources = (struct source *)(void *)buf_grow(&j->rp->sources, n * sizeof(struct source));
    j->sources_n = n;
    j->next_sequence = j->o->stamp.base_sequence;
    for (size_t i = 0; i < n; i++) {
        struct source *s = &j->sources[i];
        enum err e;

        *s = (struct source){ .unpacked = false };
        e = open_source(j, s, sources[i]);
        if (e)
            return e;
        if (s->head.base_offset <= last)
            return E_INVALID;
        last = batch_last_offset(&s->head);
    }
    for (size_t i = 0; i < n; i++)
        if (j->sources[i].unpacked)
            j->sources[i].records.p = buf_str(&j->rp->unpacked).p + j->sources[i].unpacked_at;
    j->codec = j->o->recompress ? j->o->codec : j->sources[0].head.attributes & BATCH_CODEC_MASK;
    j->level = j->o->recompress ? j->o->level : COMPRESS_LEVEL_DEFAULT;
    return E_OK;
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

/* Reads everything of one source once, and finds the records that stay. */
static enum err survey(const struct job *j, struct source *s, struct record_path_result *out)
{
    struct record_reader r = record_reader_of(s->records, s->head.count);
    int32_t last = -1;
    struct record rec;

    s->at = r;
    while (record_next(&r, &rec)) {
        if (rec.offset_delta <= last || rec.offset_delta > s->head.last_offset_delta)
            return E_MALFORMED;
        last = rec.offset_delta;
        if (s->head.base_offset + rec.offset_delta < j->o->start) {
            out->trimmed++;
        } else if (j->o->transforms && !transforms_keeps(j->o->transforms, &rec, &j->rp->headers)) {
            out->filtered++;
            continue;
        } else if (out->skipped < j->o->skip_records) {
            note_run(&j->rp->skipped, 0, s->head.base_offset + rec.offset_delta, (int32_t)out->skipped++);
        } else {
            s->kept++;
            continue;
        }
        s->at = r;
    }
    return record_reader_end(&r);
}

static enum err survey_all(const struct job *j, struct range *kept, struct record_path_result *out)
{
    for (size_t i = 0; i < j->sources_n; i++) {
        struct source *s = &j->sources[i];
        enum err e = survey(j, s, out);

        if (e)
            return e;
        kept->n += s->kept;
        kept->bytes += reader_left(&s->at.in);
    }
    kept->at = j->sources[0].at;
    return E_OK;
}

/* The next record of a range that has one; the survey has read it. */
static const struct source *take(const struct job *j, struct range *range, struct record *rec)
{
    do {
        while (range->at.left == 0)
            range->at = j->sources[++range->source].at;
        must(record_next(&range->at, rec));
    } while (j->o->transforms && !transforms_apply(j->o->transforms, rec, &j->rp->headers));
    return &j->sources[range->source];
}

static int64_t fit_time(struct job *j, int64_t time)
{
    const struct record_times *t = &j->o->times;

    if (!t->on || time == -1 || (time >= t->least && time <= t->most))
        return time;
    j->retimed++;
    return time < t->least ? t->below : t->above;
}

/* Encodes the records into the area; gives the time that their deltas count from. */
static int64_t encode(struct job *j, struct range range, struct made *m)
{
    int64_t base = 0;
    struct record rec;

    buf_clear(&j->rp->area);
    m->b.max_timestamp = INT64_MIN;
    for (int32_t i = 0; i < range.n; i++) {
        const struct source *s = take(j, &range, &rec);
        int64_t offset = s->head.base_offset + rec.offset_delta;
        int64_t time = s->append_time ? s->head.max_timestamp
                                      : (int64_t)((uint64_t)s->head.base_timestamp +
                                                  (uint64_t)rec.timestamp_delta);

        time = fit_time(j, time);
        if (i == 0) {
            base = s->append_time ? s->head.max_timestamp : s->head.base_timestamp;
            m->b.source_first = offset;
        }
        note_run(&j->rp->runs, m->runs_at, offset, i);
        m->b.max_timestamp = MAX(m->b.max_timestamp, time);
        m->b.source_last = offset;
        rec.timestamp_delta = (int64_t)((uint64_t)time - (uint64_t)base);
        rec.offset_delta = i;
        record_put(&j->rp->area, &rec);
    }
    m->b.count = range.n;
    return base;
}

static void seal(struct job *j, struct made *m, int64_t base)
{
    const struct batch h = {
        .leader_epoch = -1,
        .attributes = (int16_t)j->codec,
        .last_offset_delta = m->b.count - 1,
        .base_timestamp = base,
        .max_timestamp = m->b.max_timestamp,
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
static void cut(const struct job *j, struct range whole, struct range *first, struct range *rest)
{
    struct range at = whole;
    size_t bytes = 0;
    struct record rec;

    *first = whole;
    first->n = 0;
    while (first->n < whole.n - 1) {
        size_t more;

        (void)take(j, &at, &rec);
        more = record_size(&rec);
        if (first->n > 0 && bytes + more > whole.bytes / 2)
            break;
        bytes += more;
        first->n++;
        *rest = at;
    }
    first->bytes = bytes;
    rest->n = whole.n - first->n;
    rest->bytes = whole.bytes - MIN(bytes, whole.bytes);
}

/* Makes batches of the records of a range, which is halved until each part fits. Two levels down
 * a part has at most half of the bytes or is one record, so the depth is small. */
static enum err make(struct job *j, struct range range)
{
    struct made m = { .payload_at = j->rp->packed.n, .runs_at = j->rp->runs.n };
    int64_t retimed = j->retimed, base = encode(j, range, &m);
    struct range first, rest;
    size_t size;
    enum err e;

    if (j->rp->area.bad || j->rp->headers.bad)
        return E_LIMIT;
    e = compress_pack(j->rp->compress, j->codec, j->level, buf_str(&j->rp->area), &j->rp->packed);
    if (e)
        return e;
    size = BATCH_HEADER_SIZE + j->rp->packed.n - m.payload_at;
    if (range.n == 1 || j->o->size_max == 0 || size <= j->o->size_max) {
        seal(j, &m, base);
        return E_OK;
    }
    j->rp->packed.n = m.payload_at;
    j->rp->runs.n = m.runs_at;
    j->retimed = retimed;
    cut(j, range, &first, &rest);
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
            m->b.source_last = batch_last_offset(&j->sources[j->sources_n - 1].head);
        j->o->emit(j->o->arg, &m->b);
    }
}

enum err record_path_merge(struct record_path *rp, const struct str *sources, size_t n,
                           const struct record_path_options *o, struct record_path_result *out)
{
    struct record_path_result result = { 0 };
    struct job j = { .rp = rp, .o = o };
    struct range kept = { 0 };
    enum err e;

    must(n > 0);
    e = job_open(&j, sources, n);
    if (e)
        goto out;
    e = survey_all(&j, &kept, &result);
    if (e)
        goto out;
    if (kept.n > 0)
        e = make(&j, kept);
    if (e)
        goto out;
    result.made = (int32_t)(rp->made.n / sizeof(struct made));
    result.retimed = j.retimed;
    if (result.skipped && o->skipped)
        o->skipped(o->arg, (const struct record_run *)(const void *)rp->skipped.p,
                   (int32_t)(rp->skipped.n / sizeof(struct record_run)));
    emit_all(&j);
    *out = result;
out:
    clear_all(rp);
    return e;
}

enum err record_path_run(struct record_path *rp, const char *p, size_t size,
                         const struct record_path_options *o, struct record_path_result *out)
{
    struct str source = str_of(p, size);

    return record_path_merge(rp, &source, 1, o, out);
}
