/* limits.h -- limits that more than one module must agree on.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include "base/util.h"

#include <assert.h>

/* Usual bytes of a fetch answer: 512 KiB to 1 MiB are cheapest, the data is still in the cache when it leaves. */
#define FETCH_BYTES_USUAL (1 * MiB)
/* A pool block: a usual answer with its head. */
#define FETCH_BLOCK_SIZE (FETCH_BYTES_USUAL + 64 * KiB)
/* The least memory a worker can do its work with: one block on its way in, some on their way out. */
#define WORKER_POOL_LEAST (8 * FETCH_BLOCK_SIZE)

static_assert(FETCH_BLOCK_SIZE > FETCH_BYTES_USUAL, "a usual answer fits one block");

#endif
