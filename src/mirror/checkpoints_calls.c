/* checkpoints_calls.c -- the requests about groups, so many at a time.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A step goes through its brokers or groups with CHECKPOINTS_CALLS calls under way. Where a coordinator has moved the
 * call goes once more; what may pass by itself waits for the next round. A cluster that is down ends the step: `away`.
 */
#include "mirror/checkpoints_int.h"

#include "base/must.h"

#define TRIES 3
#define LIST_TIMEOUT_MS 10000 /* one broker that is away does not hold the round up for long */
#define VERSION_NAMES_TOPICS 9 /* OffsetFetch, OffsetCommit: the last that needs no topic ids */

static void on_done(struct call *call);

void checkpoints_calls_init(struct checkpoints *c)
{
    for (int i = 0; i < CHECKPOINTS_CALLS; i++) {
        c->slots[i].owner = c;
        arena_init(&c->slots[i].arena, 64 * (size_t)MiB);
        call_init(&c->slots[i].call, 0, NULL, NULL);
    }
}

void checkpoints_calls_stop(struct checkpoints *c)
{
    for (int i = 0; i < CHECKPOINTS_CALLS; i++) {
        call_drop(&c->slots[i].call);
        call_fini(&c->slots[i].call);
        arena_fini(&c->slots[i].arena);
    }
}

static struct checkpoints_slot *free_slot(struct checkpoints *c)
{
    for (int i = 0; i < CHECKPOINTS_CALLS; i++)
        if (!call_is_busy(&c->slots[i].call))
            return &c->slots[i];
    return NULL;
}

static struct cluster *cluster_of(const struct checkpoints *c)
{
    return c->state == CHECKPOINTS_LISTING || c->state == CHECKPOINTS_FETCHING ? c->source : c->target;
}

static struct route route_of(const struct checkpoints_slot *s)
{
    if (!s->group)
        return (struct route){ .kind = ROUTE_BROKER, .broker = s->broker };
    return (struct route){ .kind = ROUTE_GROUP, .key = s->group->name };
}

/* The call could not be made, or brought no answer. */
static void note_failed(struct checkpoints_slot *s, const char *code, const char *text)
{
    struct checkpoints *c = s->owner;

    if (s->group)
        checkpoints_refuse(c, s->group, code, "%s", text);
    else
        *(c->state == CHECKPOINTS_LISTING ? &c->listing_whole : &c->looking_whole) = false;
}

static void send(struct checkpoints_slot *s, int api, void (*fill)(struct call *call))
{
    struct checkpoints *c = s->owner;
    struct route route = route_of(s);
    enum err e;

    call_fini(&s->call);
    call_init(&s->call, api, &s->request, on_done);
    s->call.fill = fill;
    if (api == API_LIST_GROUPS)
        s->call.timeout_ms = LIST_TIMEOUT_MS;
    else
        s->call.version_max = VERSION_NAMES_TOPICS;
    e = cluster_call(cluster_of(c), &route, &s->call);
    if (e)
        note_failed(s, err_name(e), err_text(e));
    else
        c->busy++;
}

/* Starts what may be started; true when nothing is left and nothing under way. */
static bool pump(struct checkpoints *c, void (*start)(struct checkpoints_slot *s))
{
    struct checkpoints_slot *s;

    if (!cluster_is_up(cluster_of(c))) {
        c->away = true;
        c->at = c->due_n;
    }
    while (c->at < c->due_n && (s = free_slot(c))) {
        s->group = c->due ? c->due[c->at] : NULL;
        s->broker = c->brokers ? c->brokers[c->at] : -1;
        s->tries = 0;
        c->at++;
        arena_reset(&s->arena);
        start(s);
    }
    return c->at == c->due_n && c->busy == 0;
}

/* Listings. */

void checkpoints_list_begin(struct checkpoints *c, struct cluster *cl)
{
    const struct broker_meta *brokers;
    size_t n = cluster_brokers(cl, &brokers);
    struct followed *g, *next;

    c->due = NULL;
    c->brokers = arena_array(&c->arena, MAX(n, 1), sizeof(*c->brokers));
    for (size_t i = 0; i < n; i++)
        c->brokers[i] = brokers[i].id;
    c->due_n = n;
    c->at = 0;
    c->away = false;
    c->looking_whole = true;
    if (cl == c->target)
        return;
    c->listing_whole = true;
    HASH_ITER(hh, c->groups, g, next)
        g->seen = false;
}

static void start_list(struct checkpoints_slot *s)
{
    codec_init(&kafka_list_groups_request_msg, &s->request.list);
    send(s, API_LIST_GROUPS, NULL);
}

