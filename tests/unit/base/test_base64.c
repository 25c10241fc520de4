/* test_base64.c -- the examples of RFC 4648, all bytes, and what is refused.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "base/base64.h"

TEST(both_ways)
{
    static const char *const cases[][2] = { { "", "" },           { "f", "Zg==" },         { "fo", "Zm8=" },
                                            { "foo", "Zm9v" },    { "foob", "Zm9vYg==" },  { "fooba", "Zm9vYmE=" },
                                            { "foobar", "Zm9vYmFy" } };
    char all[256];
    struct buf text, back;

    buf_init(&text, 1000);
    buf_init(&back, 1000);
    for (size_t i = 0; i < COUNT(cases); i++) {
        buf_clear(&text);
        buf_clear(&back);
        base64_put(&text, str_c(cases[i][0]));
        CHECK(str_eq(buf_str(&text), str_c(cases[i][1])));
        CHECK(base64_get(&back, buf_str(&text)));
        CHECK(str_eq(buf_str(&back), str_c(cases[i][0])));
    }
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    buf_clear(&text);
    buf_clear(&back);
    base64_put(&text, str_of(all, sizeof(all)));
    CHECK(base64_get(&back, buf_str(&text)));
    CHECK(str_eq(buf_str(&back), str_of(all, sizeof(all))));
    buf_fini(&text);
    buf_fini(&back);
}

TEST(refused)
{
    static const char *const bad[] = { "Z", "Zg=", "Zg==Zg==", "Z===", "====", "Zm9*", "Zm 9" };
    struct buf back;

    buf_init(&back, 1000);
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!base64_get(&back, str_c(bad[i])));
    buf_fini(&back);
}

TESTS(RUN(both_ways), RUN(refused))
