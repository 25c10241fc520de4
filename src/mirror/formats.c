/* formats.c -- MirrorMaker 2's internal records to and from bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     sync        key    topic string, partition int32
 *                 value  upstream int64, downstream int64
 *     checkpoint  key    group string, topic string, partition int32
 *                 value  version int16 = 0, upstream int64, downstream int64, metadata string
 *     heartbeat   key    source string, target string
 *                 value  version int16 = 0, timestamp int64
 *     position    key    ["MirrorSourceConnector",{"cluster":S,"partition":N,"topic":S}]
 *                 value  {"offset":N}
 *
 * Strings of the first three: int16 length and UTF-8.
 */
#include "mirror/formats.h"

#include "wire/prim.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

void formats_encode_sync(const struct sync_record *r, struct buf *key, struct buf *value)
{
    put_string(key, r->topic, false);
    put_i32(key, r->partition);
    put_i64(value, r->upstream);
    put_i64(value, r->downstream);
}

enum err formats_decode_sync(struct str key, struct str value, struct sync_record *out)
{
    struct reader k = reader_of(key.p, key.n), v = reader_of(value.p, value.n);
    struct sync_record r;

    if (str_is_null(value))
        return E_NOT_FOUND;
    r.topic = read_string(&k, false);
    r.partition = read_i32(&k);
    r.upstream = read_i64(&v);
    r.downstream = read_i64(&v);
    if (k.bad || v.bad || str_is_null(r.topic))
        return E_MALFORMED;
    *out = r;
    return E_OK;
}

void formats_encode_checkpoint(const struct checkpoint_record *r, struct buf *key,
                               struct buf *value)
{
    put_string(key, r->group, false);
    put_string(key, r->topic, false);
    put_i32(key, r->partition);
    put_i16(value, 0);
    put_i64(value, r->upstream);
    put_i64(value, r->downstream);
    put_string(value, str_is_null(r->metadata) ? STR("") : r->metadata, false);
}

enum err formats_decode_checkpoint(struct str key, struct str value, struct checkpoint_record *out)
{
    struct reader k = reader_of(key.p, key.n), v = reader_of(value.p, value.n);
    struct checkpoint_record r;

    if (str_is_null(value))
        return E_NOT_FOUND;
    r.group = read_string(&k, false);
    r.topic = read_string(&k, false);
    r.partition = read_i32(&k);
    (void)read_i16(&v);
    r.upstream = read_i64(&v);
    r.downstream = read_i64(&v);
    r.metadata = read_string(&v, false);
    if (k.bad || v.bad || str_is_null(r.group) || str_is_null(r.topic) || str_is_null(r.metadata))
        return E_MALFORMED;
    *out = r;
    return E_OK;
}

void formats_encode_heartbeat(const struct heartbeat_record *r, struct buf *key, struct buf *value)
{
    put_string(key, r->source, false);
    put_string(key, r->target, false);
    put_i16(value, 0);
    put_i64(value, r->timestamp_ms);
}

enum err formats_decode_heartbeat(struct str key, struct str value, struct heartbeat_record *out)
{
    struct reader k = reader_of(key.p, key.n), v = reader_of(value.p, value.n);
    struct heartbeat_record r;

    if (str_is_null(value))
        return E_NOT_FOUND;
    r.source = read_string(&k, false);
    r.target = read_string(&k, false);
    (void)read_i16(&v);
    r.timestamp_ms = read_i64(&v);
    if (k.bad || v.bad || str_is_null(r.source) || str_is_null(r.target))
        return E_MALFORMED;
    *out = r;
    return E_OK;
}

