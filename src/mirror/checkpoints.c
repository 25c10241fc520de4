/* checkpoints.c -- the rounds in which a flow's consumer groups are followed: states, time, and what is shown.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  loading -> resting -> listing -> fetching -> translating -> looking -> reading -> committing -> telling -> resting
 *                           |          ^             |  (only when positions are synced)              ^
 *                           +- not due-+             +------------------------------------------------+
 *
 *  C-1  a position is told or committed only as translated by the map of what the target has acknowledged
 *  C-2  the target's groups are given their positions before checkpoints are told, so that after a crash in between
 *       the checkpoint still says what we gave them last
 *  C-3  a cluster that cannot be reached ends the round; a group or partition that is refused ends only itself
 *
 * Calls and their answers: checkpoints_calls.c, checkpoints_answers.c; what is made of them: checkpoints_round.c, by the
 * rules of groups.c. Thread: control.
 */
#include "mirror/checkpoints.h"

#include "mirror/checkpoints_int.h"

#include "base/log.h"
#include "base/must.h"
#include "mirror/filter.h"

#include <string.h>

#define LEAST_PAUSE_MS 200   /* between rounds, whatever the intervals say */
#define AWAY_PAUSE_MS  2000  /* after a round that a cluster's absence ended */
#define TO(state) (1u << (state))

static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [CHECKPOINTS_LOADING] = { "loading", TO(CHECKPOINTS_RESTING) },
    [CHECKPOINTS_RESTING] = { "resting", TO(CHECKPOINTS_LISTING) | TO(CHECKPOINTS_FETCHING) },
    [CHECKPOINTS_LISTING] = { "listing", TO(CHECKPOINTS_FETCHING) | TO(CHECKPOINTS_RESTING) },
    [CHECKPOINTS_FETCHING] = { "fetching", TO(CHECKPOINTS_TRANSLATING) | TO(CHECKPOINTS_RESTING) },
    [CHECKPOINTS_TRANSLATING] = { "translating", TO(CHECKPOINTS_LOOKING) | TO(CHECKPOINTS_TELLING) },
    [CHECKPOINTS_LOOKING] = { "looking", TO(CHECKPOINTS_READING) | TO(CHECKPOINTS_TELLING) | TO(CHECKPOINTS_RESTING) },
    [CHECKPOINTS_READING] = { "reading", TO(CHECKPOINTS_COMMITTING) | TO(CHECKPOINTS_RESTING) },
    [CHECKPOINTS_COMMITTING] = { "committing", TO(CHECKPOINTS_TELLING) | TO(CHECKPOINTS_RESTING) },
    [CHECKPOINTS_TELLING] = { "telling", TO(CHECKPOINTS_RESTING) },
};

static void checkpoints_goto(struct checkpoints *c, enum checkpoints_state to)
{
    must(states[c->state].next & TO(to));
    log_event(EV_CHECKPOINTS_STATE, kv_str("flow", c->config->name), kv_c("was", states[c->state].name),
              kv_c("now", states[to].name));
    c->state = to;
}

void checkpoints_wake(struct checkpoints *c)
{
    task_wake(c->loop, &c->step);
}

/* Of the whole activity; groups have their own. */
static void fail(struct checkpoints *c, const char *code, const char *text)
{
    bool same = str_eq(str_c(c->fault.code), str_c(code));

    fault_set(&c->fault, loop_wall_ms(c->loop), code, "groups: %s", text);
    if (!same)
        log_event(EV_CHECKPOINTS_FAULT, kv_str("flow", c->config->name), kv_c("code", code),
                  kv_c("text", c->fault.text));
}

static void well(struct checkpoints *c)
{
    if (!fault_is_set(&c->fault))
        return;
    log_event(EV_CHECKPOINTS_FAULT_OVER, kv_str("flow", c->config->name), kv_c("code", c->fault.code));
    fault_clear(&c->fault);
}

struct followed *checkpoints_find_group(struct checkpoints *c, struct str name)
{
    struct followed *g;

    HASH_FIND(hh, c->groups, name.p, name.n, g);
    return g;
}

struct followed *checkpoints_get_group(struct checkpoints *c, struct str name)
{
    struct followed *g = checkpoints_find_group(c, name);

    if (g || HASH_COUNT(c->groups) >= CHECKPOINTS_GROUPS)
        return g;
    g = mem_new(sizeof(*g));
    g->name = str_of(mem_copy_str(name.p, name.n), name.n);
    HASH_ADD_KEYPTR(hh, c->groups, g->name.p, g->name.n, g);
    return g;
}

struct known *checkpoints_known(struct checkpoints *c, struct str key, bool make)
{
    struct known *k;

