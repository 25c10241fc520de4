/* formats.h -- the records of MirrorMaker 2's internal topics, byte for byte.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Offset syncs, checkpoints and heartbeats are a few big-endian fields; positions (the
 * mm2-offsets topic) are JSON as Kafka Connect writes it, where readers compare the raw bytes of
 * keys, so order, blanks and escapes matter. Pure; any thread.
 */
#ifndef MIRROR_FORMATS_H
#define MIRROR_FORMATS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* mm2-offset-syncs.<T>.internal: this source offset became that target offset. */
struct sync_record {
    struct str topic; /* name on the source */
    int32_t partition;
    int64_t upstream;
    int64_t downstream;
};

/* <S>.checkpoints.internal: a group's committed offset and its translation. */
struct checkpoint_record {
    struct str group;
    struct str topic; /* name on the target */
    int32_t partition;
    int64_t upstream;
    int64_t downstream;
    struct str metadata; /* null is written as empty: Java cannot read it otherwise */
};

/* heartbeats */
struct heartbeat_record {
    struct str source;
    struct str target;
    int64_t timestamp_ms;
};

/* The key of a position in mm2-offsets.<S>.internal. */
struct position_key {
    struct str connector; /* FORMATS_CONNECTOR in MirrorMaker's own mode, free under Connect */
    struct str cluster;   /* alias of the source */
    struct str topic;     /* name on the source */
    int32_t partition;
};

#define FORMATS_CONNECTOR "MirrorSourceConnector"

/* Each appends to both buffers. Strings beyond 32767 bytes make a buffer bad. */
void formats_encode_sync(const struct sync_record *r, struct buf *key, struct buf *value);
void formats_encode_checkpoint(const struct checkpoint_record *r, struct buf *key,
                               struct buf *value);
void formats_encode_heartbeat(const struct heartbeat_record *r, struct buf *key, struct buf *value);

/* Strings of *out point into the input. Bytes behind the fields are ignored, and so are version
 * numbers, as Java does. E_NOT_FOUND: the value is null, a tombstone; E_MALFORMED: anything else. */
enum err formats_decode_sync(struct str key, struct str value, struct sync_record *out) WARN_UNUSED;
enum err formats_decode_checkpoint(struct str key, struct str value,
                                   struct checkpoint_record *out) WARN_UNUSED;
enum err formats_decode_heartbeat(struct str key, struct str value,
                                  struct heartbeat_record *out) WARN_UNUSED;

/* ["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}] with Jackson's escapes. */
void formats_position_key(const struct position_key *k, struct buf *out);
/* {"offset":N}: N is the last offset known to be on the target. */
void formats_position_value(int64_t offset, struct buf *out);

/* Any JSON with the members we need, whatever their order and company. E_INVALID: not a position
 * of a source connector (the topic holds others too). Strings are copied into the arena. */
enum err formats_parse_position_key(struct str key, struct arena *a,
                                    struct position_key *out) WARN_UNUSED;
/* E_NOT_FOUND: null, the position was removed. E_INVALID: not {"offset":integer}. */
enum err formats_parse_position_value(struct str value, int64_t *offset) WARN_UNUSED;

#endif
