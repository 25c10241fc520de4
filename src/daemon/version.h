/* version.h -- what this program is: version, commit, and the libraries it runs with.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DAEMON_VERSION_H
#define DAEMON_VERSION_H

#include "base/buf.h"

const char *version_number(void);
const char *version_commit(void);

/* Name and version of each library, as "name version" lines, or as members of a JSON object. */
void version_libraries(struct buf *out, bool json);

/* The verb `version`. argv[0] is the verb. Gives the exit code. */
int version_main(int argc, char **argv);

#endif
