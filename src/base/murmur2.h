/* murmur2.h -- the hash that Kafka's default partitioner takes of a record's key.
 * SPDX-License-Identifier: Apache-2.0
 *
 * MurmurHash2 (public domain) with Kafka's seed. Pure; any thread.
 */
#ifndef BASE_MURMUR2_H
#define BASE_MURMUR2_H

#include "base/str.h"

int32_t murmur2_hash(struct str key); /* signed, as in Java */
/* Where the default partitioner puts a record with this key; partitions > 0. */
int32_t murmur2_partition(struct str key, int32_t partitions);

#endif
