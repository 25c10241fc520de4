/* director_load.c -- reads where each partition stands, and settles under which producer id we write.
 * SPDX-License-Identifier: Apache-2.0
 *
 * First the state topic (ours), then, once nobody else can write (director_fence.c), the state topic again if somebody
 * could have, and the positions topic (MirrorMaker's); of each key the last record counts. A
 * producer id is taken once per flow and target cluster, kept in the state topic, and used for ever, by every
 * instance; it is stored before its first use. Thread: control.
 */
#include "mirror/director_internal.h"

#include "base/alloc.h"
#include "base/log.h"
#include "mirror/formats.h"
#include "mirror/state.h"

#include <stdlib.h>
#include <string.h>

static size_t make_key(char *key, size_t room, struct str topic, int32_t partition)
{
    size_t n = MIN(topic.n, room - sizeof(partition));

    memcpy(key, topic.p, n);
    memcpy(key + n, &partition, sizeof(partition));
    return n + sizeof(partition);
}

#define DIRECTOR_LOSSES_MAX 1024 /* of earlier runs; the log has all of them */
#define KEY_MAX 512 /* a topic's name has at most 249 bytes */

static struct stored *get_stored(struct director *d, struct str topic, int32_t partition)
{
    char key[KEY_MAX];
    size_t n = make_key(key, sizeof(key), topic, partition);
    struct stored *s;

    HASH_FIND(hh, d->stored, key, n, s);
    if (s)
        return s;
    s = mem_new(sizeof(*s) + n);
    memcpy(s->key, key, n);
    s->key_n = n;
    s->start.next = -1;
    HASH_ADD(hh, d->stored, key, n, s);
    return s;
}

static void part_free(struct offset_part *p)
{
    mem_free((char *)(uintptr_t)p->runs.p);
    *p = (struct offset_part){ 0 };
}

static struct offset_part part_copy(const struct offset_part *p)
{
    struct offset_part copy = *p;

    copy.runs.p = mem_copy_str(p->runs.p, p->runs.n);
    return copy;
}

static void stored_free(struct stored *s)
{
    for (size_t i = 0; i < s->parts_n; i++)
        part_free(&s->parts[i]);
    part_free(&s->rest);
    mem_free((char *)(uintptr_t)s->copy.p);
    mem_free(s->parts);
    mem_free(s);
}

/* The newest of each number counts. */
static void take_part(struct stored *s, const struct offset_part *p, bool removed)
{
    size_t i = s->parts_n;

    while (i > 0 && s->parts[i - 1].number != p->number) /* it is mostly the last, or new */
        i--;
    if (i > 0) {
        part_free(&s->parts[i - 1]);
        s->parts[i - 1] = s->parts[--s->parts_n];
    }
    if (removed)
        return;
    if (s->parts_n == s->parts_room) {
        s->parts_room = MAX(s->parts_room * 2, 4);
        s->parts = mem_resize(s->parts, s->parts_room, sizeof(*s->parts));
    }
    s->parts[s->parts_n++] = part_copy(p);
}

