/* walk.c -- the ten-rule decision per batch.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/walk.h"

#include "wire/legacy.h"
#include "wire/prim.h"

static enum walk_action halt(struct walk_step *s, const char *code, const char *why)
{
    s->code = code;
    s->why = why;
    return WALK_HALT;
}

static enum walk_action retry(struct walk_step *s, const char *code, const char *why)
{
    s->code = code;
    s->why = why;
    return WALK_RETRY;
}

/* Moves the transactions that begin at or before `last` into the active set. */
static bool activate(struct walk *w, int64_t last)
{
    while (w->aborted_at < w->aborted_n) {
        struct walk_aborted a = w->aborted_get(w->aborted_list, w->aborted_at);

        if (a.first_offset > last)
            return true;
        if (w->active_n == WALK_ABORTED_MAX)
            return false;
        w->active[w->active_n++] = a.producer_id;
        w->aborted_at++;
    }
    return true;
}

static int32_t find_active(const struct walk *w, int64_t producer_id)
{
    for (int32_t i = 0; i < w->active_n; i++)
        if (w->active[i] == producer_id)
            return i;
    return -1;
}

/* An ABORT marker ends its producer's transaction. Control records are never compressed:
 * length, attributes, two deltas, key length, then the key: int16 version, int16 type. */
static void end_transaction(struct walk *w, const struct walk_step *s)
{
    struct reader r = reader_of(s->p + BATCH_HEADER_SIZE, s->batch.size - BATCH_HEADER_SIZE);
    int32_t at = find_active(w, s->batch.producer_id);
    int16_t type;

    (void)read_varint(&r);
    (void)read_i8(&r);
    (void)read_varlong(&r);
    (void)read_varint(&r);
    (void)read_varint(&r);
    (void)read_i16(&r);
    type = read_i16(&r);
    if (!r.bad && type == 0 && at >= 0)
        w->active[at] = w->active[--w->active_n];
}

/* Rules 2 to 10, for a whole v2 batch whose checksum holds. */
static enum walk_action decide(struct walk *w, struct walk_step *s)
{
    const struct batch *b = &s->batch;

    if (b->producer_id >= 0 && !activate(w, batch_last_offset(b)))
        return halt(s, "TOO_MANY_ABORTED", "more aborted transactions overlap than this version keeps");
    if (b->attributes & BATCH_CONTROL) {
        end_transaction(w, s);
        return WALK_DROP;
    }
    if (b->count == 0)
        return WALK_DROP;
    if ((b->attributes & BATCH_TRANSACTIONAL) && find_active(w, b->producer_id) >= 0)
        return WALK_DROP;
    if (batch_last_offset(b) < w->start)
        return WALK_DROP;
    if ((b->attributes & BATCH_CODEC_MASK) > CODEC_ZSTD)
        return halt(s, "UNKNOWN_CODEC", "a batch is compressed in a way that this version does not know");
    if (b->attributes & ~BATCH_KNOWN_BITS)
        return halt(s, "UNKNOWN_ATTRIBUTES", "a batch has attribute bits that this version does not know");
    if (b->base_offset < w->start)
        return WALK_DECODE;
    if (b->count != b->last_offset_delta + 1)
        return WALK_DECODE;
    if ((b->attributes & BATCH_LOG_APPEND_TIME) && w->keep_append_time)
        return WALK_DECODE;
    return WALK_RELAY;
}

static bool is_sane(const struct batch *b)
{
    return b->last_offset_delta >= 0 && b->count >= 0 && b->base_offset >= 0 &&
           b->count <= (int64_t)b->last_offset_delta + 1 &&
           b->base_offset <= INT64_MAX - b->last_offset_delta;
}

/* Messages of v0 and v1 know no transactions. */
static enum walk_action decide_legacy(const struct walk *w, struct walk_step *s)
{
    if (w->check_crcs && !legacy_crc_ok(s->p, s->batch.size))
        return retry(s, "CORRUPT_MESSAGE", "a fetched message does not match its checksum");
    if (s->batch.base_offset < 0 || s->batch.base_offset == INT64_MAX)
        return retry(s, "CORRUPT_MESSAGE", "a fetched message has an impossible offset");
    return s->batch.base_offset < w->start ? WALK_DROP : WALK_DECODE;
}

bool walk_next(struct walk *w, struct walk_step *out)
{
    struct walk_step s = { .action = WALK_DROP, .p = w->bytes.p };

    switch (batch_peek(w->bytes, &s.batch)) {
    case BATCH_END:
        return false;
    case BATCH_LEGACY:
        s.action = decide_legacy(w, &s);
        w->bytes = str_part(w->bytes, s.batch.size, w->bytes.n);
        break;
    case BATCH_UNKNOWN:
        s.action = halt(&s, "NEW_RECORD_FORMAT",
                        "the log holds batches of a format that this version does not know");
        break;
    case BATCH_MALFORMED:
        s.action = retry(&s, "CORRUPT_MESSAGE", "a fetched batch has an impossible length");
        break;
    case BATCH_V2:
        if (w->check_crcs && !batch_crc_ok(s.p, s.batch.size))
            s.action = retry(&s, "CORRUPT_MESSAGE", "a fetched batch does not match its checksum");
        else if (!is_sane(&s.batch))
            s.action = retry(&s, "CORRUPT_MESSAGE", "a fetched batch has an impossible header");
        else
            s.action = decide(w, &s);
        w->bytes = str_part(w->bytes, s.batch.size, w->bytes.n);
        break;
    }
    *out = s;
    return true;
}
