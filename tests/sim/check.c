/* check.c -- compares the logs of the target with the truth, record by record.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check_int.h"

#include "base/alloc.h"
#include "base/must.h"
#include "wire/compress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check *check_new(struct feed *f, struct sim_cluster *target, bool loose)
{
    struct check *c = mem_new(sizeof(*c));

    c->feed = f;
    c->target = target;
    c->loose = loose;
    check_sent_start(loose);
    c->compress = compress_new();
    buf_init(&c->area, 64 * MiB);
    for (int i = 0; i < SIM_TOPICS; i++)
        for (int j = 0; j < SIM_PARTS; j++)
            c->last[i][j] = (struct stored_last){ -1, -1, 0, false };
    return c;
}

struct sim_topic *check_copy_of(const struct check *c, const struct feed_topic *t)
{
    char name[200];

    snprintf(name, sizeof(name), "%s.%s", c->feed->cluster->name, t->topic->name);
    return broker_topic_find(c->target, str_c(name));
}

struct record_reader check_open_batch(struct check *c, const struct sim_batch *in, struct batch *b)
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

/* The truth that the next record of a copy must be, from `at` on: of what the source lost in one go some may be
 * missing, but nothing may follow what is missing. */
static size_t find_next(const struct feed_part *p, size_t at, uint64_t digest)
{
    while (at < p->n) {
        const struct truth *t = &p->truths[at];
        uint32_t loss = t->loss;

        if (t->state != TRUTH_ABORTED && t->state != TRUTH_OPEN && t->digest == digest)
            return at;
        if (t->state == TRUTH_ABORTED) {
            at++;
            continue;
        }
        if (t->state != TRUTH_LOST)
            break;
        while (at < p->n && (p->truths[at].state == TRUTH_ABORTED ||
                             (p->truths[at].state == TRUTH_LOST && p->truths[at].loss == loss)))
            at++;
    }
    return SIZE_MAX;
}

static void note_made(struct copy *copy, size_t truth)
{
    if (copy->seen == copy->room) {
        copy->room = MAX(copy->room * 2, 256);
        copy->made = mem_resize(copy->made, copy->room, sizeof(*copy->made));
    }
    copy->made[copy->seen++] = (uint32_t)truth;
    copy->truth = MAX(copy->truth, truth + 1);
}

static void compare(struct check *c, struct feed_topic *t, int32_t part, struct copy *copy,
                    uint64_t digest, int64_t at)
{
    struct feed_part *p = &t->parts[part];
    size_t truth;

    if (c->loose) {
        if (!is_known(p, digest))
            sim_fail("%s-%d: the record at target offset %" PRId64 " is not one of the source",
                     t->topic->name, part, at);
        return;
    }
    truth = find_next(p, copy->truth, digest);
    if (truth != SIZE_MAX) {
        note_made(copy, truth);
        return;
    }
    for (size_t i = 0; i < copy->truth; i++) {
        if (p->truths[i].digest != digest || !check_take_told(c, t->topic->name, part, p->truths[i].offset))
            continue;
        note_made(copy, i);
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
    if (copy->cuts != log->cuts) { /* its tail went: look again */
        copy->cuts = log->cuts;
        copy->cut_us = sim_now_us();
        copy->batch = copy->truth = copy->seen = 0;
    }
    for (; copy->batch < log->batches_n; copy->batch++) {
        struct batch b;
        struct record_reader in = check_open_batch(c, &log->batches[copy->batch], &b);
        struct record r;

        for (int32_t i = 0; record_next(&in, &r); i++)
            compare(c, t, part, copy, feed_digest(&r, b.base_timestamp + r.timestamp_delta),
                    b.base_offset + i);
        if (record_reader_end(&in))
            sim_fail("%s-%d: a batch at the target is not made of records", t->topic->name, part);
    }
}

/* What was read before the source lost it is written to the end, however long that takes. */
static void note_behind(const struct feed_part *p, struct copy *copy)
{
    for (size_t i = p->n; i-- > copy->truth;)
        if (p->truths[i].state == TRUTH_LOST) {
            copy->behind_us = sim_now_us();
            return;
        }
}

void check_note_anew(struct check *c, const struct feed_topic *t)
{
    for (int j = 0; j < SIM_PARTS; j++)
        c->copies[t - c->feed->topics][j].cut_us = sim_now_us();
}

void check_now(struct check *c)
{
    memset(c->faults, 0, sizeof(c->faults));
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        struct sim_topic *copy = check_copy_of(c, &c->feed->topics[i]);

        for (int32_t j = 0; copy && j < copy->parts_n; j++)
            if (c->feed->topics[i].parts[j].log)
                check_copy(c, &c->feed->topics[i], j, &copy->parts[j]);
        for (int32_t j = 0; j < SIM_PARTS; j++)
            note_behind(&c->feed->topics[i].parts[j], &c->copies[i][j]);
    }
    if (!c->loose)
        check_stored(c);
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
            if (left_of(c, i, j) || (c->feed->topics[i].parts[j].n && !check_copy_of(c, &c->feed->topics[i])))
                return false;
    return true;
}

void check_describe(struct check *c)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++)
        for (int32_t j = 0; j < c->feed->topics[i].topic->parts_n; j++)
            if (left_of(c, i, j))
                fprintf(stderr, "  %s-%d: %zu records are missing after %zu\n",
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
