/* broker_fetch.c -- Fetch of a simulated broker: sessions, long polls, byte limits, transactions, divergence.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "broker.h"

#include "base/must.h"
#include "tally.h"

#include <string.h>

#define RESPONSE_MAX (55 * MiB) /* fetch.max.bytes */

struct fetch_note {
    struct str batch; /* one whole batch of the answer: broker.c corrupts it when told to */
    struct sim_session *session;
    struct sim_session without; /* the wishes of a request that has no session */
    int32_t id;                 /* of the session when it was found; 0: none */
    bool full;                  /* every partition is answered, not only what is new */
};

/* What one partition's answer is made of. */
struct reading {
    int32_t kerr;
    int64_t high_watermark, last_stable, start;
    bool diverging;
    int32_t epoch, preferred;
    int64_t epoch_end;
    size_t first, batches; /* whole ones */
    size_t bytes;          /* the last batch may be cut (rules 4.2) */
};

/* --- sessions (rules 4.3) --- */

static struct sim_session *find_session(struct sim_broker *b, int32_t id)
{
    for (int i = 0; i < SIM_SESSIONS; i++)
        if (id && b->sessions[i].id == id)
            return &b->sessions[i];
    return NULL;
}

static struct sim_session *open_session(struct sim_broker *b)
{
    struct sim_session *oldest = &b->sessions[0];

    for (int i = 0; i < SIM_SESSIONS; i++)
        if (b->sessions[i].used_us < oldest->used_us)
            oldest = &b->sessions[i];
    memset(oldest, 0, sizeof(*oldest));
    oldest->id = ++b->last_session * 7919 % 2000000011;
    return oldest;
}

/* Who is named in a request: by name, or by id. */
struct named {
    struct sim_topic *topic;
    struct str name;
    struct uuid id;
};

static bool is_wish(const struct sim_wish *w, const struct named *t, int32_t partition)
{
    if (w->partition != partition || w->topic != t->topic)
        return false;
    return t->topic || (t->name.n ? str_eq(t->name, str_c(w->name)) : memcmp(&w->id, &t->id, sizeof(w->id)) == 0);
}

static void forget(struct sim_session *s, const struct named *t, int32_t partition)
{
    for (int i = 0; i < s->wishes_n; i++) {
        if (!is_wish(&s->wishes[i], t, partition))
            continue;
        memmove(&s->wishes[i], &s->wishes[i + 1],
                (size_t)(--s->wishes_n - i) * sizeof(s->wishes[0]));
        return;
    }
}

static void wish(struct sim_session *s, const struct named *t, const struct kafka_fetch_request_partition *p)
{
    int i = 0;

    while (i < s->wishes_n && !is_wish(&s->wishes[i], t, p->partition))
        i++;
    if (i == s->wishes_n) {
        must(s->wishes_n < SIM_WISHES);
        s->wishes[s->wishes_n++] = (struct sim_wish){ .topic = t->topic, .partition = p->partition,
                                                      .told_hw = -1, .told_start = -1 };
        memcpy(s->wishes[i].name, t->name.p, MIN(t->name.n, sizeof(s->wishes[i].name) - 1));
    }
    if (memcmp(&s->wishes[i].id, &t->id, sizeof(t->id)) != 0)
        s->wishes[i].told_hw = s->wishes[i].told_start = -1;
    s->wishes[i].id = t->id;
    s->wishes[i].epoch = p->current_leader_epoch;
    s->wishes[i].last_fetched_epoch = p->last_fetched_epoch;
    s->wishes[i].max_bytes = p->partition_max_bytes;
    s->wishes[i].offset = p->fetch_offset;
}

static struct named named_of(struct sim_request *q, struct str name, const struct uuid *id)
{
    struct sim_cluster *c = q->broker->cluster;
    struct named t = { .name = q->head.version >= 13 ? STR("") : name, .id = *id };

