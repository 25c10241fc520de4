/* check_acls.c -- asks both sides for their access rules, and says which would be created at the target.
 * SPDX-License-Identifier: Apache-2.0
 *
 *  source -> target (when anything is wanted there)
 *
 * The decision is acls_plan, as in a running flow (mirror/director_acls.c). One call at a time.
 */
#include "base/alloc.h"
#include "daemon/check_int.h"
#include "kafka/cluster.h"

#include <stdlib.h>

#define ROUND_MAX (512 * (size_t)MiB)

struct check_acls {
    struct check_flow *flow;
    void (*done)(struct check_flow *f);
    struct call call;
    struct kafka_describe_acls_request request;
    struct arena arena;
    struct policy *policy;
    struct filter *groups;
    struct acl_rules rules;
    struct acls plan;
    bool target; /* is being asked */
    bool known;  /* the plan is whole */
    struct str none; /* the alias of a side that keeps no rules */
};

static void ask(struct check_acls *k);

static struct str alias_of(const struct check_acls *k)
{
    return k->target ? k->flow->config->target_alias : k->flow->config->source_alias;
}

static void take_error(struct check_acls *k, int32_t kerr)
{
    if (kerr == KERR_SECURITY_DISABLED)
        k->none = alias_of(k);
    else
        check_add(k->flow, CONFIG_WARNING, "%.*s", STR_ARG(acls_trouble(alias_of(k), kerr, false, &k->arena)));
    k->done(k->flow);
}

static void on_answer(struct call *c)
{
    struct check_acls *k = container_of(c, struct check_acls, call);
    const struct kafka_describe_acls_response *r = c->response;

    if (c->error == E_VERSION)
        k->none = alias_of(k);
    if (c->error) {
        k->done(k->flow);
        return;
    }
    if (r->error_code) {
        take_error(k, r->error_code);
        return;
    }
    if (k->target) {
        acls_mark(&k->plan, r);
    } else {
        acls_plan(&k->plan, &k->arena, &k->rules, r, NULL);
        k->target = true;
        if (k->plan.n) {
            ask(k);
            return;
        }
    }
    k->known = true;
    k->done(k->flow);
}

static void ask(struct check_acls *k)
{
    struct route route = { .kind = ROUTE_ANY };

    acls_ask(&k->request, &k->rules);
    call_fini(&k->call);
    call_init(&k->call, API_DESCRIBE_ACLS, &k->request, on_answer);
    if (cluster_call(director_cluster(k->flow->director, k->target), &route, &k->call))
        k->done(k->flow);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void list_mirrored(struct check_acls *k)
{
    const struct plan *p = k->flow->plan;
    struct str *names = arena_array(&k->arena, p->wants_n, sizeof(*names));

    for (size_t i = 0; i < p->wants_n; i++)
        names[i] = p->wants[i].name;
    if (p->wants_n)
        qsort(names, p->wants_n, sizeof(*names), by_name);
    k->rules.mirrored = names;
    k->rules.mirrored_n = p->wants_n;
}

struct check_acls *check_acls_ask(struct check_flow *f, void (*done)(struct check_flow *f))
{
    const struct flow_config *c = f->config;
    struct check_acls *k;
    struct str why;

    if (!c->enabled || !c->sync_topic_acls_enabled)
        return NULL;
    k = mem_new(sizeof(*k));
    k->flow = f;
    k->done = done;
    k->none = STR_NULL;
    arena_init(&k->arena, ROUND_MAX);
    call_init(&k->call, 0, NULL, NULL);
    k->policy = policy_new(c);
    k->rules = (struct acl_rules){ .policy = k->policy, .topics = f->filter, .prefixed = c->sync_acls_prefixed };
    if (c->sync_acls_groups && !filter_new(&c->groups, &c->groups_exclude, &k->arena, &k->groups, &why))
        k->rules.groups = k->groups;
    list_mirrored(k);
    ask(k);
    return k;
}

void check_acls_free(struct check_acls **kp)
{
    struct check_acls *k = *kp;

    if (!k)
        return;
    if (call_is_busy(&k->call))
        call_drop(&k->call);
    call_fini(&k->call);
    filter_free(&k->groups);
    policy_free(&k->policy);
    arena_fini(&k->arena);
    mem_free(k);
    *kp = NULL;
}

const struct acls *check_acls(const struct check_flow *f, struct str *none)
{
    *none = f->acls ? f->acls->none : STR_NULL;
    return f->acls && f->acls->known ? &f->acls->plan : NULL;
}
