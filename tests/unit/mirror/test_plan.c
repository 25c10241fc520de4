/* test_plan.c -- faults of a look at the topics: their words and their time.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "mirror/flow_config.h"
#include "mirror/plan.h"

#include <string.h>

#define NOW 1700000000000

/* ours: the topics that the mirror has carried before, separated by blanks. */
static bool is_ours(void *arg, struct str topic)
{
    struct str rest = str_c(arg), one;

    while (str_next(&rest, ' ', &one))
        if (str_eq(one, topic))
            return true;
    return false;
}

/* A source of the topics named, each with one partition. */
static struct plan *look_by(struct arena *a, const char *separator, const char *map, const char *ours,
                            const char *const *names, size_t n)
{
    static struct flow_config config;
    struct str_list all = { .at = (const struct str[]){ STR(".*") }, .n = 1 }, none = { 0 };
    struct kafka_metadata_response_partition partition = { 0 };
    struct policy *policy;
    struct filter *filter;
    struct plan *p = plan_new(a, n, NOW);
    struct str why;

    opt_defaults(&flow_opts, &config, a);
    config.source_alias = STR("A");
    config.target_alias = STR("B");
    config.replication_policy_separator = str_c(separator);
    config.topic_map = opt_split(str_c(map), a);
    policy = policy_new(&config);
    CHECK_EQ(filter_new(&all, &none, a, &filter, &why), E_OK);
    for (size_t i = 0; i < n; i++) {
        struct kafka_metadata_response_topic t = { .name = str_c(names[i]), .partitions = { &partition, 1 } };

        plan_add_source(p, policy, filter, &t);
    }
    plan_route(p, NULL);
    plan_refuse_collisions(p, is_ours, (void *)(uintptr_t)ours);
    plan_decide(p);
    filter_free(&filter);
    policy_free(&policy);
    return p;
}

static struct plan *look(struct arena *a, const char *separator, const char *const *names, size_t n)
{
    return look_by(a, separator, "", "", names, n);
}

/* One copy takes one topic: that which has it already, if just one has; the others have a fault of their own. */
TEST(two_topics_for_one_copy)
{
    static const char *const names[] = { "orders-eu", "other", "orders-us" };
    static const struct {
        const char *ours;
        bool eu, us;
    } cases[] = { { "", false, false }, { "orders-us", false, true }, { "orders-eu", true, false },
                  { "orders-eu orders-us", false, false } };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct fault *f;
        struct arena a;
        struct plan *p;

        arena_init(&a, 16 * MiB);
        p = look_by(&a, ".", "orders-.* -> orders", cases[i].ours, names, COUNT(names));
        CHECK_EQ(p->creates_n, 1 + cases[i].eu + cases[i].us);
        CHECK_EQ(p->wants[0].unnameable, !cases[i].eu);
        CHECK_EQ(p->wants[2].unnameable, !cases[i].us);
        CHECK(!plan_fault(p, &p->wants[1]));
        f = plan_fault(p, &p->wants[0]);
        CHECK_EQ(f != NULL, !cases[i].eu);
        CHECK(!f || (strcmp(f->code, "COLLISION") == 0 && strstr(f->text, "topic orders-us")));
        CHECK_EQ(f && strstr(f->text, "which has it already"), cases[i].us);
        f = plan_fault(p, &p->wants[2]);
        CHECK_EQ(f != NULL, !cases[i].us);
        CHECK(!f || strstr(f->text, "topic orders-eu"));
        arena_fini(&a);
    }
}

/* Rules may put nothing under the names that the mirror keeps its books under. */
TEST(rules_that_give_internal_names)
{
    static const char *const names[] = { "a", "b", "c" };
    struct arena a;
    struct plan *p;

    arena_init(&a, 16 * MiB);
    p = look_by(&a, ".", "a -> heartbeats, b -> A.checkpoints.internal, c -> __c", "", names, COUNT(names));
    CHECK_EQ(p->creates_n, 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        CHECK(p->wants[i].unnameable);
        CHECK(strstr(plan_fault(p, &p->wants[i])->text, "that of an internal topic"));
    }
    arena_fini(&a);
}

