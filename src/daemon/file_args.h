/* file_args.h -- the arguments that run and check share: FILE, --clusters, --set, and flags of their own.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DAEMON_FILE_ARGS_H
#define DAEMON_FILE_ARGS_H

#include "daemon/config.h"

struct file_args {
    struct config_args config;
    struct str *sets, *clusters; /* own memory */
    bool offline, json;
};

/* 0: go on; else the exit code + 1 (1 after --help). allow_check: --offline and --json are known. */
int file_args_parse(int argc, char **argv, bool allow_check, struct file_args *out);
void file_args_fini(struct file_args *a);

/* Prints every problem of the file on standard error. */
void file_args_print_problems(const struct config *c);

#endif
