/* flow.c -- one flow's data plane on one worker.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Owns the two clusters as this worker sees them, the fetcher, the producer and the relays between. Thread:
 * the worker's. Positions are kept by flow_store.c.
 */
#include "mirror/flow.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/must.h"
#include "mirror/comparer.h"
#include "mirror/flow_store.h"
#include "mirror/flow_txn.h"
#include "mirror/order.h"
#include "mirror/record_path.h"

#include <stdio.h>
#include <string.h>

#define TICK_MS      1000
#define KEPT_KEY_MAX 300 /* a topic's name has at most 249 bytes */
#define FLIGHTS      2   /* request timeouts that a batch may take from here to the log */

static void wake_waiting(struct flow *f)
{
    struct list_node *n;

    LIST_EACH(n, &f->waiting)
        relay_wake(container_of(n, struct relay, waiting_node));
}

static void see_metadata(struct flow *f)
{
    struct list_node *n;

    LIST_EACH(n, &f->waiting)
        relay_see_metadata(container_of(n, struct relay, waiting_node));
}

static void on_source_changed(struct cluster_listener *ls)
{
    struct flow *f = container_of(ls, struct flow, source_changed);

    for (size_t i = 0; i < f->relays_n; i++)
        relay_see_source(f->relays[i]);
    see_metadata(f);
}

static void on_target_changed(struct cluster_listener *ls)
{
    struct flow *f = container_of(ls, struct flow, target_changed);

    for (size_t i = 0; i < f->relays_n; i++)
        relay_see_target(f->relays[i]);
    see_metadata(f);
}

static bool is_among(const struct flow_silent *s, int32_t id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i].id == id)
            return true;
    return false;
}

/* Looks which brokers owe an answer, and tells of those that begin and end to. */
static void see_silent(struct flow *f, struct cluster *cl, struct flow_silent *s)
{
    struct flow_silent was = *s;

    s->n = cluster_silent(cl, s->at, FLOW_SILENT_MAX);
    for (size_t i = 0; i < s->n; i++)
        if (!is_among(&was, s->at[i].id))
            log_event(EV_BROKER_SILENT, kv_str("cluster", cluster_name(cl)), kv_int("broker", s->at[i].id),
                      kv_str("flow", f->config->name), kv_int("ms", s->at[i].ms));
    for (size_t i = 0; i < was.n; i++)
        if (!is_among(s, was.at[i].id))
            log_event(EV_BROKER_ANSWERS, kv_str("cluster", cluster_name(cl)), kv_int("broker", was.at[i].id),
                      kv_str("flow", f->config->name));
}

static void on_tick(struct timer *t)
{
    struct flow *f = container_of(t, struct flow, tick);

    see_silent(f, f->source, &f->silent[0]);
    see_silent(f, f->target, &f->silent[1]);
    wake_waiting(f);
    timer_set_ms(f->loop, &f->tick, TICK_MS);
}

/* Half of it is left to clocks that differ and batches that are late; where that is not even time for a batch on its way,
 * none is ever young enough. */
static int64_t careful_age(int64_t id_memory_ms, const struct client_config *target)
{
    int64_t half = id_memory_ms / 2;

    return half > FLIGHTS * target->request_timeout_ms ? half : -1;
}

void flow_take_memory(struct flow *f, int64_t id_memory_ms)
{
    loop_check(f->loop);
    f->careful_age_ms = careful_age(id_memory_ms, &f->config->target);
    if (f->producer_id >= 0) /* an open transaction keeps the id known */
        producer_set_id_memory(f->producer, f->careful_age_ms);
}

static void make_transforms(struct flow *f)
{
    struct transforms_fault fault;
    struct arena a;

    if (f->config->transforms.n == 0)
        return;
    arena_init(&a, 16 * MiB);
    must_say(transforms_new(f->config, &a, &f->transforms, &fault) == E_OK, "a transform that was not checked");
    f->policy = policy_new(f->config);
    arena_fini(&a);
}

