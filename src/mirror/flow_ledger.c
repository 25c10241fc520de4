/* flow_ledger.c -- what was lost and what was written once more: log, status and state topic.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An entry goes out in one batch with the pair that makes it true (both are put in one turn, and the state topic has one
 * partition), so after a crash either both are there or neither: what the state topic says is exact. The log may tell
 * a range twice, when the process ended between the line and the batch. Thread: the worker's.
 */
#include "base/log.h"
#include "mirror/flow_internal.h"

static void put_loss(struct flow *f, struct relay *r, const struct state_loss *l)
{
    struct buf key, value;

    buf_init(&key, 64 * KiB);
    buf_init(&value, 64 * KiB);
    state_format_loss_key(&key, r->topic, r->partition, l->number);
    state_format_loss(&value, l);
    topic_writer_put(f->notes, -1, buf_str(&key), buf_str(&value), -1);
    buf_fini(&key);
    buf_fini(&value);
}

static void note(struct flow *f, struct relay *r, const struct state_loss *l)
{
    struct view_loss *loss;

    put_loss(f, r, l);
    if (f->losses_n == (int32_t)COUNT(f->losses))
        return; /* the log has all of them */
    loss = &f->losses[f->losses_n++];
    *loss = (struct view_loss){ .flow = f->config->name,
                                .topic = arena_str(&f->loss_names, relay_topic(r)),
                                .cause = arena_str(&f->loss_names, l->cause),
                                .partition = relay_partition(r),
                                .repeat = l->repeat,
                                .from_offset = l->from,
                                .to_offset = l->to,
                                .records = l->records,
                                .time_ms = l->time_ms };
}

void flow_note_loss(struct flow *f, struct relay *r, int64_t from, int64_t to, int64_t records, const char *cause)
{
    struct state_loss l = { .from = from, .to = to, .records = records, .time_ms = loop_wall_ms(f->loop),
                            .cause = str_c(cause) };
    char name[400];

    if (to < from)
        return;
    l.number = r->losses++;
    relay_name(r, name, sizeof(name));
    log_event(EV_LOSS, kv_c("relay", name), kv_int("from_offset", from), kv_int("to_offset", to),
              kv_int("records", records), kv_c("cause", cause));
    note(f, r, &l);
}

void flow_note_repeat(struct flow *f, struct relay *r, int64_t from, int64_t records)
{
    static const char cause[] = "at-least-once delivery: written, and not stored as such, when the process or the "
                                "connection ended";
    struct state_loss l = { .number = r->losses++, .repeat = true, .from = from, .to = from + records - 1,
                            .records = records, .time_ms = loop_wall_ms(f->loop), .cause = str_c(cause) };
    char name[400];

    relay_name(r, name, sizeof(name));
    log_event(EV_DUPLICATES, kv_c("relay", name), kv_int("from_offset", from), kv_int("to_offset", l.to),
              kv_int("records", records), kv_c("cause", cause));
    r->counts.repeated_records += (uint64_t)records;
    note(f, r, &l);
}
