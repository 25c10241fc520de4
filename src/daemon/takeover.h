/* takeover.h -- the verb `takeover`.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DAEMON_TAKEOVER_H
#define DAEMON_TAKEOVER_H

int takeover_main(int argc, char **argv);

#endif
