/* flow_port.c -- messages between the control thread and the workers, one small struct each.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A port's flow pointer belongs to the worker; everything else of it to the control thread.
 */
#include "mirror/flow_port.h"

#include "base/alloc.h"
#include "base/must.h"
#include "mirror/order.h"
#include "mirror/translation.h"

struct flow_port {
    struct loop *control;
    struct worker_world world;
    const struct flow_config *config;
    struct flow_port_ops ops;
    struct flow *flow; /* the worker's */
    bool open, asking, closing;
};

struct port_msg {
    struct msg msg;
    struct flow_port *port;
    struct arena arena; /* for the strings below */
    struct flow_identity id;
    struct str topic, target_topic;
    int32_t partition;
    struct relay_start start;
    struct topic_limits limits;
    int64_t raise_to;
    int64_t limit_ms;
    struct flow_report *report;
    bool stored;
    struct order *order;
    struct translation *translation;
};

struct flow_port *flow_port_new(struct loop *control, const struct worker_world *world,
                                const struct flow_config *config, const struct flow_port_ops *ops)
{
    struct flow_port *p = mem_new(sizeof(*p));

    p->control = control;
    p->world = *world;
    p->config = config;
    p->ops = *ops;
    return p;
}

void flow_port_free(struct flow_port **p)
{
    mem_free(*p);
    *p = NULL;
}

bool flow_port_is_open(const struct flow_port *p)
{
    return p->open;
}

static struct port_msg *msg_new(struct flow_port *p, void (*run)(struct msg *m, struct loop *l))
{
    struct port_msg *m = mem_new(sizeof(*m));

    m->msg.run = run;
    m->port = p;
    arena_init(&m->arena, 1 * MiB);
    return m;
}

static void msg_free(struct port_msg *m)
{
    arena_fini(&m->arena);
    mem_free(m);
}

/* On the worker. */

static void back_limits_ask(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    m->port->ops.on_limits_ask(m->port->ops.arg, m->port, m->target_topic, m->raise_to);
    msg_free(m);
}

static void ask_limits(void *arg, struct str target_topic, int64_t raise_to)
{
    struct flow_port *p = arg;
    struct port_msg *m = msg_new(p, back_limits_ask);

    m->target_topic = arena_str(&m->arena, target_topic);
    m->raise_to = raise_to;
    loop_post(p->control, &m->msg);
}

static void run_limits(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    flow_take_limits(m->port->flow, m->target_topic, &m->limits);
    msg_free(m);
}

static void run_memory(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    flow_take_memory(m->port->flow, m->id.id_memory_ms);
    msg_free(m);
}

static void run_open(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    m->port->flow = flow_new(l, m->port->world.pool, m->port->config, &m->id);
    flow_on_limits_ask(m->port->flow, ask_limits, m->port);
    msg_free(m);
}

static void run_adopt(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    flow_adopt(m->port->flow, m->topic, m->target_topic, m->partition, &m->start);
    msg_free(m);
}

static void run_release(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    flow_release(m->port->flow, m->topic, m->partition);
    msg_free(m);
}

static void run_refresh(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    flow_refresh_source(m->port->flow);
    msg_free(m);
}

static void back_report(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    m->port->asking = false;
    m->port->ops.on_report(m->port->ops.arg, m->port, m->report);
    msg_free(m);
}

static void run_report(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    m->report = flow_report(m->port->flow);
    m->msg.run = back_report;
    loop_post(m->port->control, &m->msg);
}

static void back_drained(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    m->port->ops.on_drained(m->port->ops.arg, m->port, m->stored);
    msg_free(m);
}

static void on_drained(void *arg, bool stored)
{
    struct port_msg *m = arg;

    m->stored = stored;
    m->msg.run = back_drained;
    loop_post(m->port->control, &m->msg);
}

static void run_drain(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    flow_drain(m->port->flow, m->limit_ms, on_drained, m);
}

