/* translate.c -- the verb `translate`: what offsets of a partition became at the other side.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exit codes: 0 every answer is exact, or the next record; 1 one is not (a range, not copied yet), or the partition is
 * not copied there; 3 nobody answered.
 */
#include "cli/commands.h"
#include "cli/http_get.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define NAME_LIMIT_S 10

struct args {
    const char *url, *words[3];
    struct buf offsets;
    int words_n;
    bool json, to_source;
};

static void help(void)
{
    printf("usage: heliostat translate FLOW TOPIC PARTITION OFFSET... [--to-source] [--url URL] [--json]\n\n"
           "  FLOW         A->B, as in the file\n"
           "  OFFSET       of the source; the answer is the target's\n"
           "  --to-source  offsets are the target's, answers the source's\n"
           "  --url URL    where heliostat.http.listen is, http://127.0.0.1:8380 by default\n"
           "  --json       print the answer of /v1/offsets\n\n"
           "Exit code 1: an answer is a range or not copied yet, or the partition is not copied there. "
           "3: nobody answered.\n");
}

static void take_word(struct args *a, const char *word)
{
    if (a->words_n < 3) {
        a->words[a->words_n++] = word;
        return;
    }
    buf_fmt(&a->offsets, "%s%s", a->offsets.n ? "," : "", word);
}

/* 0: go on; else the exit code + 1. */
static int parse(int argc, char **argv, struct args *a)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            help();
            return 1;
        }
        if (!strcmp(argv[i], "--json")) {
            a->json = true;
        } else if (!strcmp(argv[i], "--to-source")) {
            a->to_source = true;
        } else if (!strncmp(argv[i], "--url=", 6)) {
            a->url = argv[i] + 6;
        } else if (!strcmp(argv[i], "--url") && i + 1 < argc) {
            a->url = argv[++i];
        } else if (argv[i][0] == '-') {
            fprintf(stderr, "heliostat: %s: there is no such option; see heliostat translate --help\n", argv[i]);
            return 3;
        } else {
            take_word(a, argv[i]);
        }
    }
    if (a->words_n == 3 && a->offsets.n)
        return 0;
    fprintf(stderr, "heliostat: translate needs FLOW TOPIC PARTITION OFFSET...; see heliostat translate --help\n");
    return 3;
}

static void put_word(struct buf *path, const char *name, const char *word)
{
    buf_fmt(path, "%s=", name);
    for (; *word; word++)
        buf_fmt(path, isalnum((unsigned char)*word) || strchr("-._,", *word) ? "%c" : "%%%02X", (unsigned char)*word);
}

static int64_t number(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static bool print_answer(const json_t *a)
{
    const char *kind = json_string_value(json_object_get(a, "kind"));

    kind = kind ? kind : "unknown";
    printf("%" PRId64 "\t", number(a, "offset"));
    if (!strcmp(kind, "exact"))
        printf("%" PRId64 "\n", number(a, "to"));
    else if (!strcmp(kind, "next"))
        printf("%" PRId64 "\tnext record, which is %" PRId64 "\n", number(a, "to"), number(a, "of"));
    else if (!strcmp(kind, "end"))
        printf("%" PRId64 "\tthe end of what is copied\n", number(a, "to"));
    else if (!strcmp(kind, "range"))
        printf("%" PRId64 "..%" PRId64 "\t%s\n", number(a, "to"), number(a, "to_last"),
               json_string_value(json_object_get(a, "reason")));
    else if (!strcmp(kind, "not-copied-yet"))
        printf("-\tnot copied yet; nearest is %" PRId64 " -> %" PRId64 ", %" PRId64 " short\n", number(a, "of"),
               number(a, "to"), number(a, "short_by"));
    else
        printf("-\tnothing is copied yet\n");
    return !strcmp(kind, "exact") || !strcmp(kind, "next") || !strcmp(kind, "end");
}

/* The exit code. */
static int show(const struct args *args, const struct http_answer *a)
{
    json_t *j = a->body.n ? json_loadb(a->body.p, a->body.n, 0, NULL) : NULL, *one;
    const char *error = json_string_value(json_object_get(j, "error"));
    int code = 0;
    size_t i;

    if (a->status != 200) {
        fprintf(stderr, "heliostat: %s\n", error ? error : "HTTP status other than 200; is it heliostat that answers there?");
        code = a->status == 400 ? 2 : a->status == 404 ? 1 : 3;
    } else if (args->json) {
        fwrite(a->body.p, 1, a->body.n, stdout);
    }
    json_array_foreach(json_object_get(j, "answers"), i, one)
        if (!args->json && !print_answer(one))
            code = 1;
    json_decref(j);
    return code;
}

int translate_main(int argc, char **argv)
{
    struct args args = { .url = "http://127.0.0.1:8380" };
    struct http_answer a = { 0 };
    struct buf path;
    int code;

    buf_init(&args.offsets, 64 * KiB);
    buf_init(&path, 128 * KiB);
    code = parse(argc, argv, &args) - 1;
    if (code < 0) {
        put_word(&path, "/v1/offsets?flow", args.words[0]);
        put_word(&path, "&topic", args.words[1]);
        put_word(&path, "&partition", args.words[2]);
        put_word(&path, "&offset", buf_cstr(&args.offsets));
        buf_put_str(&path, args.to_source ? STR("&direction=to-source") : STR(""));
        if (!http_get(args.url, buf_cstr(&path), NAME_LIMIT_S, &a)) {
            fprintf(stderr, "heliostat: --url %s: %s\n", args.url, a.why);
            code = 2;
        } else if (a.status == 0) {
            fprintf(stderr, "heliostat: %s: %s; is heliostat running there?\n", args.url, a.why);
            code = 3;
        } else {
            code = show(&args, &a);
        }
        buf_fini(&a.body);
    }
    buf_fini(&path);
    buf_fini(&args.offsets);
    return code;
}