    HASH_FIND(hh, c->known, key.p, key.n, k);
    if (k || !make || HASH_COUNT(c->known) >= CHECKPOINTS_MARKS)
        return k;
    k = mem_new(sizeof(*k) + key.n);
    k->mark = (struct group_mark){ -1, -1, -1, -1 };
    memcpy(k->key, key.p, key.n);
    k->key_n = key.n;
    HASH_ADD(hh, c->known, key, k->key_n, k);
    return k;
}

static void group_free(struct checkpoints *c, struct followed *g)
{
    HASH_DEL(c->groups, g);
    mem_free((char *)(uintptr_t)g->name.p);
    mem_free(g);
}

/* Loading. */

static void on_loaded_record(void *arg, const struct topic_record *r)
{
    struct checkpoints *c = arg;
    struct checkpoint_record p;
    struct known *k;

    if (formats_decode_checkpoint(r->key, r->value, &p)) { /* removed, or of somebody else */
        k = checkpoints_known(c, r->key, false);
        if (k)
            k->mark = (struct group_mark){ -1, -1, -1, -1 };
        return;
    }
    k = checkpoints_known(c, r->key, true);
    if (!k)
        return;
    k->mark = (struct group_mark){ p.upstream, p.downstream, p.upstream, p.downstream };
    k->metadata_hash = str_hash(p.metadata);
}

static void on_loaded(void *arg, enum err e, int32_t kerr)
{
    struct checkpoints *c = arg;

    topic_reader_free(&c->reader);
    if (e || (kerr && kerr != KERR_UNKNOWN_TOPIC_OR_PARTITION)) /* then all is told once more */
        log_event(EV_CHECKPOINTS_FAULT, kv_str("flow", c->config->name), kv_c("code", e ? err_name(e) : kerr_name(kerr)),
                  kv_c("text", "the checkpoints of before cannot be read: all are written anew"));
    checkpoints_goto(c, CHECKPOINTS_RESTING);
    checkpoints_wake(c);
}

/* Rounds. */

static int64_t later(int64_t now_ms, int64_t interval_ms)
{
    return interval_ms < 0 ? -1 : now_ms + MAX(interval_ms, LEAST_PAUSE_MS);
}

static bool is_due(int64_t at_ms, int64_t now_ms)
{
    return at_ms >= 0 && now_ms >= at_ms;
}

static void rest_on(struct checkpoints *c, int64_t least_ms)
{
    int64_t now = loop_now_ms(c->loop), next = INT64_MAX;

    if (c->next_tell_ms >= 0)
        next = MIN(next, c->next_tell_ms);
    if (c->next_sync_ms >= 0)
        next = MIN(next, c->next_sync_ms);
    timer_set_ms(c->loop, &c->rest, MAX(next - now, least_ms));
}

/* A cluster is away: soon again. */
static void give_up(struct checkpoints *c, struct cluster *cl)
{
    const struct fault *f = cluster_fault(cl);

    fail(c, fault_is_set(f) ? f->code : "CLUSTER_AWAY", fault_is_set(f) ? f->text : "a cluster cannot be reached");
    checkpoints_goto(c, CHECKPOINTS_RESTING);
    timer_set_ms(c->loop, &c->rest, AWAY_PAUSE_MS);
}

static bool is_followed(const struct followed *g)
{
    return g->wanted;
}

static bool is_to_be_read(const struct followed *g)
{
    return g->places_n && !g->active && !g->failed; /* also one that no broker listed: it may have been on its way */
}

static bool is_to_be_committed(const struct followed *g)
{
    for (size_t i = 0; i < g->places_n && !g->failed && !g->active; i++)
        if (g->places[i].commit)
            return true;
    return false;
}

static void fetch_begin(struct checkpoints *c)
{
    struct followed *g, *next;

    HASH_ITER(hh, c->groups, g, next) {
        g->places = NULL;
        g->places_n = 0;
        g->active = g->failed = g->faulty = false;
        groups_refusals_begin(&g->refusals);
        g->counts = (struct followed_counts){ 0 };
    }
    checkpoints_goto(c, CHECKPOINTS_FETCHING);
    checkpoints_share_source(c);
    checkpoints_groups_begin(c, is_followed);
}

static void round_begin(struct checkpoints *c)
{
    int64_t now = loop_now_ms(c->loop);

    arena_reset(&c->arena);
    c->round_began_ms = now;
    c->must_tell = is_due(c->next_tell_ms, now);
    c->must_sync = is_due(c->next_sync_ms, now);
    if (!is_due(c->next_list_ms, now)) {
        fetch_begin(c);
        return;
    }
    checkpoints_list_begin(c, c->source);
    checkpoints_goto(c, CHECKPOINTS_LISTING);
}

