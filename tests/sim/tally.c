/* tally.c -- one row of numbers per run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tally.h"

#include <stddef.h>

static uint64_t *into;

static const char *const texts[] = {
#define T(name, what) what,
    TALLIES(T)
#undef T
};

void tally_into(uint64_t *counts)
{
    into = counts;
}

void tally(enum tally t)
{
    if (into)
        into[t]++;
}

const char *tally_text(enum tally t)
{
    return texts[t];
}
