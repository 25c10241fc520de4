/* str.h -- a counted run of bytes that somebody else owns.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A struct str points; it never owns. p == NULL is Kafka's null string, which is
 * not the empty string. Bytes need not be text and need no NUL. Any thread.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/util.h"

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){ .p = "" literal, .n = sizeof(literal) - 1 })
#define STR_NULL ((struct str){ .p = NULL, .n = 0 })
/* For printf's "%.*s". */
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct str str_of(const char *p, size_t n)
{
    return (struct str){ .p = p, .n = n };
}

static inline bool str_is_null(struct str s)
{
    return s.p == NULL;
}

/* From a NUL-terminated string; NULL gives the null string. */
struct str str_c(const char *cstr);

/* Equal bytes; null equals only null. */
bool str_eq(struct str a, struct str b);
bool str_eq_nocase(struct str a, struct str b); /* ASCII letters only */

/* Byte order; null sorts first, then as memcmp, shorter first. */
int str_cmp(struct str a, struct str b);

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

/* Index of the first occurrence at or after from, or -1. */
int64_t str_find(struct str s, struct str what, size_t from);
int64_t str_rfind_char(struct str s, char c);

/* The part [from, to), clamped to the string. */
struct str str_part(struct str s, size_t from, size_t to);

/* Without the blanks (space, tab, CR, LF, FF) at both ends. */
struct str str_trim(struct str s);

/* Cuts the next piece before sep off *rest into *piece; false when nothing is left.
 * An empty string gives one empty piece; start with *rest non-null. */
bool str_next(struct str *rest, char sep, struct str *piece);

/* Whole decimal number with optional sign; false on anything else or overflow. */
bool str_to_i64(struct str s, int64_t *out);

/* FNV-1a, for hash tables inside one process. */
uint64_t str_hash(struct str s);

#endif
