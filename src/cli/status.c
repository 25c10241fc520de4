/* status.c -- the verb `status`: what a running heliostat says of itself, as a table.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exit codes: 0 all is well, 1 there are faults, 3 nobody answered. With --json the answer's bytes pass as they came.
 */
#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/http_get.h"
#include "cli/table.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_URL "http://127.0.0.1:8380"
#define ROWS_SHOWN 50         /* partitions, unless --all */
#define PARTITIONS_ASKED 50000 /* beyond this only the flows are asked for, unless --all */
#define RATE_MS 2000
#define NAME_LIMIT_S 10

struct status_args {
    const char *url;
    bool json, all, rate;
};

static void help(void)
{
    printf("usage: heliostat status [--url URL] [--json] [--rate] [--all]\n\n"
           "  --url URL   where heliostat.http.listen is, " DEFAULT_URL " by default\n"
           "  --json      print the answer of /v1/status\n"
           "  --rate      ask twice, and show records per second\n"
           "  --all       show every partition, not only the %d that are most behind\n\n"
           "Exit code 1: there are faults. 3: nobody answered.\n",
           ROWS_SHOWN);
}

/* 0: go on; else the exit code + 1. */
static int parse(int argc, char **argv, struct status_args *out)
{
    *out = (struct status_args){ .url = DEFAULT_URL };
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            help();
            return 1;
        }
        if (!strcmp(argv[i], "--json")) {
            out->json = true;
        } else if (!strcmp(argv[i], "--all")) {
            out->all = true;
        } else if (!strcmp(argv[i], "--rate")) {
            out->rate = true;
        } else if (!strncmp(argv[i], "--url=", 6)) {
            out->url = argv[i] + 6;
        } else if (!strcmp(argv[i], "--url") && i + 1 < argc) {
            out->url = argv[++i];
        } else {
            fprintf(stderr, "heliostat: %s: %s; see heliostat status --help\n", argv[i],
                    strcmp(argv[i], "--url") != 0 ? "there is no such option" : "a value is needed");
            return 3;
        }
    }
    return 0;
}

/* 0, or the exit code when there is no good answer; then it was said why. */
static int fetch(const struct status_args *args, const char *path, struct http_answer *a)
{
    if (!http_get(args->url, path, NAME_LIMIT_S, a)) {
        fprintf(stderr, "heliostat: --url %s: %s\n", args->url, a->why);
        return 2;
    }
    if (a->status == 0) {
        fprintf(stderr, "heliostat: %s: %s; is heliostat running there, and does heliostat.http.listen say so?\n",
                args->url, a->why);
        return 3;
    }
    if (a->status != 200 || a->body.bad) {
        fprintf(stderr, "heliostat: %s%s: HTTP status %d; is it heliostat that answers there?\n", args->url, path,
                a->status);
        return 3;
    }
    return 0;
}

/* The answer as JSON; NULL when there is none, with the exit code in *code. */
static json_t *ask(const struct status_args *args, const char *path, int *code)
{
    struct http_answer a;
    json_error_t error;
    json_t *root = NULL;

    *code = fetch(args, path, &a);
    if (*code == 0) {
        root = json_loadb(a.body.p ? a.body.p : "", a.body.n, 0, &error);
        if (!json_is_array(json_object_get(root, "flows"))) {
            fprintf(stderr, "heliostat: %s%s: the answer is not heliostat's\n", args->url, path);
            json_decref(root);
            root = NULL;
            *code = 3;
        }
    }
    buf_fini(&a.body);
    return root;
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "-";
}

static int64_t number_of(const json_t *o, const char *key)
{
    const json_t *n = json_object_get(o, key);

    return json_is_integer(n) ? json_integer_value(n) : -1;
}

static void put_time(struct table *t, int64_t wall_ms)
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    char text[40] = "-";

    if (wall_ms > 0 && gmtime_r(&s, &tm))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    table_put(t, "%s", text);
}

static void print_head(const json_t *s, struct buf *out)
{
    int64_t up_s = (number_of(s, "made_ms") - number_of(s, "start_time_ms")) / 1000;

    buf_fmt(out, "heliostat %s  instance %s  up %lld:%02lld:%02lld  %s\n", text_of(s, "version"),
            text_of(s, "instance"), (long long)up_s / 3600, (long long)up_s / 60 % 60, (long long)up_s % 60,
            json_is_true(json_object_get(s, "ready")) ? "ready" : "not ready");
}

