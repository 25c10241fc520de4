/* state.c -- the state topic's records as JSON, both ways.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/state.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

void state_put_json(struct buf *out, struct str s)
{
    json_t *j = json_stringn(s.p ? s.p : "", s.n); /* NULL when not UTF-8, which no topic name is */
    size_t n = j ? json_dumpb(j, NULL, 0, JSON_ENCODE_ANY) : 0;
    char *p = buf_grow(out, n);

    if (p && n)
        json_dumpb(j, p, n, JSON_ENCODE_ANY);
    json_decref(j);
    if (!n)
        buf_put_str(out, STR("\"\""));
}

void state_format_pair_key(struct buf *out, struct str topic, int32_t partition)
{
    buf_put_str(out, STR("{\"kind\":\"pair\",\"topic\":"));
    state_put_json(out, topic);
    buf_fmt(out, ",\"partition\":%" PRId32 "}", partition);
}

bool state_id_is_zero(const struct uuid *id)
{
    static const struct uuid none;

    return memcmp(id, &none, sizeof(none)) == 0;
}

void state_format_pair(struct buf *out, const struct pair *p)
{
    buf_fmt(out,
            "{\"source\":%" PRId64 ",\"target\":%" PRId64 ",\"sequence\":%" PRId64
            ",\"producer_id\":%" PRId64 ",\"epoch\":%d,\"leader_epoch\":%" PRId32,
            p->source, p->target, p->sequence, p->producer_id, p->epoch, p->leader_epoch);
    if (p->passed > p->source)
        buf_fmt(out, ",\"passed\":%" PRId64, p->passed);
    if (!state_id_is_zero(&p->topic_id)) {
        buf_put_str(out, STR(",\"topic_id\":\""));
        for (size_t i = 0; i < sizeof(p->topic_id.b); i++)
            buf_fmt(out, "%02x", p->topic_id.b[i]);
        buf_put_char(out, '"');
    }
    if (p->reserved > 0)
        buf_fmt(out, ",\"reserved\":%" PRId64, p->reserved);
    if (p->transactional)
        buf_put_str(out, STR(",\"transactional\":true"));
    buf_put_char(out, '}');
}

void state_format_producer_key(struct buf *out, struct str origin)
{
    buf_put_str(out, STR("{\"kind\":\"producer\",\"origin\":"));
    state_put_json(out, origin);
    buf_put_char(out, '}');
}

void state_format_producer(struct buf *out, int64_t producer_id, struct str cluster_id)
{
    buf_fmt(out, "{\"producer_id\":%" PRId64 ",\"cluster_id\":", producer_id);
    state_put_json(out, cluster_id);
    buf_put_char(out, '}');
}

void state_format_writer_key(struct buf *out, int64_t producer_id)
{
    buf_fmt(out, "{\"kind\":\"writer\",\"producer_id\":%" PRId64 "}", producer_id);
}

void state_format_writer(struct buf *out, struct str instance)
{
    buf_put_str(out, STR("{\"instance\":"));
    state_put_json(out, instance);
    buf_put_char(out, '}');
}

void state_format_fence_key(struct buf *out, int64_t producer_id)
{
    buf_fmt(out, "{\"kind\":\"fence\",\"producer_id\":%" PRId64 "}", producer_id);
}

void state_format_transactions_key(struct buf *out, struct str origin)
{
    buf_put_str(out, STR("{\"kind\":\"transactions\",\"origin\":"));
    state_put_json(out, origin);
    buf_put_char(out, '}');
}

void state_format_transactions(struct buf *out, int64_t count)
{
    buf_fmt(out, "{\"count\":%" PRId64 "}", count);
}

static bool get_int(const json_t *o, const char *name, int64_t least, int64_t most, int64_t *out)
{
    const json_t *j = json_object_get(o, name);

    if (!json_is_integer(j) || json_integer_value(j) < least || json_integer_value(j) > most)
        return false;
    *out = json_integer_value(j);
    return true;
}

static bool get_str(const json_t *o, const char *name, struct arena *a, struct str *out)
{
    const json_t *j = json_object_get(o, name);

    if (!json_is_string(j))
        return false;
    *out = arena_str(a, str_of(json_string_value(j), json_string_length(j)));
    return true;
}

/* An id that cannot be read is an unknown one. */
static void parse_id(const json_t *v, struct uuid *id)
{
    const json_t *j = json_object_get(v, "topic_id");
    const char *hex = json_is_string(j) ? json_string_value(j) : "";

    memset(id, 0, sizeof(*id));
    if (strlen(hex) != 2 * sizeof(id->b) || strspn(hex, "0123456789abcdef") != 2 * sizeof(id->b))
        return;
    for (size_t i = 0; i < sizeof(id->b); i++) {
        char high = hex[2 * i], low = hex[2 * i + 1];

        id->b[i] = (unsigned char)((high <= '9' ? high - '0' : high - 'a' + 10) << 4 |
                                   (low <= '9' ? low - '0' : low - 'a' + 10));
    }
}

