/* test_opt.c -- values of option rows: reading, refusing, writing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/opt.h"

#include "unit/test.h"

struct sample {
    bool flag;
    int32_t number;
    int64_t size, wait_ms, every_ms, spin_ms;
    struct str text, raw, key;
    struct str_list list;
    int choice, any, class;
};

static const struct opt_row rows[] = {
    OPT_ROW(struct sample, 1, FLAG, flag, "a.flag", NULL, "true", 0, 0, HOT, OPEN, "d")
    OPT_ROW(struct sample, 1, INT, number, "a.number", "an.older.number", "7", -1, 32767, HOT, OPEN, "d")
    OPT_ROW(struct sample, 1, SIZE, size, "a.size", NULL, "2 MiB", 1024, GiB, HOT, OPEN, "d")
    OPT_ROW(struct sample, 1, DURATION_MS, wait_ms, "a.wait.ms", NULL, "50", 0, INT64_MAX, HOT, OPEN, "d")
    OPT_ROW(struct sample, 1, INTERVAL_S, every_ms, "a.every.seconds", NULL, "600", 1, 0, HOT, OPEN, "d")
    OPT_ROW(struct sample, 1, INTERVAL_S, spin_ms, "a.spin.seconds", NULL, "1", 0, 0, HOT, OPEN, "d")
    OPT_ROW(struct sample, 1, STRING, text, "a.text", NULL, "", 0, 0, HOT, OPEN, "d")
    OPT_ROW(struct sample, 1, RAW, raw, "a.raw", NULL, ".", 0, 0, HOT, OPEN, "d")
    OPT_ROW(struct sample, 1, STRING, key, "a.key", NULL, "", 0, 0, HOT, SECRET, "d")
    OPT_ROW(struct sample, 2, LIST, list, "a.list", NULL, "x, y", 0, 0, HOT, OPEN, "d")
    OPT_ROW_CHOICE(struct sample, 1, CHOICE, choice, "a.choice", NULL, "two", "one two|zwei three", HOT, "d")
    OPT_ROW_CHOICE(struct sample, 1, CHOICE_ANY, any, "a.any", NULL, "B", "A B", HOT, "d")
    OPT_ROW_CHOICE(struct sample, 1, CLASS, class, "a.class", NULL, "org.x.Y", "org.x.Y org.x.Z|io.Z", HOT, "d")
    OPT_ROW_NO_EFFECT(1, "an.idle.*", "because")
};
static const struct opt_table table = { "sample", "Sample", rows, COUNT(rows), NULL };

TEST(defaults)
{
    struct sample s;
    struct arena a;

    arena_init(&a, MiB);
    opt_defaults(&table, &s, &a);
    CHECK(s.flag);
    CHECK_EQ(s.number, 7);
    CHECK_EQ(s.size, 2 * MiB);
    CHECK_EQ(s.wait_ms, 50);
    CHECK_EQ(s.every_ms, 600000);
    CHECK_EQ(s.list.n, 2);
    CHECK_STR(s.list.at[1], "y");
    CHECK_EQ(s.choice, 1);
    CHECK_EQ(s.any, 1);
    CHECK_EQ(s.class, 0);
    arena_fini(&a);
}

/* key, text as in a file, the value as formatted or NULL, the reason or NULL */
static const struct {
    const char *key, *text, *want, *why;
} cases[] = {
    { "a.flag", " TRUE ", "true", NULL },
    { "a.flag", "False", "false", NULL },
    { "a.flag", "yes", NULL, "\"yes\" is neither true nor false; write one of the two" },
    { "a.flag", "", NULL, "\"\" is neither true nor false; write one of the two" },
    { "a.number", " 12\t", "12", NULL },
    { "a.number", "+12", "12", NULL },
    { "a.number", "-1", "-1", NULL },
    { "a.number", "abc", NULL, "\"abc\" is not a whole number; write a whole number from -1 to 32767" },
    { "a.number", "1.5", NULL, "\"1.5\" is not a whole number; write a whole number from -1 to 32767" },
    { "a.number", "-2", NULL, "\"-2\" is too small; write a whole number from -1 to 32767" },
    { "a.number", "32768", NULL, "\"32768\" is too large; write a whole number from -1 to 32767" },
    { "a.number", "99999999999999999999", NULL,
      "\"99999999999999999999\" is not a whole number; write a whole number from -1 to 32767" },
    { "a.size", "4096", "4096", NULL },
    { "a.size", "4 kib", "4096", NULL },
    { "a.size", "1GiB", "1073741824", NULL },
    { "a.size", "9999999999 GiB", NULL,
      "\"9999999999 GiB\" is not a whole number; write a size in bytes, or with KiB, MiB, GiB, from 1024 to 1073741824" },
    { "a.wait.ms", "-1", NULL,
      "\"-1\" is too small; write a time in milliseconds from 0 to 9223372036854775807" },
    { "a.every.seconds", "5", "5", NULL },
    { "a.every.seconds", "-7", "-1", NULL },
    { "a.every.seconds", "0", NULL, "0 is no period; write 1 or more seconds, or -1 for never" },
    { "a.every.seconds", "9223372036854775807", NULL,
      "\"9223372036854775807\" is not a number of seconds; write one, or -1 for never" },
    { "a.spin.seconds", "0", "1", "0 would never rest and is taken as 1 second; write 1 or more" },
    { "a.text", "  a b ", "a b", NULL },
    { "a.raw", " _ ", " _ ", NULL },
    { "a.key", "canary", "(secret)", NULL },
    { "a.list", "", "", NULL },
    { "a.list", " a , b,c ", "a, b, c", NULL },
    { "a.list", "a,,b,", "a, b", "an empty element was dropped; remove the comma" },
    { "a.list", "a, b, a", "a, b", "\"a\" stands in the list twice and counts once; remove one" },
    { "a.choice", "zwei", "two", NULL },
    { "a.choice", "TWO", NULL, "\"TWO\" is not one of the known words; write one of: one, two, three" },
    { "a.any", "a", "A", NULL },
    { "a.any", "c\x1b[1m", NULL, "\"c?[1m\" is not one of the known words; write one of: A, B" },
    { "a.class", "io.Z", "org.x.Z", NULL },
    { "a.class", "com.My", NULL,
      "the Java class \"com.My\" cannot run here; of these classes Heliostat does the same natively: org.x.Y, org.x.Z" },
};