/* The group is gone at the source. Its checkpoints stay, as MirrorMaker 2's do: Java's readers stop at a removal. */
static void listed(struct checkpoints *c)
{
    struct followed *g, *next;
    int64_t refused = 0;

    HASH_ITER(hh, c->groups, g, next) {
        if (!g->seen && c->listing_whole)
            group_free(c, g);
        else
            refused += groups_kind_refusal(g->kind) != NULL || (g->kind == GROUP_SHARE && c->next_sync_ms < 0);
    }
    if (HASH_COUNT(c->groups) != c->followed_shown)
        log_event(EV_GROUPS_FOLLOWED, kv_str("flow", c->config->name),
                  kv_int("groups", (int64_t)HASH_COUNT(c->groups) - refused), kv_int("refused", refused));
    c->followed_shown = HASH_COUNT(c->groups);
    c->next_list_ms = c->listing_whole ? later(loop_now_ms(c->loop), c->config->refresh_groups_enabled
                                                                         ? c->config->refresh_groups_interval_ms
                                                                         : -1)
                                       : loop_now_ms(c->loop);
}

static void round_end(struct checkpoints *c)
{
    int64_t now = loop_now_ms(c->loop);
    struct followed *g, *next;

    HASH_ITER(hh, c->groups, g, next) {
        if (c->must_tell && c->writer && g->kind != GROUP_SHARE)
            checkpoints_tell_group(c, g);
        checkpoints_refusals_end(c, g);
        if (c->must_sync) {
            g->shown_active = g->active;
        } else { /* what was found out about the target in the round before */
            g->counts.committed = g->last.committed;
            g->counts.ahead = g->last.ahead;
            if (g->kind == GROUP_SHARE) /* not asked about */
                g->counts = g->last;
        }
        g->last = g->counts;
        g->places = NULL;
        g->places_n = 0;
    }
    if (c->must_tell)
        c->next_tell_ms = later(c->round_began_ms, c->config->emit_checkpoints_interval_ms);
    if (c->must_sync) {
        c->next_sync_ms = later(c->round_began_ms, c->config->sync_group_offsets_interval_ms);
        c->last_sync_ms = loop_wall_ms(c->loop);
    }
    c->rounds++;
    c->last_round_ms = loop_wall_ms(c->loop);
    c->round_ms = now - c->round_began_ms;
    if (c->listing_whole && c->looking_whole)
        well(c);
    else if (!c->listing_whole)
        fail(c, "LISTING", "a broker of the source does not list its groups; those known are followed");
    checkpoints_goto(c, CHECKPOINTS_RESTING);
    rest_on(c, c->looking_whole ? LEAST_PAUSE_MS : AWAY_PAUSE_MS);
}

/* After the calls of a state: on to the next, unless a cluster is away. */
static bool go_on(struct checkpoints *c, struct cluster *cl)
{
    if (!c->away)
        return true;
    give_up(c, cl);
    return false;
}

static void step_target(struct checkpoints *c)
{
    switch (c->state) {
    case CHECKPOINTS_LOOKING:
        if (!checkpoints_list(c, c->target) || !go_on(c, c->target))
            return;
        if (!c->looking_whole) { /* which groups have members is not known: none is touched */
            fail(c, "LOOKING", "a broker of the target does not list its groups: no position is committed");
            c->must_sync = false;
            checkpoints_goto(c, CHECKPOINTS_TELLING);
            break;
        }
        checkpoints_share_target(c);
        checkpoints_groups_begin(c, is_to_be_read);
        checkpoints_goto(c, CHECKPOINTS_READING);
        break;
    case CHECKPOINTS_READING:
        if (!checkpoints_fetch(c, c->target) || !go_on(c, c->target))
            return;
        checkpoints_decide(c);
        checkpoints_groups_begin(c, is_to_be_committed);
        checkpoints_goto(c, CHECKPOINTS_COMMITTING);
        break;
    default:
        if (!checkpoints_commit(c) || !go_on(c, c->target))
            return;
        checkpoints_goto(c, CHECKPOINTS_TELLING);
        break;
    }
    checkpoints_wake(c);
}

