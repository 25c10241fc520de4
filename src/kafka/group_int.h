/* group_int.h -- the inside of a group's member, shared by group*.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KAFKA_GROUP_INT_H
#define KAFKA_GROUP_INT_H

#include "kafka/cluster.h"
#include "kafka/group.h"
#include "kafka/group_format.h"
#include "loop/backoff.h"
#include "net/claim.h"

#define GROUP_TYPE     STR("heliostat") /* protocol type: no other program's */
#define GROUP_PROTOCOL STR("slots")
#define GROUP_ID_MAX   300

enum group_state {
    GROUP_RESTING, /* until a back-off has passed */
    GROUP_JOINING,
    GROUP_SYNCING,
    GROUP_MEMBER,
    GROUP_LEAVING,
    GROUP_LEFT,
};

struct group {
    struct loop *loop;
    struct cluster *cluster;
    struct route route;
    char *name, *instance;
    int64_t session_ms, heartbeat_ms;
    void (*changed)(void *arg);
    void *arg;
    struct task tell;

    enum group_state state;
    struct timer next; /* the end of a rest, or the next heartbeat */
    struct backoff backoff;
    struct fault fault;
    struct claim *claim;
    char instance_id[CLAIM_IDENTITY_MAX]; /* "": none, a dynamic member */

    /* What the coordinator said. */
    char member_id[GROUP_ID_MAX]; /* "": none yet */
    int32_t generation;
    bool leads;
    struct group_slots slots; /* given to us in this generation */
    int32_t given_generation;
    char holder[GROUP_INSTANCE_MAX + 1];

    /* What we believe. */
    bool holding;
    uint32_t term;
    int64_t alive_ms; /* when the last request was sent that was answered well */
    struct timer expiry;
    struct lease *lease; /* the owner's; NULL: none */
    void (*confirmed)(void *arg);
    bool confirm_sent; /* the heartbeat under way was sent after the wish */

    struct call call;
    struct arena arena; /* of the request */
    union {
        struct kafka_join_group_request join;
        struct kafka_sync_group_request sync;
        struct kafka_heartbeat_request heartbeat;
        struct kafka_leave_group_request leave;
    } request;
    struct buf metadata, assignment, nothing;
    struct kafka_join_group_request_protocol protocol;
    struct kafka_leave_group_request_member leaver;
    int64_t sent_ms;

    struct timer leave_limit;
    void (*left)(void *arg);
    void *left_arg;
};

/* group.c */
void group_goto(struct group *g, enum group_state to);
void group_tell(struct group *g);
/* The coordinator has answered well what was sent at g->sent_ms. */
void group_alive(struct group *g);
void group_lose(struct group *g, const char *why);
void group_hold(struct group *g);
void group_forget_member(struct group *g);
void group_fail(struct group *g, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void group_well(struct group *g);
void group_call(struct group *g, int api, void (*done)(struct call *c), int64_t timeout_ms);
/* Takes a bad outcome of any of the calls, its error code included; true when there was one. */
bool group_call_failed(struct group *g, int api, int error);
struct str group_instance_of(const struct group *g); /* group.instance.id, or null */

void group_next_beat(struct group *g);

/* group_join.c */
void group_join(struct group *g);

#endif
