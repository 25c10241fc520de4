/* comparer.c -- the steps of a comparison.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   queued -> bounds -> context -> place -> copy -> source -> (found, and the copy has ended) -> done
 *                ^                            ^                      |
 *                +-------- cut meanwhile      +----- next window ----+
 *
 *  bounds   where the source's log begins and ends
 *  context  the source from COMPARER_CONTEXT offsets before the position, until one record from it on is there
 *  place    where the copy ends, and its first record that is not older than one of these: that one does not lie before it
 *  copy     the copy from there on, a window of it
 *  source   as many records of the source as the window has
 *
 * Then both lists are compared, and the next window begins where the last one was understood. A source that has nothing
 * from the position on is done at once. Thread: the loop of its clusters.
 */
#include "mirror/comparer_int.h"

#include "base/alloc.h"
#include "base/must.h"

#include <inttypes.h>

#define POOL_BLOCK   (1 * MiB)
#define POOL_SIZE    (8 * MiB)
#define AREA_MAX     (128 * MiB) /* a batch, unpacked */
#define RETRY_MS     100
#define WIDER_MS     60000 /* clocks of brokers that set their own times may be behind the source's producers */
#define TO(state)    (1u << (state))

enum { IDLE, QUEUED, BOUNDS, CONTEXT, PLACE, COPY, SOURCE };

static const unsigned moves[] = {
    [IDLE] = TO(QUEUED),
    [QUEUED] = TO(BOUNDS) | TO(IDLE),
    [BOUNDS] = TO(CONTEXT) | TO(IDLE),
    [CONTEXT] = TO(PLACE) | TO(COPY) | TO(BOUNDS) | TO(IDLE),
    [PLACE] = TO(COPY) | TO(IDLE),
    [COPY] = TO(SOURCE) | TO(PLACE) | TO(IDLE),
    [SOURCE] = TO(BOUNDS) | TO(IDLE),
};

static void comparison_goto(struct comparison *c, int to)
{
    must(moves[c->state] & TO(to));
    c->state = to;
}

static void start_next(struct comparer *co);

/* Nothing is under way after this. */
static void leave(struct comparison *c)
{
    struct comparer *co = c->comparer;

    list_remove(&c->node);
    if (c->state != QUEUED) {
        asker_cancel(&c->from.ask);
        asker_cancel(&c->copy.ask);
        fetcher_remove(co->from, &c->from.fetch);
        fetcher_remove(co->copy, &c->copy.fetch);
        overlap_free(&c->from.list);
        overlap_free(&c->copy.list);
        co->running--;
    }
    c->comparer = NULL;
    comparison_goto(c, IDLE);
    start_next(co);
    if (co->running == 0)
        pool_trim(co->pool);
}

static void finish(struct comparison *c)
{
    leave(c);
    c->done(c);
}

static void fail(struct comparison *c, const char *code, const char *what, const char *text)
{
    fault_set(&c->fault, loop_wall_ms(cluster_loop(c->comparer->target)), code, "%s cannot be compared: %s", what, text);
    finish(c);
}

static const char *side_name(const struct comparison *c, const struct comparer_side *s)
{
    return s == &c->from ? "the source" : "the copy";
}

static void fail_kerr(struct comparison *c, const struct comparer_side *s, int api, int32_t kerr)
{
    c->denied = kerr_class(api, kerr) == K_DENIED;
    cluster_refresh(s == &c->from ? c->comparer->source : c->comparer->target);
    fail(c, kerr_name(kerr), side_name(c, s), kerr_text(kerr));
}

static void put_ask(struct comparison *c, struct comparer_side *s, int64_t timestamp)
{
    s->ask.timestamp = timestamp;
    asker_put(s == &c->from ? c->comparer->ask_source : c->comparer->ask_target, &s->ask);
}

static void read_on(struct comparison *c, struct comparer_side *s)
{
    s->fetch.offset = s->next;
    fetcher_add(s == &c->from ? c->comparer->from : c->comparer->copy, &s->fetch);
}

/* --- the steps --- */

static void begin_bounds(struct comparison *c)
{
    comparison_goto(c, BOUNDS);
    overlap_free(&c->from.list);
    overlap_free(&c->copy.list);
    put_ask(c, &c->from, ASK_EARLIEST);
}

static size_t known_of(const struct comparison *c)
{
    size_t n = 0;

    while (n < c->from.list.n && c->from.list.at[n].offset < c->position)
        n++;
    return n;
}

static bool context_is_read(const struct comparison *c)
{
    const struct overlap_list *l = &c->from.list;

    return c->from.next >= c->from.end || l->n == c->from.most || (l->n && l->at[l->n - 1].offset >= c->position);
}

static bool source_is_read(const struct comparison *c)
{
    return c->from.next >= c->from.end || c->from.list.n == c->from.most ||
           c->from.list.n >= known_of(c) + c->copy.list.n;
}

