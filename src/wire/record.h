/* record.h -- reads and writes the records of a v2 batch, once they are decompressed.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Layout: kafka-relay-rules 1.3. A reader is strict about lengths: each record and its headers are
 * consumed exactly, and the area holds exactly the records that were announced. Strings point into
 * the area. Pure; any thread.
 */
#ifndef WIRE_RECORD_H
#define WIRE_RECORD_H

#include "base/err.h"
#include "wire/prim.h"

/* The shortest record: all lengths one byte, no key, no value, no headers. */
#define RECORD_SIZE_MIN 7

struct record {
    int8_t attributes;
    int64_t timestamp_delta;
    int32_t offset_delta;
    struct str key;     /* may be null */
    struct str value;   /* may be null: a tombstone */
    struct str headers; /* as on the wire, without the count */
    int32_t header_count;
};

struct record_reader {
    struct reader in;
    int32_t left; /* records that must still come */
};

/* Starts at the first of count records; area must be all of them. */
struct record_reader record_reader_of(struct str area, int32_t count);

/* Fills *out with the next record; false at the end and on bytes that are no record. */
bool record_next(struct record_reader *r, struct record *out);

/* After record_next gave false: E_MALFORMED unless everything was as announced. */
enum err record_reader_end(const struct record_reader *r) WARN_UNUSED;

struct record_header {
    struct str key;
    struct str value; /* may be null */
};

/* Takes the next header off *headers (start with a copy of record.headers); false when none is
 * left. record_next has checked them. */
bool record_header_next(struct str *headers, struct record_header *out);

void record_put_header(struct buf *b, const struct record_header *h);

/* Appends one record with its length. */
void record_put(struct buf *b, const struct record *r);

/* The bytes that record_put appends. */
size_t record_size(const struct record *r);

#endif
