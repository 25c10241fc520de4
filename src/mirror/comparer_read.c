/* comparer_read.c -- the records of a fetch answer, for a comparison.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/comparer_int.h"

#include "mirror/walk.h"
#include "wire/legacy.h"

static struct walk_aborted aborted_get(const void *list, int32_t i)
{
    const struct fetch_aborted *a = list;

    return (struct walk_aborted){ a[i].producer_id, a[i].first_offset };
}

/* The records of a batch, unpacked; *b becomes their head. */
static enum err open_batch(struct comparer *co, const char *p, struct batch *b, struct str *out)
{
    int codec = b->attributes & BATCH_CODEC_MASK;
    struct str payload = str_of(p + BATCH_HEADER_SIZE, b->size - MIN(b->size, BATCH_HEADER_SIZE));
    enum err e = E_OK;

    buf_clear(&co->area);
    if (b->magic < 2) {
        buf_clear(&co->scratch);
        e = legacy_unpack(co->compress, p, b->size, &co->scratch, &co->area, b);
        *out = buf_str(&co->area);
    } else if (codec == CODEC_NONE) {
        *out = payload;
    } else {
        e = compress_unpack(co->compress, codec, payload, &co->area);
        *out = buf_str(&co->area);
    }
    return e;
}

static enum err take_batch(struct comparer *co, struct comparer_side *s, const char *p, struct batch *b)
{
    struct record_reader in;
    struct record r;
    struct str area;
    enum err e = open_batch(co, p, b, &area);

    if (e)
        return e;
    s->append_time = s->append_time || b->attributes & BATCH_LOG_APPEND_TIME;
    in = record_reader_of(area, b->count);
    while (record_next(&in, &r)) {
        int64_t offset = b->base_offset + r.offset_delta;
        int64_t time_ms = b->attributes & BATCH_LOG_APPEND_TIME ? b->max_timestamp : b->base_timestamp + r.timestamp_delta;

        if (offset < s->next)
            continue;
        if (s->list.n == s->most || offset >= s->end)
            return E_OK;
        overlap_add(&s->list, &r, time_ms, offset);
        s->next = offset + 1;
    }
    return record_reader_end(&in);
}

const char *comparer_read(struct comparer *co, struct comparer_side *s, const struct fetched *f, bool committed,
                          const char **code)
{
    struct walk_step step;
    struct walk w = {
        .bytes = str_of(f->records.p, f->records.n),
        .start = s->next,
        .check_crcs = true,
        .aborted_list = f->aborted,
        .aborted_n = committed ? f->aborted_n : 0,
        .aborted_get = aborted_get,
    };

    while (s->list.n < s->most && s->next < s->end && walk_next(&w, &step)) {
        int64_t last = batch_last_offset(&step.batch);
        enum err e = E_OK;

        if (step.action == WALK_HALT || step.action == WALK_RETRY) {
            *code = step.code;
            return step.why;
        }
        if (step.action != WALK_DROP)
            e = take_batch(co, s, step.p, &step.batch);
        if (e) {
            *code = err_name(e);
            return err_text(e);
        }
        if (s->list.n < s->most)
            s->next = MAX(s->next, last + 1);
        s->fetch.last_epoch = step.batch.leader_epoch;
    }
    return NULL;
}
