/* policy.c -- MirrorMaker 2's two replication policies, and names by rules (topic_map.c) before them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/policy.h"

#include "base/alloc.h"
#include "base/must.h"
#include "mirror/topic_map.h"

#include <string.h>

struct policy {
    enum flow_policy kind;
    struct str separator, internal_separator; /* own memory */
    struct str source_alias, target_alias;
    bool heartbeats; /* heartbeats.replication.enabled */
    struct topic_map *map; /* NULL: no rules */
};

static struct str own(struct str s)
{
    return str_of(mem_copy_str(s.p ? s.p : "", s.n), s.n);
}

static void disown(struct str *s)
{
    mem_free((char *)(uintptr_t)s->p);
    *s = STR_NULL;
}

static void take_map(struct policy *p, const struct flow_config *c)
{
    struct arena a;
    struct str why;

    arena_init(&a, 1 * MiB);
    must_say(topic_map_new(&c->topic_map, &a, &p->map, &why) == E_OK, "a rule of heliostat.topic.map that was not checked");
    arena_fini(&a);
}

struct policy *policy_new(const struct flow_config *c)
{
    struct policy *p = mem_new(sizeof(*p));

    p->kind = (enum flow_policy)c->policy;
    p->separator = own(c->replication_policy_separator);
    p->internal_separator =
        own(c->replication_policy_internal_separator ? c->replication_policy_separator : STR("."));
    p->source_alias = own(c->source_alias);
    p->target_alias = own(c->target_alias);
    p->heartbeats = c->heartbeats_replication_enabled;
    if (c->topic_map.n)
        take_map(p, c);
    return p;
}

void policy_free(struct policy **pp)
{
    struct policy *p = *pp;

    if (!p)
        return;
    disown(&p->separator);
    disown(&p->internal_separator);
    disown(&p->source_alias);
    disown(&p->target_alias);
    topic_map_free(&p->map);
    mem_free(p);
    *pp = NULL;
}

static struct str join(struct arena *a, struct str x, struct str sep, struct str y)
{
    return arena_fmt(a, "%.*s%.*s%.*s", STR_ARG(x), STR_ARG(sep), STR_ARG(y));
}

/* The identity policy treats any name that ends so as the default policy would. */
static bool is_by_default(const struct policy *p, struct str topic)
{
    return p->kind == FLOW_POLICY_DEFAULT || str_ends(topic, STR("heartbeats"));
}

struct str policy_remote(const struct policy *p, struct str topic, struct arena *a)
{
    struct str name = policy_mapped(p, topic, a);

    return str_is_null(name) ? policy_prefix(p, topic, a) : name;
}

/* Heartbeats keep their names: hops are counted by them. */
struct str policy_mapped(const struct policy *p, struct str topic, struct arena *a)
{
    return p->map && !policy_is_heartbeats(p, topic) ? topic_map_apply(p->map, topic, a) : STR_NULL;
}

struct str policy_prefix(const struct policy *p, struct str topic, struct arena *a)
{
    return is_by_default(p, topic) ? join(a, p->source_alias, p->separator, topic) : topic;
}

/* The first piece when the name has at least two; trailing empty pieces do not count (Java's split). */
static struct str default_source(const struct policy *p, struct str topic)
{
    int64_t at = p->separator.n ? str_find(topic, p->separator, 0) : -1;
    struct str rest;

    if (at < 0)
        return STR_NULL;
    rest = str_part(topic, (size_t)at, topic.n);
    while (str_starts(rest, p->separator))
        rest = str_part(rest, p->separator.n, rest.n);
    return rest.n ? str_part(topic, 0, (size_t)at) : STR_NULL;
}

struct str policy_source(const struct policy *p, struct str topic)
{
    return is_by_default(p, topic) ? default_source(p, topic) : p->source_alias;
}

struct str policy_upstream(const struct policy *p, struct str topic)
{
    struct str source;

    if (!is_by_default(p, topic))
        return topic;
    source = default_source(p, topic);
    return str_is_null(source) ? STR_NULL : str_part(topic, source.n + p->separator.n, topic.n);
}

struct str policy_original(const struct policy *p, struct str topic)
{
    for (;;) {
        struct str up = policy_upstream(p, topic);

        if (str_is_null(up) || str_eq(up, topic))
            return topic;
        topic = up;
    }
}

struct str policy_heartbeats(const struct policy *p)
{
    (void)p;
    return STR("heartbeats");
}

struct str policy_offset_syncs(const struct policy *p, struct str other_alias, struct arena *a)
{
    struct str sep = p->internal_separator;

    return arena_fmt(a, "mm2-offset-syncs%.*s%.*s%.*sinternal", STR_ARG(sep), STR_ARG(other_alias),
                     STR_ARG(sep));
}

