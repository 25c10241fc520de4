/* test_mailbox.c -- many threads put, one takes: nothing lost, each sender's order kept.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loop/mailbox.h"

#include "loop/thread.h"
#include "unit/test.h"

#include <sched.h>

#define SENDERS 4
#define EACH    30000

struct note {
    struct msg msg;
    int sender, number;
};

struct sender {
    struct thread *thread;
    struct note *notes;
    int wakes; /* how often the taker would have had to be woken */
};

static struct mailbox box;
static struct note notes[SENDERS][EACH];

TEST(one_thread)
{
    struct note n[3] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };

    mailbox_init(&box);
    CHECK(mailbox_is_empty(&box));
    CHECK(!mailbox_take(&box));
    CHECK(mailbox_put(&box, &n[0].msg));
    CHECK(!mailbox_put(&box, &n[1].msg));
    CHECK(!mailbox_is_empty(&box));
    CHECK(mailbox_take(&box) == &n[0].msg);
    CHECK(mailbox_put(&box, &n[2].msg));
    CHECK(mailbox_take(&box) == &n[1].msg);
    CHECK(mailbox_take(&box) == &n[2].msg);
    CHECK(!mailbox_take(&box));
    CHECK(mailbox_is_empty(&box));
}

static void send(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < EACH; i++)
        s->wakes += mailbox_put(&box, &s->notes[i].msg);
}

TEST(many_threads)
{
    struct sender s[SENDERS] = { 0 };
    int next[SENDERS] = { 0 };
    int wakes = 0;

    mailbox_init(&box);
    for (int i = 0; i < SENDERS; i++) {
        for (int j = 0; j < EACH; j++)
            notes[i][j] = (struct note){ .sender = i, .number = j };
        s[i].notes = notes[i];
        s[i].thread = thread_start("sender", send, &s[i]);
    }
    for (int taken = 0; taken < SENDERS * EACH;) {
        struct msg *m = mailbox_take(&box);

        if (m) {
            struct note *n = container_of(m, struct note, msg);

            CHECK_EQ(n->number, next[n->sender]++);
            taken++;
        } else {
            sched_yield();
        }
    }
    for (int i = 0; i < SENDERS; i++) {
        thread_join(&s[i].thread);
        wakes += s[i].wakes;
    }
    CHECK(mailbox_is_empty(&box));
    CHECK(wakes >= 1);
}

TESTS(RUN(one_thread), RUN(many_threads))
