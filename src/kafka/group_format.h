/* group_format.h -- what members of our groups tell each other: who holds which slots, and who shall.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Big-endian, one version number in front; what a later version adds at the end is skipped by an earlier one.
 *   slots       int32 count, then per range: int16 first, int16 count
 *   metadata    int16 version, int32 generation in which its slots were given to it (-1: none), slots held, string instance
 *   assignment  int16 version, int32 members, string instance of the (first) holder, slots
 * Plain values; any thread.
 */
#ifndef KAFKA_GROUP_FORMAT_H
#define KAFKA_GROUP_FORMAT_H

#include "base/buf.h"
#include "base/err.h"

#define GROUP_SLOTS        1024
#define GROUP_INSTANCE_MAX 200

struct group_slots {
    uint64_t bits[GROUP_SLOTS / 64];
};

void group_slots_all(struct group_slots *s);
void group_slots_none(struct group_slots *s);
int32_t group_slots_count(const struct group_slots *s);

struct group_metadata {
    int32_t generation;
    struct group_slots held;
    struct str instance; /* points into the bytes */
};

struct group_assignment {
    int32_t members;
    struct str holder; /* points into the bytes */
    struct group_slots slots;
};

void group_format_metadata(struct buf *out, const struct group_metadata *m);
enum err group_parse_metadata(struct str bytes, struct group_metadata *out) WARN_UNUSED;

void group_format_assignment(struct buf *out, const struct group_assignment *a);
/* No bytes at all: no slots. */
enum err group_parse_assignment(struct str bytes, struct group_assignment *out) WARN_UNUSED;

/* Which of the members shall hold all slots: the one that was given slots last and still holds them; without any, the
 * member `otherwise`. */
int32_t group_choose(const struct group_metadata *members, int32_t n, int32_t otherwise);

#endif
