/* check.c -- the verb `check`: what a file means and what would be done, without doing it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "daemon/check.h"

#include "daemon/file_args.h"

#include <stdio.h>

int check_main(int argc, char **argv)
{
    struct file_args args;
    struct config *config = NULL;
    int code = file_args_parse(argc, argv, true, &args);

    if (code) {
        file_args_fini(&args);
        return code - 1;
    }
    code = config_load(&args.config, &config) ? 2 : 0;
    file_args_print_problems(config);
    if (code == 0)
        for (size_t i = 0; i < config->flow_count; i++)
            printf("%.*s: %s\n", STR_ARG(config->flows[i].name),
                   config->flows[i].enabled ? "enabled" : "heartbeats only");
    config_free(&config);
    file_args_fini(&args);
    return code;
}
