/* translation.h -- many questions to the offset maps at once: from the control thread to one worker and back.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Owned by whoever has it: the asker until it is sent (flow_port_translate), the worker until it comes back, then the
 * asker again, or nobody when that is gone: then it frees itself.
 */
#ifndef MIRROR_TRANSLATION_H
#define MIRROR_TRANSLATION_H

#include "base/arena.h"
#include "base/list.h"
#include "loop/loop.h"
#include "mirror/offset_map.h"

struct question {
    struct str topic; /* name on the source; copied */
    int32_t partition;
    int64_t offset;   /* of the source */
    void *owner;      /* the asker's own */
    struct offset_answer answer; /* OFFSET_UNKNOWN: not here, or nothing copied yet */
};

struct translation {
    struct msg msg;
    struct list_node node; /* of the asker; control thread */
    struct arena arena;
    struct question *at;
    int32_t n, room;
    void (*done)(struct translation *t, void *asker); /* on the control thread; takes it */
    void *asker; /* NULL: gone. Control thread only */
};

struct translation *translation_new(void (*done)(struct translation *t, void *asker), void *asker);
void translation_add(struct translation *t, const struct question *q);
void translation_free(struct translation **t);
/* Posted to the control thread when it is answered. */
void translation_back(struct msg *m, struct loop *l);

#endif
