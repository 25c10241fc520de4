/* director_gone.c -- copies of topics that were deleted at the source are deleted too, where that is asked for.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  missed by a look -> asked for by name at each look: "there is no such topic" -> after the delay: DeleteTopics
 *
 * A topic that is hidden, filtered out or back again is not deleted: the source itself must say, by name and without a
 * break, that it does not exist (a principal without Describe gets another answer). Nor is a copy deleted whose name
 * does not say that it is this source's, or which another topic is copied to; nor more than a set number in one look,
 * since what deletes all topics is mostly an accident. MirrorMaker 2 never deletes a copy. Thread: control.
 */
#include "mirror/director_gone.h"

#include "base/alloc.h"
#include "base/log.h"
#include "mirror/director_internal.h"

#define LOOKS_MIN 2 /* one broker that has just started may not know all topics */

struct gone_topic {
    UT_hash_handle hh;
    struct str name, copy; /* own memory */
    int64_t since_ms;      /* loop time from which on the source says that it is not there; 0: not asked yet */
    int32_t looks;
    bool told;             /* why it stays */
    bool sent;             /* in the request under way */
    bool done;             /* the copy is gone, or stays for good */
};

static struct gone_topic *find(const struct director *d, struct str name)
{
    struct gone_topic *g;

    HASH_FIND(hh, d->gone.topics, name.p, name.n, g);
    return g;
}

static struct str own(struct str s)
{
    return str_of(mem_copy_str(s.p, s.n), s.n);
}

static void forget(struct director *d, struct gone_topic *g)
{
    HASH_DEL(d->gone.topics, g);
    mem_free((char *)(uintptr_t)g->name.p);
    mem_free((char *)(uintptr_t)g->copy.p);
    mem_free(g);
}

void director_gone_note(struct director *d, struct str topic, struct str copy)
{
    struct gone_topic *g;

    if (!d->config->sync_topic_deletions || find(d, topic))
        return;
    g = mem_new(sizeof(*g));
    g->name = own(topic);
    g->copy = own(copy);
    HASH_ADD_KEYPTR(hh, d->gone.topics, g->name.p, g->name.n, g);
}

static void note_stored(void *arg, struct str topic, struct str copy)
{
    struct director *d = arg;
    const struct mirrored *m;

    HASH_FIND(hh, d->topics, topic.p, topic.n, m);
    if (!m)
        director_gone_note(d, topic, copy);
}

void director_gone_note_stored(struct director *d)
{
    if (!d->config->sync_topic_deletions || d->gone.read)
        return;
    d->gone.read = true;
    director_each_stored(d, note_stored, d);
}

static void go_on(struct director *d)
{
    struct gone_topic *g, *next;

    HASH_ITER(hh, d->gone.topics, g, next)
        if (g->done)
            forget(d, g);
    d->gone.asked = GONE_NOTHING;
    d->refresh_step = REFRESH_DONE;
    director_wake(d);
}

/* --- is it gone? --- */

static void take_answer(struct director *d, const struct kafka_metadata_response_topic *t)
{
    struct gone_topic *g = find(d, t->name);

    if (!g)
        return;
    if (t->error_code == KERR_NONE || t->error_code == KERR_LEADER_NOT_AVAILABLE) {
        forget(d, g); /* it is there: not wanted any more, or made anew */
        return;
    }
    if (t->error_code != KERR_UNKNOWN_TOPIC_OR_PARTITION) {
        g->looks = 0;
        g->since_ms = 0;
        return;
    }
    if (g->looks++ == 0)
        g->since_ms = loop_now_ms(d->loop);
}

static void on_asked(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_metadata_response *r = call->response;

    if (director_call_failed(d, "asking for topics that the source does not list any more"))
        return;
    for (int32_t i = 0; i < r->topics.n; i++)
        take_answer(d, &r->topics.at[i]);
    d->gone.asked = GONE_AT_SOURCE;
    director_wake(d);
}

static void ask_source(struct director *d)
{
    struct kafka_metadata_request *q = director_ask_names(d, HASH_COUNT(d->gone.topics));
    struct gone_topic *g, *next;

    HASH_ITER(hh, d->gone.topics, g, next)
        q->topics.at[q->topics.n++].name = g->name;
    director_call(d, d->source, API_METADATA, ROUTE_ANY, on_asked);
}

/* --- may its copy go? --- */

static void tell_kept(const struct director *d, struct gone_topic *g, const char *code, struct str why)
{
    if (!g->told)
        log_event(EV_COPY_KEPT, kv_str("flow", d->config->name), kv_str("topic", g->name), kv_str("target_topic", g->copy),
                  kv_c("code", code), kv_str("text", why));
    g->told = true;
}

static bool is_copy_of_another(const struct director *d, const struct gone_topic *g)
{
    const struct mirrored *m, *next;

    HASH_ITER(hh, d->topics, m, next)
        if (str_eq(m->target_name, g->copy) || str_eq(m->route, g->copy))
            return true;
    return false;
}

static bool is_confirmed(const struct director *d, const struct gone_topic *g)
{
    return !g->done && g->looks >= LOOKS_MIN &&
           loop_now_ms(d->loop) - g->since_ms >= d->config->sync_topic_deletions_delay_ms;
}

/* Nobody else's. */
static bool may_go(struct director *d, struct gone_topic *g)
{
    if (str_eq(g->copy, g->name) || !str_eq(g->copy, policy_prefix(d->policy, g->name, &d->arena))) {
        tell_kept(d, g, "COPY_IS_SHARED", STR("the name of the copy does not say that it is this source's, so others may "
                                              "write to it: delete it by hand"));
        return false;
    }
    if (is_copy_of_another(d, g)) {
        tell_kept(d, g, "COPY_IS_SHARED", STR("another topic is copied to it now"));
        return false;
    }
    return true;
}

