/* test_stream.c -- names, addresses in turn, deadlines, failures in words, a peer that leaves, and a pause.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/net/stream_rig.h"

TEST(names_that_fail)
{
    one_init();
    names.error = E_RESOLVE;
    one_open("broker.example", 9092);
    assert_string_equal(stream_peer(o.s), "broker.example:9092");
    loop_run(o.l);
    CHECK_EQ(o.failed, 1);
    CHECK_EQ(o.error, E_RESOLVE);
    assert_string_equal(o.text, "broker.example:9092: the host name cannot be resolved");
    one_fini();

    one_init();
    names.silent = true;
    o.options.connect_timeout_ms = 10;
    one_open("broker.example", 9092);
    loop_run(o.l);
    CHECK_EQ(o.error, E_TIMEOUT);
    assert_string_equal(o.text, "broker.example:9092: no answer within 10 ms");
    one_fini();

    one_init();
    names.silent = true;
    one_open("broker.example", 9092);
    one_fini(); /* closed while the resolver is asked */
}

TEST(refused)
{
    char want[200];

    one_init();
    names.count = 1;
    peer_absent(AF_INET, &names.addrs[0]);
    one_open("127.0.0.1", peer_port(&names.addrs[0]));
    loop_run(o.l);
    CHECK_EQ(o.error, E_REFUSED);
    snprintf(want, sizeof(want), "127.0.0.1:%d: connection refused", peer_port(&names.addrs[0]));
    assert_string_equal(o.text, want);
    one_fini();

    /* All addresses of a name are tried and told. */
    one_init();
    names.count = 2;
    peer_absent(AF_INET6, &names.addrs[0]);
    peer_absent(AF_INET, &names.addrs[1]);
    one_open("broker1", 9);
    loop_run(o.l);
    CHECK_EQ(o.failed, 1);
    snprintf(
        want, sizeof(want),
        "[::1]:%d (broker1:9): connection refused; 127.0.0.1:%d (broker1:9): connection refused",
        peer_port(&names.addrs[0]), peer_port(&names.addrs[1]));
    assert_string_equal(o.text, want);
    one_fini();
}

/* A listener whose queue is full lets a connect wait; the next address answers. */
TEST(addresses_in_turn)
{
    struct net_addr full;
    int deaf = peer_listen(AF_INET, 0, &full), listener, filler;

    filler = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(filler, (struct sockaddr *)full.u.bytes, full.size), 0);
    one_init();
    names.count = 3;
    listener = peer_listen(AF_INET, 8, &names.addrs[0]);
    peer_absent(AF_INET, &names.addrs[1]);
    names.addrs[2] = full;
    o.options.first_address = 4; /* the absent one */
    o.options.connect_timeout_ms = 50;
    o.stop_at_open = true;
    one_open("broker1", 9);
    loop_run(o.l);
    CHECK_EQ(o.opened, 1);
    CHECK_EQ(o.failed, 0);
    CHECK_EQ(stream_error(o.s), E_OK);
    assert_string_equal(stream_error_text(o.s), "");
    one_fini();

    one_init();
    names.count = 1;
    names.addrs[0] = full;
    o.options.connect_timeout_ms = 20;
    one_open("127.0.0.1", peer_port(&full));
    loop_run(o.l);
    CHECK_EQ(o.error, E_TIMEOUT);
    CHECK(strstr(o.text, ": no answer within 20 ms"));
    one_fini();
    close(filler);
    close(deaf);
    close(listener);
}

/* An owner that takes no notice of the error of a read or write is told once more, in words. */
TEST(peer_goes_away)
{
    for (int reset = 0; reset < 2; reset++) {
        struct echo e = { .most = 200 * KiB, .reset = reset };

        one_init();
        echo_start(&e);
        o.put_max = 64 * MiB;
        o.ignore_errors = true;
        one_open("127.0.0.1", 9092);
        loop_run(o.l);
        echo_join(&e);
        CHECK_EQ(o.failed, 1);
        CHECK_EQ(o.error, E_CLOSED);
        CHECK(strstr(o.text, ": closed by the peer"));
        one_fini();
    }
}

TEST(paused)
{
    struct echo e = { .most = 1000 };

    one_init();
    echo_start(&e);
    o.put_max = 1000;
    one_open("127.0.0.1", 9092);
    stream_pause(o.s, true);
    o.stop_at_open = true;
    loop_run(o.l);
    echo_join(&e);
    run_for(20);
    CHECK_EQ(o.opened, 1);
    CHECK_EQ(o.readable, 0);
    stream_pause(o.s, false);
    loop_run(o.l);
    CHECK_EQ(o.got, 1000);
    CHECK_EQ(o.io_error, E_CLOSED);
    one_fini();
}

TESTS(RUN(names_that_fail), RUN(refused), RUN(addresses_in_turn), RUN(peer_goes_away), RUN(paused))
