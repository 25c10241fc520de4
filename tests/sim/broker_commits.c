/* broker_commits.c -- committed offsets of groups: OffsetCommit and OffsetFetch of a simulated coordinator.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "broker.h"

#include "base/alloc.h"
#include "base/must.h"

#include <stdio.h>
#include <string.h>

#define COMMITS_MAX  512
#define METADATA_MAX 4096 /* offset.metadata.max.bytes */

struct commit {
    struct sim_cluster *cluster;
    char group[160], topic[160];
    int32_t partition, epoch;
    int64_t offset;
    char metadata[64];
};

static struct commit commits[COMMITS_MAX];
static int commits_n;

static struct commit *find(const struct sim_cluster *c, struct str group, struct str topic, int32_t partition)
{
    for (int i = 0; i < commits_n; i++)
        if (commits[i].cluster == c && commits[i].partition == partition && str_eq(group, str_c(commits[i].group)) &&
            str_eq(topic, str_c(commits[i].topic)))
            return &commits[i];
    return NULL;
}

static int32_t commit(struct sim_request *q, struct str topic,
                      const struct kafka_offset_commit_request_partition *in)
{
    const struct kafka_offset_commit_request *m = q->msg;
    struct sim_cluster *c = q->broker->cluster;
    struct sim_topic *t = broker_topic_find(c, topic);
    struct commit *k = find(c, m->group_id, topic, in->partition_index);
    int32_t kerr;

    if (!t || in->partition_index < 0 || in->partition_index >= t->parts_n)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    kerr = broker_group_error(c, m->group_id, m->generation_id_or_member_epoch, m->member_id, m->group_instance_id);
    if (kerr)
        return kerr;
    if (in->committed_metadata.n > METADATA_MAX)
        return KERR_OFFSET_METADATA_TOO_LARGE;
    if (!k) {
        must(commits_n < COMMITS_MAX);
        k = &commits[commits_n++];
    }
    *k = (struct commit){ .cluster = c, .partition = in->partition_index, .offset = in->committed_offset,
                          .epoch = in->committed_leader_epoch };
    snprintf(k->group, sizeof(k->group), "%.*s", STR_ARG(m->group_id));
    snprintf(k->topic, sizeof(k->topic), "%.*s", STR_ARG(topic));
    snprintf(k->metadata, sizeof(k->metadata), "%.*s", STR_ARG(in->committed_metadata));
    return KERR_NONE;
}

bool broker_offset_commit(struct sim_request *q)
{
    const struct kafka_offset_commit_request *m = q->msg;
    struct kafka_offset_commit_response r;

    codec_init(&kafka_offset_commit_response_msg, &r);
    r.topics.at = arena_array(&q->arena, (size_t)m->topics.n, sizeof(*r.topics.at));
    r.topics.n = m->topics.n;
    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct kafka_offset_commit_request_topic *in = &m->topics.at[i];
        struct kafka_offset_commit_response_topic *out = &r.topics.at[i];

        out->name = in->name;
        out->partitions.at = arena_array(&q->arena, (size_t)in->partitions.n, sizeof(*out->partitions.at));
        out->partitions.n = in->partitions.n;
        for (int32_t j = 0; j < in->partitions.n; j++) {
            out->partitions.at[j].partition_index = in->partitions.at[j].partition_index;
            out->partitions.at[j].error_code = (int16_t)commit(q, in->name, &in->partitions.at[j]);
        }
    }
    broker_answer(q, &r);
    return true;
}

/* --- OffsetFetch: one group before version 8, many from it on; the structs differ by their names only --- */

static void fill(const struct sim_cluster *c, struct str group, struct str topic, int32_t partition,
                 struct kafka_offset_fetch_response_group_partition *out)
{
    const struct commit *k = find(c, group, topic, partition);

    codec_init(&kafka_offset_fetch_response_group_partition_msg, out);
    out->partition_index = partition;
    out->committed_offset = k ? k->offset : -1;
    out->committed_leader_epoch = k ? k->epoch : -1;
    out->metadata = k ? str_c(k->metadata) : STR("");
}

