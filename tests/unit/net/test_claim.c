/* test_claim.c -- one living holder per name; a killed one leaves nothing, a stopped one keeps it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net/claim.h"

#include "unit/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct str name = STR("a cluster/a group");

TEST(one_holder)
{
    char a[CLAIM_IDENTITY_MAX], b[CLAIM_IDENTITY_MAX];
    struct claim *first = claim_take(NULL, name, a), *other;

    CHECK(first != NULL);
    CHECK(claim_take(NULL, name, b) == NULL);
    other = claim_take(NULL, STR("a cluster/another group"), b);
    CHECK(other != NULL);
    CHECK(strcmp(a, b) == 0); /* of this machine, whatever is claimed */
    claim_drop(&other);
    claim_drop(&first);
    first = claim_take(NULL, name, b);
    CHECK(first != NULL);
    CHECK(strcmp(a, b) == 0);
    claim_drop(&first);
    claim_drop(&first);
}

/* A child that holds the claim; its pipe tells when. */
static pid_t holder(void)
{
    char id[CLAIM_IDENTITY_MAX], byte = 0;
    int ends[2];
    pid_t pid;

    CHECK_EQ(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        byte = claim_take(NULL, name, id) != NULL;
        if (write(ends[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    CHECK_EQ(byte, 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

TEST(end_of_a_process)
{
    char id[CLAIM_IDENTITY_MAX];
    pid_t pid = holder();
    struct claim *c;
    int status;

    CHECK(claim_take(NULL, name, id) == NULL);
    kill(pid, SIGSTOP);
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    CHECK(claim_take(NULL, name, id) == NULL);
    kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    c = claim_take(NULL, name, id);
    CHECK(c != NULL);
    claim_drop(&c);
}

TESTS(RUN(one_holder), RUN(end_of_a_process))
