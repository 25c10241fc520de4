/* test_filter.c -- include and exclude lists: full match, exclude wins, what is said about bad elements.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/filter.h"

#include "unit/test.h"

static struct arena a;

static int set_up(void **state)
{
    (void)state;
    arena_init(&a, 1 * MiB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&a);
    return 0;
}

static struct filter *made(const char *include, const char *exclude)
{
    struct str_list in = opt_split(str_c(include), &a), out = opt_split(str_c(exclude), &a);
    struct filter *f;
    struct str why;

    CHECK_EQ(filter_new(&in, &out, &a, &f, &why), E_OK);
    return f;
}

/* MM2-T051, T053, T054, T055, T061, X13. */
TEST(accepts)
{
    static const struct {
        const char *include, *exclude, *name;
        bool want;
    } cases[] = {
        { "topic1", "", "topic1", true },
        { "topic1", "", "topic2", false },
        { "topic1", "", "topic12", false }, /* the whole name */
        { "topic1", "", "atopic1", false },
        { "", "", "topic1", false },
        { "", "", "", false },
        { ".*", "", "topic1", true },
        { ".*", "", "", true },
        { "topic1, topic2", "", "topic2", true },
        { "topic1, topic2", "", "topic3", false },
        { ".*", "topic2", "topic2", false }, /* exclude is stronger */
        { ".*", "topic2", "topic1", true },
        { "topic1", ".*", "topic1", false },
        { "(?i)ab, cd", "", "CD", true }, /* a flag goes on into the next element */
        { "ab, (?i)cd", "", "AB", false },
        { "(?i:ab), cd", "", "CD", false },
        { "a.c", "", "abc", true },
        { "\\Qa.c\\E", "", "abc", false },
        { "\\Qa.c, xyz", "", "a.c|xyz", true }, /* joined first, then read */
        { "(a, b)", "", "a", true },
        { ".*", "mm2.*\\.internal, .*\\.replica, __.*", "orders.internal", true },
        { ".*", "mm2.*\\.internal, .*\\.replica, __.*", "mm2-x.internal", false },
        { ".*", "mm2.*\\.internal, .*\\.replica, __.*", "a.replica", false },
        { ".*", "mm2.*\\.internal, .*\\.replica, __.*", "__consumer_offsets", false },
        { ".*", "console-consumer-.*, connect-.*, __.*", "gr\xc3\xbcn", true },
        { ".*", "z\\b.*", "gr\xc3\xbcn", false }, /* the exclude list is not certain: kept away */
        { "z\\b.*", "", "z\xc3\xbc", false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct filter *f = made(cases[i].include, cases[i].exclude);
        bool accepted;

        if (filter_accepts(f, str_c(cases[i].name)) != cases[i].want)
            print_error("case %zu: %s\n", i, cases[i].name);
        CHECK_EQ(filter_accepts(f, str_c(cases[i].name)), cases[i].want);
        filter_why(f, str_c(cases[i].name), &a, &accepted);
        CHECK_EQ(accepted, cases[i].want);
        filter_free(&f);
    }
}

TEST(says_why)
{
    struct filter *f = made("orders.*, (?i)pay, ments, z\\b.*", "orders-test, .*\\.tmp");
    bool accepted;

    CHECK_STR(filter_why(f, STR("orders.eu"), &a, &accepted), "accepted by `orders.*`");
    CHECK_STR(filter_why(f, STR("orders-test"), &a, &accepted), "excluded by `orders-test`");
    CHECK_STR(filter_why(f, STR("orders.tmp"), &a, &accepted), "excluded by `.*\\.tmp`");
    CHECK_STR(filter_why(f, STR("nothing"), &a, &accepted), "accepted by no element");
    CHECK_STR(filter_why(f, STR("MENTS"), &a, &accepted), "accepted by the list as a whole");
    CHECK(accepted);
    CHECK_STR(filter_why(f, STR("z\xc3\xbc"), &a, &accepted),
              "not accepted: the include list cannot be decided (\\b and \\B differ between Java "
              "versions beyond ASCII)");
    CHECK(!accepted);
    filter_free(&f);
}

/* FC-021, mm2-spec 2.5: the element that is to blame is named. */
TEST(bad_elements)
{
    static const struct {
        const char *list, *want;
    } cases[] = {
        { "ok, a[b, ok2", "element `a[b`: unclosed character class" },
        { "*", "element `*`: a quantifier with nothing before it" },
        { "st-a{1,2}, st-b", "element `st-a{1`: unclosed counted repetition" },
        { "a, \\N{DOT}", "element `\\N{DOT}`: a character by name" },
        { "(?<n>a), (?<n>b)", "the elements joined by '|': two groups of the same name" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str_list in = opt_split(str_c(cases[i].list), &a), none = { 0 };
        struct filter *f = NULL;
        struct str why;

        CHECK_EQ(filter_new(&in, &none, &a, &f, &why), E_INVALID);
        CHECK(!f);
        CHECK(str_starts(why, str_c(cases[i].want)));
        CHECK_EQ(filter_new(&none, &in, &a, &f, &why), E_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_accepts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_elements, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
