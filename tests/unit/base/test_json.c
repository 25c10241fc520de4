/* test_json.c -- commas, escapes, and bytes that are no UTF-8.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/json.h"
#include "unit/test.h"

static void check_text(struct str in, struct str want)
{
    struct buf out;
    struct json j = json_to(&out);

    buf_init(&out, 4 * KiB);
    json_str(&j, in);
    check_str(buf_str(&out), want, __FILE__, __LINE__);
    buf_fini(&out);
}

TEST(structure)
{
    struct buf out;
    struct json j = json_to(&out);

    buf_init(&out, 4 * KiB);
    json_open(&j, '{');
    json_put_int(&j, "a", -5);
    json_put_uint(&j, "b", UINT64_MAX);
    json_put_str(&j, "c", STR_NULL);
    json_key(&j, "d");
    json_open(&j, '[');
    json_open(&j, '{');
    json_close(&j, '}');
    json_open(&j, '[');
    json_close(&j, ']');
    json_bool(&j, true);
    json_null(&j);
    json_raw(&j, STR("1.5"));
    json_close(&j, ']');
    json_put_bool(&j, "e", false);
    json_put_c(&j, "f", "");
    json_close(&j, '}');
    CHECK_STR(buf_str(&out),
              "{\"a\":-5,\"b\":18446744073709551615,\"c\":null,\"d\":[{},[],true,null,1.5],\"e\":false,\"f\":\"\"}");
    buf_fini(&out);
}

TEST(escapes)
{
    check_text(STR("plain"), STR("\"plain\""));
    check_text(STR(""), STR("\"\""));
    check_text(STR("a\"b\\c\n\r\t"), STR("\"a\\\"b\\\\c\\n\\r\\t\""));
    check_text(STR("\x01\x7f\0z"), STR("\"\\u0001\\u007f\\u0000z\""));
    check_text(STR("gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x9e"), STR("\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x9e\""));
}

#define BAD "\xef\xbf\xbd"

TEST(not_utf8)
{
    check_text(STR("a\xff"), STR("\"a" BAD "\""));
    check_text(STR("\xc3"), STR("\"" BAD "\""));
    check_text(STR("\xc0\xaf"), STR("\"" BAD BAD "\""));         /* longer than needed */
    check_text(STR("\xed\xa0\x80"), STR("\"" BAD BAD BAD "\"")); /* a surrogate */
    check_text(STR("\xf4\x90\x80\x80"), STR("\"" BAD BAD BAD BAD "\""));
    check_text(STR("\xe2\x82z"), STR("\"" BAD BAD "z\""));
}

TESTS(RUN(structure), RUN(escapes), RUN(not_utf8))
