/* view_build.h -- makes the snapshot that view.h describes.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_VIEW_BUILD_H
#define MIRROR_VIEW_BUILD_H

#include "mirror/director.h"
#include "mirror/view.h"

/* What only the process knows; strings are copied. */
struct view_process {
    struct str version, commit, instance;
    int64_t start_time_ms, now_ms;
    int workers;
};

/* Control thread. The caller holds the one reference of the result. */
struct view *view_build(const struct view_process *p, struct director *const *directors, int32_t n);

#endif
