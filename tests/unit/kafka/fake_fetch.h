/* fake_fetch.h -- the reading half of fake_log.h: fetch sessions and long polls.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_KAFKA_FAKE_FETCH_H
#define TESTS_UNIT_KAFKA_FAKE_FETCH_H

#include "unit/kafka/fake_log.h"

#define FETCH_SESSIONS 8

struct fetch_wish {
    int32_t partition, max_bytes, epoch;
    int64_t offset;
    struct uuid id; /* zero below version 13 */
};

struct fetch_session {
    int32_t id, epoch;                   /* epoch expected next */
    struct fetch_wish wishes[LOG_PARTS]; /* in the order in which they are served */
    int wishes_n;
};

/* A poll that waits for data. */
struct fetch_held {
    struct fake *f;
    struct fake_request q; /* without the body */
    struct fetch_session *s;
    int64_t until_ms;
    int32_t max_bytes;
};

struct fetch_fake {
    struct fake_log *g;
    struct fetch_session sessions[FETCH_SESSIONS];
    int32_t last_id;
    struct fetch_held held[LOG_BROKERS];
    struct timer timer;
    bool refuse_sessions;
    int32_t error_next; /* of the next answer as a whole */
    int32_t preferred;  /* the leader sends readers there; 0: nobody */
    int64_t diverge_at; /* an end offset told once, to whoever reads partition 0; 0: not */
    bool aborted;       /* answers carry a list of aborted transactions, unsorted */
    /* What was seen. */
    uint32_t requests, listed, forgotten, fulls; /* listed: partitions named */
    uint32_t over[LOG_BROKERS];
    int version, max_wait_ms, min_bytes, max_bytes;
    int64_t answered_bytes;
};

static inline struct fetch_session *fetch_fake_session(struct fetch_fake *x, int32_t id)
{
    for (int i = 0; i < FETCH_SESSIONS; i++)
        if (id && x->sessions[i].id == id)
            return &x->sessions[i];
    return NULL;
}

static inline struct fetch_session *fetch_fake_open(struct fetch_fake *x, int32_t old)
{
    struct fetch_session *s = fetch_fake_session(x, old);

    for (int i = 0; !s && i < FETCH_SESSIONS; i++)
        if (!x->sessions[i].id)
            s = &x->sessions[i];
    if (!s)
        s = &x->sessions[x->last_id % FETCH_SESSIONS];
    *s = (struct fetch_session){ .id = ++x->last_id };
    return s;
}

static inline void fetch_fake_wish(struct fetch_session *s, const struct uuid *id,
                                   const struct kafka_fetch_request_partition *w)
{
    int i = 0;

    while (i < s->wishes_n && s->wishes[i].partition != w->partition)
        i++;
    s->wishes_n = MAX(s->wishes_n, i + 1);
    s->wishes[i] = (struct fetch_wish){ .partition = w->partition,
                                        .offset = w->fetch_offset,
                                        .max_bytes = w->partition_max_bytes,
                                        .epoch = w->current_leader_epoch,
                                        .id = *id };
}

static inline void fetch_fake_forget(struct fetch_session *s, int32_t partition)
{
    for (int i = 0; i < s->wishes_n; i++) {
        if (s->wishes[i].partition != partition)
            continue;
        memmove(&s->wishes[i], &s->wishes[i + 1],
                (size_t)(--s->wishes_n - i) * sizeof(s->wishes[0]));
        return;
    }
}

/* Bytes from the wish's offset on, cut where the limit is, as brokers do. */
static inline struct str fetch_fake_read(struct fake_log *g, const struct fetch_wish *w,
                                         size_t limit, bool whole)
{
    const struct log_part *p = &g->parts[w->partition];
    struct buf b;
    struct str out;
    size_t i = 0;

    while (i < p->batches_n && p->batches[i].last < w->offset)
        i++;
    if (i == p->batches_n)
        return STR_NULL;
    if (whole)
        limit = MAX(limit, p->batches[i].n);
    else if (limit < p->batches[i].n)
        return STR_NULL;
    buf_init(&b, 64 * MiB);
    for (; i < p->batches_n && b.n < limit; i++)
        buf_put(&b, p->batches[i].bytes, p->batches[i].n);
    out = arena_str(&g->arena, str_of(b.p, MIN(b.n, limit)));
    buf_fini(&b);
    return out;
}

