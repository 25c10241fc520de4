/* groups.h -- what becomes of a consumer group's position at the target: decided here, done by checkpoints.c.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pure; any thread.
 */
#ifndef MIRROR_GROUPS_H
#define MIRROR_GROUPS_H

#include "base/fault.h"
#include "mirror/offset_map.h"

/* What a cluster says a group is. */
enum group_kind {
    GROUP_CONSUMER, /* classic or of the consumer protocol (KIP-848), or offsets without members */
    GROUP_SHARE,    /* followed by its start offsets (checkpoints_share.c) */
    GROUP_STREAMS,
    GROUP_OTHER,    /* Connect workers and the like: no positions in topics */
};
enum group_kind groups_kind(struct str protocol_type, struct str group_type);
/* Why a group of that kind is not followed; for people. NULL: it is. */
const char *groups_kind_refusal(enum group_kind k);

/* Whether the target's group has no members. An empty state is of a broker that does not tell: it refuses by itself. */
bool groups_state_is_idle(struct str state);

enum group_how {
    GROUP_EXACT,  /* the very record, or the next that exists */
    GROUP_BEHIND, /* the group is ahead of the copy: its end */
    GROUP_RANGE,  /* the earliest of several: records may be read again, none is left out */
    GROUP_NONE,   /* no answer */
};
struct group_position {
    enum group_how how;
    int64_t offset; /* of the target; -1: none */
    int64_t last;   /* of a range: the greatest that it may be */
};
struct group_position groups_position(const struct offset_answer *a);

/* What is known of a position that was told before. */
struct group_mark {
    int64_t upstream, downstream;  /* of the last checkpoint; -1: none */
    int64_t synced_from, synced;   /* source offset and what the target's group was given for it; -1: nothing */
};
/* Offsets of both sides rise together: what was told before bounds a range from below. */
void groups_narrow(const struct group_mark *m, int64_t upstream, struct group_position *p);
/* A checkpoint is due. same_metadata: as in the last one. */
bool groups_must_tell(const struct group_mark *m, int64_t upstream, const struct group_position *p, bool same_metadata);
/* The target's group, which has no members and stands at `there` (-1: nowhere), is to be given this position. What
 * others gave it is never taken back; what we gave it follows the source, also backwards. */
bool groups_must_commit(const struct group_mark *m, int64_t upstream, const struct group_position *p, int64_t there);
/* The same two as MirrorMaker 2 decides them. */
bool groups_must_tell_mm2(const struct group_mark *m, int64_t upstream, const struct group_position *p);
bool groups_must_commit_mm2(const struct group_position *p, int64_t there);

/* What of a group was refused, and told: each cause once, until the part of a round that met it was made without it. */
enum group_part {
    GROUP_AT_SOURCE = 1,
    GROUP_AT_TARGET = 2, /* only in rounds that commit */
    GROUP_TOLD = 4,      /* only in rounds that write checkpoints */
};
#define GROUP_REFUSALS 4
struct group_refusals {
    struct group_refusal {
        char code[FAULT_CODE_MAX];
        enum group_part part;
        bool now; /* in this round */
    } at[GROUP_REFUSALS];
    int n;
};
void groups_refusals_begin(struct group_refusals *r);
/* True: it is to be told. */
bool groups_refused(struct group_refusals *r, enum group_part part, const char *code);
/* The round has made these parts. */
void groups_refusals_end(struct group_refusals *r, unsigned parts);
bool groups_is_refused(const struct group_refusals *r, const char *code);

#endif
