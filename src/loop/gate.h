/* gate.h -- one thread waits, not long, until another has done something for it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For threads without a loop of ours (HTTP, commands). A thread that has one never waits here.
 */
#ifndef LOOP_GATE_H
#define LOOP_GATE_H

#include "base/util.h"

#include <pthread.h>

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};

void gate_init(struct gate *g);
void gate_fini(struct gate *g);

/* From any thread; what was written before is seen by who waited. */
void gate_open(struct gate *g);
/* False: not open after limit_ms. */
bool gate_wait(struct gate *g, int64_t limit_ms);

#endif
