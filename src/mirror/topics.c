/* topics.c -- decides which copies are created or grown, and with which configs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/topics.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE_TOPIC         1
#define SOURCE_STATIC_BROKER 4
#define SOURCE_DEFAULT       5

bool topics_name_fits(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

struct str topics_name_fault(struct str name, struct arena *a)
{
    if (!topics_name_fits(name))
        return arena_fmt(a,
                         "the copy would be named \"%.*s\", and Kafka takes only letters, digits, '.', '_' and "
                         "'-' in names of topics: mend replication.policy.separator, the alias of the source or heliostat.topic.map",
                         STR_ARG(str_part(name, 0, TOPIC_NAME_MAX / 2)));
    if (name.n > TOPIC_NAME_MAX)
        return arena_fmt(a,
                         "the copy's name would have %zu characters and Kafka takes %d at most (\"%.*s...\"): "
                         "take a shorter alias for the source, or leave the topic out with topics.exclude",
                         name.n, TOPIC_NAME_MAX, STR_ARG(str_part(name, 0, 60)));
    if (name.n == 0 || str_eq(name, STR(".")) || str_eq(name, STR("..")))
        return arena_fmt(a, "the copy would be named \"%.*s\", which Kafka does not take as a topic's name: "
                         "leave the topic out with topics.exclude", STR_ARG(name));
    return STR_NULL;
}

static int by_have(const void *a, const void *b)
{
    return str_cmp(((const struct topic_have *)a)->name, ((const struct topic_have *)b)->name);
}

static int by_action(const void *a, const void *b)
{
    return str_cmp(((const struct topic_action *)a)->want->target_name,
                   ((const struct topic_action *)b)->want->target_name);
}

size_t topics_plan(const struct topic_want *wants, size_t wants_n, const struct topic_have *haves,
                   size_t haves_n, struct topic_action *out)
{
    struct topic_have *sorted = mem_array(haves_n, sizeof(*sorted));
    size_t n = 0;

    if (haves_n)
        memcpy(sorted, haves, haves_n * sizeof(*sorted));
    qsort(sorted, haves_n, sizeof(*sorted), by_have);
    for (size_t i = 0; i < wants_n; i++) {
        struct topic_have key = { .name = wants[i].target_name };
        const struct topic_have *have = bsearch(&key, sorted, haves_n, sizeof(key), by_have);

        if (!wants[i].partitions || wants[i].unnameable)
            continue; /* the source does not describe it at the moment, or it can have no copy */
        if (!have)
            out[n++] = (struct topic_action){ TOPIC_CREATE, &wants[i], 0 };
        else if (have->partitions < wants[i].partitions)
            out[n++] = (struct topic_action){ TOPIC_GROW, &wants[i], have->partitions };
    }
    mem_free(sorted);
    if (n)
        qsort(out, n, sizeof(*out), by_action);
    return n;
}

static bool is_left_alone(const struct topic_config *e, struct filter *exclude)
{
    return e->source == SOURCE_STATIC_BROKER || e->read_only || e->sensitive || filter_accepts(exclude, e->name);
}

size_t topics_creation_configs(const struct topic_config *entries, size_t n, struct filter *exclude,
                               bool defaults_from_source, const struct topic_config **out)
{
    size_t made = 0;

    for (size_t i = 0; i < n; i++) {
        const struct topic_config *e = &entries[i];

        if ((e->source == SOURCE_DEFAULT && !defaults_from_source) || str_is_null(e->value) ||
            is_left_alone(e, exclude))
            continue;
        out[made++] = e;
    }
    return made;
}

static const struct topic_config *find(const struct topic_config *entries, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(entries[i].name, name))
            return &entries[i];
    return NULL;
}

static struct str value_of(const struct topic_config *entries, size_t n, const char *name)
{
    const struct topic_config *e = find(entries, n, str_c(name));

    return e ? e->value : STR_NULL;
}

/* A limit; what is not set, or negative, limits nothing. */
static int64_t limit_of(const struct topic_config *entries, size_t n, const char *name)
{
    struct str text = value_of(entries, n, name);
    int64_t limit;

    return str_is_null(text) || !str_to_i64(text, &limit) || limit < 0 ? INT64_MAX : limit;
}

static bool is_lower(const struct topic_config *was, struct str now)
{
    int64_t a, b;

    return str_eq(was->name, STR("max.message.bytes")) && str_to_i64(was->value, &a) &&
           (str_is_null(now) || (str_to_i64(now, &b) && b < a));
}

