/* checkpoints_int.h -- the inside of the checkpoints, shared by checkpoints*.c; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_CHECKPOINTS_INT_H
#define MIRROR_CHECKPOINTS_INT_H

#include "kafka/topic_reader.h"
#include "kafka/topic_writer.h"
#include "mirror/checkpoints.h"
#include "mirror/formats.h"
#include "mirror/groups.h"
#include "mirror/translation.h"

#include "base/map.h"

#define CHECKPOINTS_CALLS     32      /* under way at one time */
#define CHECKPOINTS_GROUPS    200000  /* followed at most */
#define CHECKPOINTS_MARKS     4000000 /* positions known at most: about 200 bytes each */
#define CHECKPOINTS_ARENA     (2 * (size_t)GiB)

enum checkpoints_state {
    CHECKPOINTS_LOADING,     /* what was told before */
    CHECKPOINTS_RESTING,     /* until the next round */
    CHECKPOINTS_LISTING,     /* the source's groups */
    CHECKPOINTS_FETCHING,    /* their positions */
    CHECKPOINTS_TRANSLATING, /* the workers are asked */
    CHECKPOINTS_LOOKING,     /* which groups of the target have members */
    CHECKPOINTS_READING,     /* positions of those that have none */
    CHECKPOINTS_COMMITTING,
    CHECKPOINTS_TELLING,     /* checkpoints */
};

/* A position that is known from before; found by the key of its checkpoint record. */
struct known {
    UT_hash_handle hh;
    struct group_mark mark;
    uint64_t metadata_hash; /* of the last checkpoint */
    size_t key_n;
    char key[];
};

/* One position in this round; in the round's arena. */
struct place {
    struct followed *group;
    struct str topic, target_topic, metadata;
    int32_t partition;
    int64_t upstream;
    struct flow_port *port;
    struct group_position to;
    struct known *known;
    int64_t there; /* of the target's group; -1: none */
    bool unreadable; /* where the target's group stands is not known */
    bool commit;
};

struct followed_counts {
    int32_t places, exact, behind, range, none, ahead, committed;
};

/* A group that is followed, or that is refused. */
struct followed {
    UT_hash_handle hh;
    struct str name; /* own memory */
    enum group_kind kind;
    bool seen;       /* in this listing */
    bool wanted;     /* its positions are asked for in this round */
    bool active;     /* it has members at the target */
    struct fault fault;             /* the first of the round */
    struct group_refusals refusals; /* all of them */
    bool failed, faulty;            /* in this round: all of it; at least a part */
    bool shown_active;   /* of the last round that looked */
    struct place *places;   /* of this round, sorted by (target_topic, partition) */
    size_t places_n;
    struct followed_counts counts;      /* of this round */
    struct followed_counts last;        /* of the last whole round */
};

/* One call under way. */
struct checkpoints_slot {
    struct checkpoints *owner;
    struct call call;
    struct arena arena;
    struct followed *group; /* NULL: a listing */
    int32_t broker;
    int tries;
    union {
        struct kafka_list_groups_request list;
        struct kafka_offset_fetch_request fetch;
        struct kafka_offset_commit_request commit;
        struct kafka_describe_share_group_offsets_request describe;
        struct kafka_alter_share_group_offsets_request alter;
    } request;
};

struct checkpoints {
    struct loop *loop;
    const struct flow_config *config;
    struct cluster *source, *target;
    struct checkpoints_ops ops;
    enum checkpoints_state state;
    struct task step;
    struct timer rest;
    struct fault fault; /* of a whole round */
    struct arena names;
    struct filter *filter;
    struct str topic;
    struct str syncs_topic; /* with heliostat.offset.translation = mm2 */
    struct sync_stored *stores; /* likewise, while they are read */
    struct topic_reader *reader;
    struct topic_writer *writer; /* NULL: checkpoints are not told */
    struct known *known;

    struct followed *groups;
    int64_t next_list_ms, next_tell_ms, next_sync_ms; /* loop time; -1: never */
    bool must_tell, must_sync;                        /* in this round */