struct str policy_checkpoints(const struct policy *p, struct str source_alias, struct arena *a)
{
    struct str sep = p->internal_separator;

    return arena_fmt(a, "%.*s%.*scheckpoints%.*sinternal", STR_ARG(source_alias), STR_ARG(sep),
                     STR_ARG(sep));
}

bool policy_is_heartbeats(const struct policy *p, struct str topic)
{
    return str_eq(policy_original(p, topic), policy_heartbeats(p));
}

/* topic ends with the internal separator and what is given. */
static bool ends_internally(const struct policy *p, struct str topic, struct str end)
{
    if (!str_ends(topic, end))
        return false;
    return str_ends(str_part(topic, 0, topic.n - end.n), p->internal_separator);
}

static bool is_checkpoints(const struct policy *p, struct str topic)
{
    struct str internal = STR("internal");

    if (!ends_internally(p, topic, internal))
        return false;
    topic = str_part(topic, 0, topic.n - internal.n - p->internal_separator.n);
    return ends_internally(p, topic, STR("checkpoints"));
}

static bool is_book_spelled(struct str topic, struct str sep)
{
    static const char *const books[] = { "mm2-offset-syncs", "mm2-configs", "mm2-offsets", "mm2-status", "mm2-heliostat" };
    struct str rest = str_part(topic, 0, topic.n - MIN(topic.n, STR("internal").n));

    if (sep.n == 0 || !str_ends(topic, STR("internal")) || !str_ends(rest, sep))
        return false;
    for (size_t i = 0; i < COUNT(books); i++)
        if (str_starts(topic, str_c(books[i])) && str_starts(str_part(topic, strlen(books[i]), topic.n), sep))
            return true;
    rest = str_part(rest, 0, rest.n - sep.n);
    return str_ends(rest, STR("checkpoints")) && str_ends(str_part(rest, 0, rest.n - STR("checkpoints").n), sep);
}

/* Our state topic and Connect's keep their dots whatever the separator is; and what an earlier release, or the other value
 * of replication.policy.internal.topic.separator.enabled, has left behind is no data either. */
static bool is_book(const struct policy *p, struct str topic)
{
    return is_book_spelled(topic, STR(".")) || is_book_spelled(topic, p->separator);
}

/* Rules of 4.0 and later (KIP-1074), and the books of a mirror in the spelling that is not in use. */
bool policy_is_internal(const struct policy *p, struct str topic)
{
    return (str_starts(topic, STR("mm2")) && ends_internally(p, topic, STR("internal"))) || is_checkpoints(p, topic) ||
           is_book(p, topic) || str_starts(topic, STR("__")) || str_starts(topic, STR("."));
}

bool policy_is_own(const struct policy *p, struct str topic, struct str copy)
{
    return p->map && !policy_is_heartbeats(p, topic) && (policy_is_internal(p, copy) || policy_is_heartbeats(p, copy));
}

struct str policy_state_topic(const struct policy *p, struct str source_alias, struct arena *a)
{
    (void)p;
    return arena_fmt(a, "mm2-heliostat.%.*s.internal", STR_ARG(source_alias));
}

/* The topic has been at the target already, at any hop of its name. */
static bool is_cycle(const struct policy *p, struct str topic)
{
    for (;;) {
        struct str source = policy_source(p, topic);
        struct str up;

        if (str_is_null(source))
            return false;
        if (str_eq(source, p->target_alias))
            return true;
        up = policy_upstream(p, topic);
        if (str_is_null(up) || str_eq(up, topic))
            return false;
        topic = up;
    }
}

enum policy_verdict policy_mirrors(const struct policy *p, struct filter *f, struct str topic)
{
    bool accepted = filter_accepts(f, topic);

    if (policy_is_internal(p, topic))
        return POLICY_INTERNAL;
    if (is_cycle(p, topic))
        return POLICY_CYCLE;
    if (accepted)
        return POLICY_MIRRORED;
    return p->heartbeats && policy_is_heartbeats(p, topic) ? POLICY_HEARTBEATS : POLICY_FILTERED;
}

const char *policy_verdict_text(enum policy_verdict v)
{
    switch (v) {
    case POLICY_MIRRORED:
        return "accepted by topics";
    case POLICY_HEARTBEATS:
        return "a heartbeats topic (heartbeats.replication.enabled)";
    case POLICY_FILTERED:
        return "not accepted by topics, or excluded by topics.exclude";
    case POLICY_INTERNAL:
        return "an internal topic";
    case POLICY_CYCLE:
        return "it comes from the target, and would go round in a circle";
    }
    return "";
}
