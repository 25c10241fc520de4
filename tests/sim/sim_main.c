/* sim_main.c -- runs seeds, each in a process of its own, and says how to repeat what failed.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   sim --seeds N [--from S] [--calm | --corrupt | --only KIND,KIND...]
 *   sim --seed S [--trace] ...
 */
#include "base/log.h"
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEED_SECONDS 120 /* of real time: more is a hang */

struct options {
    uint64_t from, count;
    bool trace, corrupt;
    const char *only; /* kinds of faults; NULL: any, as the seed decides */
    unsigned faults;
};

static const char *const kinds[FAULT_KINDS] = {
    "cut", "cut-all", "move-leader", "restart", "slow", "silent", "throttle", "replicas",
    "kill", "clock", "topics", "payload", "old", "stop",
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

static void no_log(const char *line, size_t n)
{
    (void)line;
    (void)n;
}

static void trace_log(const char *line, size_t n)
{
    sim_say("%.*s", (int)n - 1, line);
}

static void run(const struct options *o, uint64_t seed)
{
    sim_trace(o->trace);
    log_setup(LOG_TEXT, o->trace ? LOG_DEBUG : LOG_ERROR, sim_wall_ms, o->trace ? trace_log : no_log);
    scenario_run(seed, o->faults, o->only != NULL, o->corrupt);
}

/* A world is a process, so that one that fails takes no other with it. */
static bool run_apart(const struct options *o, uint64_t seed)
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        alarm(SEED_SECONDS);
        run(o, seed);
        fflush(NULL);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return false;
    if (status == 0)
        return true;
    if (WIFSIGNALED(status))
        fprintf(stderr, "seed %llu died of signal %d\n", (unsigned long long)seed, WTERMSIG(status));
    fprintf(stderr, "repeat: sim --seed %llu --trace%s%s%s%s\n", (unsigned long long)seed,
            o->corrupt ? " --corrupt" : "", o->faults ? "" : " --calm", o->only ? " --only " : "",
            o->only ? o->only : "");
    return false;
}

static uint64_t number(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    struct options o = { .from = 1, .count = 1, .faults = (1u << FAULT_KINDS) - 1 };
    uint64_t failed = 0;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seeds"))
            o.count = number(argv[++i]);
        else if (!strcmp(argv[i], "--from") || !strcmp(argv[i], "--seed"))
            o.from = number(argv[++i]);
        else if (!strcmp(argv[i], "--trace"))
            o.trace = true;
        else if (!strcmp(argv[i], "--calm"))
            o.faults = 0;
        else if (!strcmp(argv[i], "--corrupt"))
            o.corrupt = true;
        else if (!strcmp(argv[i], "--only") && argv[i + 1])
            o.faults = read_kinds(o.only = argv[++i]);
        else
            return fprintf(stderr, "sim: what is %s?\n", argv[i]), 2;
    }
    for (uint64_t seed = o.from; seed < o.from + o.count; seed++)
        failed += !run_apart(&o, seed);
    printf("%llu seeds, %llu failed\n", (unsigned long long)o.count, (unsigned long long)failed);
    return failed ? 1 : 0;
}