static bool copy_is_read(const struct comparison *c)
{
    return c->copy.next >= c->copy.end || c->copy.list.n == c->copy.most;
}

static void begin_copy(struct comparison *c, int64_t offset)
{
    comparison_goto(c, COPY);
    c->copy.next = offset;
    c->copy.bounded = c->copy.append_time = false;
    c->copy.fetch.last_epoch = -1;
    overlap_free(&c->copy.list);
    read_on(c, &c->copy);
}

/* The youngest of the first half of what is known: the other half lies behind it, however old single records claim to be. */
static int64_t place_of(const struct comparison *c)
{
    int64_t ms = c->from.list.at[0].time_ms;

    for (size_t i = 1, n = known_of(c) / 2; i < n; i++)
        ms = MAX(ms, c->from.list.at[i].time_ms);
    return ms;
}

static void begin_place(struct comparison *c)
{
    const struct overlap_list *l = &c->from.list;

    if (known_of(c) == l->n) { /* the source has nothing that could be there */
        finish(c);
        return;
    }
    c->place_ms = place_of(c);
    if (c->again) { /* a later window */
        begin_copy(c, c->floor);
        return;
    }
    comparison_goto(c, PLACE);
    put_ask(c, &c->copy, ASK_LATEST);
}

static void add_up(struct overlap_answer *sum, const struct overlap_answer *a)
{
    sum->copied += a->copied;
    sum->missing += a->missing;
    sum->repeats += a->repeats;
    sum->others += a->others;
    sum->undecided = a->undecided; /* by what comes behind it, earlier doubts are over or stay without a say */
}

/* The oldest formats of messages have no times: the mirror gave them some. */
static bool is_timed(const struct comparison *c)
{
    bool timed = !c->copy.append_time;

    for (size_t i = 0; i < c->from.list.n; i++)
        timed = timed && c->from.list.at[i].time_ms >= 0;
    return timed;
}

static void compare(struct comparison *c)
{
    const struct overlap_list *from = &c->from.list, *copy = &c->copy.list;
    struct overlap_answer a;
    size_t known = known_of(c);

    overlap_find(from, known, copy, is_timed(c), &a);
    add_up(&c->sum, &a);
    if (a.present > known)
        c->next = c->position = from->at[a.present - 1].offset + 1;
    if (c->copy.next >= c->copy.end || copy->n <= COMPARER_CONTEXT) {
        finish(c);
        return;
    }
    c->floor = copy->at[copy->n - COMPARER_CONTEXT].offset;
    c->again = true;
    begin_bounds(c);
}

static void begin_source(struct comparison *c)
{
    comparison_goto(c, SOURCE);
    if (source_is_read(c))
        compare(c);
    else
        read_on(c, &c->from);
}

/* --- answers --- */

static void take_bounds(struct comparison *c)
{
    struct comparer_side *s = &c->from;

    if (s->ask.timestamp == ASK_EARLIEST) {
        c->source_start = s->ask.offset;
        if (c->position < 0)
            c->position = c->next = c->source_start;
        put_ask(c, s, ASK_LATEST);
        return;
    }
    c->source_end = s->end = s->ask.offset;
    s->next = MAX(c->source_start, c->position - COMPARER_CONTEXT);
    s->bounded = false;
    s->fetch.last_epoch = -1;
    comparison_goto(c, CONTEXT);
    if (s->end <= c->position || s->next >= s->end)
        finish(c);
    else
        read_on(c, s);
}

static void take_place(struct comparison *c)
{
    struct comparer_side *s = &c->copy;

    if (s->ask.timestamp == ASK_LATEST) {
        c->target_end = s->end = s->ask.offset;
        put_ask(c, s, c->place_ms >= 0 ? c->place_ms : ASK_EARLIEST);
    } else if (s->ask.offset < 0 || MAX(s->ask.offset, c->floor) >= s->end) {
        finish(c); /* nothing there is so young */
    } else {
        begin_copy(c, MAX(s->ask.offset, c->floor));
    }
}

static void take_ask(struct comparison *c, struct comparer_side *s)
{
    if (s->ask.error)
        fail(c, err_name(s->ask.error), side_name(c, s), s->ask.text[0] ? s->ask.text : err_text(s->ask.error));
    else if (s->ask.kerr)
        fail_kerr(c, s, API_LIST_OFFSETS, s->ask.kerr);
    else if (c->state == BOUNDS)
        take_bounds(c);
    else
        take_place(c);
}

static void on_source_ask(struct ask *a)
{
    struct comparison *c = container_of(a, struct comparison, from.ask);

    take_ask(c, &c->from);
}

static void on_copy_ask(struct ask *a)
{
    struct comparison *c = container_of(a, struct comparison, copy.ask);

    take_ask(c, &c->copy);
}

