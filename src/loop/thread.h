/* thread.h -- starts a named thread and waits for its end.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Threads share nothing but loop_post, cells and counters, so there is no lock to be had here. Any thread.
 */
#ifndef LOOP_THREAD_H
#define LOOP_THREAD_H

#include "base/util.h"

struct thread;

/* Runs fn(arg) on a new thread. Signals stay with the threads of before. The name, of which the system
 * keeps 15 bytes, is what `top -H` shows. Stops the process when the system has no thread to give. */
struct thread *thread_start(const char *name, void (*fn)(void *arg), void *arg);

/* Returns once fn has returned, and clears the pointer. NULL is fine. */
void thread_join(struct thread **t);

#endif
