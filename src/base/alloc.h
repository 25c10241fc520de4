/* alloc.h -- the only door to the heap.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Control-plane memory: exhaustion stops the process. Payload memory comes from
 * base/pool.h instead, which may say "not now". Any thread.
 */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include "base/util.h"

/* Zeroed memory; never NULL. Free with mem_free. */
void *mem_new(size_t size);

/* Zeroed array; stops the process when count * size overflows. */
void *mem_array(size_t count, size_t size);

/* Resizes to count elements of size; new bytes are not zeroed. p may be NULL. */
void *mem_resize(void *p, size_t count, size_t size);

/* A NUL-terminated copy of n bytes. */
char *mem_copy_str(const char *p, size_t n);

/* May give NULL: for memory whose absence is an answer (payload blocks). Not zeroed. */
void *mem_try(size_t size);

void mem_free(void *p);

#endif
