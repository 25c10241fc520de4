/* run.h -- the verb `run`: the daemon, in the foreground.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DAEMON_RUN_H
#define DAEMON_RUN_H

/* argv[0] is the verb. Gives the exit code. */
int run_main(int argc, char **argv);

#endif
