/* fuzz_formats.c -- any bytes as MirrorMaker 2's records; what is read is written and read alike.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One byte: how many of the following bytes are the key; the rest is the value.
 */
#include "base/murmur2.h"
#include "mirror/formats.h"

#include "base/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_binary(struct str key, struct str value, struct buf *k, struct buf *v)
{
    struct checkpoint_record point, point_again;
    struct heartbeat_record beat;
    struct sync_record sync;

    if (!formats_decode_sync(key, value, &sync)) {
        formats_encode_sync(&sync, k, v);
        must(str_starts(key, buf_str(k)) && str_starts(value, buf_str(v)));
    }
    buf_clear(k);
    buf_clear(v);
    if (!formats_decode_heartbeat(key, value, &beat)) {
        formats_encode_heartbeat(&beat, k, v);
        must(str_starts(key, buf_str(k)) && v->n == 10); /* the version may differ */
    }
    buf_clear(k);
    buf_clear(v);
    if (!formats_decode_checkpoint(key, value, &point)) {
        formats_encode_checkpoint(&point, k, v);
        must(str_starts(key, buf_str(k)));
        must(formats_decode_checkpoint(buf_str(k), buf_str(v), &point_again) == E_OK);
        must(str_eq(point.metadata, point_again.metadata) &&
             point.downstream == point_again.downstream);
    }
}

static void check_json(struct str key, struct str value, struct buf *k, struct buf *v)
{
    struct position_key pos, again;
    int64_t offset, offset_again;
    struct arena a;

    arena_init(&a, 64 * KiB);
    buf_clear(k);
    buf_clear(v);
    if (!formats_parse_position_key(key, &a, &pos)) {
        formats_position_key(&pos, k);
        must(formats_parse_position_key(buf_str(k), &a, &again) == E_OK);
        must(str_eq(pos.cluster, again.cluster) && str_eq(pos.topic, again.topic) &&
             str_eq(pos.connector, again.connector) && pos.partition == again.partition);
    }
    if (!formats_parse_position_value(value, &offset)) {
        formats_position_value(offset, v);
        must(formats_parse_position_value(buf_str(v), &offset_again) == E_OK);
        must(offset == offset_again);
    }
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str all = str_of((const char *)data + 1, size ? size - 1 : 0), key, value;
    struct buf k, v;

    if (size == 0)
        return 0;
    key = str_part(all, 0, data[0]);
    value = str_part(all, key.n, all.n);
    buf_init(&k, MiB);
    buf_init(&v, MiB);
    check_binary(key, value, &k, &v);
    check_json(key, value, &k, &v);
    must(murmur2_partition(key, 25) >= 0 && murmur2_partition(key, 25) < 25);
    buf_fini(&k);
    buf_fini(&v);
    return 0;
}
