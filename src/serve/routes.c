/* routes.c -- finds the row of routes.def that answers a request, and reads what stands behind the '?'.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "serve/routes.h"

#include "base/json.h"
#include "serve/handlers.h"

#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct route_row rows[] = {
#define ROUTE(method, path, handler, role, doc) { method, path, role, doc, handler },
#include "serve/routes.def"
#undef ROUTE
};

const struct route_row *routes_all(size_t *n)
{
    *n = COUNT(rows);
    return rows;
}

const char *routes_status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    default:
        return "Service Unavailable";
    }
}

void routes_refuse(struct answer *a, struct buf *out, int status, const char *fmt, ...)
{
    struct json j = json_to(out);
    char text[500];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    a->status = status;
    json_open(&j, '{');
    json_put_c(&j, "error", text);
    json_put_int(&j, "status", status);
    json_close(&j, '}');
    buf_put_char(out, '\n');
}

static bool take_flow(const char *value, struct answer *a, struct buf *out)
{
    const struct view *v = a->view;

    for (int32_t i = 0; v && i < v->flows_n; i++) {
        if (str_eq(v->flows[i].name, str_c(value))) {
            a->flow = i;
            return true;
        }
    }
    routes_refuse(a, out, 404, "there is no flow %s here", value);
    return false;
}

static bool take_partitions(const char *value, struct answer *a, struct buf *out)
{
    if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0) {
        routes_refuse(a, out, 400, "partitions is true or false, not %s", value);
        return false;
    }
    a->partitions = value[0] == 't';
    return true;
}

/* What stands behind the '?'. A word that nobody reads is refused, so that a slip of the pen does not go by as an
 * answer to another question. */
static bool take_query(const char *query, struct answer *a, struct buf *out)
{
    struct evkeyvalq pairs;
    struct evkeyval *kv;
    bool good = true;

    if (evhttp_parse_query_str(query, &pairs)) {
        routes_refuse(a, out, 400, "what follows '?' is not name=value&name=value");
        return false;
    }
    for (kv = pairs.tqh_first; kv && good; kv = kv->next.tqe_next) {
        if (!strcmp(kv->key, "flow")) {
            good = take_flow(kv->value, a, out);
        } else if (!strcmp(kv->key, "partitions")) {
            good = take_partitions(kv->value, a, out);
        } else {
            routes_refuse(a, out, 400, "there is no parameter %s; flow and partitions are known", kv->key);
            good = false;
        }
    }
    evhttp_clear_headers(&pairs);
    return good;
}

void routes_answer(const char *path, const char *query, struct answer *a, struct buf *out)
{
    const struct route_row *row = NULL;

    a->status = 200;
    a->type = "application/json";
    a->more = NULL;
    a->flow = -1;
    a->partitions = true;
    a->query = query;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(path, rows[i].path))
            row = &rows[i];
    if (!row) {
        routes_refuse(a, out, 404, "there is no %s here; / lists what there is", path);
        return;
    }
    if ((row->handler == status_answer || row->handler == prom_answer) && query && query[0] &&
        !take_query(query, a, out))
        return;
    if (!a->view && row->handler != health_answer) {
        routes_refuse(a, out, 503, "nothing is known yet");
        return;
    }
    row->handler(a, out);
}
