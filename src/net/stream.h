/* stream.h -- the byte stream under a connection: plain TCP, or another kind behind the same calls.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A stream resolves a host, tries its addresses in turn (client.dns.lookup=use_all_dns_ips), connects,
 * and then carries bytes. One owner, one loop; callbacks come from the loop only. The owner reads
 * straight into its own memory and writes vectors, so a plain stream copies nothing.
 */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include "net/sock.h"

struct stream;

enum stream_event {
    STREAM_OPEN,     /* connected, and the kind's handshake done */
    STREAM_READABLE, /* stream_readv may give bytes */
    STREAM_WRITABLE, /* stream_writev may take bytes again */
    STREAM_FAILED,   /* unusable from here on; stream_error says why */
};

typedef void stream_fn(struct stream *s, enum stream_event ev, void *arg);

/* What a kind of stream puts between the socket and the owner. All functions on the loop's thread. */
struct stream_kind {
    const char *name;
    void *(*start)(struct sock *sock, struct str host, const void *config); /* the kind's state */
    /* *done when bytes may flow; *want is the readiness to wait for otherwise. */
    enum err (*handshake)(void *state, bool *done, unsigned *want);
    enum err (*readv)(void *state, const struct iovec *iov, int count, size_t *got);
    enum err (*writev)(void *state, const struct iovec *iov, int count, size_t *put);
    /* Words for the last error, e.g. why a certificate is not trusted. May be NULL, and may give NULL. */
    const char *(*error_text)(void *state);
    void (*end)(void *state); /* the socket is still open */
};

struct stream_options {
    int send_buffer, receive_buffer; /* bytes, -1: the system's */
    /* For the name, for each address and for the handshake, one after the other
     * (socket.connection.setup.timeout.ms). 0: as long as it takes. */
    int64_t connect_timeout_ms;
    uint32_t first_address;         /* start with this address of the list, modulo its length */
    const struct stream_kind *kind; /* NULL: plain */
    const void *kind_config;
};

struct stream *stream_open(struct loop *l, struct str host, int port,
                           const struct stream_options *o, stream_fn *fn, void *arg);
void stream_close(struct stream **s); /* no callback after this; NULL is fine */

/* Reads are announced from STREAM_OPEN on unless paused. */
void stream_pause(struct stream *s, bool paused);

/* Both from STREAM_OPEN on. An error ends the stream: STREAM_FAILED follows from the loop, unless the
 * owner closes it first. *got == 0 with E_OK: nothing now. */
enum err stream_readv(struct stream *s, const struct iovec *iov, int count,
                      size_t *got) WARN_UNUSED;
/* *put less than the total: STREAM_WRITABLE will come. */
enum err stream_writev(struct stream *s, const struct iovec *iov, int count,
                       size_t *put) WARN_UNUSED;

enum err stream_error(const struct stream *s);
/* "127.0.0.1:9092: connection refused"; every address that was tried, and the name that led there. */
const char *stream_error_text(const struct stream *s);
const char *stream_peer(const struct stream *s);

#endif
