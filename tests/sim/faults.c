/* faults.c -- what goes wrong in a run, drawn from the seed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "scenario.h"

#include <stdio.h>

static struct sim_cluster *some_cluster(struct scenario *s)
{
    return sim_chance(50) ? s->source : s->target;
}

static struct sim_broker *some_broker(struct scenario *s)
{
    struct sim_cluster *c = some_cluster(s);

    return &c->brokers[sim_between(0, c->brokers_n - 1)];
}

static struct sim_part *some_part(struct sim_cluster *c)
{
    struct sim_topic *t;

    if (c->topics_n == 0)
        return NULL;
    t = c->topics[sim_between(0, c->topics_n - 1)];
    return &t->parts[sim_between(0, t->parts_n - 1)];
}

static void cut_one(struct sim_broker *b)
{
    struct list_node *n;
    int64_t count = 0, pick;

    LIST_EACH(n, &b->listener.conns)
        count++;
    if (count == 0)
        return;
    pick = sim_between(0, count - 1);
    n = list_first(&b->listener.conns);
    while (pick-- > 0)
        n = n->next;
    sim_say("%s: a connection of broker %d is cut", b->cluster->name, b->id);
    sim_conn_cut_node(n);
}

static void move_leader(struct scenario *s)
{
    struct sim_cluster *c = some_cluster(s);
    struct sim_part *p = some_part(c);
    int32_t to = (int32_t)sim_between(1, c->brokers_n);

    if (p && p->leader >= 0 && c->brokers[to - 1].up)
        broker_move_leader(p, to);
}

/* A broker is in trouble for a while. */
static void trouble(struct scenario *s, enum fault_kind kind)
{
    struct sim_broker *b = some_broker(s);

    sim_say("%s: broker %d is %s", b->cluster->name, b->id,
            kind == FAULT_SLOW ? "slow" : kind == FAULT_SILENT ? "silent" : "throttling");
    if (kind == FAULT_SLOW)
        b->slow_us = sim_between(10, 1000) * SIM_MS;
    else if (kind == FAULT_SILENT)
        b->listener.silent = true;
    else
        b->throttle_ms = (int32_t)sim_between(10, 1000);
    sim_event_hurry(&s->well[b->cluster == s->target][b->id - 1], sim_between(200, 8000) * SIM_MS);
}

static void make_well(struct sim_broker *b)
{
    b->slow_us = 0;
    b->throttle_ms = 0;
    b->listener.silent = false;
}

static void on_well(struct sim_event *e)
{
    struct sim_broker *b = e->arg;

    sim_say("%s: broker %d is well", b->cluster->name, b->id);
    make_well(b);
}

static void on_start_again(struct sim_event *e)
{
    struct scenario *s = e->arg;

    s->mirror = mirror_start(s->config, s->memory_max);
}

static void kill_mirror(struct scenario *s)
{
    if (!s->mirror || s->stopping)
        return;
    mirror_kill(&s->mirror);
    s->kills++;
    sim_event_set(&s->start_again, sim_between(0, 3000) * SIM_MS);
}

/* A drain that is over is taken apart, one that is not is cut short. */
static void on_end_stop(struct sim_event *e)
{
    struct scenario *s = e->arg;
    bool stored;

    s->stopping = false;
    if (mirror_is_stopped(s->mirror, &stored) && stored) {
        mirror_free(&s->mirror);
        sim_event_set(&s->start_again, sim_between(0, 1000) * SIM_MS);
    } else {
        kill_mirror(s);
    }
}

static void stop_mirror(struct scenario *s)
{
    if (!s->mirror || s->stopping)
        return;
    s->stopping = true;
    mirror_stop(s->mirror);
    sim_event_set(&s->end_stop, sim_between(0, 6000) * SIM_MS);
}

