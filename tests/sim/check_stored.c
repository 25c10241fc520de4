/* check_stored.c -- pairs and positions that the mirror stored, and what it told in its log.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The pair (S, T) says: the records before S, and no others, are those before T. A position says the first half. Who
 * has just lost records, at either end, is not judged for a while: what the mirror stores was true before. Neither goes
 * back, whoever stores it: of two mirrors the one whose turn is over stores nothing more. And no position is there before
 * a pair that covers it.
 */
#include "check_int.h"

#include "check_map.h"

#include "base/alloc.h"
#include "base/log.h"
#include "mirror/formats.h"
#include "mirror/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_US    (30 * SIM_S)
#define FAULTS_MOST 15 /* of one partition between two looks */

static struct check *judge; /* who hears of events; the linker lets them pass here */

/* Records of the truth that are there and whose offset says that a pair or a position covers them, but which are not
 * among the first `made` of the copy, or the reverse; -1: none. */
static int64_t find_wrong(const struct feed_part *p, const struct copy *copy, int64_t source, size_t made)
{
    size_t border = made > 0 && made <= copy->seen ? (size_t)copy->made[made - 1] + 1 : 0;

    for (size_t i = 0; i < p->n; i++) {
        const struct truth *t = &p->truths[i];

        if (t->state == TRUTH_THERE && (t->offset < source) != (i < border))
            return t->offset;
    }
    return -1;
}

static bool is_judged(const struct feed_part *p, const struct copy *copy)
{
    return (!p->lost_us || sim_now_us() - p->lost_us > GRACE_US) &&
           (!copy->cut_us || sim_now_us() - copy->cut_us > GRACE_US) &&
           (!copy->behind_us || sim_now_us() - copy->behind_us > GRACE_US);
}

/* What was read of a topic that was made anew is written to the end, however long that takes. */
static bool is_older(const struct pair *p, const struct sim_topic *now)
{
    return !state_id_is_zero(&p->topic_id) && memcmp(&p->topic_id, &now->id, sizeof(now->id)) != 0;
}

static void check_pair(struct check *c, const struct state_record *s)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        struct feed_topic *t = &c->feed->topics[i];
        struct sim_topic *log = check_copy_of(c, t);
        struct copy *copy = &c->copies[i][s->partition];
        int64_t wrong;

        if (!str_eq(s->topic, str_c(t->topic->name)))
            continue;
        if (s->pair.source < c->last[i][s->partition].pair && !t->parts[s->partition].lost_us && !copy->cut_us)
            sim_fail("%s-%d: the pair (%" PRId64 ", %" PRId64 ") is stored after one of source offset %" PRId64,
                     t->topic->name, s->partition, s->pair.source, s->pair.target, c->last[i][s->partition].pair);
        c->last[i][s->partition].pair = s->pair.source;
        c->last[i][s->partition].covered = MAX(c->last[i][s->partition].covered,
                                               MAX(s->pair.source, MAX(s->pair.reserved, s->pair.passed)));
        c->last[i][s->partition].older = is_older(&s->pair, t->topic);
        if (c->last[i][s->partition].older || !is_judged(&t->parts[s->partition], copy))
            continue;
        if (!log || s->partition >= log->parts_n)
            continue; /* deleted */
        if (s->pair.target > log->parts[s->partition].high_watermark)
            sim_fail("%s-%d: the pair (%" PRId64 ", %" PRId64 ") is stored, but the target's high watermark is %"
                     PRId64, t->topic->name, s->partition, s->pair.source, s->pair.target,
                     log->parts[s->partition].high_watermark);
        wrong = find_wrong(&t->parts[s->partition], copy, s->pair.source, (size_t)s->pair.target);
        if (wrong >= 0)
            sim_fail("%s-%d: the pair (%" PRId64 ", %" PRId64 ") is stored, and wrong about source offset %" PRId64,
                     t->topic->name, s->partition, s->pair.source, s->pair.target, wrong);
        if (!t->parts[s->partition].lost_us && !copy->cut_us)
            check_map(t->topic->name, &t->parts[s->partition], s);
    }
}

/* MirrorMaker's position: what lies before it is in the copy, and acknowledged. */
static void check_position(struct check *c, const struct position_key *k, int64_t next)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        struct feed_topic *t = &c->feed->topics[i];
        struct feed_part *p = &t->parts[k->partition];
        struct copy *copy = &c->copies[i][k->partition];
        struct sim_topic *log = check_copy_of(c, t);

        if (!str_eq(k->topic, str_c(t->topic->name)))
            continue;
        if (next < c->last[i][k->partition].position && !p->lost_us && !copy->cut_us)
            sim_fail("%s-%d: position %" PRId64 " is stored after %" PRId64, t->topic->name, k->partition, next,
                     c->last[i][k->partition].position);
        c->last[i][k->partition].position = next;
        if (next > c->last[i][k->partition].covered)
            sim_fail("%s-%d: position %" PRId64 " is stored, and no pair that covers it: it would be taken for another mirror's",
                     t->topic->name, k->partition, next);
        if (c->last[i][k->partition].older || !is_judged(p, copy) || !log)
            continue; /* just now, or deleted */
        for (size_t j = 0; j < p->n; j++) {
            const struct truth *truth = &p->truths[j];
            bool there = k->partition < log->parts_n && j < copy->truth;

            if (truth->state == TRUTH_THERE && truth->offset < next && !there)
                sim_fail("%s-%d: position %" PRId64 " is stored, but source offset %" PRId64 " is not copied",
                         t->topic->name, k->partition, next, truth->offset);
        }
    }
}

