/* transforms_int.h -- what transforms.c (reading) and transforms_apply.c (doing) share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_TRANSFORMS_INT_H
#define MIRROR_TRANSFORMS_INT_H

#include "mirror/regex.h"
#include "mirror/transforms.h"

enum transform_kind { TRANSFORM_REFUSED, TRANSFORM_ROUTE, TRANSFORM_INSERT_HEADER, TRANSFORM_DROP_HEADERS, TRANSFORM_FILTER };
enum predicate_kind { PREDICATE_TOPIC, PREDICATE_HEADER, PREDICATE_TOMBSTONE };

struct predicate {
    struct str alias;
    enum predicate_kind kind;
    struct regex *topic;
    struct str header;
};

struct transform {
    struct str alias;
    enum transform_kind kind;
    const struct predicate *when; /* NULL: always */
    bool negate;
    struct regex *topic;      /* ROUTE */
    struct str replacement;
    struct record_header header; /* INSERT_HEADER */
    struct str_list headers;     /* DROP_HEADERS */
};

struct transforms {
    struct arena memory;
    struct predicate *predicates;
    size_t predicates_n;
    struct transform *at;
    size_t n;
};

#endif
