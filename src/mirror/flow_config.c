/* flow_config.c -- the table of flow options.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/flow_config.h"

static const struct opt_row rows[] = {
#define OPT(where, type, name, key, alias, value, least, most, when, secret, doc)                  \
    OPT_ROW(struct flow_config, FLOW_##where, type, name, key, alias, value, least, most, when,    \
            secret, doc)
#define CHOICE(where, type, name, key, alias, value, choices, when, doc)                           \
    OPT_ROW_CHOICE(struct flow_config, FLOW_##where, type, name, key, alias, value, choices, when, \
                   doc)
#define NO_EFFECT(where, key, why) OPT_ROW_NO_EFFECT(FLOW_##where, key, why)
#include "mirror/flow.opt"
#undef OPT
#undef CHOICE
#undef NO_EFFECT
};

static const char *where_text(unsigned where)
{
    switch (where) {
    case FLOW_ANY:
        return "A->B.KEY, KEY";
    case FLOW_OWN:
        return "A->B.KEY";
    case FLOW_TARGET:
        return "B.KEY";
    case FLOW_WORKER:
        return "KEY, B.KEY";
    default:
        return "A->B.KEY, KEY, B.KEY";
    }
}

bool flow_config_is_transactional(const struct flow_config *c)
{
    return c->delivery == FLOW_EXACTLY_ONCE && c->exactly_once_source_support == FLOW_EOS_ENABLED;
}

const char *flow_config_delivery(const struct flow_config *c)
{
    static const char *const names[] = { [FLOW_EXACTLY_ONCE] = "exactly-once",
                                         [FLOW_AT_LEAST_ONCE] = "at-least-once",
                                         [FLOW_AT_MOST_ONCE] = "at-most-once" };

    return flow_config_is_transactional(c) ? "transactions" : names[c->delivery];
}

const struct opt_table flow_opts = {
    .name = "flow",
    .title = "Flows; the first form that is there counts",
    .rows = rows,
    .count = COUNT(rows),
    .where_text = where_text,
};
