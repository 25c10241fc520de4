/* str.c -- comparison, searching and cutting of counted strings.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/str.h"

#include <string.h>

struct str str_c(const char *cstr)
{
    return cstr ? str_of(cstr, strlen(cstr)) : STR_NULL;
}

bool str_eq(struct str a, struct str b)
{
    if (!a.p || !b.p)
        return !a.p && !b.p;
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.n != b.n || str_is_null(a) != str_is_null(b))
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

int str_cmp(struct str a, struct str b)
{
    size_t n = MIN(a.n, b.n);
    int c;

    if (!a.p || !b.p)
        return (a.p != NULL) - (b.p != NULL);
    c = n ? memcmp(a.p, b.p, n) : 0;
    if (c)
        return c;
    return (a.n > b.n) - (a.n < b.n);
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

int64_t str_find(struct str s, struct str what, size_t from)
{
    const char *p;

    if (from > s.n)
        return -1;
    if (what.n == 0)
        return (int64_t)from;
    p = memmem(s.p + from, s.n - from, what.p, what.n);
    return p ? p - s.p : -1;
}

int64_t str_rfind_char(struct str s, char c)
{
    for (size_t i = s.n; i > 0; i--)
        if (s.p[i - 1] == c)
            return (int64_t)(i - 1);
    return -1;
}

struct str str_part(struct str s, size_t from, size_t to)
{
    to = MIN(to, s.n);
    from = MIN(from, to);
    return str_of(s.p ? s.p + from : s.p, to - from);
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f';
}

struct str str_trim(struct str s)
{
    while (s.n && blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool str_next(struct str *rest, char sep, struct str *piece)
{
    const char *at;

    if (!rest->p)
        return false;
    at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
    if (!at) {
        *piece = *rest;
        *rest = STR_NULL;
        return true;
    }
    *piece = str_of(rest->p, (size_t)(at - rest->p));
    *rest = str_of(at + 1, rest->n - piece->n - 1);
    return true;
}

bool str_to_i64(struct str s, int64_t *out)
{
    bool minus = s.n && s.p[0] == '-';
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+') ? 1 : 0;
    int64_t v = 0; /* kept negative: its range is one wider */

    if (i == s.n)
        return false;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s.p[i] - '0', &v))
            return false;
    }
    if (!minus && v == INT64_MIN)
        return false;
    *out = minus ? v : -v;
    return true;
}

uint64_t str_hash(struct str s)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
    return h;
}
