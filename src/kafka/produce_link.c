/* produce_link.c -- the connection to one broker: sends when it may and there is something to send.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/produce_link.h"

#include "base/must.h"

static struct produce_request *free_request(struct produce_link *k)
{
    for (size_t i = 0; i < COUNT(k->requests); i++)
        if (!k->requests[i].busy)
            return &k->requests[i];
    return NULL;
}

static void wake_due(struct produce_link *k)
{
    struct list_node due, *n;

    if (k->due_ms > loop_now_ms(k->p->loop))
        return;
    k->due_ms = INT64_MAX;
    list_init(&due);
    while ((n = list_first(&k->delayed))) {
        list_remove(n);
        list_add_tail(&due, n);
    }
    while ((n = list_first(&due)))
        produce_part_place(k->p, container_of(n, struct produce_part, node));
}

static void wake_at(struct produce_link *k, int64_t at_ms)
{
    if (at_ms < INT64_MAX)
        timer_set_ms(k->p->loop, &k->timer, at_ms - loop_now_ms(k->p->loop));
}

static void on_timer(struct timer *t)
{
    struct produce_link *k = container_of(t, struct produce_link, timer);

    task_wake(k->p->loop, &k->step);
}

/* False: the link must wait. */
static bool send_next(struct produce_link *k, struct conn *c, struct produce_request *r)
{
    struct produce_failure f;
    enum err e;

    if (!produce_pack(k, r))
        return false;
    r->busy = true;
    e = conn_send(c, &r->call);
    if (!e) {
        k->p->counts.requests++;
        return true;
    }
    must_say(e != E_INVALID, "a produce request that no version can say");
    r->busy = false;
    f.error = e;
    f.text = str_c(err_text(e));
    f.kerr = e == E_LIMIT ? KERR_MESSAGE_TOO_LARGE : 0;
    produce_unpack(r, &f);
    return false;
}

static void on_step(struct task *t)
{
    struct produce_link *k = container_of(t, struct produce_link, step);
    struct produce_request *r;
    struct conn *c;
    int64_t until;

    wake_due(k);
    wake_at(k, k->due_ms);
    if (list_is_empty(&k->ready))
        return;
    link_want(k->link, true);
    c = link_conn(k->link);
    if (!c)
        return;
    until = conn_throttled_until_ms(c);
    if (until > loop_now_ms(k->p->loop)) {
        wake_at(k, MIN(until, k->due_ms));
        return;
    }
    if (lease_is_over(k->p->lease, k->p->loop)) {
        wake_at(k, MIN(loop_now_ms(k->p->loop) + PRODUCE_LEASE_MS, k->due_ms));
        return;
    }
    while ((r = free_request(k)) && send_next(k, c, r))
        ;
}

static void tell_waiting(struct produce_link *k)
{
    const struct produce_failure f = { .error = link_error(k->link),
                                       .text = str_c(link_error_text(k->link)) };
    struct list_node due, *n;

    list_init(&due);
    while ((n = list_first(&k->ready))) {
        list_remove(n);
        list_add_tail(&due, n);
    }
    while ((n = list_first(&due))) {
        struct produce_part *part = container_of(n, struct produce_part, node);

        produce_part_place(k->p, part);
        produce_part_tell_waiting(part, &f);
    }
}

static void on_link(struct link *link, enum link_event ev, void *arg)
{
    struct produce_link *k = arg;

    (void)link;
    k->connection++;
    if (ev == LINK_DOWN && link_error(k->link)) {
        cluster_refresh(k->p->cluster);
        tell_waiting(k);
    }
    task_wake(k->p->loop, &k->step);
}

struct produce_link *produce_link_get(struct producer *p, int32_t broker)
{
    struct produce_link *k;

    HASH_FIND(hh, p->links, &broker, sizeof(broker), k);
    if (k)
        return k;
    k = mem_new(sizeof(*k));
    k->p = p;
    k->broker = broker;
    k->due_ms = INT64_MAX;
    list_init(&k->ready);
    list_init(&k->delayed);
    task_init(&k->step, on_step);
    timer_init(&k->timer, on_timer);
    for (size_t i = 0; i < COUNT(k->requests); i++) {
        k->requests[i].k = k;
        arena_init(&k->requests[i].arena, CALL_ARENA_MAX);
        call_init(&k->requests[i].call, API_PRODUCE, &k->requests[i].body, NULL);
    }
    k->link = link_new(p->cluster, broker, "produce", on_link, k);
    HASH_ADD(hh, p->links, broker, sizeof(k->broker), k);
    return k;
}

void produce_link_free(struct produce_link *k)
{
    must(k->parts_n == 0);
    for (size_t i = 0; i < COUNT(k->requests); i++) {
        struct produce_request *r = &k->requests[i];

        call_drop(&r->call);
        call_fini(&r->call);
        if (r->busy)
            produce_unpack(r, &(struct produce_failure){ .error = E_CANCELED });
        arena_fini(&r->arena);
    }
    link_free(&k->link);
    task_cancel(&k->step);
    timer_cancel(k->p->loop, &k->timer);
    mem_free(k);
}

void produce_link_add(struct produce_link *k, struct produce_part *part)
{
    must(!part->link);
    part->link = k;
    part->connection = k->connection;
    part->window = 1;
    k->parts_n++;
}

void produce_link_remove(struct produce_part *part)
{
    struct produce_link *k = part->link;

    part->link = NULL;
    if (--k->parts_n == 0)
        link_want(k->link, false);
}
