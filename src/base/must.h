/* must.h -- stops the process on what only a bug can break.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Always on, in release builds too. Never used on bytes from a peer, nor on the
 * allocation of payload. Any thread.
 */
#ifndef BASE_MUST_H
#define BASE_MUST_H

#include "base/util.h"

#define must(cond) ((cond) ? (void)0 : must_fail(__FILE__, __LINE__, #cond, NULL))
/* The same, and says in words what the owner was doing. */
#define must_say(cond, text) ((cond) ? (void)0 : must_fail(__FILE__, __LINE__, #cond, text))

NORETURN void must_fail(const char *file, int line, const char *cond, const char *text);

#endif