/* Whether the records were taken; what is not read in one piece is read on. */
static bool take_records(struct comparison *c, struct comparer_side *s, const struct fetched *f, bool committed)
{
    const char *code = NULL, *why;

    if (f->error) {
        fail_kerr(c, s, API_FETCH, f->error);
        return false;
    }
    if (f->diverging) {
        fail(c, kerr_name(KERR_OFFSET_OUT_OF_RANGE), side_name(c, s), "its log was cut meanwhile");
        return false;
    }
    if (committed && !s->bounded && f->last_stable_offset >= 0 && f->last_stable_offset < s->end) {
        s->end = f->last_stable_offset;
        c->open = c->open || s == &c->copy;
    }
    s->bounded = true;
    why = comparer_read(c->comparer, s, f, committed, &code);
    if (why)
        fail(c, code, side_name(c, s), why);
    return !why;
}

static void on_source(struct fetch_part *p, const struct fetched *f)
{
    struct comparison *c = container_of(p, struct comparison, from.fetch);
    struct comparer *co = c->comparer;

    if (!take_records(c, &c->from, f, co->isolation_level == CLIENT_READ_COMMITTED))
        return;
    if (c->state == CONTEXT ? !context_is_read(c) : !source_is_read(c)) {
        p->offset = c->from.next;
        if (f->records.n)
            fetcher_resume(co->from, p, 0);
        return;
    }
    fetcher_remove(co->from, p);
    if (c->state == CONTEXT)
        begin_place(c);
    else
        compare(c);
}

static void on_copy(struct fetch_part *p, const struct fetched *f)
{
    struct comparison *c = container_of(p, struct comparison, copy.fetch);
    struct comparer *co = c->comparer;

    if (!take_records(c, &c->copy, f, true))
        return;
    if (c->copy.append_time && !c->widened) {
        c->widened = true;
        fetcher_remove(co->copy, p);
        comparison_goto(c, PLACE);
        put_ask(c, &c->copy, MAX(c->place_ms - WIDER_MS, 0));
        return;
    }
    if (!copy_is_read(c)) {
        p->offset = c->copy.next;
        if (f->records.n)
            fetcher_resume(co->copy, p, 0);
        return;
    }
    fetcher_remove(co->copy, p);
    begin_source(c);
}

/* --- the whole --- */

static void side_init(struct comparer_side *s, struct topic_meta *t, int32_t partition, void (*asked)(struct ask *a),
                      void (*fetched)(struct fetch_part *p, const struct fetched *f))
{
    s->fetch = (struct fetch_part){ .topic = t, .partition = partition, .last_epoch = -1, .on_fetched = fetched };
    list_init(&s->fetch.node);
    asker_init_ask(&s->ask);
    s->ask.topic = t;
    s->ask.partition = partition;
    s->ask.done = asked;
}

static void start_next(struct comparer *co)
{
    while (co->running < COMPARER_AT_ONCE && !list_is_empty(&co->waiting)) {
        struct comparison *c = container_of(list_first(&co->waiting), struct comparison, node);

        list_remove(&c->node);
        co->running++;
        begin_bounds(c);
    }
}

void comparer_start(struct comparer *co, struct comparison *c)
{
    c->comparer = co;
    c->next = c->position;
    c->source_start = c->source_end = c->target_end = -1;
    side_init(&c->from, c->source, c->partition, on_source_ask, on_source);
    side_init(&c->copy, c->target, c->partition, on_copy_ask, on_copy);
    c->from.most = COMPARER_WINDOW + COMPARER_CONTEXT;
    c->copy.most = COMPARER_WINDOW;
    list_init(&c->node);
    comparison_goto(c, QUEUED);
    list_add_tail(&co->waiting, &c->node);
    start_next(co);
}

void comparer_cancel(struct comparison *c)
{
    if (c->comparer)
        leave(c);
}

struct comparer *comparer_new(struct cluster *source, struct cluster *target, int8_t isolation_level)
{
    struct comparer *co = mem_new(sizeof(*co));

    co->source = source;
    co->target = target;
    co->isolation_level = isolation_level;
    co->pool = pool_new(POOL_BLOCK, POOL_SIZE);
    co->from = fetcher_new(source, co->pool, isolation_level);
    co->copy = fetcher_new(target, co->pool, CLIENT_READ_COMMITTED);
    co->ask_source = asker_new(source);
    co->ask_target = asker_new(target);
    co->compress = compress_new();
    buf_init(&co->area, AREA_MAX);
    buf_init(&co->scratch, AREA_MAX);
    list_init(&co->waiting);
    return co;
}

void comparer_free(struct comparer **cp)
{
    struct comparer *co = *cp;

    if (!co)
        return;
    must(co->running == 0 && list_is_empty(&co->waiting));
    asker_free(&co->ask_source);
    asker_free(&co->ask_target);
    fetcher_free(&co->from);
    fetcher_free(&co->copy);
    pool_free(&co->pool);
    compress_free(&co->compress);
    buf_fini(&co->area);
    buf_fini(&co->scratch);
    mem_free(co);
    *cp = NULL;
}
