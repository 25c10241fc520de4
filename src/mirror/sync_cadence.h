/* sync_cadence.h -- which acknowledged records get an offset sync: MirrorMaker 2's rules (mm2-spec 5.2).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Due for the first record, after a gap in the source's offsets, when the target's offsets go back, and when the target is
 * offset.lag.max + 1 records past the last one; for the tail of an idle partition with the next positions. At full speed
 * MirrorMaker 2 thins them by its ten on their way; here ten in any tenth of a second and partition are enough. Pure.
 */
#ifndef MIRROR_SYNC_CADENCE_H
#define MIRROR_SYNC_CADENCE_H

#include "base/util.h"

/* Of one partition, as long as it is copied by one relay. Zeroed: nothing yet. */
struct sync_cadence {
    bool begun;
    bool late;         /* the last record has no sync */
    int64_t up, down;  /* source and target offset of the last acknowledged record */
    int64_t synced;    /* target offset of the last sync */
    int64_t window_ms; /* when the count of syncs began */
    int32_t in_window;
};

/* Records that lie one by one in the target as in the source. */
struct sync_run {
    int64_t source, target, count;
};

struct sync_point {
    int64_t upstream, downstream;
};

#define SYNC_POINTS_MAX 2
#define SYNC_WINDOW_MS 100
#define SYNC_WINDOW_MAX 10

/* count records from source on are in the target from target on, one by one. The syncs that are due (mm2-spec 5.2),
 * oldest first: of a long run only the first and the newest. Above SYNC_WINDOW_MAX in a window only offsets that go back
 * get theirs at once; what is held back is told with the next run or by the flush. Gives their number. */
int32_t sync_cadence_take(struct sync_cadence *c, int64_t lag_max, int64_t now_ms, const struct sync_run *run,
                          struct sync_point out[SYNC_POINTS_MAX]);
/* The last record, if it has no sync. */
bool sync_cadence_flush(struct sync_cadence *c, struct sync_point *out);

#endif