    /* The step under way. */
    struct arena arena; /* of the round */
    struct checkpoints_slot slots[CHECKPOINTS_CALLS];
    int32_t busy;
    struct followed **due; /* groups; in the arena */
    int32_t *brokers;       /* listings; likewise */
    size_t at, due_n;
    bool listing_whole; /* of the source */
    bool looking_whole; /* of the target */
    bool away; /* a cluster cannot be reached: the round ends */
    struct list_node translations;
    int32_t translations_n;

    /* Shown. */
    uint64_t told, commits, rounds;
    int64_t last_round_ms, last_sync_ms, round_began_ms, round_ms;
    int64_t followed_shown;
};

/* checkpoints.c */
void checkpoints_wake(struct checkpoints *c);
struct followed *checkpoints_get_group(struct checkpoints *c, struct str name);
struct followed *checkpoints_find_group(struct checkpoints *c, struct str name);
struct known *checkpoints_known(struct checkpoints *c, struct str key, bool make);

/* checkpoints_calls.c: each starts what it can, and is true once all of it is over. */
void checkpoints_calls_init(struct checkpoints *c);
void checkpoints_calls_stop(struct checkpoints *c);
void checkpoints_list_begin(struct checkpoints *c, struct cluster *cl);
bool checkpoints_list(struct checkpoints *c, struct cluster *cl);
void checkpoints_groups_begin(struct checkpoints *c, bool (*wanted)(const struct followed *g));
bool checkpoints_fetch(struct checkpoints *c, struct cluster *cl);
bool checkpoints_commit(struct checkpoints *c);

/* checkpoints_round.c: asks for the translation of every place, and takes the answers once no list is under way; decides
 * what is committed; tells what changed of a group; says once what is refused of it, until a whole round has gone well. */
void checkpoints_translate_begin(struct checkpoints *c);
void checkpoints_translated(struct checkpoints *c);
void checkpoints_decide(struct checkpoints *c);
void checkpoints_tell_group(struct checkpoints *c, struct followed *g);
void checkpoints_refuse(struct checkpoints *c, struct followed *g, const char *code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void checkpoints_refusals_end(struct checkpoints *c, struct followed *g);

/* checkpoints_mm2.c: a translation of every place; over once the reader is gone. */
void checkpoints_mm2_begin(struct checkpoints *c);
void checkpoints_mm2_free(struct checkpoints *c);

/* checkpoints_share.c: which groups are asked about in this round, by what the source can tell; refuses share groups that
 * the target cannot be given; requests and answers of theirs. */
void checkpoints_share_source(struct checkpoints *c);
void checkpoints_share_target(struct checkpoints *c);
void checkpoints_fill_describe(struct call *call);
void checkpoints_fill_alter(struct call *call);
int32_t checkpoints_describe_error(const struct kafka_describe_share_group_offsets_response *r);
void checkpoints_take_described(struct checkpoints_slot *s, const struct kafka_describe_share_group_offsets_response *r);
void checkpoints_take_altered(struct checkpoints_slot *s, const struct kafka_alter_share_group_offsets_response *r);

/* checkpoints_answers.c: what came back is entered. */
void checkpoints_take_listed(struct checkpoints *c, const struct kafka_list_groups_response_group *g, bool source);
/* The positions of a group: at the source, or at the target. */
struct offset_seen {
    struct str topic, metadata;
    int32_t partition, kerr;
    int64_t offset;
};
/* By the state of the round. */
void checkpoints_take(struct checkpoints_slot *s, const struct offset_seen *seen);
void checkpoints_take_position(struct checkpoints *c, struct followed *g, const struct offset_seen *s);
void checkpoints_take_there(struct followed *g, const struct offset_seen *s);
void checkpoints_sort(struct followed *g);
void checkpoints_take_committed(struct checkpoints *c, struct followed *g, int api, struct str topic,
                                int32_t partition, int32_t kerr);

#endif
