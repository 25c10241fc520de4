/* link.c -- keeps a connection to one broker for one user: open, back off, open again, doze when idle.
 * SPDX-License-Identifier: Apache-2.0
 *
 *            want                         CONN_READY
 *    off ----------> opening ------------------------> up
 *     ^              ^     |  failed, no address        |  lost, reset
 *     |        timer |     v                            v
 *     +----------- resting <----------------------------+
 *     |  not wanted                                     |
 *     +------------------ idle, not wanted -------------+
 *
 * The rest grows with each failure; a connection that lived longer than the longest rest starts the count
 * anew, so a broker that accepts and closes is not asked in a tight circle.
 */
#include "kafka/link.h"

#include "base/alloc.h"
#include "base/must.h"
#include "kafka/cluster_int.h"
#include "loop/backoff.h"

#include <stdio.h>
#include <string.h>

static void link_goto(struct link *k, enum link_state to)
{
    timer_cancel(k->loop, &k->timer);
    k->state = to;
}

static void rest(struct link *k)
{
    link_goto(k, LINK_RESTING);
    timer_set_ms(k->loop, &k->timer, backoff_next_ms(&k->backoff, loop_rand(k->loop)));
}

static void note_error(struct link *k, enum err e, const char *text)
{
    k->error = e;
    snprintf(k->text, sizeof(k->text), "%s", text);
}

static void set_idle_timer(struct link *k)
{
    int64_t idle_ms = cluster_config(k->cluster)->connections_max_idle_ms;

    if (idle_ms >= 0)
        timer_set_ms(k->loop, &k->timer,
                     conn_last_used_ms(k->conn) + idle_ms - loop_now_ms(k->loop));
}

static void on_conn(struct conn *c, enum conn_event ev, void *arg)
{
    struct link *k = arg;

    if (ev == CONN_READY) {
        link_goto(k, LINK_READY);
        k->up_ms = loop_now_ms(k->loop);
        k->silent_since_ms = 0;
        note_error(k, E_OK, "");
        set_idle_timer(k);
        k->fn(k, LINK_UP, k->arg);
        return;
    }
    if (k->state == LINK_READY && loop_now_ms(k->loop) - k->up_ms > k->backoff.most_ms) {
        backoff_reset(&k->backoff);
        k->attempt = 0;
    }
    k->attempt++;
    if (conn_error(c) != E_TIMEOUT)
        k->silent_since_ms = 0; /* whatever it is, it says something */
    else if (!k->silent_since_ms)
        k->silent_since_ms = MAX(loop_now_ms(k->loop) - conn_age_ms(c), 1);
    note_error(k, conn_error(c), conn_error_text(c));
    conn_close(&k->conn);
    rest(k);
    cluster_refresh(k->cluster);
    k->fn(k, LINK_DOWN, k->arg);
}

static void open_link(struct link *k)
{
    struct conn_address to = { .broker_id = k->broker_id, .attempt = k->attempt };

    if (!cluster_address(k->cluster, &to)) {
        snprintf(k->text, sizeof(k->text), "broker %d is not known to the cluster at present",
                 k->broker_id);
        k->error = E_NO_BROKER;
        rest(k);
        cluster_refresh(k->cluster);
        k->fn(k, LINK_DOWN, k->arg);
        return;
    }
    link_goto(k, LINK_OPENING);
    k->conn = conn_open(k->loop, cluster_config(k->cluster), &to, on_conn, k);
}

/* The tail of link_reset, and of an idle close: told from the loop, after the calls. */
static bool tell_down(struct link *k)
{
    if (!k->down_due)
        return false;
    if (!k->down_once) {
        k->down_once = true; /* one more turn: see on_broken in conn.c */
        task_wake(k->loop, &k->task);
        return true;
    }
    k->down_due = k->down_once = false;
    task_wake(k->loop, &k->task);
    k->fn(k, LINK_DOWN, k->arg); /* may have freed k */
    return true;
}

