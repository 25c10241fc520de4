/* props.c -- the .properties reader: physical lines to logical lines to keys and values.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rules worth knowing: a backslash at the end of a line joins the next one, whose leading blanks go; a
 * comment cannot begin inside a joined line; the first '=', ':' or blank that no backslash guards ends
 * the key; \uXXXX is one UTF-16 unit, so two of them may make one character.
 */
#include "base/props.h"

#include "base/buf.h"

#include <string.h>

#define PROPS_INDEX_LEAST 64

struct text {
    const char *p, *end;
    int line;
};

void props_init(struct props *p, struct arena *a)
{
    *p = (struct props){ .arena = a };
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

/* Steps over one line end: LF, CR or CRLF. */
static void skip_end(struct text *t)
{
    if (t->p[0] == '\r' && t->p + 1 < t->end && t->p[1] == '\n')
        t->p++;
    t->p++;
    t->line++;
}

static void skip_blanks(struct text *t)
{
    while (t->p < t->end && is_blank(*t->p))
        t->p++;
}

/* Steps over blank lines and comments to the first character of a logical line. */
static bool skip_to_line(struct text *t)
{
    for (;;) {
        skip_blanks(t);
        if (t->p == t->end)
            return false;
        if (is_end(*t->p)) {
            skip_end(t);
        } else if (*t->p == '#' || *t->p == '!') {
            while (t->p < t->end && !is_end(*t->p))
                t->p++;
        } else {
            return true;
        }
    }
}

/* Takes the rest of a physical line; true: a backslash at its end joins the next one. */
static bool take_physical(struct text *t, struct buf *line)
{
    const char *from = t->p;
    bool guarded = false;

    while (t->p < t->end && !is_end(*t->p)) {
        guarded = *t->p == '\\' && !guarded;
        t->p++;
    }
    buf_put(line, from, (size_t)(t->p - from) - (guarded ? 1 : 0));
    if (t->p == t->end)
        return false;
    skip_end(t);
    return guarded;
}

/* The next logical line without its joints; false at the end. */
static bool next_line(struct text *t, struct buf *line, int *number)
{
    buf_clear(line);
    do {
        if (!skip_to_line(t))
            return false;
        *number = t->line;
        while (take_physical(t, line) && line->n)
            skip_blanks(t);
    } while (line->n == 0 && !line->bad); /* a lone backslash begins no line */
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The UTF-16 unit of \uXXXX at s[at], which is the 'u'; -1: malformed. */
static int32_t unit_at(struct str s, size_t at)
{
    int32_t v = 0;

    if (at + 4 >= s.n)
        return -1;
    for (size_t i = at + 1; i <= at + 4; i++) {
        int d = hex_digit(s.p[i]);

        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

static void put_utf8(struct buf *b, uint32_t c)
{
    if (c < 0x80) {
        buf_put_char(b, (char)c);
    } else if (c < 0x800) {
        buf_put_char(b, (char)(0xc0 | c >> 6));
        buf_put_char(b, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_put_char(b, (char)(0xe0 | c >> 12));
        buf_put_char(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_put_char(b, (char)(0x80 | (c & 0x3f)));
    } else {
        buf_put_char(b, (char)(0xf0 | c >> 18));
        buf_put_char(b, (char)(0x80 | (c >> 12 & 0x3f)));
        buf_put_char(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_put_char(b, (char)(0x80 | (c & 0x3f)));
    }
}

/* One \uXXXX, or two that are a surrogate pair; half a pair becomes '?', as Java writes it. Gives the
 * characters used behind the backslash, 0 when malformed. */
static size_t put_unit(struct buf *b, struct str s, size_t at)
{
    int32_t high = unit_at(s, at);
    int32_t low;

    if (high <= 0)
        return 0; /* NUL would cut the value short further on */
    if (high < 0xd800 || high > 0xdfff) {
        put_utf8(b, (uint32_t)high);
        return 5;
    }
    low = high < 0xdc00 && at + 6 < s.n && s.p[at + 5] == '\\' && s.p[at + 6] == 'u'
              ? unit_at(s, at + 6)
              : -1;
    if (low >= 0xdc00 && low <= 0xdfff) {
        put_utf8(b, 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
        return 11;
    }
    buf_put_char(b, '?');
    return 5;
}

static void put_byte(struct buf *b, char c, enum props_charset charset)
{
    if (charset == PROPS_LATIN1)
        put_utf8(b, (unsigned char)c);
    else
        buf_put_char(b, c);
}

static bool unescape(struct buf *out, struct str s, enum props_charset charset)
{
    buf_clear(out);
    for (size_t i = 0; i < s.n; i++) {
        size_t used;

        if (s.p[i] == '\0')
            return false;
        if (s.p[i] != '\\') {
            put_byte(out, s.p[i], charset);
            continue;
        }
        if (++i == s.n)
            break;
        switch (s.p[i]) {
        case 'u':
            used = put_unit(out, s, i);
            if (!used)
                return false;
            i += used - 1;
            break;
        case 't':
            buf_put_char(out, '\t');
            break;
        case 'n':
            buf_put_char(out, '\n');
            break;
        case 'r':
            buf_put_char(out, '\r');
            break;
        case 'f':
            buf_put_char(out, '\f');
            break;
        default:
            put_byte(out, s.p[i], charset);
        }
    }
    return true;
}

/* Where the key ends and the value begins. */
static void cut(struct str line, struct str *key, struct str *value)
{
    bool guarded = false;
    bool separated;
    size_t i = 0;

    while (i < line.n &&
           (guarded || (line.p[i] != '=' && line.p[i] != ':' && !is_blank(line.p[i])))) {
        guarded = line.p[i] == '\\' && !guarded;
        i++;
    }
    *key = str_part(line, 0, i);
    separated = i < line.n && !is_blank(line.p[i]);
    if (i < line.n)
        i++;
    while (i < line.n &&
           (is_blank(line.p[i]) || (!separated && (line.p[i] == '=' || line.p[i] == ':')))) {
        separated = separated || !is_blank(line.p[i]);
        i++;
    }
    *value = str_part(line, i, line.n);
}

static uint32_t *index_place(const struct props *p, struct str key)
{
    size_t i = str_hash(key) & (p->index_room - 1);

    while (p->index[i] && !str_eq(p->at[p->index[i] - 1].key, key))
        i = (i + 1) & (p->index_room - 1);
    return &p->index[i];
}

struct prop *props_find(const struct props *p, struct str key)
{
    uint32_t at = p->index_room ? *index_place(p, key) : 0;

    return at ? &p->at[at - 1] : NULL;
}

/* Room for one more, in the list and in the index, which stays at most half full. */
static enum err make_room(struct props *p)
{
    size_t room = p->room ? p->room * 2 : PROPS_INDEX_LEAST / 2;
    struct prop *at;
    uint32_t *index;

    if (p->n == PROPS_KEYS_MAX)
        return E_LIMIT;
    if (p->n < p->room)
        return E_OK;
    at = arena_try(p->arena, room * sizeof(*at));
    index = arena_try(p->arena, room * 2 * sizeof(*index));
    if (!at || !index)
        return E_LIMIT;
    if (p->n)
        memcpy(at, p->at, p->n * sizeof(*at));
    p->at = at;
    p->room = room;
    p->index = index;
    p->index_room = room * 2;
    for (size_t i = 0; i < p->n; i++)
        *index_place(p, at[i].key) = (uint32_t)(i + 1);
    return E_OK;
}

static bool copy(struct arena *a, struct str s, struct str *out)
{
    char *p = arena_try(a, s.n + 1);

    if (!p)
        return false;
    if (s.n)
        memcpy(p, s.p, s.n);
    *out = str_of(p, s.n);
    return true;
}

enum err props_put(struct props *p, struct str key, struct str value, struct str file, int line)
{
    struct prop *old = props_find(p, key);
    struct prop new = { .file = file, .line = line };
    enum err e;

    if (!copy(p->arena, value, &new.value))
        return E_LIMIT;
    if (old) {
        new.key = old->key;
        new.before = str_eq(old->file, file) ? old->line : 0;
        *old = new;
        return E_OK;
    }
    e = make_room(p);
    if (e)
        return e;
    if (!copy(p->arena, key, &new.key))
        return E_LIMIT;
    p->at[p->n++] = new;
    *index_place(p, new.key) = (uint32_t)p->n;
    return E_OK;
}

static enum err put_line(struct props *p, struct str line, enum props_charset charset,
                         struct str file, int number, struct buf scratch[2])
{
    struct str key, value;

    cut(line, &key, &value);
    if (!unescape(&scratch[0], key, charset) || !unescape(&scratch[1], value, charset))
        return E_MALFORMED;
    return props_put(p, buf_str(&scratch[0]), buf_str(&scratch[1]), file, number);
}

enum err props_parse(struct props *p, struct str text, enum props_charset charset, struct str file,
                     struct props_fault *fault)
{
    struct text t = { .p = text.p, .end = text.p + text.n, .line = 1 };
    struct buf line, scratch[2];
    enum err e = E_OK;
    int number = 1;

    *fault = (struct props_fault){ .line = 1, .text = "the file is larger than 4 MiB; split it" };
    if (text.n > PROPS_BYTES_MAX)
        return E_LIMIT;
    buf_init(&line, PROPS_BYTES_MAX);
    buf_init(&scratch[0], 2 * PROPS_BYTES_MAX);
    buf_init(&scratch[1], 2 * PROPS_BYTES_MAX);
    if (str_starts(text, STR("\xef\xbb\xbf")))
        t.p += 3;
    while (!e && next_line(&t, &line, &number))
        e = put_line(p, buf_str(&line), charset, file, number, scratch);
    if (e) {
        fault->line = number;
        fault->text = e == E_LIMIT
                          ? "too many or too large entries; make the file smaller"
                          : "a \\u must be followed by four hexadecimal digits, not all 0, "
                            "and NUL bytes are not text; write \\\\u for a backslash and u";
    }
    buf_fini(&line);
    buf_fini(&scratch[0]);
    buf_fini(&scratch[1]);
    return e;
}