static void checkpoints_step(struct task *t)
{
    struct checkpoints *c = container_of(t, struct checkpoints, step);

    switch (c->state) {
    case CHECKPOINTS_LOADING:
        return;
    case CHECKPOINTS_RESTING:
        if (timer_is_set(&c->rest))
            return;
        if (c->rounds == 0 && c->next_tell_ms == 0 && c->next_sync_ms == 0) { /* loaded just now */
            c->looking_whole = true;
            c->next_tell_ms = c->writer ? later(loop_now_ms(c->loop), c->config->emit_checkpoints_interval_ms) : -1;
            c->next_sync_ms = c->config->sync_group_offsets_enabled
                                  ? later(loop_now_ms(c->loop), c->config->sync_group_offsets_interval_ms)
                                  : -1;
            rest_on(c, 0);
            return;
        }
        round_begin(c);
        break;
    case CHECKPOINTS_LISTING:
        if (!checkpoints_list(c, c->source) || !go_on(c, c->source))
            return;
        listed(c);
        fetch_begin(c);
        break;
    case CHECKPOINTS_FETCHING:
        if (!checkpoints_fetch(c, c->source) || !go_on(c, c->source))
            return;
        checkpoints_goto(c, CHECKPOINTS_TRANSLATING);
        checkpoints_translate_begin(c);
        break;
    case CHECKPOINTS_TRANSLATING:
        if (c->translations_n || c->reader)
            return;
        checkpoints_translated(c);
        if (c->must_sync) {
            checkpoints_list_begin(c, c->target);
            checkpoints_goto(c, CHECKPOINTS_LOOKING);
        } else {
            checkpoints_goto(c, CHECKPOINTS_TELLING);
        }
        break;
    case CHECKPOINTS_LOOKING:
    case CHECKPOINTS_READING:
    case CHECKPOINTS_COMMITTING:
        step_target(c);
        return;
    case CHECKPOINTS_TELLING:
        round_end(c);
        return;
    }
    checkpoints_wake(c);
}

static void on_rest(struct timer *t)
{
    checkpoints_wake(container_of(t, struct checkpoints, rest));
}

static void on_writer_fault(void *arg, const struct fault *f)
{
    struct checkpoints *c = arg;

    if (fault_is_set(f))
        log_event(EV_CHECKPOINTS_FAULT, kv_str("flow", c->config->name), kv_c("code", f->code), kv_c("text", f->text));
    else
        log_event(EV_CHECKPOINTS_FAULT_OVER, kv_str("flow", c->config->name), kv_c("code", ""));
}

struct checkpoints *checkpoints_new(struct loop *l, const struct flow_config *config, const struct policy *policy,
                                    struct cluster *source, struct cluster *target, const struct checkpoints_ops *ops)
{
    bool tells = config->emit_checkpoints_enabled && config->emit_checkpoints_interval_ms >= 0;
    bool syncs = config->sync_group_offsets_enabled && config->sync_group_offsets_interval_ms >= 0;
    struct topic_reader_ops loading = { .on_record = on_loaded_record, .on_done = on_loaded };
    struct topic_writer_ops writing = { .on_fault = on_writer_fault };
    struct checkpoints *c;
    struct str why;

    if (!config->enabled || (!tells && !syncs))
        return NULL;
    c = mem_new(sizeof(*c));
    c->loop = l;
    c->config = config;
    c->source = source;
    c->target = target;
    c->ops = *ops;
    arena_init(&c->arena, CHECKPOINTS_ARENA);
    arena_init(&c->names, 1 * MiB);
    list_init(&c->translations);
    task_init(&c->step, checkpoints_step);
    timer_init(&c->rest, on_rest);
    checkpoints_calls_init(c);
    must_say(!filter_new(&config->groups, &config->groups_exclude, &c->names, &c->filter, &why),
             "the configuration was checked, so its filters compile");
    c->topic = policy_checkpoints(policy, config->source_alias, &c->names);
    c->syncs_topic = policy_offset_syncs(policy,
                                         config->offset_syncs_location == FLOW_SYNCS_AT_TARGET ? config->source_alias
                                                                                               : config->target_alias,
                                         &c->names);
    writing.arg = loading.arg = c;
    if (tells)
        c->writer = topic_writer_new(target, c->topic, &writing);
    c->reader = topic_reader_start(target, c->topic, &loading);
    return c;
}

void checkpoints_free(struct checkpoints **cp)
{
    struct checkpoints *c = *cp;
    struct followed *g, *next;
    struct known *k, *after;
    struct list_node *n;

    if (!c)
        return;
    *cp = NULL;
    checkpoints_calls_stop(c);
    while ((n = list_first(&c->translations))) {
        list_remove(n);
        container_of(n, struct translation, node)->asker = NULL;
    }
    topic_reader_free(&c->reader);
    checkpoints_mm2_free(c);
    topic_writer_free(&c->writer);
    task_cancel(&c->step);
    timer_cancel(c->loop, &c->rest);
    HASH_ITER(hh, c->groups, g, next)
        group_free(c, g);
    HASH_ITER(hh, c->known, k, after) {
        HASH_DEL(c->known, k);
        mem_free(k);
    }
    filter_free(&c->filter);
    arena_fini(&c->arena);
    arena_fini(&c->names);
    mem_free(c);
}
