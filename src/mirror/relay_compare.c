/* relay_compare.c -- what another mirror has written to a copy is found by comparing records, and left out.
 * SPDX-License-Identifier: Apache-2.0
 *
 * MirrorMaker 2 stores positions once a minute; what it wrote since is in the target, and says so nowhere but by itself.
 * So a partition that has no pair yet, but a position of another mirror's or a copy with records, begins with a
 * comparison (comparer.h). Thread: the worker's.
 */
#include "base/alloc.h"
#include "base/log.h"
#include "mirror/comparer.h"
#include "mirror/flow_internal.h"

void relay_compare_stop(struct relay *r)
{
    if (!r->comparison)
        return;
    comparer_cancel(r->comparison);
    mem_free(r->comparison);
    r->comparison = NULL;
}

static void tell(const struct relay *r, const struct comparison *c, int64_t stored)
{
    char name[400];

    relay_name(r, name, sizeof(name));
    if (fault_is_set(&c->fault))
        log_event(EV_TAKEN_BLIND, kv_c("relay", name), kv_int("offset", stored), kv_c("code", c->fault.code),
                  kv_c("text", c->fault.text));
    else if (c->sum.undecided)
        log_event(EV_TAKEN_UNSURE, kv_c("relay", name), kv_int("offset", c->next),
                  kv_int("records", (int64_t)c->sum.undecided));
    if (c->next > stored || c->sum.repeats)
        log_event(EV_TAKEN_OVER, kv_c("relay", name), kv_int("stored", stored), kv_int("offset", c->next),
                  kv_int("found", (int64_t)c->sum.copied), kv_int("repeated_before", (int64_t)c->sum.repeats),
                  kv_int("others", (int64_t)c->sum.others));
}

static void on_compared(struct comparison *c)
{
    struct relay *r = c->arg;
    struct comparison was = *c;
    int64_t stored = r->compared_from;

    r->comparison = NULL;
    mem_free(c);
    if (fault_is_set(&was.fault) && !was.denied) {
        relay_fail(r, was.fault.code, "%s", was.fault.text);
        return;
    }
    if (was.open) {
        relay_fail(r, kerr_name(KERR_CONCURRENT_TRANSACTIONS),
                   "the copy ends in a transaction that another producer has left open: waiting for the coordinator to "
                   "end it; `heliostat takeover --fence` ends those of MirrorMaker 2 at once");
        return;
    }
    r->compared = true;
    tell(r, &was, stored);
    r->pair.source = was.next;
    if (was.next > stored)
        r->jump = was.next; /* the map knows nothing of what lies before */
    relay_ask_source(r);
}

/* Records that a transform has changed or left out are not those of the source any more. */
static void tell_transformed(struct relay *r, int64_t position)
{
    char name[400];

    r->compared = true;
    relay_name(r, name, sizeof(name));
    log_event(EV_TAKEN_BLIND, kv_c("relay", name), kv_int("offset", position), kv_c("code", "TRANSFORMS"),
              kv_c("text", "records of this copy are changed or left out by transforms, so the copy cannot be compared "
                           "with the source: goes on from the stored position"));
}

bool relay_compare(struct relay *r, int64_t position)
{
    struct flow *f = r->flow;
    struct comparison *c;

    if (r->compared)
        return false;
    if (r->transforms) {
        tell_transformed(r, position);
        return false;
    }
    if (r->target_end < r->target_log_end) {
        relay_await_replicas(r);
        return true;
    }
    r->unsettled = 0;
    if (!f->comparer)
        f->comparer = comparer_new(f->source, f->target, (int8_t)f->config->source.isolation_level);
    c = r->comparison = mem_new(sizeof(*c));
    c->source = r->source_meta;
    c->target = r->target_meta;
    c->partition = r->partition;
    c->position = r->compared_from = position;
    c->done = on_compared;
    c->arg = r;
    comparer_start(f->comparer, c);
    return true;
}
