/* view_case.h -- a view made by hand, and what a route says of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_UNIT_SERVE_VIEW_CASE_H
#define TESTS_UNIT_SERVE_VIEW_CASE_H

#include "base/alloc.h"
#include "mirror/view.h"
#include "serve/routes.h"
#include "unit/test.h"

#include <stdio.h>

static int view_cases_freed;

static inline void view_case_free(struct snapshot *s)
{
    struct view *v = container_of(s, struct view, snapshot);

    arena_fini(&v->arena);
    mem_free(v);
    view_cases_freed++;
}

/* Partition i of its flow: a number in each field that tells where it came from; the first has a fault. */
static inline void view_case_partition(struct view *v, struct view_partition *p, int32_t i)
{
    *p = (struct view_partition){ .topic = arena_fmt(&v->arena, "topic-%d", i / 10),
                                  .target_topic = arena_fmt(&v->arena, "a.topic-%d", i / 10),
                                  .partition = i % 10,
                                  .state = "caught-up",
                                  .next_offset = 100 + i,
                                  .source_start = 0,
                                  .source_end = 100 + i,
                                  .target_end = 100 + i,
                                  .lag_records = 0,
                                  .lag_bytes = 0,
                                  .lag_ms = 1500,
                                  .relayed_batches = 7,
                                  .records = 100 + (uint64_t)i,
                                  .bytes = 1000 };
    if (i > 0)
        return;
    p->state = "halted";
    p->lag_records = p->lag_bytes = p->lag_ms = p->source_end = -1;
    fault_set(&p->fault, 1700000000000, "RECORD_TOO_LARGE", "it says \"%s\"\nand \\", "no");
}

/* Two flows, a->b with n partitions and b->a with none; two clusters; a fault and a loss. One reference. */
static inline struct view *view_case_new(int32_t n)
{
    struct view *v = mem_new(sizeof(*v));
    struct view_flow *f;

    snapshot_init(&v->snapshot, view_case_free);
    arena_init(&v->arena, (size_t)GiB);
    v->version = STR("9.9.9");
    v->commit = STR("abc");
    v->instance = STR("me\"1");
    v->start_time_ms = 1700000000000;
    v->made_ms = 1700000005000;
    v->workers = 2;
    v->memory_max = 1 << 20;
    v->flows_n = 2;
    v->flows = arena_array(&v->arena, 2, sizeof(*v->flows));
    f = &v->flows[0];
    *f = (struct view_flow){ .name = STR("a->b"), .source = STR("a"), .target = STR("b"),
                             .state = "copying", .delivery = "exactly-once", .enabled = true, .ready = true,
                             .records = 12345678901234, .partitions_n = n };
    f->partitions = arena_array(&v->arena, (size_t)n, sizeof(*f->partitions));
    for (int32_t i = 0; i < n; i++)
        view_case_partition(v, &f->partitions[i], i);
    f->groups = (struct view_groups){ .followed = true, .groups = 3, .refused_groups = 1, .positions = 12, .exact = 11,
                                      .behind = 1, .committed = 10, .last_round_ms = 1700000004000, .refused_n = 1 };
    f->groups.refused = arena_array(&v->arena, 1, sizeof(*f->groups.refused));
    f->groups.refused[0].group = STR("g\"1");
    fault_set(&f->groups.refused[0].fault, 1700000000000, "GROUP_AUTHORIZATION_FAILED", "no");
    v->flows[1] = (struct view_flow){ .name = STR("b->a"), .source = STR("b"), .target = STR("a"),
                                      .state = "disabled", .delivery = "exactly-once", .ready = true };
    v->clusters_n = 2;
    v->clusters = arena_array(&v->arena, 2, sizeof(*v->clusters));
    v->clusters[0] = (struct view_cluster){ .alias = STR("a"), .cluster_id = STR("id-a"), .brokers_n = 1 };
    v->clusters[0].brokers = arena_array(&v->arena, 1, sizeof(struct view_broker));
    v->clusters[0].brokers[0] = (struct view_broker){ .id = 1, .port = 9092, .host = STR("h"), .state = "up",
                                                      .rtt_us = 1234 };
    v->clusters[1] = (struct view_cluster){ .alias = STR("b") };
    v->faults = arena_array(&v->arena, 2, sizeof(*v->faults));
    if (n)
        v->faults[v->faults_n++] = (struct view_fault){ .fault = f->partitions[0].fault, .flow = f->name,
                                                        .topic = f->partitions[0].topic, .partition = 0 };
    v->losses = arena_array(&v->arena, 1, sizeof(*v->losses));
    v->losses_n = 1;
    v->losses[0] = (struct view_loss){ .flow = f->name, .topic = STR("t"), .cause = STR("expired"),
                                       .partition = 3, .from_offset = 5, .to_offset = 9, .time_ms = 1 };
    return v;
}

struct said {
    struct buf text;
    int status, pieces;
    size_t largest; /* piece */
    const char *type;
};

/* All pieces of an answer. */
static inline struct said view_case_ask(const struct view *v, const char *path, const char *query)
{
    struct answer a = { .view = v, .view_age_ms = 10 };
    struct said s = { 0 };
    struct buf piece;

    buf_init(&s.text, (size_t)GiB);
    buf_init(&piece, ANSWER_PIECE_MAX);
    routes_answer(path, query, &a, &piece);
    s.status = a.status;
    s.type = a.type;
    for (;;) {
        s.pieces++;
        s.largest = MAX(s.largest, piece.n);
        CHECK(!piece.bad && piece.n > 0);
        buf_put_str(&s.text, buf_str(&piece));
        if (!a.more)
            break;
        buf_clear(&piece);
        a.more(&a, &piece);
    }
    buf_fini(&piece);
    return s;
}

static inline void view_case_drop(struct view *v)
{
    struct snapshot *s = &v->snapshot;

    snapshot_drop(&s);
}

#endif
