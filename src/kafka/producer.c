/* producer.c -- the partitions to write, and batches as they come and go.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What happens to a partition's batches is in produce_part.c, what happens on a connection in
 * produce_link.c, produce_pack.c and produce_answer.c; the head of produce_link.h has the picture.
 */
#include "kafka/producer.h"

#include "kafka/produce_link.h"

#include "base/must.h"

#include <string.h>

struct outgoing *outgoing_new(void)
{
    struct outgoing *o = mem_new(sizeof(*o));

    list_init(&o->node);
    return o;
}

void outgoing_free(struct outgoing **op)
{
    struct outgoing *o = *op;

    if (!o)
        return;
    *op = NULL;
    must_say(!o->request, "a batch on its way was freed");
    slice_drop(&o->payload);
    mem_free(o->note);
    mem_free(o);
}

static void on_changed(struct cluster_listener *ls)
{
    struct producer *p = container_of(ls, struct producer, listener);
    struct part_topic *pt, *after;

    (void)part_table_reindex(&p->table);
    HASH_ITER(by_name, p->table.by_name, pt, after)
    {
        for (int32_t i = 0; i < pt->room; i++)
            if (pt->parts[i])
                produce_part_place(p, pt->parts[i]);
    }
}

/* Why the metadata has no leader for the partition. */
static int32_t why_homeless(const struct produce_part *part)
{
    const struct topic_meta *t = part->topic;
    int32_t kerr = t->error;

    if (!t->known)
        return KERR_LEADER_NOT_AVAILABLE;
    if (!kerr && part->partition >= t->parts_n)
        kerr = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (!kerr)
        kerr = t->parts[part->partition].error;
    return kerr ? kerr : KERR_LEADER_NOT_AVAILABLE;
}

static void look_after(struct producer *p, struct produce_part *part)
{
    int64_t now = loop_now_ms(p->loop);
    struct produce_failure f = { .kerr = why_homeless(part), .error = E_KAFKA };
    enum kerr_class class = kerr_class(API_METADATA, f.kerr);

    if (!part->failing_since_ms)
        part->failing_since_ms = now;
    if (class == K_DENIED || (class == K_GONE && now - part->failing_since_ms >= PRODUCE_GONE_MS)) {
        part->failed_kerr = f.kerr;
        part->failed_text[0] = '\0';
        produce_part_refuse(p, part);
        return;
    }
    f.text = str_c(kerr_text(f.kerr));
    produce_part_tell_waiting(part, &f);
}

static void on_homeless(struct timer *t)
{
    struct producer *p = container_of(t, struct producer, homeless_timer);
    struct list_node due, *n;

    list_init(&due);
    while ((n = list_first(&p->homeless))) {
        list_remove(n);
        list_add_tail(&due, n);
    }
    /* One by one, for a callback may send and take back what it likes. */
    while ((n = list_first(&due))) {
        struct produce_part *part = container_of(n, struct produce_part, node);

        produce_part_place(p, part);
        if (!part->link && list_is_linked(&part->node))
            look_after(p, part);
    }
    if (!list_is_empty(&p->homeless))
        cluster_refresh(p->cluster);
}

struct producer *producer_new(struct cluster *cl)
{
    struct producer *p = mem_new(sizeof(*p));

    *p = (struct producer){
        .loop = cluster_loop(cl),
        .cluster = cl,
        .config = cluster_config(cl),
        .listener.changed = on_changed,
        .transactional_id = STR_NULL,
        .version_max = -1,
    };
    loop_check(p->loop);
    list_init(&p->homeless);
    timer_init(&p->homeless_timer, on_homeless);
    cluster_listen(cl, &p->listener);
    return p;
}

void producer_set_lease(struct producer *p, const struct lease *lease)
{
    loop_check(p->loop);
    p->lease = lease;
}

void producer_free(struct producer **pp)
{
    struct producer *p = *pp;
    struct produce_link *k, *after;

    if (!p)
        return;
    *pp = NULL;
    must_say(part_table_is_empty(&p->table), "a producer was freed with partitions on it");
    HASH_ITER(hh, p->links, k, after)
    {
        HASH_DELETE(hh, p->links, k);
        produce_link_free(k);
    }
    cluster_unlisten(&p->listener);
    timer_cancel(p->loop, &p->homeless_timer);
    mem_free(p);
}

