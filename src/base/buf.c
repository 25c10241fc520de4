/* buf.c -- growing byte buffer with a maximum.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/buf.h"

#include "base/alloc.h"
#include "base/must.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = max };
}

void buf_fini(struct buf *b)
{
    mem_free(b->p);
    *b = (struct buf){ .max = b->max };
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    b->bad = false;
}

/* Room for n more bytes and a NUL behind them. */
static bool reserve(struct buf *b, size_t n)
{
    size_t want;

    if (b->bad || n > b->max - MIN(b->n, b->max)) {
        b->bad = true;
        return false;
    }
    if (b->n + n + 1 <= b->room)
        return true;
    want = MAX(b->room * 2, 256);
    if (want > b->max)
        want = b->max + 1; /* no more than will ever be used */
    want = MAX(want, b->n + n + 1);
    b->p = mem_resize(b->p, want, 1);
    b->room = want;
    return true;
}

char *buf_grow(struct buf *b, size_t n)
{
    char *p;

    if (!reserve(b, n))
        return NULL;
    p = b->p + b->n;
    b->n += n;
    return p;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
    char *to = buf_grow(b, n);

    if (to && n)
        memcpy(to, p, n);
}

void buf_put_str(struct buf *b, struct str s)
{
    buf_put(b, s.p, s.n);
}

void buf_put_char(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_fmt(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    must(n >= 0);
    if (!reserve(b, (size_t)n))
        return;
    va_start(ap, fmt);
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void buf_shift(struct buf *b, size_t n)
{
    must(n <= b->n);
    if (n && b->n > n)
        memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}

const char *buf_cstr(struct buf *b)
{
    if (!reserve(b, 0))
        return "";
    b->p[b->n] = '\0';
    return b->p;
}
