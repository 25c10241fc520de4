/* answer.h -- what a route says: a status, a type, and text that is made piece by piece.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A long answer is never held as a whole: the route writes the first piece and leaves `more` for the next, which is
 * called when the reader has taken what there was. Server's thread (routes know no sockets, so tests need none).
 */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include "base/buf.h"
#include "mirror/order.h"
#include "mirror/view.h"

#define ANSWER_PIECE (64 * KiB) /* a piece ends at the first row beyond this */
#define ANSWER_PIECE_MAX (4 * MiB)

struct answer {
    /* Given to the route. */
    const struct view *view; /* held by a reference until the last piece; NULL: there is none yet */
    int64_t view_age_ms;     /* since a new view was seen */
    int32_t flow;            /* index of the only flow asked for; -1: all */
    bool partitions;         /* rows of partitions are wanted */
    const char *query;       /* what stands behind the '?'; NULL: nothing */
    struct order_desk *desk; /* for questions to the partitions; NULL: there is none */

    /* Set by the route. */
    int status;              /* HTTP; 200 unless changed */
    const char *type;        /* Content-Type; JSON unless changed */
    /* Adds the next piece; clears itself with the last. NULL: that was all. */
    void (*more)(struct answer *a, struct buf *out);

    /* Where the next piece goes on; the route's own. */
    int step;
    int64_t at_flow, at_item;
    bool comma;
};

#endif
