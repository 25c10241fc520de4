/* test_suggest.c -- nearest names.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/suggest.h"

#include "unit/test.h"

TEST(distance)
{
    static const struct {
        struct str a, b;
        size_t want;
    } cases[] = {
        { STR("topics"), STR("topics"), 0 },  { STR("Topics"), STR("topics"), 0 },
        { STR("topcs"), STR("topics"), 1 },   { STR("tpoics"), STR("topics"), 1 },
        { STR("topicss"), STR("topics"), 1 }, { STR("topixs"), STR("topics"), 1 },
        { STR(""), STR("abc"), 3 },           { STR("kitten"), STR("sitting"), 3 },
        { STR("abcdef"), STR("uvwxyz"), 5 }, /* cut at most + 1 */
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_EQ(suggest_distance(cases[i].a, cases[i].b, 4), cases[i].want);
}

TEST(nearest)
{
    static const struct str names[] = { STR("topics"), STR("topics.exclude"), STR("groups"),
                                        STR("emit.heartbeats.enabled"), STR("enabled"), STR("acks") };
    static const struct {
        struct str wrong;
        const char *want;
    } cases[] = {
        { STR("enable"), "enabled" },
        { STR("topic"), "topics" },
        { STR("topics.exlcude"), "topics.exclude" },
        { STR("emit.heartbeats"), "emit.heartbeats.enabled" },
        { STR("ack"), "acks" },
        { STR("some.unknown.key"), NULL },
        { STR(""), NULL },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct suggest s;

        suggest_init(&s, cases[i].wrong);
        for (size_t n = 0; n < COUNT(names); n++)
            suggest_offer(&s, names[n]);
        CHECK(str_eq(s.best, str_c(cases[i].want)));
    }
}

TEST(too_long)
{
    char big[SUGGEST_NAME_MAX + 2];
    struct suggest s;

    memset(big, 'a', sizeof(big));
    suggest_init(&s, str_of(big, sizeof(big)));
    suggest_offer(&s, str_of(big, sizeof(big)));
    CHECK(str_is_null(s.best));
}

TESTS(RUN(distance), RUN(nearest), RUN(too_long))
