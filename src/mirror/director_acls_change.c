/* director_acls_change.c -- creates at the target the access rules that it lacks, and removes those that have gone.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Creations come first, portion by portion. The target answers rule by rule: a refused one holds up no other. Thread:
 * control.
 */
#include "mirror/director_acls_int.h"

#include "base/log.h"

#define SENT_BYTES_MAX (256 * (size_t)KiB) /* of names, in one request */
#define SAID_MAX       160                 /* bytes of a broker's own words that are repeated */
#define TOLD_MAX       1000                /* rules of one round that are logged one by one */

static void tell(struct director_acls *c, enum event event, const struct acl_entry *e)
{
    if (c->told++ < TOLD_MAX)
        log_event(event, kv_str("flow", director_acls_owner(c)->config->name),
                  kv_str("acl", acls_text(&e->acl, &c->sending)));
}

static void refuse(struct director_acls *c, struct acl_entry *e, const char *code, const char *text, struct str said)
{
    struct director *d = director_acls_owner(c);
    struct str acl = acls_text(&e->acl, &c->sending);
    struct str words = arena_fmt(&c->sending, "%s%s%.*s", text, said.n ? "; it says: " : "",
                                 STR_ARG(str_part(said, 0, SAID_MAX)));

    e->refused = true;
    if (c->refused++ == 0)
        fault_set(&c->refusal, loop_wall_ms(d->loop), code,
                  "cluster %.*s refuses an ACL: %.*s: %.*s; the log has each such (acl.refused)",
                  STR_ARG(d->config->target_alias), STR_ARG(acl), STR_ARG(words));
    if (c->told++ < TOLD_MAX)
        log_event(EV_ACL_REFUSED, kv_str("flow", d->config->name), kv_str("acl", acl), kv_c("code", code),
                  kv_str("text", words));
}

static void take_result(struct director_acls *c, struct acl_entry *e, int32_t kerr, struct str said)
{
    if (kerr) {
        refuse(c, e, kerr_name(kerr), kerr_text(kerr), said);
        return;
    }
    if (c->sending_due == ACL_CREATE)
        c->created++;
    else
        c->deleted++;
    e->there = c->sending_due == ACL_CREATE;
    tell(c, c->sending_due == ACL_CREATE ? EV_ACL_CREATED : EV_ACL_DELETED, e);
}

struct result {
    int32_t kerr;
    struct str said;
};

/* In the order of the request. Denied is mostly the request as a whole, but an authorizer may also look at each rule. */
static void take_results(struct director_acls *c, const struct result *r, size_t n)
{
    size_t denied = 0;

    for (size_t i = 0; i < n; i++)
        denied += kerr_class(API_CREATE_ACLS, r[i].kerr) == K_DENIED;
    for (size_t i = 0; i < n; i++)
        if ((denied == n || kerr_class(API_CREATE_ACLS, r[i].kerr) != K_DENIED) &&
            director_acls_is_trouble(c, true, true, r[i].kerr))
            return;
    for (size_t i = 0; i < n; i++)
        take_result(c, c->sent[i], r[i].kerr, r[i].said);
    for (size_t i = n; i < c->sent_n; i++)
        refuse(c, c->sent[i], "NO_ANSWER", "the target says nothing of it", STR_NULL);
    task_wake(director_acls_owner(c)->loop, &c->step);
}

static void on_created(struct call *call)
{
    struct director_acls *c = container_of(call, struct director_acls, call);
    const struct kafka_create_acls_response *r = call->response;
    struct result results[ACLS_SENT_MAX];
    size_t n;

    if (director_acls_call_failed(c, true, "creating ACLs"))
        return;
    n = MIN(c->sent_n, (size_t)MAX(r->results.n, 0));
    for (size_t i = 0; i < n; i++)
        results[i] = (struct result){ r->results.at[i].error_code, r->results.at[i].error_message };
    take_results(c, results, n);
}

