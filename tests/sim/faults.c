/* faults.c -- what goes wrong in a run, drawn from the seed before it begins.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each fault has a number and luck of its own, so that a failing run can be repeated without some of them
 * (runner_shrink). What ends it is an event of its own too.
 */
#include "scenario.h"

#include <stdio.h>

#define CATCH_UP_US (4 * SIM_S) /* of replicas that are behind when all is well: longer than most writes wait */

static struct sim_broker *some_broker(struct scenario *s)
{
    struct sim_cluster *c = fault_some_cluster(s);

    return &c->brokers[sim_between(0, c->brokers_n - 1)];
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

/* A broker is in trouble for a while. */
static void trouble(struct scenario *s, enum fault_kind kind)
{
    struct sim_broker *b = some_broker(s);

    sim_say("%s: broker %d is %s", b->cluster->name, b->id,
            kind == FAULT_SLOW     ? "slow"
            : kind == FAULT_SILENT ? "silent"
            : kind == FAULT_STUCK  ? "stuck"
                                   : "throttling");
    if (kind == FAULT_SLOW) {
        b->slow_us = sim_between(10, 1000) * SIM_MS;
        tally(TALLY_SLOW);
    } else if (kind == FAULT_SILENT) {
        b->listener.silent = true;
        tally(TALLY_SILENT);
    } else if (kind == FAULT_STUCK) {
        b->stuck_until_us = sim_now_us() + sim_between(200, 8000) * SIM_MS;
        b->stuck_writes = sim_chance(50);
        tally(TALLY_STUCK);
    } else {
        b->throttle_ms = (int32_t)sim_between(10, 1000);
        tally(TALLY_THROTTLE);
    }
    sim_event_hurry(&s->well[b->cluster == s->target][b->id - 1], sim_between(200, 8000) * SIM_MS);
}

static void make_well(struct sim_broker *b)
{
    b->slow_us = b->stuck_until_us = 0;
    b->throttle_ms = 0;
    b->listener.silent = false;
}

static void on_well(struct sim_event *e)
{
    struct sim_broker *b = e->arg;

    sim_say("%s: broker %d is well", b->cluster->name, b->id);
    make_well(b);
}

static void on_well_all(struct sim_event *e)
{
    struct scenario *s = container_of(e, struct scenario, well_all);

    sim_say("limits and metadata are well");
    fault_cluster_well(s);
    s->source->metadata_lies = s->target->metadata_lies = 0;
    mirror_sim_starve(0);
}

static void well_soon(struct scenario *s)
{
    sim_event_hurry(&s->well_all, sim_between(200, 8000) * SIM_MS);
}

static void grow_old(struct scenario *s)
{
    s->feed->old = true;
    s->target->forgets = (int32_t)sim_between(20, 90);
    fault_each_part(s->target, log_expire);
}

static void happen_more(struct scenario *s, enum fault_kind kind)
{
    switch (kind) {
    case FAULT_KILL:
        fault_kill(s);
        break;
    case FAULT_CLOCK:
        tally(TALLY_CLOCK);
        sim_wall_jump(sim_between(-3600, 3600) * 1000);
        break;
    case FAULT_TOPICS:
        fault_topics(s);
        break;
    case FAULT_PAYLOAD:
        s->source->corrupt_payload = (int32_t)sim_between(0, 30);
        break;
    case FAULT_OLD:
        grow_old(s);
        break;
    case FAULT_STOP:
        fault_stop(s);
        break;
    case FAULT_UNCLEAN:
        fault_unclean(s);
        break;
    case FAULT_CRASH:
        fault_crash(s);
        break;
    case FAULT_METADATA:
        fault_some_cluster(s)->metadata_lies = (int32_t)sim_between(20, 80);
        well_soon(s);
        break;
    case FAULT_ANEW:
        fault_anew(s);
        break;
    case FAULT_RETENTION:
        fault_retention(s);
        break;
    case FAULT_SIZE:
        fault_size(s);
        well_soon(s);
        break;
    case FAULT_ZOMBIE:
        fault_zombie(s);
        break;
    case FAULT_MISTAKEN:
        fault_mistake(s);
        break;
    case FAULT_MEMORY:
        mirror_sim_starve((int32_t)sim_between(1, 30));
        well_soon(s);
        break;
    default:
        break;
    }
}

static void happen(struct scenario *s, enum fault_kind kind)
{
    switch (kind) {
    case FAULT_CUT:
        cut_one(some_broker(s));
        break;
    case FAULT_CUT_ALL:
        if (!sim_chance(50) || !fault_lose_answer(s))
            sim_listener_cut_all(&some_broker(s)->listener);
        break;
    case FAULT_MOVE_LEADER:
        fault_move_leader(s);
        break;
    case FAULT_RESTART:
        broker_stop(some_broker(s), sim_between(50, 5000) * SIM_MS);
        break;
    case FAULT_SLOW:
    case FAULT_SILENT:
    case FAULT_THROTTLE:
    case FAULT_STUCK:
        trouble(s, kind);
        break;
    case FAULT_REPLICAS:
        fault_starve(s);
        if (s->target->flaps)
            well_soon(s);
        break;
    default:
        happen_more(s, kind);
        break;
    }
}

static void on_fault(struct sim_event *e)
{
    struct scenario *s = container_of(e, struct scenario, next_fault);
    const struct fault_plan *p = &s->plan[s->next_plan];
    struct rand luck;

    if (!s->keep || s->keep[s->next_plan]) {
        rand_init(&luck, p->luck);
        sim_rand_use(&luck);
        sim_say("fault %d", s->next_plan);
        happen(s, p->kind);
        sim_rand_use(NULL);
        s->faults_done++;
    }
    if (++s->next_plan < s->planned)
        sim_event_set(e, s->plan[s->next_plan].at_us - sim_now_us());
}

/* How many worlds of a hundred have such faults. */
static int64_t share_of(enum fault_kind kind)
{
    switch (kind) {
    case FAULT_UNCLEAN: /* few, because of what it leaves no room for */
        return 12;
    case FAULT_CRASH:
    case FAULT_STUCK:
    case FAULT_RETENTION:
    case FAULT_SIZE:
    case FAULT_MEMORY:
    case FAULT_MISTAKEN:
        return 20;
    case FAULT_METADATA:
        return 35;
    case FAULT_ZOMBIE:
        return 50;
    case FAULT_REPLICAS:
        return 75;
    default:
        return 40;
    }
}

static bool has(const struct scenario *s, enum fault_kind kind)
{
    return s->faults & 1u << kind;
}

/* One where they can happen, if there is. */
static struct sim_cluster *pick_lossy(const struct scenario *s)
{
    struct sim_cluster *c = sim_chance(50) ? s->source : s->target;
    bool fit = !(has(s, FAULT_CRASH) && c->brokers_n > 1) && !(has(s, FAULT_ANEW) && c->newness < 2);