static void on_listed(struct checkpoints_slot *s, const struct kafka_list_groups_response *r)
{
    struct checkpoints *c = s->owner;

    if (r->error_code)
        note_failed(s, kerr_name(r->error_code), kerr_text(r->error_code));
    for (int32_t i = 0; i < r->groups.n; i++)
        checkpoints_take_listed(c, &r->groups.at[i], c->state == CHECKPOINTS_LISTING);
}

bool checkpoints_list(struct checkpoints *c, struct cluster *cl)
{
    must(cl == cluster_of(c));
    return pump(c, start_list);
}

/* Groups. */

void checkpoints_groups_begin(struct checkpoints *c, bool (*wanted)(const struct followed *g))
{
    struct followed *g, *next;

    c->brokers = NULL;
    c->due = arena_array(&c->arena, MAX(HASH_COUNT(c->groups), 1), sizeof(struct followed *));
    c->due_n = 0;
    c->at = 0;
    c->away = false;
    HASH_ITER(hh, c->groups, g, next)
        if (wanted(g))
            c->due[c->due_n++] = g;
}

/* All positions of the group: up to version 7 about one, then about several. */
static void fill_fetch(struct call *call)
{
    struct checkpoints_slot *s = container_of(call, struct checkpoints_slot, call);
    struct kafka_offset_fetch_request *q = &s->request.fetch;

    codec_init(&kafka_offset_fetch_request_msg, q);
    if (call->version < 8) {
        q->group_id = s->group->name;
        q->topics.at = NULL;
        q->topics.n = -1;
        return;
    }
    q->groups.at = arena_array(&s->arena, 1, sizeof(*q->groups.at));
    q->groups.n = 1;
    q->groups.at[0].group_id = s->group->name;
    q->groups.at[0].member_id = STR_NULL;
    q->groups.at[0].member_epoch = -1;
    q->groups.at[0].topics.n = -1;
}

static void start_fetch(struct checkpoints_slot *s)
{
    if (s->group->kind == GROUP_SHARE)
        send(s, API_DESCRIBE_SHARE_GROUP_OFFSETS, checkpoints_fill_describe);
    else
        send(s, API_OFFSET_FETCH, fill_fetch);
}

void checkpoints_take(struct checkpoints_slot *s, const struct offset_seen *seen)
{
    if (s->owner->state == CHECKPOINTS_FETCHING)
        checkpoints_take_position(s->owner, s->group, seen);
    else
        checkpoints_take_there(s->group, seen);
}

static int32_t fetch_error(const struct checkpoints_slot *s, const struct kafka_offset_fetch_response *r)
{
    if (s->call.version < 8)
        return r->error_code;
    return r->groups.n ? r->groups.at[0].error_code : 0;
}

static void on_fetched(struct checkpoints_slot *s, const struct kafka_offset_fetch_response *r)
{
    for (int32_t i = 0; i < r->topics.n; i++) {
        for (int32_t j = 0; j < r->topics.at[i].partitions.n; j++) {
            const struct kafka_offset_fetch_response_partition *p = &r->topics.at[i].partitions.at[j];

            checkpoints_take(s, &(struct offset_seen){ r->topics.at[i].name, p->metadata, p->partition_index,
                                                       p->error_code, p->committed_offset });
        }
    }
    for (int32_t g = 0; g < r->groups.n; g++) {
        for (int32_t i = 0; i < r->groups.at[g].topics.n; i++) {
            const struct kafka_offset_fetch_response_group_topic *t = &r->groups.at[g].topics.at[i];

            for (int32_t j = 0; j < t->partitions.n; j++)
                checkpoints_take(s, &(struct offset_seen){ t->name, t->partitions.at[j].metadata,
                                                           t->partitions.at[j].partition_index,
                                                           t->partitions.at[j].error_code,
                                                           t->partitions.at[j].committed_offset });
        }
    }
}

bool checkpoints_fetch(struct checkpoints *c, struct cluster *cl)
{
    must(cl == cluster_of(c));
    return pump(c, start_fetch);
}

/* Positions of the source's clients carry the source's leader epochs, which mean nothing at the target and would make
 * consumers wait for a leader that never comes: like MirrorMaker 2, none is given. */
