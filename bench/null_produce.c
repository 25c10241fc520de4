/* null_produce.c -- takes batches, counts them and forgets them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "null_api.h"

#include "wire/batch.h"
#include "wire/kerr.h"

#include <inttypes.h>
#include <stdio.h>

/* Two lines tell a watcher when the data begins to come and when all of it is here. */
static void note_watched(struct null_api *a, const struct null_topic *t, int32_t records)
{
    int64_t was = a->counts.watched, now = was + records;

    if (!str_eq(t->name, a->watched))
        return;
    a->counts.watched = now;
    if (!was)
        printf("begin records=%" PRId64 "\n", now);
    if (was < a->watched_until && now >= a->watched_until)
        printf("done records=%" PRId64 "\n", now);
    fflush(stdout);
}

static int16_t take_batches(struct null_api *a, struct null_topic *t, struct null_part *p,
                            struct str bytes)
{
    struct batch b;

    while (batch_peek(bytes, &b) == BATCH_V2) {
        a->counts.batches++;
        a->counts.records += b.count;
        a->counts.bytes += (int64_t)b.size;
        if (a->check && !batch_crc_ok(bytes.p, b.size)) {
            a->counts.bad_batches++;
            return KERR_CORRUPT_MESSAGE;
        }
        p->end += b.last_offset_delta + 1;
        bytes = str_part(bytes, b.size, bytes.n);
        note_watched(a, t, b.count);
    }
    p->start = p->end;
    return bytes.n ? KERR_CORRUPT_MESSAGE : 0;
}

static void take_part(struct null_api *a, struct null_topic *t,
                      const struct kafka_produce_request_partition *q,
                      struct kafka_produce_response_partition *r)
{
    struct null_part *p = null_topic_part(t, q->index);

    codec_init(&kafka_produce_response_partition_msg, r);
    r->index = q->index;
    r->base_offset = -1;
    if (!p) {
        r->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    r->base_offset = p->end;
    r->error_code = take_batches(a, t, p, q->records.body);
    r->log_start_offset = p->start;
}

void null_produce(struct null_api *a, int version, const struct kafka_produce_request *q,
                  struct kafka_produce_response *r)
{
    (void)version;
    a->counts.produces++;
    r->responses.n = q->topic_data.n;
    r->responses.at = arena_array(&a->arena, (size_t)q->topic_data.n, sizeof(*r->responses.at));
    for (int32_t i = 0; i < q->topic_data.n; i++) {
        const struct kafka_produce_request_topic *qt = &q->topic_data.at[i];
        struct kafka_produce_response_topic *rt = &r->responses.at[i];
        struct null_topic *t = null_log_find(a->log, qt->name, &qt->topic_id);
        size_t n = (size_t)qt->partition_data.n;

        codec_init(&kafka_produce_response_topic_msg, rt);
        rt->name = qt->name;
        rt->topic_id = qt->topic_id;
        rt->partition_responses.n = qt->partition_data.n;
        rt->partition_responses.at =
            arena_array(&a->arena, n, sizeof(*rt->partition_responses.at));
        for (size_t j = 0; j < n; j++)
            take_part(a, t, &qt->partition_data.at[j], &rt->partition_responses.at[j]);
    }
}