    t.topic = q->head.version >= 13 ? broker_topic_by_id(c, id) : broker_topic_find(c, name);
    if (t.topic) {
        t.name = str_c(t.topic->name);
        t.id = t.topic->id;
    }
    return t;
}

/* Who leads no more and does not know it answers all who do not say which leader they mean (rules 4.5). */
static void accuse(const struct sim_cluster *c, const struct named *t, const struct kafka_fetch_request_partition *p)
{
    if (p->current_leader_epoch < 0 && !c->plain && !c->corrupt_any)
        sim_fail("a fetch of %s-%d does not say which leader it means", t->topic ? t->topic->name : "?", p->partition);
}

static void update_wishes(struct sim_request *q, struct sim_session *s)
{
    const struct kafka_fetch_request *m = q->msg;

    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct kafka_fetch_request_topic *in = &m->topics.at[i];
        struct named t = named_of(q, in->topic, &in->topic_id);

        for (int32_t j = 0; j < in->partitions.n; j++) {
            accuse(q->broker->cluster, &t, &in->partitions.at[j]);
            wish(s, &t, &in->partitions.at[j]);
        }
    }
    for (int32_t i = 0; i < m->forgotten_topics_data.n; i++) {
        const struct kafka_fetch_request_forgotten *in = &m->forgotten_topics_data.at[i];
        struct named t = named_of(q, in->topic, &in->topic_id);

        for (int32_t j = 0; j < in->partitions.n; j++)
            forget(s, &t, in->partitions.at[j]);
    }
}

/* KERR_NONE and the session or its like, or the error of the whole answer. */
static int32_t enter(struct sim_request *q, struct fetch_note *note)
{
    const struct kafka_fetch_request *m = q->msg;
    struct sim_session *s = find_session(q->broker, m->session_id);

    note->full = m->session_epoch <= 0;
    if (m->session_epoch <= 0) {
        if (s)
            memset(s, 0, sizeof(*s));
        note->session = &note->without;
        if (m->session_epoch == 0 && !broker_luck(q->broker->cluster, 5)) { /* else the cache is full */
            note->session = open_session(q->broker);
            note->session->by_id = q->head.version >= 13;
        }
    } else if (!s) {
        tally(TALLY_SESSION_LOST);
        return KERR_FETCH_SESSION_ID_NOT_FOUND;
    } else if (s->epoch != m->session_epoch) {
        if (!q->broker->cluster->plain && !q->broker->cluster->corrupt_any)
            sim_fail("fetch session %d is at epoch %d, and is told %d", s->id, s->epoch, m->session_epoch);
        return KERR_INVALID_FETCH_SESSION_EPOCH;
    } else if (s->by_id != (q->head.version >= 13)) {
        return KERR_FETCH_SESSION_TOPIC_ID_ERROR;
    } else {
        note->session = s;
    }
    note->id = note->session->id;
    note->session->epoch = m->session_epoch == INT32_MAX ? 1 : MAX(m->session_epoch, 0) + 1;
    note->session->used_us = sim_now_us();
    update_wishes(q, note->session);
    return KERR_NONE;
}

/* --- reading --- */

static void check_epoch(const struct sim_part *p, const struct sim_wish *w, struct reading *r)
{
    int32_t found;
    int64_t end;

    if (w->last_fetched_epoch < 0)
        return;
    end = log_epoch_end(p, w->last_fetched_epoch, &found);
    if (found == w->last_fetched_epoch && end >= w->offset)
        return;
    if (found < 0) {
        r->kerr = KERR_OFFSET_OUT_OF_RANGE; /* the log does not know the epoch (rules 4.5) */
        return;
    }
    r->diverging = true;
    r->epoch = found;
    r->epoch_end = end;
}

