/* fetch_link.c -- when a broker is asked, and where its partitions stand meanwhile.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The step asks when it can: connection up, no request in flight, no wait asked for, something to ask,
 * budget. Whatever may change one of these wakes it.
 */
#include "kafka/fetch_link.h"

#include "base/must.h"

/* The deadline of a fetch beyond its longest wait is the ordinary one. */
static int64_t deadline_ms(const struct fetch_link *k)
{
    return k->f->config->request_timeout_ms + k->request.max_wait_ms;
}

void fetch_link_wake(struct fetch_link *k)
{
    task_wake(k->f->loop, &k->step);
}

void fetch_link_back_off(struct fetch_link *k)
{
    struct loop *l = k->f->loop;

    k->not_before_ms = loop_now_ms(l) + backoff_next_ms(&k->backoff, loop_rand(l));
}

void fetch_set_behind(struct fetch_part *p, bool behind)
{
    if (p->link)
        p->link->behind_n += behind - (size_t)p->behind;
    p->behind = behind;
}

static bool is_due(const struct fetch_link *k, const struct fetch_part *p)
{
    return p->not_before_ms <= loop_now_ms(k->f->loop);
}

static struct list_node *list_for(struct fetch_link *k, const struct fetch_part *p)
{
    switch (p->state) {
    case FETCH_ASKED:
        return &k->asked;
    case FETCH_WANTED:
        if (is_due(k, p))
            return &k->wanted;
        return p->in_session ? &k->leaving : &k->delayed;
    case FETCH_RESTING:
        return p->in_session ? &k->leaving : &k->resting;
    case FETCH_OUT:
        break;
    }
    must_say(false, "a partition that is not on the fetcher was put on a link");
    return NULL;
}

void fetch_put(struct fetch_link *k, struct fetch_part *p)
{
    must(!list_is_linked(&p->node));
    if (p->link != k) {
        must(!p->link && !p->in_session);
        if (p->state == FETCH_ASKED)
            p->state = FETCH_WANTED;
        p->link = k;
        k->behind_n += p->behind;
        if (k->parts_n++ == 0)
            link_want(k->link, true);
    }
    list_add_tail(list_for(k, p), &p->node);
    if (p->state != FETCH_WANTED)
        return;
    if (!is_due(k, p))
        k->due_ms = MIN(k->due_ms, p->not_before_ms);
    fetch_link_wake(k);
}

static void note_forgotten(struct fetch_link *k, const struct fetch_part *p)
{
    struct str name = p->topic->name;

    if (k->forgotten_n == k->forgotten_room) {
        k->forgotten_room = MAX(k->forgotten_room * 2, 16);
        k->forgotten = mem_resize(k->forgotten, k->forgotten_room, sizeof(*k->forgotten));
    }
    k->forgotten[k->forgotten_n++] = (struct fetch_forgotten){
        .topic = mem_copy_str(name.p, name.n),
        .id = p->topic_parts->id,
        .partition = p->partition,
    };
}

void fetch_take_off(struct fetch_part *p)
{
    struct fetch_link *k = p->link;

    list_remove(&p->node);
    if (p->in_session) {
        note_forgotten(k, p);
        k->session_bytes -= p->session_max_bytes;
        p->in_session = false;
    }
    k->behind_n -= p->behind;
    p->link = NULL;
    if (--k->parts_n == 0)
        link_want(k->link, false);
}

/* Moves to `wanted` what has waited long enough, and finds the next to come. */
static void wake_due(struct fetch_link *k, struct list_node *list)
{
    struct list_node *n, *after;

    LIST_EACH_SAFE(n, after, list)
    {
        struct fetch_part *p = container_of(n, struct fetch_part, node);

        if (p->state != FETCH_WANTED)
            continue;
        if (!is_due(k, p)) {
            k->due_ms = MIN(k->due_ms, p->not_before_ms);
            continue;
        }
        list_remove(n);
        list_add_tail(&k->wanted, n);
    }
}

static void wake_all_due(struct fetch_link *k)
{
    if (k->due_ms > loop_now_ms(k->f->loop))
        return;
    k->due_ms = INT64_MAX;
    wake_due(k, &k->delayed);
    wake_due(k, &k->leaving);
}

static void on_timer(struct timer *t)
{
    fetch_link_wake(container_of(t, struct fetch_link, timer));
}

static void wake_at(struct fetch_link *k, int64_t at_ms)
{
    if (at_ms < INT64_MAX)
        timer_set_ms(k->f->loop, &k->timer, at_ms - loop_now_ms(k->f->loop));
}

/* The broker is too old to be read from, or we are. */
static void tell_all(struct fetch_link *k, int32_t kerr)
{
    struct list_node due, *n;

    list_init(&due);
    while ((n = list_first(&k->wanted))) {
        list_remove(n);
        list_add_tail(&due, n);
    }
    while ((n = list_first(&due)))
        fetch_tell_error(k->f, container_of(n, struct fetch_part, node), kerr);
}

