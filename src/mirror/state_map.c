/* state_map.c -- the state topic's records of offset maps and losses, both ways.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/state_map.h"

#include "base/base64.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

static void put_key(struct buf *out, const char *kind, struct str topic, int32_t partition, const char *member,
                    int64_t value)
{
    buf_fmt(out, "{\"kind\":\"%s\",\"topic\":", kind);
    state_put_json(out, topic);
    buf_fmt(out, ",\"partition\":%" PRId32 ",\"%s\":%" PRId64 "}", partition, member, value);
}

static void put_runs(struct buf *out, const struct offset_part *p)
{
    buf_fmt(out, "\"source\":%" PRId64 ",\"target\":%" PRId64 ",\"runs\":\"", p->source, p->target);
    base64_put(out, p->runs);
    buf_put_char(out, '"');
}

void state_format_part_key(struct buf *out, struct str topic, int32_t partition, uint32_t number)
{
    put_key(out, "map", topic, partition, "part", number);
}

void state_format_part(struct buf *out, const struct offset_part *p)
{
    buf_put_char(out, '{');
    put_runs(out, p);
    buf_put_char(out, '}');
}

void state_add_rest(struct buf *pair, const struct offset_part *rest)
{
    pair->n -= pair->n > 0 && !pair->bad; /* the closing bracket comes again */
    buf_fmt(pair, ",\"map\":{\"part\":%" PRIu32 ",\"before\":%d,\"source_end\":%" PRId64 ",\"target_end\":%" PRId64 ",",
            rest->number, rest->before, rest->source_end, rest->target_end);
    put_runs(pair, rest);
    buf_put_str(pair, STR("}}"));
}

void state_add_copy(struct buf *pair, struct str copy, uint32_t filter)
{
    pair->n -= pair->n > 0 && !pair->bad; /* likewise */
    buf_put_str(pair, STR(",\"copy\":"));
    state_put_json(pair, copy);
    if (filter)
        buf_fmt(pair, ",\"filter\":%" PRIu32, filter);
    buf_put_char(pair, '}');
}

void state_format_loss_key(struct buf *out, struct str topic, int32_t partition, int64_t number)
{
    put_key(out, "loss", topic, partition, "slot", number % STATE_LOSS_SLOTS);
}

void state_format_loss(struct buf *out, const struct state_loss *l)
{
    buf_fmt(out, "{\"number\":%" PRId64 ",\"from\":%" PRId64 ",\"to\":%" PRId64 ",\"records\":%" PRId64
            ",\"time_ms\":%" PRId64 ",\"cause\":", l->number, l->from, l->to, l->records, l->time_ms);
    state_put_json(out, l->cause);
    if (l->repeat)
        buf_put_str(out, STR(",\"repeat\":true"));
    buf_put_char(out, '}');
}

static bool get_int(const json_t *o, const char *name, int64_t least, int64_t most, int64_t *out)
{
    const json_t *j = json_object_get(o, name);

    if (!json_is_integer(j) || json_integer_value(j) < least || json_integer_value(j) > most)
        return false;
    *out = json_integer_value(j);
    return true;
}

static bool get_runs(const json_t *v, struct arena *a, struct offset_part *p)
{
    const json_t *runs = json_object_get(v, "runs");
    struct buf bytes;
    bool good;

    if (!json_is_string(runs) || !get_int(v, "source", 0, INT64_MAX, &p->source) ||
        !get_int(v, "target", 0, INT64_MAX, &p->target))
        return false;
    buf_init(&bytes, 1 * MiB);
    good = base64_get(&bytes, str_of(json_string_value(runs), json_string_length(runs)));
    p->runs = arena_str(a, buf_str(&bytes));
    buf_fini(&bytes);
    return good;
}

bool state_get_part(const struct json_t *key, const struct json_t *value, struct arena *a, struct offset_part *out)
{
    struct offset_part p = { 0 };
    int64_t number;

    if (!get_int(key, "part", 0, UINT32_MAX, &number) || (value && !get_runs(value, a, &p)))
        return false;
    p.number = (uint32_t)number;
    *out = p;
    return true;
}

bool state_get_rest(const struct json_t *pair, struct arena *a, struct offset_part *out)
{
    const json_t *map = json_object_get(pair, "map");
    struct offset_part p = { 0 };
    int64_t number, before;

    if (!json_is_object(map) || !get_int(map, "part", 0, UINT32_MAX, &number) ||
        !get_int(map, "before", 0, OFFSET_REASONS - 1, &before) ||
        !get_int(map, "source_end", 0, INT64_MAX, &p.source_end) ||
        !get_int(map, "target_end", 0, INT64_MAX, &p.target_end) || !get_runs(map, a, &p))
        return false;
    p.number = (uint32_t)number;
    p.before = (uint8_t)before;
    *out = p;
    return true;
}

bool state_get_loss(const struct json_t *key, const struct json_t *value, struct arena *a, struct state_loss *out)
{
    struct state_loss l = { .records = -1 };
    const json_t *cause = json_object_get(value, "cause");

    if (!get_int(key, "slot", 0, STATE_LOSS_SLOTS - 1, &l.number))
        return false;
    if (value && (!get_int(value, "number", 0, INT64_MAX, &l.number) || !get_int(value, "from", 0, INT64_MAX, &l.from) ||
                  !get_int(value, "to", l.from, INT64_MAX, &l.to) ||
                  !get_int(value, "time_ms", 0, INT64_MAX, &l.time_ms) || !json_is_string(cause)))
        return false;
    (void)get_int(value, "records", 0, INT64_MAX, &l.records);
    l.repeat = json_is_true(json_object_get(value, "repeat"));
    l.cause = arena_str(a, str_of(json_string_value(cause), json_string_length(cause)));
    *out = l;
    return true;
}
