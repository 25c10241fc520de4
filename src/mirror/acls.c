/* acls.c -- which access rules of the source are wanted at the target, by name and operation, and which are missing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/acls.h"

#include "wire/kerr.h"

#include <stdlib.h>
#include <string.h>

#define ANY 1 /* of all four enums of Kafka */

static int compare(const void *a, const void *b)
{
    const struct acl *x = a, *y = b;
    int c = str_cmp(x->resource, y->resource);

    if (!c)
        c = str_cmp(x->principal, y->principal);
    if (!c)
        c = str_cmp(x->host, y->host);
    if (!c)
        c = x->resource_type - y->resource_type;
    if (!c)
        c = x->pattern_type - y->pattern_type;
    if (!c)
        c = x->operation - y->operation;
    return c ? c : x->permission_type - y->permission_type;
}

static int by_acl(const void *a, const void *b)
{
    return compare(&((const struct acl_entry *)a)->acl, &((const struct acl_entry *)b)->acl);
}

static struct acl_entry *find(const struct acls *s, const struct acl *acl)
{
    struct acl_entry key = { .acl = *acl };

    return s->n ? bsearch(&key, s->at, s->n, sizeof(key), by_acl) : NULL;
}

void acls_ask(struct kafka_describe_acls_request *q, const struct acl_rules *r)
{
    codec_init(&kafka_describe_acls_request_msg, q);
    q->resource_type_filter = r->groups ? ANY : ACL_TOPIC;
    q->pattern_type_filter = r->prefixed ? ANY : ACL_LITERAL;
    q->resource_name_filter = q->principal_filter = q->host_filter = STR_NULL;
    q->operation = q->permission_type = ANY;
}

/* --- where a rule belongs at the target --- */

struct place {
    struct str name;
    int8_t pattern_type;
    bool dormant;
};

