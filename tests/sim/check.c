/* check.c -- compares the logs of the target with the truth, record by record.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"

#include "check_map.h"

#include "base/alloc.h"
#include "base/must.h"
#include "mirror/formats.h"
#include "mirror/state.h"
#include "wire/compress.h"
#include "wire/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far one copy was compared. */
struct copy {
    uint32_t cuts;
    size_t batch;  /* of the target's log, next */
    size_t truth;  /* next */
    uint64_t seen; /* records */
};

/* How far a partition of an internal topic was looked at. */
struct stored_seen {
    size_t batch;
    uint32_t cuts;
};

struct check {
    struct feed *feed;
    struct sim_cluster *target;
    bool loose;
    struct compress *compress;
    struct buf area;
    struct copy copies[SIM_TOPICS][SIM_PARTS];
    struct stored_seen pairs[SIM_PARTS], positions[SIM_PARTS];
};

struct check *check_new(struct feed *f, struct sim_cluster *target, bool loose)
{
    struct check *c = mem_new(sizeof(*c));

    c->feed = f;
    c->target = target;
    c->loose = loose;
    c->compress = compress_new();
    buf_init(&c->area, 64 * MiB);
    return c;
}

static struct sim_topic *copy_of(struct check *c, const struct feed_topic *t)
{
    char name[200];

    snprintf(name, sizeof(name), "%s.%s", c->feed->cluster->name, t->topic->name);
    return broker_topic_find(c->target, str_c(name));
}

/* The records of a stored batch; the area stays until the next call. */
static struct record_reader open_batch(struct check *c, const struct sim_batch *in, struct batch *b)
{
    must(batch_peek(str_of(in->bytes, in->n), b) == BATCH_V2);
    buf_clear(&c->area);
    if (compress_unpack(c->compress, b->attributes & BATCH_CODEC_MASK,
                        str_of(in->bytes + BATCH_HEADER_SIZE, in->n - BATCH_HEADER_SIZE), &c->area))
        sim_fail("a batch at the target cannot be unpacked");
    return record_reader_of(buf_str(&c->area), b->count);
}

/* Any truth of the partition will do: order is not what is looked at. */
static bool is_known(const struct feed_part *p, uint64_t digest)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->truths[i].digest == digest && p->truths[i].state != TRUTH_OPEN)
            return true;
    return false;
}

static void compare(struct check *c, struct feed_topic *t, int32_t part, struct copy *copy,
                    uint64_t digest, int64_t at)
{
    struct feed_part *p = &t->parts[part];

    if (c->loose) {
        if (!is_known(p, digest))
            sim_fail("%s-%d: the record at target offset %" PRId64 " is not one of the source",
                     t->topic->name, part, at);
        return;
    }
    while (copy->truth < p->n && p->truths[copy->truth].state == TRUTH_ABORTED)
        copy->truth++;
    if (copy->truth < p->n && p->truths[copy->truth].state == TRUTH_THERE &&
        p->truths[copy->truth].digest == digest) {
        copy->truth++;
        return;
    }
    for (size_t i = 0; i < p->n; i++)
        if (p->truths[i].digest == digest)
            sim_fail("%s-%d: target offset %" PRId64 " holds source offset %" PRId64 " (state %d), not %" PRId64
                     "%s", t->topic->name, part, at, p->truths[i].offset, p->truths[i].state,
                     copy->truth < p->n ? p->truths[copy->truth].offset : -1,
                     i < copy->truth ? ": twice" : ": some are lost");
    sim_fail("%s-%d: the record at target offset %" PRId64 " is not one of the source", t->topic->name,
             part, at);
}

static void check_copy(struct check *c, struct feed_topic *t, int32_t part, struct sim_part *log)
{
    struct copy *copy = &c->copies[t - c->feed->topics][part];

    feed_sync(&t->parts[part]);
    if (copy->cuts != log->cuts) /* its tail went: look again */
        *copy = (struct copy){ .cuts = log->cuts };
    for (; copy->batch < log->batches_n; copy->batch++) {
        struct batch b;
        struct record_reader in = open_batch(c, &log->batches[copy->batch], &b);
        struct record r;

        for (int32_t i = 0; record_next(&in, &r); i++, copy->seen++)
            compare(c, t, part, copy, feed_digest(&r, b.base_timestamp + r.timestamp_delta),
                    b.base_offset + i);
        if (record_reader_end(&in))
            sim_fail("%s-%d: a batch at the target is not made of records", t->topic->name, part);
    }
}

/* Records that a pair vouches for. */
static int64_t count_before(const struct feed_part *p, int64_t offset)
{
    int64_t n = 0;

    for (size_t i = 0; i < p->n && p->truths[i].offset < offset; i++)
        n += p->truths[i].state == TRUTH_THERE;
    return n;
}

