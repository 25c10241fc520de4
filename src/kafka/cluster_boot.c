/* cluster_boot.c -- finds and keeps the seat: the connection on which metadata is asked.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   empty --open a candidate--> opening --> ready <--> asking        (naming: before a round through the bootstrap
 *     |                            |          |           |             list, where canonical names are asked for)
 *     ^                            |          |           |
 *     |   more candidates          +----------+-----------+
 *     +<------------------------------- failed
 *     ^                                   | round over
 *     +------------ resting <-------------+                halted: another cluster answers; the end
 *
 * A round tries every known broker, or every address of the bootstrap list, beginning at a random one. When
 * every known broker has failed, the next round goes through the bootstrap list (KIP-899), and then they take
 * turns. Rests between rounds grow as reconnect.backoff.ms says. Known brokers that neither fail nor answer are left
 * for the bootstrap list after metadata.recovery.rebootstrap.trigger.ms (KIP-1102).
 */
#include "base/log.h"
#include "kafka/cluster_int.h"

#include <stdio.h>

static void rest(struct cluster *cl)
{
    struct seat *s = &cl->seat;

    bootstrap_cancel(&s->names);
    s->named = false;
    s->state = SEAT_RESTING;
    s->count = 0;
    timer_set_ms(cl->loop, &s->timer, backoff_next_ms(&s->backoff, loop_rand(cl->loop)));
}

static void on_rested(struct timer *t)
{
    struct cluster *cl = container_of(container_of(t, struct seat, timer), struct cluster, seat);

    cl->seat.state = SEAT_EMPTY;
    task_wake(cl->loop, &cl->meta_task);
}

static bool may_rebootstrap(const struct cluster *cl)
{
    return cl->config->metadata_recovery_strategy == CLIENT_RECOVERY_REBOOTSTRAP;
}

/* The known brokers have had their time. A round through the bootstrap list goes on. */
static void on_trigger(struct timer *t)
{
    struct cluster *cl = container_of(container_of(t, struct seat, trigger), struct cluster, seat);

    if (!cl->seat.bootstrap)
        (void)cluster_seat_rebootstrap(cl);
}

/* Metadata is wanted from here on. */
void cluster_seat_want(struct cluster *cl)
{
    if (may_rebootstrap(cl) && cl->brokers_n && !timer_is_set(&cl->seat.trigger))
        timer_set_ms(cl->loop, &cl->seat.trigger, cl->config->metadata_recovery_rebootstrap_trigger_ms);
}

static void on_conn(struct conn *c, enum conn_event ev, void *arg)
{
    struct cluster *cl = arg;

    if (ev == CONN_FAILED) {
        cluster_seat_failed(cl, conn_error(c), conn_error_text(c));
        return;
    }
    cl->seat.state = SEAT_READY;
    cl->seat.ready_ms = loop_now_ms(cl->loop);
    task_wake(cl->loop, &cl->meta_task);
}

static void on_names(struct bootstrap *b)
{
    struct cluster *cl = container_of(container_of(b, struct seat, names), struct cluster, seat);

    cl->seat.named = true;
    cl->seat.state = SEAT_EMPTY;
    task_wake(cl->loop, &cl->meta_task);
}

/* The list of this round: as it is given, or by canonical names; when no name is known, as given, to say why. */
static const struct client_endpoint *boot_list(const struct cluster *cl, size_t *n)
{
    bool canonical = cl->config->client_dns_lookup == CLIENT_DNS_CANONICAL && cl->seat.names.n;

    *n = canonical ? cl->seat.names.n : cl->config->bootstrap_count;
    return canonical ? cl->seat.names.list : cl->config->bootstrap;
}

/* False: not yet. */
static bool begin_round(struct cluster *cl)
{
    struct seat *s = &cl->seat;

    if (!cl->brokers_n)
        s->bootstrap = true;
    if (s->bootstrap && !s->named && cl->config->client_dns_lookup == CLIENT_DNS_CANONICAL) {
        s->state = SEAT_NAMING;
        bootstrap_start(&s->names);
        return false;
    }
    s->named = false;
    s->count = cl->brokers_n;
    if (s->bootstrap)
        (void)boot_list(cl, &s->count);
    s->first = (size_t)rand_below(loop_rand(cl->loop), s->count);
    s->tried = 0;
    return true;
}

