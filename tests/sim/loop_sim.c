/* loop_sim.c -- loop.h in virtual time: turns are events of the world.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A turn does what one of loop_uv.c does: messages and sockets mark and wake, then timers, then tasks. It costs
 * some virtual time, so that code that spins moves the clock and is seen.
 */
#include "loop_sim.h"

#include "base/alloc.h"
#include "base/must.h"
#include "loop/sched.h"
#include "sim.h"

#include <stdio.h>

#define TURN_LEAST_US 5
#define TURN_MOST_US  60
#define POST_MOST_US  2000

struct mail {
    struct mail *next;
    struct msg *msg;
    int64_t at_us;
};

struct loop {
    struct sched sched;
    struct sim_event turn;
    int64_t now_us, busy_until_us;
    struct mail *mail, **mail_end; /* in the order in which they were posted */
    int64_t mail_us;               /* when the last of them is due */
    struct list_node socks;
    struct rand rand;
    bool dead, stopped, paused;
    uint64_t turns;
    void *owner;
    char name[32];
};

static struct loop *current; /* whose turn it is; NULL: the world's */

static void plan_turn(struct loop *l)
{
    int64_t at_us = sched_next_us(&l->sched);

    if (l->dead || l->paused)
        return;
    if (l->mail)
        at_us = MIN(at_us, l->mail->at_us);
    if (sched_is_pending(&l->sched) || net_sim_is_ready(l))
        at_us = sim_now_us();
    if (at_us == SCHED_NEVER)
        return;
    at_us = MAX(at_us, l->busy_until_us);
    sim_event_hurry(&l->turn, at_us - sim_now_us());
}

static void deliver_mail(struct loop *l)
{
    while (l->mail && l->mail->at_us <= l->now_us) {
        struct mail *m = l->mail;
        struct msg *msg = m->msg;

        l->mail = m->next;
        if (!l->mail)
            l->mail_end = &l->mail;
        mem_free(m);
        msg->run(msg, l);
    }
}

static void turn(struct sim_event *e)
{
    struct loop *l = container_of(e, struct loop, turn);

    if (l->dead || l->stopped)
        return;
    current = l;
    l->now_us = sim_now_us();
    l->turns++;
    deliver_mail(l);
    (void)net_sim_deliver(l);
    sched_run(&l->sched, l->now_us);
    current = NULL;
    l->busy_until_us = sim_now_us() + sim_between(TURN_LEAST_US, TURN_MOST_US);
    plan_turn(l);
}

void loop_sim_kick(struct loop *l)
{
    if (l != current)
        plan_turn(l);
}

void loop_sim_kill(struct loop *l)
{
    l->dead = true;
    sim_event_cancel(&l->turn);
}

void loop_sim_pause(struct loop *l, bool paused)
{
    l->paused = paused;
    if (paused)
        sim_event_cancel(&l->turn);
    else
        plan_turn(l);
}

bool loop_sim_is_dead(const struct loop *l)
{
    return l->dead;
}

uint64_t loop_sim_turns(const struct loop *l)
{
    return l->turns;
}

struct list_node *loop_sim_socks(struct loop *l)
{
    return &l->socks;
}

/* --- loop.h --- */

struct loop *loop_new(const char *name)
{
    struct loop *l = mem_new(sizeof(*l));

    snprintf(l->name, sizeof(l->name), "loop %s", name);
    sched_init(&l->sched);
    list_init(&l->socks);
    rand_init(&l->rand, rand_next(sim_rand()));
    l->mail_end = &l->mail;
    l->now_us = sim_now_us();
    l->turn.fn = turn;
    return l;
}

void loop_free(struct loop **lp)
{
    struct loop *l = *lp;

    if (!l)
        return;
    must(l != current);
    *lp = NULL;
    l->owner = NULL;
    l->now_us = INT64_MAX;
    deliver_mail(l);
    must_say(list_is_empty(&l->socks), "a socket outlives its loop");
    sim_event_cancel(&l->turn);
    sched_fini(&l->sched);
    mem_free(l);
}

void loop_run(struct loop *l)
{
    must_say(l == NULL, "the world runs its loops itself");
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

void loop_check(const struct loop *l)
{
    must_say(!current || current == l, l->name);
}

int64_t loop_now_us(const struct loop *l)
{
    return l == current ? l->now_us : sim_now_us();
}

int64_t loop_now_ms(const struct loop *l)
{
    return loop_now_us(l) / 1000;
}

int64_t loop_clock_now_ms(const struct loop *l)
{
    return loop_now_ms(l);
}

int64_t loop_wall_ms(const struct loop *l)
{
    (void)l;
    return sim_wall_ms();
}

struct rand *loop_rand(struct loop *l)
{
    return &l->rand;
}

/* One queue per receiver, so messages of one sender, and of all, come in order. */
void loop_post(struct loop *l, struct msg *m)
{
    struct mail *mail = mem_new(sizeof(*mail));

    mail->msg = m;
    mail->at_us = MAX(l->mail_us, sim_now_us() + sim_between(0, POST_MOST_US));
    l->mail_us = mail->at_us;
    *l->mail_end = mail;
    l->mail_end = &mail->next;
    loop_sim_kick(l);
}

void loop_on_signal(struct loop *l, int signum, void (*fn)(struct loop *l, int signum, void *arg),
                    void *arg)
{
    (void)l;
    (void)signum;
    (void)fn;
    (void)arg;
}

void loop_set_owner(struct loop *l, void *owner)
{
    l->owner = owner;
}

void *loop_owner(struct loop *l)
{
    return l->owner;
}

struct sched *loop_sched(struct loop *l)
{
    return &l->sched;
}
