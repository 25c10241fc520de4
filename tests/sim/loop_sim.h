/* loop_sim.h -- what the world knows of its loops beyond loop.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_LOOP_SIM_H
#define SIM_LOOP_SIM_H

#include "loop/loop.h"

/* Something for the loop to look at: its next turn comes soon. */
void loop_sim_kick(struct loop *l);

/* The loop stands still for good, as after kill -9: its memory stays, nothing of it runs again. */
void loop_sim_kill(struct loop *l);
bool loop_sim_is_dead(const struct loop *l);
/* SIGSTOP and SIGCONT: it stands still, and goes on where it was. */
void loop_sim_pause(struct loop *l, bool paused);

/* Turns so far: a loop that spins has too many. */
uint64_t loop_sim_turns(const struct loop *l);

/* Places for net_sim.c: the loop's sockets. */
struct list_node *loop_sim_socks(struct loop *l);

/* Given by net_sim.c: announces readiness to the loop's sockets; true when some stay ready. */
bool net_sim_deliver(struct loop *l);
/* Whether a socket of the loop has something to announce now. */
bool net_sim_is_ready(struct loop *l);

/* Frees what was closed. */
void net_sim_sweep(struct loop *l);
/* All sockets of a loop that was killed: their peers get what was written, then the end. */
void net_sim_kill(struct loop *l);

#endif
