/* test_policy.c -- MirrorMaker 2's naming rules, from its own tests and the tables of its specification.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/policy.h"

#include "unit/test.h"

#define NONE NULL

static struct policy *made(enum flow_policy kind, const char *separator, bool internal,
                           const char *source, const char *target)
{
    struct flow_config c = {
        .policy = (int)kind,
        .replication_policy_separator = str_c(separator),
        .replication_policy_internal_separator = internal,
        .source_alias = str_c(source),
        .target_alias = str_c(target),
        .heartbeats_replication_enabled = true,
    };

    return policy_new(&c);
}

static void check_maybe(struct str got, const char *want)
{
    CHECK_EQ(str_is_null(got), want == NONE);
    if (want && !str_eq(got, str_c(want)))
        print_error("got %.*s, want %s\n", STR_ARG(got), want);
    CHECK(!want || str_eq(got, str_c(want)));
}

/* mm2-spec 3.1: Java's split drops empty pieces at the end. */
TEST(names_of_the_default_policy)
{
    static const struct {
        const char *separator, *topic, *remote, *source, *upstream, *original;
    } cases[] = {
        { ".", "a", "S.a", NONE, NONE, "a" },
        { ".", "a.", "S.a.", NONE, NONE, "a." },
        { ".", "a.b", "S.a.b", "a", "b", "b" },
        { ".", "a.b.c", "S.a.b.c", "a", "b.c", "c" },
        { ".", ".b", "S..b", "", "b", "b" },
        { ".", ".", "S..", NONE, NONE, "." },
        { ".", "..b", "S...b", "", ".b", "b" },
        { ".", "a..", "S.a..", NONE, NONE, "a.." },
        { ".", "a..b", "S.a..b", "a", ".b", "b" },
        { ".", "a.b.", "S.a.b.", "a", "b.", "b." },
        { "__", "a__b", "S__a__b", "a", "b", "b" }, /* MM2-T011 */
        { "__", "source3__source4__topic6", "S__source3__source4__topic6", "source3",
          "source4__topic6", "topic6" },
        { "__", "a.b", "S__a.b", NONE, NONE, "a.b" },
        { "__", "a___b", "S__a___b", "a", "_b", "_b" },
        { "_", "us-west.heartbeats", "S_us-west.heartbeats", NONE, NONE,
          "us-west.heartbeats" }, /* T067 */
    };
    struct arena a;

    arena_init(&a, 64 * KiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct policy *p = made(FLOW_POLICY_DEFAULT, cases[i].separator, true, "S", "T");
        struct str topic = str_c(cases[i].topic);

        check_maybe(policy_remote(p, topic, &a), cases[i].remote);
        check_maybe(policy_source(p, topic), cases[i].source);
        check_maybe(policy_upstream(p, topic), cases[i].upstream);
        check_maybe(policy_original(p, topic), cases[i].original);
        policy_free(&p);
    }
    arena_fini(&a);
}

/* MM2-T010, T012. */
TEST(names_of_the_identity_policy)
{
    static const struct {
        const char *topic, *remote, *source, *upstream, *original;
    } cases[] = {
        { "topic1", "topic1", "primary", "topic1", "topic1" },
        { "a.b", "a.b", "primary", "a.b", "a.b" },
        { "heartbeats", "primary.heartbeats", NONE, NONE, "heartbeats" },
        { "backup.heartbeats", "primary.backup.heartbeats", "backup", "heartbeats", "heartbeats" },
        { "myheartbeats", "primary.myheartbeats", NONE, NONE, "myheartbeats" },
    };
    struct policy *p = made(FLOW_POLICY_IDENTITY, ".", true, "primary", "T");
    struct arena a;

    arena_init(&a, 64 * KiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str topic = str_c(cases[i].topic);

        check_maybe(policy_remote(p, topic, &a), cases[i].remote);
        check_maybe(policy_source(p, topic), cases[i].source);
        check_maybe(policy_upstream(p, topic), cases[i].upstream);
        check_maybe(policy_original(p, topic), cases[i].original);
    }
    arena_fini(&a);
    policy_free(&p);
}

