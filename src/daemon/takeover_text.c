/* takeover_text.c -- what `takeover` found, for people and as JSON.
 * SPDX-License-Identifier: Apache-2.0
 *
 * {"applied","back","from","exit_code","flows":[{"flow","group","group_state","protocol_type","running","members":[...],
 *  "offsets_topic","connector","fault","partitions":[{"topic","partition","target_topic","stored","goes_on_at","in_target","missing",
 *  "repeated_before","others","undecided","source_start","source_end","target_end","left","note"}],
 *  "in_target","undecided","written"}]}; offsets are -1 where there is none, running is null where it is not
 * known.
 */
#include "base/json.h"
#include "cli/table.h"
#include "daemon/takeover_int.h"

#include <inttypes.h>

/* Records of the source beyond the stored position that are in the target. */
static int64_t in_target(const struct takeover_part *p)
{
    return (int64_t)(p->c.sum.copied + p->c.sum.missing);
}

struct totals {
    int64_t in_target, undecided;
    size_t known;
};

static struct totals total(const struct takeover_flow *f)
{
    struct totals t = { 0, 0, 0 };

    for (size_t i = 0; i < f->parts_n; i++) {
        if (!f->parts[i].known)
            continue;
        t.known++;
        t.in_target += in_target(&f->parts[i]);
        t.undecided += (int64_t)f->parts[i].c.sum.undecided;
    }
    return t;
}

/* What is to be known of the partition beyond its numbers; "" nothing. */
static const char *note_of(const struct takeover_flow *f, const struct takeover_part *p)
{
    if (!p->known)
        return "not looked at";
    if (!p->copied)
        return "the copy is not there yet";
    if (p->c.denied)
        return "the copy may not be read: grant Read on it; what lies beyond the position would be written again";
    if (p->c.open)
        return "a transaction is open at its end: wait for the coordinator, or --apply --fence";
    if (p->c.sum.undecided)
        return "records that cannot be told apart, or a hole: the least that is sure";
    if (p->stored >= 0 && p->c.source_start > p->stored)
        return "retention has taken the source's records at the position";
    if (p->c.source_end >= 0 && p->c.source_end < p->stored)
        return "the source ends before the position: it lost records, or was made anew";
    if (p->stored < 0)
        return "no position is stored";
    if (!p->c.sum.others)
        return "";
    return f->members_n ? "the mirror wrote on meanwhile, or other writers' records lie between" : "other writers' records lie between";
}

static int64_t left_of(const struct takeover_part *p)
{
    return p->c.source_end >= 0 && p->c.next >= 0 ? MAX(p->c.source_end - p->c.next, 0) : -1;
}

static void put_group(struct takeover_flow *f, struct buf *out)
{
    const struct takeover_args *a = f->all->args;

    buf_fmt(out, "flow %.*s, from %s\n", STR_ARG(f->config->name), a->from_name);
    if (f->members_n)
        buf_fmt(out, "  ALIVE: group %.*s (%.*s) has %zu member%s: %.*s\n", STR_ARG(f->group_name), STR_ARG(f->protocol_type),
                f->members_n, f->members_n == 1 ? "" : "s", STR_ARG(takeover_members(f)));
    else if (takeover_is_blind(f))
        buf_put_str(out, a->from == FROM_GROUP
                             ? STR("  whether it runs is not known; stop it first\n")
                             : STR("  whether its connectors run is not known: the group of their workers was not named "
                                   "(--connect-group); stop them first\n"));
    else if (f->step != STEP_PLAN)
        buf_fmt(out, "  not running: group %.*s has no members\n", STR_ARG(f->group_name));
    if (a->from == FROM_GROUP)
        buf_fmt(out, "  positions of group %.*s at %.*s\n", STR_ARG(a->from_group), STR_ARG(f->config->source_alias));
    else if (f->parts_n || !fault_is_set(&f->fault)) /* else they were not read */
        buf_fmt(out, "  positions of %.*s in %.*s\n", STR_ARG(str_is_null(f->connector) ? STR("no connector") : f->connector),
                STR_ARG(f->offsets_topic));
    if (!str_is_null(f->other_connector))
        buf_fmt(out, "  there are positions of %.*s too, which do not count; --connector chooses\n",
                STR_ARG(f->other_connector));
}

static void put_parts(struct takeover_flow *f, struct buf *out)
{
    struct table t;

    table_init(&t, "|TOPIC|+PARTITION|+STORED|+IN TARGET|+GOES ON AT|+LEFT|+SOURCE END|+TARGET END|NOTE");
    for (size_t i = 0; i < f->parts_n; i++) {
        const struct takeover_part *p = &f->parts[i];

        table_put(&t, " ");
        table_put(&t, "%.*s", STR_ARG(p->want->name));
        table_put_int(&t, p->partition);
        table_put_int(&t, p->stored);
        table_put_int(&t, p->known ? in_target(p) : -1);
        table_put_int(&t, p->known ? p->c.next : -1);
        table_put_int(&t, p->known ? left_of(p) : -1);
        table_put_int(&t, p->known ? p->c.source_end : -1);
        table_put_int(&t, p->known ? p->c.target_end : -1);
        table_put(&t, "%s", note_of(f, p));
    }
    if (f->parts_n)
        table_print(&t, out);
    table_fini(&t);
}

