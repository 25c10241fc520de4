/* relay_refusal.c -- what a broker's refusal means for a partition, and the words that tell a person what to do.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each text says what happened, which topic, partition and broker it is about, and what can be done; what the broker
 * itself says comes last, as it may be long.
 */
#include "base/log.h"
#include "mirror/flow_internal.h"
#include "mirror/flow_txn.h"

#include <inttypes.h>
#include <stdio.h>

#define PLACE_MAX  320
#define SAID_MAX   120 /* bytes of a broker's own words that are repeated */
#define ADVICE_MAX 260

/* "orders-0 at broker 3 of the target" */
static const char *place(const struct relay *r, bool target, char text[PLACE_MAX])
{
    const struct topic_meta *t = target ? r->target_meta : r->source_meta;
    struct str topic = target ? r->target_topic : r->topic;
    const char *side = target ? "target" : "source";
    int32_t leader = r->partition < t->parts_n ? t->parts[r->partition].leader : -1;

    if (leader < 0)
        snprintf(text, PLACE_MAX, "%.*s-%d of the %s", STR_ARG(topic), r->partition, side);
    else
        snprintf(text, PLACE_MAX, "%.*s-%d at broker %d of the %s", STR_ARG(topic), r->partition, leader, side);
    return text;
}

void relay_on_fetch_error(struct relay *r, const struct fetched *f)
{
    const char *code = kerr_name(f->error);
    char at[PLACE_MAX];

    switch (kerr_class(API_FETCH, f->error)) {
    case K_RANGE:
        r->out_of_range = f->fetch_offset;
        relay_restart(r);
        break;
    case K_DENIED:
        relay_halt(r, code, "%s must not be read: grant Read on it to the principal of this connection "
                   "(User:ANONYMOUS where the listener does not authenticate)", place(r, false, at));
        break;
    default:
        relay_fail(r, code, "reading %s at offset %" PRId64 ": %s%s", place(r, false, at), f->fetch_offset,
                   kerr_text(f->error), kerr_advice(f->error));
        break;
    }
}

static void refuse_order(struct relay *r)
{
    char name[400];

    r->order_refusals++;
    relay_name(r, name, sizeof(name));
    log_event(EV_SEQUENCE, kv_c("relay", name),
              kv_c("text", "the target expects another sequence; asking where it stands"));
    relay_fail(r, kerr_name(KERR_OUT_OF_ORDER_SEQUENCE_NUMBER),
               "the target's record of our sequence differs; it is being reconciled");
}

/* Which right is missing; only old brokers ask for one on the cluster. */
static void refuse_denied(struct relay *r, int32_t kerr, const char *where)
{
    bool cluster = kerr == KERR_CLUSTER_AUTHORIZATION_FAILED;

    relay_halt(r, kerr_name(kerr),
               "%s must not be written: grant %s to the principal of this connection (User:ANONYMOUS where the "
               "listener does not authenticate)",
               where, cluster ? "IdempotentWrite on the cluster" : "Write on the topic");
}

void relay_on_refused(struct produce_part *p, struct outgoing *o, int32_t kerr, struct str message)
{
    struct relay *r = container_of(p, struct relay, produce);
    const char *code = kerr_name(kerr);
    char at[PLACE_MAX];
    enum kerr_class class = kerr_class(API_PRODUCE, kerr);

    if (r->flow->txn && (class == K_ORDER || class == K_FENCED || class == K_REJOIN)) {
        flow_txn_fail(r->flow, code, kerr_text(kerr)); /* which takes the batch back */
        return;
    }
    (void)place(r, true, at);
    relay_note_refusal(r, o, class);
    if (kerr == KERR_INVALID_TIMESTAMP && relay_refused_time(r, o))
        return;
    switch (class) {
    case K_ORDER:
        refuse_order(r);
        break;
    case K_UNSURE: /* what was on its way gets time to arrive before we ask */
    case K_REFRESH:
        relay_fail(r, code,
                   "whether the batch at source offset %" PRId64 " was written to %s is not known; asking: %s%s",
                   o->source_base, at, kerr_text(kerr), kerr_advice(kerr));
        break;
    case K_SIZE:
        relay_refused_size(r, o, kerr);
        break;
    case K_DENIED:
        refuse_denied(r, kerr, at);
        break;
    case K_GONE:
        relay_fail(r, code, "%s is not there any more: %s; it is made again at the next look for topics", at,
                   kerr_text(kerr));
        break;
    default:
        relay_halt(r, code, "%s refuses the batch at source offset %" PRId64 ": %s%.*s%s%.*s", at,
                   o->source_base, kerr_text(kerr), ADVICE_MAX, kerr_advice(kerr), message.n ? "; it says: " : "",
                   STR_ARG(str_part(message, 0, SAID_MAX)));
        break;
    }
}

void relay_on_waiting(struct produce_part *p, struct outgoing *o, int32_t kerr, enum err e,
                      const char *text)
{
    struct relay *r = container_of(p, struct relay, produce);
    char at[PLACE_MAX];

    fault_set(&r->fault, loop_wall_ms(r->flow->loop), kerr ? kerr_name(kerr) : err_name(e),
              "writing the batch at source offset %" PRId64 " to %s is tried again: %s%s", o->source_base,
              place(r, true, at), kerr ? kerr_text(kerr) : text, kerr ? kerr_advice(kerr) : "");
}
