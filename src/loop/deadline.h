/* deadline.h -- ends the process when a wait that cannot be taken back lasts too long.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For the few places where a verb stands in the system's resolver and nothing else is left to be done. Main thread.
 */
#ifndef LOOP_DEADLINE_H
#define LOOP_DEADLINE_H

/* The process ends with this exit code after that many seconds, unless deadline_clear comes first. line, with its
 * newline, goes to standard error before; it must stay, and NULL is none. */
void deadline_set(unsigned seconds, int code, const char *line);
void deadline_clear(void);

#endif