static void put_end(struct takeover_flow *f, struct buf *out)
{
    const struct takeover_args *a = f->all->args;
    struct totals t = total(f);

    if (fault_is_set(&f->fault)) {
        buf_fmt(out, "  %s: %s\n", f->fault.code, f->fault.text);
        return;
    }
    buf_fmt(out, "  %" PRId64 " records beyond the stored positions are in the target already", t.in_target);
    if (t.undecided)
        buf_fmt(out, ", and %" PRId64 " may be", t.undecided);
    if (a->apply)
        buf_fmt(out, ".\n  Stored: %" PRId64 " exact positions in %.*s. %s goes on there and writes none of them again.\n",
                f->written, STR_ARG(f->config->offsets_topic), a->back ? "MirrorMaker 2" : "heliostat run");
    else if (a->back)
        buf_fmt(out, ".\n  MirrorMaker 2 would write %s%" PRId64 " records again; with --apply none.\n",
                t.undecided ? "at least " : "", t.in_target);
    else if (a->from == FROM_MM2 && !t.undecided && str_eq(f->offsets_topic, f->config->offsets_topic))
        buf_fmt(out, ".\n  heliostat run finds the same where it has not copied before, and writes none of them again; --apply stores "
                     "it for all.\n");
    else if (a->from == FROM_MM2 && str_eq(f->offsets_topic, f->config->offsets_topic))
        buf_fmt(out, ".\n  heliostat run goes on where it is sure: what may be there is written again.\n");
    else
        buf_fmt(out, ".\n  Nothing was stored: heliostat run needs these positions, which --apply stores.\n");
}

void takeover_put_text(struct takeover *t, struct buf *out)
{
    for (size_t i = 0; i < t->flows_n; i++) {
        put_group(&t->flows[i], out);
        put_parts(&t->flows[i], out);
        put_end(&t->flows[i], out);
    }
}

static void put_part(const struct takeover_flow *f, const struct takeover_part *p, struct json *j)
{
    json_open(j, '{');
    json_put_str(j, "topic", p->want->name);
    json_put_int(j, "partition", p->partition);
    json_put_str(j, "target_topic", p->want->target_name);
    json_put_int(j, "stored", p->stored);
    json_put_bool(j, "known", p->known);
    if (p->known) {
        json_put_int(j, "goes_on_at", p->c.next);
        json_put_int(j, "in_target", in_target(p));
        json_put_int(j, "missing", (int64_t)p->c.sum.missing);
        json_put_int(j, "repeated_before", (int64_t)p->c.sum.repeats);
        json_put_int(j, "others", (int64_t)p->c.sum.others);
        json_put_int(j, "undecided", (int64_t)p->c.sum.undecided);
        json_put_int(j, "source_start", p->c.source_start);
        json_put_int(j, "source_end", p->c.source_end);
        json_put_int(j, "target_end", p->c.target_end);
        json_put_int(j, "left", left_of(p));
    }
    json_put_c(j, "note", note_of(f, p));
    json_close(j, '}');
}

static void put_members(const struct takeover_flow *f, struct json *j)
{
    json_key(j, "members");
    json_open(j, '[');
    for (size_t i = 0; i < f->members_n; i++) {
        json_open(j, '{');
        json_put_str(j, "id", f->members[i].id);
        json_put_str(j, "client_id", f->members[i].client_id);
        json_put_str(j, "host", f->members[i].host);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_flow(struct takeover_flow *f, struct json *j)
{
    struct totals t = total(f);

    json_open(j, '{');
    json_put_str(j, "flow", f->config->name);
    json_put_str(j, "group", f->group_name);
    json_put_str(j, "group_state", f->group_state);
    json_key(j, "running");
    if (takeover_is_blind(f) || f->step == STEP_PLAN)
        json_null(j);
    else
        json_bool(j, f->members_n > 0);
    json_put_str(j, "protocol_type", f->protocol_type);
    put_members(f, j);
    json_put_str(j, "offsets_topic", f->offsets_topic);
    json_put_str(j, "connector", f->connector);
    json_put_int(j, "in_target", t.in_target);
    json_put_int(j, "undecided", t.undecided);
    json_put_int(j, "written", f->written);
    fault_put(j, &f->fault);
    json_key(j, "partitions");
    json_open(j, '[');
    for (size_t i = 0; i < f->parts_n; i++)
        put_part(f, &f->parts[i], j);
    json_close(j, ']');
    json_close(j, '}');
}

void takeover_put_json(struct takeover *t, struct buf *out)
{
    struct json j = json_to(out);

    json_open(&j, '{');
    json_put_bool(&j, "applied", t->args->apply);
    json_put_bool(&j, "back", t->args->back);
    json_put_c(&j, "from", t->args->from_name);
    json_put_int(&j, "exit_code", t->code);
    json_key(&j, "flows");
    json_open(&j, '[');
    for (size_t i = 0; i < t->flows_n; i++)
        put_flow(&t->flows[i], &j);
    json_close(&j, ']');
    json_close(&j, '}');
    buf_put_char(out, '\n');
}
