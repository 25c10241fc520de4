/* commands.h -- the verbs that live in cli/: they talk to a running process as anyone else would.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

int status_main(int argc, char **argv);
int translate_main(int argc, char **argv);

#endif
