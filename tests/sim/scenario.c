/* scenario.c -- builds the world of a seed, lets it run, and looks at it all the while.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   feed and faults ----> all is well ----> complete? ----> stopped ----> started again ----> still complete?
 */
#include "scenario.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>

#define LOOK_US      (500 * SIM_MS)
#define HEAL_US      (240 * SIM_S) /* back-offs of 10 s and requests of 30 s may stand one behind the other */
#define GOES_ON_US   (60 * SIM_S) /* more, while records come: a target that replicates slowly has much to do */
#define HEAL_MOST_US (1800 * SIM_S)
#define CALM_US      (12 * SIM_S) /* the longest back-off */
#define LAST_US      (30 * SIM_S)
#define STOP_US      (6 * SIM_S)
#define AGAIN_US     (8 * SIM_S)
#define REQUESTS_MAX 3000 /* of the mirror to one cluster in LOOK_US */
#define TURNS_MAX    25000
#define DIALS_MAX    400
#define CORRUPT_SHARE 4 /* worlds of a hundred in which any byte of an answer may be wrong */

static void write_config(struct scenario *s)
{
    snprintf(s->config, sizeof(s->config),
             "clusters = source, target\n"
             "source.bootstrap.servers = source:9092\n"
             "target.bootstrap.servers = target:9092\n"
             "source->target.enabled = true\n"
             "source->target.topics = .*\n"
             "source->target.consumer.isolation.level = read_committed\n"
             "source.consumer.auto.offset.reset = earliest\n"
             "replication.factor = 1\n"
             "checkpoints.topic.replication.factor = 1\n"
             "heartbeats.topic.replication.factor = 1\n"
             "offset-syncs.topic.replication.factor = 1\n"
             "offset.storage.replication.factor = 1\n"
             "emit.checkpoints.enabled = false\n" /* these brokers keep no positions of groups */
             "offset.storage.partitions = 3\n"
             "refresh.topics.interval.seconds = %d\n"
             "target.offset.flush.interval.ms = %d\n"
             "target.producer.request.timeout.ms = %d\n"
             "source.consumer.metadata.max.age.ms = %d\n"
             "target.producer.metadata.max.age.ms = %d\n"
             "heliostat.memory.max = %lld\n"
             "%s",
             (int)sim_between(2, 10), (int)sim_between(500, 10000), (int)sim_between(1500, sim_chance(80) ? 3000 : 15000),
             (int)sim_between(5000, 60000), (int)sim_between(5000, 60000), (long long)MAX(s->memory_max, 16 * MiB), sim_chance(30) ? "source.consumer.client.rack = near\n" : "");
}

static void build(struct scenario *s)
{
    int64_t topics = sim_between(1, 4);

    s->source = broker_cluster_new("source", 1, (int32_t)sim_between(1, SIM_BROKERS),
                                   sim_between(100, 20000));
    s->target = broker_cluster_new("target", 2, (int32_t)sim_between(1, SIM_BROKERS),
                                   sim_between(100, 5000));
    s->feed = feed_new(s->source, sim_between(20, 300) * SIM_MS);
    for (int64_t i = 0; i < topics; i++) {
        char name[32];

        snprintf(name, sizeof(name), "topic%d", (int)i);
        feed_add_topic(s->feed, name, (int32_t)sim_between(1, 4));
    }
    s->check = check_new(s->feed, s->target, s->corrupt);
    s->memory_max = sim_chance(30) ? sim_between(512, 2048) * KiB : sim_between(16, 64) * MiB;
    s->feed_us = sim_between(3, 15) * SIM_S;
    if (s->corrupt)
        s->source->corrupt_any = s->target->corrupt_any = 10;
    write_config(s);
}