/* MM2-T014, T015, T016. */
TEST(names_of_internal_topics)
{
    static const struct {
        const char *separator;
        bool internal;
        const char *syncs, *checkpoints;
    } cases[] = {
        { ".", true, "mm2-offset-syncs.CLUSTER.internal", "CLUSTER.checkpoints.internal" },
        { "__", false, "mm2-offset-syncs.CLUSTER.internal", "CLUSTER.checkpoints.internal" },
        { "__", true, "mm2-offset-syncs__CLUSTER__internal", "CLUSTER__checkpoints__internal" },
    };
    struct arena a;

    arena_init(&a, 64 * KiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct policy *p =
            made(FLOW_POLICY_DEFAULT, cases[i].separator, cases[i].internal, "S", "T");

        check_maybe(policy_offset_syncs(p, STR("CLUSTER"), &a), cases[i].syncs);
        check_maybe(policy_checkpoints(p, STR("CLUSTER"), &a), cases[i].checkpoints);
        CHECK_STR(policy_heartbeats(p), "heartbeats");
        CHECK_STR(policy_state_topic(p, STR("S"), &a), "mm2-heliostat.S.internal");
        CHECK(policy_is_internal(p, policy_state_topic(p, STR("S"), &a)));
        CHECK(policy_is_internal(p, policy_checkpoints(p, STR("S"), &a)));
        CHECK(policy_is_internal(p, policy_offset_syncs(p, STR("S"), &a)));
        policy_free(&p);
    }
    arena_fini(&a);
}

/* MM2-T001, T004. */
TEST(heartbeats)
{
    static const char *const yes[] = { "heartbeats", "source1.heartbeats",
                                       "source2.source1.heartbeats", "x.heartbeats" };
    static const char *const no[] = { "heartbeats!",        "!heartbeats", "source1heartbeats",
                                      "source1-heartbeats", "topic1",      "heartbeats.x",
                                      "heartbeats." };
    struct policy *p = made(FLOW_POLICY_DEFAULT, ".", true, "S", "T");

    for (size_t i = 0; i < COUNT(yes); i++)
        CHECK(policy_is_heartbeats(p, str_c(yes[i])));
    for (size_t i = 0; i < COUNT(no); i++)
        CHECK(!policy_is_heartbeats(p, str_c(no[i])));
    policy_free(&p);
}

/* MM2-T002, T005, T013 by the rules of 4.0 (KIP-1074). */
TEST(internal_topics_in_the_other_spelling)
{
    static const char *const yes[] = { "mm2-offset-syncs_B_internal", "mm2-offset-syncs.B.internal", "B_checkpoints_internal",
                                       "B.checkpoints.internal", "mm2-offsets.B.internal", "mm2-heliostat.B.internal" };
    static const char *const no[] = { "mm2-offset-syncs-B-internal", "checkpoints_internal", "orders_internal", "orders.internal",
                                      "mm2-offset-syncs", "internal", "_internal", "", "mm2-user" };

    for (int internal = 0; internal < 2; internal++) {
        struct policy *p = made(FLOW_POLICY_DEFAULT, "_", internal, "A", "B");

        for (size_t i = 0; i < COUNT(yes); i++)
            CHECK(policy_is_internal(p, str_c(yes[i])));
        for (size_t i = 0; i < COUNT(no); i++)
            CHECK(!policy_is_internal(p, str_c(no[i])));
        policy_free(&p);
    }
}

TEST(internal_topics)
{
    static const char *const yes[] = {
        "__consumer_offsets",
        "__x",
        ".hiddentopic",
        "mm2-offsets.CLUSTER.internal",
        "mm2-x.internal",
        "source1.checkpoints.internal",
        "source2.source1.checkpoints.internal",
        "mm2.internal",
    };
    static const char *const no[] = {
        "mm2-offsets_CLUSTER_internal",
        "mm2-offsets-CLUSTER-internal",
        "checkpoints.internal",
        "checkpoints-internal",
        "checkpoints.internal!",
        "!checkpoints.internal",
        "source1checkpointsinternal",
        "orders.internal",
        "orders-internal",
        "mm2-user",
    };
    struct policy *p = made(FLOW_POLICY_DEFAULT, ".", true, "S", "T");

    for (size_t i = 0; i < COUNT(yes); i++)
        CHECK(policy_is_internal(p, str_c(yes[i])));
    for (size_t i = 0; i < COUNT(no); i++)
        CHECK(!policy_is_internal(p, str_c(no[i])));
    policy_free(&p);
}

static struct filter *filter_of(const char *include)
{
    struct str element = str_c(include);
    struct str_list in = { &element, element.n ? 1 : 0 }, none = { 0 };
    struct filter *f;
    struct arena a;
    struct str why;