static void read_batches(const struct sim_part *p, int64_t from, int64_t bound, size_t limit, bool whole,
                         struct reading *r)
{
    r->first = log_find(p, from);
    for (size_t i = r->first; i < p->batches_n && p->batches[i].last < bound; i++) {
        const struct sim_batch *b = &p->batches[i];

        if (b->gone) {
            if (r->batches == 0)
                r->first = i + 1;
            else
                return; /* a segment ends here: being short means nothing (rules 4.2) */
            continue;
        }
        if (r->bytes + b->n > limit && !(whole && r->bytes == 0)) {
            r->bytes = r->batches ? MAX(r->bytes, limit) : 0; /* cut, even inside a header; but the first is whole */
            return;
        }
        r->bytes += b->n;
        r->batches++;
    }
}

/* The reader stands in a rack, and is told of a nearer replica (rules 4.5). */
static bool is_near(const struct sim_request *q)
{
    const struct kafka_fetch_request *m = q->msg;

    return q->head.version >= 11 && m->rack_id.n > 0;
}

static int32_t nearer(const struct sim_request *q, const struct sim_part *p)
{
    const struct sim_cluster *c = q->broker->cluster;
    int32_t other = p->leader % c->brokers_n + 1;

    return is_near(q) && p->leader == q->broker->id && other != p->leader && c->brokers[other - 1].up ? other : -1;
}

/* Who is no leader serves as a follower from version 11 on (rules 4.5), to whom the leader sent us. */
static int32_t serve_error(struct sim_request *q, const struct sim_wish *w, struct sim_part **out)
{
    int32_t kerr;

    if (!w->topic)
        return q->head.version >= 13 ? KERR_UNKNOWN_TOPIC_ID : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (q->head.version >= 13 && memcmp(&w->id, &w->topic->id, sizeof(w->id)) != 0)
        return KERR_UNKNOWN_TOPIC_ID; /* rules 4.5 */
    kerr = broker_leader_error(q->broker, w->topic, w->partition, w->epoch, out);
    if (kerr == KERR_NOT_LEADER_OR_FOLLOWER && q->head.version >= 11 && is_near(q) && w->epoch <= (*out)->epoch)
        return w->epoch >= 0 && w->epoch < (*out)->epoch ? KERR_FENCED_LEADER_EPOCH : KERR_NONE;
    return kerr;
}

static struct reading read_part(struct sim_request *q, const struct sim_wish *w, size_t left, bool whole)
{
    const struct kafka_fetch_request *m = q->msg;
    struct reading r = { .high_watermark = -1, .last_stable = -1, .start = -1, .preferred = -1 };
    struct sim_part *p = NULL;

    r.kerr = serve_error(q, w, &p);
    if (!r.kerr)
        check_epoch(p, w, &r);
    if (!r.kerr && !r.diverging && (w->offset < p->start || w->offset > p->end))
        r.kerr = KERR_OFFSET_OUT_OF_RANGE; /* after the epoch, which tells more (rules 4.5) */
    if (r.kerr)
        return r;
    r.high_watermark = p->high_watermark;
    r.last_stable = log_last_stable(p);
    r.start = p->start;
    if (p->leader != q->broker->id) {
        if (sim_chance(30))
            p->follower_mark = p->high_watermark;
        if (w->offset > p->follower_mark && !r.diverging)
            r.kerr = KERR_OFFSET_OUT_OF_RANGE; /* it has not got there; proves nothing (rules 4.5) */
        r.high_watermark = MIN(r.high_watermark, p->follower_mark);
        r.last_stable = MIN(r.last_stable, p->follower_mark);
        tally(TALLY_FOLLOWER);
    }
    if (r.kerr)
        return r;
    r.preferred = nearer(q, p);
    if (!r.diverging && r.preferred < 0 && !q->broker->throttle_ms) /* throttled answers are empty (rules 4.8) */
        read_batches(p, w->offset, m->isolation_level ? r.last_stable : r.high_watermark,
                     MIN(left, (size_t)MAX(w->max_bytes, 0)), whole, &r);
    return r;
}

