/* topic_map.h -- names of copies by rules: heliostat.topic.map.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A rule is "PATTERN -> NAME": a Java regular expression for the whole name of a source topic, and what its copy is called
 * ($1, ${group}). The first rule that matches counts. Immutable once made; one thread at a time, as its expressions.
 */
#ifndef MIRROR_TOPIC_MAP_H
#define MIRROR_TOPIC_MAP_H

#include "base/arena.h"
#include "base/opt.h"

struct topic_map;

/* On failure (E_INVALID) *why, in a, names the rule and what is wrong with it. */
enum err topic_map_new(const struct str_list *rules, struct arena *a, struct topic_map **out, struct str *why) WARN_UNUSED;
void topic_map_free(struct topic_map **m);

/* The copy's name, in a; null: no rule matches; empty: a rule cannot be decided for this name. */
struct str topic_map_apply(struct topic_map *m, struct str topic, struct arena *a);

#endif
