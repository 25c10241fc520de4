/* fetcher.c -- the partitions to read, and which broker each is read from.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   added --> homeless --metadata names a leader--> on the leader's link
 *                ^                                    |  ^
 *                +-- no leader -- metadata changes ---+  +-- preferred replica's link, for a time
 *
 * Looks at all partitions only when the metadata has changed. What happens on a link is told in
 * fetch_link.h. A partition without a leader is told to its owner after some tries, and one whose topic
 * the cluster refuses or does not have at once.
 */
#include "kafka/fetcher.h"

#include "kafka/fetch_link.h"

#include "base/must.h"

static const struct part_meta *meta_of(const struct fetch_part *p)
{
    const struct topic_meta *t = p->topic;

    return t->known && p->partition < t->parts_n ? &t->parts[p->partition] : NULL;
}

void fetcher_set_near(struct fetcher *f, struct fetch_part *p, int32_t broker)
{
    f->near_n += (broker >= 0) - (size_t)(p->preferred >= 0);
    p->preferred = broker;
    if (broker < 0)
        return;
    p->preferred_until_ms = loop_now_ms(f->loop) + f->config->metadata_max_age_ms;
    if (!timer_is_set(&f->near_timer))
        timer_set_ms(f->loop, &f->near_timer, f->config->metadata_max_age_ms);
}

/* Whom to read from; -1: nobody yet. */
static int32_t home_of(struct fetcher *f, struct fetch_part *p)
{
    const struct part_meta *m = meta_of(p);

    if (p->preferred >= 0 && (p->preferred_until_ms <= loop_now_ms(f->loop) ||
                              !cluster_find_broker(f->cluster, p->preferred)))
        fetcher_set_near(f, p, -1);
    if (p->preferred >= 0)
        return p->preferred;
    return m ? m->leader : -1;
}

void fetcher_place(struct fetcher *f, struct fetch_part *p)
{
    int32_t broker = home_of(f, p);

    must(!p->link && !list_is_linked(&p->node));
    if (broker >= 0) {
        p->errors = 0;
        fetch_put(fetch_link_get(f, broker), p);
        return;
    }
    if (p->state == FETCH_ASKED)
        p->state = FETCH_WANTED;
    list_add_tail(&f->homeless, &p->node);
    task_wake(f->loop, &f->settle);
}

void fetcher_move(struct fetcher *f, struct fetch_part *p)
{
    int32_t broker = home_of(f, p);

    if (p->link && p->link->broker == broker)
        return;
    if (!p->link && broker < 0)
        return;
    if (p->link)
        fetch_take_off(p);
    else
        list_remove(&p->node);
    fetcher_place(f, p);
}

/* Metadata has no home for p: what is there to tell? tick: a while has passed since the last time. */
static void tell_homeless(struct fetcher *f, struct fetch_part *p, bool tick)
{
    const struct part_meta *m = meta_of(p);
    int32_t kerr = p->topic->error;

    if (p->state != FETCH_WANTED || !p->topic->known || p->not_before_ms > loop_now_ms(f->loop))
        return;
    if (!kerr && !m)
        kerr = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (!kerr)
        kerr = m->error ? m->error : KERR_LEADER_NOT_AVAILABLE;
    switch (kerr_class(API_METADATA, kerr)) {
    case K_OK:
    case K_AGAIN:
    case K_REFRESH:
    case K_UNSURE:
        p->errors += tick;
        if (p->errors >= FETCH_ERRORS_TOLD)
            fetch_tell_error(f, p, kerr);
        break;
    default:
        fetch_tell_error(f, p, kerr);
    }
}

static void settle(struct fetcher *f, bool tick)
{
    struct list_node due, *n;

    list_init(&due);
    while ((n = list_first(&f->homeless))) {
        list_remove(n);
        list_add_tail(&due, n);
    }
    /* One by one, for a callback may add and remove whom it likes. */
    while ((n = list_first(&due))) {
        struct fetch_part *p = container_of(n, struct fetch_part, node);

        list_remove(n);
        if (home_of(f, p) >= 0) {
            fetcher_place(f, p);
            continue;
        }
        list_add_tail(&f->homeless, n);
        tell_homeless(f, p, tick);
    }
    if (!list_is_empty(&f->homeless) && !timer_is_set(&f->homeless_timer))
        timer_set_ms(f->loop, &f->homeless_timer, FETCH_HOMELESS_MS);
}

static void on_settle(struct task *t)
{
    settle(container_of(t, struct fetcher, settle), false);
}

static void on_homeless(struct timer *t)
{
    struct fetcher *f = container_of(t, struct fetcher, homeless_timer);

    settle(f, true);
    if (!list_is_empty(&f->homeless))
        cluster_refresh(f->cluster);
}

