/* test_bootstrap.c -- the bootstrap list by canonical names, with a resolver of the test's own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/bootstrap.h"

#include "base/alloc.h"
#include "unit/kafka/kafka_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* What the resolver of this test knows, in place of net/dns.c: "alias" has three addresses, the last without a name;
 * "mute" is never answered, all else is unknown. */
struct dns_query {
    struct loop *loop;
    struct timer timer;
    dns_fn *fn;
    dns_name_fn *name_fn;
    void *arg;
    bool known;
    const char *name;
};

static int asked;

static struct net_addr address(const char *text)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(9092) };
    struct net_addr a = { .size = sizeof(in) };

    CHECK_EQ(inet_pton(AF_INET, text, &in.sin_addr), 1);
    memcpy(a.u.bytes, &in, sizeof(in));
    return a;
}

static void answer(struct timer *t)
{
    struct dns_query *q = container_of(t, struct dns_query, timer);
    const struct net_addr addrs[] = { address("10.0.0.1"), address("10.0.0.2"), address("10.0.0.3") };

    if (q->name_fn)
        q->name_fn(q->arg, q->name ? E_OK : E_RESOLVE, q->name ? str_c(q->name) : STR_NULL);
    else
        q->fn(q->arg, q->known ? E_OK : E_RESOLVE, addrs, q->known ? 3 : 0);
    mem_free(q);
}

static struct dns_query *query_new(struct loop *l, void *arg)
{
    struct dns_query *q = mem_new(sizeof(*q));

    asked++;
    q->loop = l;
    q->arg = arg;
    timer_init(&q->timer, answer);
    return q;
}

struct dns_query *dns_resolve(struct loop *l, struct str host, int port, dns_fn *fn, void *arg)
{
    struct dns_query *q = query_new(l, arg);

    (void)port;
    q->fn = fn;
    q->known = str_eq(host, STR("alias"));
    if (!str_eq(host, STR("mute")))
        timer_set_ms(l, &q->timer, 0);
    return q;
}

struct dns_query *dns_reverse(struct loop *l, const struct net_addr *a, dns_name_fn *fn, void *arg)
{
    struct dns_query *q = query_new(l, arg);
    char text[NET_PEER_MAX];

    net_addr_format(a, text, sizeof(text));
    q->name_fn = fn;
    q->name = strstr(text, "10.0.0.1:") ? "one.example" : strstr(text, "10.0.0.2:") ? "two.example" : NULL;
    timer_set_ms(l, &q->timer, 0);
    return q;
}

void dns_cancel(struct dns_query **q)
{
    if (!*q)
        return;
    timer_cancel((*q)->loop, &(*q)->timer);
    mem_free(*q);
    *q = NULL;
}

static bool is_over;

static void on_done(struct bootstrap *b)
{
    (void)b;
    is_over = true;
}

static bool over(void *arg)
{
    (void)arg;
    return is_over;
}

static void expand(struct bootstrap *b, struct loop *l)
{
    is_over = false;
    bootstrap_start(b);
    CHECK(!is_over);
    CHECK(test_run_until(l, over, NULL, 5000));
}

TEST(each_address_under_its_name)
{
    static const struct client_endpoint names[] = {
        { .host = STR("mute"), .port = 1 }, { .host = STR("alias"), .port = 9092 },
        { .host = STR("unknown"), .port = 2 }, { .host = STR("alias"), .port = 9092 },
        { .host = STR("alias"), .port = 9093 },
    };
    struct client_config config = test_config(names, COUNT(names));
    struct loop *l = loop_new("test");
    struct bootstrap b;

    config.socket_connection_setup_timeout_ms = 20;
    bootstrap_init(&b, l, &config, on_done);
    for (int round = 0; round < 2; round++) {
        expand(&b, l);
        CHECK_EQ(b.n, 6); /* the second mention of the same brings nothing new */
        CHECK(str_eq(b.list[0].host, STR("one.example")));
        CHECK_EQ(b.list[0].port, 9092);
        CHECK(str_eq(b.list[1].host, STR("two.example")));
        CHECK(str_eq(b.list[2].host, STR("10.0.0.3")));
        CHECK_EQ(b.list[3].port, 9093);
    }
    bootstrap_fini(&b);
    loop_free(&l);
}

TEST(nobody_knows)
{
    static const struct client_endpoint names[] = { { .host = STR("unknown"), .port = 1 } };
    struct client_config config = test_config(names, COUNT(names));
    struct loop *l = loop_new("test");
    struct bootstrap b;

    bootstrap_init(&b, l, &config, on_done);
    expand(&b, l);
    CHECK_EQ(b.n, 0);
    asked = 0;
    bootstrap_start(&b);
    CHECK_EQ(asked, 1);
    bootstrap_cancel(&b);
    is_over = false;
    test_run_ms(l, 20);
    CHECK(!is_over);
    bootstrap_fini(&b);
    loop_free(&l);
}

TESTS(RUN(each_address_under_its_name), RUN(nobody_knows))