/* One of the flow's topics begins so. */
static bool has_mirrored(const struct acl_rules *r, struct str prefix)
{
    size_t low = 0, high = r->mirrored_n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (str_cmp(r->mirrored[mid], prefix) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->mirrored_n && str_starts(r->mirrored[low], prefix);
}

/* All topics of the source ("*") are all copies, where those have a prefix of their own. */
static bool place_topics(const struct acl_rules *r, const struct kafka_describe_acls_response_resource *t, struct arena *a,
                         struct place *out)
{
    bool all = t->pattern_type == ACL_LITERAL && str_eq(t->resource_name, STR("*"));
    struct str prefix = all ? STR("") : t->resource_name;
    struct str name;

    if (!r->prefixed || (!all && t->pattern_type != ACL_PREFIXED))
        return false;
    name = policy_prefix(r->policy, prefix, a);
    if (name.n == 0)
        return false;
    *out = (struct place){ arena_str(a, name), ACL_PREFIXED, !has_mirrored(r, prefix) };
    return true;
}

static bool place(const struct acl_rules *r, const struct kafka_describe_acls_response_resource *t, struct arena *a,
                  struct place *out)
{
    bool literal = t->pattern_type == ACL_LITERAL;

    if (t->resource_name.n == 0 || memchr(t->resource_name.p, '\0', t->resource_name.n))
        return false;
    if (t->resource_type == ACL_TOPIC) {
        if (place_topics(r, t, a, out))
            return true;
        if (!literal || !policy_verdict_is_yes(policy_mirrors(r->policy, r->topics, t->resource_name)))
            return false;
        *out = (struct place){ arena_str(a, policy_remote(r->policy, t->resource_name, a)), ACL_LITERAL, false };
    } else {
        if (t->resource_type != ACL_GROUP || !r->groups || !(literal || (r->prefixed && t->pattern_type == ACL_PREFIXED)) ||
            !filter_accepts(r->groups, t->resource_name))
            return false;
        *out = (struct place){ arena_str(a, t->resource_name), t->pattern_type, false };
    }
    return out->name.n <= INT16_MAX; /* a longer one cannot be sent */
}

/* --- the plan --- */

static void add(struct acls *s, const struct acl_entry *e, size_t room)
{
    if (s->n < room)
        s->at[s->n++] = *e;
    else
        s->left_out++;
}

static void add_resource(struct acls *s, const struct acl_rules *r, const struct kafka_describe_acls_response_resource *t,
                         size_t room)
{
    struct place p;

    if (t->acls.n <= 0 || !place(r, t, s->arena, &p))
        return;
    for (int32_t i = 0; i < t->acls.n; i++) {
        const struct kafka_describe_acls_response_acl *from = &t->acls.at[i];
        struct acl_entry e = { .dormant = p.dormant };

        e.acl = (struct acl){ .resource = p.name, .resource_type = t->resource_type, .pattern_type = p.pattern_type,
                              .operation = from->operation, .permission_type = from->permission_type };
        if (t->resource_type == ACL_TOPIC && from->permission_type == ACL_ALLOW) {
            if (from->operation == ACL_WRITE)
                continue;
            if (from->operation == ACL_ALL)
                e.acl.operation = ACL_READ;
        }
        if (s->n < room) {
            e.acl.principal = arena_str(s->arena, from->principal);
            e.acl.host = arena_str(s->arena, from->host);
        }
        add(s, &e, room);
    }
}

/* ALL and READ of one principal are both READ. A rule is dormant only if all that became it are. */
static void sort(struct acls *s)
{
    size_t kept = 0;

    if (s->n)
        qsort(s->at, s->n, sizeof(*s->at), by_acl);
    for (size_t i = 0; i < s->n; i++) {
        if (kept && by_acl(&s->at[kept - 1], &s->at[i]) == 0)
            s->at[kept - 1].dormant = s->at[kept - 1].dormant && s->at[i].dormant;
        else
            s->at[kept++] = s->at[i];
    }
    s->n = kept;
}

static void add_gone(struct acls *s, const struct acls *before, size_t room)
{
    size_t n = s->n; /* what the source has now */

    for (size_t i = 0; i < before->n; i++) {
        struct acls now = { .at = s->at, .n = n };
        struct acl_entry e = { .acl = before->at[i].acl, .gone = true };

        if (find(&now, &e.acl))
            continue;
        e.acl.resource = arena_str(s->arena, e.acl.resource);
        e.acl.principal = arena_str(s->arena, e.acl.principal);
        e.acl.host = arena_str(s->arena, e.acl.host);
        add(s, &e, room);
    }
    sort(s);
}

void acls_plan(struct acls *s, struct arena *a, const struct acl_rules *r, const struct kafka_describe_acls_response *source,
               const struct acls *before)
{
    size_t room = 0, old = before ? before->n : 0;

    for (int32_t i = 0; i < source->resources.n; i++)
        room += (size_t)MAX(source->resources.at[i].acls.n, 0);
    room = MIN(room, ACLS_MAX);
    *s = (struct acls){ .arena = a, .at = arena_array(a, room + old, sizeof(*s->at)) };
    for (int32_t i = 0; i < source->resources.n; i++)
        add_resource(s, r, &source->resources.at[i], room);
    sort(s);
    if (old && !s->left_out)
        add_gone(s, before, room + old);
    for (size_t i = 0; i < s->n; i++)
        s->wanted += !s->at[i].dormant && !s->at[i].gone;
}

void acls_mark(struct acls *s, const struct kafka_describe_acls_response *target)
{
    for (int32_t i = 0; i < target->resources.n; i++) {
        const struct kafka_describe_acls_response_resource *t = &target->resources.at[i];

        for (int32_t k = 0; k < t->acls.n; k++) {
            const struct kafka_describe_acls_response_acl *from = &t->acls.at[k];
            struct acl acl = { t->resource_name, from->principal, from->host, t->resource_type, t->pattern_type,
                               from->operation, from->permission_type };
            struct acl_entry *e = find(s, &acl);

            if (e)
                e->there = true;
        }
    }
}

enum acl_due acls_due(const struct acl_entry *e)
{
    if (e->refused || e->dormant || e->there != e->gone)
        return ACL_NOTHING;
    return e->gone ? ACL_DELETE : ACL_CREATE;
}

size_t acls_count(const struct acls *s, enum acl_due due)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += acls_due(&s->at[i]) == due;
    return n;
}

/* --- words --- */

struct str acls_text(const struct acl *acl, struct arena *a)
{
    static const char *const operations[] = { "UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE",
                                              "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS" };
    const char *what = acl->resource_type == ACL_GROUP ? "group" : "topic";
    bool prefixed = acl->pattern_type == ACL_PREFIXED;
    struct str operation = acl->operation >= 0 && acl->operation < (int)COUNT(operations)
                               ? str_c(operations[acl->operation])
                               : arena_fmt(a, "operation %d", acl->operation);

    return arena_fmt(a, "%s %.*s for %.*s from host %.*s on %s%s %.*s",
                     acl->permission_type == ACL_ALLOW  ? "ALLOW"
                     : acl->permission_type == ACL_DENY ? "DENY"
                                                        : "permission unknown:",
                     STR_ARG(operation), STR_ARG(acl->principal), STR_ARG(acl->host), what,
                     prefixed ? "s that begin with" : "", STR_ARG(acl->resource));
}

struct str acls_trouble(struct str alias, int32_t kerr, bool creating, struct arena *a)
{
    const char *doing = creating ? "does not let ACLs be changed" : "does not tell its ACLs";

    if (kerr_class(creating ? API_CREATE_ACLS : API_DESCRIBE_ACLS, kerr) == K_DENIED)
        return arena_fmt(a,
                         "cluster %.*s %s: %s; grant %s on the cluster to the principal of this connection (User:ANONYMOUS "
                         "where the listener does not authenticate), or set sync.topic.acls.enabled = false",
                         STR_ARG(alias), doing, kerr_text(kerr), creating ? "Alter" : "Describe");
    return arena_fmt(a, "cluster %.*s %s: %s%s", STR_ARG(alias), doing, kerr_text(kerr), kerr_advice(kerr));
}
