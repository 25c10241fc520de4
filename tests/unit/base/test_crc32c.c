/* test_crc32c.c -- CRC-32C against known values and a bitwise reference; the patch against a full pass.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/crc32c.h"

#include "base/alloc.h"
#include "base/rand.h"
#include "unit/test.h"

static uint32_t reference(const unsigned char *p, size_t n)
{
    uint32_t reg = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        reg ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            reg = reg >> 1 ^ (reg & 1 ? 0x82f63b78u : 0);
    }
    return ~reg;
}

TEST(known_values)
{
    static const unsigned char zeros[32], ones[1] = { 0xff };

    CHECK_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
    CHECK_EQ(crc32c(0, "", 0), 0);
    CHECK_EQ(crc32c(0, zeros, sizeof(zeros)), 0x8a9136aau); /* RFC 3720, B.4 */
    CHECK_EQ(crc32c(0, ones, 1), reference(ones, 1));
}

TEST(every_length_and_start)
{
    unsigned char data[300];
    struct rand rand;

    rand_init(&rand, 1);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)rand_next(&rand);
    for (size_t from = 0; from < 16; from++) {
        for (size_t n = 0; n + from < sizeof(data); n++)
            CHECK_EQ(crc32c(0, data + from, n), reference(data + from, n));
    }
}

TEST(parts_in_order)
{
    unsigned char data[1000];
    struct rand rand;

    rand_init(&rand, 2);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)rand_next(&rand);
    for (int round = 0; round < 200; round++) {
        size_t cut = rand_below(&rand, sizeof(data) + 1);
        uint32_t crc = crc32c(0, data, cut);

        CHECK_EQ(crc32c(crc, data + cut, sizeof(data) - cut), crc32c(0, data, sizeof(data)));
    }
}

/* A patched CRC equals the CRC of the changed data, wherever the change is. */
TEST(patch_equals_full_pass)
{
    size_t size = 70000;
    unsigned char *data = mem_new(size);
    struct rand rand;

    rand_init(&rand, 3);
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)rand_next(&rand);
    for (int round = 0; round < 500; round++) {
        unsigned char diff[40];
        size_t n = rand_below(&rand, sizeof(diff) + 1);
        size_t whole = n + rand_below(&rand, size - n + 1);
        size_t at = rand_below(&rand, whole - n + 1);
        uint32_t old_crc = crc32c(0, data, whole);

        for (size_t i = 0; i < n; i++) {
            diff[i] = (unsigned char)rand_next(&rand);
            data[at + i] ^= diff[i];
        }
        CHECK_EQ(crc32c_patch(old_crc, diff, n, whole - at - n), crc32c(0, data, whole));
    }
    mem_free(data);
}

/* The rows of long tails, beyond what a test can allocate: a change of one bit in front of n bytes
 * twice is one in front of 2n bytes. */
TEST(patch_of_long_tails)
{
    const unsigned char bit[1] = { 0x80 };

    for (int k = 0; k < 40; k++) {
        size_t n = (size_t)1 << k;
        uint32_t once = crc32c_patch(0, bit, 1, n);
        /* The register of four bytes is what they hold, moved by their own 32 bits. */
        unsigned char moved[4] = { (unsigned char)once, (unsigned char)(once >> 8),
                                   (unsigned char)(once >> 16), (unsigned char)(once >> 24) };

        CHECK_EQ(crc32c_patch(0, moved, 4, n), crc32c_patch(0, bit, 1, 2 * n + 4));
    }
}

TESTS(RUN(known_values), RUN(every_length_and_start), RUN(parts_in_order),
      RUN(patch_equals_full_pass), RUN(patch_of_long_tails))
