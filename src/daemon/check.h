/* check.h -- the verb `check`: what a file means and what would be done, without doing it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DAEMON_CHECK_H
#define DAEMON_CHECK_H

/* argv[0] is the verb. Gives the exit code. */
int check_main(int argc, char **argv);

#endif
