/* fuzz_regex.c -- any bytes as a pattern, up to a zero byte, and what follows as a name.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/regex.h"

#include "base/must.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str pattern = str_of((const char *)data, size), name = STR("orders.eu-1");
    const char *zero = size ? memchr(data, 0, size) : NULL;
    struct regex_error why = { .text = "" };
    struct regex *re = NULL;

    if (zero) {
        pattern.n = (size_t)(zero - pattern.p);
        name = str_of(zero + 1, size - pattern.n - 1);
    }
    if (regex_compile(pattern, &re, &why)) {
        must(!re && why.text[0] && why.at <= pattern.n);
        return 0;
    }
    regex_match_full(re, name);
    regex_limits(re);
    regex_free(&re);
    must(!re);
    return 0;
}
