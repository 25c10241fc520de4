/* director_gone.h -- the part of a flow's control side that deletes copies of topics that were deleted at the source.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part of struct director (mirror/director_internal.h); does nothing unless heliostat.sync.topic.deletions.enabled says
 * so. Thread: control.
 */
#ifndef MIRROR_DIRECTOR_GONE_H
#define MIRROR_DIRECTOR_GONE_H

#include "base/str.h"

#include <stdbool.h>

struct director;
struct gone_topic;

struct director_gone {
    struct gone_topic *topics; /* missed by the last look, by name */
    bool read;                 /* the stored positions were gone through once */
    enum gone_asked { GONE_NOTHING, GONE_AT_SOURCE, GONE_AT_BOTH } asked; /* by name, in this look */
};

/* A topic whose copy this flow has made is not listed by the source any more. */
void director_gone_note(struct director *d, struct str topic, struct str copy);
/* After the first plan: what earlier runs have copied and nobody lists now. */
void director_gone_note_stored(struct director *d);
/* One step of REFRESH_GONE; when nothing is left to do the refresh goes on. */
void director_gone_step(struct director *d);
void director_gone_free(struct director *d);

#endif
