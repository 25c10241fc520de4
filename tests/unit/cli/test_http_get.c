/* test_http_get.c -- a name that no resolver answers ends the verb in time, with one line.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "cli/http_get.h"

#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In place of the system's: it does not answer. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    (void)service;
    (void)out;
    if (!node || strcmp(node, "silent.test") != 0 || (hints && hints->ai_flags & AI_NUMERICHOST))
        return EAI_NONAME;
    for (;;)
        pause();
}

TEST(a_name_that_is_not_answered)
{
    char text[300] = "";
    size_t n = 0;
    ssize_t got;
    int ends[2], status;
    pid_t child;

    CHECK_EQ(pipe(ends), 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct http_answer a;

        dup2(ends[1], STDERR_FILENO);
        alarm(60); /* what it was: for ever */
        signal(SIGALRM, SIG_DFL);
        (void)http_get("http://silent.test:1", "/v1/status", 1, &a);
        _exit(99);
    }
    close(ends[1]);
    while (n < sizeof(text) - 1 && (got = read(ends[0], text + n, sizeof(text) - 1 - n)) > 0)
        n += (size_t)got;
    close(ends[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), HTTP_NOBODY);
    CHECK_EQ(strcmp(text, "heliostat: silent.test: the name is not answered within 1 s\n"), 0);
}

TESTS(RUN(a_name_that_is_not_answered))
