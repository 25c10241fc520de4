/* json.c -- writes JSON into a buf, one value after the other.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

static void next(struct json *j)
{
    if (j->comma)
        buf_put_char(j->out, ',');
    j->comma = true;
}

void json_open(struct json *j, char bracket)
{
    next(j);
    buf_put_char(j->out, bracket);
    j->comma = false;
}

void json_close(struct json *j, char bracket)
{
    buf_put_char(j->out, bracket);
    j->comma = true;
}

void json_key(struct json *j, const char *key)
{
    next(j);
    buf_put_char(j->out, '"');
    buf_put(j->out, key, strlen(key));
    buf_put(j->out, "\":", 2);
    j->comma = false;
}

/* Bytes of the well-formed UTF-8 sequence at s; 0: there is none (RFC 3629, table of section 4). */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    unsigned char low = 0x80, high = 0xbf;
    size_t length;

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length > n)
        return 0;
    if (s[0] == 0xe0)
        low = 0xa0; /* shorter form exists */
    else if (s[0] == 0xed)
        high = 0x9f; /* surrogates */
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f; /* beyond U+10FFFF */
    for (size_t i = 1; i < length; i++, low = 0x80, high = 0xbf)
        if (s[i] < low || s[i] > high)
            return 0;
    return length;
}

static void put_special(struct buf *out, unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
        buf_put_char(out, '\\');
        buf_put_char(out, (char)c);
        break;
    case '\n':
        buf_put(out, "\\n", 2);
        break;
    case '\r':
        buf_put(out, "\\r", 2);
        break;
    case '\t':
        buf_put(out, "\\t", 2);
        break;
    default:
        buf_fmt(out, "\\u%04x", c);
    }
}

void json_str(struct json *j, struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t plain = 0; /* start of what has not been put yet */

    if (str_is_null(s)) {
        json_null(j);
        return;
    }
    next(j);
    buf_put_char(j->out, '"');
    for (size_t i = 0; i < s.n;) {
        size_t length = utf8_length(p + i, s.n - i);

        if (length && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\' && p[i] != 0x7f) {
            i += length;
            continue;
        }
        buf_put(j->out, s.p + plain, i - plain);
        if (length)
            put_special(j->out, p[i]);
        else
            buf_put(j->out, "\xef\xbf\xbd", 3);
        plain = ++i;
    }
    buf_put(j->out, s.p + plain, s.n - plain);
    buf_put_char(j->out, '"');
}

void json_int(struct json *j, int64_t i)
{
    next(j);
    buf_fmt(j->out, "%" PRId64, i);
}

void json_uint(struct json *j, uint64_t u)
{
    next(j);
    buf_fmt(j->out, "%" PRIu64, u);
}

void json_bool(struct json *j, bool b)
{
    json_raw(j, b ? STR("true") : STR("false"));
}

void json_null(struct json *j)
{
    json_raw(j, STR("null"));
}

void json_raw(struct json *j, struct str value)
{
    next(j);
    buf_put_str(j->out, value);
}

void json_put_str(struct json *j, const char *key, struct str s)
{
    json_key(j, key);
    json_str(j, s);
}

void json_put_c(struct json *j, const char *key, const char *s)
{
    json_put_str(j, key, str_c(s));
}

void json_put_int(struct json *j, const char *key, int64_t i)
{
    json_key(j, key);
    json_int(j, i);
}

void json_put_uint(struct json *j, const char *key, uint64_t u)
{
    json_key(j, key);
    json_uint(j, u);
}

void json_put_bool(struct json *j, const char *key, bool b)
{
    json_key(j, key);
    json_bool(j, b);
}
