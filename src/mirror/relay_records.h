/* relay_records.h -- where a partition's batches are opened: the record path's use, and neighbours that are merged.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shared by relay*.c only. One `struct gather` per flow holds what one fetch answer has brought in a row and may leave as
 * one batch; it is empty between answers. Thread: the worker's.
 */
#ifndef MIRROR_RELAY_RECORDS_H
#define MIRROR_RELAY_RECORDS_H

#include "mirror/flow_internal.h"
#include "mirror/record_path.h"
#include "mirror/walk.h"

#define GATHER_BATCHES_MAX 2048
#define GATHER_BYTES_MAX   (128 * KiB) /* of a merged batch, before it is merged */

struct gather {
    struct walk_step steps[GATHER_BATCHES_MAX];
    struct str sources[GATHER_BATCHES_MAX]; /* the bytes of each */
    size_t n, bytes;
    bool met; /* many small ones stood together in this answer */
};

/* R2: the record path. `r->skip` records of the batch are in the target already. False: the partition stopped. */
bool relay_decode(struct relay *r, const struct walk_step *s);

/* What its records' times become (relay_limits.c). */
struct record_times relay_times(const struct relay *r, const struct batch *b);
/* False when the partition was stopped by what it met, or will be. */
bool relay_goes_on(const struct relay *r);

/* Around the walk of one answer. */
void relay_gather_begin(struct relay *r);
void relay_gather_end(struct relay *r);
/* Keeps the step for later, if it may leave together with those that are kept already. */
bool relay_gather(struct relay *r, const struct walk_step *s);
/* How many are kept; they are given up by this call and stay readable until the next relay_gather. */
size_t relay_gathered(struct relay *r);
/* Sends the gathered ones as one batch (or as few as the target takes), if that pays; false: nothing was sent. */
bool relay_merge(struct relay *r, size_t n);

#endif
