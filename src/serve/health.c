/* health.c -- /healthz and /readyz: is the process alive, and does it do its work.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "serve/handlers.h"

#include "base/json.h"

/* The control thread makes a view about once a second, more seldom with many partitions (daemon/control.c). When none
 * has come for this long its loop is stuck. */
#define STUCK_MS 30000
#define STUCK_PER_PARTITION_MS 1

static int64_t stuck_after_ms(const struct view *v)
{
    int64_t partitions = 0;

    for (int32_t i = 0; v && i < v->flows_n; i++)
        partitions += v->flows[i].partitions_n;
    return STUCK_MS + partitions * STUCK_PER_PARTITION_MS;
}

void health_answer(struct answer *a, struct buf *out)
{
    struct json j = json_to(out);
    bool well = a->view_age_ms < stuck_after_ms(a->view);

    a->status = well ? 200 : 503;
    json_open(&j, '{');
    json_put_bool(&j, "healthy", well);
    json_put_int(&j, "view_age_ms", a->view_age_ms);
    json_close(&j, '}');
    buf_put_char(out, '\n');
}

void health_ready(struct answer *a, struct buf *out)
{
    struct json j = json_to(out);
    struct buf why;
    struct str rest, line;
    bool ready;

    buf_init(&why, ANSWER_PIECE_MAX);
    ready = view_is_ready(a->view, &why);
    a->status = ready ? 200 : 503;
    json_open(&j, '{');
    json_put_bool(&j, "ready", ready);
    json_key(&j, "reasons");
    json_open(&j, '[');
    rest = buf_str(&why);
    while (rest.n && str_next(&rest, '\n', &line))
        json_str(&j, line);
    json_close(&j, ']');
    json_key(&j, "standby");
    json_open(&j, '[');
    for (int32_t i = 0; a->view && i < a->view->flows_n; i++)
        if (a->view->flows[i].standby)
            json_str(&j, a->view->flows[i].name);
    json_close(&j, ']');
    json_close(&j, '}');
    buf_put_char(out, '\n');
    buf_fini(&why);
}
