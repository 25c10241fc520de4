/* run.c -- the verb `run`.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "daemon/run.h"

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/file_args.h"
#include "loop/loop.h"

#include <stdio.h>

/* Warnings of the file as log events: the daemon's standard error is its log. */
static void log_warnings(const struct config *c)
{
    for (size_t i = 0; i < c->problem_count; i++)
        log_event(EV_CONFIG_WARNING, kv_str("file", c->problems[i].file),
                  kv_int("line", c->problems[i].line), kv_str("key", c->problems[i].key),
                  kv_str("text", c->problems[i].text));
}

int run_main(int argc, char **argv)
{
    struct file_args args;
    struct config *config = NULL;
    int code = file_args_parse(argc, argv, false, &args);

    if (code) {
        file_args_fini(&args);
        return code - 1;
    }
    if (config_load(&args.config, &config)) {
        file_args_print_problems(config);
        code = 2;
    } else if (config->flow_count == 0) {
        fprintf(stderr, "heliostat: %.*s: no flow is left; enable one (A->B.enabled = true) or correct "
                "--clusters\n", STR_ARG(config->file));
        code = 2;
    } else {
        log_setup(config->process.log_format == 1 ? LOG_JSON : LOG_TEXT,
                  (enum log_level)config->process.log_level, loop_clock_ms, NULL);
        log_warnings(config);
        code = control_run(config);
    }
    config_free(&config);
    file_args_fini(&args);
    return code;
}
