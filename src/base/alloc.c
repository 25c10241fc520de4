/* alloc.c -- heap access that stops the process when memory runs out.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/alloc.h"

#include "base/must.h"

#include <stdlib.h>
#include <string.h>

void *mem_new(size_t size)
{
    void *p = calloc(1, size ? size : 1);

    must_say(p, "out of memory");
    return p;
}

void *mem_array(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);

    must_say(p, "out of memory");
    return p;
}

void *mem_resize(void *p, size_t count, size_t size)
{
    void *q = reallocarray(p, count ? count : 1, size ? size : 1);

    must_say(q, "out of memory");
    return q;
}

char *mem_copy_str(const char *p, size_t n)
{
    char *q = mem_new(n + 1);

    if (n)
        memcpy(q, p, n);
    return q;
}

void *mem_try(size_t size)
{
    return malloc(size ? size : 1);
}

void mem_free(void *p)
{
    free(p);
}
