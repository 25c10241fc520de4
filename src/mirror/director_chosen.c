/* director_chosen.c -- says once of each topic why it is copied, or not, where the lists of the file alone do not tell.
 * SPDX-License-Identifier: Apache-2.0
 *
 * MirrorMaker 2 leaves out names that look like internal topics, and copies names that look like heartbeats, whatever
 * `topics` says, and without a word. Thread: control.
 */
#include "base/alloc.h"
#include "base/log.h"
#include "mirror/director_internal.h"

#include <string.h>

#define CHOSEN_MAX 10000 /* names that are remembered; of others nothing is said */

struct chosen {
    UT_hash_handle hh;
    size_t n;
    char name[];
};

/* True the first time. */
static bool is_news(struct director *d, struct str topic)
{
    struct chosen *c;

    HASH_FIND(hh, d->chosen, topic.p, topic.n, c);
    if (c || HASH_COUNT(d->chosen) >= CHOSEN_MAX)
        return false;
    c = mem_new(sizeof(*c) + topic.n);
    memcpy(c->name, topic.p, topic.n);
    c->n = topic.n;
    HASH_ADD(hh, d->chosen, name, c->n, c);
    return true;
}

/* What comes from the target is left out by its name alone, and everybody expects that. */
static void tell_refused(struct director *d, const struct plan_refused *r)
{
    struct str why = str_c(policy_verdict_text(r->verdict));
    bool accepted;

    if (r->verdict == POLICY_CYCLE || !filter_includes(d->topic_filter, r->topic) || !is_news(d, r->topic))
        return;
    if (r->verdict == POLICY_FILTERED)
        why = filter_why(d->topic_filter, r->topic, &d->plan_arena, &accepted);
    log_event(EV_TOPIC_LEFT_OUT, kv_str("flow", d->config->name), kv_str("topic", r->topic), kv_str("why", why));
}

void director_tell_chosen(struct director *d)
{
    const struct plan *p = d->plan;

    for (size_t i = 0; i < p->refused_n && !d->plan_only; i++)
        tell_refused(d, &p->refused[i]);
    for (size_t i = 0; i < p->wants_n && !d->plan_only; i++)
        if (p->wants[i].by_rule && is_news(d, p->wants[i].name))
            log_event(EV_TOPIC_BY_RULE, kv_str("flow", d->config->name), kv_str("topic", p->wants[i].name),
                      kv_c("why", policy_verdict_text(POLICY_HEARTBEATS)));
    if (!d->plan_only && d->config->topics.n && plan_accepts_nothing(p) && is_news(d, STR(""))) /* no topic's name */
        log_event(EV_TOPICS_NONE, kv_str("flow", d->config->name));
}

void director_chosen_free(struct director *d)
{
    struct chosen *c, *next;

    HASH_ITER(hh, d->chosen, c, next) {
        HASH_DEL(d->chosen, c);
        mem_free(c);
    }
}
