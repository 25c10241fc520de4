/* test_dns.c -- literals, names, and queries that are given up.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net/dns.h"

#include "unit/test.h"

struct asked {
    struct loop *l;
    struct timer end;
    struct dns_query *q;
    int answers;
    enum err error;
    int count;
    char first[NET_PEER_MAX];
};

static void on_answer(void *arg, enum err e, const struct net_addr *addrs, int count)
{
    struct asked *a = arg;

    a->q = NULL;
    a->answers++;
    a->error = e;
    a->count = count;
    if (count > 0)
        net_addr_format(&addrs[0], a->first, sizeof(a->first));
    loop_stop(a->l);
}

static struct asked ask(const char *host, int port)
{
    struct asked a = { .l = loop_new("test") };

    a.q = dns_resolve(a.l, str_c(host), port, on_answer, &a);
    CHECK_EQ(a.answers, 0);
    loop_run(a.l);
    CHECK_EQ(a.answers, 1);
    loop_free(&a.l);
    return a;
}

TEST(answers)
{
    static const struct {
        const char *host;
        int port;
        enum err want;
        const char *first;
    } cases[] = {
        { "127.0.0.1", 9092, E_OK, "127.0.0.1:9092" },
        { "::1", 65535, E_OK, "[::1]:65535" },
        { "2001:db8::7", 1, E_OK, "[2001:db8::7]:1" },
        { "localhost", 80, E_OK, NULL },
        { "", 80, E_RESOLVE, NULL },
        { "no such host", 80, E_RESOLVE, NULL },
        { "name.invalid", 80, E_RESOLVE, NULL },
        { "a.name.that.is.much.too.long."
          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234",
          80, E_RESOLVE, NULL },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct asked a = ask(cases[i].host, cases[i].port);

        CHECK_EQ(a.error, cases[i].want);
        CHECK_EQ(a.count > 0, cases[i].want == E_OK);
        if (cases[i].first)
            assert_string_equal(a.first, cases[i].first);
    }
}

static void on_end(struct timer *t)
{
    loop_stop(container_of(t, struct asked, end)->l);
}

TEST(cancelled)
{
    static const char *hosts[] = { "127.0.0.1", "localhost", "name.invalid", "" };
    struct loop *l = loop_new("test");
    struct asked a = { .l = l };

    for (size_t i = 0; i < COUNT(hosts); i++) {
        struct dns_query *q = dns_resolve(l, str_c(hosts[i]), 1, on_answer, &a);

        dns_cancel(&q);
        CHECK(!q);
        dns_cancel(&q);
    }
    timer_init(&a.end, on_end);
    timer_set_ms(l, &a.end, 20);
    loop_run(l);
    /* One that may have begun when its loop ends. */
    a.q = dns_resolve(l, STR("localhost"), 1, on_answer, &a);
    dns_cancel(&a.q);
    loop_free(&l);
    CHECK_EQ(a.answers, 0);
}

TESTS(RUN(answers), RUN(cancelled))
