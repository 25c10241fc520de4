/* regex.h -- regular expressions with the meaning that java.util.regex gives them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Operators bring patterns written for MirrorMaker 2. Our own front end parses Java's syntax whole, with
 * its flags and scopes, and writes an equal PCRE2 pattern in which nothing is left to PCRE2's defaults. What
 * cannot be translated is refused by name. Where a translation is proven for part of Unicode only (ASCII,
 * say), a name beyond that part is answered REGEX_UNSURE instead of perhaps wrongly.
 * One owner, one thread per regex.
 */
#ifndef MIRROR_REGEX_H
#define MIRROR_REGEX_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Longest pattern, in bytes: 10,000 names of 50 bytes joined by '|' fit. */
#define REGEX_PATTERN_MAX (512 * KiB)

struct regex;

struct regex_error {
    char text[200];   /* what, and where it stands: for people */
    size_t at;        /* index of the byte in the pattern */
    bool unsupported; /* Java takes the pattern, we do not */
};

enum regex_answer {
    REGEX_NO,
    REGEX_YES,
    REGEX_UNSURE, /* the name has characters for which this pattern's meaning is not certain */
    REGEX_SLOW,   /* gave up: the pattern backtracks too much on this name */
};

/* E_INVALID with *why filled when Java refuses the pattern or we cannot translate it. why may be NULL. */
enum err regex_compile(struct str pattern, struct regex **out, struct regex_error *why) WARN_UNUSED;

/* Does the whole name match? Bytes that are not UTF-8 count as U+FFFD, as in Java's strings. Bounded time. */
enum regex_answer regex_match_full(struct regex *re, struct str name);

/* Why this regex may answer REGEX_UNSURE; "" when it never does. */
const char *regex_limits(const struct regex *re);

/* As regex_compile, for regex_replace as well: what groups have matched is kept. */
enum err regex_compile_replacing(struct str pattern, struct regex **out, struct regex_error *why) WARN_UNUSED;
/* Whether a replacement (Java's: $1, ${name}, \\x for x) means something for this regex; false: *why says what not. */
bool regex_replacement_fits(const struct regex *re, struct str replacement, const char **why);
/* Java's replaceFirst, where the whole name matches: on REGEX_YES the new name is appended to out. The replacement fits. */
enum regex_answer regex_replace(struct regex *re, struct str name, struct str replacement, struct buf *out);
/* The new name, in a; null where the name does not match, empty where that is not certain. */
struct str regex_rename(struct regex *re, struct str name, struct str replacement, struct arena *a);

/* Frees and clears the pointer. NULL is fine. */
void regex_free(struct regex **re);

#endif
