/* base64.c -- bytes as text, both ways.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *out, struct str bytes)
{
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t n = MIN(bytes.n - i, 3);
        uint32_t v = 0;
        char four[4];

        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)bytes.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= n ? digits[v >> (18 - 6 * k) & 63] : '=';
        buf_put(out, four, 4);
    }
}

bool base64_get(struct buf *out, struct str text)
{
    if (text.n % 4)
        return false;
    for (size_t i = 0; i < text.n; i += 4) {
        size_t n = 4;
        uint32_t v = 0;

        while (n > 2 && i + 4 == text.n && text.p[i + n - 1] == '=')
            n--;
        for (size_t k = 0; k < 4; k++) {
            const char *at = k < n && text.p[i + k] ? strchr(digits, text.p[i + k]) : NULL;

            if (k < n && !at)
                return false;
            v = v << 6 | (at ? (uint32_t)(at - digits) : 0);
        }
        for (size_t k = 0; k < n - 1; k++)
            buf_put_char(out, (char)(v >> (16 - 8 * k)));
    }
    return !out->bad;
}