TEST(values)
{
    struct arena a;
    struct buf out;

    arena_init(&a, 16 * MiB);
    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct opt_row *row = opt_find(&table, str_c(cases[i].key), 3);
        struct sample s = { 0 }, before;
        struct str why;
        enum err e;

        memset(&before, 0, sizeof(before));
        e = opt_parse(row, str_c(cases[i].text), &s, &a, &why);
        CHECK_EQ(e, cases[i].want ? E_OK : E_INVALID);
        check_str(why, str_c(cases[i].why), cases[i].key, (int)i);
        if (e) {
            CHECK(memcmp(&s, &before, sizeof(s)) == 0);
            continue;
        }
        buf_clear(&out);
        opt_format(row, &s, &out);
        check_str(buf_str(&out), str_c(cases[i].want), cases[i].key, (int)i);
    }
    buf_fini(&out);
    arena_fini(&a);
}

TEST(find)
{
    CHECK(opt_find(&table, STR("an.older.number"), 1) == &rows[1]);
    CHECK(opt_find(&table, STR("an.idle.thing"), 1) == &rows[COUNT(rows) - 1]);
    CHECK(!opt_find(&table, STR("an.idle."), 1));
    CHECK(!opt_find(&table, STR("an.idle"), 1));
    CHECK(!opt_find(&table, STR("a.list"), 1));
    CHECK(opt_find(&table, STR("a.list"), 2));
}

TEST(secrets)
{
    static const struct str yes[] = { STR("ssl.key.password"), STR("A.sasl.jaas.config"), STR("sasl.jass.config"),
                                      STR("ssl.keystore.key"), STR("x.clientSecret"), STR("my.TOKEN") };
    static const struct str no[] = { STR("topics"), STR("key.converter"), STR("ssl.keystore.location"), STR("") };

    for (size_t i = 0; i < COUNT(yes); i++)
        CHECK(opt_key_is_secret(yes[i]));
    for (size_t i = 0; i < COUNT(no); i++)
        CHECK(!opt_key_is_secret(no[i]));
}

TEST(pages)
{
    struct buf out;

    buf_init(&out, MiB);
    opt_page(&table, &out);
    CHECK(str_find(buf_str(&out), STR("| `a.number` (once `an.older.number`) |  | number, -1..32767 | `7` |"), 0) > 0);
    CHECK(str_find(buf_str(&out), STR("| `an.idle.*` |  | because |"), 0) > 0);
    buf_clear(&out);
    opt_help(&table, &out);
    CHECK(str_find(buf_str(&out), STR("a.size = 2 MiB\n      d\n"), 0) > 0);
    buf_fini(&out);
}

TESTS(RUN(defaults), RUN(values), RUN(find), RUN(secrets), RUN(pages))