static void fill_commit(struct call *call)
{
    struct checkpoints_slot *s = container_of(call, struct checkpoints_slot, call);
    struct kafka_offset_commit_request *q = &s->request.commit;
    const struct followed *g = s->group;
    struct kafka_offset_commit_request_topic *t = NULL;

    codec_init(&kafka_offset_commit_request_msg, q);
    q->group_id = g->name;
    q->generation_id_or_member_epoch = -1;
    q->member_id = STR("");
    q->topics.at = arena_array(&s->arena, g->places_n, sizeof(*q->topics.at));
    q->topics.n = 0;
    for (size_t i = 0; i < g->places_n; i++) {
        const struct place *p = &g->places[i];
        struct kafka_offset_commit_request_partition *to;

        if (!p->commit)
            continue;
        if (!t || !str_eq(t->name, p->target_topic)) {
            t = &q->topics.at[q->topics.n++];
            t->name = p->target_topic;
            t->partitions.at = arena_array(&s->arena, g->places_n - i, sizeof(*t->partitions.at));
        }
        to = &t->partitions.at[t->partitions.n++];
        to->partition_index = p->partition;
        to->committed_offset = p->to.offset;
        to->committed_leader_epoch = -1;
        to->committed_metadata = p->metadata;
    }
}

static void start_commit(struct checkpoints_slot *s)
{
    if (s->group->kind == GROUP_SHARE)
        send(s, API_ALTER_SHARE_GROUP_OFFSETS, checkpoints_fill_alter);
    else
        send(s, API_OFFSET_COMMIT, fill_commit);
}

static int32_t commit_error(const struct kafka_offset_commit_response *r)
{
    return r->topics.n && r->topics.at[0].partitions.n ? r->topics.at[0].partitions.at[0].error_code : 0;
}

static void on_committed(struct checkpoints_slot *s, const struct kafka_offset_commit_response *r)
{
    for (int32_t i = 0; i < r->topics.n; i++)
        for (int32_t j = 0; j < r->topics.at[i].partitions.n; j++)
            checkpoints_take_committed(s->owner, s->group, API_OFFSET_COMMIT, r->topics.at[i].name,
                                       r->topics.at[i].partitions.at[j].partition_index,
                                       r->topics.at[i].partitions.at[j].error_code);
}

bool checkpoints_commit(struct checkpoints *c)
{
    return pump(c, start_commit);
}

/* The coordinator was another one: once more. */
static bool goes_again(struct checkpoints_slot *s, int32_t kerr)
{
    struct route route = route_of(s);

    if (!s->group || !kerr || kerr_class(s->call.api, kerr) != K_REFRESH || ++s->tries >= TRIES)
        return false;
    cluster_reroute(cluster_of(s->owner), &route);
    arena_reset(&s->arena);
    send(s, s->call.api, s->call.fill);
    return true;
}

static int32_t error_of(const struct checkpoints_slot *s)
{
    switch (s->call.api) {
    case API_OFFSET_FETCH:
        return fetch_error(s, s->call.response);
    case API_DESCRIBE_SHARE_GROUP_OFFSETS:
        return checkpoints_describe_error(s->call.response);
    case API_ALTER_SHARE_GROUP_OFFSETS:
        return ((const struct kafka_alter_share_group_offsets_response *)s->call.response)->error_code;
    default:
        return commit_error(s->call.response);
    }
}

/* A group that is not there yet has no positions: none at the target is no fault. */
static void take_positions(struct checkpoints_slot *s, int32_t kerr)
{
    bool source = s->owner->state == CHECKPOINTS_FETCHING;

    if (kerr && (source || kerr_class(s->call.api, kerr) != K_GONE))
        checkpoints_refuse(s->owner, s->group, kerr_name(kerr), "its positions cannot be read at the %s: %s",
                           source ? "source" : "target", kerr_text(kerr));
    else if (s->call.api == API_OFFSET_FETCH)
        on_fetched(s, s->call.response);
    else
        checkpoints_take_described(s, s->call.response);
    if (source)
        checkpoints_sort(s->group);
}

static void take_answer(struct checkpoints_slot *s, int32_t kerr)
{
    if (s->call.api == API_OFFSET_COMMIT)
        on_committed(s, s->call.response);
    else if (s->call.api == API_ALTER_SHARE_GROUP_OFFSETS)
        checkpoints_take_altered(s, s->call.response);
    else
        take_positions(s, kerr);
}

static void on_done(struct call *call)
{
    struct checkpoints_slot *s = container_of(call, struct checkpoints_slot, call);
    struct checkpoints *c = s->owner;
    int32_t kerr = 0;

    c->busy--;
    if (call->error) {
        if (call->error != E_CANCELED)
            note_failed(s, call->kerr ? kerr_name(call->kerr) : err_name(call->error),
                        call->text[0] ? call->text : err_text(call->error));
    } else if (call->api == API_LIST_GROUPS) {
        on_listed(s, call->response);
    } else {
        kerr = error_of(s);
        if (goes_again(s, kerr))
            return;
        take_answer(s, kerr);
    }
    checkpoints_wake(c);
}
