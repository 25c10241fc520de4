/* handlers.h -- what the rows of routes.def call.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each writes the answer's first piece into out (serve/answer.h). a->view is there, but for health_answer.
 */
#ifndef SERVE_HANDLERS_H
#define SERVE_HANDLERS_H

#include "serve/answer.h"

void page_answer(struct answer *a, struct buf *out);   /* page.c */
void health_answer(struct answer *a, struct buf *out); /* health.c */
void health_ready(struct answer *a, struct buf *out);  /* health.c */
void prom_answer(struct answer *a, struct buf *out);   /* prom.c */
void status_answer(struct answer *a, struct buf *out); /* status_json.c */
void offsets_answer(struct answer *a, struct buf *out); /* offsets.c */

#endif
