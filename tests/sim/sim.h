/* sim.h -- a simulated world: one clock, one source of luck, one queue of events.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything that happens in a run is an event in virtual time: a turn of a loop, bytes that arrive, a broker
 * that answers, a fault. Events of one time run in an order that the seed decides. One world per process, which
 * several loops share; there are no threads.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "base/rand.h"

#define SIM_MS INT64_C(1000)
#define SIM_S  INT64_C(1000000)

struct sim_event {
    size_t heap_at; /* place in the heap + 1; 0: not set */
    int64_t at_us;
    uint64_t luck; /* order among events of one time */
    void (*fn)(struct sim_event *e);
    void *arg; /* for who does not embed it */
};

void sim_begin(uint64_t seed);
int64_t sim_now_us(void);
/* The wall clock, which a fault may move. */
int64_t sim_wall_ms(void);
void sim_wall_jump(int64_t by_ms);

struct rand *sim_rand(void);
/* What sim_between and sim_chance draw from until it is NULL again: the luck of one fault. */
void sim_rand_use(struct rand *r);
int64_t sim_between(int64_t least, int64_t most); /* both included */
bool sim_chance(int64_t percent);

/* Sets or moves. */
void sim_event_set(struct sim_event *e, int64_t after_us);
/* Sets it, or moves it to an earlier time; never to a later one. */
void sim_event_hurry(struct sim_event *e, int64_t after_us);
void sim_event_cancel(struct sim_event *e);
static inline bool sim_event_is_set(const struct sim_event *e)
{
    return e->heap_at != 0;
}

/* Runs the events of the next `span_us`. */
void sim_run(int64_t span_us);
uint64_t sim_events_run(void);

/* What is wrong, and where in the run; prints how to repeat it and ends the process. */
void sim_fail(const char *fmt, ...) PRINTF_LIKE(1, 2) NORETURN;
/* A line of the trace, when one is wanted. */
void sim_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
void sim_trace(bool on);

#endif
