/* relay_tail.c -- counts our batches at the target's end where the broker does not say what it remembers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * DescribeProducers tells our last sequence at once. Where it finds nothing (the broker has forgotten the id: old
 * records, producer.id.expiration.ms) or is refused (it needs Read on the topic), the batch headers from the pair's
 * target offset to the end of the log are looked at, and what bears our id and epoch is counted: exact, whoever else
 * has written there. Where that is refused too, or the batches are gone, offsets are counted, and another writer's count
 * as ours; an event says so. Thread: the worker's.
 */
#include "base/log.h"
#include "mirror/flow_internal.h"

#include <inttypes.h>

#define TAIL_BLOCK (1 * MiB)
#define TAIL_POOL  (8 * MiB)

void relay_tail_stop(struct relay *r)
{
    if (r->flow->tail)
        fetcher_remove(r->flow->tail, &r->tail);
}

/* What came after the end was asked for has been looked at too, and whoever reads it finds it below the high watermark. */
static void finish(struct relay *r, bool known)
{
    if (known) {
        r->target_log_end = MAX(r->target_log_end, r->tail.offset);
        r->target_end = MAX(r->target_end, r->tail.offset);
    }
    relay_tail_stop(r);
    r->tail_known = known;
    relay_ask_source(r);
}

static void take_error(struct relay *r, int32_t kerr)
{
    enum kerr_class class = kerr_class(API_FETCH, kerr);
    char name[400];

    if (class != K_DENIED && class != K_RANGE) {
        relay_fail(r, kerr_name(kerr), "the end of the copy cannot be read: %s", kerr_text(kerr));
        return;
    }
    relay_name(r, name, sizeof(name));
    log_event(EV_SEQUENCE, kv_c("relay", name),
              kv_c("text", class == K_DENIED
                       ? "the copy may not be read, so what is beyond the stored pair is counted by offsets: another "
                         "writer's records would count as ours; grant Read on it"
                       : "the copy begins behind the stored pair (retention), so what is beyond it is counted by "
                         "offsets: another writer's records would count as ours"));
    finish(r, false);
}

/* The pair may stand in the middle of a batch that was made of several. */
static bool is_ours(const struct relay *r, const struct batch *b)
{
    return b->producer_id == r->pair.producer_id && b->producer_epoch == r->pair.epoch &&
           !(b->attributes & BATCH_CONTROL) && batch_last_offset(b) >= r->pair.target;
}

static void on_fetched(struct fetch_part *p, const struct fetched *f)
{
    struct relay *r = container_of(p, struct relay, tail);
    struct str bytes = str_of(f->records.p, f->records.n);
    enum batch_next next;
    struct batch b;

    if (f->error) {
        take_error(r, f->error);
        return;
    }
    if (f->diverging) {
        relay_fail(r, kerr_name(KERR_OFFSET_OUT_OF_RANGE), "the copy was cut at %" PRId64 " while its end was read",
                   f->diverging_end);
        return;
    }
    while ((next = batch_peek(bytes, &b)) == BATCH_V2) {
        if (is_ours(r, &b))
            r->tail_records += batch_last_offset(&b) + 1 - MAX(b.base_offset, r->pair.target);
        p->offset = MAX(p->offset, batch_last_offset(&b) + 1);
        p->last_epoch = b.leader_epoch;
        bytes = str_part(bytes, b.size, bytes.n);
    }
    if (next != BATCH_END)
        relay_fail(r, err_name(E_CORRUPT), "the end of the copy cannot be read at offset %" PRId64, p->offset);
    else if (p->offset >= r->target_log_end)
        finish(r, true);
    else if (f->records.n)
        fetcher_resume(r->flow->tail, p, 0);
}

bool relay_tail_start(struct relay *r)
{
    struct flow *f = r->flow;

    r->tail_known = false;
    r->tail_records = 0;
    if (!r->has_pair || r->pair.producer_id < 0 || r->producer_found || r->target_log_end <= r->pair.target)
        return false;
    if (!f->tail) {
        f->tail_pool = pool_new(TAIL_BLOCK, TAIL_POOL);
        f->tail = fetcher_new(f->target, f->tail_pool, CLIENT_READ_UNCOMMITTED);
    }
    r->tail = (struct fetch_part){ .topic = r->target_meta, .partition = r->partition, .offset = r->pair.target,
                                   .last_epoch = -1, .on_fetched = on_fetched };
    list_init(&r->tail.node);
    fetcher_add(f->tail, &r->tail);
    return true;
}
