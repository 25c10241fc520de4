/* check_sent.c -- what leaves the mirror: in the order of the source, and not before a broker wants it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The linker puts these functions in the place of those whose names they bear.
 */
#include "check_int.h"

#include "kafka/conn.h"
#include "kafka/produce_link.h"

#include <inttypes.h>

enum err __real_conn_send(struct conn *c, struct call *call);
enum err __wrap_conn_send(struct conn *c, struct call *call);
struct outgoing *__real_produce_part_take(struct produce_part *part);
struct outgoing *__wrap_produce_part_take(struct produce_part *part);

static bool offsets_may_be_wrong; /* a byte of an answer that no checksum covers */

void check_sent_start(bool loose)
{
    offsets_may_be_wrong = loose;
}

/* Throttle times are kept by who sends much. */
enum err __wrap_conn_send(struct conn *c, struct call *call)
{
    if ((call->api == API_PRODUCE || call->api == API_FETCH) && conn_throttled_until_ms(c) > 0)
        sim_fail("%s is sent a %s request at a time when it wants none", conn_peer(c), api_find(call->api)->name);
    return __real_conn_send(c, call);
}

/* The next batch of a partition is the oldest of those that wait, and younger than all in flight. */
struct outgoing *__wrap_produce_part_take(struct produce_part *part)
{
    struct outgoing *o = __real_produce_part_take(part);
    struct list_node *n;

    if (offsets_may_be_wrong)
        return o;
    LIST_EACH(n, &part->queue)
        if (container_of(n, struct outgoing, node)->source_base < o->source_base)
            sim_fail("the batch at source offset %" PRId64 " is sent, and an older one waits", o->source_base);
    LIST_EACH(n, &part->in_flight)
        if (container_of(n, struct outgoing, node)->source_base > o->source_base)
            sim_fail("the batch at source offset %" PRId64 " is sent after a younger one", o->source_base);
    return o;
}