struct flow *flow_new(struct loop *l, struct pool *pool, const struct flow_config *config,
                      const struct flow_identity *id)
{
    struct flow *f = mem_new(sizeof(*f));

    loop_check(l);
    f->loop = l;
    f->pool = pool;
    f->config = config;
    f->producer_id = id->producer_id;
    arena_init(&f->names, 1 * MiB);
    arena_init(&f->loss_names, 1 * MiB);
    f->connector = arena_str(&f->names, id->connector);
    list_init(&f->dirty);
    list_init(&f->waiting);
    list_init(&f->storing);
    list_init(&f->covered);
    f->maps_memory_max = (size_t)config->offset_map_max;
    f->source = cluster_new(l, &config->source, config->source_alias);
    f->target = cluster_new(l, &config->target, config->target_alias);
    f->fetcher = fetcher_new(f->source, pool, (int8_t)config->source.isolation_level);
    f->producer = producer_new(f->target);
    producer_set_lease(f->producer, id->lease);
    flow_take_memory(f, id->id_memory_ms);
    f->ask_source = asker_new(f->source);
    f->ask_target = asker_new(f->target);
    f->source_changed.changed = on_source_changed;
    f->target_changed.changed = on_target_changed;
    cluster_listen(f->source, &f->source_changed);
    cluster_listen(f->target, &f->target_changed);
    timer_init(&f->tick, on_tick);
    timer_set_ms(l, &f->tick, TICK_MS);
    make_transforms(f);
    flow_store_start(f, id);
    offset_syncs_start(f);
    if (!str_is_null(id->txn.id))
        flow_txn_start(f, &id->txn);
    return f;
}

void flow_free(struct flow **fp)
{
    struct flow *f = *fp;
    struct kept_pair *k, *next;

    if (!f)
        return;
    for (size_t i = 0; i < f->relays_n; i++)
        relay_free(&f->relays[i]);
    mem_free(f->relays);
    HASH_ITER(hh, f->kept, k, next)
        flow_kept_free(f, k);
    flow_store_stop(f);
    offset_syncs_stop(f);
    flow_txn_stop(f);
    timer_cancel(f->loop, &f->tick);
    cluster_unlisten(&f->source_changed);
    cluster_unlisten(&f->target_changed);
    comparer_free(&f->comparer);
    asker_free(&f->ask_source);
    asker_free(&f->ask_target);
    fetcher_free(&f->fetcher);
    if (f->tail)
        fetcher_free(&f->tail);
    if (f->tail_pool)
        pool_free(&f->tail_pool);
    producer_free(&f->producer);
    cluster_free(&f->source);
    cluster_free(&f->target);
    record_path_free(&f->record_path);
    transforms_free(&f->transforms);
    policy_free(&f->policy);
    mem_free(f->gather);
    arena_fini(&f->names);
    arena_fini(&f->loss_names);
    mem_free(f);
    *fp = NULL;
}

static size_t find_relay(const struct flow *f, struct str topic, int32_t partition)
{
    for (size_t i = 0; i < f->relays_n; i++)
        if (relay_partition(f->relays[i]) == partition && str_eq(relay_topic(f->relays[i]), topic))
            return i;
    return f->relays_n;
}

void flow_on_limits_ask(struct flow *f, void (*ask)(void *arg, struct str target_topic, int64_t raise_to), void *arg)
{
    f->ask_limits = ask;
    f->ask_limits_arg = arg;
}

void flow_take_limits(struct flow *f, struct str target_topic, const struct topic_limits *limits)
{
    loop_check(f->loop);
    for (size_t i = 0; i < f->relays_n; i++)
        if (str_eq(f->relays[i]->target_topic, target_topic))
            relay_take_limits(f->relays[i], limits);
}

static struct kept_pair *find_kept(struct flow *f, struct str topic, int32_t partition, char *key, size_t *n)
{
    struct kept_pair *k;

    *n = (size_t)snprintf(key, KEPT_KEY_MAX, "%.*s %d", STR_ARG(topic), partition);
    HASH_FIND(hh, f->kept, key, *n, k);
    return k;
}

void flow_kept_free(struct flow *f, struct kept_pair *k)
{
    HASH_DEL(f->kept, k);
    f->maps_memory -= k->map ? offset_map_memory(k->map) : 0;
    offset_map_free(&k->map);
    mem_free(k);
}