/* Bytes of the reading in one piece. One of its whole batches is noted. */
static struct str collect(struct sim_request *q, const struct sim_part *p, const struct reading *r)
{
    struct fetch_note *note = q->note;
    char *out = arena_alloc(&q->arena, r->bytes + 1);
    size_t n = 0, pick = r->batches ? (size_t)sim_between(0, (int64_t)r->batches - 1) : SIZE_MAX;

    for (size_t i = r->first; n < r->bytes && i < p->batches_n; i++) {
        size_t part = MIN(p->batches[i].n, r->bytes - n);

        memcpy(out + n, p->batches[i].bytes, part);
        if (i - r->first == pick)
            note->batch = str_of(out + n, part);
        n += part;
    }
    return str_of(out, n);
}

/* Those that overlap what is returned, also when they began before it (rules 4.4); in no order. */
static void list_aborted(struct sim_request *q, const struct sim_part *p, const struct reading *r,
                         int64_t from, struct kafka_fetch_response_partition *out)
{
    int64_t last = r->batches ? p->batches[r->first + r->batches - 1].last : -1;

    out->aborted_transactions.at =
        arena_array(&q->arena, p->aborted_n, sizeof(*out->aborted_transactions.at));
    out->aborted_transactions.n = 0;
    for (size_t i = p->aborted_n; i-- > 0;)
        if (p->aborted[i].marker >= from && p->aborted[i].first <= last)
            out->aborted_transactions.at[out->aborted_transactions.n++] =
                (struct kafka_fetch_response_aborted){ .producer_id = p->aborted[i].producer_id,
                                                       .first_offset = p->aborted[i].first };
}

static void fill_part(struct sim_request *q, const struct sim_wish *w, const struct reading *r,
                      struct kafka_fetch_response_partition *out)
{
    const struct kafka_fetch_request *m = q->msg;
    const struct sim_part *p = r->kerr ? NULL : &w->topic->parts[w->partition];

    codec_init(&kafka_fetch_response_partition_msg, out);
    out->partition_index = w->partition;
    out->error_code = (int16_t)r->kerr;
    out->high_watermark = r->high_watermark;
    out->last_stable_offset = r->last_stable;
    out->log_start_offset = r->start;
    out->preferred_read_replica = r->preferred;
    out->aborted_transactions.n = -1;
    if (q->broker->cluster->newness > 0 && (r->kerr == KERR_UNKNOWN_TOPIC_OR_PARTITION || r->kerr == KERR_UNKNOWN_TOPIC_ID))
        out->aborted_transactions.n = 0;
    out->records.head = STR_NULL;
    out->records.body = p ? collect(q, p, r) : STR("");
    if (r->diverging && q->head.version >= 12) {
        out->diverging_epoch.epoch = r->epoch;
        out->diverging_epoch.end_offset = r->epoch_end;
    }
    if (p && m->isolation_level)
        list_aborted(q, p, r, w->offset, out);
}

/* --- the answer --- */

static struct kafka_fetch_response_topic *topic_entry(struct sim_request *q, struct kafka_fetch_response *r,
                                                      const struct sim_wish *w)
{
    const struct uuid *id = w->topic ? &w->topic->id : &w->id;
    struct kafka_fetch_response_topic *out;

    for (int32_t i = 0; i < r->responses.n; i++)
        if (str_eq(r->responses.at[i].topic, str_c(w->name)) && memcmp(&r->responses.at[i].topic_id, id, sizeof(*id)) == 0)
            return &r->responses.at[i];
    out = &r->responses.at[r->responses.n++];
    out->topic = arena_str(&q->arena, str_c(w->name)); /* the wishes move */
    out->topic_id = *id;
    out->partitions.at = arena_array(&q->arena, SIM_PARTS, sizeof(*out->partitions.at));
    return out;
}