static void check_record(struct check *c, const struct record *r, struct arena *arena)
{
    struct state_record s;
    struct position_key k;
    int64_t offset;

    arena_reset(arena);
    if (!state_parse(r->key, r->value, arena, &s)) {
        if (s.kind == STATE_PAIR && !s.removed && s.partition < SIM_PARTS)
            check_pair(c, &s);
    } else if (!formats_parse_position_key(r->key, arena, &k) &&
               !formats_parse_position_value(r->value, &offset)) {
        check_position(c, &k, offset + 1);
    }
}

/* A part of what was stored is no more: all is looked at again. */
static void look_again(struct check *c, struct stored_seen *seen)
{
    for (int32_t i = 0; i < SIM_PARTS; i++)
        seen[i].batch = 0;
    for (int i = 0; i < SIM_TOPICS; i++)
        for (int j = 0; j < SIM_PARTS; j++)
            *(seen == c->pairs ? &c->last[i][j].pair : &c->last[i][j].position) = -1;
}

static void check_topic(struct check *c, const char *kind, struct stored_seen *seen)
{
    char name[200];
    struct sim_topic *t;
    struct arena arena;

    snprintf(name, sizeof(name), "%s.%s.internal", kind, c->feed->cluster->name);
    t = broker_topic_find(c->target, str_c(name));
    arena_init(&arena, 1 * MiB);
    for (int32_t i = 0; t && i < t->parts_n; i++) {
        if (seen[i].cuts != t->parts[i].cuts)
            look_again(c, seen);
        seen[i].cuts = t->parts[i].cuts;
    }
    for (int32_t i = 0; t && i < t->parts_n; i++) {
        struct sim_part *log = &t->parts[i];

        for (; seen[i].batch < log->batches_n; seen[i].batch++) {
            struct batch b;
            struct record_reader in = check_open_batch(c, &log->batches[seen[i].batch], &b);
            struct record r;

            while (record_next(&in, &r))
                check_record(c, &r, &arena);
        }
    }
    arena_fini(&arena);
}

void check_stored(struct check *c)
{
    judge = c;
    check_topic(c, "mm2-heliostat", c->pairs);
    check_topic(c, "mm2-offsets", c->positions);
}

/* The offset behind the last record that must be there. */
static int64_t end_of(const struct feed_part *p)
{
    for (size_t i = p->n; i-- > 0;)
        if (p->truths[i].state == TRUTH_THERE)
            return p->truths[i].offset + 1;
    return 0;
}

void check_all_stored(struct check *c)
{
    check_now(c);
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        for (int32_t j = 0; j < SIM_PARTS; j++) {
            int64_t end = end_of(&c->feed->topics[i].parts[j]);

            if (c->last[i][j].position < end || c->last[i][j].pair < end)
                if (end > 0)
                    sim_fail("%s-%d: position %" PRId64 " and pair %" PRId64 " were stored at the stop, but %" PRId64
                             " was copied", c->feed->topics[i].topic->name, j, c->last[i][j].position,
                             c->last[i][j].pair, end);
        }
    }
}

/* --- what is told --- */

static const struct kv *find_kv(const struct kv *kvs, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(kvs[i].key, key) == 0)
            return &kvs[i];
    return NULL;
}

/* Offsets without a record from the pair that was stored last on to where the log begins now: what retention took is
 * counted as one record per offset, so as many come twice, and no more. */
static int64_t holes_before(const struct check *c, const char *topic, int32_t part, int64_t to)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        const struct feed_part *p = &c->feed->topics[i].parts[part];
        int64_t from = MAX(c->last[i][part].pair, 0), holes = to - from;

        if (strcmp(c->feed->topics[i].topic->name, topic) != 0 || p->cut_us || c->copies[i][part].cut_us)
            continue;
        for (size_t k = 0; k < p->n; k++) {
            const struct truth *t = &p->truths[k];

            holes -= t->offset >= from && t->offset < to && (t->state == TRUTH_THERE || t->expired);
        }
        return MAX(holes, 0);
    }
    return INT64_MAX; /* what the logs have lost besides is not judged */
}

