/* limits.h -- limits that more than one module must agree on.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include "base/util.h"

#include <assert.h>

/* Usual bytes of a fetch answer. Larger ones have fewer system calls, but their data is in the processor's nearest
 * cache no more when it leaves, which costs more (docs/benchmarks.md). */
#define FETCH_BYTES_USUAL (512 * KiB)
/* A pool block: a usual answer with its head. */
#define FETCH_BLOCK_SIZE (FETCH_BYTES_USUAL + 64 * KiB)
/* The least memory a worker can do its work with: one block on its way in, some on their way out. */
#define WORKER_POOL_LEAST (16 * FETCH_BLOCK_SIZE)

static_assert(FETCH_BLOCK_SIZE > FETCH_BYTES_USUAL, "a usual answer fits one block");

#endif