size_t topics_changes(const struct topic_sides *b, struct filter *exclude, bool defaults_from_source,
                      bool never_lower, struct topic_change *out)
{
    size_t made = 0;

    for (size_t i = 0; i < b->source_n; i++) {
        const struct topic_config *e = &b->source[i];
        const struct topic_config *has = find(b->target, b->target_n, e->name);
        bool remove = e->source == SOURCE_DEFAULT && !defaults_from_source;
        struct str value = remove ? STR_NULL : e->value;

        if (!has || (!remove && str_is_null(value)) || is_left_alone(e, exclude))
            continue;
        if (remove ? has->source != SOURCE_TOPIC
                   : has->source == SOURCE_TOPIC && str_eq(has->value, value))
            continue;
        if (never_lower && is_lower(has, value))
            continue;
        out[made++] = (struct topic_change){ .name = e->name, .value = value, .was = has->value };
    }
    return made;
}

static const struct {
    const char *source, *target, *text; /* the limit at the target, and at the source */
} limits[] = {
    { "max.message.bytes", "max.message.bytes",
      "the copy takes batches of %lld bytes, the source %s; a larger one would halt its partition: raise "
      "max.message.bytes at the target" },
    { "max.message.bytes", "segment.bytes",
      "a segment of the copy holds %lld bytes, a batch of the source may have %s; a larger one would halt its "
      "partition: raise segment.bytes at the target" },
    { "message.timestamp.after.max.ms", "message.timestamp.after.max.ms",
      "the copy refuses records whose time is more than %lld ms ahead, the source %s; one would halt its partition: "
      "raise message.timestamp.after.max.ms at the target" },
    { "message.timestamp.before.max.ms", "message.timestamp.before.max.ms",
      "the copy refuses records older than %lld ms, the source %s; one would halt its partition: raise "
      "message.timestamp.before.max.ms at the target" },
    { "message.timestamp.difference.max.ms", "message.timestamp.difference.max.ms",
      "the copy refuses records whose time differs from its own by more than %lld ms, the source %s; one would halt "
      "its partition: raise message.timestamp.difference.max.ms at the target" },
    { "retention.ms", "retention.ms",
      "the copy keeps records for %lld ms, the source %s: older ones are deleted soon after they were copied" },
    { "retention.bytes", "retention.bytes",
      "a partition of the copy keeps %lld bytes, the source %s: the oldest records go earlier than at the source" },
};

/* Deletion by age and size counts where the copy is not only compacted. */
static bool counts_for(const struct topic_sides *b, size_t limit)
{
    struct str policy = value_of(b->target, b->target_n, "cleanup.policy");

    return !str_starts(str_c(limits[limit].target), STR("retention.")) || str_is_null(policy) ||
           str_find(policy, STR("delete"), 0) >= 0;
}

static size_t warn_limits(const struct topic_sides *b, struct arena *a, struct topic_warning *out)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT(limits); i++) {
        int64_t target = limit_of(b->target, b->target_n, limits[i].target);
        int64_t source = limit_of(b->source, b->source_n, limits[i].source);
        char text[24] = "without limit";

        if (target >= source || !counts_for(b, i))
            continue;
        if (source < INT64_MAX)
            snprintf(text, sizeof(text), "%lld", (long long)source);
        out[n++] = (struct topic_warning){ limits[i].target,
                                           arena_fmt(a, limits[i].text, (long long)target, text) };
    }
    return n;
}

size_t topics_warnings(const struct topic_sides *b, struct arena *a, struct topic_warning out[TOPIC_WARNINGS_MAX])
{
    struct str codec = value_of(b->target, b->target_n, "compression.type");
    struct str time = value_of(b->target, b->target_n, "message.timestamp.type");
    int64_t in_sync = limit_of(b->target, b->target_n, "min.insync.replicas");
    int32_t replicas = b->replicas;
    size_t n = 0;

    if (replicas > 0 && in_sync != INT64_MAX && in_sync > replicas)
        out[n++] = (struct topic_warning){
            "min.insync.replicas",
            arena_fmt(a, "min.insync.replicas of the copy is %lld and it has %d replica%s: nothing can be written; "
                      "lower it, or give the copy more replicas", (long long)in_sync, replicas,
                      replicas == 1 ? "" : "s")
        };
    if (!str_is_null(codec) && !str_eq(codec, STR("producer")))
        out[n++] = (struct topic_warning){
            "compression.type",
            arena_fmt(a, "the target recompresses every batch that is not `%.*s`", STR_ARG(codec))
        };
    if (str_eq(time, STR("LogAppendTime")))
        out[n++] = (struct topic_warning){ "message.timestamp.type",
                                           STR("records get the target's time of arrival") };
    return n + warn_limits(b, a, out + n);
}

struct str topics_unknown_config(struct str message)
{
    struct str mark = STR("Unknown topic config name: ");
    int64_t at = message.p ? str_find(message, mark, 0) : -1;
    size_t from, to;

    if (at < 0)
        return STR_NULL;
    from = to = (size_t)at + mark.n;
    while (to < message.n && message.p[to] != ' ' && message.p[to] != ',' && message.p[to] != '\n')
        to++;
    return to > from ? str_part(message, from, to) : STR_NULL;
}
