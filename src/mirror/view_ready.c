/* view_ready.c -- are all flows of a view ready, and what keeps those that are not.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Apart from view.c, so that who only reads views does not link all that makes them. Any thread.
 */
#include "mirror/view.h"

/* What keeps the flow: its own fault, else that of a cluster it needs; NULL: nothing is known. */
static const struct fault *cause(const struct view *v, const struct view_flow *f, struct str *cluster)
{
    *cluster = STR_NULL;
    if (fault_is_set(&f->fault))
        return &f->fault;
    for (int32_t i = 0; i < v->clusters_n; i++) {
        const struct view_cluster *c = &v->clusters[i];

        if (!fault_is_set(&c->fault) || (!str_eq(c->alias, f->source) && !str_eq(c->alias, f->target)))
            continue;
        *cluster = c->alias;
        return &c->fault;
    }
    return NULL;
}

static bool has_enabled(const struct view *v)
{
    for (int32_t i = 0; i < v->flows_n; i++)
        if (v->flows[i].enabled)
            return true;
    return false;
}

bool view_is_ready(const struct view *v, struct buf *why)
{
    bool ready = true, enabled = has_enabled(v);

    for (int32_t i = 0; i < v->flows_n; i++) {
        const struct view_flow *f = &v->flows[i];

        if (f->ready || (enabled && !f->enabled))
            continue;
        if (why) {
            struct str cluster;
            const struct fault *at = cause(v, f, &cluster);

            buf_fmt(why, "%s%.*s: %s%s%.*s%s%s", ready ? "" : "\n", STR_ARG(f->name), f->state,
                    cluster.n ? ": cluster " : "", STR_ARG(cluster), at ? ": " : "", at ? at->text : "");
        }
        ready = false;
    }
    return ready;
}