/* Records per second of a flow between two answers; -1: not known. */
static int64_t rate_of(const json_t *before, const json_t *s, size_t flow)
{
    const json_t *a = json_array_get(json_object_get(before, "flows"), flow);
    const json_t *b = json_array_get(json_object_get(s, "flows"), flow);
    int64_t ms = number_of(s, "made_ms") - number_of(before, "made_ms");

    if (!a || !b || ms <= 0)
        return -1;
    return (number_of(b, "records") - number_of(a, "records")) * 1000 / ms;
}

static void print_flows(const json_t *s, const json_t *before, struct buf *out)
{
    struct table t;
    size_t i;
    json_t *f;

    table_init(&t, before ? "FLOW|STATE|DELIVERY|+TOPICS|+PARTITIONS|+LAG|+RECORDS|+BYTES|+FAULTS|+RECORDS/S"
                          : "FLOW|STATE|DELIVERY|+TOPICS|+PARTITIONS|+LAG|+RECORDS|+BYTES|+FAULTS");
    json_array_foreach(json_object_get(s, "flows"), i, f) {
        table_put(&t, "%s->%s", text_of(f, "source"), text_of(f, "target"));
        table_put(&t, "%s", text_of(f, "state"));
        table_put(&t, "%s", text_of(f, "delivery"));
        table_put_int(&t, number_of(f, "topics"));
        table_put_int(&t, number_of(f, "partitions_count"));
        table_put_int(&t, number_of(f, "lag_records"));
        table_put_int(&t, number_of(f, "records"));
        table_put_int(&t, number_of(f, "bytes"));
        table_put_int(&t, number_of(f, "faults"));
        if (before)
            table_put_int(&t, rate_of(before, s, i));
    }
    buf_put_char(out, '\n');
    table_print(&t, out);
    table_fini(&t);
}

static void print_clusters(const json_t *s, struct buf *out)
{
    struct table t;
    size_t i, k;
    json_t *c, *b;

    table_init(&t, "CLUSTER|ID|+BROKERS|+DOWN");
    json_array_foreach(json_object_get(s, "clusters"), i, c) {
        int64_t down = 0;

        json_array_foreach(json_object_get(c, "brokers"), k, b)
            down += !strcmp(text_of(b, "state"), "down");
        table_put(&t, "%s", text_of(c, "alias"));
        table_put(&t, "%s", text_of(c, "cluster_id"));
        table_put_int(&t, (int64_t)json_array_size(json_object_get(c, "brokers")));
        table_put_int(&t, down);
    }
    buf_put_char(out, '\n');
    table_print(&t, out);
    table_fini(&t);
}

struct row {
    const json_t *flow, *partition;
    int64_t lag;
    bool faulty;
};

/* What needs a look comes first. */
static int by_trouble(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->faulty != y->faulty)
        return y->faulty - x->faulty;
    return (y->lag > x->lag) - (y->lag < x->lag);
}

static struct row *list_rows(const json_t *s, size_t *n)
{
    struct row *rows;
    size_t i, k, room = 0;
    json_t *f, *p;

    json_array_foreach(json_object_get(s, "flows"), i, f)
        room += json_array_size(json_object_get(f, "partitions"));
    rows = mem_array(room, sizeof(*rows));
    *n = 0;
    json_array_foreach(json_object_get(s, "flows"), i, f)
        json_array_foreach(json_object_get(f, "partitions"), k, p)
            rows[(*n)++] = (struct row){ f, p, number_of(p, "lag_records"),
                                         json_is_object(json_object_get(p, "fault")) };
    return rows;
}

static void print_partitions(const json_t *s, bool all, struct buf *out)
{
    size_t n, shown;
    struct row *rows = list_rows(s, &n);
    struct table t;

    if (!all && n)
        qsort(rows, n, sizeof(*rows), by_trouble);
    shown = all ? n : MIN(n, ROWS_SHOWN);
    table_init(&t, "FLOW|TOPIC|+PARTITION|STATE|+NEXT OFFSET|+SOURCE END|+LAG|+LAG MS|TARGET TOPIC");
    for (size_t i = 0; i < shown; i++) {
        table_put(&t, "%s->%s", text_of(rows[i].flow, "source"), text_of(rows[i].flow, "target"));
        table_put(&t, "%s", text_of(rows[i].partition, "topic"));
        table_put_int(&t, number_of(rows[i].partition, "partition"));
        table_put(&t, "%s", text_of(rows[i].partition, "state"));
        table_put_int(&t, number_of(rows[i].partition, "next_offset"));
        table_put_int(&t, number_of(rows[i].partition, "source_end"));
        table_put_int(&t, rows[i].lag);
        table_put_int(&t, number_of(rows[i].partition, "lag_ms"));
        table_put(&t, "%s", text_of(rows[i].partition, "target_topic"));
    }
    if (n) {
        buf_put_char(out, '\n');
        table_print(&t, out);
    }
    if (shown < n)
        buf_fmt(out, "... and %zu more that are less behind (--all)\n", n - shown);
    table_fini(&t);
    mem_free(rows);
}

