/* flow_port.h -- how the director (control thread) talks to a flow's parts on the workers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One port per flow and worker. Each function here runs on the control thread and posts an owned message to the
 * worker's loop; answers come back as messages to the control thread's loop. In the simulator both are one loop.
 */
#ifndef MIRROR_FLOW_PORT_H
#define MIRROR_FLOW_PORT_H

#include "mirror/flow.h"

/* A worker as the director sees it. */
struct worker_world {
    struct loop *loop;
    struct pool *pool;
};

struct flow_port;
struct director;

struct flow_port_ops {
    void (*on_report)(void *arg, struct flow_port *p, struct flow_report *report); /* takes the report */
    void (*on_drained)(void *arg, struct flow_port *p, bool stored);
    /* What does the topic of the target take? raise_to: and set its max.message.bytes to this before. */
    void (*on_limits_ask)(void *arg, struct flow_port *p, struct str target_topic, int64_t raise_to);
    void (*on_closed)(void *arg, struct flow_port *p); /* the flow is gone; the port may be freed */
    void *arg;
};

struct flow_port *flow_port_new(struct loop *control, const struct worker_world *world,
                                const struct flow_config *config, const struct flow_port_ops *ops);
/* Only after on_closed, or when it was never opened. */
void flow_port_free(struct flow_port **p);

/* Makes the flow on the worker. Strings of id are copied. */
void flow_port_open(struct flow_port *p, const struct flow_identity *id);
bool flow_port_is_open(const struct flow_port *p);
void flow_port_adopt(struct flow_port *p, struct str topic, struct str target_topic, int32_t partition,
                     const struct relay_start *start);
void flow_port_release(struct flow_port *p, struct str topic, int32_t partition);
/* False: the port is not open. Otherwise the worker answers the order, or sends it back to its desk. */
struct order;
bool flow_port_take_order(struct flow_port *p, struct order *o);
/* False: the port is not open, and the questions stay the caller's. */
struct translation;
bool flow_port_translate(struct flow_port *p, struct translation *t);
void flow_port_tell_limits(struct flow_port *p, struct str target_topic, const struct topic_limits *limits);
/* The target remembers a producer id for another time by now. */
void flow_port_tell_memory(struct flow_port *p, int64_t id_memory_ms);
/* The worker looks at the source's topics anew. */
void flow_port_refresh(struct flow_port *p);
/* At most one report is under way per port; more are ignored. */
void flow_port_ask_report(struct flow_port *p);
void flow_port_drain(struct flow_port *p, int64_t limit_ms);
void flow_port_close(struct flow_port *p);

#endif
