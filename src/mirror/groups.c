/* groups.c -- rules for the positions of consumer groups.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/groups.h"

#include <stdio.h>
#include <string.h>

enum group_kind groups_kind(struct str protocol_type, struct str group_type)
{
    if (str_eq_nocase(group_type, STR("share")) || str_eq(protocol_type, STR("share")))
        return GROUP_SHARE;
    if (str_eq_nocase(group_type, STR("streams")) || str_eq(protocol_type, STR("streams")))
        return GROUP_STREAMS;
    return protocol_type.n == 0 || str_eq(protocol_type, STR("consumer")) ? GROUP_CONSUMER : GROUP_OTHER;
}

const char *groups_kind_refusal(enum group_kind k)
{
    switch (k) {
    case GROUP_STREAMS:
        return "a streams group's offsets are of use only with its state stores, which are not mirrored with it";
    case GROUP_OTHER:
        return "not a group of consumers";
    case GROUP_CONSUMER:
    case GROUP_SHARE:
        break;
    }
    return NULL;
}

bool groups_state_is_idle(struct str state)
{
    return state.n == 0 || str_eq_nocase(state, STR("Empty")) || str_eq_nocase(state, STR("Dead"));
}

struct group_position groups_position(const struct offset_answer *a)
{
    switch (a->kind) {
    case OFFSET_EXACT:
    case OFFSET_NEXT:
    case OFFSET_END:
        return (struct group_position){ GROUP_EXACT, a->offset, a->offset };
    case OFFSET_NOT_YET:
        return (struct group_position){ GROUP_BEHIND, a->offset, a->offset };
    case OFFSET_RANGE:
        if (a->reason == OFFSET_EXPIRED) /* what lies before is gone at the target as well */
            return (struct group_position){ GROUP_EXACT, a->last, a->last };
        return (struct group_position){ GROUP_RANGE, a->offset, a->last };
    case OFFSET_UNKNOWN:
        break;
    }
    return (struct group_position){ GROUP_NONE, -1, -1 };
}

void groups_narrow(const struct group_mark *m, int64_t upstream, struct group_position *p)
{
    if (p->how == GROUP_RANGE && m->downstream > p->offset && m->downstream <= p->last && upstream >= m->upstream)
        p->offset = m->downstream;
}

bool groups_must_tell(const struct group_mark *m, int64_t upstream, const struct group_position *p, bool same_metadata)
{
    if (p->how == GROUP_NONE)
        return false;
    if (m->downstream < 0 || upstream != m->upstream || !same_metadata)
        return true;
    /* The same position of the group: a range never takes back what was known better. */
    return p->how == GROUP_RANGE ? p->offset > m->downstream : p->offset != m->downstream;
}

bool groups_must_commit(const struct group_mark *m, int64_t upstream, const struct group_position *p, int64_t there)
{
    if (p->how == GROUP_NONE)
        return false;
    if (there < 0 || p->offset > there)
        return true;
    if (p->offset == there || there != m->synced)
        return false;
    return p->how != GROUP_RANGE || upstream < m->synced_from;
}

bool groups_must_tell_mm2(const struct group_mark *m, int64_t upstream, const struct group_position *p)
{
    return p->how != GROUP_NONE && (m->downstream < 0 || upstream < m->upstream || p->offset > m->downstream);
}

bool groups_must_commit_mm2(const struct group_position *p, int64_t there)
{
    return p->how != GROUP_NONE && p->offset > there;
}

static int find(const struct group_refusals *r, const char *code)
{
    for (int i = 0; i < r->n; i++)
        if (strncmp(r->at[i].code, code, sizeof(r->at[i].code) - 1) == 0)
            return i;
    return -1;
}

void groups_refusals_begin(struct group_refusals *r)
{
    for (int i = 0; i < r->n; i++)
        r->at[i].now = false;
}

bool groups_refused(struct group_refusals *r, enum group_part part, const char *code)
{
    int i = find(r, code);

    if (i >= 0) {
        r->at[i].now = true;
        return false;
    }
    if (r->n == GROUP_REFUSALS)
        return false;
    r->at[r->n] = (struct group_refusal){ .part = part, .now = true };
    snprintf(r->at[r->n++].code, sizeof(r->at[0].code), "%s", code);
    return true;
}

void groups_refusals_end(struct group_refusals *r, unsigned parts)
{
    int n = 0;

    for (int i = 0; i < r->n; i++)
        if (r->at[i].now || !(r->at[i].part & parts))
            r->at[n++] = r->at[i];
    r->n = n;
}

bool groups_is_refused(const struct group_refusals *r, const char *code)
{
    return find(r, code) >= 0;
}
