/* null_log.h -- logs without storage: one batch that is served for ever, and ends that only count.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The one topic with content repeats a single batch under rising offsets. The base offset stands outside
 * of what the checksum covers, so only its eight bytes differ from one copy to the next. All other
 * topics take what is written and forget it: they start where they end. One thread.
 */
#ifndef NULL_LOG_H
#define NULL_LOG_H

#include "base/str.h"
#include "wire/codec.h"

#define NULL_TOPICS_MAX 64

struct null_part {
    int64_t start, end; /* offsets */
};

struct null_topic {
    struct str name;
    struct uuid id;
    bool full; /* has the batch in it */
    int32_t parts_n;
    struct null_part *parts;
};

/* The batch that is served. */
struct null_batch {
    const char *bytes;
    size_t size;
    int32_t records;
};

struct null_batch_options {
    size_t batch_bytes; /* about so many, before compression */
    size_t record_bytes;
    int codec;
};

struct null_log {
    struct null_topic topics[NULL_TOPICS_MAX];
    int32_t topics_n;
    struct null_batch batch;
};

/* Makes the batch; the options must allow for one. */
void null_log_init(struct null_log *log, const struct null_batch_options *o);
void null_log_fini(struct null_log *log);

/* NULL when there are too many, or parts_n is not positive. */
struct null_topic *null_log_add(struct null_log *log, struct str name, int32_t parts_n);
/* A topic whose partitions hold so many batches each. */
struct null_topic *null_log_add_full(struct null_log *log, struct str name, int32_t parts_n,
                                     int64_t batches);

/* By name, or by id where the name is null. NULL: there is none. */
struct null_topic *null_log_find(struct null_log *log, struct str name, const struct uuid *id);
/* NULL: it has no such partition. */
struct null_part *null_topic_part(struct null_topic *t, int32_t partition);

#endif
