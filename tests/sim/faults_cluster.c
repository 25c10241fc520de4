/* faults_cluster.c -- what happens to leaders, logs and topics.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What takes records away at the source tells the feed at once, so that the truth knows which ones a mirror may
 * have read before and which ones nobody has.
 */
#include "scenario.h"

#include <stdio.h>
#include <string.h>

struct sim_cluster *fault_some_cluster(struct scenario *s)
{
    return s->spare_target || sim_chance(50) ? s->source : s->target;
}

static struct sim_part *some_part(struct sim_cluster *c)
{
    struct sim_topic *t;

    if (c->topics_n == 0)
        return NULL;
    t = c->topics[sim_between(0, c->topics_n - 1)];
    return broker_topic_is_there(t) ? &t->parts[sim_between(0, t->parts_n - 1)] : NULL;
}

static struct feed_part *feed_part_of(struct scenario *s, const struct sim_part *p)
{
    for (int32_t i = 0; i < s->feed->topics_n; i++)
        if (s->feed->topics[i].topic == p->topic)
            return &s->feed->topics[i].parts[p->number];
    return NULL;
}

/* Of the feed's topics or of their copies. */
static struct sim_part *some_data_part(struct scenario *s, struct sim_cluster *c)
{
    const struct feed_topic *t = &s->feed->topics[sim_between(0, s->feed->topics_n - 1)];
    struct sim_topic *copy = c == s->source ? t->topic : check_copy_of(s->check, t);

    if (!copy || !broker_topic_is_there(copy))
        return NULL;
    return &copy->parts[sim_between(0, copy->parts_n - 1)];
}

void fault_each_part(struct sim_cluster *c, void (*fn)(struct sim_part *p))
{
    for (int i = 0; i < c->topics_n; i++)
        for (int j = 0; j < c->topics[i]->parts_n; j++)
            fn(&c->topics[i]->parts[j]);
}

/* One of those that have something that is not replicated, and that a new leader may lack. */
static struct sim_part *some_tail(struct sim_cluster *c)
{
    struct sim_part *found = NULL;
    int64_t n = 0;

    for (int32_t i = 0; c->brokers_n > 1 && i < c->topics_n; i++) {
        for (int32_t j = 0; !c->topics[i]->keep_tail && j < c->topics[i]->parts_n; j++) {
            struct sim_part *p = &c->topics[i]->parts[j];

            if (p->leader >= 0 && p->high_watermark < p->end && sim_between(0, n++) == 0)
                found = p;
        }
    }
    return found;
}

/* Rather one that loses something; where nobody can, one leader of two waits for a write of which only it knows. */
void fault_move_leader(struct scenario *s)
{
    struct sim_cluster *c = fault_some_cluster(s);
    int32_t to = (int32_t)sim_between(1, c->brokers_n);
    struct sim_part *p = some_tail(c);

    if (p && p->leader == to)
        to = to % c->brokers_n + 1;
    if (!p && sim_chance(50)) {
        p = some_data_part(s, c);
        if (p && p->leader >= 0)
            p->departs_to = p->leader % c->brokers_n + 1;
        return;
    }
    if (!p)
        p = sim_chance(50) ? some_part(c) : some_data_part(s, c);
    if (p && p->leader >= 0 && c->brokers[to - 1].up)
        broker_move_leader(p, to);
}

bool fault_lose_answer(struct scenario *s)
{
    struct sim_part *p = s->spare_target ? NULL : some_data_part(s, s->target);

    if (!p || p->leader < 0)
        return false;
    p->departs_to = p->leader;
    return true;
}

/* Some of the last batches go, also those that were acknowledged or read. A source whose fetch answers cannot tell
 * of it (before version 12) is left alone, and so are transactions. */
static bool lose_tail(struct scenario *s, struct sim_part *p)
{
    bool source = p->topic->cluster == s->source;
    int64_t was = p->high_watermark;
    int64_t at = (int64_t)p->batches_n - sim_between(1, 6);

    if (p->topic->keep_tail || (source && s->source->newness == 0) || p->batches_n == 0)
        return false;
    /* A copy keeps a first batch: a target that knows nothing of a producer takes any sequence (rules 2.5). */
    at = MAX(at, source ? 0 : 1);
    if (at >= (int64_t)p->batches_n || p->batches[at].base < p->start)
        return false;
    sim_say("%s: %s-%d loses all from offset %lld on", p->topic->cluster->name, p->topic->name, p->number,
            (long long)p->batches[at].base);
    log_lose(p, p->batches[at].base);
    if (source && feed_part_of(s, p))
        feed_cut(feed_part_of(s, p), was);
    return true;
}

void fault_unclean(struct scenario *s)
{
    struct sim_cluster *c = s->lossy;
    int32_t to = (int32_t)sim_between(1, c->brokers_n);

    for (int i = 0; i < 4 && c->brokers[to - 1].up; i++) {
        struct sim_part *p = some_data_part(s, c);

        if (!p || p->leader < 0 || !lose_tail(s, p))
            continue;
        tally(TALLY_UNCLEAN);
        broker_move_leader(p, to);
        return;
    }
}