void producer_set_transaction(struct producer *p, struct str id, bool implicit)
{
    p->transactional_id = id;
    p->version_max = implicit ? -1 : PRODUCE_VERSION_EXPLICIT;
}

void producer_set_id_memory(struct producer *p, int64_t ms)
{
    p->id_memory_ms = ms;
}

/* As if nothing had ever been sent. */
static void begin_anew(struct produce_part *part)
{
    part->window = 1;
    part->in_flight_n = 0;
    part->producer_id = -1;
    part->producer_epoch = -1;
    part->stopped = part->failing = part->refused = false;
    part->not_before_ms = part->failing_since_ms = 0;
    part->failures = 0;
}

void producer_attach(struct producer *p, struct produce_part *part)
{
    loop_check(p->loop);
    must(!part->attached);
    list_init(&part->node);
    list_init(&part->queue);
    list_init(&part->in_flight);
    part->link = NULL;
    part->queued_bytes = 0;
    part->attached = true;
    begin_anew(part);
    part->topic_parts = part_table_add(&p->table, part->topic, part->partition, part);
}

void producer_detach(struct producer *p, struct produce_part *part)
{
    loop_check(p->loop);
    if (!part->attached)
        return;
    must_say(list_is_empty(&part->queue) && list_is_empty(&part->in_flight),
             "a partition left the producer with batches on it");
    list_remove(&part->node);
    if (part->link)
        produce_link_remove(part);
    part_table_remove(&p->table, part->topic_parts, part->partition);
    part->topic_parts = NULL;
    part->attached = false;
}

void producer_send(struct producer *p, struct produce_part *part, struct outgoing *o)
{
    must(part->attached && !list_is_linked(&o->node) && !o->request);
    o->part = part;
    o->done = false;
    list_add_tail(&part->queue, &o->node);
    part->queued_bytes += outgoing_size(o);
    if (!list_is_linked(&part->node))
        produce_part_place(p, part);
}

void producer_resume(struct producer *p, struct produce_part *part)
{
    must(part->attached);
    if (!part->stopped)
        return;
    begin_anew(part);
    produce_part_place(p, part);
}

/* The connection may be writing these bytes: they stay with the request, the owner gets a copy. */
static struct outgoing *copy_of(struct outgoing *o)
{
    struct outgoing *c = outgoing_new();

    *c = *o;
    list_init(&c->node);
    c->request = NULL;
    c->unsure = true;
    c->payload = slice_ref(&o->payload);
    o->note = NULL; /* has moved */
    return c;
}

static void take_in_flight(struct produce_part *part, struct list_node *list)
{
    struct list_node *n;

    while ((n = list_first(&part->in_flight))) {
        struct outgoing *o = container_of(n, struct outgoing, node);
        struct outgoing *given = o;

        list_remove(n);
        if (o->request) {
            given = copy_of(o);
            o->part = NULL;
        }
        given->unsure = true;
        given->part = NULL;
        list_add_tail(list, &given->node);
    }
}

void producer_take_back(struct producer *p, struct produce_part *part, struct list_node *list)
{
    struct list_node *n;

    loop_check(p->loop);
    if (!part->attached)
        return;
    take_in_flight(part, list);
    while ((n = list_first(&part->queue))) {
        list_remove(n);
        container_of(n, struct outgoing, node)->part = NULL;
        list_add_tail(list, n);
    }
    part->queued_bytes = 0;
    list_remove(&part->node);
    begin_anew(part);
}

size_t producer_pending(const struct produce_part *part)
{
    return part->queued_bytes;
}

size_t producer_unsent(const struct produce_part *part)
{
    size_t sent = 0;
    struct list_node *n;

    LIST_EACH(n, &part->in_flight) /* five at most */
        sent += outgoing_size(container_of(n, struct outgoing, node));
    return part->queued_bytes - sent;
}

const struct producer_counts *producer_counts(const struct producer *p)
{
    return &p->counts;
}