static void keep_pair(struct flow *f, struct relay *r)
{
    char key[KEPT_KEY_MAX];
    size_t n;
    struct kept_pair *k = find_kept(f, r->topic, r->partition, key, &n);

    if (!r->has_pair || k)
        return;
    k = mem_new(sizeof(*k) + n);
    memcpy(k->key, key, n);
    k->key_n = n;
    HASH_ADD(hh, f->kept, key, n, k);
    k->map = relay_map_give(r);
    if (k->map && f->maps_memory + offset_map_memory(k->map) > f->maps_memory_max)
        offset_map_free(&k->map);
    f->maps_memory += k->map ? offset_map_memory(k->map) : 0;
    k->pair = r->pair;
    k->committed = r->committed;
    k->in_txn = flow_txn_holds(f, r);
    k->has_committed = r->has_committed;
    k->losses = r->losses;
    k->anew = r->anew;
    k->registered = r->registered;
}

/* Goes on where it stood when it was released, if it was here before. */
static void take_kept(struct flow *f, struct relay *r)
{
    char key[KEPT_KEY_MAX];
    size_t n;
    struct kept_pair *k = find_kept(f, r->topic, r->partition, key, &n);

    if (!k)
        return;
    r->pair = k->pair;
    r->committed = k->committed;
    r->has_committed = k->has_committed;
    r->walked = k->pair.source;
    r->losses = k->losses;
    r->map_before = OFFSET_LOST;
    relay_map_free(r);
    f->maps_memory -= k->map ? offset_map_memory(k->map) : 0;
    relay_map_take(r, k->map);
    r->anew = k->anew;
    if (k->in_txn)
        flow_txn_rejoin(f, r);
    r->registered = k->registered;
    r->has_pair = true;
    r->jump = -1;
    HASH_DEL(f->kept, k);
    mem_free(k);
}

void flow_adopt(struct flow *f, struct str topic, struct str target_topic, int32_t partition,
                const struct relay_start *start)
{
    loop_check(f->loop);
    if (f->draining) {
        struct offset_map *map = start->map;

        offset_map_free(&map);
        return;
    }
    if (f->relays_n == f->relays_room) {
        f->relays_room = MAX(f->relays_room * 2, 16);
        f->relays = mem_resize(f->relays, f->relays_room, sizeof(struct relay *));
    }
    f->relays[f->relays_n] = relay_new(f, topic, target_topic, partition, start);
    take_kept(f, f->relays[f->relays_n++]);
}

static void add_counts(struct flow_counts *to, const struct flow_counts *c)
{
    to->records += c->records;
    to->bytes += c->bytes;
    to->relayed_batches += c->relayed_batches;
    to->decoded_batches += c->decoded_batches;
    to->coalesced_batches += c->coalesced_batches;
    to->retimed_records += c->retimed_records;
    to->filtered_records += c->filtered_records;
    to->dropped_batches += c->dropped_batches;
    to->retries += c->retries;
    to->skipped_records += c->skipped_records;
    to->repeated_records += c->repeated_records;
    to->lost_records += c->lost_records;
    to->foreign_records += c->foreign_records;
}

void flow_release(struct flow *f, struct str topic, int32_t partition)
{
    size_t at = find_relay(f, topic, partition);

    loop_check(f->loop);
    if (at == f->relays_n)
        return;
    flow_store_relay(f, f->relays[at]);
    keep_pair(f, f->relays[at]);
    add_counts(&f->gone, &f->relays[at]->counts);
    relay_free(&f->relays[at]);
    f->relays[at] = f->relays[--f->relays_n];
}

void flow_refresh_source(struct flow *f)
{
    loop_check(f->loop);
    cluster_refresh(f->source);
}

#define LAST_SYNCS_MS 300 /* offset syncs hold the end up for no longer: the next process writes new ones */

static void drained(struct flow *f, bool stored)
{
    f->drain_stage = 4;
    timer_cancel(f->loop, &f->drain_limit);
    f->drain_done(f->drain_arg, stored);
}

