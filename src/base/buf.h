/* buf.h -- bytes that grow at the end, up to a maximum.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A buf that is full stays full and says so once at the end (`bad`), so no line that
 * writes needs a check. One owner, one thread.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

struct buf {
    char *p;
    size_t n;    /* bytes in use */
    size_t room; /* bytes allocated */
    size_t max;
    bool bad; /* something did not fit */
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory */

/* n writable bytes at the end, counted as used; NULL when full. */
char *buf_grow(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_put_str(struct buf *b, struct str s);
void buf_put_char(struct buf *b, char c);
void buf_fmt(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Drops the first n bytes. */
void buf_shift(struct buf *b, size_t n);

static inline struct str buf_str(const struct buf *b)
{
    return str_of(b->p ? b->p : "", b->n);
}

/* The bytes with a NUL behind them; valid until the next change. */
const char *buf_cstr(struct buf *b);

#endif