/* Partitions that gave data go to the end of the session's list (rules 4.2). */
static void rotate(struct sim_session *s, const bool *gave)
{
    struct sim_wish all[SIM_WISHES];
    int n = 0;

    memcpy(all, s->wishes, sizeof(all));
    for (int i = 0; i < s->wishes_n; i++)
        if (!gave[i])
            s->wishes[n++] = all[i];
    for (int i = 0; i < s->wishes_n; i++)
        if (gave[i])
            s->wishes[n++] = all[i];
}

/* A topic that was not there when it was named may have come. */
static struct sim_wish *look_again(struct sim_request *q, struct sim_wish *w)
{
    struct sim_cluster *c = q->broker->cluster;

    if (!w->topic)
        w->topic = w->name[0] ? broker_topic_find(c, str_c(w->name)) : broker_topic_by_id(c, &w->id);
    if (w->topic && !w->name[0])
        memcpy(w->name, w->topic->name, sizeof(w->name));
    return w;
}

/* True when there is enough to answer with. */
static bool build(struct sim_request *q, struct fetch_note *note, struct kafka_fetch_response *r, bool *gave)
{
    const struct kafka_fetch_request *m = q->msg;
    struct sim_session *s = note->session;
    size_t left = (size_t)MIN(m->max_bytes, RESPONSE_MAX), got = 0;
    bool at_once = false;

    r->responses.at = arena_array(&q->arena, SIM_TOPICS_ALL, sizeof(*r->responses.at));
    r->responses.n = 0;
    for (int i = 0; i < s->wishes_n; i++) {
        struct sim_wish *w = look_again(q, &s->wishes[i]);
        struct reading reading = read_part(q, w, left - MIN(left, got), got == 0);
        bool news = reading.high_watermark != w->told_hw || reading.start != w->told_start;
        struct kafka_fetch_response_topic *t;

        w->next_hw = reading.high_watermark;
        w->next_start = reading.start;
        gave[i] = reading.bytes > 0;
        at_once = at_once || reading.kerr || reading.diverging || reading.preferred >= 0;
        got += reading.bytes;
        if (!note->full && !news && !reading.kerr && !reading.diverging && !reading.bytes &&
            reading.preferred < 0)
            continue;
        t = topic_entry(q, r, w);
        fill_part(q, w, &reading, &t->partitions.at[t->partitions.n++]);
    }
    return at_once || (got > 0 && got >= (size_t)MAX(m->min_bytes, 0)) || m->max_wait_ms <= 0;
}

static void note_told(struct sim_session *s)
{
    for (int i = 0; i < s->wishes_n; i++) {
        s->wishes[i].told_hw = s->wishes[i].next_hw;
        s->wishes[i].told_start = s->wishes[i].next_start;
    }
}

static bool refuse(struct sim_request *q, int32_t kerr)
{
    struct kafka_fetch_response r;

    codec_init(&kafka_fetch_response_msg, &r);
    r.error_code = (int16_t)kerr;
    broker_answer(q, &r);
    return true;
}

bool broker_fetch(struct sim_request *q)
{
    const struct kafka_fetch_request *m = q->msg;
    struct fetch_note *note = q->note;
    struct kafka_fetch_response r;
    bool gave[SIM_WISHES] = { false };
    bool late = q->until_us && sim_now_us() >= q->until_us;

    if (q->stage == 0) {
        int32_t kerr;

        q->stage = 1;
        note = q->note = arena_alloc(&q->arena, sizeof(*note));
        kerr = enter(q, note);
        if (kerr)
            return refuse(q, kerr);
    }
    if (note->id && note->session->id != note->id && (tally(TALLY_SESSION_LOST), true))
        return refuse(q, KERR_FETCH_SESSION_ID_NOT_FOUND);
    codec_init(&kafka_fetch_response_msg, &r);
    if (!build(q, note, &r, gave) && !late) {
        broker_wait(q, m->max_wait_ms * SIM_MS);
        return false;
    }
    r.session_id = note->id;
    r.throttle_time_ms = q->broker->throttle_ms;
    note_told(note->session);
    rotate(note->session, gave);
    broker_answer(q, &r);
    return true;
}