static inline int32_t fetch_fake_error(struct fake_log *g, int32_t broker,
                                       const struct fetch_wish *w)
{
    struct log_part *p = log_part(g, w->partition);
    int32_t kerr;

    if (w->id.b[0] && w->id.b[0] != g->id.b[0])
        return KERR_UNKNOWN_TOPIC_ID;
    if (p->fetch_errors_n) {
        kerr = p->fetch_errors[0];
        memmove(p->fetch_errors, p->fetch_errors + 1, (size_t)--p->fetch_errors_n * sizeof(kerr));
        return kerr;
    }
    if (p->leader != broker && g->fetch->preferred != broker)
        return KERR_NOT_LEADER_OR_FOLLOWER;
    if (w->epoch >= 0 && w->epoch < p->epoch)
        return KERR_FENCED_LEADER_EPOCH;
    return w->offset < p->start || w->offset > p->end ? KERR_OFFSET_OUT_OF_RANGE : 0;
}

static inline void fetch_fake_part(struct fake_log *g, int32_t broker, const struct fetch_wish *w,
                                   struct kafka_fetch_response_partition *out)
{
    const struct log_part *p = log_part(g, w->partition);

    codec_init(&kafka_fetch_response_partition_msg, out);
    out->partition_index = w->partition;
    out->high_watermark = out->last_stable_offset = p->end;
    out->log_start_offset = p->start;
    out->error_code = (int16_t)fetch_fake_error(g, broker, w);
    if (out->error_code == KERR_NOT_LEADER_OR_FOLLOWER && g->tell_leader) {
        out->current_leader.leader_id = p->leader;
        out->current_leader.leader_epoch = p->epoch;
    }
    if (!out->error_code && g->fetch->preferred && g->fetch->preferred != broker)
        out->preferred_read_replica = g->fetch->preferred;
    if (!out->error_code && g->fetch->diverge_at && w->partition == 0) {
        out->diverging_epoch.epoch = 1;
        out->diverging_epoch.end_offset = g->fetch->diverge_at;
        g->fetch->diverge_at = 0;
    }
}

/* Answers the poll when there is something to say, or time is up; false: not yet. `all`: every partition is
 * mentioned, as at a session's start. */
static inline bool fetch_fake_answer(struct fake_log *g, struct fetch_held *h, bool all)
{
    struct fetch_fake *x = g->fetch;
    struct fetch_session *s = h->s;
    struct kafka_fetch_response r;
    struct kafka_fetch_response_topic t;
    struct fetch_wish given[LOG_PARTS], kept[LOG_PARTS];
    int given_n = 0, kept_n = 0;
    size_t left = (size_t)h->max_bytes;

    arena_reset(&g->arena);
    codec_init(&kafka_fetch_response_msg, &r);
    codec_init(&kafka_fetch_response_topic_msg, &t);
    t.partitions.at = arena_array(&g->arena, LOG_PARTS, sizeof(*t.partitions.at));
    for (int i = 0; i < s->wishes_n; i++) {
        const struct fetch_wish w = s->wishes[i];
        struct kafka_fetch_response_partition *out = &t.partitions.at[t.partitions.n];

        fetch_fake_part(g, log_broker_id(g, h->f), &w, out);
        if (!out->error_code && out->preferred_read_replica < 0 && out->diverging_epoch.epoch < 0)
            out->records.body =
                fetch_fake_read(g, &w, MIN((size_t)w.max_bytes, left), given_n == 0);
        if (out->records.body.n)
            given[given_n++] = w;
        else
            kept[kept_n++] = w;
        left -= MIN(left, out->records.body.n);
        x->answered_bytes += (int64_t)out->records.body.n;
        if (x->aborted && out->records.body.n) {
            static struct kafka_fetch_response_aborted list[3] = { { 7, 30 },
                                                                   { 8, 10 },
                                                                   { 9, 20 } };

            out->aborted_transactions.at = list;
            out->aborted_transactions.n = 3;
        }
        if (all || out->records.body.n || out->error_code || out->preferred_read_replica >= 0 ||
            out->diverging_epoch.epoch >= 0)
            t.partitions.n++;
    }
    if (!all && !t.partitions.n && loop_now_ms(g->l) < h->until_ms)
        return false;
    /* Who has given goes to the end. */
    memcpy(s->wishes, kept, sizeof(kept[0]) * (size_t)kept_n);
    memcpy(s->wishes + kept_n, given, sizeof(given[0]) * (size_t)given_n);
    t.topic = str_c(g->topic);
    t.topic_id =
        s->wishes_n ? s->wishes[0].id : g->id; /* of tests with one partition, when it changes */
    r.responses.at = &t;
    r.responses.n = t.partitions.n > 0;
    r.session_id = x->refuse_sessions || h->q.version < 7 ? 0 : s->id;
    if (!r.session_id)
        s->id = 0;
    x->over[log_broker_id(g, h->f) - 1]++;
    fake_answer(&h->q, h->q.version, &r);
    return true;
}