static int by_number(const void *a, const void *b)
{
    const struct offset_part *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static struct str own_copy(struct str s)
{
    return str_of(mem_copy_str(s.p, s.n), s.n);
}

static void loss_free(struct view_loss *l)
{
    mem_free((char *)(uintptr_t)l->topic.p);
    mem_free((char *)(uintptr_t)l->cause.p);
}

/* The last of each slot of a partition counts: a topic that is compacted may still hold the ones before. */
static void take_loss(struct director *d, const struct state_record *s, struct stored *at)
{
    struct view_loss *l = NULL;

    if (s->removed)
        return;
    for (int32_t i = 0; i < d->losses_n; i++) { /* the topic may be read again */
        l = &d->losses[i];
        if (str_eq(l->topic, s->topic) && l->partition == s->partition && l->from_offset == s->loss.from &&
            l->time_ms == s->loss.time_ms)
            return;
    }
    at->start.losses = MAX(at->start.losses, s->loss.number + 1);
    if (d->losses_n == DIRECTOR_LOSSES_MAX) {
        loss_free(d->losses);
        memmove(d->losses, d->losses + 1, (size_t)(d->losses_n - 1) * sizeof(*d->losses));
        d->losses_n--;
    }
    if (d->losses_n == d->losses_room) {
        d->losses_room = MAX(d->losses_room * 2, 16);
        d->losses = mem_resize(d->losses, (size_t)d->losses_room, sizeof(*d->losses));
    }
    l = &d->losses[d->losses_n++];
    *l = (struct view_loss){ .flow = d->config->name,
                             .topic = own_copy(s->topic),
                             .cause = own_copy(s->loss.cause),
                             .partition = s->partition,
                             .repeat = s->loss.repeat,
                             .from_offset = s->loss.from,
                             .to_offset = s->loss.to,
                             .records = s->loss.records,
                             .time_ms = s->loss.time_ms };
}

static struct offset_map *make_map(struct stored *s)
{
    if (!s->start.has_pair)
        return NULL;
    if (s->parts_n)
        qsort(s->parts, s->parts_n, sizeof(*s->parts), by_number);
    return offset_map_restore(s->parts, s->parts_n, s->has_rest ? &s->rest : NULL, s->start.pair.source,
                              s->start.pair.target);
}

/* The pair speaks of another topic of the target: the rules of names were changed. Copying goes on where it was, into
 * the new one, and what the old one got says nothing of it. */
static void forget_pair(struct director *d, struct stored *s, struct str topic, int32_t partition, struct str copy)
{
    log_event(EV_COPY_RENAMED, kv_str("flow", d->config->name), kv_str("topic", topic), kv_int("partition", partition),
              kv_str("was", s->copy), kv_str("now", copy), kv_int("offset", s->start.pair.source));
    s->start.has_pair = false;
    s->start.next = MAX(s->start.next, MAX(s->start.pair.source, s->start.pair.reserved));
}

bool director_take_stored(struct director *d, struct str topic, int32_t partition, struct str copy,
                          struct relay_start *out)
{
    char key[KEY_MAX];
    size_t n = make_key(key, sizeof(key), topic, partition);
    struct stored *s;

    HASH_FIND(hh, d->stored, key, n, s);
    if (!s)
        return false;
    if (s->start.has_pair && !str_is_null(s->copy) && !str_eq(s->copy, copy))
        forget_pair(d, s, topic, partition, copy);
    *out = s->start;
    out->filter_id = s->filter;
    out->map = make_map(s);
    HASH_DEL(d->stored, s);
    stored_free(s);
    return out->has_pair || out->next >= 0;
}

bool director_has_stored(const struct director *d, struct str topic)
{
    char key[KEY_MAX];
    size_t n = make_key(key, sizeof(key), topic, 0);
    const struct stored *s;

    HASH_FIND(hh, d->stored, key, n, s);
    return s && s->start.has_pair;
}

void director_each_stored(struct director *d, void (*fn)(void *arg, struct str topic, struct str copy), void *arg)
{
    struct stored *s, *next;

    HASH_ITER(hh, d->stored, s, next)
        if (s->start.has_pair && !str_is_null(s->copy))
            fn(arg, str_of(s->key, s->key_n - sizeof(int32_t)), s->copy);
}

void director_stored_free(struct director *d)
{
    struct stored *s, *next;

    HASH_ITER(hh, d->stored, s, next) {
        HASH_DEL(d->stored, s);
        stored_free(s);
    }
    for (int32_t i = 0; i < d->losses_n; i++)
        loss_free(&d->losses[i]);
    mem_free(d->losses);
    d->losses = NULL;
    d->losses_n = d->losses_room = 0;
}

static void on_position(void *arg, const struct topic_record *r)
{
    struct director *d = arg;
    struct position_key k;
    int64_t offset;
    enum err e;

    arena_reset(&d->arena);
    if (formats_parse_position_key(r->key, &d->arena, &k) ||
        !str_eq(k.cluster, d->config->source_alias) || k.topic.n > KEY_MAX - sizeof(int32_t))
        return;
    e = formats_parse_position_value(r->value, &offset);
    if (e == E_OK && offset >= 0 && offset < INT64_MAX)
        get_stored(d, k.topic, k.partition)->start.next = offset + 1;
    else if (e == E_OK || e == E_NOT_FOUND)
        get_stored(d, k.topic, k.partition)->start.next = -1;
    d->stored_n++;
}

static void on_state(void *arg, const struct topic_record *r)
{
    struct director *d = arg;
    struct state_record s;
    struct stored *at;

    arena_reset(&d->arena);
    if (state_parse(r->key, r->value, &d->arena, &s))
        return;
    d->stored_n++;
    if (s.kind == STATE_PRODUCER && str_eq(s.origin, d->config->source_alias)) {
        bool ours = !s.removed && str_eq(s.cluster_id, cluster_id(d->target));

        d->producer_id = ours ? s.producer_id : -1;
    }
    if (s.kind == STATE_WRITER && s.removed)
        director_writers_remove(d, s.producer_id);
    else if (s.kind == STATE_WRITER)
        director_writers_add(d, s.producer_id);
    if (s.kind == STATE_TRANSACTIONS && str_eq(s.origin, d->config->source_alias))
        d->txns_stored = s.removed ? 0 : s.count;
    if ((s.kind != STATE_PAIR && s.kind != STATE_PART && s.kind != STATE_LOSS) || s.topic.n > KEY_MAX - sizeof(int32_t))
        return;
    at = get_stored(d, s.topic, s.partition);
    if (s.kind == STATE_LOSS) {
        take_loss(d, &s, at);
        return;
    }
    if (s.kind == STATE_PART) {
        take_part(at, &s.part, s.removed);
        return;
    }
    at->start.has_pair = !s.removed;
    at->start.pair = s.pair;
    mem_free((char *)(uintptr_t)at->copy.p);
    at->copy = str_is_null(s.copy) ? STR_NULL : own_copy(s.copy);
    at->filter = s.filter;
    part_free(&at->rest);
    at->has_rest = s.has_rest;
    if (s.has_rest)
        at->rest = part_copy(&s.part);
}

static struct str topic_of(const struct director *d)
{
    return d->loading == LOAD_POSITIONS ? d->config->offsets_topic : d->state_topic;
}

static void on_read(void *arg, enum err e, int32_t kerr)
{
    struct director *d = arg;
    struct str topic = topic_of(d);

    topic_reader_free(&d->reader);
    if (e || kerr) {
        d->load_lacks = kerr == KERR_UNKNOWN_TOPIC_OR_PARTITION; /* deleted since it was looked for */
        director_fail(d, kerr ? kerr_name(kerr) : err_name(e), "topic %.*s cannot be read: %s",
                      STR_ARG(topic), kerr ? kerr_text(kerr) : err_text(e));
        return;
    }
    log_event(EV_POSITIONS_LOADED, kv_str("flow", d->config->name), kv_str("topic", topic),
              kv_int("records", d->stored_n), kv_int("partitions", HASH_COUNT(d->stored)));
    director_well(d);
    d->stored_n = 0;
    /* Ids that an earlier run used: what it left open may still change what was read just now. */
    if (d->loading == LOAD_POSITIONS && director_txns_wanted(d) > d->txns_n) {
        d->loading = LOAD_STATE_AGAIN;
        d->producer_id = -1;
        director_stored_free(d);
        director_goto(d, DIRECTOR_TAKING);
    } else if (d->loading == LOAD_POSITIONS) {
        director_goto(d, DIRECTOR_NAMING);
    } else {
        d->loading = d->loading == LOAD_STATE && d->group ? LOAD_FENCE : LOAD_POSITIONS;
    }
    director_wake(d);
}

void director_load(struct director *d)
{
    struct topic_reader_ops ops = { .on_record = d->loading == LOAD_POSITIONS ? on_position : on_state,
                                    .on_done = on_read, .on_fault = director_trouble, .arg = d };

    if (d->load_lacks)
        director_prepare(d);
    else if (d->loading == LOAD_FENCE)
        director_fence(d);
    else if (!d->reader)
        d->reader = topic_reader_start(d->target, topic_of(d), &ops);
}

static void open_ports(struct director *d)
{
    struct flow_identity id = { .producer_id = d->producer_id, .state_topic = d->state_topic,
                                .positions_topic = d->config->offsets_topic,
                                .connector = STR(FORMATS_CONNECTOR),
                                .id_memory_ms = d->id_memory_ms, .lease = d->group ? &d->lease : NULL };

    for (int32_t i = 0; i < d->ports_n; i++) {
        id.writer_id = d->writer_ids ? d->writer_ids[i] : -1;
        if (flow_config_is_transactional(d->config))
            id.txn = d->txns[i];
        flow_port_open(d->ports[i], &id);
    }
    director_well(d);
    director_goto(d, DIRECTOR_REFRESHING);
    director_wake(d);
}

static void on_named(void *arg)
{
    struct director *d = arg;

    if (d->state == DIRECTOR_NAMING)
        director_wake(d);
}

static void on_name_fault(void *arg, const struct fault *f)
{
    struct director *d = arg;

    if (fault_is_set(f))
        fault_set(&d->fault, loop_wall_ms(d->loop), f->code, "%s", f->text);
    else
        fault_clear(&d->fault);
}

static int64_t txns_used(const struct director *d)
{
    return flow_config_is_transactional(d->config) ? d->ports_n : 0;
}

/* The records that say under which ids we write; they are there before the first batch. */
static void write_names(struct director *d)
{
    struct topic_writer_ops ops = { .on_idle = on_named, .on_fault = on_name_fault, .arg = d };
    struct buf key, value;

    d->namer = d->writer_ids && d->writer_ids[d->ports_n] >= 0
                   ? topic_writer_new_as(d->target, d->state_topic, &ops, d->writer_ids[d->ports_n], 0)
                   : topic_writer_new(d->target, d->state_topic, &ops);
    buf_init(&key, 64 * KiB);
    buf_init(&value, 64 * KiB);
    if (d->producer_id >= 0) {
        state_format_producer_key(&key, d->config->source_alias);
        state_format_producer(&value, d->producer_id, cluster_id(d->target));
        topic_writer_put(d->namer, -1, buf_str(&key), buf_str(&value), -1);
        buf_clear(&key);
        buf_clear(&value);
    }
    if (d->txns_stored != txns_used(d)) {
        state_format_transactions_key(&key, d->config->source_alias);
        state_format_transactions(&value, txns_used(d));
        topic_writer_put(d->namer, -1, buf_str(&key), buf_str(&value), -1);
    }
    buf_fini(&key);
    buf_fini(&value);
}

static void on_producer_id(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_init_producer_id_response *r = call->response;

    if (director_call_failed(d, "asking for a producer id"))
        return;
    if (kerr_class(API_INIT_PRODUCER_ID, r->error_code) == K_AGAIN) {
        director_later(d, kerr_name(r->error_code), "the target gives no producer id: %s%s",
                       kerr_text(r->error_code), kerr_advice(r->error_code));
        return;
    }
    if (r->error_code) {
        director_fail(d, kerr_name(r->error_code),
                      "the target gives no producer id: %s (the principal needs IdempotentWrite on the "
                      "cluster, or Write on a topic)", kerr_text(r->error_code));
        return;
    }
    d->producer_id = r->producer_id;
    write_names(d);
}

void director_name(struct director *d)
{
    bool needs_id = d->config->delivery == FLOW_EXACTLY_ONCE && !flow_config_is_transactional(d->config);

    if (d->namer) {
        if (topic_writer_is_idle(d->namer)) {
            topic_writer_free(&d->namer);
            open_ports(d);
        }
        return;
    }
    if (d->id_memory_ms == 0) {
        director_ask_memory(d);
        return;
    }
    if (!needs_id)
        d->producer_id = -1;
    if (!needs_id || d->producer_id >= 0) {
        if (d->txns_stored != txns_used(d))
            write_names(d);
        else
            open_ports(d);
        return;
    }
    codec_init(&kafka_init_producer_id_request_msg, &d->request.init);
    d->request.init.transactional_id = STR_NULL;
    d->request.init.transaction_timeout_ms = INT32_MAX;
    director_call(d, d->target, API_INIT_PRODUCER_ID, ROUTE_ANY, on_producer_id);
}
