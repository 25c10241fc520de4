/* mirror_sim.h -- the mirror under test: directors, flows and relays as the daemon joins them, on simulated loops.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_MIRROR_SIM_H
#define SIM_MIRROR_SIM_H

#include "base/pool.h"
#include "mirror/director.h"

#define MIRROR_WORKERS 2

struct mirror;

/* text: an mm2.properties file. */
struct mirror *mirror_start(const char *text, int64_t memory_max);
/* kill -9: what it had sent is under way, nothing else of it is left but memory. */
void mirror_kill(struct mirror **m);
/* SIGSTOP, and SIGCONT. */
void mirror_pause(struct mirror *m);
void mirror_continue(struct mirror *m);
/* SIGTERM; mirror_is_stopped becomes true within some seconds. */
void mirror_stop(struct mirror *m);
bool mirror_is_stopped(const struct mirror *m, bool *stored);
/* After it stopped: takes everything apart. */
void mirror_free(struct mirror **m);

/* Fails the run when memory is past its budget. announced: by brokers, of answers that never come whole. */
void mirror_check(const struct mirror *m, size_t announced);
/* Percent of payload blocks that the system does not give. */
void mirror_sim_starve(int32_t percent);
/* Whether the last view shows every partition copying and nothing wrong; else *what says the first that is. */
bool mirror_is_well(const struct mirror *m, char *what, size_t room);
/* Whether the last view says that it runs its flow: no other process does. */
bool mirror_is_holding(const struct mirror *m);
uint64_t mirror_turns(const struct mirror *m);

#endif