static bool parse_pair(const json_t *v, struct pair *p)
{
    int64_t epoch, leader_epoch = -1;

    p->reserved = 0;
    p->transactional = json_is_true(json_object_get(v, "transactional"));
    if (!get_int(v, "source", 0, INT64_MAX, &p->source) ||
        !get_int(v, "target", 0, INT64_MAX, &p->target) ||
        !get_int(v, "sequence", 0, SEQUENCE_MOD - 1, &p->sequence) ||
        !get_int(v, "producer_id", -1, INT64_MAX, &p->producer_id) ||
        !get_int(v, "epoch", 0, INT16_MAX, &epoch))
        return false;
    (void)get_int(v, "reserved", 0, INT64_MAX, &p->reserved);
    (void)get_int(v, "leader_epoch", -1, INT32_MAX, &leader_epoch);
    p->passed = 0;
    (void)get_int(v, "passed", 0, INT64_MAX, &p->passed);
    p->epoch = (int16_t)epoch;
    p->leader_epoch = (int32_t)leader_epoch;
    parse_id(v, &p->topic_id);
    return true;
}

static void parse_copy(const json_t *v, struct arena *a, struct state_record *r)
{
    int64_t filter = 0;

    (void)get_str(v, "copy", a, &r->copy);
    (void)get_int(v, "filter", 0, UINT32_MAX, &filter);
    r->filter = (uint32_t)filter;
}

static enum err parse_members(const json_t *k, const json_t *v, struct arena *a,
                              struct state_record *r)
{
    struct str kind;
    int64_t partition;

    if (!get_str(k, "kind", a, &kind))
        return E_MALFORMED;
    r->kind = str_eq(kind, STR("pair")) ? STATE_PAIR : str_eq(kind, STR("map")) ? STATE_PART
              : str_eq(kind, STR("loss")) ? STATE_LOSS : STATE_OTHER;
    if (r->kind != STATE_OTHER) {
        if (!get_str(k, "topic", a, &r->topic) ||
            !get_int(k, "partition", 0, INT32_MAX, &partition))
            return E_MALFORMED;
        r->partition = (int32_t)partition;
        if (r->kind == STATE_PART)
            return state_get_part(k, v, a, &r->part) ? E_OK : E_MALFORMED;
        if (r->kind == STATE_LOSS)
            return state_get_loss(k, v, a, &r->loss) ? E_OK : E_MALFORMED;
        r->has_rest = !r->removed && state_get_rest(v, a, &r->part);
        if (!r->removed)
            parse_copy(v, a, r);
        return r->removed || parse_pair(v, &r->pair) ? E_OK : E_MALFORMED;
    }
    if (str_eq(kind, STR("producer"))) {
        r->kind = STATE_PRODUCER;
        if (!get_str(k, "origin", a, &r->origin))
            return E_MALFORMED;
        if (r->removed)
            return E_OK;
        return get_int(v, "producer_id", 0, INT64_MAX, &r->producer_id) &&
                       get_str(v, "cluster_id", a, &r->cluster_id)
                   ? E_OK
                   : E_MALFORMED;
    }
    if (str_eq(kind, STR("writer"))) {
        r->kind = STATE_WRITER;
        return get_int(k, "producer_id", 0, INT64_MAX, &r->producer_id) ? E_OK : E_MALFORMED;
    }
    if (str_eq(kind, STR("transactions"))) {
        r->kind = STATE_TRANSACTIONS;
        return get_str(k, "origin", a, &r->origin) &&
                       (r->removed || get_int(v, "count", 0, INT16_MAX, &r->count))
                   ? E_OK
                   : E_MALFORMED;
    }
    r->kind = STATE_OTHER;
    return E_OK;
}

enum err state_parse(struct str key, struct str value, struct arena *a, struct state_record *out)
{
    struct state_record r = { .kind = STATE_OTHER, .removed = str_is_null(value) };
    json_t *k = key.p ? json_loadb(key.p, key.n, 0, NULL) : NULL;
    json_t *v = value.p ? json_loadb(value.p, value.n, 0, NULL) : NULL;
    enum err e = E_MALFORMED;

    if (json_is_object(k) && (r.removed || json_is_object(v)))
        e = parse_members(k, v, a, &r);
    json_decref(k);
    json_decref(v);
    if (!e)
        *out = r;
    return e;
}
