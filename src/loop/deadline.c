/* deadline.c -- an alarm whose handler does nothing but end the process.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loop/deadline.h"

#include "base/must.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static int end_code;
static const char *end_line;

static void on_alarm(int number)
{
    (void)number;
    if (end_line && write(STDERR_FILENO, end_line, strlen(end_line)) < 0)
        _exit(end_code); /* nobody listens */
    _exit(end_code);
}

void deadline_set(unsigned seconds, int code, const char *line)
{
    struct sigaction act = { .sa_handler = on_alarm };

    end_code = code;
    end_line = line;
    must(sigaction(SIGALRM, &act, NULL) == 0);
    alarm(seconds);
}

void deadline_clear(void)
{
    alarm(0);
}
