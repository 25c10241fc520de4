/* apigen_doc.c -- prints the page docs/generated/apis.md, and the rows as JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "apigen.h"

#include <string.h>

/* "API_TO_TXN_COORDINATOR" as "txn coordinator". */
static const char *to_words(const char *to)
{
    char *out = format("%s", to + strlen("API_TO_"));

    for (char *p = out; *p; p++)
        *p = *p == '_' ? ' ' : (char)(*p | 0x20);
    return out;
}

void emit_doc(FILE *out, const struct schema *s)
{
    fprintf(
        out,
        "# Kafka APIs that Heliostat speaks\n\n"
        "Made by `apigen --doc src/wire/api/*.api`; do not edit. \"Flexible\" is the first version "
        "with compact lengths and\ntagged fields; \"repeat\" tells whether the request may be sent "
        "again when its answer was lost.\n\n"
        "| key | API | versions | flexible | to | repeat | what for |\n"
        "|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < s->apis_n; i++) {
        const struct api *a = s->apis[i];

        fprintf(out, "| %d | %s | %d-%d | %s | %s | %s | %s |\n", a->key, a->name, a->min, a->max,
                a->flexible > a->max ? "never" : format("%d", a->flexible), to_words(a->to),
                a->safe ? "yes" : "no", a->doc);
    }
}

/* Shared structs are printed wherever they are used: the reader needs no look-up. */
static void dump_fields(FILE *out, const struct def *d)
{
    fprintf(out, "[");
    for (int i = 0; i < d->props_n; i++) {
        const struct prop *f = d->props[i];

        fprintf(out, "%s\n{\"name\": \"%s\", \"type\": \"%s%s\", \"since\": %d, \"until\": %d",
                i ? "," : "", f->name, f->array ? "[]" : "", f->of ? "struct" : f->type, f->since,
                f->until);
        fprintf(out, ", \"null_since\": %d, \"tag\": %d", f->null_since, f->tag);
        if (f->initial)
            fprintf(out, ", \"default\": \"%s\"", f->initial);
        if (f->ignorable)
            fprintf(out, ", \"ignorable\": true");
        if (f->of) {
            fprintf(out, ", \"fields\": ");
            dump_fields(out, f->of);
        }
        fprintf(out, "}");
    }
    fprintf(out, "]");
}

void emit_dump(FILE *out, const struct schema *s)
{
    fprintf(out, "[");
    for (int i = 0; i < s->apis_n; i++) {
        const struct api *a = s->apis[i];

        fprintf(out, "%s\n{\"name\": \"%s\", \"key\": %d, \"min\": %d, \"max\": %d", i ? "," : "",
                a->name, a->key, a->min, a->max);
        if (a->flexible <= a->max)
            fprintf(out, ", \"flexible\": %d", a->flexible);
        fprintf(out, ",\n\"request\": ");
        dump_fields(out, a->request.self);
        fprintf(out, ",\n\"response\": ");
        dump_fields(out, a->response.self);
        fprintf(out, "}");
    }
    fprintf(out, "]\n");
}
