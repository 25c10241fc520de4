/* test_overlap.c -- which records of a source are at the end of its copy.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A list is written as text, one letter per record: letters that differ are other values; a capital is the record of the
 * small letter a millisecond later. Keys only where a case says so.
 */
#include "mirror/overlap.h"

#include "unit/test.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static struct overlap_list list_of(const char *text, bool keyed)
{
    struct overlap_list l = { NULL, 0, 0 };

    for (size_t i = 0; text[i]; i++) {
        char c = (char)tolower((unsigned char)text[i]);
        struct record r = { .key = keyed ? str_of(&c, 1) : STR_NULL, .value = str_of(&c, 1) };

        if (text[i] == ' ')
            continue;
        overlap_add(&l, &r, isupper((unsigned char)text[i]) ? 1001 : 1000, (int64_t)l.n);
    }
    return l;
}

static struct overlap_answer find(const char *source, size_t known, const char *copy, bool timed, bool keyed)
{
    struct overlap_list s = list_of(source, keyed), c = list_of(copy, keyed);
    struct overlap_answer a;

    overlap_find(&s, known, &c, timed, &a);
    overlap_free(&s);
    overlap_free(&c);
    return a;
}

TEST(what_is_there)
{
    static const struct {
        const char *why, *source;
        size_t known;
        const char *copy;
        size_t present, copied, repeats, others, undecided;
    } cases[] = {
        { "nothing", "abcdef", 3, "", 3, 0, 0, 0, 0 },
        { "as far as the position", "abcdef", 3, "xyabc", 3, 0, 0, 0, 0 },
        { "two more", "abcdef", 3, "xyabcde", 5, 2, 0, 0, 0 },
        { "all", "abcdef", 3, "abcdef", 6, 3, 0, 0, 0 },
        { "begins within what is known", "abcdef", 3, "cd", 4, 1, 0, 0, 0 },
        { "nothing is known", "def", 0, "xyde", 2, 2, 0, 0, 0 },
        { "nothing is known or there", "def", 0, "xy", 0, 0, 0, 0, 0 },
        { "foreign records between", "abcdef", 2, "ab1c2d3", 4, 2, 0, 3, 0 },
        { "it began again at the position", "abcdef", 2, "abcde cd", 5, 3, 2, 0, 0 },
        { "again before the position, and went further", "abcdefg", 3, "abcde bcdef", 6, 3, 2, 0, 0 },
        { "again where the list does not reach", "defghi", 1, "defg abcdefgh", 5, 4, 3, 3, 0 },
        { "a batch written twice", "abcdefg", 2, "abcdcdef", 6, 4, 2, 0, 0 },
        { "a hole is not jumped over", "abcdef", 2, "abce", 3, 1, 0, 0, 1 },
        { "alike, and fewer than the source has", "bbbbbbaaaa", 6, "bbbbbbaa", 8, 2, 0, 0, 0 },
        { "alike, all of them", "bbbaaaac", 3, "bbbaaaac", 8, 5, 0, 0, 0 },
        { "alike, more than the source has: the first is sure", "bbbaaac", 3, "bbbaaaa", 3, 3, 0, 0, 4 },
        { "the same, but what comes then makes it sure", "bbbaaac", 3, "bbbaaaaac", 7, 4, 0, 0, 0 },
        { "all alike, known or not", "aaaaaaaa", 4, "aaaaaa", 4, 0, 0, 0, 6 },
        { "alike but for the time", "aaaAAA", 3, "aaaAA", 5, 2, 0, 0, 0 },
        { "begins within what is alike", "aaaabcd", 4, "aabc", 6, 2, 0, 0, 0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct overlap_answer a = find(cases[i].source, cases[i].known, cases[i].copy, true, false);

        if (a.present != cases[i].present || a.undecided != cases[i].undecided)
            printf("%s\n", cases[i].why);
        CHECK_EQ(a.present, cases[i].present);
        CHECK_EQ(a.copied, cases[i].copied);
        CHECK_EQ(a.repeats, cases[i].repeats);
        CHECK_EQ(a.others, cases[i].others);
        CHECK_EQ(a.undecided, cases[i].undecided);
    }
}

TEST(compacted_copies)
{
    struct overlap_answer a;

    /* The first a is gone from the copy, since there is a later one. */
    a = find("xyzabaC", 3, "xyzba", true, true);
    CHECK_EQ(a.present, 6);
    CHECK_EQ(a.missing, 1);
    CHECK_EQ(a.undecided, 0);
    /* Without keys nothing explains the hole. */
    a = find("xyzabaC", 3, "xyzba", true, false);
    CHECK_EQ(a.present, 3);
    /* What the source has compacted away is in the copy: they count as others. */
    a = find("xyzbaC", 3, "xyzaabaC", true, true);
    CHECK_EQ(a.present, 6);
}

TEST(without_times)
{
    struct overlap_answer a;

    a = find("abcdefghijklm", 10, "xxabcdefghijkl", false, false);
    CHECK_EQ(a.present, 12);
    CHECK_EQ(a.undecided, 0);
    /* An older record that looks like a later one is not taken for it. */
    a = find("abcdefghijklm", 10, "mxxabcdefghij", false, false);
    CHECK_EQ(a.present, 10);
    /* Nor a row that is too short to tell. */
    a = find("abcdefghijklm", 10, "ghijkl", false, false);
    CHECK_EQ(a.present, 10);
    CHECK(a.undecided > 0);
    /* The times are other ones, and say nothing. */
    a = find("abcdefghijklm", 10, "ABCDEFGHIJKL", false, false);
    CHECK_EQ(a.present, 12);
}

static struct overlap_record record_of(struct str key, struct str value, struct str headers, int32_t header_count)
{
    struct overlap_list l = { NULL, 0, 0 };
    struct overlap_record out;

    overlap_add(&l, &(struct record){ .key = key, .value = value, .headers = headers, .header_count = header_count }, 1, 2);
    out = l.at[0];
    overlap_free(&l);
    return out;
}

TEST(records_that_differ)
{
    struct str h = STR("\x02"
                       "a\x02"
                       "b"),
               null = STR("\x02"
                          "a\x01");
    uint64_t all[] = {
        record_of(STR_NULL, STR("v"), STR(""), 0).content,     record_of(STR(""), STR("v"), STR(""), 0).content,
        record_of(STR("v"), STR(""), STR(""), 0).content,      record_of(STR("v"), STR_NULL, STR(""), 0).content,
        record_of(STR("k"), STR("v"), STR(""), 0).content,     record_of(STR("kv"), STR(""), STR(""), 0).content,
        record_of(STR("k"), STR("v"), h, 1).content,           record_of(STR("k"), STR("v"), null, 1).content,
        record_of(STR("k"), STR("12345678"), STR(""), 0).content, record_of(STR("k"), STR("12345678\0"), STR(""), 0).content,
    };

    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t k = 0; k < i; k++)
            CHECK(all[i] != all[k]);
    CHECK_EQ(record_of(STR_NULL, STR("v"), STR(""), 0).key, 0);
    CHECK(record_of(STR(""), STR("v"), STR(""), 0).key != 0);
}

/* Every known part, copied part and second beginning behind it. */
TEST(all_small_histories)
{
    enum { N = 12 };

    for (size_t known = 0; known <= N; known++) {
        for (size_t written = known; written <= N; written++) {
            for (size_t begin = 0; begin <= written; begin++) {
                for (size_t end = begin; end <= N; end++) {
                    const char *all = "abcdefghijklmnop";
                    char copy[3 * N], source[N + 1];
                    struct overlap_answer a;
                    size_t front = MAX(written, end);

                    snprintf(source, sizeof(source), "%.*s", N, all);
                    snprintf(copy, sizeof(copy), "%.*s%.*s", (int)written, all, (int)(end - begin), all + begin);
                    a = find(source, known, copy, true, false);
                    CHECK_EQ(a.present, front);
                    CHECK_EQ(a.undecided, 0);
                }
            }
        }
    }
}

TESTS(RUN(what_is_there), RUN(compacted_copies), RUN(without_times), RUN(records_that_differ), RUN(all_small_histories))
