/* check_map.c -- compares a stored offset map with the truth.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check_map.h"

#include "sim.h"

#include <inttypes.h>

static void check_record(const char *topic, const struct state_record *s, const struct offset_map *m, int64_t source,
                         int64_t target)
{
    struct offset_answer to = offset_map_to_target(m, source), from = offset_map_to_source(m, target);

    if (to.kind != OFFSET_EXACT || to.offset != target)
        sim_fail("%s-%d: the map says of source offset %" PRId64 ": %s %" PRId64 ", and it is at %" PRId64, topic,
                 s->partition, source, offset_kind_name(to.kind), to.offset, target);
    if (from.kind != OFFSET_EXACT || from.offset != source)
        sim_fail("%s-%d: the map says of target offset %" PRId64 ": %s %" PRId64 ", and it is source offset %" PRId64,
                 topic, s->partition, target, offset_kind_name(from.kind), from.offset, source);
}

/* An offset without a record of the copy: the next one, or a range that begins there. */
static void check_hole(const char *topic, const struct state_record *s, const struct offset_map *m, int64_t source,
                       int64_t target)
{
    struct offset_answer to = offset_map_to_target(m, source);

    if ((to.kind != OFFSET_NEXT && to.kind != OFFSET_END && to.kind != OFFSET_RANGE) || to.offset != target)
        sim_fail("%s-%d: the map says of source offset %" PRId64 ", which was not copied: %s %" PRId64
                 ", and the next record is at %" PRId64, topic, s->partition, source, offset_kind_name(to.kind),
                 to.offset, target);
}

void check_map(const char *topic, const struct feed_part *p, const struct state_record *s)
{
    struct offset_map *m;
    int64_t target = 0, at = s->part.source;

    if (!s->has_rest)
        sim_fail("%s-%d: a pair is stored without its map", topic, s->partition);
    m = offset_map_restore(NULL, 0, &s->part, s->pair.source, s->pair.target);
    for (size_t i = 0; i < p->n && p->truths[i].offset < s->pair.source; i++) {
        const struct truth *t = &p->truths[i];

        for (; at < t->offset; at++)
            check_hole(topic, s, m, at, target);
        if (t->offset >= s->part.source && t->state == TRUTH_THERE)
            check_record(topic, s, m, t->offset, target);
        if (t->state == TRUTH_THERE)
            at = MAX(at, t->offset + 1);
        target += t->state == TRUTH_THERE;
    }
    offset_map_free(&m);
}