/* Everyone to where it belongs. */
static void move_all(struct fetcher *f)
{
    struct part_topic *pt, *after;

    HASH_ITER(by_name, f->table.by_name, pt, after)
    {
        for (int32_t i = 0; i < pt->room; i++) {
            struct fetch_part *p = pt->parts[i];

            if (!p)
                continue;
            fetcher_move(f, p);
            /* The same leader in a new epoch: the session must hear of it. */
            if (p->link && p->state == FETCH_ASKED &&
                meta_of(p) && meta_of(p)->leader_epoch != p->session_epoch) {
                list_remove(&p->node);
                p->state = FETCH_WANTED;
                fetch_put(p->link, p);
            }
        }
    }
}

static void on_changed(struct cluster_listener *ls)
{
    struct fetcher *f = container_of(ls, struct fetcher, listener);
    struct fetch_link *k, *after;

    if (part_table_reindex(&f->table)) {
        /* A topic was created anew under its name: the sessions know the old one. */
        HASH_ITER(hh, f->links, k, after)
        {
            fetch_session_lost(k);
            fetch_link_wake(k);
        }
    }
    move_all(f);
    task_wake(f->loop, &f->settle);
}

static void on_near(struct timer *t)
{
    struct fetcher *f = container_of(t, struct fetcher, near_timer);

    move_all(f);
    if (f->near_n)
        timer_set_ms(f->loop, &f->near_timer, f->config->metadata_max_age_ms);
}

struct fetcher *fetcher_new(struct cluster *cl, struct pool *pool, int8_t isolation_level)
{
    struct fetcher *f = mem_new(sizeof(*f));

    *f = (struct fetcher){
        .loop = cluster_loop(cl),
        .cluster = cl,
        .config = cluster_config(cl),
        .pool = pool,
        .isolation_level = isolation_level,
        .listener.changed = on_changed,
    };
    loop_check(f->loop);
    list_init(&f->homeless);
    task_init(&f->settle, on_settle);
    timer_init(&f->homeless_timer, on_homeless);
    timer_init(&f->near_timer, on_near);
    cluster_listen(cl, &f->listener);
    return f;
}

void fetcher_free(struct fetcher **fp)
{
    struct fetcher *f = *fp;
    struct fetch_link *k, *after;

    if (!f)
        return;
    *fp = NULL;
    must_say(part_table_is_empty(&f->table), "a fetcher was freed with partitions on it");
    HASH_ITER(hh, f->links, k, after)
    {
        HASH_DELETE(hh, f->links, k);
        fetch_link_free(k);
    }
    cluster_unlisten(&f->listener);
    task_cancel(&f->settle);
    timer_cancel(f->loop, &f->homeless_timer);
    timer_cancel(f->loop, &f->near_timer);
    mem_free(f->aborted);
    mem_free(f);
}

void fetcher_add(struct fetcher *f, struct fetch_part *p)
{
    loop_check(f->loop);
    must(p->state == FETCH_OUT && p->offset >= 0);
    list_init(&p->node);
    p->link = NULL;
    p->state = FETCH_WANTED;
    p->in_session = p->behind = false;
    p->batch_bytes = 0;
    p->session_epoch = -1;
    p->high_watermark = -1;
    p->preferred = -1;
    p->not_before_ms = 0;
    p->errors = 0;
    p->topic_parts = part_table_add(&f->table, p->topic, p->partition, p);
    fetcher_place(f, p);
    fetch_set_behind(p, true); /* until an answer says that it is not */
}

void fetcher_remove(struct fetcher *f, struct fetch_part *p)
{
    loop_check(f->loop);
    if (p->state == FETCH_OUT)
        return;
    fetcher_set_near(f, p, -1);
    if (p->link)
        fetch_take_off(p);
    else
        list_remove(&p->node);
    part_table_remove(&f->table, p->topic_parts, p->partition);
    p->topic_parts = NULL;
    p->state = FETCH_OUT;
}

void fetcher_resume(struct fetcher *f, struct fetch_part *p, int64_t after_ms)
{
    loop_check(f->loop);
    must_say(p->state != FETCH_OUT, "a partition that is not on the fetcher was resumed");
    must(p->offset >= 0);
    p->not_before_ms = after_ms > 0 ? loop_now_ms(f->loop) + after_ms : 0;
    p->state = FETCH_WANTED;
    if (!p->link) {
        task_wake(f->loop, &f->settle);
        return;
    }
    fetch_set_behind(p, p->high_watermark < 0 || p->offset < p->high_watermark);
    list_remove(&p->node);
    fetch_put(p->link, p);
}

const struct fetcher_counts *fetcher_counts(const struct fetcher *f)
{
    return &f->counts;
}
