/* test_group_format.c -- what members tell each other, there and back; the leader's choice.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/group_format.h"

#include "unit/test.h"
#include "wire/prim.h"

static void set(struct group_slots *s, int from, int to)
{
    for (int i = from; i < to; i++)
        s->bits[i / 64] |= UINT64_C(1) << (i % 64);
}

TEST(there_and_back)
{
    struct group_metadata m = { .generation = 7, .instance = STR("host-1") }, n;
    struct group_assignment a = { .members = 2, .holder = STR("host-2") }, b;
    struct buf out;

    set(&m.held, 0, 1);
    set(&m.held, 60, 70);
    set(&m.held, 1023, 1024);
    group_slots_all(&a.slots);
    buf_init(&out, 64 * KiB);
    group_format_metadata(&out, &m);
    put_i64(&out, 5); /* of a later version */
    CHECK_EQ(group_parse_metadata(buf_str(&out), &n), E_OK);
    CHECK_EQ(n.generation, 7);
    CHECK_STR(n.instance, "host-1");
    CHECK_EQ(group_slots_count(&n.held), 12);
    CHECK_MEM(&n.held, &m.held, sizeof(n.held));
    buf_clear(&out);
    group_format_assignment(&out, &a);
    CHECK_EQ(out.n, 2 + 4 + 2 + 6 + 4 + 4);
    CHECK_EQ(group_parse_assignment(buf_str(&out), &b), E_OK);
    CHECK_EQ(b.members, 2);
    CHECK_STR(b.holder, "host-2");
    CHECK_EQ(group_slots_count(&b.slots), GROUP_SLOTS);
    CHECK_EQ(group_parse_assignment(STR(""), &b), E_OK);
    CHECK_EQ(group_slots_count(&b.slots), 0);
    buf_fini(&out);
}

TEST(hostile_bytes)
{
    static const struct str cases[] = {
        STR("\xff\xff"),                                                     /* a version below 0 */
        STR("\0\0\0\0\0\1\0\0\0\1\x03\xff\0\2\0\0"),                         /* a range past the last slot */
        STR("\0\0\0\0\0\1\0\0\0\1\xff\xff\0\2\0\0"),                         /* and one before the first */
        STR("\0\0\0\0\0\1\x7f\xff\xff\xff"),                                 /* more ranges than slots */
        STR("\0\0\0\0\0\1\0\0\0\0\0\5ab"),                                   /* cut short */
    };
    struct group_metadata m;

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_EQ(group_parse_metadata(cases[i], &m), E_MALFORMED);
    CHECK_EQ(group_parse_metadata(STR("\0\0\0\0\0\1\0\0\0\0\0\2ab"), &m), E_OK);
}

TEST(choice)
{
    struct group_metadata m[3] = { { .generation = -1 }, { .generation = -1 }, { .generation = -1 } };

    CHECK_EQ(group_choose(m, 3, 2), 2); /* nobody holds anything: whoever leads */
    group_slots_all(&m[0].held);
    m[0].generation = 4;
    CHECK_EQ(group_choose(m, 3, 2), 0); /* who holds keeps */
    group_slots_all(&m[1].held);
    m[1].generation = 6;
    CHECK_EQ(group_choose(m, 3, 2), 1); /* two believe: the later one is right */
    m[2].generation = 9;
    CHECK_EQ(group_choose(m, 3, 2), 1); /* a generation without slots is no claim */
}

TESTS(RUN(there_and_back), RUN(hostile_bytes), RUN(choice))
