/* runner.c -- forks a world per seed, waits, and sums what happened.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A world is a process, so that one that fails takes no other with it. What it counts lies in memory that it shares
 * with its parent.
 */
#include "runner.h"

#include "base/log.h"
#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEED_SECONDS 300 /* of real time: more is a hang */
#define JOBS_MAX     64

struct slot {
    pid_t pid; /* 0: free */
    uint64_t seed;
    struct scenario_result *result; /* shared with the child */
};

static void no_log(const char *line, size_t n)
{
    (void)line;
    (void)n;
}

static void trace_log(const char *line, size_t n)
{
    sim_say("%.*s", (int)n - 1, line);
}

static void run(const struct scenario_options *o, uint64_t seed, struct scenario_result *out)
{
    tally_into(out->tallies);
    sim_trace(o->trace);
    log_setup(LOG_TEXT, o->trace ? LOG_DEBUG : LOG_ERROR, sim_wall_ms, o->trace ? trace_log : no_log);
    scenario_run(seed, o, out);
}

static void start(struct runner *r, struct slot *s, uint64_t seed)
{
    s->seed = seed;
    memset(s->result, 0, sizeof(*s->result));
    fflush(NULL);
    s->pid = fork();
    must_say(s->pid >= 0, "fork");
    if (s->pid > 0)
        return;
    alarm(SEED_SECONDS);
    if (r->quiet && !freopen("/dev/null", "w", stderr))
        exit(1);
    run(&r->options, seed, s->result);
    fflush(NULL);
    _exit(0);
}

static void tell_failure(const struct runner *r, const struct slot *s, int status)
{
    if (r->quiet)
        return;
    if (WIFSIGNALED(status))
        fprintf(stderr, "seed %llu died of signal %d\n", (unsigned long long)s->seed, WTERMSIG(status));
    fprintf(stderr, "repeat: sim --seed %llu --trace%s%s%s\n", (unsigned long long)s->seed,
            r->options.words[0] ? " " : "", r->options.words, r->options.trace ? "" : "   (or --shrink for --seed)");
}

/* Waits for one child; gives its slot. */
static struct slot *reap(struct runner *r, struct slot *slots)
{
    int status = 0;
    pid_t pid = wait(&status);

    for (int i = 0; i < r->jobs; i++) {
        struct slot *s = &slots[i];

        if (s->pid != pid)
            continue;
        s->pid = 0;
        r->ran++;
        for (int t = 0; t < TALLIES_N; t++)
            r->sums[t] += s->result->tallies[t];
        if (status != 0) {
            r->failed++;
            tell_failure(r, s, status);
        }
        return s;
    }
    return NULL;
}

void runner_seeds(struct runner *r, uint64_t from, uint64_t count)
{
    struct slot slots[JOBS_MAX] = { 0 };
    uint64_t next = from;
    int busy = 0;

    r->jobs = CLAMP(r->jobs, 1, JOBS_MAX);
    for (int i = 0; i < r->jobs; i++)
        slots[i].result = mmap(NULL, sizeof(*slots[i].result), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < r->jobs && next < from + count; i++, busy++)
        start(r, &slots[i], next++);
    while (busy > 0) {
        struct slot *s = reap(r, slots);

        if (!s)
            continue;
        if (next < from + count && !(r->first && r->failed))
            start(r, s, next++);
        else
            busy--;
    }
    for (int i = 0; i < r->jobs; i++)
        munmap(slots[i].result, sizeof(*slots[i].result));
}

/* --- shrinking --- */

/* Whether the seed fails with these of its faults; *planned gets how many it has. */
static bool fails(struct runner *r, uint64_t seed, const char *keep, int *planned)
{
    struct slot s = { 0 };
    int status = 0;
    bool failed;

    s.result = mmap(NULL, sizeof(*s.result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    r->options.keep = keep;
    start(r, &s, seed);
    failed = waitpid(s.pid, &status, 0) == s.pid && status != 0;
    *planned = s.result->faults_planned;
    munmap(s.result, sizeof(*s.result));
    return failed;
}

/* Takes away as many as it can, in pieces that get smaller. */
static void reduce(struct runner *r, uint64_t seed, char *keep, int n)
{
    int ignored;

    for (int piece = MAX(n / 2, 1); piece > 0; piece /= 2) {
        for (int at = 0; at < n; at += piece) {
            char tried[FAULTS_MAX];

            memcpy(tried, keep, sizeof(tried));
            memset(tried + at, 0, (size_t)MIN(piece, n - at));
            if (memcmp(tried, keep, sizeof(tried)) != 0 && fails(r, seed, tried, &ignored))
                memcpy(keep, tried, sizeof(tried));
        }
    }
}

int runner_shrink(struct runner *r, uint64_t seed)
{
    char keep[FAULTS_MAX];
    int planned, kept = 0;

    memset(keep, 1, sizeof(keep));
    r->quiet = true;
    if (!fails(r, seed, keep, &planned)) {
        printf("seed %llu does not fail\n", (unsigned long long)seed);
        return 1;
    }
    planned = MIN(planned, FAULTS_MAX);
    memset(keep + planned, 0, (size_t)(FAULTS_MAX - planned));
    reduce(r, seed, keep, planned);
    reduce(r, seed, keep, planned);
    printf("of %d faults these are enough: sim --seed %llu --trace%s%s --faults ", planned,
           (unsigned long long)seed, r->options.words[0] ? " " : "", r->options.words);
    for (int i = 0; i < planned; i++)
        if (keep[i])
            printf("%s%d", kept++ ? "," : "", i);
    printf("%s\n", kept ? "" : "none");
    return 0;
}