static void back_closed(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);
    struct flow_port *p = m->port;

    (void)l;
    msg_free(m);
    p->open = p->closing = false;
    p->ops.on_closed(p->ops.arg, p);
}

static void run_close(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    flow_free(&m->port->flow);
    m->msg.run = back_closed;
    loop_post(m->port->control, &m->msg);
}

static void run_order(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    if (m->port->flow)
        flow_answer(m->port->flow, m->order);
    if (m->order->found)
        order_done(m->order);
    else
        loop_post(m->port->control, &m->order->msg); /* the next port's turn */
    msg_free(m);
}

static void run_translate(struct msg *msg, struct loop *l)
{
    struct port_msg *m = container_of(msg, struct port_msg, msg);

    (void)l;
    if (m->port->flow)
        flow_translate(m->port->flow, m->translation);
    m->translation->msg.run = translation_back;
    loop_post(m->port->control, &m->translation->msg);
    msg_free(m);
}

/* On the control thread. */

static void post(struct port_msg *m)
{
    loop_check(m->port->control);
    loop_post(m->port->world.loop, &m->msg);
}

void flow_port_open(struct flow_port *p, const struct flow_identity *id)
{
    struct port_msg *m = msg_new(p, run_open);

    must(!p->open);
    p->open = true;
    m->id = *id;
    m->id.state_topic = arena_str(&m->arena, id->state_topic);
    m->id.positions_topic = arena_str(&m->arena, id->positions_topic);
    m->id.connector = arena_str(&m->arena, id->connector);
    if (!str_is_null(id->txn.id))
        m->id.txn.id = arena_str(&m->arena, id->txn.id);
    post(m);
}

void flow_port_adopt(struct flow_port *p, struct str topic, struct str target_topic, int32_t partition,
                     const struct relay_start *start)
{
    struct port_msg *m = msg_new(p, run_adopt);

    m->topic = arena_str(&m->arena, topic);
    m->target_topic = arena_str(&m->arena, target_topic);
    m->partition = partition;
    m->start = *start;
    post(m);
}

void flow_port_release(struct flow_port *p, struct str topic, int32_t partition)
{
    struct port_msg *m = msg_new(p, run_release);

    m->topic = arena_str(&m->arena, topic);
    m->partition = partition;
    post(m);
}

bool flow_port_take_order(struct flow_port *p, struct order *o)
{
    struct port_msg *m;

    if (!p->open || p->closing)
        return false;
    m = msg_new(p, run_order);
    m->order = o;
    post(m);
    return true;
}

bool flow_port_translate(struct flow_port *p, struct translation *t)
{
    struct port_msg *m;

    if (!p->open || p->closing)
        return false;
    m = msg_new(p, run_translate);
    m->translation = t;
    post(m);
    return true;
}

void flow_port_tell_limits(struct flow_port *p, struct str target_topic, const struct topic_limits *limits)
{
    struct port_msg *m;

    if (!p->open || p->closing)
        return;
    m = msg_new(p, run_limits);
    m->target_topic = arena_str(&m->arena, target_topic);
    m->limits = *limits;
    post(m);
}

void flow_port_tell_memory(struct flow_port *p, int64_t id_memory_ms)
{
    struct port_msg *m;

    if (!p->open || p->closing)
        return;
    m = msg_new(p, run_memory);
    m->id.id_memory_ms = id_memory_ms;
    post(m);
}

void flow_port_refresh(struct flow_port *p)
{
    post(msg_new(p, run_refresh));
}

void flow_port_ask_report(struct flow_port *p)
{
    if (!p->open || p->asking || p->closing)
        return;
    p->asking = true;
    post(msg_new(p, run_report));
}

void flow_port_drain(struct flow_port *p, int64_t limit_ms)
{
    struct port_msg *m = msg_new(p, run_drain);

    m->limit_ms = limit_ms;
    post(m);
}

void flow_port_close(struct flow_port *p)
{
    p->closing = true; /* a report asked for from here on would find no flow */
    post(msg_new(p, run_close));
}
