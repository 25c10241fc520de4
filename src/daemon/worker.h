/* worker.h -- a thread that carries data: one loop, one memory pool, its parts of the flows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Made, started and stopped by the control thread. What runs on it comes by messages (mirror/flow_port.h).
 */
#ifndef DAEMON_WORKER_H
#define DAEMON_WORKER_H

#include "mirror/flow_port.h"

struct worker;

/* pool_bytes is this worker's share of heliostat.memory.max. */
struct worker *worker_start(int number, size_t pool_bytes);
struct worker_world worker_world(struct worker *w);

/* Every flow on it must be closed. Waits for the thread's end and clears the pointer. */
void worker_stop(struct worker **w);

#endif
