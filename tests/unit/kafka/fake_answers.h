/* fake_answers.h -- what the fake broker says by itself: ApiVersions and Metadata from its fields.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part of fake_broker.h, which includes it in its middle.
 */
#ifndef TESTS_UNIT_KAFKA_FAKE_ANSWERS_H
#define TESTS_UNIT_KAFKA_FAKE_ANSWERS_H

static inline void fake_versions(struct fake *f, struct fake_request *q)
{
    struct kafka_api_versions_response r;
    struct kafka_api_versions_response_api_key keys[FAKE_KEYS];
    int own = f->max[API_API_VERSIONS] ? f->max[API_API_VERSIONS] : 4;
    int version = q->version;

    codec_init(&kafka_api_versions_response_msg, &r);
    r.api_keys.at = keys;
    r.api_keys.n = 0;
    if (version > (own < 0 ? 0 : own)) {
        version = 0;
        r.error_code = KERR_UNSUPPORTED_VERSION;
    }
    for (size_t i = 0; i < api_count && !(r.error_code && f->hide_range); i++) {
        const struct api *a = api_all[i];
        int max = f->max[a->key] ? f->max[a->key] : a->max;

        if (max >= 0)
            keys[r.api_keys.n++] = (struct kafka_api_versions_response_api_key){
                .api_key = a->key, .min_version = a->min, .max_version = (int16_t)max
            };
    }
    fake_answer(q, version, &r);
}

static inline void fake_metadata(struct fake *f, struct fake_request *q)
{
    const struct kafka_metadata_request *m = q->body;
    struct kafka_metadata_response r;

    codec_init(&kafka_metadata_response_msg, &r);
    r.cluster_id = str_c(f->cluster_id);
    r.controller_id = f->controller;
    r.brokers.at = (struct kafka_metadata_response_broker *)(uintptr_t)f->brokers;
    r.brokers.n = f->brokers_n;
    r.error_code = q->version >= 13 ? (int16_t)f->metadata_error : 0;
    r.topics.at = arena_array(&f->arena, (size_t)MAX(m->topics.n, 1), sizeof(*r.topics.at));
    for (int32_t i = 0; i < m->topics.n; i++) {
        struct kafka_metadata_response_topic *t = &r.topics.at[r.topics.n++];
        const struct fake_topic *from = NULL;

        codec_init(&kafka_metadata_response_topic_msg, t);
        for (int32_t k = 0; k < f->topics_n; k++)
            if (str_eq(str_c(f->topics[k].name), m->topics.at[i].name))
                from = &f->topics[k];
        t->name = m->topics.at[i].name;
        t->error_code = (int16_t)(from ? from->error : KERR_UNKNOWN_TOPIC_OR_PARTITION);
        if (!from || from->error)
            continue;
        t->topic_id = from->id;
        t->partitions.at =
            arena_array(&f->arena, (size_t)from->partitions, sizeof(*t->partitions.at));
        t->partitions.n = from->partitions;
        for (int32_t p = 0; p < from->partitions; p++) {
            codec_init(&kafka_metadata_response_partition_msg, &t->partitions.at[p]);
            t->partitions.at[p].partition_index = p;
            t->partitions.at[p].leader_id = from->leader;
            t->partitions.at[p].leader_epoch = from->leader_epoch;
        }
    }
    fake_answer(q, q->version, &r);
}

#endif
