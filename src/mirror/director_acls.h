/* director_acls.h -- the part of a flow's control side that copies access rules.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part of struct director (mirror/director_internal.h); what its states mean is told in director_acls.c. Thread: control.
 */
#ifndef MIRROR_DIRECTOR_ACLS_H
#define MIRROR_DIRECTOR_ACLS_H

#include "base/fault.h"
#include "kafka/call.h"
#include "loop/backoff.h"
#include "loop/loop.h"
#include "mirror/acls.h"

struct director;

#define ACLS_SENT_MAX 200 /* rules of one request */

struct director_acls {
    enum acls_state {
        ACLS_OFF,
        ACLS_RESTING, /* until the next round, or the next try */
        ACLS_SOURCE,
        ACLS_TARGET,
        ACLS_CHANGING,
    } state;
    struct task step;
    struct timer timer;
    struct backoff backoff;
    struct call call;
    struct filter *groups;
    struct arena arena[2];  /* of rounds, in turn: the last one's plan is there until the next is over */
    int turn;               /* whose arena the round under way uses */
    struct acls plan;       /* of the round under way */
    struct acls before;     /* with heliostat.sync.acls.deletions: of the last round */
    struct str before_id;   /* of the cluster that it speaks of */
    struct arena sending;   /* of one request */
    size_t at;              /* the plan is done up to there */
    struct acl_entry *sent[ACLS_SENT_MAX];
    size_t sent_n;
    enum acl_due sending_due;
    union {
        struct kafka_describe_acls_request describe;
        struct kafka_create_acls_request create;
        struct kafka_delete_acls_request delete;
    } request;
    int none;              /* which side keeps no rules: -1 neither, 0 source, 1 target */
    uint64_t created, deleted;
    uint64_t created_was, deleted_was; /* when the round began */
    size_t told;           /* rules of this round that were logged by name */
    size_t refused;        /* of this round */
    struct fault refusal;  /* the first of the last round that had any */
    int64_t wanted, differ; /* of the last full round */
    int64_t last_ms;       /* wall clock of its end; 0: never */
    struct fault fault;
};

void director_acls_init(struct director_acls *c);
/* The first round begins now. */
void director_acls_start(struct director *d);
void director_acls_stop(struct director *d);
void director_acls_fini(struct director_acls *c);
/* The alias of the side that keeps no access rules; null: none such is known. */
struct str director_acls_none(const struct director *d);

#endif
