/* codec.h -- one engine that encodes, decodes, prints, compares and fills any message at any version.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Messages are described by rows that tools/apigen makes from the schemas in src/wire/api; see api.h
 * (generated) for the structs. Decoded strings and records point into the input bytes; arrays and structs come from
 * the arena, which bounds what a hostile answer can allocate. Any thread; no state.
 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "base/arena.h"
#include "base/err.h"
#include "base/rand.h"
#include "wire/prim.h"

enum wire_type {
    W_END,
    W_BOOL,    /* bool */
    W_I8,      /* int8_t */
    W_I16,     /* int16_t */
    W_U16,     /* uint16_t */
    W_I32,     /* int32_t */
    W_U32,     /* uint32_t */
    W_I64,     /* int64_t */
    W_F64,     /* double */
    W_UUID,    /* struct uuid */
    W_STRING,  /* struct str; null when .p is NULL and the field is nullable */
    W_BYTES,   /* struct str */
    W_RECORDS, /* struct records */
    W_STRUCT,  /* embedded struct, or pointer to one when nullable */
    W_ARRAY,   /* { T *at; int32_t n; } of struct or of a primitive; n == -1 is null */
};

struct uuid {
    unsigned char b[16];
};

/* The bytes of a records field: batches back to back. On encoding the two parts follow each other and
 * are *referenced*, not copied (see codec_encode); decoding sets only body. Both p NULL: null. */
struct records {
    struct str head;
    struct str body;
};

struct message;

struct field {
    const char *name;
    uint8_t type;    /* enum wire_type */
    uint8_t of_type; /* element type of an array */
    int16_t since;   /* first and last version that has the field */
    int16_t until;
    int16_t null_since;       /* first version in which null is allowed; -1: never */
    int16_t tag;              /* number in the tagged section, or -1 */
    uint32_t at;              /* offset in the struct */
    const struct message *of; /* of struct and array-of-struct fields */
    bool ignorable;           /* may be dropped silently at versions that lack it */
};

struct message {
    const char *name;
    const struct field *fields; /* ends with type W_END */
    const void *initial;        /* a struct with every field at its default */
    uint32_t size;              /* of the struct */
    int16_t flexible;           /* first flexible version; INT16_MAX: never */
};

/* A piece of an encoded request: for writev. */
struct piece {
    const void *p;
    size_t n;
};

/* Where an encoding goes: small bytes into `head`, and records fields by reference when `cuts` is
 * set. A cut says: after `at` bytes of head come the two parts of `r`. */
struct cut {
    size_t at;
    struct records r;
};
struct encoding {
    struct buf *head;
    struct cut *cuts; /* room for cuts_max; NULL: records are copied into head */
    size_t cuts_n, cuts_max;
};

/* Sets every field of *msg to its default (schema's, else zero; nullable-by-default: null). */
void codec_init(const struct message *m, void *msg);

/* E_LIMIT when the buf or the cuts are full, or a string is too long; E_INVALID when a field that may
 * not be null is; E_VERSION when a field that this version lacks, and that is not ignorable, is set to
 * something other than zero or its default. The buf's content is then of no use. */
enum err codec_encode(const struct message *m, int version, const void *msg,
                      struct encoding *to) WARN_UNUSED;

/* Fills *msg (whose size is m->size) from the reader. E_MALFORMED on anything wrong; the reader then
 * stands somewhere and *msg must not be used. Unknown tags are skipped. Fields absent at this version
 * get their default. E_LIMIT when the arena's maximum is too small. */
enum err codec_decode(const struct message *m, int version, struct reader *r, struct arena *a,
                      void *msg) WARN_UNUSED;

/* One line of text, {name=value ...}, for people and tests. Bytes as hex, at most 64 of them. */
void codec_print(const struct message *m, int version, const void *msg, struct buf *out);

/* Equal in all fields that exist at this version. */
bool codec_equal(const struct message *m, int version, const void *a, const void *b);

/* Random valid content, small; for tests. */
void codec_fill(const struct message *m, int version, struct rand *rand, struct arena *a,
                void *msg);

#endif
