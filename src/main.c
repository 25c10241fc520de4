/* main.c -- the program: finds the verb and hands over.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exit codes, for every verb: 0 done, 1 it ran and failed or found faults, 2 wrong usage or configuration,
 * 3 a needed cluster or daemon could not be reached in time.
 */
#include "cli/commands.h"
#include "daemon/check.h"
#include "daemon/run.h"
#include "daemon/takeover.h"
#include "daemon/version.h"

#include <stdio.h>
#include <string.h>

static const struct command {
    const char *name, *arguments;
    int (*run)(int argc, char **argv);
    const char *doc;
} commands[] = {
#define COMMAND(name, arguments, handler, doc) { name, arguments, handler, doc },
#include "cli/commands.def"
#undef COMMAND
};

static void usage(FILE *out)
{
    fprintf(out, "heliostat %s: mirrors Apache Kafka clusters\n\nusage: heliostat VERB [OPTIONS]\n\n",
            version_number());
    for (size_t i = 0; i < COUNT(commands); i++)
        fprintf(out, "  %-8s %-58s\n           %s\n", commands[i].name, commands[i].arguments,
                commands[i].doc);
    fprintf(out, "\n`heliostat VERB --help` tells more of one.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < COUNT(commands); i++)
        if (!strcmp(argv[1], commands[i].name) ||
            (!strcmp(argv[1], "--version") && !strcmp(commands[i].name, "version")))
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "heliostat: there is no verb %s; `heliostat --help` lists them\n", argv[1]);
    return 2;
}
