/* broker_log.c -- one partition's log: batches, high watermark, producer states, transactions, epochs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "broker.h"

#include "base/alloc.h"
#include "base/must.h"
#include "tally.h"
#include "wire/prim.h"

#include <string.h>

#define EXPIRATION_MS (86400 * INT64_C(1000))

static void on_replicated(struct sim_event *e)
{
    struct sim_part *p = container_of(e, struct sim_part, replicate);
    int64_t until_us = MAX(p->not_enough_until_us, p->behind_until_us);

    if (until_us > sim_now_us()) { /* the high watermark stands still (rules 2.1, 19) */
        sim_event_set(e, until_us - sim_now_us());
        return;
    }
    if (p->leader >= 0)
        log_replicated(p);
}

static void on_depart(struct sim_event *e)
{
    struct sim_part *p = container_of(e, struct sim_part, depart);
    int32_t to = p->departs_to;
    bool again = !p->departs_asked && sim_chance(50);

    p->departs_to = 0;
    p->departs_asked = false;
    if (!to || p->leader < 0 || !p->topic->cluster->brokers[to - 1].up)
        return;
    if (p->leader == to) {
        sim_listener_cut_all(&p->topic->cluster->brokers[to - 1].listener);
        return;
    }
    broker_move_leader(p, to);
    if (again) { /* and once more while somebody finds out what became of that write */
        p->departs_to = to % p->topic->cluster->brokers_n + 1;
        p->departs_asked = true;
    }
}

void log_init(struct sim_part *p, struct sim_topic *t, int32_t number)
{
    p->topic = t;
    p->number = number;
    p->cut_at = -1;
    p->replicate.fn = on_replicated;
    p->depart.fn = on_depart;
}

void log_replicated(struct sim_part *p)
{
    sim_event_cancel(&p->replicate);
    p->high_watermark = p->end;
    broker_poke(p->topic->cluster);
}

struct sim_pid *log_pid(struct sim_part *p, int64_t id, bool make)
{
    for (int i = 0; i < p->pids_n; i++)
        if (p->pids[i].id == id)
            return &p->pids[i];
    if (!make)
        return NULL;
    if (p->pids_n == SIM_PIDS) /* the oldest is forgotten: writers of internal topics take a new id each time */
        memmove(p->pids, p->pids + 1, (size_t)--p->pids_n * sizeof(p->pids[0]));
    p->pids[p->pids_n] = (struct sim_pid){ .id = id, .epoch = -1, .txn_first = -1 };
    return &p->pids[p->pids_n++];
}

static void note_seen(struct sim_pid *pid, const struct batch *b, int64_t base)
{
    int64_t last = ((int64_t)b->base_sequence + b->last_offset_delta) & INT32_MAX;

    if (pid->seen_n == SIM_REMEMBERED || pid->epoch != b->producer_epoch) {
        if (pid->epoch != b->producer_epoch)
            pid->seen_n = 0;
        else
            memmove(pid->seen, pid->seen + 1, (size_t)--pid->seen_n * sizeof(pid->seen[0]));
    }
    pid->epoch = b->producer_epoch;
    pid->seen[pid->seen_n++] =
        (struct sim_seen){ .first = b->base_sequence, .last = (int32_t)last, .base = base,
                           .timestamp = b->max_timestamp };
}

static void note_producer(struct sim_part *p, const struct batch *b, int64_t base)
{
    struct sim_pid *pid;

    if (b->producer_id < 0)
        return;
    pid = log_pid(p, b->producer_id, true);
    pid->timestamp = b->max_timestamp;
    if (b->attributes & BATCH_CONTROL) {
        pid->txn_first = -1;
        if (pid->epoch != b->producer_epoch)
            pid->seen_n = 0; /* what follows begins at 0 (rules 2.5) */
        pid->epoch = b->producer_epoch;
        return;
    }
    note_seen(pid, b, base);
    if (b->attributes & BATCH_TRANSACTIONAL && pid->txn_first < 0)
        pid->txn_first = base;
}

int64_t log_append(struct sim_part *p, struct str bytes)
{
    struct sim_batch *e;
    struct batch b;

    must(batch_peek(bytes, &b) == BATCH_V2 && b.size == bytes.n);
    if (p->batches_n == p->batches_room) {
        p->batches_room = MAX(p->batches_room * 2, 16);
        p->batches = mem_resize(p->batches, p->batches_room, sizeof(*p->batches));
    }
    e = &p->batches[p->batches_n++];
    *e = (struct sim_batch){ .base = p->end, .last = p->end + b.last_offset_delta, .epoch = p->epoch,
                             .n = bytes.n };
    e->bytes = mem_copy_str(bytes.p, bytes.n);
    store_u64(e->bytes, (uint64_t)e->base);
    store_u32(e->bytes + 12, (uint32_t)p->epoch);
    p->end = e->last + 1;
    note_producer(p, &b, e->base);
    if (!sim_event_is_set(&p->replicate))
        sim_event_set(&p->replicate, sim_between(0, p->topic->cluster->replicate_us));
    if (p->departs_to && !p->departs_asked)
        sim_event_set(&p->depart, 0);
    return e->base;
}

