/* topic_limits.c -- reads a topic's limits out of its configs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/topic_limits.h"

#define HOUR_MS (3600 * INT64_C(1000))

void topic_limits_init(struct topic_limits *l)
{
    *l = (struct topic_limits){ .batch_bytes = INT32_MAX, .codec = -1, .level = COMPRESS_LEVEL_DEFAULT,
                                .before_ms = INT64_MAX, .after_ms = HOUR_MS };
}

static int codec_of(struct str s)
{
    static const char *names[] = { "uncompressed", "gzip", "snappy", "lz4", "zstd" };

    for (int i = 0; i < (int)COUNT(names); i++)
        if (str_eq(s, str_c(names[i])))
            return i;
    return -1;
}

static void take_number(struct str s, int64_t *to)
{
    int64_t v;

    if (str_to_i64(s, &v))
        *to = v;
}

/* Java's "usual" is -1 for gzip and 9 for lz4 (which is its fast one). */
static int level_of(int codec, int64_t level)
{
    switch (codec) {
    case CODEC_GZIP:
        return level >= 1 && level <= 9 ? (int)level : COMPRESS_LEVEL_DEFAULT;
    case CODEC_LZ4:
        return level >= 1 && level <= 17 && level != 9 ? (int)level : COMPRESS_LEVEL_DEFAULT;
    case CODEC_ZSTD:
        return level != 0 && level >= -100 && level <= 22 ? (int)level : COMPRESS_LEVEL_DEFAULT;
    default:
        return COMPRESS_LEVEL_DEFAULT;
    }
}

void topic_limits_take(struct topic_limits *l, const struct kafka_describe_configs_response_result *r)
{
    static const char *level_keys[] = { "", "compression.gzip.level", "", "compression.lz4.level",
                                        "compression.zstd.level" };
    int64_t segment = INT32_MAX, difference = -1, levels[COUNT(level_keys)] = { 0 };
    bool apart = false; /* one limit before now and one after */

    l->kerr = r->error_code;
    l->known = !r->error_code;
    for (int32_t i = 0; i < r->configs.n; i++) {
        struct str key = r->configs.at[i].name, value = r->configs.at[i].value;

        if (str_eq(key, STR("max.message.bytes")))
            take_number(value, &l->batch_bytes);
        else if (str_eq(key, STR("segment.bytes")))
            take_number(value, &segment);
        else if (str_eq(key, STR("compression.type")))
            l->codec = codec_of(value);
        else if (str_eq(key, STR("message.timestamp.type")))
            l->append_time = str_eq(value, STR("LogAppendTime"));
        else if (str_eq(key, STR("message.timestamp.before.max.ms")))
            take_number(value, &l->before_ms);
        else if (str_eq(key, STR("message.timestamp.after.max.ms")))
            take_number(value, &l->after_ms), apart = true;
        else if (str_eq(key, STR("message.timestamp.difference.max.ms")))
            take_number(value, &difference);
        for (size_t k = 0; k < COUNT(level_keys); k++)
            if (str_eq(key, str_c(level_keys[k])))
                take_number(value, &levels[k]);
    }
    l->batch_bytes = MIN(l->batch_bytes, segment);
    if (l->codec >= 0)
        l->level = level_of(l->codec, levels[l->codec]);
    if (!apart && difference >= 0) /* before 3.6 one for both */
        l->before_ms = l->after_ms = difference;
}
