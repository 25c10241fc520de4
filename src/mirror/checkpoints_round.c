/* checkpoints_round.c -- what a round makes of the groups' positions: translations, commits, checkpoints, status.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Thread: control.
 */
#include "mirror/checkpoints_int.h"

#include "base/log.h"
#include "base/must.h"
#include "mirror/view.h"

#include <stdarg.h>
#include <stdio.h>

#define WORKERS_MAX 1024

static void on_translated(struct translation *t, void *asker)
{
    struct checkpoints *c = asker;

    for (int32_t i = 0; i < t->n; i++) {
        struct place *p = t->at[i].owner;

        p->to = groups_position(&t->at[i].answer);
    }
    list_remove(&t->node);
    c->translations_n--;
    translation_free(&t);
    checkpoints_wake(c);
}

/* One list of questions per worker. */
struct asking {
    struct flow_port *port;
    struct translation *t;
};

static struct translation *asking_of(struct checkpoints *c, struct asking *all, size_t *n, struct flow_port *port)
{
    for (size_t i = 0; i < *n; i++)
        if (all[i].port == port)
            return all[i].t;
    must(*n < WORKERS_MAX);
    all[*n] = (struct asking){ port, translation_new(on_translated, c) };
    return all[(*n)++].t;
}

void checkpoints_translate_begin(struct checkpoints *c)
{
    struct followed *g, *next;
    struct asking all[WORKERS_MAX];
    size_t n = 0;

    if (c->config->translation == FLOW_TRANSLATION_MM2) {
        checkpoints_mm2_begin(c);
        return;
    }
    HASH_ITER(hh, c->groups, g, next) {
        for (size_t i = 0; i < g->places_n; i++) {
            struct place *p = &g->places[i];
            struct question q = { .topic = p->topic, .partition = p->partition, .offset = p->upstream, .owner = p };

            translation_add(asking_of(c, all, &n, p->port), &q);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!flow_port_translate(all[i].port, all[i].t)) {
            translation_free(&all[i].t);
            continue;
        }
        list_add_tail(&c->translations, &all[i].t->node);
        c->translations_n++;
    }
}

/* Every place has its answer: count, and find what is known of it. */
void checkpoints_translated(struct checkpoints *c)
{
    struct followed *g, *next;
    struct buf key, value;

    buf_init(&key, 128 * KiB);
    buf_init(&value, 128 * KiB);
    HASH_ITER(hh, c->groups, g, next) {
        g->counts.places = (int32_t)g->places_n;
        for (size_t i = 0; i < g->places_n; i++) {
            struct place *p = &g->places[i];
            struct checkpoint_record r = { .group = g->name, .topic = p->target_topic, .partition = p->partition };

            buf_clear(&key);
            buf_clear(&value);
            formats_encode_checkpoint(&r, &key, &value);
            p->known = p->to.how == GROUP_NONE || key.bad ? NULL : checkpoints_known(c, buf_str(&key), true);
            if (p->known)
                groups_narrow(&p->known->mark, p->upstream, &p->to);
            g->counts.exact += p->to.how == GROUP_EXACT;
            g->counts.behind += p->to.how == GROUP_BEHIND;
            g->counts.range += p->to.how == GROUP_RANGE;
            g->counts.none += p->to.how == GROUP_NONE;
        }
    }
    buf_fini(&key);
    buf_fini(&value);
}

void checkpoints_decide(struct checkpoints *c)
{
    struct followed *g, *next;

    HASH_ITER(hh, c->groups, g, next) {
        for (size_t i = 0; i < g->places_n && !g->failed && !g->active; i++) {
            struct place *p = &g->places[i];

            if (!p->known || p->unreadable)
                continue;
            /* A share group's start offset may lag behind what its consumers are done with, so that one of theirs looks
             * like ours: it only goes forward. */
            p->commit = c->config->translation == FLOW_TRANSLATION_MM2 || g->kind == GROUP_SHARE
                            ? groups_must_commit_mm2(&p->to, p->there)
                            : groups_must_commit(&p->known->mark, p->upstream, &p->to, p->there);
            g->counts.committed += p->there == p->to.offset;
            g->counts.ahead += !p->commit && p->there != p->to.offset;
        }
    }
}

