/* apigen_emit.c -- writes api.h (structs) and api.c (rows).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "apigen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    "#ifndef WIRE_API_H\n"
    "#define WIRE_API_H\n\n"
    "#include \"wire/codec.h\"\n\n"
    "/* Whom a request is for. */\n"
    "enum api_to {\n"
    "    API_TO_ANY,\n"
    "    API_TO_CONTROLLER,\n"
    "    API_TO_LEADER,\n"
    "    API_TO_GROUP_COORDINATOR,\n"
    "    API_TO_TXN_COORDINATOR,\n"
    "};\n\n"
    "struct api {\n"
    "    const char *name;\n"
    "    int16_t key;\n"
    "    int16_t min, max; /* versions that we speak */\n"
    "    int16_t flexible; /* first flexible version; INT16_MAX: never */\n"
    "    const struct message *request, *response;\n"
    "    uint8_t to; /* enum api_to */\n"
    "    bool safe;  /* may be repeated when it is not known whether it was done */\n"
    "};\n\n"
    "/* The row of an API, or NULL for a key that we do not speak. */\n"
    "const struct api *api_find(int key);\n\n"
    "/* All rows by rising key. */\n"
    "extern const struct api *const api_all[];\n"
    "extern const size_t api_count;\n\n";

static void emit_member(FILE *out, const struct prop *f)
{
    const struct primitive *prim = primitive_find(f->type);
    const char *c = prim ? prim->c : format("struct %s", f->of->name);

    if (f->array)
        fprintf(out, "    struct {\n        %s *at;\n        int32_t n;\n    } %s;", c, f->name);
    else if (f->of && f->null_since >= 0)
        fprintf(out, "    %s *%s;", c, f->name);
    else
        fprintf(out, "    %s %s;", c, f->name);
    if (f->doc)
        fprintf(out, " /* %s */", f->doc);
    fputc('\n', out);
}

static void emit_structs(FILE *out, const struct half *h)
{
    for (int i = 0; i < h->defs_n; i++) {
        const struct def *d = h->defs[i];

        fprintf(out, "struct %s {\n", d->name);
        for (int k = 0; k < d->props_n; k++)
            emit_member(out, d->props[k]);
        if (!d->props_n) /* C has no empty structs */
            fprintf(out, "    char nothing;\n");
        fprintf(out, "};\nextern const struct message %s_msg;\n\n", d->name);
    }
}

void emit_header(FILE *out, const struct schema *s)
{
    fprintf(out,
            "/* api.h -- the structs of all APIs; made by tools/apigen from src/wire/api.\n"
            " * SPDX-License-Identifier: Apache-2.0\n */\n%s",
            head);
    fprintf(out, "enum api_key {\n");
    for (int i = 0; i < s->apis_n; i++)
        fprintf(out, "    API_%s = %d,\n", s->apis[i]->upper, s->apis[i]->key);
    fprintf(out, "};\n\n");
    for (int i = 0; i < s->apis_n; i++) {
        const struct api *a = s->apis[i];

        fprintf(out, "/* %s, versions %d-%d. %s */\n", a->name, a->min, a->max, a->doc);
        emit_structs(out, &a->request);
        emit_structs(out, &a->response);
    }
    fprintf(out, "#endif\n");
}

static const char *initial_of(const struct def *d);

/* The default as C has it, or NULL when it is zero, as a null string is. */
static const char *default_of(const struct prop *f)
{
    const char *v = f->initial ? f->initial : "0";
    long long n = strtoll(v, NULL, 0);

    if (!strcmp(v, "null"))
        return f->array ? "{ .n = -1 }" : NULL;
    if (f->array || (f->of && f->null_since >= 0))
        return NULL;
    if (f->of)
        return initial_of(f->of);
    if (!strcmp(f->type, "string") || !strcmp(f->type, "bytes"))
        return "{ .p = \"\" }";
    if (!strcmp(v, "true"))
        return v;
    if (n == INT32_MIN)
        return "INT32_MIN";
    return n ? format("INT64_C(%lld)", n) : NULL;
}