static void note_told(struct check *c, bool twice, const struct kv *kvs, size_t n)
{
    struct str name = find_kv(kvs, n, "relay")->s;
    struct told *l;
    char text[200];
    char *space, *dash;

    if (c->told_n == c->told_room) {
        c->told_room = MAX(c->told_room * 2, 64);
        c->told = mem_resize(c->told, c->told_room, sizeof(*c->told));
    }
    l = &c->told[c->told_n++];
    *l = (struct told){ .twice = twice, .from = find_kv(kvs, n, "from_offset")->i, .to = find_kv(kvs, n, "to_offset")->i };
    if (twice)
        l->to = INT64_MAX; /* how far is not known where there are holes */
    snprintf(text, sizeof(text), "%.*s", STR_ARG(name)); /* "source->target topic0-1" */
    space = strrchr(text, ' ');
    dash = strrchr(text, '-');
    if (!space || !dash)
        return;
    *dash = '\0';
    snprintf(l->topic, sizeof(l->topic), "%s", space + 1);
    l->partition = (int32_t)strtol(dash + 1, NULL, 10);
    l->left = twice && str_starts(find_kv(kvs, n, "cause")->s, STR("retention")) ? holes_before(c, l->topic, l->partition, l->from) : INT64_MAX;
}

static bool tells(const struct told *l, bool twice, const char *topic, int32_t part, int64_t offset)
{
    return l->twice == twice && strcmp(l->topic, topic) == 0 && l->partition == part && l->from <= offset && offset <= l->to;
}

bool check_was_told(const struct check *c, const char *topic, int32_t part, int64_t offset)
{
    for (size_t i = 0; i < c->told_n; i++)
        if (tells(&c->told[i], false, topic, part, offset))
            return true;
    return false;
}

bool check_take_told(struct check *c, const char *topic, int32_t part, int64_t offset)
{
    for (size_t i = 0; i < c->told_n; i++) {
        if (!tells(&c->told[i], true, topic, part, offset) || c->told[i].left == 0)
            continue;
        c->told[i].left--;
        return true;
    }
    return false;
}

static bool was_made(const struct copy *copy, size_t truth)
{
    for (size_t i = 0; i < copy->seen; i++)
        if (copy->made[i] == truth)
            return true;
    return false;
}

/* A batch that was given up and reaches the target after retention took its records is counted for those that follow
 * (docs/invariants.md): the ledger then names as many wrong ones, and no fewer. */
static void check_part_losses(struct check *c, const char *topic, int32_t part, const struct feed_part *p,
                              const struct copy *copy)
{
    bool begun = false; /* what expired before the mirror had a position there, nobody can miss */
    int64_t late = 0, first = -1;

    for (size_t k = 0; k < p->n; k++) {
        bool made = was_made(copy, k), told = check_was_told(c, topic, part, p->truths[k].offset);

        begun = begun || made;
        if (made && told)
            late++;
        if (made || told || !begun || !p->truths[k].expired)
            continue;
        first = first < 0 ? p->truths[k].offset : first;
        late--;
    }
    if (late < 0 && first >= 0)
        sim_fail("%s-%d: source offset %" PRId64 " is lost, and nobody was told", topic, part, first);
}

void check_losses(struct check *c)
{
    for (int32_t i = 0; i < c->feed->topics_n; i++) {
        const struct feed_topic *t = &c->feed->topics[i];

        for (int32_t j = 0; j < SIM_PARTS; j++)
            if (!c->copies[i][j].cut_us && !t->parts[j].cut_us)
                check_part_losses(c, t->topic->name, j, &t->parts[j], &c->copies[i][j]);
    }
}

void check_excuse_halt(struct check *c, int64_t for_us)
{
    c->excused_us = MAX(c->excused_us, sim_now_us() + for_us);
}

/* Back-off keeps a partition in trouble from trying for ever. */
static void note_fault(struct check *c, struct str relay)
{
    uint8_t *n = &c->faults[str_hash(relay) % FAULT_SLOTS];

    if (++*n > FAULTS_MOST)
        sim_fail("%.*s has failed %d times in half a second", STR_ARG(relay), *n);
}

/* The linker puts this in the place of log_write. */
void __real_log_write(enum event ev, const struct kv *kvs, size_t count);
void __wrap_log_write(enum event ev, const struct kv *kvs, size_t count);

void __wrap_log_write(enum event ev, const struct kv *kvs, size_t count)
{
    if (judge && (ev == EV_LOSS || ev == EV_DUPLICATES))
        note_told(judge, ev == EV_DUPLICATES, kvs, count);
    if (judge && ev == EV_RELAY_FAULT)
        note_fault(judge, find_kv(kvs, count, "relay")->s);
    if (judge && ev == EV_RELAY_HALTED && !judge->loose && sim_now_us() > judge->excused_us)
        sim_fail("%.*s stopped for %.*s, which passes: %.*s", STR_ARG(find_kv(kvs, count, "relay")->s),
                 STR_ARG(find_kv(kvs, count, "code")->s), STR_ARG(find_kv(kvs, count, "text")->s));
    __real_log_write(ev, kvs, count);
}
