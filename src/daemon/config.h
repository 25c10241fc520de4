/* config.h -- an mm2.properties file as one immutable snapshot, or all that is wrong with it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Which keys count for which flow, and which of several wins, is MirrorMaker 2's order (told at the
 * top of config_flows.c). Every problem of a file is found in one go. Values of secret keys, of unknown
 * keys and of what came through a config provider never stand in any text made here. A config is made
 * on one thread and read on any.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include "mirror/flow_config.h"

#define CONFIG_CLUSTERS_MAX  100 /* aliases in one file */
#define CONFIG_PROBLEMS_MAX  1000
#define CONFIG_ENDPOINTS_MAX 1000 /* addresses in one bootstrap list */

struct process_config {
#define OPT(where, type, name, key, alias, value, least, most, when, secret, doc) OPT_C_##type name;
#define CHOICE(where, type, name, key, alias, value, choices, when, doc)          OPT_C_##type name;
#define NO_EFFECT(where, key, why)
#include "daemon/process.opt"
#undef OPT
#undef CHOICE
#undef NO_EFFECT
};

extern const struct opt_table config_opts;

enum config_severity { CONFIG_ERROR, CONFIG_WARNING };

struct config_problem {
    struct str file; /* "--set" or "--clusters" when it is not in the file */
    int line;        /* 0: no line is to blame */
    struct str key;
    enum config_severity severity;
    struct str text; /* what, and what to do */
};

struct config_origins; /* private: where each value came from */

struct config {
    struct arena arena; /* owns all that follows */
    struct str file;
    struct process_config process;
    const struct flow_config *flows; /* in the order of `clusters`; those of --clusters only */
    size_t flow_count;
    const struct config_problem *problems; /* by line */
    size_t problem_count, error_count;
    const struct config_origins *origins;
};

struct config_args {
    struct str path;        /* of the file, as the user gave it */
    const struct str *sets; /* key=value, stronger than the file */
    size_t set_count;
    const struct str *clusters; /* of --clusters; each may hold several, at blanks or commas */
    size_t cluster_count;
    const char *(*env)(const char *name); /* of the env provider; NULL: getenv */
};

/* Always makes *out, which the caller frees; E_INVALID when it has errors, which then are in
 * (*out)->problems and forbid any use of flows. */
WARN_UNUSED enum err config_load(const struct config_args *args, struct config **out);

/* The same for a text in memory; args->path is only a name. */
WARN_UNUSED enum err config_parse(const struct config_args *args, struct str text,
                                  struct config **out);

void config_free(struct config **c);

/* "FILE:LINE: key: what, and what to do"; warnings have "warning: " before the text. No newline. */
void config_problem_format(const struct config_problem *p, struct buf *out);

/* One effective setting. line 0: the default; file and origin_key are null then. */
struct config_setting {
    struct str scope; /* "process", "A->B", "A->B source", "A->B target-admin", ... */
    struct str key;
    struct str value; /* as it would stand in a file, or "(secret)" */
    struct str file;
    int line;
    struct str origin_key; /* as it stands in the file: "A.consumer.fetch.min.bytes" */
};

/* Calls visit for every setting with an effect; the strings live as long as the call. */
void config_each_setting(const struct config *c,
                         void (*visit)(const struct config_setting *s, void *arg), void *arg);

#endif