static void print_faults(const json_t *s, bool all, struct buf *out)
{
    const json_t *faults = json_object_get(s, "faults");
    struct table t;
    size_t i;
    json_t *f;

    table_init(&t, "FAULT|FLOW|TOPIC|+PARTITION|SINCE|+COUNT|TEXT");
    json_array_foreach(faults, i, f) {
        if (!all && i == ROWS_SHOWN)
            break;
        table_put(&t, "%s", text_of(f, "code"));
        table_put(&t, "%s", text_of(f, "flow"));
        table_put(&t, "%s", text_of(f, "topic"));
        table_put_int(&t, number_of(f, "partition"));
        put_time(&t, number_of(f, "since_ms"));
        table_put_int(&t, number_of(f, "count"));
        table_put(&t, "%s", text_of(f, "text"));
    }
    if (t.cells_n) {
        buf_put_char(out, '\n');
        table_print(&t, out);
    }
    if (!all && json_array_size(faults) > ROWS_SHOWN)
        buf_fmt(out, "... and %zu more faults (--all)\n", json_array_size(faults) - ROWS_SHOWN);
    table_fini(&t);
}

static void print_losses(const json_t *s, struct buf *out)
{
    struct table t;
    size_t i;
    json_t *l;

    table_init(&t, "LOST AT|FLOW|TOPIC|+PARTITION|+FROM|+TO|CAUSE");
    json_array_foreach(json_object_get(s, "losses"), i, l) {
        put_time(&t, number_of(l, "time_ms"));
        table_put(&t, "%s", text_of(l, "flow"));
        table_put(&t, "%s", text_of(l, "topic"));
        table_put_int(&t, number_of(l, "partition"));
        table_put_int(&t, number_of(l, "from_offset"));
        table_put_int(&t, number_of(l, "to_offset"));
        table_put(&t, "%s", text_of(l, "cause"));
    }
    if (t.cells_n) {
        buf_put_char(out, '\n');
        table_print(&t, out);
    }
    table_fini(&t);
}

static bool has_faults(const json_t *s)
{
    size_t i;
    json_t *f;

    json_array_foreach(json_object_get(s, "flows"), i, f)
        if (number_of(f, "faults") > 0)
            return true;
    return json_array_size(json_object_get(s, "faults")) > 0;
}

static int64_t count_partitions(const json_t *s)
{
    size_t i;
    json_t *f;
    int64_t n = 0;

    json_array_foreach(json_object_get(s, "flows"), i, f)
        n += number_of(f, "partitions_count");
    return n;
}

static void print_all(const json_t *s, const json_t *before, bool all)
{
    struct buf out;

    buf_init(&out, (size_t)GiB);
    print_head(s, &out);
    print_flows(s, before, &out);
    print_clusters(s, &out);
    print_partitions(s, all, &out);
    print_faults(s, all, &out);
    print_losses(s, &out);
    fwrite(out.p, 1, out.n, stdout);
    buf_fini(&out);
}

static int show_table(const struct status_args *args)
{
    int code;
    json_t *before = ask(args, "/v1/status?partitions=false", &code), *s;

    if (!before)
        return code;
    if (args->rate)
        usleep(RATE_MS * 1000); /* allowed: a command for people, which has no loop */
    if (!args->rate && !args->all && count_partitions(before) > PARTITIONS_ASKED)
        s = json_incref(before);
    else
        s = ask(args, args->all || count_partitions(before) <= PARTITIONS_ASKED
                          ? "/v1/status"
                          : "/v1/status?partitions=false", &code);
    if (s) {
        print_all(s, args->rate ? before : NULL, args->all);
        code = has_faults(s) ? 1 : 0;
    }
    json_decref(s);
    json_decref(before);
    return code;
}

static int show_json(const struct status_args *args)
{
    struct http_answer a;
    json_error_t error;
    json_t *s;
    int code = fetch(args, "/v1/status", &a);

    if (code == 0) {
        if (a.body.n)
            fwrite(a.body.p, 1, a.body.n, stdout);
        s = json_loadb(a.body.p ? a.body.p : "", a.body.n, 0, &error);
        code = !s ? 3 : has_faults(s) ? 1 : 0;
        json_decref(s);
    }
    buf_fini(&a.body);
    return code;
}

int status_main(int argc, char **argv)
{
    struct status_args args;
    int code = parse(argc, argv, &args);

    if (code)
        return code - 1;
    return args.json ? show_json(&args) : show_table(&args);
}
