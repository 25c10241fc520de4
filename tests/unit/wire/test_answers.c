/* test_answers.c -- answers of real brokers: decoded to the last byte, and encoded back to the same bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The files are made by tests/schema/capture.py: tests/data/answers/RELEASE/API-vN.bin.
 */
#include "unit/test.h"

#include "wire/frame.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define ANSWERS TEST_DATA "/answers"

struct answer {
    const struct api *api;
    int version;
    char bytes[64 * KiB];
    size_t size;
    struct reader body; /* behind the header */
    struct arena arena;
    void *msg;
};

static struct answer answer;

static const struct api *api_named(const char *name, size_t n)
{
    for (size_t i = 0; i < api_count; i++)
        if (strlen(api_all[i]->name) == n && !memcmp(api_all[i]->name, name, n))
            return api_all[i];
    fail_msg("no API for %s", name);
    return NULL;
}

/* Reads and decodes RELEASE/API-vN.bin. */
static void answer_open(const char *release, const char *name)
{
    const char *dash = strchr(name, '-');
    char path[512];
    int32_t id;
    FILE *f;

    CHECK(dash && dash[1] == 'v');
    answer.api = api_named(name, (size_t)(dash - name));
    answer.version = (int)strtol(dash + 2, NULL, 10);
    snprintf(path, sizeof(path), ANSWERS "/%s/%s", release, name);
    f = fopen(path, "rb");
    CHECK(f != NULL);
    answer.size = fread(answer.bytes, 1, sizeof(answer.bytes), f);
    fclose(f);
    answer.body = reader_of(answer.bytes, answer.size);
    CHECK_EQ(frame_response_header(&answer.body, answer.api, answer.version, &id), E_OK);
    arena_init(&answer.arena, 1 * MiB);
    answer.msg = arena_alloc(&answer.arena, answer.api->response->size);
    if (codec_decode(answer.api->response, answer.version, &answer.body, &answer.arena,
                     answer.msg) ||
        reader_left(&answer.body))
        fail_msg("%s of %s does not decode", name, release);
}

static void answer_close(void)
{
    arena_fini(&answer.arena);
}

static void check_same_bytes(const char *release, const char *name)
{
    struct buf b;
    struct encoding to = { .head = &b };

    answer_open(release, name);
    buf_init(&b, 1 * MiB);
    frame_response_write(&b, answer.api, answer.version, (int32_t)load_u32(answer.bytes));
    CHECK_EQ(codec_encode(answer.api->response, answer.version, answer.msg, &to), E_OK);
    if (b.n != answer.size || memcmp(b.p, answer.bytes, b.n) != 0)
        fail_msg("%s of %s comes out otherwise", name, release);
    buf_fini(&b);
    answer_close();
}

static int each_answer(const char *release, void (*check)(const char *release, const char *name))
{
    struct dirent *e;
    char path[512];
    int n = 0;
    DIR *d;

    snprintf(path, sizeof(path), ANSWERS "/%s", release);
    d = opendir(path);
    CHECK(d != NULL);
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        check(release, e->d_name);
        n++;
    }
    closedir(d);
    return n;
}

TEST(all_answers)
{
    CHECK_EQ(each_answer("2.8.2", check_same_bytes), 21);
    CHECK_EQ(each_answer("3.9.1", check_same_bytes), 22);
    CHECK_EQ(each_answer("4.4.0", check_same_bytes), 22);
}

TEST(fetch)
{
    static const char *const files[][2] = {
        { "2.8.2", "Fetch-v12.bin" },
        { "3.9.1", "Fetch-v17.bin" },
        { "4.4.0", "Fetch-v18.bin" },
    };

    for (size_t i = 0; i < COUNT(files); i++) {
        const struct kafka_fetch_response *f;
        const struct kafka_fetch_response_partition *p;

        answer_open(files[i][0], files[i][1]);
        f = answer.msg;
        CHECK_EQ(f->responses.n, 1);
        CHECK_EQ(str_is_null(f->responses.at[0].topic) || f->responses.at[0].topic.n == 0, i > 0);
        CHECK_EQ(f->responses.at[0].partitions.n, 2);
        for (p = f->responses.at[0].partitions.at; p < f->responses.at[0].partitions.at + 2; p++) {
            CHECK_EQ(p->error_code, p->partition_index ? 1 : 0);
            CHECK_EQ(p->high_watermark, p->partition_index ? -1 : 3);
            CHECK_EQ(p->records.body.n > 60, p->partition_index == 0);
            CHECK_EQ(p->preferred_read_replica, -1);
        }
        answer_close();
    }
}

TEST(metadata)
{
    const struct kafka_metadata_response *m;
    struct uuid none = { { 0 } };

    answer_open("4.4.0", "Metadata-v13.bin");
    m = answer.msg;
    CHECK_EQ(m->brokers.n, 1);
    CHECK_STR(m->brokers.at[0].host, "127.0.0.1");
    CHECK(str_is_null(m->brokers.at[0].rack));
    CHECK_EQ(m->cluster_id.n, 22);
    CHECK_EQ(m->topics.n, 1);
    CHECK_STR(m->topics.at[0].name, "captured");
    CHECK(memcmp(&m->topics.at[0].topic_id, &none, sizeof(none)) != 0);
    CHECK_EQ(m->topics.at[0].partitions.n, 2);
    CHECK_EQ(m->topics.at[0].partitions.at[0].isr_nodes.n, 1);
    CHECK_EQ(m->topics.at[0].partitions.at[0].isr_nodes.at[0], m->brokers.at[0].node_id);
    answer_close();
}

TEST(api_versions)
{
    const struct kafka_api_versions_response *v;

    answer_open("4.4.0", "ApiVersions-v5.bin");
    v = answer.msg;
    CHECK(v->api_keys.n > 60);
    CHECK(v->supported_features.n > 0 && v->finalized_features.n > 0);
    CHECK(v->finalized_features_epoch > 0);
    answer_close();
    answer_open("2.8.2", "ApiVersions-v3.bin");
    v = answer.msg;
    CHECK_EQ(v->supported_features.n, 0);
    answer_close();
}

TEST(offset_fetch)
{
    const struct kafka_offset_fetch_response *o;

    answer_open("2.8.2", "OffsetFetch-v7.bin");
    o = answer.msg;
    CHECK_EQ(o->groups.n, 0);
    CHECK_EQ(o->topics.at[0].partitions.at[0].committed_offset, 2);
    answer_close();
    answer_open("4.4.0", "OffsetFetch-v10.bin");
    o = answer.msg;
    CHECK_EQ(o->topics.n, 0);
    CHECK_EQ(o->groups.at[0].topics.at[0].partitions.at[0].committed_offset, 2);
    CHECK_STR(o->groups.at[0].topics.at[0].partitions.at[0].metadata, "m");
    answer_close();
}

TESTS(RUN(all_answers), RUN(fetch), RUN(metadata), RUN(api_versions), RUN(offset_fetch))
