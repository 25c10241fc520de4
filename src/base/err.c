/* err.c -- names and texts of our error codes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"

#define YES true
#define NO false

static const struct {
    const char *name;
    bool again;
    const char *text;
} rows[] = {
#define ERR(name, again, text) { #name, again, text },
#include "base/err.def"
#undef ERR
};

const char *err_name(enum err e)
{
    return (unsigned)e < COUNT(rows) ? rows[e].name : "UNKNOWN";
}

const char *err_text(enum err e)
{
    return (unsigned)e < COUNT(rows) ? rows[e].text : "unknown error";
}

bool err_again(enum err e)
{
    return (unsigned)e < COUNT(rows) && rows[e].again;
}
