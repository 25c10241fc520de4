/* gendocs.c -- writes docs/generated/{options,events,errors,metrics,http,cli}.md from the tables.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     gendocs FOLDER
 *
 * The pages cannot drift: a test compares what this writes with what is committed.
 */
#include "base/metric.h"
#include "daemon/config.h"
#include "serve/routes.h"
#include "wire/kerr.h"

#include <stdio.h>

#define PAGE_MAX (4 * MiB)

static void options_page(struct buf *out)
{
    buf_put_str(
        out, STR("# Options\n\nMade by `gendocs` from `src/**/*.opt`; do not edit. A and B stand "
                 "for the aliases of a "
                 "source and a target.\n\"seconds, -1: off\": negative turns the work off.\n\n"));
    opt_page(&config_opts, out);
    opt_page(&flow_opts, out);
    opt_page(&client_opts, out);
}

static void put_cell(struct buf *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '|')
            buf_put_char(out, '\\');
        buf_put_char(out, *p);
    }
    buf_put_str(out, STR(" | "));
}

static void events_page(struct buf *out)
{
    buf_put_str(out,
                STR("# Events of the log\n\nMade by `gendocs` from `src/base/event.def`; do not "
                    "edit. The first two fields "
                    "say who; lines that agree in them\nare limited to a burst a minute.\n\n"
                    "| event | level | fields | meaning | what to do |\n|---|---|---|---|---|\n"));
#define EVENT(id, name, level, fields, means, advice)                                                \
    buf_put_str(out, STR("| `" name "` | " #level " | " fields " | "));                            \
    put_cell(out, means);                                                                          \
    put_cell(out, advice);                                                                           \
    buf_put_str(out, STR("\n"));
#include "base/event.def"
#undef EVENT
}

static void errors_page(struct buf *out)
{
    buf_put_str(out, STR("# Errors\n\nMade by `gendocs` from `src/base/err.def` and "
                         "`src/wire/kerr.def`; do not edit.\n\n"
                         "## Our own\n\n| name | may pass by itself | meaning |\n|---|---|---|\n"));
    for (int e = 1; e < E_COUNT; e++)
        buf_fmt(out, "| `%s` | %s | %s |\n", err_name((enum err)e),
                err_again((enum err)e) ? "yes" : "no", err_text((enum err)e));
    buf_put_str(out, STR("\n## Kafka's\n\nThe class decides what happens next (`src/wire/kerr.h`); "
                         "an API in brackets reacts in "
                         "its own way.\n\n| code | name | class | meaning |\n|---|---|---|---|\n"));
#define KERR(code, name, class, text)                                                              \
    buf_fmt(out, "| %d | `%s` | %s | %s |\n", code, #name, #class, text);
#define KERR_IN(api, name, class) buf_fmt(out, "| | `%s` (%s) | %s | |\n", #name, #api, #class);
#define KERR_DO(name, advice)
#include "wire/kerr.def"
#undef KERR
#undef KERR_IN
#undef KERR_DO
    buf_put_str(out, STR("\n## What to do\n\nStands behind the text of a fault.\n\n| name | what to do |\n|---|---|\n"));
#define KERR(code, name, class, text)
#define KERR_IN(api, name, class)
#define KERR_DO(name, advice) buf_fmt(out, "| `%s` | %s |\n", #name, advice);
#include "wire/kerr.def"
#undef KERR
#undef KERR_IN
#undef KERR_DO
}

static void metrics_page(struct buf *out)
{
    buf_put_str(out, STR("# Metrics\n\nMade by `gendocs` from `src/base/metric.def`; do not edit. "
                         "At `GET /metrics`, in the text "
                         "format of Prometheus.\n\n"));
    metric_page(out);
}

static void http_page(struct buf *out)
{
    size_t n;
    const struct route_row *rows = routes_all(&n);

    buf_put_str(out, STR("# HTTP\n\nMade by `gendocs` from `src/serve/routes.def`; do not edit. Where it listens: "
                         "`heliostat.http.listen`.\nOther methods are answered with 405, other paths with 404, both "
                         "in JSON: `{\"error\",\"status\"}`.\n\n| method | path | answer |\n|---|---|---|\n"));
    for (size_t i = 0; i < n; i++) {
        buf_fmt(out, "| %s | `%s` | ", rows[i].method, rows[i].path);
        put_cell(out, rows[i].doc);
        buf_put_str(out, STR("\n"));
    }
}

static void cli_page(struct buf *out)
{
    buf_put_str(out, STR("# Command line\n\nMade by `gendocs` from `src/cli/commands.def`; do not edit. Each verb has "
                         "`--help`.\n\n| verb | arguments | does |\n|---|---|---|\n"));
#define COMMAND(name, arguments, handler, doc)                                                     \
    buf_put_str(out, STR("| `" name "` | `" arguments "` | "));                                    \
    put_cell(out, doc);                                                                            \
    buf_put_str(out, STR("\n"));
#include "cli/commands.def"
#undef COMMAND
    buf_put_str(out, STR("\n| exit code | meaning |\n|---|---|\n"
                         "| 0 | done; for `run`: stopped by a signal and drained |\n"
                         "| 1 | it ran and failed, or found faults |\n"
                         "| 2 | wrong usage or configuration; nothing was touched |\n"
                         "| 3 | a needed cluster or daemon could not be reached in time |\n"));
}

static int write_page(const char *folder, const char *name, void (*fill)(struct buf *out))
{
    char path[4096];
    struct buf out;
    FILE *f;
    int bad;

    buf_init(&out, PAGE_MAX);
    fill(&out);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "wb");
    bad = out.bad || !f || fwrite(out.p, 1, out.n, f) != out.n;
    bad |= f && fclose(f) != 0;
    if (bad)
        fprintf(stderr, "gendocs: cannot write %s\n", path);
    buf_fini(&out);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: gendocs FOLDER\n");
        return 2;
    }
    return write_page(argv[1], "options.md", options_page) |
           write_page(argv[1], "events.md", events_page) |
           write_page(argv[1], "errors.md", errors_page) |
           write_page(argv[1], "metrics.md", metrics_page) |
           write_page(argv[1], "http.md", http_page) | write_page(argv[1], "cli.md", cli_page);
}
