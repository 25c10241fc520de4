/* test_murmur2.c -- against values that Kafka gives.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/murmur2.h"

#include "unit/test.h"

/* Values of Kafka's own test, and keys of MirrorMaker's positions. */
TEST(hash_and_partition)
{
    static const struct {
        const char *text;
        int32_t want;
    } cases[] = {
        { "21", -973932308 },
        { "foobar", -790332482 },
        { "abc", 479470107 },
        { "a-little-bit-long-string", -985981536 },
        { "[\"MirrorSourceConnector\",{\"cluster\":\"A\",\"partition\":1,\"topic\":\"test-topic-"
          "1\"}]",
          -300507605 },
        { "[\"MirrorHeartbeatConnector\",{\"sourceClusterAlias\":\"A\",\"targetClusterAlias\":"
          "\"B\"}]",
          1162868500 },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_EQ(murmur2_hash(str_c(cases[i].text)), cases[i].want);
    CHECK_EQ(murmur2_partition(str_c(cases[4].text), 25), 18);
    CHECK_EQ(murmur2_partition(str_c(cases[5].text), 25), 0);
    CHECK_EQ(murmur2_partition(STR(""), 1), 0);
}

TESTS(RUN(hash_and_partition))