/* Copies that somebody has deleted already, an earlier run mostly, are nothing to speak of. */
static void on_copies(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_metadata_response *r = call->response;
    struct gone_topic *g, *next;

    if (director_call_failed(d, "looking for copies of topics that were deleted at the source"))
        return;
    for (int32_t i = 0; i < r->topics.n; i++)
        HASH_ITER(hh, d->gone.topics, g, next)
            if (r->topics.at[i].error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION && str_eq(g->copy, r->topics.at[i].name))
                g->done = true;
    d->gone.asked = GONE_AT_BOTH;
    director_wake(d);
}

static void ask_target(struct director *d)
{
    struct kafka_metadata_request *q = director_ask_names(d, HASH_COUNT(d->gone.topics));
    struct gone_topic *g, *next;

    HASH_ITER(hh, d->gone.topics, g, next)
        if (is_confirmed(d, g))
            q->topics.at[q->topics.n++].name = g->copy;
    if (q->topics.n)
        director_call(d, d->target, API_METADATA, ROUTE_ANY, on_copies);
    else
        go_on(d);
}

/* --- the deletion --- */

static void take_deleted(struct director *d, struct gone_topic *g, int32_t kerr, struct str said)
{
    g->sent = false;
    if (kerr == KERR_NONE || kerr == KERR_UNKNOWN_TOPIC_OR_PARTITION) {
        g->done = true;
        log_event(EV_COPY_DELETED, kv_str("flow", d->config->name), kv_str("topic", g->name), kv_str("target_topic", g->copy));
        return;
    }
    tell_kept(d, g, kerr_name(kerr), arena_fmt(&d->arena, "the target does not delete it: %s%s%.*s%s", kerr_text(kerr),
                                               said.n ? ": " : "", STR_ARG(said), kerr_advice(kerr)));
}

static void on_deleted(struct call *call)
{
    struct director *d = container_of(call, struct director, call);
    const struct kafka_delete_topics_response *r = call->response;
    struct gone_topic *g, *next;
    bool moved = false;

    if (director_call_failed(d, "deleting copies of topics that were deleted at the source"))
        return;
    for (int32_t i = 0; i < r->responses.n; i++) {
        const struct kafka_delete_topics_response_topic *t = &r->responses.at[i];

        if (kerr_class(API_DELETE_TOPICS, t->error_code) == K_REFRESH && t->error_code != KERR_UNKNOWN_TOPIC_OR_PARTITION)
            moved = true;
        else
            HASH_ITER(hh, d->gone.topics, g, next)
                if (g->sent && str_eq(g->copy, t->name))
                    take_deleted(d, g, t->error_code, t->error_message);
    }
    if (moved) {
        struct route route = { .kind = ROUTE_CONTROLLER };

        cluster_reroute(d->target, &route);
    }
    go_on(d); /* what is left is tried at the next look */
}

static void delete_copies(struct director *d)
{
    struct kafka_delete_topics_request *q = &d->request.delete;
    struct gone_topic *g, *next;
    int64_t due = 0;

    codec_init(&kafka_delete_topics_request_msg, q);
    q->timeout_ms = 30000;
    q->topic_names.at = arena_array(&d->arena, HASH_COUNT(d->gone.topics), sizeof(*q->topic_names.at));
    q->topics.at = arena_array(&d->arena, HASH_COUNT(d->gone.topics), sizeof(*q->topics.at));
    q->topic_names.n = q->topics.n = 0;
    HASH_ITER(hh, d->gone.topics, g, next) {
        g->sent = is_confirmed(d, g) && may_go(d, g);
        if (!g->sent)
            continue;
        due++;
        q->topic_names.at[q->topic_names.n++] = g->copy;
        q->topics.at[q->topics.n++].name = g->copy;
    }
    HASH_ITER(hh, d->gone.topics, g, next) {
        if (!g->sent || (due <= d->config->sync_topic_deletions_max && !d->config->sync_dry_run))
            continue;
        g->sent = false;
        if (d->config->sync_dry_run)
            tell_kept(d, g, "DRY_RUN", STR("heliostat.sync.dry.run leaves the copy; without it it would be deleted now"));
        else
            tell_kept(d, g, "MANY_DELETIONS", arena_fmt(
                &d->arena, "%lld copies would be deleted at once, more than heliostat.sync.topic.deletions.max (%lld): if "
                "their topics were deleted on purpose, raise it; nothing is deleted meanwhile", (long long)due,
                (long long)d->config->sync_topic_deletions_max));
        q->topics.n = 0;
    }
    if (q->topics.n)
        director_call(d, d->target, API_DELETE_TOPICS, ROUTE_CONTROLLER, on_deleted);
    else
        go_on(d);
}

void director_gone_step(struct director *d)
{
    if (HASH_COUNT(d->gone.topics) == 0)
        go_on(d);
    else if (d->gone.asked == GONE_NOTHING)
        ask_source(d);
    else if (d->gone.asked == GONE_AT_SOURCE)
        ask_target(d);
    else
        delete_copies(d);
}

void director_gone_free(struct director *d)
{
    struct gone_topic *g, *next;

    HASH_ITER(hh, d->gone.topics, g, next)
        forget(d, g);
    d->gone = (struct director_gone){ 0 };
}
