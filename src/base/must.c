/* must.c -- prints the broken condition and aborts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>

void must_fail(const char *file, int line, const char *cond, const char *text)
{
    fprintf(stderr, "heliostat: bug: %s:%d: must(%s)%s%s\n", file, line, cond, text ? ": " : "",
            text ? text : "");
    abort();
}
