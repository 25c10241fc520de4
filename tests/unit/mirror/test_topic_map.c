/* test_topic_map.c -- names of copies by rules, and Java's replacements behind them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/topic_map.h"

#include "mirror/policy.h"
#include "mirror/regex.h"
#include "unit/test.h"

/* Answers of java.util.regex: matches(), then replaceFirst(). */
TEST(replacements)
{
    static const struct {
        const char *pattern, *replacement, *name, *want; /* want NULL: it does not match */
    } cases[] = {
        { "A\\.(.*)", "$1", "A.orders", "orders" },
        { "A\\.(.*)", "$1", "B.orders", NULL },
        { "A\\.(.*)", "$1", "A.", "" },
        { "(.*)", "$1-copy", "t", "t-copy" },
        { "(.*)", "eu.$1", "t", "eu.t" },
        { "(?<a>[^-]*)-(?<b>.*)", "${b}.${a}", "x-y-z", "y-z.x" },
        { "(a)(b)?", "$1[$2]", "a", "a[]" },
        { "(a)", "$12", "a", "a2" },  /* only one group: $1, then 2 */
        { "(a)", "\\$1\\\\", "a", "$1\\" },
        { "a|ab", "x", "ab", "xb" },  /* found again from the start, not as a whole */
        { "orders", "x", "orders", "x" },
        { "", "x", "", "x" },
        { "(\\w+)\\.\\1", "$1", "ab.ab", "ab" },
        { "(?i)A\\.(.*)", "$1", "a.T", "T" },
        { ".*", "$0.$0", "t", "t.t" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct regex_error e;
        struct regex *re;
        const char *why;
        struct buf out;

        buf_init(&out, KiB);
        CHECK_EQ(regex_compile_replacing(str_c(cases[i].pattern), &re, &e), E_OK);
        CHECK(regex_replacement_fits(re, str_c(cases[i].replacement), &why));
        CHECK_EQ(regex_replace(re, str_c(cases[i].name), str_c(cases[i].replacement), &out),
                 cases[i].want ? REGEX_YES : REGEX_NO);
        check_str(buf_str(&out), str_c(cases[i].want ? cases[i].want : ""), cases[i].pattern, (int)i);
        regex_free(&re);
        buf_fini(&out);
    }
}

TEST(replacements_that_mean_nothing)
{
    static const struct {
        const char *pattern, *replacement, *why;
    } cases[] = {
        { "(a)", "$2", "a group that the pattern does not have" },
        { "(a)", "$x", "a $ has to be followed" },
        { "(a)", "$", "a $ has to be followed" },
        { "(a)", "${n}", "a group that the pattern does not have" },
        { "(a)", "x\\", "a backslash at the end" },
        { "(a)*", "$1", "a group that is repeated" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct regex_error e;
        struct regex *re;
        const char *why = "";

        CHECK_EQ(regex_compile_replacing(str_c(cases[i].pattern), &re, &e), E_OK);
        CHECK(!regex_replacement_fits(re, str_c(cases[i].replacement), &why));
        CHECK(strstr(why, cases[i].why));
        regex_free(&re);
    }
}

static struct topic_map *made(const char *rules, struct arena *a, struct str *why)
{
    struct str_list list = opt_split(str_c(rules), a);
    struct topic_map *m = NULL;

    *why = STR("");
    (void)!topic_map_new(&list, a, &m, why);
    return m;
}

TEST(rules)
{
    static const struct {
        const char *topic, *want; /* NULL: no rule */
    } cases[] = {
        { "orders.eu", "eu.orders" }, { "orders", "all-orders" }, { "orders2", NULL }, { "x.y", "y.x" },
    };
    struct arena a;
    struct topic_map *m;
    struct str why;

    arena_init(&a, MiB);
    m = made("orders -> all-orders, (.*)\\.(.*) -> $2.$1, x.* -> never", &a, &why);
    CHECK(m);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str got = topic_map_apply(m, str_c(cases[i].topic), &a);

        CHECK_EQ(str_is_null(got), cases[i].want == NULL);
        CHECK(!cases[i].want || str_eq(got, str_c(cases[i].want)));
    }
    topic_map_free(&m);
    arena_fini(&a);
}

TEST(rules_that_cannot_stand)
{
    static const struct {
        const char *rules, *why;
    } cases[] = {
        { "orders", "rule `orders` is not PATTERN -> NAME" },
        { "-> x", "is not PATTERN -> NAME" },
        { "x ->", "is not PATTERN -> NAME" },
        { "a -> b, ( -> x", "rule `( -> x`: " },
        { "(a) -> $2", "a group that the pattern does not have" },
        { "a{1,2} -> x", "rule `a{1` is not PATTERN -> NAME" },
    };
    struct arena a;
    struct str why;

    arena_init(&a, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK(!made(cases[i].rules, &a, &why));
        CHECK(str_find(why, str_c(cases[i].why), 0) >= 0);
    }
    arena_fini(&a);
}

/* Rules come before the policy; heartbeats keep their names, and nothing is put under a name of the mirror's own. */
TEST(policy_with_rules)
{
    struct str list[] = { STR("orders-(.*) -> $1"), STR("(.*)heartbeats -> $1x"), STR("own -> mm2-own.internal"),
                          STR("hb -> heartbeats") };
    struct flow_config c = {
        .replication_policy_separator = STR("."),
        .replication_policy_internal_separator = true,
        .source_alias = STR("A"),
        .target_alias = STR("B"),
        .heartbeats_replication_enabled = true,
        .topic_map = { list, COUNT(list) },
    };
    struct policy *p = policy_new(&c);
    struct arena a;

    arena_init(&a, MiB);
    CHECK_STR(policy_remote(p, STR("orders-eu"), &a), "eu");
    CHECK_STR(policy_remote(p, STR("orders"), &a), "A.orders");
    CHECK_STR(policy_remote(p, STR("heartbeats"), &a), "A.heartbeats");
    CHECK_STR(policy_remote(p, STR("C.heartbeats"), &a), "A.C.heartbeats");
    CHECK_STR(policy_prefix(p, STR("orders-x"), &a), "A.orders-x");
    CHECK(policy_is_own(p, STR("own"), policy_remote(p, STR("own"), &a)));
    CHECK(policy_is_own(p, STR("hb"), policy_remote(p, STR("hb"), &a)));
    CHECK(!policy_is_own(p, STR("orders-eu"), STR("eu")));
    CHECK(!policy_is_own(p, STR("heartbeats"), STR("A.heartbeats")));
    policy_free(&p);
    arena_fini(&a);
}

TESTS(RUN(replacements), RUN(replacements_that_mean_nothing), RUN(rules), RUN(rules_that_cannot_stand),
      RUN(policy_with_rules))
