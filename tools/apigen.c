/* apigen.c -- turns the schemas of src/wire/api into structs and constant rows, a page or a dump.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     apigen OUTDIR FILES...   writes OUTDIR/api.h and OUTDIR/api.c
 *     apigen --doc FILES...    prints docs/generated/apis.md
 *     apigen --dump FILES...   prints all rows as JSON, for tests/schema/compare.py
 */
#include "apigen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct schema schema;

static const struct primitive primitives[] = {
    { "bool", "W_BOOL", "bool" },         { "int8", "W_I8", "int8_t" },
    { "int16", "W_I16", "int16_t" },      { "uint16", "W_U16", "uint16_t" },
    { "int32", "W_I32", "int32_t" },      { "uint32", "W_U32", "uint32_t" },
    { "int64", "W_I64", "int64_t" },      { "float64", "W_F64", "double" },
    { "uuid", "W_UUID", "struct uuid" },  { "string", "W_STRING", "struct str" },
    { "bytes", "W_BYTES", "struct str" }, { "records", "W_RECORDS", "struct records" },
};

const struct primitive *primitive_find(const char *name)
{
    for (size_t i = 0; i < sizeof(primitives) / sizeof(primitives[0]); i++)
        if (!strcmp(primitives[i].name, name))
            return &primitives[i];
    return NULL;
}

/* Every allocation hangs on one list, so that leak checkers see it as in use. */
void *keep(size_t size)
{
    static struct link {
        struct link *next;
        _Alignas(16) char data[];
    } * all;
    struct link *l = calloc(1, sizeof(*l) + size);

    if (!l) {
        perror("apigen");
        exit(1);
    }
    l->next = all;
    all = l;
    return l->data;
}

char *format(const char *fmt, ...)
{
    va_list ap;
    char *p;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    p = keep((size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

void fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%s:%d: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static int by_key(const void *a, const void *b)
{
    return (*(struct api *const *)a)->key - (*(struct api *const *)b)->key;
}

static void read_all(char **paths, int n)
{
    for (int i = 0; i < n; i++) {
        struct api *a = parse_file(paths[i]);

        if (schema.apis_n == APIS_MAX)
            fail(paths[i], 1, "more than %d APIs", APIS_MAX);
        for (int k = 0; k < schema.apis_n; k++)
            if (schema.apis[k]->key == a->key)
                fail(paths[i], 1, "key %d is taken by %s", a->key, schema.apis[k]->file);
        schema.apis[schema.apis_n++] = a;
    }
    qsort(schema.apis, (size_t)schema.apis_n, sizeof(schema.apis[0]), by_key);
}

static void write_file(const char *folder, const char *name,
                       void (*emit)(FILE *out, const struct schema *s))
{
    char *path = format("%s/%s", folder, name);
    FILE *out = fopen(path, "w");

    if (!out) {
        perror(path);
        exit(1);
    }
    emit(out, &schema);
    if (fclose(out)) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: apigen OUTDIR|--doc|--dump FILES...\n");
        return 1;
    }
    read_all(argv + 2, argc - 2);
    if (!strcmp(argv[1], "--doc")) {
        emit_doc(stdout, &schema);
    } else if (!strcmp(argv[1], "--dump")) {
        emit_dump(stdout, &schema);
    } else {
        write_file(argv[1], "api.h", emit_header);
        write_file(argv[1], "api.c", emit_rows);
    }
    return 0;
}
