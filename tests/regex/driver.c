/* driver.c -- answers patterns and names with mirror/regex, for comparison with java.util.regex.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     regex_driver PATTERNS NAMES     one line per pattern: a digit per name, or why there is none
 *     regex_driver PATTERNS           one line per pattern: the ranges of characters that match alone, up to the
 *                                     one that REGEX_LAST names (hexadecimal; without it all)
 *
 * Files hold one item per line; %XX stands for a byte. Answers: 1 yes, 0 no, ? unsure, S too slow; a line with
 * E is a pattern that Java should refuse too, a line with R one that only we refuse.
 */
#include "base/alloc.h"
#include "mirror/regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 100000

struct lines {
    struct str at[LINES_MAX];
    size_t n;
};

static struct lines patterns, names;

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

static void read_lines(const char *path, struct lines *out)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t got;

    if (!f) {
        perror(path);
        exit(2);
    }
    while ((got = getline(&line, &room, f)) > 0 && out->n < LINES_MAX) {
        size_t n = 0, end = (size_t)got - (line[got - 1] == '\n');

        for (size_t i = 0; i < end; i++) {
            if (line[i] == '%' && i + 2 < end) {
                line[n++] = (char)(hex(line[i + 1]) * 16 + hex(line[i + 2]));
                i += 2;
            } else {
                line[n++] = line[i];
            }
        }
        out->at[out->n++] = str_of(mem_copy_str(line, n), n);
    }
    free(line);
    fclose(f);
}

static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static char answer(struct regex *re, struct str name)
{
    return "01?S"[regex_match_full(re, name)];
}

static void answer_names(struct regex *re)
{
    for (size_t i = 0; i < names.n; i++)
        putchar(answer(re, names.at[i]));
}

static void answer_characters(struct regex *re)
{
    const char *text = getenv("REGEX_LAST");
    uint32_t from = 0, end = text ? (uint32_t)strtoul(text, NULL, 16) + 1 : 0x110000;
    char last = '0';

    for (uint32_t c = 0; c <= end; c++) {
        char bytes[4], now = '0';

        if (c < 0xd800 || (c > 0xdfff && c < end))
            now = answer(re, str_of(bytes, encode(c, bytes)));
        if (now == last)
            continue;
        if (last != '0')
            printf("%x-%x%s ", from, c - 1, last == '1' ? "" : last == '?' ? "?" : "S");
        from = c;
        last = now;
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s PATTERNS [NAMES]\n", argv[0]);
        return 2;
    }
    read_lines(argv[1], &patterns);
    if (argc > 2)
        read_lines(argv[2], &names);
    for (size_t i = 0; i < patterns.n; i++) {
        struct regex_error why;
        struct regex *re;

        if (regex_compile(patterns.at[i], &re, &why)) {
            printf("%s %s\n", why.unsupported ? "R" : "E", why.text);
        } else {
            if (argc > 2)
                answer_names(re);
            else
                answer_characters(re);
            putchar('\n');
            regex_free(&re);
        }
        mem_free((char *)patterns.at[i].p);
    }
    for (size_t i = 0; i < names.n; i++)
        mem_free((char *)names.at[i].p);
    return 0;
}