static void check_pair(struct check *c, const struct state_record *s)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        struct feed_topic *t = &c->feed->topics[i];
        struct sim_topic *copy = copy_of(c, t);
        struct sim_part *log;
        int64_t want;

        if (!str_eq(s->topic, str_c(t->topic->name)))
            continue;
        if (!copy || s->partition >= copy->parts_n)
            sim_fail("a pair of %s-%d without a copy", t->topic->name, s->partition);
        log = &copy->parts[s->partition];
        want = count_before(&t->parts[s->partition], s->pair.source);
        if (s->pair.target > log->high_watermark || want != s->pair.target)
            sim_fail("%s-%d: the pair (%" PRId64 ", %" PRId64 ") is stored, but %" PRId64
                     " records come before it and the target's high watermark is %" PRId64,
                     t->topic->name, s->partition, s->pair.source, s->pair.target, want,
                     log->high_watermark);
        check_map(t->topic->name, &t->parts[s->partition], s);
    }
}

/* MirrorMaker's position: what lies before it is in the copy, and acknowledged. */
static void check_position(struct check *c, const struct position_key *k, int64_t next)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        struct feed_topic *t = &c->feed->topics[i];
        struct sim_topic *copy = copy_of(c, t);
        int64_t want;

        if (!str_eq(k->topic, str_c(t->topic->name)))
            continue;
        want = count_before(&t->parts[k->partition], next);
        if (!copy || k->partition >= copy->parts_n || copy->parts[k->partition].high_watermark < want)
            sim_fail("%s-%d: position %" PRId64 " is stored, ahead of what is acknowledged",
                     t->topic->name, k->partition, next);
    }
}

static void check_record(struct check *c, const struct record *r, struct arena *arena)
{
    struct state_record s;
    struct position_key k;
    int64_t offset;

    arena_reset(arena);
    if (!state_parse(r->key, r->value, arena, &s)) {
        if (s.kind == STATE_PAIR && !s.removed)
            check_pair(c, &s);
    } else if (!formats_parse_position_key(r->key, arena, &k) &&
               !formats_parse_position_value(r->value, &offset)) {
        check_position(c, &k, offset + 1);
    }
}

/* What the mirror has stored in one of its own topics since the last look. */
static void check_stored(struct check *c, const char *kind, struct stored_seen *seen)
{
    char name[200];
    struct sim_topic *t;
    struct arena arena;

    snprintf(name, sizeof(name), "%s.%s.internal", kind, c->feed->cluster->name);
    t = broker_topic_find(c->target, str_c(name));
    arena_init(&arena, 1 * MiB);
    for (int32_t i = 0; t && i < t->parts_n; i++) {
        struct sim_part *log = &t->parts[i];

        if (seen[i].cuts != log->cuts)
            seen[i].batch = 0;
        seen[i].cuts = log->cuts;
        for (; seen[i].batch < log->batches_n; seen[i].batch++) {
            struct batch b;
            struct record_reader in = open_batch(c, &log->batches[seen[i].batch], &b);
            struct record r;

            while (record_next(&in, &r))
                check_record(c, &r, &arena);
        }
    }
    arena_fini(&arena);
}

void check_now(struct check *c)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        struct sim_topic *copy = copy_of(c, &c->feed->topics[i]);

        for (int32_t j = 0; copy && j < copy->parts_n; j++)
            if (c->feed->topics[i].parts[j].log)
                check_copy(c, &c->feed->topics[i], j, &copy->parts[j]);
    }
    if (c->loose)
        return;
    check_stored(c, "mm2-heliostat", c->pairs);
    check_stored(c, "mm2-offsets", c->positions);
}

static size_t left_of(const struct check *c, int32_t topic, int32_t part)
{
    const struct feed_part *p = &c->feed->topics[topic].parts[part];
    size_t left = 0;

    for (size_t i = c->copies[topic][part].truth; i < p->n; i++)
        left += p->truths[i].state == TRUTH_THERE;
    return left;
}

bool check_is_complete(struct check *c)
{
    check_now(c);
    for (int32_t i = 0; i < c->feed->topics_n; i++)
        for (int32_t j = 0; j < c->feed->topics[i].topic->parts_n; j++)
            if (left_of(c, i, j))
                return false;
    return true;
}

void check_describe(struct check *c)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++)
        for (int32_t j = 0; j < c->feed->topics[i].topic->parts_n; j++)
            if (left_of(c, i, j))
                fprintf(stderr, "  %s-%d: %zu records are missing after %" PRIu64 "\n",
                        c->feed->topics[i].topic->name, j, left_of(c, i, j), c->copies[i][j].seen);
}

uint64_t check_records(const struct check *c)
{
    uint64_t n = 0;

    for (int32_t i = 0; i < c->feed->topics_n; i++)
        for (int32_t j = 0; j < SIM_PARTS; j++)
            n += c->copies[i][j].seen;
    return n;
}
