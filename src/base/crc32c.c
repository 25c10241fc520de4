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
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define POLY  0x82f63b78u /* P without x^32, reflected */
#define CHUNK (1u << 30)  /* ISA-L takes the length as an int */

/* x^(8 * 2^k - 33) mod P: times() adds the 33. P is (x + 1) times a primitive polynomial of degree
 * 31, so the powers of x come round after 2^31 - 1: row 31 would be row 0 again, for any length. */
#define ROWS 31
static const uint32_t power[ROWS] = {
    0xbf818109, 0x780d5a4d, 0x05ec76f1, 0x00000001, 0x493c7d27, 0xba4fc28e, 0x9e4addf8, 0x0d3b6092,
    0xb9e02b86, 0xdd7e3b0c, 0x170076fa, 0xa51b6135, 0x82f89c77, 0x54a86326, 0x1dc403cc, 0x5ae703ab,
    0xc5013a36, 0xac2ac6dd, 0x9b4615a9, 0x688d1c61, 0xf6af14e6, 0xb6ffe386, 0xb717425b, 0x478b0d30,
    0x54cc62e5, 0x7b2102ee, 0x8a99adef, 0xa7568c8f, 0xd610d67e, 0x6b086b3f, 0xd94f3c0b,
};

#if defined(__x86_64__)
/* ISA-L 2.30 returns with the upper halves of the vector registers in use, which makes every SSE
 * instruction after it slow. */
__attribute__((target("avx"))) static void clean_vectors(void)
{
    _mm256_zeroupper();
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

/* a * b * x^33, which is what the two instructions give that do it in a few cycles. */
static uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (int bit = 31; bit >= 0; bit--) {
        product ^= b & (0u - (a >> bit & 1));
        b = b >> 1 ^ (POLY & (0u - (b & 1)));
    }
    for (int i = 0; i < 33; i++)
        product = product >> 1 ^ (POLY & (0u - (product & 1)));
    return product;
}

static uint32_t move(uint32_t d, size_t tail_size)
{
    for (int k = 0; tail_size > 0; k++, tail_size >>= 1) {
        if (tail_size & 1)
            d = times(d, power[k % ROWS]);
    }
    return d;
}

#if defined(__x86_64__)
/* The same at a tenth of the time (bench/micro.c). The product of two reflected polynomials comes
 * out shifted by one, and the CRC instruction multiplies by x^32 before it reduces. */
__attribute__((target("sse4.2,pclmul"))) static uint32_t move_fast(uint32_t d, size_t tail_size)
{
    for (int k = 0; tail_size > 0; k++, tail_size >>= 1) {
        __m128i a = _mm_cvtsi32_si128((int)d), b = _mm_cvtsi32_si128((int)power[k % ROWS]);

        if (tail_size & 1)
            d = (uint32_t)_mm_crc32_u64(0,
                                        (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(a, b, 0)));
    }
    return d;
}
#endif

uint32_t crc32c_patch(uint32_t old_crc, const void *diff, size_t n_diff, size_t tail_size)
{
    uint32_t d = run(0, diff, n_diff);

#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        return old_crc ^ move_fast(d, tail_size);
#endif
    return old_crc ^ move(d, tail_size);
}