    return fit ? c : c == s->source ? s->target : s->source;
}

/* What is more than anybody can bear. */
static void leave_out(struct scenario *s)
{
    bool loss = has(s, FAULT_UNCLEAN) || has(s, FAULT_CRASH);

    if (s->lossy == s->target && (loss || has(s, FAULT_ANEW)))
        s->faults &= ~(1u << FAULT_RETENTION);
    /* After a kill the records behind the stored pair are counted, not compared: a source that lost some of them
     * meanwhile is more than that can bear (docs/invariants.md). */
    if (loss)
        s->faults &= ~(1u << FAULT_KILL | 1u << FAULT_STOP | 1u << FAULT_ZOMBIE);
    /* Nor can what was written there, and of which nobody knows, be told from what the source has in its place. */
    if (loss && s->lossy == s->source) {
        s->spare_target = true;
        s->faults &= ~(1u << FAULT_REPLICAS | 1u << FAULT_OLD | 1u << FAULT_SIZE | 1u << FAULT_PAYLOAD | 1u << FAULT_MEMORY);
    }
    /* A target that has lost a batch and forgotten who wrote it takes the next one (rules 2.5), and so does one that has
     * lost it when the next begins a chain. */
    if (loss && s->lossy == s->target)
        s->faults &= ~(1u << FAULT_OLD | 1u << FAULT_MISTAKEN);
    /* Nothing fences a batch that a broker takes up only when it has forgotten who wrote it (rules 5.5, method B). */
    if (has(s, FAULT_OLD))
        s->faults &= ~(1u << FAULT_STUCK | 1u << FAULT_SILENT);
}

void faults_plan(struct scenario *s, const struct scenario_options *o)
{
    int64_t pause_us = sim_between(100, 4000) * SIM_MS;
    int64_t at_us = sim_now_us() + sim_between(10, 5000) * SIM_MS, end_us = sim_now_us() + s->feed_us;

    for (int i = 0; i < FAULT_KINDS; i++)
        if (o->faults & 1u << i && (o->all || sim_chance(share_of(i))))
            s->faults |= 1u << i;
    s->lossy = pick_lossy(s);
    if (has(s, FAULT_ANEW) && sim_chance(50))
        s->lossy->newness = 2;
    if (!o->all)
        leave_out(s);
    s->target->secretive = has(s, FAULT_MISTAKEN);
    s->keep = o->keep;
    while (s->faults && at_us < end_us && s->planned < FAULTS_MAX) {
        int kind = (int)sim_between(0, FAULT_KINDS - 1);

        while (!(s->faults & 1u << kind))
            kind = (kind + 1) % FAULT_KINDS;
        s->plan[s->planned++] =
            (struct fault_plan){ .at_us = at_us, .kind = kind, .luck = rand_next(sim_rand()) };
        at_us += sim_between(10 * SIM_MS, pause_us);
    }
}

void faults_start(struct scenario *s)
{
    s->next_fault.fn = on_fault;
    s->well_all.fn = on_well_all;
    for (int side = 0; side < 2; side++) {
        struct sim_cluster *c = side ? s->target : s->source;

        for (int i = 0; i < c->brokers_n; i++) {
            s->well[side][i].fn = on_well;
            s->well[side][i].arg = &c->brokers[i];
        }
    }
    if (s->planned)
        sim_event_set(&s->next_fault, s->plan[0].at_us - sim_now_us());
}

static void end_starving(struct sim_part *p)
{
    int64_t most_us = p->behind_until_us > sim_now_us() ? CATCH_UP_US : p->topic->cluster->replicate_us;

    p->not_enough_until_us = 0;
    p->behind_until_us = MIN(p->behind_until_us, sim_now_us() + CATCH_UP_US);
    p->departs_to = 0;
    p->departs_asked = false;
    if (sim_event_is_set(&p->replicate))
        sim_event_hurry(&p->replicate, most_us);
}

void faults_stop(struct scenario *s)
{
    sim_event_cancel(&s->next_fault);
    sim_event_cancel(&s->well_all);
    on_well_all(&s->well_all);
    s->feed->old = false;
    for (int side = 0; side < 2; side++) {
        struct sim_cluster *c = side ? s->target : s->source;

        c->corrupt_payload = c->corrupt_any = c->forgets = 0;
        for (int i = 0; i < c->brokers_n; i++)
            make_well(&c->brokers[i]);
        fault_each_part(c, end_starving);
    }
    sim_say("all is well from here on");
}
