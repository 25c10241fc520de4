/* test_groups.c -- what becomes of a group's position at the target.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/groups.h"

#include "unit/test.h"

static struct group_position at(enum offset_kind kind, enum offset_reason reason, int64_t offset, int64_t last)
{
    struct offset_answer a = { .kind = kind, .reason = reason, .offset = offset, .last = last };

    return groups_position(&a);
}

TEST(positions)
{
    static const struct {
        enum offset_kind kind;
        enum offset_reason reason;
        int64_t offset, last;
        enum group_how how;
        int64_t want;
    } cases[] = {
        { OFFSET_EXACT, OFFSET_SURE, 7, 0, GROUP_EXACT, 7 },
        { OFFSET_EXACT, OFFSET_SURE, 0, 0, GROUP_EXACT, 0 }, /* zero is a position */
        { OFFSET_NEXT, OFFSET_SURE, 8, 0, GROUP_EXACT, 8 },
        { OFFSET_END, OFFSET_SURE, 9, 0, GROUP_EXACT, 9 },
        { OFFSET_NOT_YET, OFFSET_SURE, 9, 0, GROUP_BEHIND, 9 },
        { OFFSET_RANGE, OFFSET_THINNED, 3, 12, GROUP_RANGE, 3 },
        { OFFSET_RANGE, OFFSET_EXPIRED, 0, 12, GROUP_EXACT, 12 }, /* what lies before is gone there too */
        { OFFSET_UNKNOWN, OFFSET_SURE, 0, 0, GROUP_NONE, -1 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct group_position p = at(cases[i].kind, cases[i].reason, cases[i].offset, cases[i].last);

        CHECK_EQ(p.how, cases[i].how);
        CHECK_EQ(p.offset, cases[i].want);
    }
}

TEST(checkpoints_are_told_when_something_moved)
{
    struct group_mark none = { -1, -1, -1, -1 }, m = { 50, 40, 50, 40 };
    struct group_position same = { GROUP_EXACT, 40, 40 }, other = { GROUP_EXACT, 41, 41 }, less = { GROUP_RANGE, 10, 30 };

    CHECK(groups_must_tell(&none, 0, &(struct group_position){ GROUP_EXACT, 0, 0 }, true));
    CHECK(!groups_must_tell(&none, 0, &(struct group_position){ GROUP_NONE, -1, -1 }, true));
    CHECK(!groups_must_tell(&m, 50, &same, true));
    CHECK(groups_must_tell(&m, 50, &same, false));
    CHECK(groups_must_tell(&m, 49, &same, true)); /* back, though the target's record is the same */
    CHECK(groups_must_tell(&m, 50, &other, true));
    CHECK(!groups_must_tell(&m, 50, &less, true)); /* a range takes nothing back */
    CHECK(groups_must_tell(&m, 20, &less, true));
}

TEST(what_is_committed)
{
    struct group_mark m = { 50, 40, 50, 40 };
    struct group_position p = { GROUP_EXACT, 40, 40 }, back = { GROUP_EXACT, 5, 5 }, range = { GROUP_RANGE, 5, 90 };

    CHECK(groups_must_commit(&m, 50, &p, -1));   /* the target has none */
    CHECK(groups_must_commit(&m, 50, &p, 39));
    CHECK(!groups_must_commit(&m, 50, &p, 40));
    CHECK(!groups_must_commit(&m, 50, &p, 90));  /* somebody read on there */
    CHECK(groups_must_commit(&m, 10, &back, 40)); /* ours, and the source was reset */
    CHECK(!groups_must_commit(&m, 10, &back, 41));
    CHECK(!groups_must_commit(&m, 50, &range, 40)); /* the group did not move: the map got coarser */
    CHECK(groups_must_commit(&m, 10, &range, 40));
    CHECK(!groups_must_commit(&m, 50, &(struct group_position){ GROUP_NONE, -1, -1 }, -1));
}

TEST(ranges_are_bounded_by_what_was_told)
{
    struct group_mark m = { 50, 40, 50, 40 };
    struct group_position p = { GROUP_RANGE, 0, 90 }, far = { GROUP_RANGE, 0, 30 }, exact = { GROUP_EXACT, 3, 3 };

    groups_narrow(&m, 49, &p);
    CHECK_EQ(p.offset, 0);
    groups_narrow(&m, 60, &p);
    CHECK_EQ(p.offset, 40);
    groups_narrow(&m, 60, &far); /* contradicts: the copy is another one by now */
    CHECK_EQ(far.offset, 0);
    groups_narrow(&m, 60, &exact);
    CHECK_EQ(exact.offset, 3);
}