    arena_init(&a, 64 * KiB);
    CHECK_EQ(filter_new(&in, &none, &a, &f, &why), E_OK);
    arena_fini(&a);
    return f;
}

/* MM2-T066, T067, T070, T071, T083. */
TEST(mirrors)
{
    static const struct {
        const char *include;
        const char *topic;
        enum policy_verdict by_default, by_identity;
    } cases[] = {
        { "", "heartbeats", POLICY_HEARTBEATS, POLICY_HEARTBEATS },
        { "", "us-west.heartbeats", POLICY_HEARTBEATS, POLICY_HEARTBEATS },
        { "", "topic1", POLICY_FILTERED, POLICY_FILTERED },
        { ".*", "topic1", POLICY_MIRRORED, POLICY_MIRRORED },
        { ".*", "source.topic1", POLICY_MIRRORED, POLICY_MIRRORED },
        { ".*", "othersource.topic1", POLICY_MIRRORED, POLICY_MIRRORED },
        { ".*", "target.topic1", POLICY_CYCLE, POLICY_MIRRORED },
        { ".*", "target.source.topic1", POLICY_CYCLE, POLICY_MIRRORED },
        { ".*", "source.target.topic1", POLICY_CYCLE, POLICY_MIRRORED },
        { ".*", "target.source.target.topic1", POLICY_CYCLE, POLICY_MIRRORED },
        { ".*", "source.target.source.topic1", POLICY_CYCLE, POLICY_MIRRORED },
        { ".*", "target.heartbeats", POLICY_CYCLE, POLICY_CYCLE },
        { ".*", "target.source.heartbeats", POLICY_CYCLE, POLICY_CYCLE },
        { ".*", "source.target.source.heartbeats", POLICY_CYCLE, POLICY_CYCLE },
        { "", "target.heartbeats", POLICY_CYCLE, POLICY_CYCLE },
        { ".*", "heartbeats", POLICY_MIRRORED, POLICY_MIRRORED },
        { ".*", "othersource.heartbeats", POLICY_MIRRORED, POLICY_MIRRORED },
        { ".*", "..b", POLICY_INTERNAL, POLICY_INTERNAL },
        { ".*", "__consumer_offsets", POLICY_INTERNAL, POLICY_INTERNAL },
        { ".*", "mm2-heliostat.X.internal", POLICY_INTERNAL, POLICY_INTERNAL },
    };
    struct policy *renaming = made(FLOW_POLICY_DEFAULT, ".", true, "source", "target");
    struct policy *identity = made(FLOW_POLICY_IDENTITY, ".", true, "source", "target");

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct filter *f = filter_of(cases[i].include);

        CHECK_EQ(policy_mirrors(renaming, f, str_c(cases[i].topic)), cases[i].by_default);
        CHECK_EQ(policy_mirrors(identity, f, str_c(cases[i].topic)), cases[i].by_identity);
        CHECK(policy_verdict_text(cases[i].by_default)[0]);
        filter_free(&f);
    }
    policy_free(&renaming);
    policy_free(&identity);
}

/* MM2-T068, T069. */
TEST(heartbeats_can_be_left_to_the_filter)
{
    struct flow_config c = { .replication_policy_separator = STR("."),
                             .source_alias = STR("S"),
                             .target_alias = STR("T") };
    struct policy *p = policy_new(&c);
    struct filter *nothing = filter_of(""), *all = filter_of(".*");

    CHECK_EQ(policy_mirrors(p, nothing, STR("heartbeats")), POLICY_FILTERED);
    CHECK_EQ(policy_mirrors(p, nothing, STR("us-west.heartbeats")), POLICY_FILTERED);
    CHECK_EQ(policy_mirrors(p, all, STR("heartbeats")), POLICY_MIRRORED);
    CHECK_EQ(policy_mirrors(p, all, STR("us-west.heartbeats")), POLICY_MIRRORED);
    filter_free(&nothing);
    filter_free(&all);
    policy_free(&p);
}

TESTS(RUN(names_of_the_default_policy), RUN(names_of_the_identity_policy),
      RUN(names_of_internal_topics), RUN(heartbeats), RUN(internal_topics), RUN(internal_topics_in_the_other_spelling), RUN(mirrors),
      RUN(heartbeats_can_be_left_to_the_filter))
