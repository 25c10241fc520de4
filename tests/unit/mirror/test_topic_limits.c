/* test_topic_limits.c -- a topic's limits out of its configs, of old and new brokers.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "mirror/topic_limits.h"

#define CONFIGS_MAX 8

static struct topic_limits take(const char *const (*pairs)[2])
{
    static struct kafka_describe_configs_response_config configs[CONFIGS_MAX];
    struct kafka_describe_configs_response_result r = { .configs.at = configs };
    struct topic_limits l;

    for (; pairs[r.configs.n][0]; r.configs.n++) {
        configs[r.configs.n].name = str_c(pairs[r.configs.n][0]);
        configs[r.configs.n].value = pairs[r.configs.n][1] ? str_c(pairs[r.configs.n][1]) : STR_NULL;
    }
    topic_limits_init(&l);
    topic_limits_take(&l, &r);
    return l;
}

TEST(of_a_new_broker)
{
    static const char *const pairs[][2] = {
        { "compression.type", "zstd" },          { "compression.zstd.level", "7" },
        { "compression.gzip.level", "9" },       { "max.message.bytes", "1048588" },
        { "segment.bytes", "500000" },           { "message.timestamp.after.max.ms", "5000" },
        { "message.timestamp.type", "LogAppendTime" }, { NULL },
    };
    struct topic_limits l = take(pairs);

    CHECK(l.known && l.append_time);
    CHECK_EQ(l.batch_bytes, 500000);
    CHECK_EQ(l.codec, CODEC_ZSTD);
    CHECK_EQ(l.level, 7);
    CHECK_EQ(l.after_ms, 5000);
    CHECK_EQ(l.before_ms, INT64_MAX);
}

TEST(of_an_old_broker)
{
    static const char *const pairs[][2] = {
        { "compression.type", "producer" },
        { "message.timestamp.difference.max.ms", "60000" },
        { "max.message.bytes", "no number" },
        { "segment.bytes", NULL },
        { NULL },
    };
    struct topic_limits l = take(pairs);

    CHECK(l.known && !l.append_time);
    CHECK_EQ(l.batch_bytes, INT32_MAX);
    CHECK_EQ(l.codec, -1);
    CHECK_EQ(l.before_ms, 60000);
    CHECK_EQ(l.after_ms, 60000);
}

TEST(uncompressed_and_refused)
{
    static const char *const pairs[][2] = { { "compression.type", "uncompressed" }, { NULL } };
    const struct kafka_describe_configs_response_result refused = { .error_code = 29 };
    struct topic_limits l = take(pairs);

    CHECK_EQ(l.codec, CODEC_NONE);
    CHECK_EQ(l.level, COMPRESS_LEVEL_DEFAULT);
    topic_limits_init(&l);
    topic_limits_take(&l, &refused);
    CHECK(!l.known);
    CHECK_EQ(l.kerr, 29);
}

/* Java's usual levels are ours. */
TEST(usual_levels)
{
    static const char *const gzip[][2] = { { "compression.type", "gzip" }, { "compression.gzip.level", "-1" }, { NULL } };
    static const char *const lz4[][2] = { { "compression.type", "lz4" }, { "compression.lz4.level", "9" }, { NULL } };
    static const char *const best[][2] = { { "compression.type", "gzip" }, { "compression.gzip.level", "9" }, { NULL } };

    CHECK_EQ(take(gzip).level, COMPRESS_LEVEL_DEFAULT);
    CHECK_EQ(take(lz4).level, COMPRESS_LEVEL_DEFAULT);
    CHECK_EQ(take(best).level, 9);
}

TESTS(RUN(usual_levels), RUN(of_a_new_broker), RUN(of_an_old_broker), RUN(uncompressed_and_refused))
