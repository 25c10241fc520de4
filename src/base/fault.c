/* fault.c -- remembers one failure with its text, count and time.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/fault.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fault_set(struct fault *f, int64_t now_ms, const char *code, const char *fmt, ...)
{
    va_list ap;

    if (strncmp(f->code, code, sizeof(f->code) - 1) != 0) {
        snprintf(f->code, sizeof(f->code), "%s", code);
        f->since_ms = now_ms;
        f->count = 0;
    }
    f->count++;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
}

void fault_clear(struct fault *f)
{
    f->code[0] = '\0';
    f->text[0] = '\0';
    f->count = 0;
    f->since_ms = 0;
}

void fault_put_members(struct json *j, const struct fault *f)
{
    json_put_c(j, "code", f->code);
    json_put_c(j, "text", f->text);
    json_put_int(j, "since_ms", f->since_ms);
    json_put_uint(j, "count", f->count);
}

void fault_put(struct json *j, const struct fault *f)
{
    json_key(j, "fault");
    if (!f || !fault_is_set(f)) {
        json_null(j);
        return;
    }
    json_open(j, '{');
    fault_put_members(j, f);
    json_close(j, '}');
}
