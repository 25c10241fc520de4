/* murmur2.c -- MurmurHash2 over little-endian words of four bytes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/murmur2.h"

#include "base/must.h"

static uint32_t load_le(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

int32_t murmur2_hash(struct str key)
{
    const uint32_t m = 0x5bd1e995;
    const unsigned char *p = (const unsigned char *)key.p;
    uint32_t h = 0x9747b28c ^ (uint32_t)key.n;
    size_t n = key.n;

    for (; n >= 4; p += 4, n -= 4) {
        uint32_t k = load_le(p) * m;

        h = h * m ^ (k ^ k >> 24) * m;
    }
    if (n > 0) {
        for (size_t i = 0; i < n; i++)
            h ^= (uint32_t)p[i] << (8 * i);
        h *= m;
    }
    h = (h ^ h >> 13) * m;
    return (int32_t)(h ^ h >> 15);
}

int32_t murmur2_partition(struct str key, int32_t partitions)
{
    must(partitions > 0);
    return (int32_t)((uint32_t)murmur2_hash(key) & INT32_MAX) % partitions;
}
