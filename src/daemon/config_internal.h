/* config_internal.h -- what the config_*.c files and the providers share while a file is loaded.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Steps, in this order: text -> props (config.c); placeholders filled in (providers.c); each key put into
 * its place and notes cut off (config_keys.c); flows with their values (config_flows.c); what does not
 * fit together (config_check.c).
 */
#ifndef DAEMON_CONFIG_INTERNAL_H
#define DAEMON_CONFIG_INTERNAL_H

#include "base/props.h"
#include "base/suggest.h"
#include "daemon/config.h"

/* The six clients of a flow. */
enum config_role {
    ROLE_SOURCE,
    ROLE_TARGET,
    ROLE_SOURCE_ADMIN,
    ROLE_TARGET_ADMIN,
    ROLE_TARGET_READER,
    ROLE_SYNCS_WRITER,
    ROLE_COUNT
};

enum config_where { PROCESS_TOP = 1 };

/* What is known about one entry of the file beside its key and value; same index as in props. */
struct config_entry {
    struct str raw;                  /* the value as it stands in the file */
    bool resolved;                   /* a provider filled in a part, so the value is never shown */
    bool compiled;                   /* its patterns were tried */
    bool refused;                    /* an error about it was reported already */
    const struct opt_row *row;       /* the row that the key means, or NULL */
    const struct opt_row *parsed_by; /* set once the value was read, by this row */
    bool sound;                      /* and it was good */
    union {
        OPT_C_FLAG flag;
        OPT_C_INT number;
        OPT_C_LONG number_long;
        OPT_C_STRING text;
        OPT_C_LIST list;
    } value;
    const struct client_endpoint *endpoints; /* of bootstrap.servers, read once */
    size_t endpoint_count;
};

/* Index + 1 of the entry that gave a value; 0: the default. */
struct config_flow_origins {
    uint32_t *flow;               /* by row of flow_opts */
    uint32_t *client[ROLE_COUNT]; /* by row of client_opts */
};

struct config_origins {
    struct props props;
    struct config_entry *entries;
    uint32_t *process;
    struct config_flow_origins *flows;
};

/* A key of an option table that may have been meant. */
struct known_key {
    struct str key;
    struct suggest_mark mark;
    unsigned where;
    bool security;
};

struct loader {
    struct config *c;
    struct arena *a; /* the config's */
    struct config_origins *origins;
    struct props *props;
    struct config_entry *entries;
    struct place *places; /* of all entries, config_keys.c */
    struct flow_config *flows;
    struct config_problem *problems;
    size_t problem_room;
    struct known_key *known[3]; /* of the option tables, once one was needed (config_keys.c) */
    size_t known_n[3];
    bool secured; /* some security.protocol asks for more than PLAINTEXT */
    const char *(*env)(const char *name);
};

/* Notes a problem of an entry; NULL: of the whole file, about `key`. */
void config_report(struct loader *l, const struct prop *p, enum config_severity severity,
                   const char *fmt, ...) PRINTF_LIKE(4, 5);
void config_report_key(struct loader *l, struct str key, enum config_severity severity,
                       const char *fmt, ...) PRINTF_LIKE(4, 5);

struct config_entry *config_entry_of(struct loader *l, const struct prop *p);

/* The entry whose key is the joined parts; NULL: none. */
struct prop *config_find(const struct loader *l, struct str a, struct str b, struct str c);

/* Reads an entry's value into its row's member of `into`, and notes in *origin where it came from.
 * A bad value is reported once, and leaves both alone. */
void config_take(struct loader *l, const struct prop *p, const struct opt_row *row, void *into,
                 uint32_t *origin);

/* "A->B" */
struct str config_flow_name(struct loader *l, struct str source, struct str target);

/* Which kind of Kafka client a role is, and its struct inside a flow. */
enum client_kind config_role_kind(enum config_role role);
const struct client_config *config_role_client_of(const struct flow_config *f,
                                                  enum config_role role);

/* A key that clusters inherit from the top level; and a client's row that has such a key. */
bool config_is_security_key(struct str key);
bool config_is_security_row(const struct opt_row *row);

void config_keys_place(struct loader *l);  /* rows of all entries; trailing notes cut off */
void config_keys_report(struct loader *l); /* unknown, misplaced and idle keys */
void config_flows_make(struct loader *l, const struct config_args *args);
void config_check(struct loader *l);

/* config_transforms.c; dotted: "A->B.", rest: what stands behind it in a key, of a transform or predicate that the flow
 * names; lists: the entries of `transforms` and `predicates`. */
bool config_is_transform(const struct loader *l, struct str dotted, struct str rest);
void config_collect_transforms(struct loader *l, struct str dotted, struct flow_config *f);
void config_check_transforms(struct loader *l, const struct flow_config *f, const struct prop *lists[2]);

#endif
