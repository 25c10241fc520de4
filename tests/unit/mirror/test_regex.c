/* test_regex.c -- replays Java's recorded answers, and what the table cannot say: limits, errors, long lists.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tests/data/regex/expected.tsv comes from java.util.regex (tests/regex/run.sh --record): MM2-X13.
 */
#include "mirror/regex.h"

#include "base/buf.h"
#include "unit/test.h"

#include <stdio.h>

#define NAMES_MAX 200

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

/* %XX becomes a byte, in place. */
static struct str decode(char *line, size_t n)
{
    size_t to = 0;

    for (size_t i = 0; i < n; i++) {
        bool coded = line[i] == '%' && i + 2 < n;

        line[to++] = coded ? (char)(hex(line[i + 1]) * 16 + hex(line[i + 2])) : line[i];
        i += coded ? 2 : 0;
    }
    return str_of(line, to);
}

static size_t read_names(struct str *out, char (*lines)[1000])
{
    FILE *f = fopen(TEST_DATA "/regex/names.txt", "r");
    size_t n = 0;

    CHECK(f);
    for (; fgets(lines[n], 1000, f); n++) {
        CHECK(n + 1 < NAMES_MAX);
        out[n] = decode(lines[n], strcspn(lines[n], "\n"));
    }
    fclose(f);
    return n;
}

/* Compares our answers now with those recorded, and those with Java's. */
static void replay(char *line, const struct str *names, size_t n)
{
    struct str rest = str_of(line, strcspn(line, "\n")), field, java, ours;
    struct regex_error why;
    struct regex *re;

    CHECK(str_next(&rest, '\t', &field) && str_next(&rest, '\t', &java));
    ours = rest;
    if (regex_compile(decode(line, field.n), &re, &why)) {
        if (!str_starts(ours, why.unsupported ? STR("R ") : STR("E ")))
            print_error("%s: %s\n", line, why.text);
        CHECK(str_starts(ours, why.unsupported ? STR("R ") : STR("E ")));
        CHECK(why.unsupported || str_starts(java, STR("E ")));
        return;
    }
    CHECK_EQ(java.n, n);
    CHECK_EQ(ours.n, n);
    for (size_t i = 0; i < n; i++) {
        char now = "01?S"[regex_match_full(re, names[i])];

        if (now != ours.p[i] || (now != java.p[i] && now != '?' && now != 'S'))
            print_error("%s: name %zu: %c\n", line, i, now);
        CHECK_EQ(now, ours.p[i]);
        CHECK(now == java.p[i] || now == '?' || now == 'S');
    }
    regex_free(&re);
}

TEST(java_table)
{
    static char lines[NAMES_MAX][1000];
    struct str names[NAMES_MAX];
    size_t n = read_names(names, lines);
    FILE *f = fopen(TEST_DATA "/regex/expected.tsv", "r");
    char line[4000];
    int patterns = 0;

    CHECK(f);
    for (; fgets(line, sizeof(line), f); patterns++)
        replay(line, names, n);
    fclose(f);
    CHECK(n >= 60);
    CHECK(patterns >= 300);
}