static void change_topics(struct scenario *s)
{
    struct feed_topic *t = &s->feed->topics[sim_between(0, s->feed->topics_n - 1)];
    char name[32];

    if (sim_chance(50) && t->topic->parts_n < SIM_PARTS) {
        broker_topic_grow(t->topic, t->topic->parts_n + 1);
        sim_say("source: %s has %d partitions", t->topic->name, t->topic->parts_n);
    } else if (s->feed->topics_n < 6) {
        snprintf(name, sizeof(name), "late%d", s->feed->topics_n);
        t = feed_add_topic(s->feed, name, (int32_t)sim_between(1, 3));
        sim_say("source: topic %s", t->topic->name);
    }
}

static void end_starving(struct sim_part *p)
{
    p->not_enough_until_us = 0;
}

static void starve(struct scenario *s)
{
    struct sim_part *p = some_part(s->target);

    if (!p)
        return;
    sim_say("target: %s-%d has too few replicas in sync", p->topic->name, p->number);
    p->not_enough_until_us = sim_now_us() + sim_between(100, 5000) * SIM_MS;
}

static void each_part(struct sim_cluster *c, void (*fn)(struct sim_part *p))
{
    for (int i = 0; i < c->topics_n; i++)
        for (int j = 0; j < c->topics[i]->parts_n; j++)
            fn(&c->topics[i]->parts[j]);
}

static void happen(struct scenario *s, enum fault_kind kind)
{
    struct sim_broker *b;

    switch (kind) {
    case FAULT_CUT:
        cut_one(some_broker(s));
        break;
    case FAULT_CUT_ALL:
        sim_listener_cut_all(&some_broker(s)->listener);
        break;
    case FAULT_MOVE_LEADER:
        move_leader(s);
        break;
    case FAULT_RESTART:
        b = some_broker(s);
        broker_stop(b, sim_between(50, 5000) * SIM_MS);
        break;
    case FAULT_SLOW:
    case FAULT_SILENT:
    case FAULT_THROTTLE:
        trouble(s, kind);
        break;
    case FAULT_REPLICAS:
        starve(s);
        break;
    case FAULT_KILL:
        kill_mirror(s);
        break;
    case FAULT_CLOCK:
        sim_wall_jump(sim_between(-3600, 3600) * 1000);
        break;
    case FAULT_TOPICS:
        change_topics(s);
        break;
    case FAULT_PAYLOAD:
        s->source->corrupt_payload = (int32_t)sim_between(0, 30);
        break;
    case FAULT_OLD:
        s->feed->old = true;
        each_part(s->target, log_expire);
        break;
    case FAULT_STOP:
        stop_mirror(s);
        break;
    case FAULT_KINDS:
        break;
    }
}

static void on_fault(struct sim_event *e)
{
    struct scenario *s = container_of(e, struct scenario, next_fault);
    int kind = (int)sim_between(0, FAULT_KINDS - 1);

    while (!(s->faults & 1u << kind))
        kind = (kind + 1) % FAULT_KINDS;
    happen(s, kind);
    s->faults_done++;
    sim_event_set(e, sim_between(10 * SIM_MS, s->fault_pause_us));
}

void faults_start(struct scenario *s)
{
    s->next_fault.fn = on_fault;
    s->start_again.fn = on_start_again;
    s->start_again.arg = s->end_stop.arg = s;
    s->end_stop.fn = on_end_stop;
    for (int side = 0; side < 2; side++) {
        struct sim_cluster *c = side ? s->target : s->source;

        for (int i = 0; i < c->brokers_n; i++) {
            s->well[side][i].fn = on_well;
            s->well[side][i].arg = &c->brokers[i];
        }
    }
    s->fault_pause_us = sim_between(100, 4000) * SIM_MS;
    if (s->faults)
        sim_event_set(&s->next_fault, sim_between(10, 5000) * SIM_MS);
}

void faults_stop(struct scenario *s)
{
    sim_event_cancel(&s->next_fault);
    s->feed->old = false;
    for (int side = 0; side < 2; side++) {
        struct sim_cluster *c = side ? s->target : s->source;

        c->corrupt_payload = c->corrupt_any = 0;
        for (int i = 0; i < c->brokers_n; i++)
            make_well(&c->brokers[i]);
        each_part(c, end_starving);
    }
    sim_say("all is well from here on");
}