/* Draining: 0 no, 1 relays finish, 2 positions go out, 3 offset syncs do, 4 told. */
static void drain_step(struct flow *f)
{
    if (f->drain_stage == 1) {
        for (size_t i = 0; i < f->relays_n; i++)
            if (!relay_is_idle(f->relays[i]))
                return;
        flow_store_all(f);
        f->drain_stage = 2;
    }
    if (f->drain_stage == 2 && flow_store_is_done(f)) {
        offset_syncs_flush(f); /* of what the last transaction committed */
        f->drain_stage = 3;
        timer_set_ms(f->loop, &f->drain_limit, LAST_SYNCS_MS);
    }
    if (f->drain_stage == 3 && offset_syncs_are_done(f))
        drained(f, true);
}

static void on_drain_check(struct task *t)
{
    drain_step(container_of(t, struct flow, drain_check));
}

/* The limit comes in two halves: what is acknowledged by the first is stored until the second. */
static void on_drain_limit(struct timer *t)
{
    struct flow *f = container_of(t, struct flow, drain_limit);

    if (f->drain_stage == 1) {
        flow_store_all(f);
        f->drain_stage = 2;
        timer_set_ms(f->loop, &f->drain_limit, 1000);
        task_wake(f->loop, &f->drain_check);
        return;
    }
    drained(f, f->drain_stage == 3);
}

void flow_drain_wake(struct flow *f)
{
    if (f->draining)
        task_wake(f->loop, &f->drain_check);
}

void flow_drain(struct flow *f, int64_t limit_ms, void (*done)(void *arg, bool stored), void *arg)
{
    loop_check(f->loop);
    must(!f->draining);
    f->draining = true;
    f->drain_stage = 1;
    f->drain_done = done;
    f->drain_arg = arg;
    task_init(&f->drain_check, on_drain_check);
    timer_init(&f->drain_limit, on_drain_limit);
    timer_set_ms(f->loop, &f->drain_limit, MAX(limit_ms - 1000, 1));
    for (size_t i = 0; i < f->relays_n; i++)
        relay_drain(f->relays[i]);
    task_wake(f->loop, &f->drain_check);
}

void flow_answer(struct flow *f, struct order *o)
{
    size_t at = find_relay(f, o->topic, o->partition);

    loop_check(f->loop);
    o->found = at < f->relays_n;
    for (int32_t i = 0; o->found && i < o->n; i++)
        o->answers[i] = relay_map_answer(f->relays[at], o->to_target, o->offsets[i]);
}

struct flow_report *flow_report(struct flow *f)
{
    struct flow_report *rep = mem_new(sizeof(*rep));

    loop_check(f->loop);
    arena_init(&rep->arena, 1024 * (size_t)MiB);
    rep->partitions = arena_array(&rep->arena, f->relays_n, sizeof(*rep->partitions));
    rep->counts = f->gone;
    for (size_t i = 0; i < f->relays_n; i++) {
        struct view_partition *v = &rep->partitions[rep->partitions_n++];

        relay_view(f->relays[i], v);
        v->topic = arena_str(&rep->arena, v->topic);
        v->target_topic = arena_str(&rep->arena, v->target_topic);
        add_counts(&rep->counts, &f->relays[i]->counts);
    }
    rep->losses = arena_array(&rep->arena, (size_t)f->losses_n, sizeof(*rep->losses));
    for (int32_t i = 0; i < f->losses_n; i++) {
        rep->losses[i] = f->losses[i];
        rep->losses[i].topic = arena_str(&rep->arena, f->losses[i].topic);
        rep->losses[i].cause = arena_str(&rep->arena, f->losses[i].cause);
    }
    rep->losses_n = f->losses_n;
    rep->positions_stored_ms = f->positions_stored_ms;
    rep->shut_out = flow_store_is_shut_out(f);
    rep->fault = *flow_store_fault(f);
    rep->offset_syncs = f->syncs_put;
    if (f->syncs)
        rep->syncs_fault = *topic_writer_fault(f->syncs);
    rep->silent[0] = f->silent[0];
    rep->silent[1] = f->silent[1];
    rep->pool_used = pool_used(f->pool);
    rep->pool_peak = pool_peak(f->pool);
    rep->pool_max = pool_max(f->pool);
    return rep;
}

void flow_report_free(struct flow_report **r)
{
    if (!*r)
        return;
    arena_fini(&(*r)->arena);
    mem_free(*r);
    *r = NULL;
}
