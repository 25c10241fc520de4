/* map.h -- uthash on our heap.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Include this instead of <uthash.h>: exhaustion stops the process, as with all control-plane memory.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/alloc.h"

#define uthash_malloc(size)  mem_new(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

#endif