/* What is asked for, or all that the group has. */
static int32_t list_topics(struct sim_request *q, struct str group, struct str *names)
{
    int32_t n = 0;

    for (int i = 0; i < commits_n; i++) {
        struct str topic = str_c(commits[i].topic);
        int32_t k = 0;

        if (commits[i].cluster != q->broker->cluster || !str_eq(group, str_c(commits[i].group)))
            continue;
        while (k < n && !str_eq(names[k], topic))
            k++;
        if (k == n)
            names[n++] = topic;
    }
    return n;
}

static void fill_group(struct sim_request *q, struct str group, const struct kafka_offset_fetch_request_group *in,
                       struct kafka_offset_fetch_response_group *out)
{
    struct str *names = arena_array(&q->arena, COMMITS_MAX, sizeof(*names));
    bool all = in->topics.n < 0;
    int32_t n = all ? list_topics(q, group, names) : in->topics.n;

    codec_init(&kafka_offset_fetch_response_group_msg, out);
    out->group_id = group;
    out->topics.at = arena_array(&q->arena, (size_t)n, sizeof(*out->topics.at));
    out->topics.n = n;
    for (int32_t i = 0; i < n; i++) {
        struct kafka_offset_fetch_response_group_topic *t = &out->topics.at[i];
        int32_t parts = all ? SIM_PARTS : in->topics.at[i].partition_indexes.n;

        t->name = all ? names[i] : in->topics.at[i].name;
        t->partitions.at = arena_array(&q->arena, (size_t)parts, sizeof(*t->partitions.at));
        for (int32_t j = 0; j < parts; j++) {
            int32_t number = all ? j : in->topics.at[i].partition_indexes.at[j];

            if (!all || find(q->broker->cluster, group, t->name, number))
                fill(q->broker->cluster, group, t->name, number, &t->partitions.at[t->partitions.n++]);
        }
    }
}

/* The old form of one group's answer. */
static void flatten(struct sim_request *q, const struct kafka_offset_fetch_response_group *in,
                    struct kafka_offset_fetch_response *r)
{
    r->topics.at = arena_array(&q->arena, (size_t)in->topics.n, sizeof(*r->topics.at));
    r->topics.n = in->topics.n;
    for (int32_t i = 0; i < in->topics.n; i++) {
        int32_t n = in->topics.at[i].partitions.n;

        r->topics.at[i].name = in->topics.at[i].name;
        r->topics.at[i].partitions.at = arena_array(&q->arena, (size_t)n, sizeof(*r->topics.at[i].partitions.at));
        r->topics.at[i].partitions.n = n;
        for (int32_t j = 0; j < n; j++) {
            const struct kafka_offset_fetch_response_group_partition *p = &in->topics.at[i].partitions.at[j];

            r->topics.at[i].partitions.at[j] = (struct kafka_offset_fetch_response_partition){
                .partition_index = p->partition_index, .committed_offset = p->committed_offset,
                .committed_leader_epoch = p->committed_leader_epoch, .metadata = p->metadata
            };
        }
    }
}

bool broker_offset_fetch(struct sim_request *q)
{
    const struct kafka_offset_fetch_request *m = q->msg;
    struct kafka_offset_fetch_response r;

    codec_init(&kafka_offset_fetch_response_msg, &r);
    if (q->head.version < 8) {
        struct kafka_offset_fetch_request_group want = { .topics.n = m->topics.n };
        struct kafka_offset_fetch_response_group got;

        want.topics.at = arena_array(&q->arena, (size_t)MAX(m->topics.n, 0), sizeof(*want.topics.at));
        for (int32_t i = 0; i < m->topics.n; i++) {
            want.topics.at[i].name = m->topics.at[i].name;
            want.topics.at[i].partition_indexes.at = m->topics.at[i].partition_indexes.at;
            want.topics.at[i].partition_indexes.n = m->topics.at[i].partition_indexes.n;
        }
        fill_group(q, m->group_id, &want, &got);
        flatten(q, &got, &r);
    } else {
        r.groups.at = arena_array(&q->arena, (size_t)m->groups.n, sizeof(*r.groups.at));
        r.groups.n = m->groups.n;
        for (int32_t i = 0; i < m->groups.n; i++)
            fill_group(q, m->groups.at[i].group_id, &m->groups.at[i], &r.groups.at[i]);
    }
    broker_answer(q, &r);
    return true;
}