TEST(as_mirror_maker)
{
    struct group_mark none = { -1, -1, -1, -1 }, m = { 50, 40, 50, 40 };
    struct group_position p = { GROUP_EXACT, 40, 40 }, more = { GROUP_EXACT, 41, 41 }, no = { GROUP_NONE, -1, -1 };

    CHECK(groups_must_tell_mm2(&none, 50, &p));
    CHECK(!groups_must_tell_mm2(&none, 50, &no));
    CHECK(!groups_must_tell_mm2(&m, 60, &p)); /* not further: nothing is said */
    CHECK(groups_must_tell_mm2(&m, 60, &more));
    CHECK(groups_must_tell_mm2(&m, 49, &p));
    CHECK(groups_must_commit_mm2(&p, -1) && groups_must_commit_mm2(&p, 39));
    CHECK(!groups_must_commit_mm2(&p, 40) && !groups_must_commit_mm2(&p, 41) && !groups_must_commit_mm2(&no, -1));
}

TEST(kinds_and_states)
{
    CHECK_EQ(groups_kind(STR("consumer"), STR("consumer")), GROUP_CONSUMER);
    CHECK_EQ(groups_kind(STR("consumer"), STR("")), GROUP_CONSUMER);
    CHECK_EQ(groups_kind(STR(""), STR("classic")), GROUP_CONSUMER); /* offsets alone */
    CHECK_EQ(groups_kind(STR("connect"), STR("classic")), GROUP_OTHER);
    CHECK_EQ(groups_kind(STR("share"), STR("share")), GROUP_SHARE);
    CHECK_EQ(groups_kind(STR("streams"), STR("streams")), GROUP_STREAMS);
    CHECK(!groups_kind_refusal(GROUP_CONSUMER) && !groups_kind_refusal(GROUP_SHARE));
    CHECK(groups_kind_refusal(GROUP_STREAMS) && groups_kind_refusal(GROUP_OTHER));
    CHECK(groups_state_is_idle(STR("Empty")) && groups_state_is_idle(STR("Dead")) && groups_state_is_idle(STR("")));
    CHECK(!groups_state_is_idle(STR("Stable")) && !groups_state_is_idle(STR("Reconciling")));
}

TEST(a_refusal_is_told_once_until_it_is_over)
{
    struct group_refusals r = { 0 };

    for (int round = 0; round < 5; round++) { /* only every other round asks the target */
        groups_refusals_begin(&r);
        CHECK_EQ(groups_refused(&r, GROUP_AT_SOURCE, "A"), round == 0);
        if (round % 2 == 0) {
            CHECK_EQ(groups_refused(&r, GROUP_AT_TARGET, "B"), round == 0);
            CHECK_EQ(groups_refused(&r, GROUP_AT_TARGET, "C"), round == 0); /* causes that take turns are each told once */
        }
        groups_refusals_end(&r, GROUP_AT_SOURCE | (round % 2 == 0 ? GROUP_AT_TARGET : 0u));
        CHECK(groups_is_refused(&r, "A") && groups_is_refused(&r, "B") && groups_is_refused(&r, "C"));
    }
    groups_refusals_begin(&r);
    CHECK(!groups_refused(&r, GROUP_AT_TARGET, "C"));
    groups_refusals_end(&r, GROUP_AT_SOURCE | GROUP_AT_TARGET);
    CHECK(!groups_is_refused(&r, "A") && !groups_is_refused(&r, "B") && groups_is_refused(&r, "C"));
    groups_refusals_begin(&r);
    groups_refusals_end(&r, GROUP_AT_SOURCE | GROUP_TOLD);
    CHECK(groups_is_refused(&r, "C"));
    groups_refusals_end(&r, GROUP_AT_TARGET);
    CHECK_EQ(r.n, 0);
    CHECK(groups_refused(&r, GROUP_TOLD, "C")); /* it is back */
    for (int i = 0; i < 10; i++) /* many: bounded */
        CHECK_EQ(groups_refused(&r, GROUP_AT_TARGET, (char[]){ (char)('a' + i), 0 }), i < GROUP_REFUSALS - 1);
}

TESTS(RUN(positions), RUN(checkpoints_are_told_when_something_moved), RUN(what_is_committed),
      RUN(ranges_are_bounded_by_what_was_told), RUN(as_mirror_maker), RUN(kinds_and_states),
      RUN(a_refusal_is_told_once_until_it_is_over))