static void on_done(struct call *c)
{
    fetch_answer(container_of(c, struct fetch_link, call));
}

static enum err send_request(struct fetch_link *k, struct conn *c)
{
    call_init(&k->call, API_FETCH, &k->request, on_done);
    k->call.version_max = k->by_id ? -1 : 12;
    k->call.pool = k->f->pool;
    k->call.reserved = k->ask_bytes;
    k->call.epoch = k->session_no;
    k->call.timeout_ms = deadline_ms(k);
    k->call.wait_ms = k->request.max_wait_ms;
    return conn_send(c, &k->call);
}

static void ask(struct fetch_link *k, struct conn *c)
{
    int version = conn_version(c, API_FETCH, -1);
    enum err e;

    if (version < 0) {
        fetch_link_back_off(k);
        tell_all(k, KERR_UNSUPPORTED_VERSION);
        return;
    }
    if (!pool_reserve(k->f->pool, k->ask_bytes)) {
        pool_wait(k->f->pool, &k->waiter);
        return;
    }
    fetch_session_build(k, version);
    e = send_request(k, c);
    if (!e) {
        fetch_session_sent(k);
        k->f->counts.requests++;
        return;
    }
    must_say(e != E_INVALID, "a fetch request that no version can say");
    pool_unreserve(k->f->pool, k->ask_bytes);
    fetch_session_lost(k);
    fetch_link_back_off(k);
    fetch_link_wake(k);
}

static void on_step(struct task *t)
{
    struct fetch_link *k = container_of(t, struct fetch_link, step);
    struct conn *c = link_conn(k->link);
    int64_t until;

    if (!c || call_is_busy(&k->call) || k->waiter.waiting)
        return;
    wake_all_due(k);
    until = MAX(k->not_before_ms, conn_throttled_until_ms(c));
    if (until > loop_now_ms(k->f->loop)) {
        wake_at(k, until);
        return;
    }
    wake_at(k, k->due_ms);
    if (!list_is_empty(&k->wanted) || !list_is_empty(&k->asked))
        ask(k, c);
}

static void on_budget(struct pool_waiter *w)
{
    fetch_link_wake(container_of(w, struct fetch_link, waiter));
}

/* Whoever is read here because it is near goes back to its leader. */
static void end_near(struct fetch_link *k, struct list_node *list)
{
    struct list_node *n, *after;

    LIST_EACH_SAFE(n, after, list)
    {
        struct fetch_part *p = container_of(n, struct fetch_part, node);

        if (p->preferred != k->broker)
            continue;
        fetcher_set_near(k->f, p, -1);
        fetcher_move(k->f, p);
    }
}

static void on_link(struct link *link, enum link_event ev, void *arg)
{
    struct fetch_link *k = arg;

    (void)link;
    if (ev == LINK_DOWN) {
        fetch_session_lost(k);
        end_near(k, &k->wanted);
        end_near(k, &k->delayed);
        end_near(k, &k->resting);
        cluster_refresh(k->f->cluster);
    }
    fetch_link_wake(k);
}

struct fetch_link *fetch_link_get(struct fetcher *f, int32_t broker)
{
    struct fetch_link *k;

    HASH_FIND(hh, f->links, &broker, sizeof(broker), k);
    if (k)
        return k;
    k = mem_new(sizeof(*k));
    k->f = f;
    k->broker = broker;
    k->ask_bytes = MIN(FETCH_BYTES_USUAL, fetch_bytes_most(f));
    list_init(&k->wanted);
    list_init(&k->asked);
    list_init(&k->leaving);
    list_init(&k->resting);
    list_init(&k->delayed);
    arena_init(&k->arena, CALL_ARENA_MAX);
    call_init(&k->call, API_FETCH, &k->request, on_done);
    backoff_init(&k->backoff, f->config->retry_backoff_ms, f->config->retry_backoff_max_ms);
    k->due_ms = INT64_MAX;
    k->waiter.wake = on_budget;
    list_init(&k->waiter.node);
    task_init(&k->step, on_step);
    timer_init(&k->timer, on_timer);
    k->link = link_new(f->cluster, broker, "fetch", on_link, k);
    HASH_ADD(hh, f->links, broker, sizeof(k->broker), k);
    return k;
}

void fetch_link_free(struct fetch_link *k)
{
    call_drop(&k->call);
    call_fini(&k->call);
    link_free(&k->link);
    pool_cancel(k->f->pool, &k->waiter);
    task_cancel(&k->step);
    timer_cancel(k->f->loop, &k->timer);
    for (size_t i = 0; i < k->forgotten_n; i++)
        mem_free(k->forgotten[i].topic);
    mem_free(k->forgotten);
    arena_fini(&k->arena);
    mem_free(k);
}