static void on_deleted(struct call *call)
{
    struct director_acls *c = container_of(call, struct director_acls, call);
    const struct kafka_delete_acls_response *r = call->response;
    struct result results[ACLS_SENT_MAX];
    size_t n;

    if (director_acls_call_failed(c, true, "removing ACLs"))
        return;
    n = MIN(c->sent_n, (size_t)MAX(r->filter_results.n, 0));
    for (size_t i = 0; i < n; i++) {
        const struct kafka_delete_acls_response_filter_result *f = &r->filter_results.at[i];

        results[i] = (struct result){ f->error_code, f->error_message };
        for (int32_t k = 0; !results[i].kerr && k < f->matching_acls.n; k++)
            results[i] = (struct result){ f->matching_acls.at[k].error_code, f->matching_acls.at[k].error_message };
    }
    take_results(c, results, n);
}

static void send_creations(struct director_acls *c)
{
    struct kafka_create_acls_request *q = &c->request.create;

    codec_init(&kafka_create_acls_request_msg, q);
    q->creations.at = arena_array(&c->sending, c->sent_n, sizeof(*q->creations.at));
    q->creations.n = (int32_t)c->sent_n;
    for (size_t i = 0; i < c->sent_n; i++) {
        const struct acl *a = &c->sent[i]->acl;

        q->creations.at[i] = (struct kafka_create_acls_request_creation){
            .resource_type = a->resource_type, .resource_name = a->resource, .resource_pattern_type = a->pattern_type,
            .principal = a->principal, .host = a->host, .operation = a->operation, .permission_type = a->permission_type
        };
    }
    director_acls_send(c, true, API_CREATE_ACLS, ROUTE_CONTROLLER, on_created);
}

static void send_deletions(struct director_acls *c)
{
    struct kafka_delete_acls_request *q = &c->request.delete;

    codec_init(&kafka_delete_acls_request_msg, q);
    q->filters.at = arena_array(&c->sending, c->sent_n, sizeof(*q->filters.at));
    q->filters.n = (int32_t)c->sent_n;
    for (size_t i = 0; i < c->sent_n; i++) {
        const struct acl *a = &c->sent[i]->acl;

        q->filters.at[i] = (struct kafka_delete_acls_request_filter){
            .resource_type_filter = a->resource_type, .resource_name_filter = a->resource,
            .pattern_type_filter = a->pattern_type, .principal_filter = a->principal, .host_filter = a->host,
            .operation = a->operation, .permission_type = a->permission_type
        };
    }
    director_acls_send(c, true, API_DELETE_ACLS, ROUTE_CONTROLLER, on_deleted);
}

/* The next portion of what is due; false: nothing is. */
static bool gather(struct director_acls *c)
{
    size_t bytes = 0;

    arena_reset(&c->sending);
    c->sent_n = 0;
    for (; c->at < c->plan.n && c->sent_n < ACLS_SENT_MAX && bytes < SENT_BYTES_MAX; c->at++) {
        struct acl_entry *e = &c->plan.at[c->at];

        if (acls_due(e) != c->sending_due)
            continue;
        c->sent[c->sent_n++] = e;
        bytes += e->acl.resource.n + e->acl.principal.n + e->acl.host.n;
    }
    return c->sent_n > 0;
}

static void tell_differences(struct director_acls *c)
{
    for (size_t i = 0; i < c->plan.n; i++) {
        const struct acl_entry *e = &c->plan.at[i];
        enum acl_due due = acls_due(e);

        if (due != ACL_NOTHING && c->told++ < TOLD_MAX)
            log_event(EV_ACL_DIFFERS, kv_str("flow", director_acls_owner(c)->config->name),
                      kv_str("acl", acls_text(&e->acl, &c->sending)), kv_bool("missing", due == ACL_CREATE));
    }
}

void director_acls_change(struct director_acls *c)
{
    if (director_acls_owner(c)->config->sync_dry_run) {
        tell_differences(c);
        director_acls_end_round(c);
        return;
    }
    if (gather(c)) {
        if (c->sending_due == ACL_CREATE)
            send_creations(c);
        else
            send_deletions(c);
        return;
    }
    if (c->sending_due == ACL_DELETE) {
        director_acls_end_round(c);
        return;
    }
    c->sending_due = ACL_DELETE;
    c->at = 0;
    task_wake(director_acls_owner(c)->loop, &c->step);
}
