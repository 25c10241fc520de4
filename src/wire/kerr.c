/* kerr.c -- looks up Kafka's error codes in kerr.def.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/kerr.h"

#include "wire/api.h"

#include <stdio.h>

#define FIRST (-1) /* the table's index is the code less this */

static const struct {
    const char *name;
    const char *text;
    enum kerr_class class;
} rows[] = {
#define KERR(code, name, class, text) [(code)-FIRST] = { #name, text, K_##class },
#define KERR_IN(api, name, class)
#define KERR_DO(name, advice)
#include "wire/kerr.def"
#undef KERR
#undef KERR_IN
#undef KERR_DO
};

static const struct {
    int api_key;
    int code;
    enum kerr_class class;
} overrides[] = {
#define KERR(code, name, class, text)
#define KERR_IN(api, name, class) { API_##api, KERR_##name, K_##class },
#define KERR_DO(name, advice)
#include "wire/kerr.def"
#undef KERR
#undef KERR_IN
#undef KERR_DO
};

static const struct {
    int code;
    const char *text;
} advice[] = {
#define KERR(code, name, class, text)
#define KERR_IN(api, name, class)
#define KERR_DO(name, advice) { KERR_##name, "; " advice },
#include "wire/kerr.def"
#undef KERR
#undef KERR_IN
#undef KERR_DO
};

static bool is_known(int code)
{
    return code >= FIRST && code - FIRST < (int)COUNT(rows) && rows[code - FIRST].name;
}

enum kerr_class kerr_class(int api_key, int code)
{
    if (code == KERR_NONE)
        return K_OK;
    for (size_t i = 0; i < COUNT(overrides); i++)
        if (overrides[i].api_key == api_key && overrides[i].code == code)
            return overrides[i].class;
    return is_known(code) ? rows[code - FIRST].class : K_FATAL;
}

const char *kerr_name(int code)
{
    static _Thread_local char unknown[24];

    if (is_known(code))
        return rows[code - FIRST].name;
    snprintf(unknown, sizeof(unknown), "ERROR_%d", code);
    return unknown;
}

const char *kerr_text(int code)
{
    return is_known(code) ? rows[code - FIRST].text : "an error that this program does not know";
}

const char *kerr_advice(int code)
{
    for (size_t i = 0; i < COUNT(advice); i++)
        if (advice[i].code == code)
            return advice[i].text;
    return "";
}
