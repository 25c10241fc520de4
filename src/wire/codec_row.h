/* codec_row.h -- what the parts of the codec know of a row.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For codec*.c only. Pure; any thread.
 */
#ifndef WIRE_CODEC_ROW_H
#define WIRE_CODEC_ROW_H

#include "wire/codec.h"

/* Every array member looks like this, whatever it holds. */
struct array {
    void *at;
    int32_t n;
};

static inline bool row_exists(const struct field *f, int version)
{
    return version >= f->since && version <= f->until;
}

static inline bool row_may_be_null(const struct field *f, int version)
{
    return f->null_since >= 0 && version >= f->null_since;
}

/* A struct that may be null at some version is held by a pointer. */
static inline bool row_is_pointer(const struct field *f)
{
    return f->type == W_STRUCT && f->null_since >= 0;
}

/* Bytes that a value of this type takes in memory. */
static inline size_t row_width(int type, const struct message *of)
{
    static const uint8_t widths[] = {
        [W_BOOL] = sizeof(bool),
        [W_I8] = 1,
        [W_I16] = 2,
        [W_U16] = 2,
        [W_I32] = 4,
        [W_U32] = 4,
        [W_I64] = 8,
        [W_F64] = 8,
        [W_UUID] = sizeof(struct uuid),
        [W_STRING] = sizeof(struct str),
        [W_BYTES] = sizeof(struct str),
        [W_RECORDS] = sizeof(struct records),
        [W_ARRAY] = sizeof(struct array),
    };

    return type == W_STRUCT ? of->size : widths[type];
}

static inline void *row_at(const struct field *f, void *msg)
{
    return (char *)msg + f->at;
}

static inline const void *row_at_const(const struct field *f, const void *msg)
{
    return (const char *)msg + f->at;
}

/* The row of a tagged field, or NULL. */
static inline const struct field *row_find_tag(const struct message *m, int version, uint32_t tag)
{
    for (const struct field *f = m->fields; f->type; f++)
        if (f->tag >= 0 && (uint32_t)f->tag == tag && row_exists(f, version))
            return f;
    return NULL;
}

#endif