void fault_crash(struct scenario *s)
{
    struct sim_cluster *c = s->lossy;
    struct sim_broker *b = NULL;
    int32_t up = 0;

    for (int32_t i = 0; i < c->brokers_n; i++)
        if (c->brokers[i].up)
            up++, b = &c->brokers[i];
    if (up != 1)
        return;
    tally(TALLY_CRASH);
    broker_stop(b, sim_between(50, 5000) * SIM_MS);
    for (int32_t i = 0; i < s->feed->topics_n; i++) {
        const struct feed_topic *t = &s->feed->topics[i];
        struct sim_topic *topic = c == s->source ? t->topic : check_copy_of(s->check, t);

        for (int32_t j = 0; topic && j < topic->parts_n; j++)
            if (sim_chance(30))
                (void)lose_tail(s, &topic->parts[j]);
    }
}

/* Only where fetches and produces name topics by their ids (version 13 of both) nobody is mistaken even for a moment. */
void fault_anew(struct scenario *s)
{
    struct sim_cluster *c = s->lossy;
    struct feed_topic *t = &s->feed->topics[sim_between(0, s->feed->topics_n - 1)];
    struct sim_topic *topic = c == s->source ? t->topic : check_copy_of(s->check, t);

    if (c->newness < 2 || !topic || !broker_topic_is_there(topic))
        return;
    tally(c == s->source ? TALLY_SOURCE_ANEW : TALLY_TARGET_ANEW);
    if (c == s->source)
        feed_anew(t);
    else
        check_note_anew(s->check, t);
    broker_topic_anew(topic, sim_between(0, 3000) * SIM_MS);
}

void fault_retention(struct scenario *s)
{
    struct sim_part *p = some_data_part(s, s->source);
    struct feed_part *f = p ? feed_part_of(s, p) : NULL;
    int64_t most;

    if (!f || !f->log)
        return;
    most = log_last_stable(p);
    if (sim_chance(50))
        most = MIN(most, p->start + 200);
    if (most <= p->start)
        return;
    p->start = sim_between(p->start + 1, most);
    tally(TALLY_RETENTION);
    sim_say("source: %s-%d begins at %lld", p->topic->name, p->number, (long long)p->start);
    feed_expire(f);
    broker_poke(s->source);
}

void fault_size(struct scenario *s)
{
    struct sim_part *p = some_data_part(s, s->target);

    if (!p)
        return;
    tally(TALLY_SIZE_LIMIT);
    check_excuse_halt(s->check, 60 * SIM_S);
    p->topic->max_message_bytes = (int32_t)sim_between(100, 4000);
    sim_say("target: %s takes batches of %d bytes", p->topic->name, p->topic->max_message_bytes);
}

void fault_starve(struct scenario *s)
{
    struct sim_part *p = sim_chance(20) ? some_part(s->target) : some_data_part(s, s->target);

    if (sim_chance(s->target->forgets ? 50 : 15)) { /* who forgets is told apart by it */
        tally(TALLY_FLAPS);
        sim_say("target: replicas come and go");
        s->target->flaps = (int32_t)sim_between(5, 60);
        return;
    }
    if (!p)
        return;
    if (sim_chance(70)) {
        tally(TALLY_BEHIND);
        sim_say("target: %s-%d has replicas that stay behind", p->topic->name, p->number);
        p->behind_until_us = sim_now_us() + sim_between(3000, 25000) * SIM_MS;
        return;
    }
    tally(TALLY_REPLICAS);
    sim_say("target: %s-%d has too few replicas in sync", p->topic->name, p->number);
    p->not_enough_until_us = sim_now_us() + (sim_chance(30) ? sim_between(1, 60) : sim_between(100, 12000)) * SIM_MS;
}

void fault_mistake(struct scenario *s)
{
    struct sim_part *p = some_data_part(s, s->target);

    if (p && p->leader >= 0)
        log_mistake(p);
}

void fault_topics(struct scenario *s)
{
    struct feed_topic *t = &s->feed->topics[sim_between(0, s->feed->topics_n - 1)];
    char name[32];

    if (sim_chance(50) && t->topic->parts_n < SIM_PARTS && broker_topic_is_there(t->topic)) {
        broker_topic_grow(t->topic, t->topic->parts_n + 1);
        tally(TALLY_TOPIC_NEW);
        sim_say("source: %s has %d partitions", t->topic->name, t->topic->parts_n);
    } else if (s->feed->topics_n < 6) {
        snprintf(name, sizeof(name), "late%d", s->feed->topics_n);
        t = feed_add_topic(s->feed, name, (int32_t)sim_between(1, 3));
        tally(TALLY_TOPIC_NEW);
        sim_say("source: topic %s", t->topic->name);
    }
}

void fault_cluster_well(struct scenario *s)
{
    for (int32_t i = 0; i < s->target->topics_n; i++)
        s->target->topics[i]->max_message_bytes = SIM_MESSAGE_MAX;
    s->target->flaps = 0;
}
