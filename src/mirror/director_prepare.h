/* director_prepare.h -- the topics that a flow keeps its books in, as the director makes them and looks at them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part of struct director (mirror/director_internal.h). Thread: control.
 */
#ifndef MIRROR_DIRECTOR_PREPARE_H
#define MIRROR_DIRECTOR_PREPARE_H

#include "base/str.h"

struct director;

/* What the flow loses when such a topic forgets old records. */
enum internal_loss {
    LOSES_NOTHING,
    LOSES_HELP,  /* answers about old offsets */
    LOSES_PLACE, /* its positions: all would be copied again */
};

struct internal_topic {
    struct str name;
    int32_t partitions;
    int16_t replication_factor;
    const char *factor_key; /* of the file, for the text of a failure */
    enum internal_loss loss;
    bool needed;
    bool missing;
    int32_t partitions_found, replicas_found;
    struct str wrong; /* what is not as it should be; empty: nothing */
    bool forgets;     /* and the flow must not run on it */
};

#define INTERNAL_MAX 5

struct director_prepare {
    int side; /* 0: at the target, 1: at the source */
    struct internal_topic topics[INTERNAL_MAX]; /* of that side; strings in the director's arena and its config */
    int32_t topics_n;
    void (*verified)(struct director *d);
    uint32_t told[2]; /* a bit per topic of each side of which it was logged what is wrong */
};

void director_prepare(struct director *d);

/* director_verify.c: looks at the topics that are there, then calls verified, unless the director has failed. */
void director_verify(struct director *d, void (*verified)(struct director *d));

#endif