TEST(errors_say_what_and_where)
{
    static const struct {
        const char *pattern, *text;
        size_t at;
        bool unsupported;
    } cases[] = {
        { "a[b", "unclosed character class", 3, false },
        { "*", "a quantifier with nothing before it", 0, false },
        { "(a", "unclosed group", 2, false },
        { "ab)", "a ')' that opens nowhere", 2, false },
        { "st-a{1", "unclosed counted repetition", 6, false },
        { "\\N{DOT}", "a character by name", 2, true },
        { "\xc3\xa9*+*", "a quantifier with nothing before it", 4, false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct regex *re = NULL;
        struct regex_error why;

        CHECK_EQ(regex_compile(str_c(cases[i].pattern), &re, &why), E_INVALID);
        CHECK(!re);
        CHECK_EQ(why.unsupported, cases[i].unsupported);
        CHECK(str_starts(str_c(why.text), str_c(cases[i].text)));
        CHECK_EQ(why.at, cases[i].at);
    }
}

static struct regex *compiled(const char *pattern)
{
    struct regex *re;

    CHECK_EQ(regex_compile(str_c(pattern), &re, NULL), E_OK);
    return re;
}

static enum regex_answer match(const char *pattern, struct str name)
{
    struct regex *re = compiled(pattern);
    enum regex_answer a = regex_match_full(re, name);

    regex_free(&re);
    return a;
}

TEST(time_is_bounded)
{
    struct str many = STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac");

    CHECK_EQ(match("(a+)+b?", many), REGEX_SLOW);
    CHECK_EQ(match("a*c|(a+)+b?", many), REGEX_YES);
}

TEST(unsure_beyond_what_is_proven)
{
    struct regex *re = compiled("a\\b.*|z\xc3\xbc");

    CHECK_EQ(regex_match_full(re, STR("a.b")), REGEX_YES);
    CHECK_EQ(regex_match_full(re, STR("ab")), REGEX_NO);
    CHECK_EQ(regex_match_full(re, STR("a\xc3\xbc")), REGEX_UNSURE);
    CHECK_EQ(regex_match_full(re, STR("z\xc3\xbc")), REGEX_YES); /* by a plain alternative */
    CHECK(strstr(regex_limits(re), "\\b"));
    regex_free(&re);
    re = compiled("a.*");
    CHECK_EQ(strlen(regex_limits(re)), 0);
    regex_free(&re);
}

/* Java replaces what is not UTF-8 when it reads a name from the wire, one U+FFFD per malformed part. */
TEST(malformed_names)
{
    CHECK_EQ(match("a\\x{fffd}b", STR("a\xff"
                                      "b")),
             REGEX_YES);
    CHECK_EQ(match("a\\x{fffd}b", STR("a\xe2\x82"
                                      "b")),
             REGEX_YES);
    CHECK_EQ(match("a\\x{fffd}{2}b", STR("a\xf5\x80"
                                         "b")),
             REGEX_YES);
    CHECK_EQ(match("\\x{fffd}", STR("\xed\xa0\x80")), REGEX_YES);
    CHECK_EQ(match("\\x{fffd}{3}", STR("\xc0\xaf\xff")), REGEX_YES);
}

/* MM2's patterns are lists of names more often than not: ten thousand of them, with some real patterns between. */
TEST(long_lists)
{
    struct regex *re;
    struct buf list;
    char name[64];

    buf_init(&list, REGEX_PATTERN_MAX);
    for (int i = 0; i < 10000; i++)
        buf_fmt(&list, "%stopic-%d.%s", i ? "|" : "", i, i % 10 ? "orders" : "(in|out)");
    CHECK(!list.bad);
    CHECK_EQ(regex_compile(buf_str(&list), &re, NULL), E_OK);
    for (int i = 1; i < 10000; i += 37) {
        snprintf(name, sizeof(name), "topic-%d.%s", i, i % 10 ? "orders" : "out");
        CHECK_EQ(regex_match_full(re, str_c(name)), REGEX_YES);
    }
    CHECK_EQ(regex_match_full(re, STR("topic-10000.orders")), REGEX_NO);
    CHECK_EQ(regex_match_full(re, STR("topic-10.orders")), REGEX_NO);
    regex_free(&re);
    buf_fini(&list);
}

TEST(too_large)
{
    struct regex_error why;
    struct regex *re;
    struct buf b;

    buf_init(&b, 2 * MiB);
    for (int i = 0; i < 300; i++)
        buf_put_char(&b, '(');
    CHECK_EQ(regex_compile(buf_str(&b), &re, &why), E_INVALID);
    CHECK(why.unsupported);
    buf_clear(&b);
    buf_grow(&b, REGEX_PATTERN_MAX + 1);
    CHECK_EQ(regex_compile(buf_str(&b), &re, &why), E_INVALID);
    CHECK(why.unsupported);
    buf_fini(&b);
    CHECK_EQ(regex_compile(STR("((a{1,1000}){1,1000}){1,1000}"), &re, &why), E_INVALID);
    CHECK(why.unsupported);
}

TESTS(RUN(java_table), RUN(errors_say_what_and_where), RUN(time_is_bounded),
      RUN(unsure_beyond_what_is_proven), RUN(malformed_names), RUN(long_lists), RUN(too_large))
