/* topics.h -- the pure plan of topics: what is created, what is grown, with which configs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Decides only; director_topics.c asks and applies, `check` prints the same plan. mm2-spec 4.2 to 4.5. Any thread.
 */
#ifndef MIRROR_TOPICS_H
#define MIRROR_TOPICS_H

#include "mirror/filter.h"

/* A config entry as DescribeConfigs gives it. */
struct topic_config {
    struct str name, value; /* value may be null */
    int8_t source;          /* 1 topic, 2/3 dynamic broker, 4 static broker, 5 default, … */
    bool read_only, sensitive;
};

/* A topic of the source that is mirrored. */
struct topic_want {
    struct str name, target_name;
    struct str route; /* where its records go: target_name, unless a transform renames it */
    int32_t partitions;
    bool unnameable; /* Kafka takes no topic of the copy's name */
    bool by_rule;    /* wanted for its name, though topics does not accept it */
};

/* A topic of the target. */
struct topic_have {
    struct str name;
    int32_t partitions;
    int32_t replicas; /* of its first partition; 0: not known */
};

enum topic_action_kind { TOPIC_CREATE, TOPIC_GROW };
struct topic_action {
    enum topic_action_kind kind;
    const struct topic_want *want;
    int32_t was; /* partitions before; 0 for CREATE */
};

/* Why Kafka takes no topic of this name, and what to do, in a; null: it does. */
#define TOPIC_NAME_MAX 249
bool topics_name_fits(struct str s); /* by its characters alone: a part of a name */
struct str topics_name_fault(struct str name, struct arena *a);

/* Actions in order of target name, into out[room >= wants]; gives their number. wants and haves in any order. */
size_t topics_plan(const struct topic_want *wants, size_t wants_n, const struct topic_have *haves,
                   size_t haves_n, struct topic_action *out);

/* Config entries that a new copy is created with (mm2-spec 4.5, column "creation"), into out[room >= n]; gives
 * their number. exclude: a filter whose include list is config.properties.exclude. */
size_t topics_creation_configs(const struct topic_config *entries, size_t n, struct filter *exclude,
                               bool defaults_from_source, const struct topic_config **out);

/* What DescribeConfigs gives for a source topic and for its copy, defaults included. */
struct topic_sides {
    const struct topic_config *source, *target;
    size_t source_n, target_n;
    int32_t replicas; /* of the copy; 0: not known */
};

/* One step that makes a copy's configs those of its source. */
struct topic_change {
    struct str name, value; /* value null: the copy's own setting is removed, its broker's default holds */
    struct str was;         /* what the copy has; null: not known */
};

/* What the periodic comparison changes at the copy (mm2-spec 4.5, column "periodic sync"), into out[room >=
 * source_n]; gives the number. Only what differs is in it. A config that the target does not know is left out.
 * never_lower: max.message.bytes of the copy stays where it is above the source's. exclude as above. */
size_t topics_changes(const struct topic_sides *b, struct filter *exclude, bool defaults_from_source,
                      bool never_lower, struct topic_change *out);

/* What of a copy's configs makes relaying dear, lets the target refuse batches, or loses them early: for `check`.
 * Texts are in a. */
struct topic_warning {
    const char *config;
    struct str text;
};
#define TOPIC_WARNINGS_MAX 10
size_t topics_warnings(const struct topic_sides *b, struct arena *a, struct topic_warning out[TOPIC_WARNINGS_MAX]);

/* From the message of an INVALID_CONFIG answer ("Unknown topic config name: x"): the name to leave out; else null. */
struct str topics_unknown_config(struct str message);

#endif
