/* topics.c -- decides which copies are created or grown, and with which configs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/topics.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define SOURCE_STATIC_BROKER 4
#define SOURCE_DEFAULT       5

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

        if (!wants[i].partitions)
            continue; /* the source does not describe it at the moment */
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

size_t topics_creation_configs(const struct topic_config *entries, size_t n, struct filter *exclude,
                               bool defaults_from_source, const struct topic_config **out)
{
    size_t made = 0;

    for (size_t i = 0; i < n; i++) {
        const struct topic_config *e = &entries[i];

        if ((e->source == SOURCE_DEFAULT && !defaults_from_source) ||
            e->source == SOURCE_STATIC_BROKER || e->read_only || e->sensitive ||
            str_is_null(e->value) || filter_accepts(exclude, e->name))
            continue;
        out[made++] = e;
    }
    return made;
}

struct both {
    const struct topic_config *source, *target;
    size_t source_n, target_n;
};

static struct str value_of(const struct topic_config *entries, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(entries[i].name, str_c(name)))
            return entries[i].value;
    return STR_NULL;
}

/* The target's number when it is below the source's; a source that has none counts as unlimited. */
static bool is_lower(const struct both *b, const char *source_name, const char *target_name,
                     int64_t *target)
{
    int64_t source;
    struct str text = value_of(b->target, b->target_n, target_name);

    if (str_is_null(text) || !str_to_i64(text, target))
        return false;
    text = value_of(b->source, b->source_n, source_name);
    if (str_is_null(text) || !str_to_i64(text, &source))
        source = INT64_MAX;
    return *target < source;
}

static const struct {
    const char *source, *target, *text;
} limits[] = {
    { "max.message.bytes", "max.message.bytes",
      "the source allows larger batches than %lld bytes; they have to be cut" },
    { "max.message.bytes", "segment.bytes",
      "the source allows batches that do not fit into a segment of %lld bytes" },
    { "message.timestamp.after.max.ms", "message.timestamp.after.max.ms",
      "records whose time is more than %lld ms ahead are refused" },
    { "message.timestamp.before.max.ms", "message.timestamp.before.max.ms",
      "records older than %lld ms are refused" },
};

size_t topics_warnings(const struct topic_config *source, size_t source_n,
                       const struct topic_config *target, size_t target_n, struct arena *a,
                       struct topic_warning out[TOPIC_WARNINGS_MAX])
{
    struct both b = { source, target, source_n, target_n };
    struct str codec = value_of(target, target_n, "compression.type");
    struct str time = value_of(target, target_n, "message.timestamp.type");
    size_t n = 0;

    if (!str_is_null(codec) && !str_eq(codec, STR("producer")))
        out[n++] = (struct topic_warning){
            "compression.type",
            arena_fmt(a, "the target recompresses every batch that is not `%.*s`", STR_ARG(codec))
        };
    if (str_eq(time, STR("LogAppendTime")))
        out[n++] = (struct topic_warning){ "message.timestamp.type",
                                           STR("records get the target's time of arrival") };
    for (size_t i = 0; i < COUNT(limits); i++) {
        int64_t limit;

        if (is_lower(&b, limits[i].source, limits[i].target, &limit))
            out[n++] = (struct topic_warning){ limits[i].target,
                                               arena_fmt(a, limits[i].text, (long long)limit) };
    }
    return n;
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