/* Bytes of the well-formed character at the front of s, and its code point; 0: not well-formed. */
static size_t utf8_char(struct str s, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char first = (unsigned char)s.p[0];
    size_t n = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? first : first & (0x7fu >> n);

    if (n == 0 || n > s.n || first > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s.p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | ((unsigned char)s.p[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *code = c;
    return n;
}

static void put_json_char(struct buf *out, struct str raw, uint32_t c)
{
    static const char short_names[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                        ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\' };

    if (c < sizeof(short_names) && short_names[c])
        buf_fmt(out, "\\%c", short_names[c]);
    else if (c < 0x20)
        buf_fmt(out, "\\u%04X", (unsigned)c);
    else if (c > 0xffff)
        buf_fmt(out, "\\u%04X\\u%04X", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
    else
        buf_put_str(out, raw);
}

/* As Jackson writes a Java string: raw UTF-8, but pairs of escapes outside the basic plane. Bytes
 * that are no UTF-8 become U+FFFD, as they do when Java reads them. */
static void put_json_string(struct buf *out, struct str s)
{
    buf_put_char(out, '"');
    while (s.n > 0) {
        uint32_t code = 0;
        size_t n = utf8_char(s, &code);

        if (n > 0)
            put_json_char(out, str_of(s.p, n), code);
        else
            buf_put_str(out, STR("\xef\xbf\xbd"));
        s = str_part(s, MAX(n, 1), s.n);
    }
    buf_put_char(out, '"');
}

void formats_position_key(const struct position_key *k, struct buf *out)
{
    buf_put_char(out, '[');
    put_json_string(out, k->connector);
    buf_put_str(out, STR(",{\"cluster\":"));
    put_json_string(out, k->cluster);
    buf_fmt(out, ",\"partition\":%" PRId32 ",\"topic\":", k->partition);
    put_json_string(out, k->topic);
    buf_put_str(out, STR("}]"));
}

void formats_position_value(int64_t offset, struct buf *out)
{
    buf_fmt(out, "{\"offset\":%" PRId64 "}", offset);
}

static struct str json_str(const json_t *j)
{
    return json_is_string(j) ? str_of(json_string_value(j), json_string_length(j)) : STR_NULL;
}

/* Copies s unless the arena is full. */
static bool copy_str(struct arena *a, struct str s, struct str *out)
{
    char *p = arena_try(a, s.n + 1);

    if (!p)
        return false;
    memcpy(p, s.p, s.n); /* the arena's zero stays behind it */
    *out = str_of(p, s.n);
    return true;
}

static enum err take_position_key(const json_t *root, struct arena *a, struct position_key *out)
{
    const json_t *source = json_array_get(root, 1);
    const json_t *partition = json_object_get(source, "partition");
    struct str connector = json_str(json_array_get(root, 0));
    struct str cluster = json_str(json_object_get(source, "cluster"));
    struct str topic = json_str(json_object_get(source, "topic"));
    struct position_key k;

    if (json_array_size(root) != 2 || str_is_null(connector) || str_is_null(cluster) ||
        str_is_null(topic) || !json_is_integer(partition))
        return E_INVALID;
    if (json_integer_value(partition) < 0 || json_integer_value(partition) > INT32_MAX)
        return E_INVALID;
    k.partition = (int32_t)json_integer_value(partition);
    if (!copy_str(a, connector, &k.connector) || !copy_str(a, cluster, &k.cluster) ||
        !copy_str(a, topic, &k.topic))
        return E_LIMIT;
    *out = k;
    return E_OK;
}

enum err formats_parse_position_key(struct str key, struct arena *a, struct position_key *out)
{
    json_t *root = json_loadb(key.p ? key.p : "", key.n, JSON_ALLOW_NUL, NULL);
    enum err e = take_position_key(root, a, out);

    json_decref(root);
    return e;
}

enum err formats_parse_position_value(struct str value, int64_t *offset)
{
    json_t *root, *member;
    enum err e = E_INVALID;

    if (str_is_null(value))
        return E_NOT_FOUND;
    root = json_loadb(value.p, value.n, JSON_DECODE_ANY, NULL);
    member = json_object_get(root, "offset");
    if (json_is_null(root)) {
        e = E_NOT_FOUND;
    } else if (json_is_integer(member)) {
        *offset = json_integer_value(member);
        e = E_OK;
    }
    json_decref(root);
    return e;
}