void log_abort(struct sim_part *p, int64_t producer_id, int64_t first, int64_t marker)
{
    if (p->aborted_n == p->aborted_room) {
        p->aborted_room = MAX(p->aborted_room * 2, 16);
        p->aborted = mem_resize(p->aborted, p->aborted_room, sizeof(*p->aborted));
    }
    p->aborted[p->aborted_n++] =
        (struct sim_aborted){ .producer_id = producer_id, .first = first, .marker = marker };
}

int64_t log_last_stable(const struct sim_part *p)
{
    int64_t at = p->high_watermark;

    for (int i = 0; i < p->pids_n; i++)
        if (p->pids[i].txn_first >= 0)
            at = MIN(at, p->pids[i].txn_first);
    return at;
}

size_t log_find(const struct sim_part *p, int64_t offset)
{
    size_t low = 0, high = p->batches_n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (p->batches[mid].last < offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int64_t log_epoch_end(const struct sim_part *p, int32_t epoch, int32_t *found)
{
    size_t i = p->batches_n;

    while (i > 0 && p->batches[i - 1].epoch > epoch)
        i--;
    /* Older than all: where the first begins, as if it were known. Newer than all: unknown. */
    *found = epoch > p->epoch ? -1 : epoch == p->epoch || i == 0 ? epoch : p->batches[i - 1].epoch;
    return i < p->batches_n ? p->batches[i].base : p->end;
}

/* Producer states follow the log (rules 2.5). */
static void rebuild_pids(struct sim_part *p)
{
    p->pids_n = 0;
    for (size_t i = 0; i < p->batches_n; i++) {
        struct batch b;

        must(batch_peek(str_of(p->batches[i].bytes, p->batches[i].n), &b) == BATCH_V2);
        note_producer(p, &b, p->batches[i].base);
    }
}

void log_truncate(struct sim_part *p, int64_t offset)
{
    must(offset >= p->high_watermark);
    if (offset >= p->end)
        return;
    p->cuts++;
    while (p->batches_n > 0 && p->batches[p->batches_n - 1].last >= offset) {
        struct sim_batch *b = &p->batches[--p->batches_n];

        p->end = b->base;
        mem_free(b->bytes);
    }
    rebuild_pids(p);
}

void log_lose(struct sim_part *p, int64_t offset)
{
    p->high_watermark = MIN(p->high_watermark, offset);
    log_truncate(p, offset);
    p->high_watermark = MIN(p->high_watermark, p->end);
    p->follower_mark = MIN(p->follower_mark, p->end);
    p->cut_at = p->cut_at < 0 ? p->end : MIN(p->cut_at, p->end);
    p->cut_epoch = p->epoch + 1;
}

void log_clear(struct sim_part *p)
{
    sim_event_cancel(&p->replicate);
    for (size_t i = 0; i < p->batches_n; i++)
        mem_free(p->batches[i].bytes);
    p->batches_n = p->aborted_n = 0;
    p->pids_n = 0;
    p->start = p->end = p->high_watermark = p->follower_mark = 0;
    p->epoch = p->old_epoch = 0; /* rules 4.5 */
    p->cut_at = -1;
    p->cuts++;
}

void log_forget(struct sim_part *p, int remembered)
{
    for (int i = 0; i < p->pids_n; i++) {
        struct sim_pid *pid = &p->pids[i];
        int drop = MAX(pid->seen_n - remembered, 0);

        if (drop)
            tally(TALLY_PRODUCERS_CUT);

        memmove(pid->seen, pid->seen + drop, (size_t)(pid->seen_n - drop) * sizeof(pid->seen[0]));
        pid->seen_n -= drop;
    }
}

void log_expire(struct sim_part *p)
{
    int kept = 0;

    for (int i = 0; i < p->pids_n; i++) {
        const struct sim_pid *pid = &p->pids[i];

        if (pid->txn_first >= 0 || pid->timestamp > sim_wall_ms() - EXPIRATION_MS)
            p->pids[kept++] = *pid;
        else if (tally(TALLY_PRODUCERS_GONE), true)
            sim_say("%s-%d forgets producer %lld", p->topic->name, p->number, (long long)pid->id);
    }
    p->pids_n = kept;
}

void log_mistake(struct sim_part *p)
{
    for (int i = 0; i < p->pids_n; i++) {
        struct sim_pid *pid = &p->pids[i];

        if (pid->seen_n == 0 || pid->txn_first >= 0)
            continue;
        tally(TALLY_MISTAKEN);
        sim_say("%s-%d is mistaken about producer %lld", p->topic->name, p->number, (long long)pid->id);
        pid->seen[pid->seen_n - 1].last = (int32_t)((pid->seen[pid->seen_n - 1].last + sim_between(100000, 1000000)) & INT32_MAX);
    }
}
