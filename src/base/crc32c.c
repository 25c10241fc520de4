/* crc32c.c -- CRC-32C by ISA-L, and its patch by multiplication of polynomials over GF(2).
 * SPDX-License-Identifier: Apache-2.0
 *
 * A CRC register is the remainder of the data, as a polynomial over GF(2), modulo P. It is linear,
 * so the register of (old XOR new) tells how far two CRCs of equally long data are apart; n bytes
 * that did not change only multiply that difference by x^(8n) mod P. A register holds its
 * polynomial reflected: bit 31 is x^0 and bit 0 is x^31.
 */
#include "base/crc32c.h"

#include <isa-l/crc.h>

#define POLY  0x82f63b78u /* P without x^32, reflected */
#define CHUNK (1u << 30)  /* ISA-L takes the length as an int */

/* x^(8 * 2^k) mod P. P is (x + 1) times a primitive polynomial of degree 31, so the powers come
 * round after 2^31 - 1 steps: row 31 would be row 0 again, and so on for any length. */
#define POWERS 31
static const uint32_t power[POWERS] = {
    0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a, 0xb82be955, 0xb8fdb1e7,
    0x88e56f72, 0x74c360a4, 0xe4172b16, 0x0d65762a, 0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc,
    0xfe7740e6, 0xf946610b, 0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309, 0xbc1ac763, 0x7d0722cc,
    0xd289cabe, 0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000, 0x08000000,
};

#if defined(__x86_64__)
/* ISA-L 2.30 returns with the upper halves of the vector registers in use, which makes every SSE
 * instruction after it slow. */
__attribute__((target("avx"))) static void clean_vectors(void)
{
    __builtin_ia32_vzeroupper();
}
#endif

/* Runs the bare register, without the inversions at both ends. */
static uint32_t run(uint32_t reg, const unsigned char *p, size_t n)
{
    while (n > 0) {
        size_t part = MIN(n, CHUNK);

        /* The parameter lacks const; ISA-L does not write through it. */
        reg = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)part, reg);
        p += part;
        n -= part;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx"))
        clean_vectors();
#endif
    return reg;
}

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    return ~run(~crc, p, n);
}

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (int bit = 31; bit >= 0; bit--) {
        product ^= b & (0u - (a >> bit & 1));
        b = b >> 1 ^ (POLY & (0u - (b & 1)));
    }
    return product;
}

uint32_t crc32c_patch(uint32_t old_crc, const void *diff, size_t n_diff, size_t tail_size)
{
    uint32_t d = run(0, diff, n_diff);

    for (int k = 0; tail_size > 0; k++, tail_size >>= 1) {
        if (tail_size & 1)
            d = multiply(d, power[k % POWERS]);
    }
    return old_crc ^ d;
}