static inline void fetch_fake_poll(struct timer *timer)
{
    struct fetch_fake *x = container_of(timer, struct fetch_fake, timer);

    for (int i = 0; i < LOG_BROKERS; i++) {
        struct fetch_held *h = &x->held[i];

        if (h->f && (h->q.conn->fd < 0 || fetch_fake_answer(x->g, h, false)))
            h->f = NULL;
    }
    timer_set_ms(x->g->l, timer, 1);
}

/* The session that the request is for, as changed by it; NULL: *kerr says why not. */
static inline struct fetch_session *
fetch_fake_update(struct fetch_fake *x, const struct kafka_fetch_request *in, int32_t *kerr)
{
    struct fetch_session *s;

    *kerr = x->error_next;
    x->error_next = 0;
    if (*kerr)
        return NULL;
    if (in->session_epoch <= 0) {
        s = fetch_fake_open(x, in->session_id);
        x->fulls++;
    } else {
        s = fetch_fake_session(x, in->session_id);
        *kerr = !s                              ? KERR_FETCH_SESSION_ID_NOT_FOUND
                : s->epoch != in->session_epoch ? KERR_INVALID_FETCH_SESSION_EPOCH
                                                : 0;
        if (*kerr)
            return NULL;
    }
    s->epoch = in->session_epoch <= 0 ? 1 : s->epoch + 1;
    for (int32_t i = 0; i < in->topics.n; i++)
        for (int32_t j = 0; j < in->topics.at[i].partitions.n; j++, x->listed++)
            fetch_fake_wish(s, &in->topics.at[i].topic_id, &in->topics.at[i].partitions.at[j]);
    for (int32_t i = 0; i < in->forgotten_topics_data.n; i++)
        for (int32_t j = 0; j < in->forgotten_topics_data.at[i].partitions.n; j++, x->forgotten++)
            fetch_fake_forget(s, in->forgotten_topics_data.at[i].partitions.at[j]);
    return s;
}

static inline void fetch_fake_request(struct fake_log *g, struct fake *f, struct fake_request *q)
{
    const struct kafka_fetch_request *in = q->body;
    struct fetch_fake *x = g->fetch;
    struct kafka_fetch_response r;
    struct fetch_held h = { .f = f, .q = *q, .max_bytes = in->max_bytes };
    int32_t kerr;

    x->requests++;
    x->version = q->version;
    x->max_wait_ms = in->max_wait_ms;
    x->min_bytes = in->min_bytes;
    x->max_bytes = in->max_bytes;
    h.until_ms = loop_now_ms(g->l) + in->max_wait_ms;
    h.s = fetch_fake_update(x, in, &kerr);
    if (!h.s) {
        codec_init(&kafka_fetch_response_msg, &r);
        r.error_code = (int16_t)kerr;
        fake_answer(q, q->version, &r);
        return;
    }
    if (!fetch_fake_answer(g, &h, in->session_epoch <= 0))
        x->held[log_broker_id(g, f) - 1] = h;
}

#endif
