/* topic_limits.h -- what a topic of the target takes, as its configs say.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Read on the control thread when a partition meets a reason to know (director_limits.c); a plain value. Any thread.
 */
#ifndef MIRROR_TOPIC_LIMITS_H
#define MIRROR_TOPIC_LIMITS_H

#include "wire/api.h"
#include "wire/compress.h"

struct topic_limits {
    bool known;         /* else the rest says "no limits" */
    int32_t kerr;       /* why not, or why a limit was not raised */
    int64_t batch_bytes; /* the largest batch: max.message.bytes, segment.bytes */
    int codec;          /* that the target's log has; -1: the producer's */
    int level;          /* of it, or COMPRESS_LEVEL_DEFAULT */
    bool append_time;   /* the target stamps; times do not matter */
    int64_t before_ms, after_ms; /* how far from now a record's time may be */
};

/* No limits, but those that brokers of our days have unless told otherwise. */
void topic_limits_init(struct topic_limits *l);
/* Takes them out of the answer for one topic. */
void topic_limits_take(struct topic_limits *l, const struct kafka_describe_configs_response_result *r);

#endif