static void tell(struct checkpoints *c, const struct place *p)
{
    struct checkpoint_record r = { .group = p->group->name, .topic = p->target_topic, .partition = p->partition,
                                   .upstream = p->upstream, .downstream = p->to.offset, .metadata = p->metadata };
    struct buf key, value;

    buf_init(&key, 128 * KiB);
    buf_init(&value, 64 * KiB);
    formats_encode_checkpoint(&r, &key, &value);
    if (key.bad || value.bad) {
        checkpoints_refuse(c, p->group, "RECORD_TOO_LARGE", "its name or metadata is too long for a checkpoint");
    } else {
        topic_writer_put(c->writer, 0, buf_str(&key), buf_str(&value), -1);
        p->known->mark.upstream = p->upstream;
        p->known->mark.downstream = p->to.offset;
        p->known->metadata_hash = str_hash(p->metadata);
        c->told++;
    }
    buf_fini(&key);
    buf_fini(&value);
}

static bool must_tell(const struct checkpoints *c, const struct place *p)
{
    const struct group_mark *m = &p->known->mark;

    if (c->config->translation == FLOW_TRANSLATION_MM2)
        return groups_must_tell_mm2(m, p->upstream, &p->to);
    return groups_must_tell(m, p->upstream, &p->to, str_hash(p->metadata) == p->known->metadata_hash);
}

void checkpoints_tell_group(struct checkpoints *c, struct followed *g)
{
    for (size_t i = 0; i < g->places_n; i++)
        if (g->places[i].known && must_tell(c, &g->places[i]))
            tell(c, &g->places[i]);
}

static enum group_part part_of(enum checkpoints_state s)
{
    if (s == CHECKPOINTS_TELLING)
        return GROUP_TOLD;
    return s == CHECKPOINTS_LISTING || s == CHECKPOINTS_FETCHING ? GROUP_AT_SOURCE : GROUP_AT_TARGET;
}

void checkpoints_refuse(struct checkpoints *c, struct followed *g, const char *code, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!g->faulty)
        fault_set(&g->fault, loop_wall_ms(c->loop), code, "%s", text);
    g->failed = g->faulty = true;
    if (groups_refused(&g->refusals, part_of(c->state), code))
        log_event(EV_GROUP_REFUSED, kv_str("flow", c->config->name), kv_str("group", g->name), kv_c("code", code),
                  kv_c("text", text));
}

/* A round that did not ask the target, or wrote no checkpoint, does not know whether what was refused there still is. */
void checkpoints_refusals_end(struct checkpoints *c, struct followed *g)
{
    if (groups_kind_refusal(g->kind) || (g->kind == GROUP_SHARE && !c->must_sync))
        return;
    groups_refusals_end(&g->refusals, GROUP_AT_SOURCE | (c->must_sync ? GROUP_AT_TARGET : 0u) |
                                          (c->must_tell ? GROUP_TOLD : 0u));
    if (!groups_is_refused(&g->refusals, g->fault.code))
        fault_clear(&g->fault);
}

void checkpoints_view(const struct checkpoints *c, struct view_groups *v, struct arena *a)
{
    struct followed *g, *next;

    *v = (struct view_groups){ .followed = true, .checkpoints = c->told, .commits = c->commits, .rounds = c->rounds,
                               .last_round_ms = c->last_round_ms, .last_sync_ms = c->last_sync_ms,
                               .round_ms = c->round_ms };
    v->fault = fault_is_set(&c->fault) || !c->writer ? c->fault : *topic_writer_fault(c->writer);
    v->refused = arena_array(a, MIN(HASH_COUNT(c->groups), VIEW_REFUSED_MAX), sizeof(*v->refused));
    HASH_ITER(hh, c->groups, g, next) {
        const struct followed_counts *n = &g->last;

        v->groups += !groups_kind_refusal(g->kind) && (g->kind != GROUP_SHARE || c->next_sync_ms >= 0);
        v->active += g->shown_active;
        v->positions += n->places;
        v->exact += n->exact;
        v->behind += n->behind;
        v->ranges += n->range;
        v->unknown += n->none;
        v->committed += n->committed;
        v->ahead += n->ahead;
        if (!fault_is_set(&g->fault))
            continue;
        v->refused_groups++;
        if (v->refused_n < VIEW_REFUSED_MAX)
            v->refused[v->refused_n++] = (struct view_refused){ .group = arena_str(a, g->name), .fault = g->fault };
    }
}
