/* fuzz_offset_map.c -- any bytes as the stored parts of an offset map; what comes of them is asked, cut and stored again.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Four bytes: offsets and the length of the first part; then its runs, then the rest's.
 */
#include "mirror/offset_map.h"

#include "base/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct offset_map *m)
{
    struct offset_map_stats s;

    offset_map_stats(m, &s);
    for (int64_t i = 0; i <= 16; i++) {
        int64_t source = s.source + (s.source_end - s.source) / 16 * i;
        struct offset_answer to = offset_map_to_target(m, source), back;
        int64_t records;

        (void)offset_map_to_source(m, s.target + (s.target_end - s.target) / 16 * i);
        (void)offset_map_count_from(m, s.target + (s.target_end - s.target) / 16 * i, &records);
        if (to.kind != OFFSET_EXACT)
            continue;
        back = offset_map_to_source(m, to.offset);
        must(back.kind == OFFSET_EXACT && back.offset == source);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct offset_part parts[1], rest = { .number = 1 };
    struct offset_map_stats before, after;
    struct offset_map *m, *again;
    struct buf bytes;
    size_t n;

    if (size < 4)
        return 0;
    n = MIN(data[3], size - 4);
    parts[0] = (struct offset_part){ .source = data[0], .target = data[1], .runs = str_of((const char *)data + 4, n) };
    rest.source = rest.target = (int64_t)data[2] << (data[2] % 50);
    rest.runs = str_of((const char *)data + 4 + n, size - 4 - n);
    rest.source_end = rest.target_end = INT64_MAX;
    m = offset_map_restore(parts, 1, &rest, INT64_MAX / 2, INT64_MAX / 2);
    ask(m);
    offset_map_stats(m, &before);
    offset_map_cut_target(m, before.target + (before.target_end - before.target) / 3);
    offset_map_cut_source(m, before.source + (before.source_end - before.source) / 2);
    ask(m);
    offset_map_stats(m, &before);
    buf_init(&bytes, 1 * MiB);
    offset_map_rest(m, 1 * MiB, &bytes, &rest);
    again = offset_map_restore(NULL, 0, &rest, before.source_end, before.target_end);
    offset_map_stats(again, &after);
    must(after.source_end == before.source_end && after.target_end == before.target_end);
    while (offset_map_thin(again))
        ask(again);
    offset_map_free(&again);
    offset_map_free(&m);
    buf_fini(&bytes);
    return 0;
}
