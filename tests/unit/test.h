/* test.h -- the few macros of our cmocka tests.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     TEST(name) { CHECK_EQ(1, 1); }
 *     TESTS(RUN(name), RUN(other))
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

#define TEST(name) static void test_##name(void **state __attribute__((unused)))
#define RUN(name) cmocka_unit_test(test_##name)
#define TESTS(...)                                                                                 \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct CMUnitTest tests[] = { __VA_ARGS__ };                                         \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }

#define CHECK(cond) assert_true(cond)
#define CHECK_EQ(got, want) assert_int_equal((long long)(got), (long long)(want))
#define CHECK_MEM(got, want, n) assert_memory_equal(got, want, n)
/* struct str against a literal */
#define CHECK_STR(got, literal) check_str(got, STR(literal), __FILE__, __LINE__)

static inline void check_str(struct str got, struct str want, const char *file, int line)
{
    if (!str_eq(got, want)) {
        print_error("got \"%.*s\", want \"%.*s\"\n", STR_ARG(got), STR_ARG(want));
        _fail(file, line);
    }
}

#endif
