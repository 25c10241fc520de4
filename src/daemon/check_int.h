/* check_int.h -- what check's files share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Steps: look (check_look.c) asks the clusters; judge (check_judge.c) finds what will not go well; then it is all
 * printed for people (check_text.c) or as JSON (check_json.c).
 */
#ifndef DAEMON_CHECK_INT_H
#define DAEMON_CHECK_INT_H

#include "daemon/config.h"
#include "mirror/acls.h"
#include "mirror/director.h"
#include "mirror/plan.h"

#define CHECK_LIMIT_MS 10000
#define CHECK_FINDINGS_MAX 1000

/* What is wrong or doubtful with a flow, beside the faults of single topics. */
struct check_finding {
    enum config_severity severity;
    struct str text;
};

/* A question of check's own, about configs of topics and brokers. */
struct check_limits;
/* And one about access rules. */
struct check_acls;

struct check_flow {
    struct check *check;
    const struct flow_config *config;
    struct director *director; /* NULL: not asked (--offline) */
    const struct plan *plan;   /* NULL: not known */
    struct check_limits *limits;
    struct check_acls *acls;
    bool told;                 /* the director has said what it knows */
    bool done;                 /* and limits and ACLs are there too, or cannot be had */
    bool unreachable;          /* one of its clusters did not answer in time */
    struct fault fault;        /* why there is no plan */
    struct check_topic *topics; /* check_topics */
    struct filter *filter;      /* topics and topics.exclude, for the reasons */
    struct check_finding *findings;
    size_t findings_n;
};

struct check {
    const struct config *config;
    struct arena arena;
    struct loop *loop;
    struct check_flow *flows; /* as config->flows */
    size_t flows_n;
    size_t open; /* flows under way */
    bool offline;
    int code; /* exit code */
};

/* Asks the clusters that every flow would use, CHECK_LIMIT_MS at most. */
void check_look(struct check *c);
/* Ends what check_look began; plans and clusters are gone then. */
void check_look_end(struct check *c);

/* After check_look: findings of every flow, and the exit code. */
void check_judge(struct check *c);
void check_add(struct check_flow *f, enum config_severity severity, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Configs of both sides that decide what copies would meet: asked once the plan is there; done comes once from the
 * loop. */
struct check_limits *check_limits_ask(struct check_flow *f, void (*done)(struct check_flow *f));
void check_limits_free(struct check_limits **l);
void check_limits_judge(struct check_flow *f);

/* The access rules of both sides, asked likewise; NULL: they are not copied. */
struct check_acls *check_acls_ask(struct check_flow *f, void (*done)(struct check_flow *f));
void check_acls_free(struct check_acls **k);
/* NULL: not known. *none: the alias of a side that keeps no rules, else null. */
const struct acls *check_acls(const struct check_flow *f, struct str *none);

/* The clusters that were asked, each once, by alias; *n gets their number. In c->arena. */
struct cluster **check_clusters(struct check *c, size_t *n);

const char *check_delivery(const struct flow_config *c);

void check_put_text(struct check *c, struct buf *out);
void check_put_json(struct check *c, struct buf *out);

/* "create", "grow", "keep" or "fault", and where it comes from. */
struct check_topic {
    const struct topic_want *want;
    const struct plan_create *create;
    const struct plan_grow *grow;
    const struct fault *fault;
    int32_t have; /* partitions at the target; 0: there is no copy yet */
    int32_t replicas; /* of the copy; 0: there is none, or not known */
    const char *action;
};
/* All mirrored topics by name, in c->arena; *n gets their number. */
struct check_topic *check_topics(struct check_flow *f, size_t *n);

/* Why a topic is not mirrored, in c->arena. */
struct str check_refusal(struct check_flow *f, const struct plan_refused *r);

#endif
