/* acls.h -- the pure plan of access rules: which of the source's are wanted at the target, and what is to be done there.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Decides only; director_acls.c asks and applies, `check` prints the same plan. MirrorMaker 2's rules (mm2-spec 4.6b): of
 * mirrored topics, by literal name; ALLOW WRITE is left out and ALLOW ALL becomes ALLOW READ, since a copy is written by
 * the mirror alone. Wider where struct acl_rules says so. Principals and hosts are kept byte for byte. Any thread.
 */
#ifndef MIRROR_ACLS_H
#define MIRROR_ACLS_H

#include "mirror/policy.h"
#include "wire/api.h"

#define ACLS_MAX 100000 /* rules of one flow */

/* Kafka's numbers. */
enum { ACL_TOPIC = 2, ACL_GROUP = 3 };
enum { ACL_LITERAL = 3, ACL_PREFIXED = 4 };
enum { ACL_ALL = 2, ACL_READ = 3, ACL_WRITE = 4, ACL_DESCRIBE = 8 };
enum { ACL_DENY = 2, ACL_ALLOW = 3 };

struct acl {
    struct str resource, principal, host;
    int8_t resource_type, pattern_type, operation, permission_type;
};

/* What is copied. */
struct acl_rules {
    const struct policy *policy;
    struct filter *topics;
    struct filter *groups; /* NULL: rules about groups are left alone */
    bool prefixed;
    const struct str *mirrored; /* with prefixed: the flow's topics, sorted by str_cmp */
    size_t mirrored_n;
};

/* A rule as it should be at the target. */
struct acl_entry {
    struct acl acl;
    bool dormant; /* no topic of the flow has a use for it yet */
    bool gone;    /* it was at the source before, and is not any more */
    bool there;   /* the target has it */
    bool refused;
};

enum acl_due { ACL_NOTHING, ACL_CREATE, ACL_DELETE };

struct acls {
    struct arena *arena;
    struct acl_entry *at; /* sorted, each once */
    size_t n;
    size_t wanted;   /* neither dormant nor gone */
    size_t left_out; /* beyond ACLS_MAX: what is there is not all then */
};

/* The filters of DescribeAcls at either side. */
void acls_ask(struct kafka_describe_acls_request *q, const struct acl_rules *r);

/* From the source's answer; before: what an earlier acls_plan gave (in other memory), of which whatever the source has no more
 * is gone. */
void acls_plan(struct acls *s, struct arena *a, const struct acl_rules *r, const struct kafka_describe_acls_response *source,
               const struct acls *before);
/* From the target's answer. */
void acls_mark(struct acls *s, const struct kafka_describe_acls_response *target);

enum acl_due acls_due(const struct acl_entry *e);
size_t acls_count(const struct acls *s, enum acl_due due);

/* "ALLOW READ for User:bob from host * on topic A.t", in a. */
struct str acls_text(const struct acl *acl, struct arena *a);

/* Why one side does not tell or take rules, and what to do, in a; alias: which side. */
struct str acls_trouble(struct str alias, int32_t kerr, bool creating, struct arena *a);

#endif