TEST(names_that_kafka_does_not_take)
{
    char longest[249], longer[248 + 1];
    const char *names[] = { longest, longer };
    const struct fault *f;
    struct arena a;
    struct plan *p;

    arena_init(&a, 16 * MiB);
    memset(longest, 'x', sizeof(longest));
    longest[247] = '\0';
    memset(longer, 'y', sizeof(longer));
    longer[248] = '\0';
    p = look(&a, ".", names, COUNT(names));
    CHECK_EQ(p->wants_n, 2);
    CHECK_EQ(p->creates_n, 1); /* "A." and 247 letters */
    CHECK(!plan_fault(p, &p->wants[0]));
    f = plan_fault(p, &p->wants[1]);
    CHECK(f);
    CHECK_EQ(strcmp(f->code, "INVALID_TOPIC_EXCEPTION"), 0);
    CHECK(strstr(f->text, "250 characters"));
    CHECK(strstr(f->text, "249 at most"));
    CHECK(strstr(f->text, "shorter alias"));
    CHECK_EQ(f->since_ms, NOW);
    CHECK(p->wants[1].unnameable);
    arena_fini(&a);
}

TEST(a_separator_that_kafka_does_not_take)
{
    static const char *const names[] = { "orders" };
    const struct fault *f;
    struct arena a;
    struct plan *p;

    arena_init(&a, 16 * MiB);
    p = look(&a, "/", names, 1);
    CHECK_EQ(p->creates_n, 0);
    f = plan_fault(p, &p->wants[0]);
    CHECK(f);
    CHECK(strstr(f->text, "\"A/orders\""));
    CHECK(strstr(f->text, "replication.policy.separator"));
    CHECK_EQ(f->since_ms, NOW);
    arena_fini(&a);
}

TEST(a_refused_creation)
{
    static const char *const names[] = { "orders" };
    static struct flow_config config;
    struct kafka_create_topics_response_topic t = { .name = STR("A.orders"), .error_code = KERR_POLICY_VIOLATION,
                                                    .error_message = STR("no such names") };
    const struct fault *f;
    struct arena a;
    struct plan *p;

    arena_init(&a, 16 * MiB);
    p = look(&a, ".", names, 1);
    CHECK_EQ(p->creates_n, 1);
    plan_take_created(p, &p->creates[0], &t, &config);
    f = plan_fault(p, &p->wants[0]);
    CHECK(f);
    CHECK_EQ(f->since_ms, NOW);
    CHECK(strstr(f->text, "A.orders"));
    CHECK(strstr(f->text, "made by hand as the policy wants it"));
    CHECK(strstr(f->text, "it says: no such names"));
    arena_fini(&a);
}

/* The copy is made without the config that is refused, or without all when the target does not say which. */
TEST(a_refused_config)
{
    static const char *const names[] = { "orders" };
    static struct flow_config config;
    struct topic_config entries[] = {
        { STR("segment.bytes"), STR("9"), 1, false, false },
        { STR("retention.ms"), STR("1"), 1, false, false },
        { STR("cleanup.policy"), STR("compact"), 1, false, false },
    };
    struct kafka_create_topics_response_topic t = {
        .name = STR("A.orders"), .error_code = KERR_INVALID_CONFIG,
        .error_message = STR("Invalid value 9 for configuration segment.bytes: Value must be at least 1048576"),
    };
    struct arena a;
    struct plan *p;

    arena_init(&a, 16 * MiB);
    p = look(&a, ".", names, 1);
    p->creates[0].configs = entries;
    p->creates[0].configs_n = COUNT(entries);
    plan_take_created(p, &p->creates[0], &t, &config);
    CHECK_EQ(p->creates[0].configs_n, 2);
    CHECK(!str_eq(p->creates[0].configs[0].name, STR("segment.bytes")));
    CHECK(p->configs_left);
    CHECK(!plan_fault(p, &p->wants[0]));
    t.error_message = STR("no");
    plan_take_created(p, &p->creates[0], &t, &config);
    CHECK_EQ(p->creates[0].configs_n, 0);
    CHECK(!plan_fault(p, &p->wants[0]));
    plan_take_created(p, &p->creates[0], &t, &config); /* refused without any: that is the topic's fault */
    CHECK(plan_fault(p, &p->wants[0]));
    arena_fini(&a);
}

TESTS(RUN(a_refused_config), RUN(two_topics_for_one_copy), RUN(rules_that_give_internal_names), RUN(names_that_kafka_does_not_take), RUN(a_separator_that_kafka_does_not_take), RUN(a_refused_creation))
