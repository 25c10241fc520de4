/* apigen.h -- what tools/apigen knows of a schema after reading it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is allocated once and kept until the program ends. The grammar is told at the top
 * of apigen_parse.c.
 */
#ifndef TOOLS_APIGEN_H
#define TOOLS_APIGEN_H

#include <stdbool.h>
#include <stdio.h>

#define APIS_MAX    128
#define FIELDS_MAX  40 /* of one struct */
#define STRUCTS_MAX 24 /* of one message, the message itself included */

struct def;

struct prop {
    const char *name;
    const char *type;    /* of the element, when it is an array; a struct's short name otherwise */
    const char *initial; /* NULL: none given */
    const char *doc;     /* NULL: none */
    struct def *of;      /* NULL: a primitive */
    bool array;
    bool ignorable;
    int since, until;
    int null_since; /* -1: never null */
    int tag;        /* -1: none */
    int line;
};

struct def {
    const char *name; /* "kafka_fetch_response_partition" */
    const char *nick; /* "partition"; "" for the message itself */
    struct prop *props[FIELDS_MAX];
    int props_n;
};

/* A request or a response: its structs, inner ones first, itself last. */
struct half {
    struct def *defs[STRUCTS_MAX];
    int defs_n;
    struct def *self;
};

struct api {
    const char *file;
    const char *name;            /* "ListOffsets" */
    const char *snake;           /* "list_offsets" */
    const char *upper;           /* "LIST_OFFSETS" */
    const char *to;              /* "API_TO_LEADER" */
    const char *doc;             /* comment lines above the request, joined by blanks */
    int key, min, max, flexible; /* flexible > max: never */
    bool safe;
    struct half request, response;
};

struct schema {
    struct api *apis[APIS_MAX]; /* by key */
    int apis_n;
};

/* What a primitive type is in C and in the rows. */
struct primitive {
    const char *name; /* "int32" */
    const char *wire; /* "W_I32" */
    const char *c;    /* "int32_t" */
};

const struct primitive *primitive_find(const char *name); /* NULL: none */

void *keep(size_t size);
char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints FILE:LINE: and the words, and ends the program. */
void fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

struct api *parse_file(const char *path);
void emit_header(FILE *out, const struct schema *s);
void emit_rows(FILE *out, const struct schema *s);
void emit_doc(FILE *out, const struct schema *s);
void emit_dump(FILE *out, const struct schema *s);

#endif
