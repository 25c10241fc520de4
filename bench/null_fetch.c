/* null_fetch.c -- fetches, with sessions as brokers keep them (KIP-227).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Answers are cut as Kafka cuts them: at the byte where the partition's or the answer's limit is reached,
 * in the middle of a batch too; only the first batch of an answer comes whole whatever its size. Partitions
 * that gave go behind those that did not.
 */
#include "null_api.h"

#include "base/alloc.h"
#include "wire/kerr.h"

#include <string.h>

struct wanted {
    struct null_topic *topic;
    int32_t partition;
    int64_t offset;
    int32_t bytes_max;
    bool told; /* the end of the log, in this session */
};

struct session {
    int32_t id, epoch;
    struct wanted *parts;
    size_t n, room;
};

void null_fetch_end(void **session)
{
    struct session *s = *session;

    if (!s)
        return;
    *session = NULL;
    mem_free(s->parts);
    mem_free(s);
}

static size_t find(const struct session *s, const struct null_topic *t, int32_t partition)
{
    size_t i = 0;

    while (i < s->n && (s->parts[i].topic != t || s->parts[i].partition != partition))
        i++;
    return i;
}

static void add(struct session *s, struct null_topic *t,
                const struct kafka_fetch_request_partition *p)
{
    size_t i = find(s, t, p->partition);

    if (!null_topic_part(t, p->partition))
        return;
    if (i == s->room) {
        s->room = s->room ? 2 * s->room : 16;
        s->parts = mem_resize(s->parts, s->room, sizeof(*s->parts));
    }
    if (i == s->n)
        s->parts[s->n++] = (struct wanted){ .topic = t, .partition = p->partition };
    s->parts[i].offset = p->fetch_offset;
    s->parts[i].bytes_max = p->partition_max_bytes;
}

static void forget(struct session *s, const struct null_topic *t, int32_t partition)
{
    size_t i = find(s, t, partition);

    if (i == s->n)
        return;
    memmove(&s->parts[i], &s->parts[i + 1], (s->n - i - 1) * sizeof(s->parts[0]));
    s->n--;
}

static void update(struct null_api *a, struct session *s, const struct kafka_fetch_request *q)
{
    for (int32_t i = 0; i < q->topics.n; i++) {
        struct null_topic *t =
            null_log_find(a->log, q->topics.at[i].topic, &q->topics.at[i].topic_id);

        for (int32_t j = 0; j < q->topics.at[i].partitions.n; j++)
            add(s, t, &q->topics.at[i].partitions.at[j]);
    }
    for (int32_t i = 0; i < q->forgotten_topics_data.n; i++) {
        const struct kafka_fetch_request_forgotten *f = &q->forgotten_topics_data.at[i];
        struct null_topic *t = null_log_find(a->log, f->topic, &f->topic_id);

        for (int32_t j = 0; j < f->partitions.n; j++)
            forget(s, t, f->partitions.at[j]);
    }
}

/* The session that the request speaks of; NULL: it has gone. */
static struct session *get_session(const struct kafka_fetch_request *q, void **session)
{
    static int32_t last_id;
    struct session *s = *session;

    if (q->session_epoch <= 0) {
        null_fetch_end(session);
        *session = s = mem_new(sizeof(*s));
        s->id = q->session_epoch == 0 ? ++last_id : 0;
        s->epoch = 1;
        return s;
    }
    if (!s || s->id != q->session_id || s->epoch != q->session_epoch)
        return NULL;
    s->epoch++;
    return s;
}

/* Bytes of the log from the batch on that holds the offset, and where that batch begins. */
static int64_t bytes_from(const struct null_api *a, const struct wanted *w, int64_t *first)
{
    const struct null_part *p = &w->topic->parts[w->partition];
    int64_t records = a->log->batch.records;

    *first = w->offset / records * records;
    if (!w->topic->full || w->offset >= p->end)
        return 0;
    return (p->end - *first) / records * (int64_t)a->log->batch.size;
}

static void put_part(struct null_api *a, struct kafka_fetch_response *r, const struct wanted *w,
                     size_t bytes)
{
    struct kafka_fetch_response_topic *t = NULL;
    struct kafka_fetch_response_partition *p;
    const struct null_part *log = &w->topic->parts[w->partition];

    for (int32_t i = 0; i < r->responses.n && !t; i++)
        if (!memcmp(&r->responses.at[i].topic_id, &w->topic->id, sizeof(w->topic->id)))
            t = &r->responses.at[i];
    if (!t) {
        t = &r->responses.at[r->responses.n++];
        codec_init(&kafka_fetch_response_topic_msg, t);
        t->topic = w->topic->name;
        t->topic_id = w->topic->id;
        t->partitions.at =
            arena_array(&a->arena, (size_t)w->topic->parts_n, sizeof(*t->partitions.at));
    }
    p = &t->partitions.at[t->partitions.n++];
    codec_init(&kafka_fetch_response_partition_msg, p);
    p->partition_index = w->partition;
    p->high_watermark = p->last_stable_offset = log->end;
    p->log_start_offset = log->start;
    p->aborted_transactions.n = -1;
    p->records.body = str_of("", bytes);
    if (w->offset < log->start || w->offset > log->end)
        p->error_code = KERR_OFFSET_OUT_OF_RANGE;
}

/* Who gave goes to the end of the line. */
static void rotate(struct session *s, size_t gave)
{
    struct wanted *line = mem_array(s->n, sizeof(*line));

    memcpy(line, s->parts + gave, (s->n - gave) * sizeof(*line));
    memcpy(line + s->n - gave, s->parts, gave * sizeof(*line));
    memcpy(s->parts, line, s->n * sizeof(*line));
    mem_free(line);
}

/* True when the answer brings records. The cuts of an answer come in the order of its topics: one topic has
 * content, so that is the order of the runs too. */
static bool collect(struct null_api *a, struct session *s, int32_t bytes_max,
                    struct kafka_fetch_response *r, struct null_answer *out)
{
    int64_t left = bytes_max;
    size_t gave = 0;

    for (size_t i = 0; i < s->n; i++) {
        struct wanted *w = &s->parts[i];
        int64_t first, have = bytes_from(a, w, &first);
        int64_t most = MIN(left, w->bytes_max);

        if (!out->runs_n)
            most = MAX(most, (int64_t)a->log->batch.size);
        have = out->runs_n < NULL_RUNS_MAX ? MIN(have, most) : 0;
        if (have > 0) {
            out->runs[out->runs_n++] = (struct null_run){ first, (size_t)have };
            left = MAX(left - have, 0);
            gave = i + 1;
        }
        if (have > 0 || !w->told)
            put_part(a, r, w, (size_t)have);
        w->told = true;
    }
    rotate(s, gave);
    return gave > 0;
}

void null_fetch(struct null_api *a, int version, const struct kafka_fetch_request *q,
                struct kafka_fetch_response *r, struct null_answer *out, void **session)
{
    struct session *s = get_session(q, session);

    (void)version;
    a->counts.fetches++;
    if (!s) {
        r->error_code = KERR_FETCH_SESSION_ID_NOT_FOUND;
        return;
    }
    update(a, s, q);
    r->session_id = s->id;
    r->responses.at = arena_array(&a->arena, NULL_TOPICS_MAX, sizeof(*r->responses.at));
    if (!collect(a, s, q->max_bytes, r, out) && !r->responses.n)
        out->hold_ms = q->max_wait_ms;
}