static void link_step(struct task *t)
{
    struct link *k = container_of(t, struct link, task);

    if (tell_down(k))
        return;
    if (k->state == LINK_OFF && k->wanted && !k->dozing)
        open_link(k); /* may have freed k */
}

/* The connection goes without having failed. */
static void drop_conn(struct link *k, bool tell)
{
    conn_close(&k->conn);
    if (tell) {
        k->down_due = true;
        k->down_once = false;
    }
    task_wake(k->loop, &k->task);
}

static void on_timer(struct timer *t)
{
    struct link *k = container_of(t, struct link, timer);
    int64_t idle_ms = cluster_config(k->cluster)->connections_max_idle_ms;

    if (k->state == LINK_RESTING) {
        link_goto(k, LINK_OFF);
        task_wake(k->loop, &k->task);
        return;
    }
    must(k->state == LINK_READY);
    if (conn_in_flight(k->conn) || loop_now_ms(k->loop) - conn_last_used_ms(k->conn) < idle_ms) {
        /* Not idle: look again one period after the last use, or in a second while something is on its way. */
        if (conn_in_flight(k->conn))
            timer_set_ms(k->loop, t, 1000);
        else
            set_idle_timer(k);
        return;
    }
    link_goto(k, LINK_OFF);
    k->dozing = true;
    note_error(k, E_OK, "");
    drop_conn(k, true);
}

struct link *link_new(struct cluster *cl, int32_t broker_id, const char *role, link_fn *fn,
                      void *arg)
{
    struct link *k = mem_new(sizeof(*k));
    const struct client_config *config = cluster_config(cl);

    *k = (struct link){ .cluster = cl,
                        .loop = cluster_loop(cl),
                        .broker_id = broker_id,
                        .role = role,
                        .fn = fn,
                        .arg = arg };
    backoff_init(&k->backoff, config->reconnect_backoff_ms,
                 MAX(config->reconnect_backoff_max_ms, config->reconnect_backoff_ms));
    timer_init(&k->timer, on_timer);
    task_init(&k->task, link_step);
    list_init(&k->node);
    cluster_add_link(cl, k);
    return k;
}

void link_free(struct link **kp)
{
    struct link *k = *kp;

    if (!k)
        return;
    *kp = NULL;
    conn_close(&k->conn);
    timer_cancel(k->loop, &k->timer);
    task_cancel(&k->task);
    list_remove(&k->node);
    mem_free(k);
}

void link_want(struct link *k, bool wanted)
{
    if (k->wanted == wanted && !k->dozing)
        return;
    k->wanted = wanted;
    k->dozing = false;
    if (!wanted) {
        k->down_due = false;
        if (k->conn)
            link_goto(k, LINK_OFF);
        drop_conn(k, false);
    }
    task_wake(k->loop, &k->task);
}

int64_t link_silent_ms(const struct link *k)
{
    int64_t ms = k->conn ? conn_silent_ms(k->conn) : 0;

    if (!k->wanted)
        return 0;
    return k->silent_since_ms ? MAX(ms, loop_now_ms(k->loop) - k->silent_since_ms) : ms;
}

struct conn *link_conn(struct link *k)
{
    if (k->dozing && k->wanted) {
        k->dozing = false;
        task_wake(k->loop, &k->task);
    }
    return k->state == LINK_READY && conn_is_ready(k->conn) ? k->conn : NULL;
}

int32_t link_broker(const struct link *k)
{
    return k->broker_id;
}

void link_reset(struct link *k)
{
    if (!k->conn)
        return;
    note_error(k, E_CANCELED, "the connection was given up");
    rest(k);
    drop_conn(k, true);
}

enum err link_error(const struct link *k)
{
    return k->error;
}

const char *link_error_text(const struct link *k)
{
    return k->text;
}

void link_readdress(struct link *k)
{
    if (k->conn) {
        note_error(k, E_CLOSED, "the broker's address changed");
        link_goto(k, LINK_OFF);
        drop_conn(k, true);
    } else if (k->state == LINK_RESTING) {
        link_goto(k, LINK_OFF);
    }
    backoff_reset(&k->backoff);
    task_wake(k->loop, &k->task);
}
