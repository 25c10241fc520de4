/* offsets.c -- /v1/offsets: what offsets of one partition became at the other side.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "serve/handlers.h"

#include "base/json.h"
#include "serve/routes.h"

#include <errno.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>

static bool take_number(const char **text, int64_t most, int64_t *out)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *out = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0 && *out <= most;
}

static bool take_offsets(const char *text, struct order *o)
{
    o->offsets = arena_array(&o->arena, ORDER_OFFSETS_MAX, sizeof(*o->offsets));
    while (o->n < ORDER_OFFSETS_MAX) {
        if (!take_number(&text, INT64_MAX, &o->offsets[o->n++]))
            return false;
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
    return false;
}

static bool take_pair(const struct evkeyval *kv, struct order *o, struct answer *a, struct buf *out)
{
    const char *value = kv->value;
    int64_t partition;

    if (!strcmp(kv->key, "flow")) {
        o->flow = arena_str(&o->arena, str_c(value));
    } else if (!strcmp(kv->key, "topic")) {
        o->topic = arena_str(&o->arena, str_c(value));
    } else if (!strcmp(kv->key, "partition") && take_number(&value, INT32_MAX, &partition) && !*value) {
        o->partition = (int32_t)partition;
    } else if (!strcmp(kv->key, "direction") && (!strcmp(value, "to-target") || !strcmp(value, "to-source"))) {
        o->to_target = !strcmp(value, "to-target");
    } else if (strcmp(kv->key, "offset") != 0 || !take_offsets(value, o)) {
        routes_refuse(a, out, 400, "%s=%.40s: known are flow=A->B, topic, partition, direction=to-target or to-source, "
                      "and offset=N,N,... with %d numbers at most", kv->key, kv->value, ORDER_OFFSETS_MAX);
        return false;
    }
    return true;
}

static bool take_query(const char *query, struct order *o, struct answer *a, struct buf *out)
{
    struct evkeyvalq pairs;
    struct evkeyval *kv;
    bool good = true;

    o->to_target = true;
    o->partition = -1;
    if (evhttp_parse_query_str(query ? query : "", &pairs)) {
        routes_refuse(a, out, 400, "what follows '?' is not name=value&name=value");
        return false;
    }
    for (kv = pairs.tqh_first; kv && good; kv = kv->next.tqe_next)
        good = take_pair(kv, o, a, out);
    evhttp_clear_headers(&pairs);
    if (good && (!o->flow.n || !o->topic.n || o->partition < 0 || !o->n)) {
        routes_refuse(a, out, 400, "flow, topic, partition and offset are needed");
        return false;
    }
    return good;
}

static void put_answer(struct json *j, int64_t asked, const struct offset_answer *a)
{
    json_open(j, '{');
    json_put_int(j, "offset", asked);
    json_put_c(j, "kind", offset_kind_name(a->kind));
    if (a->kind != OFFSET_UNKNOWN)
        json_put_int(j, "to", a->offset);
    if (a->kind == OFFSET_NEXT || a->kind == OFFSET_NOT_YET)
        json_put_int(j, "of", a->of);
    if (a->kind == OFFSET_NOT_YET)
        json_put_int(j, "short_by", a->short_by);
    if (a->kind == OFFSET_RANGE) {
        json_put_int(j, "to_last", a->last);
        json_put_c(j, "reason", offset_reason_text(a->reason));
    }
    json_close(j, '}');
}

static void put_answers(const struct order *o, struct buf *out)
{
    struct json j = json_to(out);

    json_open(&j, '{');
    json_put_str(&j, "flow", o->flow);
    json_put_str(&j, "topic", o->topic);
    json_put_int(&j, "partition", o->partition);
    json_put_c(&j, "direction", o->to_target ? "to-target" : "to-source");
    json_key(&j, "answers");
    json_open(&j, '[');
    for (int32_t i = 0; i < o->n; i++)
        put_answer(&j, o->offsets[i], &o->answers[i]);
    json_close(&j, ']');
    json_close(&j, '}');
    buf_put_char(out, '\n');
}

void offsets_answer(struct answer *a, struct buf *out)
{
    struct order *o = order_new();

    if (take_query(a->query, o, a, out)) {
        if (!a->desk || !order_ask(a->desk, o))
            routes_refuse(a, out, 503, "nobody answered within %d ms; ask again", ORDER_WAIT_MS);
        else if (!o->found)
            routes_refuse(a, out, 404, "partition %d of topic %.*s of flow %.*s is not copied here", o->partition,
                          STR_ARG(o->topic), STR_ARG(o->flow));
        else
            put_answers(o, out);
    }
    order_drop(&o);
}
