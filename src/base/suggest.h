/* suggest.h -- finds the known name that a mistyped one was probably meant to be.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Damerau-Levenshtein distance (insert, drop, change, swap of neighbours). Any thread.
 */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include "base/str.h"

#define SUGGEST_NAME_MAX 128 /* longer names get no suggestion */

/* Distance of a and b, or more than most when it is larger. ASCII letters of either case are equal. */
size_t suggest_distance(struct str a, struct str b, size_t most);

/* How often each letter occurs, in short. */
struct suggest_mark {
    uint64_t bits[2];
};
struct suggest_mark suggest_mark(struct str s);

struct suggest {
    struct str wrong;
    struct str best; /* null: none near enough */
    size_t distance;
    struct suggest_mark mark; /* of wrong */
};

/* Offer candidates one after the other; best is the first of the nearest. A candidate counts when at
 * most a quarter of its letters differ, or when the wrong name is its beginning up to a dot. */
void suggest_init(struct suggest *s, struct str wrong);
void suggest_offer(struct suggest *s, struct str candidate);
/* The same for who keeps the marks of candidates. */
void suggest_offer_marked(struct suggest *s, struct str candidate, const struct suggest_mark *m);

#endif
