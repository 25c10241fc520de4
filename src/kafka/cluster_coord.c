/* cluster_coord.c -- which broker coordinates a group or a transactional id, asked once and kept.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   unknown --needed--> asking --answer--> known
 *      ^                  |                  | forgotten
 *      +---- resting <----+                  |
 *      ^     (may pass)                      |
 *      +-------------------------------------+        refused: the waiting calls are ended, then unknown
 */
#include "base/alloc.h"
#include "base/log.h"
#include "kafka/cluster_int.h"

#include <stdio.h>
#include <string.h>

#define KEY_GROUP 0
#define KEY_TXN   1

#define uthash_malloc(size)  mem_new(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

struct coordinator {
    UT_hash_handle hh;
    struct cluster *cluster;
    enum route_kind kind;
    struct str key;
    char *name; /* the kind in front of the key: what the table is searched by */
    enum { COORDINATOR_UNKNOWN, COORDINATOR_ASKING, COORDINATOR_RESTING, COORDINATOR_KNOWN } state;
    int32_t broker_id;
    struct call call;
    struct kafka_find_coordinator_request request;
    struct backoff backoff;
    struct timer timer;
};

static void fill(struct call *c)
{
    struct coordinator *k = container_of(c, struct coordinator, call);
    struct kafka_find_coordinator_request *q = &k->request;

    codec_init(&kafka_find_coordinator_request_msg, q);
    q->key_type = k->kind == ROUTE_GROUP ? KEY_GROUP : KEY_TXN;
    if (c->version < 4) {
        q->key = k->key;
        return;
    }
    q->coordinator_keys.at = &k->key;
    q->coordinator_keys.n = 1;
}

static void rest(struct coordinator *k)
{
    k->state = COORDINATOR_RESTING;
    timer_set_ms(k->cluster->loop, &k->timer,
                 backoff_next_ms(&k->backoff, loop_rand(k->cluster->loop)));
}

static void on_timer(struct timer *t)
{
    struct coordinator *k = container_of(t, struct coordinator, timer);

    k->state = COORDINATOR_UNKNOWN;
    cluster_route_wake(k->cluster);
}

static void note_found(struct coordinator *k, const struct broker_meta *b)
{
    if (!cluster_find_broker(k->cluster, b->id))
        cluster_put_broker(k->cluster, b);
    backoff_reset(&k->backoff);
    k->state = COORDINATOR_KNOWN;
    k->broker_id = b->id;
    cluster_route_wake(k->cluster);
}

static void note_refused(struct coordinator *k, int error, struct str message)
{
    char text[CALL_TEXT_MAX];

    switch (kerr_class(API_FIND_COORDINATOR, error)) {
    case K_AGAIN:
    case K_REFRESH:
    case K_UNSURE:
        rest(k);
        return;
    default:
        break;
    }
    k->state = COORDINATOR_UNKNOWN;
    snprintf(text, sizeof(text), "no coordinator of %.*s: %s %.*s", STR_ARG(k->key),
             kerr_name(error), STR_ARG(message));
    cluster_route_refuse(k->cluster, k->kind, k->key, error, text);
}

static void on_found(struct call *c)
{
    struct coordinator *k = container_of(c, struct coordinator, call);
    const struct kafka_find_coordinator_response *r = c->response;
    struct broker_meta b = { .id = -1 };
    struct str message;
    int error;

    if (c->error || (c->version >= 4 && r->coordinators.n < 1)) {
        rest(k);
        return;
    }
    if (c->version >= 4) {
        const struct kafka_find_coordinator_response_coordinator *f = &r->coordinators.at[0];

        b = (struct broker_meta){ .id = f->node_id, .host = f->host, .port = f->port };
        error = f->error_code;
        message = f->error_message;
    } else {
        b = (struct broker_meta){ .id = r->node_id, .host = r->host, .port = r->port };
        error = r->error_code;
        message = r->error_message;
    }
    if (error)
        note_refused(k, error, message);
    else
        note_found(k, &b);
}

static void coordinator_free(struct coordinator *k)
{
    HASH_DEL(k->cluster->coordinators, k);
    call_drop(&k->call);
    call_fini(&k->call);
    timer_cancel(k->cluster->loop, &k->timer);
    mem_free(k->name);
    mem_free(k);
}

/* The table keeps the order of insertion: the oldest that is at rest makes room. */
static void make_room(struct cluster *cl)
{
    struct coordinator *k, *next;

    if (HASH_COUNT(cl->coordinators) < CLUSTER_COORDINATORS_MAX)
        return;
    HASH_ITER(hh, cl->coordinators, k, next)
    {
        if (k->state != COORDINATOR_ASKING) {
            coordinator_free(k);
            return;
        }
    }
}

static char *table_name(enum route_kind kind, struct str key)
{
    char *name = mem_new(key.n + 2);

    name[0] = kind == ROUTE_GROUP ? 'g' : 't';
    memcpy(name + 1, key.p, key.n);
    return name;
}

static struct coordinator *find(struct cluster *cl, enum route_kind kind, struct str key)
{
    char *name = table_name(kind, key);
    struct coordinator *k = NULL;

    HASH_FIND(hh, cl->coordinators, name, (unsigned)(key.n + 1), k);
    mem_free(name);
    return k;
}

static struct coordinator *add(struct cluster *cl, enum route_kind kind, struct str key)
{
    struct coordinator *k = mem_new(sizeof(*k));

    make_room(cl);
    k->cluster = cl;
    k->kind = kind;
    k->name = table_name(kind, key);
    k->key = str_of(k->name + 1, key.n);
    k->broker_id = CLUSTER_UNKNOWN;
    call_init(&k->call, API_FIND_COORDINATOR, &k->request, on_found);
    k->call.fill = fill;
    timer_init(&k->timer, on_timer);
    backoff_init(&k->backoff, cl->config->retry_backoff_ms,
                 MAX(cl->config->retry_backoff_max_ms, cl->config->retry_backoff_ms));
    HASH_ADD_KEYPTR(hh, cl->coordinators, k->name, (unsigned)(key.n + 1), k);
    return k;
}

int32_t cluster_coordinator(struct cluster *cl, enum route_kind kind, struct str key)
{
    struct coordinator *k = find(cl, kind, key);
    struct route any = { .kind = ROUTE_ANY };

    if (!k)
        k = add(cl, kind, key);
    if (k->state == COORDINATOR_KNOWN)
        return k->broker_id;
    if (k->state == COORDINATOR_UNKNOWN && cluster_call(cl, &any, &k->call) == E_OK)
        k->state = COORDINATOR_ASKING;
    return CLUSTER_UNKNOWN;
}

void cluster_coordinator_forget(struct cluster *cl, enum route_kind kind, struct str key)
{
    struct coordinator *k = find(cl, kind, key);

    if (k && k->state == COORDINATOR_KNOWN)
        k->state = COORDINATOR_UNKNOWN;
}

void cluster_coordinators_fini(struct cluster *cl)
{
    struct coordinator *k, *next;

    HASH_ITER(hh, cl->coordinators, k, next)
    {
        coordinator_free(k);
    }
}
