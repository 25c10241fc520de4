/* director_configs_int.h -- what the files of the comparison of topic configs share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_DIRECTOR_CONFIGS_INT_H
#define MIRROR_DIRECTOR_CONFIGS_INT_H

#include "mirror/director_internal.h"

#define RESOURCE_TOPIC 2

/* A topic of the portion. */
struct config_topic {
    struct str name, target_name;
    struct topic_config *source, *target; /* as both sides describe them */
    size_t source_n, target_n;
    struct topic_change *changes;
    size_t changes_n;
    size_t at;     /* singly: the entry under way */
    bool singly;   /* they were refused together */
    bool answered; /* the request under way, about this topic */
    bool done;
    int64_t differing; /* entries that stay different */
    struct fault fault;
};

/* director_configs.c */
struct director *director_configs_owner(struct director_configs *c);
struct mirrored *director_configs_find_mirrored(struct director *d, struct str name);
/* A topic of the portion by its name, or by its copy's. */
struct config_topic *director_configs_find_topic(struct director_configs *c, struct str name, bool target);
/* Sends c->call with c->request; a start that fails is tried later. */
void director_configs_send(struct director_configs *c, struct cluster *cl, int api, enum route_kind kind,
                  void (*done)(struct call *call));
/* The portion is tried again from its beginning: what was done in it is not different any more. */
void director_configs_try_later(struct director_configs *c, const char *code, const char *what, const char *text);
/* Takes a bad outcome of the call; true when there was one. */
bool director_configs_call_failed(struct director_configs *c, const char *what);
/* Shows at the topic what cannot be made equal (the first), and logs it (each). config null: all of them. */
void director_configs_refuse(struct director_configs *c, struct config_topic *t, const char *code, struct str config,
                    struct str text);
void director_configs_end_portion(struct director_configs *c);

/* director_configs_alter.c */
/* The next request with changes of the portion, or its end. */
void director_configs_alter_portion(struct director_configs *c);

#endif