void cluster_seat_step(struct cluster *cl)
{
    struct seat *s = &cl->seat;
    struct conn_address to = { .broker_id = -1, .attempt = s->rounds };
    size_t i, n;

    if (s->state != SEAT_EMPTY)
        return;
    if ((!s->count || (!s->bootstrap && s->count > cl->brokers_n)) && !begin_round(cl))
        return;
    i = (s->first + s->tried) % s->count;
    if (s->bootstrap) {
        to.host = boot_list(cl, &n)[i].host;
        to.port = boot_list(cl, &n)[i].port;
    } else {
        to.broker_id = cl->brokers[i].id;
        to.host = cl->brokers[i].host;
        to.port = cl->brokers[i].port;
    }
    cluster_seat_want(cl);
    s->state = SEAT_OPENING;
    s->broker_id = to.broker_id;
    s->conn = conn_open(cl->loop, cl->config, &to, on_conn, cl);
}

/* Known brokers and bootstrap list take turns, if rebootstrapping is allowed. */
static void next_list(struct cluster *cl)
{
    struct seat *s = &cl->seat;

    if (s->bootstrap) {
        s->bootstrap = !cl->brokers_n;
    } else if (may_rebootstrap(cl)) {
        s->bootstrap = true;
        if (s->rounds == 1)
            log_event(EV_CLUSTER_REBOOT, kv_c("cluster", cl->name));
    }
}

void cluster_seat_failed(struct cluster *cl, enum err e, const char *why)
{
    struct seat *s = &cl->seat;
    char text[CALL_TEXT_MAX];

    snprintf(text, sizeof(text), "%s", why); /* it may be the connection's */
    conn_close(&s->conn);
    if (s->state == SEAT_HALTED)
        return;
    if (!s->count) {
        /* It has served; that it is gone says nothing of the cluster yet, but leaders may have moved. */
        if (loop_now_ms(cl->loop) - s->ready_ms > s->backoff.most_ms)
            backoff_reset(&s->backoff);
        rest(cl);
        cluster_refresh(cl);
        return;
    }
    s->tried++;
    if (!cl->answering || s->tried == s->count)
        fault_set(&cl->fault, loop_wall_ms(cl->loop), err_name(e), "%s (%zu of %zu %s)", text,
                  s->tried, s->count, s->bootstrap ? "bootstrap servers" : "known brokers");
    if (s->tried < s->count) {
        s->state = SEAT_EMPTY;
        task_wake(cl->loop, &cl->meta_task);
        return;
    }
    s->rounds++;
    cl->answering = false;
    next_list(cl);
    rest(cl);
}

void cluster_seat_served(struct cluster *cl)
{
    struct seat *s = &cl->seat;

    timer_cancel(cl->loop, &s->trigger);
    s->state = SEAT_READY;
    s->count = 0;
    s->rounds = 0;
    s->bootstrap = false;
    if (!cl->answering)
        fault_clear(&cl->fault);
    cl->answering = true;
}

bool cluster_seat_rebootstrap(struct cluster *cl)
{
    if (!may_rebootstrap(cl))
        return false;
    log_event(EV_CLUSTER_REBOOT, kv_c("cluster", cl->name));
    timer_cancel(cl->loop, &cl->seat.trigger);
    conn_close(&cl->seat.conn);
    cl->seat.bootstrap = true;
    rest(cl);
    cluster_refresh(cl);
    return true;
}

void cluster_seat_halt(struct cluster *cl)
{
    struct list_node *n;

    conn_close(&cl->seat.conn);
    timer_cancel(cl->loop, &cl->seat.timer);
    timer_cancel(cl->loop, &cl->seat.trigger);
    bootstrap_cancel(&cl->seat.names);
    cl->seat.state = SEAT_HALTED;
    cl->answering = false;
    LIST_EACH(n, &cl->links)
    link_readdress(container_of(n, struct link, node));
}

void cluster_seat_init(struct cluster *cl)
{
    const struct client_config *config = cl->config;

    cl->seat.state = SEAT_EMPTY;
    timer_init(&cl->seat.timer, on_rested);
    bootstrap_init(&cl->seat.names, cl->loop, config, on_names);
    timer_init(&cl->seat.trigger, on_trigger);
    backoff_init(&cl->seat.backoff, config->reconnect_backoff_ms,
                 MAX(config->reconnect_backoff_max_ms, config->reconnect_backoff_ms));
}

void cluster_seat_fini(struct cluster *cl)
{
    bootstrap_fini(&cl->seat.names);
    conn_close(&cl->seat.conn);
    timer_cancel(cl->loop, &cl->seat.timer);
    timer_cancel(cl->loop, &cl->seat.trigger);
}
