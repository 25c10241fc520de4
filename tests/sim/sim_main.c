/* sim_main.c -- runs seeds and says how to repeat what failed.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   sim --seeds N [--from S] [--jobs J] [--first] [--calm | --corrupt | --only KIND,KIND...] [--sums FILE]
 *   sim --seed S [--trace] [--faults N,N... | --faults none] ...      some of the seed's faults
 *   sim --shrink S ...                                                few faults with which it fails still
 *
 * What --sums has counted in FILE counts too, and all goes there: many seeds can be run in pieces.
 */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[FAULT_KINDS] = {
#define KIND(id, name) name,
    FAULT_KINDS_ALL(KIND)
#undef KIND
};

/* All of those that are named happen. */
static unsigned read_kinds(const char *names)
{
    struct str rest = str_c(names), name;
    unsigned bits = 0;

    while (str_next(&rest, ',', &name)) {
        int kind = 0;

        while (kind < FAULT_KINDS && !str_eq(name, str_c(kinds[kind])))
            kind++;
        if (kind == FAULT_KINDS) {
            fprintf(stderr, "sim: no fault is called %.*s\n", STR_ARG(name));
            exit(2);
        }
        bits |= 1u << kind;
    }
    return bits;
}

static const char *read_faults(const char *numbers)
{
    static char keep[FAULTS_MAX];
    struct str rest = str_c(numbers), one;
    int64_t n;

    while (str_next(&rest, ',', &one))
        if (str_to_i64(one, &n) && n >= 0 && n < FAULTS_MAX)
            keep[n] = 1;
    return keep;
}

static uint64_t number(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}

static void note_words(struct scenario_options *o, const char *word, const char *value)
{
    size_t n = strlen(o->words);

    snprintf(o->words + n, sizeof(o->words) - n, "%s%s%s%s", n ? " " : "", word, value ? " " : "",
             value ? value : "");
}

static void print_sums(FILE *f, const struct runner *r, bool tallies)
{
    for (int i = 0; tallies && i < TALLIES_N; i++)
        fprintf(f, "%12llu  %s\n", (unsigned long long)r->sums[i], tally_text(i));
    fprintf(f, "%llu seeds, %llu failed\n", (unsigned long long)r->ran, (unsigned long long)r->failed);
}

/* The file is as print_sums writes it; one that is not there yet counts nothing. */
static void add_sums(struct runner *r, const char *path)
{
    FILE *f = fopen(path, "r");
    unsigned long long n, m;

    if (!f)
        return;
    for (int i = 0; i < TALLIES_N; i++) {
        if (fscanf(f, "%llu%*[^\n]", &n) != 1)
            n = 0;
        r->sums[i] += n;
    }
    if (fscanf(f, "%llu seeds, %llu failed", &n, &m) == 2)
        r->ran += n, r->failed += m;
    fclose(f);
}

static void write_sums(const struct runner *r, const char *path)
{
    FILE *f = fopen(path, "w");

    if (f)
        print_sums(f, r, true);
    if (!f || fclose(f) != 0)
        fprintf(stderr, "sim: %s cannot be written\n", path);
}

int main(int argc, char **argv)
{
    struct runner r = { .jobs = (int)sysconf(_SC_NPROCESSORS_ONLN) };
    struct scenario_options *o = &r.options;
    uint64_t from = 1, count = 1;
    bool shrink = false, one = false;
    const char *sums = NULL;

    o->faults = FAULTS_ANY;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (!strcmp(argv[i], "--seeds") && value)
            count = number(argv[++i]);
        else if (!strcmp(argv[i], "--from") && value)
            from = number(argv[++i]);
        else if (!strcmp(argv[i], "--seed") && value)
            from = number(argv[++i]), one = true;
        else if (!strcmp(argv[i], "--shrink") && value)
            from = number(argv[++i]), one = shrink = true;
        else if (!strcmp(argv[i], "--jobs") && value)
            r.jobs = (int)number(argv[++i]);
        else if (!strcmp(argv[i], "--sums") && value)
            sums = argv[++i];
        else if (!strcmp(argv[i], "--first"))
            r.first = true;
        else if (!strcmp(argv[i], "--trace"))
            o->trace = true;
        else if (!strcmp(argv[i], "--calm"))
            o->faults = 0, note_words(o, "--calm", NULL);
        else if (!strcmp(argv[i], "--corrupt"))
            o->corrupt = true, note_words(o, "--corrupt", NULL);
        else if (!strcmp(argv[i], "--only") && value)
            o->faults = read_kinds(argv[++i]), o->all = true, note_words(o, "--only", argv[i]);
        else if (!strcmp(argv[i], "--faults") && value)
            o->keep = read_faults(argv[++i]);
        else
            return fprintf(stderr, "sim: what is %s?\n", argv[i]), 2;
    }
    if (shrink)
        return runner_shrink(&r, from);
    runner_seeds(&r, from, count);
    if (sums) {
        add_sums(&r, sums);
        write_sums(&r, sums);
    }
    print_sums(stdout, &r, !one && !o->trace);
    return r.failed ? 1 : 0;
}
