/* legacy.h -- messages of the formats v0 and v1, which Kafka wrote before 0.11, as records of a v2 batch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An entry of such a log is one message, or a wrapper whose value holds a whole set of messages, compressed. Layout:
 * kafka-relay-rules 1.5. Logs keep these formats for ever, and brokers of every version still give them out. What comes
 * of an entry is what a Java consumer sees of it. Pure; one owner.
 */
#ifndef WIRE_LEGACY_H
#define WIRE_LEGACY_H

#include "wire/compress.h"

/* Whether the checksum of a whole entry (BATCH_LEGACY, size bytes) holds. */
bool legacy_crc_ok(const char *p, size_t size);

/* Appends the messages of a whole entry to out, as the records of a batch without compression whose header would be *head
 * (codec: the wrapper's; no producer, leader epoch -1, size: of the entry). Offsets are those of the source; the time of a
 * v0 message is -1; in a wrapper with append time all have the wrapper's. scratch is for what unpacking needs. On failure
 * out is as before: E_MALFORMED, E_CODEC, E_LIMIT (out->max or scratch->max), E_NO_MEMORY. */
enum err legacy_unpack(struct compress *c, const char *p, size_t size, struct buf *scratch, struct buf *out,
                       struct batch *head) WARN_UNUSED;

#endif
