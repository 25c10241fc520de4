/* faults_mirror.c -- kills, stops and doubles of the mirror's process.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   running --kill--> (gone) --start--> running
 *   running --SIGTERM--> draining --(its end, or kill)--> (gone) --start--> running
 *   running --SIGSTOP--> zombie stands still beside a new one --SIGCONT--> both run --kill of the older--> running
 */
#include "scenario.h"

void fault_mirror_start(struct scenario *s)
{
    s->mirror = mirror_start(s->config, s->memory_max);
}

static void on_start_again(struct sim_event *e)
{
    fault_mirror_start(e->arg);
}

static void start_again(struct scenario *s, int64_t after_us)
{
    s->start_again.fn = on_start_again;
    s->start_again.arg = s;
    sim_event_set(&s->start_again, after_us);
}

void fault_kill(struct scenario *s)
{
    if (!s->mirror || s->stopping)
        return;
    tally(TALLY_KILL);
    mirror_kill(&s->mirror);
    s->kills++;
    start_again(s, sim_between(0, 3000) * SIM_MS);
}

/* A drain that is over is taken apart, one that is not is cut short. */
static void on_end_stop(struct sim_event *e)
{
    struct scenario *s = e->arg;
    bool stored;

    s->stopping = false;
    if (mirror_is_stopped(s->mirror, &stored) && stored) {
        mirror_free(&s->mirror);
        start_again(s, sim_between(0, 1000) * SIM_MS);
    } else {
        fault_kill(s);
    }
}

void fault_stop(struct scenario *s)
{
    if (!s->mirror || s->stopping)
        return;
    tally(TALLY_STOP);
    s->stopping = true;
    mirror_stop(s->mirror);
    s->end_stop.fn = on_end_stop;
    s->end_stop.arg = s;
    sim_event_set(&s->end_stop, sim_between(0, 6000) * SIM_MS);
}

static void on_end_zombie(struct sim_event *e)
{
    struct scenario *s = e->arg;

    mirror_kill(&s->zombie);
}

static void on_wake_zombie(struct sim_event *e)
{
    struct scenario *s = e->arg;

    tally(TALLY_ZOMBIE);
    if (s->mirror && mirror_is_holding(s->mirror))
        tally(TALLY_ZOMBIE_LATE);
    mirror_continue(s->zombie);
    sim_event_set(&s->end_zombie, sim_between(0, 10000) * SIM_MS);
}

void fault_zombie(struct scenario *s)
{
    if (!s->mirror || s->stopping || s->zombie)
        return;
    s->zombie = s->mirror;
    s->mirror = NULL;
    mirror_pause(s->zombie);
    s->wake_zombie = (struct sim_event){ .fn = on_wake_zombie, .arg = s };
    s->end_zombie = (struct sim_event){ .fn = on_end_zombie, .arg = s };
    /* The session of one that sleeps ends after 10 s. */
    sim_event_set(&s->wake_zombie, (sim_chance(20) ? sim_between(0, 12000) : sim_between(12000, 40000)) * SIM_MS);
    start_again(s, sim_between(0, 3000) * SIM_MS);
}