/* The checks of every half second, over `span_us`. */
static void watch(struct scenario *s, int64_t span_us)
{
    uint64_t requests[2] = { s->source->requests, s->target->requests };
    struct mirror *m = s->mirror;
    uint64_t turns = m ? mirror_turns(m) : 0, dials = net_sim_dials();

    sim_run(span_us);
    check_now(s->check);
    for (int i = 0; i < 2; i++) {
        uint64_t n = (i ? s->target : s->source)->requests - requests[i];

        if (n > REQUESTS_MAX)
            sim_fail("%" PRIu64 " requests to the %s in half a second", n, i ? "target" : "source");
    }
    if (net_sim_dials() > dials + DIALS_MAX)
        sim_fail("%" PRIu64 " connections were tried in half a second", net_sim_dials() - dials);
    if (!s->mirror)
        return;
    mirror_check(s->mirror, (size_t)(s->source->announced + s->target->announced));
    if (m == s->mirror && mirror_turns(m) > turns + TURNS_MAX) /* another one at its address has had few */
        sim_fail("%" PRIu64 " turns in half a second", mirror_turns(m) - turns);
}

static void watch_until(struct scenario *s, int64_t span_us)
{
    for (int64_t end = sim_now_us() + span_us; sim_now_us() < end;)
        watch(s, LOOK_US);
}

/* Everything is copied, and no fault is told that has no cause any more. */
static void heal(struct scenario *s)
{
    int64_t start = sim_now_us(), end = start + HEAL_US;
    uint64_t records = 0;
    char what[600] = "records are missing, or there is no mirror";

    while (!check_is_complete(s->check) || !s->mirror || s->zombie || s->stopping || !mirror_is_well(s->mirror, what, sizeof(what))) {
        if (check_records(s->check) > records && sim_now_us() < start + HEAL_MOST_US)
            end = MAX(end, sim_now_us() + GOES_ON_US);
        records = check_records(s->check);
        if (sim_now_us() > end) {
            check_describe(s->check);
            sim_fail("the copy is not complete, or not well, %" PRId64 " s after all was well: %s",
                     (sim_now_us() - start) / SIM_S, what);
        }
        watch(s, LOOK_US);
    }
    sim_say("the copy is complete: %" PRIu64 " records", check_records(s->check));
}

/* What was copied a moment ago is not stored yet. */
static void copy_last(struct scenario *s)
{
    int64_t end = sim_now_us() + LAST_US;

    feed_last(s->feed);
    while (!check_is_complete(s->check)) {
        if (sim_now_us() > end)
            sim_fail("the last batches are not copied");
        sim_run(20 * SIM_MS);
    }
}

/* SIGTERM with both clusters there stores everything; a new start copies nothing twice. */
static void stop_and_start(struct scenario *s)
{
    int64_t end;
    bool stored;

    watch_until(s, CALM_US);
    copy_last(s);
    end = sim_now_us() + STOP_US;
    mirror_stop(s->mirror);
    while (!mirror_is_stopped(s->mirror, &stored)) {
        if (sim_now_us() > end)
            sim_fail("SIGTERM had no end");
        sim_run(100 * SIM_MS);
    }
    if (!stored)
        sim_fail("positions were not stored though both clusters were there");
    mirror_free(&s->mirror);
    check_all_stored(s->check);
    s->mirror = mirror_start(s->config, s->memory_max);
    watch_until(s, AGAIN_US);
    if (!check_is_complete(s->check))
        sim_fail("the copy was complete before the restart");
    check_losses(s->check);
}

void scenario_run(uint64_t seed, const struct scenario_options *o, struct scenario_result *out)
{
    static struct scenario *s; /* found by who looks for leaks */

    s = mem_new(sizeof(*s));
    s->seed = seed;
    sim_begin(seed);
    s->corrupt = o->corrupt || (o->faults == FAULTS_ANY && sim_chance(CORRUPT_SHARE));
    build(s);
    faults_plan(s, o);
    out->faults_planned = s->planned;
    fault_mirror_start(s);
    faults_start(s);
    watch_until(s, s->feed_us);
    faults_stop(s);
    feed_stop(s->feed);
    if (s->corrupt) { /* what a wrong byte outside the records does is not to be told */
        watch_until(s, 10 * SIM_S);
        return;
    }
    heal(s);
    stop_and_start(s);
    sim_say("done: %" PRIu64 " records, %" PRIu64 " faults, %" PRIu64 " kills, %" PRIu64 " requests",
            check_records(s->check), s->faults_done, s->kills, s->source->requests + s->target->requests);
}
