/* file_args.c -- reads the command line of run and check.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "daemon/file_args.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

static void help(const char *verb, bool check)
{
    printf("usage: heliostat %s FILE [--clusters A,B] [--set key=value]...%s\n\n"
           "  FILE                an mm2.properties file, as MirrorMaker 2 reads it\n"
           "  --clusters A,B      only flows whose target is named\n"
           "  --set key=value     one more line of the file, stronger than the file\n",
           verb, check ? " [--offline] [--json]" : "");
    if (check)
        printf("  --offline           only read the file, connect to nothing\n"
               "  --json              print one JSON object\n");
}

/* The value of an option that is at *i, as --name value or --name=value; NULL when it is not that option, and empty
 * when nothing follows. */
static const char *value_of(int argc, char **argv, int *i, const char *name)
{
    size_t n = strlen(name);

    if (strncmp(argv[*i], name, n) != 0)
        return NULL;
    if (argv[*i][n] == '=')
        return argv[*i] + n + 1;
    if (argv[*i][n] != '\0')
        return NULL;
    return *i + 1 < argc ? argv[++*i] : "";
}

static int wrong(const char *text, const char *what)
{
    fprintf(stderr, "heliostat: %s%s%s\n", text, what ? ": " : "", what ? what : "");
    return 3; /* exit code 2 */
}

/* What is wrong with the text behind --set; NULL: nothing. */
static const char *set_fault(const char *v)
{
    if (!*v)
        return "--set needs key=value";
    if (!strchr(v, '='))
        return "--set takes key=value, and there is no '='";
    if (v[strspn(v, " \t")] == '=')
        return "--set takes key=value, and there is no key before the '='";
    return NULL;
}

/* Takes the aliases, as MirrorMaker several words when they come behind the FILE; false: there are none. */
static bool take_clusters(int argc, char **argv, int *i, const char *v, struct file_args *out)
{
    struct config_args *c = &out->config;
    bool any = v[strspn(v, ", \t")] != '\0';

    out->clusters[c->cluster_count++] = str_c(v);
    while (any && c->path.p && *i + 1 < argc && argv[*i + 1][0] != '-')
        out->clusters[c->cluster_count++] = str_c(argv[++*i]);
    return any;
}

int file_args_parse(int argc, char **argv, bool allow_check, struct file_args *out)
{
    struct config_args *c = &out->config;
    const char *v;

    memset(out, 0, sizeof(*out));
    out->sets = mem_array((size_t)argc, sizeof(*out->sets));
    out->clusters = mem_array((size_t)argc, sizeof(*out->clusters));
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            help(argv[0], allow_check);
            return 1;
        }
        if ((v = value_of(argc, argv, &i, "--set"))) {
            if (set_fault(v))
                return wrong(set_fault(v), *v ? v : NULL);
            out->sets[c->set_count++] = str_c(v);
        } else if ((v = value_of(argc, argv, &i, "--clusters"))) {
            if (!take_clusters(argc, argv, &i, v, out))
                return wrong("--clusters names no cluster; write --clusters A,B", NULL);
        } else if (allow_check && !strcmp(argv[i], "--offline")) {
            out->offline = true;
        } else if (allow_check && !strcmp(argv[i], "--json")) {
            out->json = true;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            return wrong("there is no such option", argv[i]);
        } else if (c->path.p) {
            return wrong("one FILE only", argv[i]);
        } else {
            c->path = str_c(argv[i]);
        }
    }
    if (!c->path.p)
        return wrong("a FILE is needed; see --help", NULL);
    c->sets = out->sets;
    c->clusters = out->clusters;
    return 0;
}

void file_args_fini(struct file_args *a)
{
    mem_free(a->sets);
    mem_free(a->clusters);
    a->sets = a->clusters = NULL;
}

void file_args_print_problems(const struct config *c)
{
    struct buf line;

    buf_init(&line, 64 * KiB);
    for (size_t i = 0; i < c->problem_count; i++) {
        buf_clear(&line);
        config_problem_format(&c->problems[i], &line);
        fprintf(stderr, "%s\n", buf_cstr(&line));
    }
    buf_fini(&line);
}
