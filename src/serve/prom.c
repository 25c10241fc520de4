/* prom.c -- /metrics: the view as Prometheus text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "serve/handlers.h"

void prom_answer(struct answer *a, struct buf *out)
{
    const struct view *v = a->view;

    a->type = "text/plain; version=0.0.4; charset=utf-8";
    buf_fmt(out, "# HELP heliostat_ready 1 when every enabled flow copies.\n# TYPE heliostat_ready gauge\n"
                 "heliostat_ready %d\n", view_is_ready(v, NULL));
}
