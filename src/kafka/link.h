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

/* From the loop; the link may be freed there. LINK_DOWN comes when a connection is lost (after every call on it has
 * had its done), when an attempt to make one failed, and when an idle one was closed; link_error says which. */
typedef void link_fn(struct link *k, enum link_event ev, void *arg);

/* role is for people and stays the caller's. */
struct link *link_new(struct cluster *cl, int32_t broker_id, const char *role, link_fn *fn,
                      void *arg);
void link_free(struct link **k); /* calls on it get done with E_CANCELED */

/* Not wanted any more: the connection is closed at once, its calls get E_CANCELED, no LINK_DOWN comes. */
void link_want(struct link *k, bool wanted);
/* A ready connection, or NULL. Good until the next return to the loop. A link whose connection was closed for
 * being idle begins to connect. */
struct conn *link_conn(struct link *k);
int32_t link_broker(const struct link *k);
/* Drops the connection (a protocol error of the layer above; its calls get E_CANCELED, then LINK_DOWN comes) and
 * connects anew after a back-off. */
void link_reset(struct link *k);

/* Of the last LINK_DOWN: E_OK when it was idle. The text names the peer. Cleared by LINK_UP. */
enum err link_error(const struct link *k);
const char *link_error_text(const struct link *k);

/* As conn_silent_ms, and over connections that ended for the same cause. */
int64_t link_silent_ms(const struct link *k);

/* For the cluster: the broker's address has become known, or another. */
void link_readdress(struct link *k);

#endif
