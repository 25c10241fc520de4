/* routes.h -- finds the row of routes.def that answers a request.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SERVE_ROUTES_H
#define SERVE_ROUTES_H

#include "serve/answer.h"

struct route_row {
    const char *method, *path, *role, *doc;
    void (*handler)(struct answer *a, struct buf *out);
};

/* All rows, for the page of documentation; *n gets their number. */
const struct route_row *routes_all(size_t *n);

/* Answers GET or HEAD of path?query (query may be NULL) into *a and out, which holds the first piece. a->view
 * and a->view_age_ms are set before. What cannot be answered is an answer too: 400, 404 or 503. */
void routes_answer(const char *path, const char *query, struct answer *a, struct buf *out);

/* An answer that says what is wrong. */
void routes_refuse(struct answer *a, struct buf *out, int status, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

const char *routes_status_text(int status);

#endif
