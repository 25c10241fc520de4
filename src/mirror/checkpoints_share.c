/* checkpoints_share.c -- the start offsets of share groups: who can tell them, how they are asked for and set.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A share group has no committed positions but a start offset per partition: all before it is done with. It goes the
 * way of a position through translation and decision, by requests of its own, in the rounds that sync. Checkpoints
 * know no share groups: none is told. Thread: control.
 */
#include "mirror/checkpoints_int.h"

#include <stdio.h>

/* Kafka 4.2, with the feature share.version: before, the keys are missing or refused. While no connection is open the
 * answer is not known: the call itself will tell. */
static bool has_share_offsets(const struct cluster *cl, int api)
{
    if (cluster_version(cl, API_LIST_GROUPS) < 0)
        return true;
    return cluster_feature(cl, STR("share.version")) >= 1 && cluster_version(cl, api) >= 0;
}

static void lacking(struct checkpoints *c, struct followed *g, const struct cluster *cl, const char *side)
{
    struct str name = cluster_name(cl);

    checkpoints_refuse(c, g, "SHARE_GROUP",
                       "the %s, %.*s, has no start offsets of share groups (Kafka 4.2 or later, share.version of 1 or more)",
                       side, STR_ARG(name));
}

static bool is_share(const struct followed *g)
{
    return g->kind == GROUP_SHARE;
}

void checkpoints_share_source(struct checkpoints *c)
{
    bool can = has_share_offsets(c->source, API_DESCRIBE_SHARE_GROUP_OFFSETS);
    struct followed *g, *next;

    HASH_ITER(hh, c->groups, g, next) {
        g->wanted = g->kind == GROUP_CONSUMER || (is_share(g) && c->must_sync && can);
        if (is_share(g) && c->must_sync && !can)
            lacking(c, g, c->source, "source");
    }
}

void checkpoints_share_target(struct checkpoints *c)
{
    bool can = has_share_offsets(c->target, API_DESCRIBE_SHARE_GROUP_OFFSETS) &&
               has_share_offsets(c->target, API_ALTER_SHARE_GROUP_OFFSETS);
    struct followed *g, *next;

    HASH_ITER(hh, c->groups, g, next)
        if (is_share(g) && g->wanted && !g->failed && !can)
            lacking(c, g, c->target, "target");
}

void checkpoints_fill_describe(struct call *call)
{
    struct checkpoints_slot *s = container_of(call, struct checkpoints_slot, call);
    struct kafka_describe_share_group_offsets_request *q = &s->request.describe;

    codec_init(&kafka_describe_share_group_offsets_request_msg, q);
    q->groups.at = arena_array(&s->arena, 1, sizeof(*q->groups.at));
    q->groups.n = 1;
    q->groups.at[0].group_id = s->group->name;
    q->groups.at[0].topics.n = -1;
}

void checkpoints_fill_alter(struct call *call)
{
    struct checkpoints_slot *s = container_of(call, struct checkpoints_slot, call);
    struct kafka_alter_share_group_offsets_request *q = &s->request.alter;
    struct kafka_alter_share_group_offsets_request_topic *t = NULL;
    const struct followed *g = s->group;

    codec_init(&kafka_alter_share_group_offsets_request_msg, q);
    q->group_id = g->name;
    q->topics.at = arena_array(&s->arena, g->places_n, sizeof(*q->topics.at));
    q->topics.n = 0;
    for (size_t i = 0; i < g->places_n; i++) {
        const struct place *p = &g->places[i];

        if (!p->commit)
            continue;
        if (!t || !str_eq(t->topic_name, p->target_topic)) {
            t = &q->topics.at[q->topics.n++];
            t->topic_name = p->target_topic;
            t->partitions.at = arena_array(&s->arena, g->places_n - i, sizeof(*t->partitions.at));
        }
        t->partitions.at[t->partitions.n++] =
            (struct kafka_alter_share_group_offsets_request_partition){ p->partition, p->to.offset };
    }
}

int32_t checkpoints_describe_error(const struct kafka_describe_share_group_offsets_response *r)
{
    return r->groups.n ? r->groups.at[0].error_code : 0;
}

void checkpoints_take_described(struct checkpoints_slot *s, const struct kafka_describe_share_group_offsets_response *r)
{
    for (int32_t i = 0; i < r->groups.n; i++) {
        for (int32_t j = 0; j < r->groups.at[i].topics.n; j++) {
            const struct kafka_describe_share_group_offsets_response_topic *t = &r->groups.at[i].topics.at[j];

            for (int32_t k = 0; k < t->partitions.n; k++)
                checkpoints_take(s, &(struct offset_seen){ t->topic_name, STR_NULL, t->partitions.at[k].partition_index,
                                                           t->partitions.at[k].error_code,
                                                           t->partitions.at[k].start_offset });
        }
    }
}

void checkpoints_take_altered(struct checkpoints_slot *s, const struct kafka_alter_share_group_offsets_response *r)
{
    struct checkpoints *c = s->owner;

    if (r->error_code && kerr_class(API_ALTER_SHARE_GROUP_OFFSETS, r->error_code) == K_REJOIN)
        s->group->active = true; /* somebody has joined in between: the broker keeps us out */
    else if (r->error_code)
        checkpoints_refuse(c, s->group, kerr_name(r->error_code), "the target does not take its start offsets: %s",
                           kerr_text(r->error_code));
    for (int32_t i = 0; i < r->responses.n && !r->error_code; i++)
        for (int32_t j = 0; j < r->responses.at[i].partitions.n; j++)
            checkpoints_take_committed(c, s->group, API_ALTER_SHARE_GROUP_OFFSETS, r->responses.at[i].topic_name,
                                       r->responses.at[i].partitions.at[j].partition_index,
                                       r->responses.at[i].partitions.at[j].error_code);
}
