/* sched.h -- timers and run list of one loop, shared by the real and the simulated back end.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Internal to the back ends (loop_uv.c, tests/sim/loop_sim.c): everybody else uses task_* and timer_* of
 * loop.h, which sched.c implements on top of loop_sched and loop_now_us. A back end calls sched_run once
 * per turn, after it has delivered the turn's readiness, and may sleep until sched_next_us if nothing is
 * pending. The loop's thread only.
 */
#ifndef LOOP_SCHED_H
#define LOOP_SCHED_H

#include "loop/loop.h"

/* Bounds of one turn, so that the network is looked at again in good time. */
#define SCHED_TIMERS_MAX 4096
#define SCHED_TASKS_MAX  4096

#define SCHED_NEVER INT64_MAX

struct sched {
    struct timer **heap; /* the nearest first; grows with the timers that are embedded elsewhere */
    size_t count, room;
    uint64_t order;        /* of the next timer that is set */
    struct list_node run;  /* tasks of this turn */
    struct list_node next; /* tasks that ran in this turn and were woken again */
    uint64_t turn;
};

void sched_init(struct sched *s);
/* Forgets timers and tasks that are still set: their owners must not touch them afterwards. */
void sched_fini(struct sched *s);

/* One turn: fires the timers that were due at now_us when it began, then runs the tasks. */
void sched_run(struct sched *s, int64_t now_us);

/* Whether tasks wait for the next turn; then the back end must not sleep. */
bool sched_is_pending(const struct sched *s);
/* When the nearest timer is due; SCHED_NEVER without any. */
int64_t sched_next_us(const struct sched *s);

/* Given by the back end. */
struct sched *loop_sched(struct loop *l);

#endif
