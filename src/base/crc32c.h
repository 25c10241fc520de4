/* crc32c.h -- CRC-32C (Castagnoli): computed by ISA-L, and patched without reading the data.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Values are final ones, as they stand in a record batch: start with 0 and feed parts in order,
 * crc32c(crc32c(0, a, n), b, m) is the CRC of a followed by b. Pure; any thread.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include "base/util.h"

/* The CRC of n more bytes after those that gave crc. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

/* The CRC that data of CRC old_crc gets when n_diff of its bytes change: diff is old XOR new of
 * these bytes, and tail_size bytes follow them. Takes O(n_diff + log tail_size). */
uint32_t crc32c_patch(uint32_t old_crc, const void *diff, size_t n_diff, size_t tail_size);

#endif
