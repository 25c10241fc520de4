/* group.h -- membership of a group in which one process holds the work and the others stand by.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The client side of Kafka's classic group protocol, with a protocol type of our own. The work is cut into
 * GROUP_SLOTS slots (group_format.h); one member holds all of them. A member believes in what it holds only
 * until session.timeout after it sent the last heartbeat that was answered well, so it never believes longer than the
 * coordinator does. One loop; connections of its own, because a broker keeps silent on the connection of a join.
 */
#ifndef KAFKA_GROUP_H
#define KAFKA_GROUP_H

#include "base/fault.h"
#include "kafka/client_config.h"
#include "loop/lease.h"

struct group;

/* Strings are copied; client must outlive the group. */
struct group_config {
    const struct client_config *client;
    struct str cluster;    /* alias, for texts */
    struct str cluster_id; /* what makes the claim unique (net/claim.h) */
    struct str name;       /* of the group */
    struct str instance;   /* of this process, for people */
    int64_t session_ms, heartbeat_ms;
    struct lease *lease; /* kept at how long the holding lasts as it stands; NULL: nobody looks */
};

/* changed comes from the loop after anything that the functions below tell has changed. */
struct group *group_new(struct loop *l, const struct group_config *config, void (*changed)(void *arg), void *arg);
/* Stops at once; the coordinator learns nothing. */
void group_free(struct group **g);

/* The slots are ours and our session is believed alive. */
bool group_is_holding(const struct group *g);
/* Grows each time the holding begins, so that a loss in between is seen. */
uint32_t group_term(const struct group *g);
/* A living member that has no slots: another one holds them. */
bool group_is_waiting(const struct group *g);
struct str group_holder(const struct group *g); /* its instance; "" unknown */
int32_t group_generation(const struct group *g); /* -1: none */
struct str group_name(const struct group *g);
const struct fault *group_fault(const struct group *g);

/* Asks the coordinator whether we still hold the slots. confirmed comes once, from the loop, when a heartbeat that was
 * sent after this call was answered well; never, when the holding ends before. A later call replaces an earlier one. */
void group_confirm(struct group *g, void (*confirmed)(void *arg));

/* Gives the slots back at once and joins again without them: somebody has shown that they are no longer ours. */
void group_renounce(struct group *g);

/* Leaves, so that another member takes over at once. done comes once, after limit_ms at the latest. */
void group_leave(struct group *g, int64_t limit_ms, void (*done)(void *arg), void *arg);

#endif
