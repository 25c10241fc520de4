/* flow_config.h -- what one flow is configured to do; rows in flow.opt.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Plain and immutable; a part of the snapshot that daemon/config.c makes and owns. Any thread.
 */
#ifndef MIRROR_FLOW_CONFIG_H
#define MIRROR_FLOW_CONFIG_H

#include "kafka/client_config.h"

/* Each enum is in the order of the choices in flow.opt. */
enum flow_delivery { FLOW_EXACTLY_ONCE, FLOW_AT_LEAST_ONCE, FLOW_AT_MOST_ONCE };
enum flow_recreated { FLOW_RECREATED_RESTART, FLOW_RECREATED_HALT, FLOW_RECREATED_IGNORE };
enum flow_oversize { FLOW_OVERSIZE_HALT, FLOW_OVERSIZE_SKIP, FLOW_OVERSIZE_RAISE };
enum flow_timestamp { FLOW_TIMESTAMP_HALT, FLOW_TIMESTAMP_LOG_APPEND, FLOW_TIMESTAMP_CLAMP };
enum flow_policy { FLOW_POLICY_DEFAULT, FLOW_POLICY_IDENTITY };
enum flow_syncs_location { FLOW_SYNCS_AT_SOURCE, FLOW_SYNCS_AT_TARGET };
enum flow_translation { FLOW_TRANSLATION_EXACT, FLOW_TRANSLATION_MM2 };
enum flow_eos { FLOW_EOS_DISABLED, FLOW_EOS_PREPARING, FLOW_EOS_ENABLED };

/* Where a row of flow.opt is looked for. */
enum flow_where {
    FLOW_ANY = 1,
    FLOW_OWN = 2,
    FLOW_TARGET = 4,
    FLOW_WORKER = 8,
    FLOW_BOTH = FLOW_ANY | FLOW_WORKER,
};

struct str_pair {
    struct str key, value;
};

struct flow_config {
    struct str name;         /* "A->B" */
    struct str source_alias; /* "A", or what source.cluster.alias says: the name used in topics */
    struct str
        target_alias; /* "B", likewise; the cluster itself is source.cluster, target.cluster */

    /* Data: what reads at the source and writes at the target (MirrorMaker 2's mirroring
     * consumer, and Connect's task producer). */
    struct client_config source;
    struct client_config target;
    /* Control: admin requests at either side; and what reads topics at the target. */
    struct client_config source_admin;
    struct client_config target_admin;
    struct client_config target_reader;
    /* What writes offset syncs, at the side that offset_syncs_location names. */
    struct client_config syncs_writer;

    struct str offsets_topic;               /* at the target, resolved: mm2-offsets.A.internal */
    const struct str_pair *offsets_configs; /* topic configs from offset.storage.<config> */
    size_t offsets_config_count;
    const struct str_pair *transform_settings; /* "transforms.a.type" and the like, "predicates.p.name" */
    size_t transform_settings_n;
    bool defaults_from_source; /* use.defaults.from is exactly "source" */

    /* Rows of flow.opt. `enabled` false: the flow only writes heartbeats, if those are enabled.
     * Intervals are -1 when off. */
#define OPT(where, type, name, key, alias, value, least, most, when, secret, doc) OPT_C_##type name;
#define CHOICE(where, type, name, key, alias, value, choices, when, doc)          OPT_C_##type name;
#define NO_EFFECT(where, key, why)
#include "mirror/flow.opt"
#undef OPT
#undef CHOICE
#undef NO_EFFECT
};

/* Batches and positions in transactions: exactly.once.source.support, unless heliostat.delivery asks for less. */
bool flow_config_is_transactional(const struct flow_config *c);
/* As shown: "exactly-once", "transactions", "at-least-once" or "at-most-once". */
const char *flow_config_delivery(const struct flow_config *c);

extern const struct opt_table flow_opts;

#endif
