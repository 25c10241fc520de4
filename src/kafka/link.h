/* link.h -- a lasting relation to one broker of a cluster: connects, backs off, connects again.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A link belongs to one user (fetcher, producer, the cluster itself), so fetch long-polls and produce never
 * share a connection. The broker's address is looked up in the cluster's metadata on each attempt. It connects
 * only while wanted (link_want), and an idle connection is closed after connections.max.idle.ms. One loop.
 */
#ifndef KAFKA_LINK_H
#define KAFKA_LINK_H

#include "kafka/conn.h"

struct cluster;
struct link;

enum link_event { LINK_UP, LINK_DOWN };

/* From the loop. LINK_DOWN comes after every call on the connection has had its done. */
typedef void link_fn(struct link *k, enum link_event ev, void *arg);

struct link *link_new(struct cluster *cl, int32_t broker_id, const char *role, link_fn *fn, void *arg);
void link_free(struct link **k); /* calls on it get done with E_CANCELED */

void link_want(struct link *k, bool wanted);
/* A ready connection, or NULL. Good until the next return to the loop. */
struct conn *link_conn(struct link *k);
int32_t link_broker(const struct link *k);
/* Drops the connection (a protocol error of the layer above) and connects anew after a back-off. */
void link_reset(struct link *k);

#endif
