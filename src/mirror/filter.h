/* filter.h -- accepts names by two lists of Java regular expressions, as MirrorMaker 2 does.
 * SPDX-License-Identifier: Apache-2.0
 *
 * mm2-spec 2.5: elements are joined with '|' and must match the whole name; an empty list matches nothing; the
 * exclude list is stronger. Immutable once made; one thread at a time (matching keeps scratch memory).
 */
#ifndef MIRROR_FILTER_H
#define MIRROR_FILTER_H

#include "base/arena.h"
#include "base/err.h"
#include "base/opt.h"

struct filter;

/* On failure (E_INVALID) *why, in a, names the list, the element and what is wrong with it. */
enum err filter_new(const struct str_list *include, const struct str_list *exclude, struct arena *a,
                    struct filter **out, struct str *why) WARN_UNUSED;
void filter_free(struct filter **f);

bool filter_accepts(struct filter *f, struct str name);
/* Whether the first list alone does. */
bool filter_includes(struct filter *f, struct str name);

/* For people: which element decided; *accepted as filter_accepts. In a. */
struct str filter_why(struct filter *f, struct str name, struct arena *a, bool *accepted);

#endif