/* A struct with every field at its default. */
static const char *initial_of(const struct def *d)
{
    const char *text = "";

    for (int i = 0; i < d->props_n; i++) {
        const char *v = default_of(d->props[i]);

        if (v)
            text = format("%s%s.%s = %s", text, *text ? ", " : "", d->props[i]->name, v);
    }
    return format("{ %s }", *text ? text : "0");
}

static void emit_field(FILE *out, const struct def *d, const struct prop *f)
{
    const struct primitive *prim = primitive_find(f->type);
    const char *wire = prim ? prim->wire : "W_STRUCT";

    fprintf(out,
            "    { .name = \"%s\", .type = %s, .since = %d, .until = %d, .null_since = %d, .tag = "
            "%d,\n",
            f->name, f->array ? "W_ARRAY" : wire, f->since, f->until, f->null_since, f->tag);
    fprintf(out, "      .at = offsetof(struct %s, %s)", d->name, f->name);
    if (f->array)
        fprintf(out, ", .of_type = %s", wire);
    if (f->of)
        fprintf(out, ", .of = &%s_msg", f->of->name);
    if (f->ignorable)
        fprintf(out, ", .ignorable = true");
    fprintf(out, " },\n");
}

static void emit_messages(FILE *out, const struct api *a, const struct half *h)
{
    for (int i = 0; i < h->defs_n; i++) {
        const struct def *d = h->defs[i];
        const char *flexible = a->flexible > a->max ? "INT16_MAX" : format("%d", a->flexible);

        fprintf(out, "static const struct field %s_fields[] = {\n", d->name);
        for (int k = 0; k < d->props_n; k++)
            emit_field(out, d, d->props[k]);
        fprintf(out, "    { .type = W_END },\n};\nstatic const struct %s %s_initial = %s;\n",
                d->name, d->name, initial_of(d));
        fprintf(out, "const struct message %s_msg = {\n", d->name);
        fprintf(out, "    .name = \"%s\", .fields = %s_fields,\n", d->name + strlen("kafka_"),
                d->name);
        fprintf(out,
                "    .initial = &%s_initial, .size = sizeof(struct %s), .flexible = %s,\n};\n\n",
                d->name, d->name, flexible);
    }
}

static void emit_api(FILE *out, const struct api *a)
{
    const char *flexible = a->flexible > a->max ? "INT16_MAX" : format("%d", a->flexible);

    emit_messages(out, a, &a->request);
    emit_messages(out, a, &a->response);
    fprintf(out, "static const struct api %s = {\n", a->snake);
    fprintf(out, "    .name = \"%s\", .key = %d, .min = %d, .max = %d, .flexible = %s,\n", a->name,
            a->key, a->min, a->max, flexible);
    fprintf(out, "    .request = &%s_msg, .response = &%s_msg,\n", a->request.self->name,
            a->response.self->name);
    fprintf(out, "    .to = %s, .safe = %s,\n};\n\n", a->to, a->safe ? "true" : "false");
}

void emit_rows(FILE *out, const struct schema *s)
{
    fprintf(out, "/* api.c -- the rows of all APIs; made by tools/apigen from src/wire/api.\n"
                 " * SPDX-License-Identifier: Apache-2.0\n */\n"
                 "#include \"wire/api.h\"\n\n");
    for (int i = 0; i < s->apis_n; i++)
        emit_api(out, s->apis[i]);
    fprintf(out, "const struct api *const api_all[] = {\n");
    for (int i = 0; i < s->apis_n; i++)
        fprintf(out, "    &%s,\n", s->apis[i]->snake);
    fprintf(out, "};\nconst size_t api_count = %d;\n\n", s->apis_n);
    fprintf(out, "const struct api *api_find(int key)\n{\n    switch (key) {\n");
    for (int i = 0; i < s->apis_n; i++)
        fprintf(out, "    case %d: return &%s;\n", s->apis[i]->key, s->apis[i]->snake);
    fprintf(out, "    default: return NULL;\n    }\n}\n");
}
