/* director_limits.h -- the part of a flow's control side that asks what topics of the target take.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part of struct director (mirror/director_internal.h). Thread: control.
 */
#ifndef MIRROR_DIRECTOR_LIMITS_H
#define MIRROR_DIRECTOR_LIMITS_H

#include "base/list.h"
#include "kafka/call.h"
#include "loop/loop.h"
#include "wire/api.h"

struct director;

struct director_limits {
    struct list_node asks; /* struct limit_ask; the first is being answered */
    int32_t asks_n;
    struct task step;
    struct call call;
    struct arena arena;
    union {
        struct kafka_describe_configs_request configs;
        struct kafka_incremental_alter_configs_request alter;
    } request;
};

void director_limits_init(struct director_limits *l);
void director_limits_stop(struct director_limits *l);
void director_limits_fini(struct director_limits *l);
/* All workers will be told what the topic of the target takes; raise_to: its max.message.bytes is set to that before. */
void director_limits_ask(struct director *d, struct str topic, int64_t raise_to);

#endif
