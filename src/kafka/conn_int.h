/* conn_int.h -- the inside of a connection, shared by conn*.c.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A flight is one request on this connection, encoded: it outlives a call that is canceled, because its
 * answer still comes and must be skipped. Flights stand on `out` until their last byte is written, then on
 * `sent` until answered; `spare` keeps a few for reuse with their memory.
 */
#ifndef KAFKA_CONN_INT_H
#define KAFKA_CONN_INT_H

#include "kafka/conn.h"
#include "net/stream.h"

#define CONN_FRAME_MAX                                                                             \
    (100 * MiB) /* largest answer, and largest request (socket.request.max.bytes) */
#define CONN_POOL_SLACK                                                                            \
    (256 * MiB) /* what a pool answer may have beyond its reservation: one huge batch */
#define CONN_AHEAD        512 /* read together with the next head: small answers cost one system call */
#define CONN_SKIP         (64 * KiB) /* memory for the answer of a canceled call */
#define CONN_READS_MAX    16         /* per turn */
#define CONN_WRITES_MAX   16
#define CONN_CUTS_LEAST   64
#define CONN_CUTS_MAX     65536 /* records fields of one request */
#define CONN_SPARES_MAX   8
#define CONN_SPARE_ROOM   (64 * KiB) /* a larger head is given back after use */
#define CONN_KEYS         128        /* API keys that may be offered */
#define CONN_FEATURES     16
#define CONN_FEATURE_NAME 48
#define CONN_HEAD         8 /* size and correlation id of an answer */

struct flight {
    struct list_node node;
    struct call *call; /* NULL: canceled */
    const struct api *api;
    int16_t version;
    int32_t correlation_id;
    size_t frame_max; /* of the answer */
    int64_t sent_ms, wait_ms; /* when it was put in line; what the broker may wait by agreement */
    struct buf head;  /* the request, but for the cuts */
    struct cut *cuts;
    size_t cuts_n, cuts_room;
    size_t part, part_at; /* how far it is written, see conn_write.c */
    bool begun;
};

/* The answer that is being read. */
struct conn_input {
    unsigned char ahead[CONN_AHEAD];
    size_t from, to;       /* unread bytes in ahead */
    bool open;             /* a head was read, and from here on its frame is */
    struct flight *flight; /* that it answers; off its list */
    size_t size, got;      /* of the frame, from the correlation id on */
    struct block *block;   /* where it goes, or */
    char *heap;            /* (a canceled call's: scratch of CONN_SKIP) */
    bool skip;
    bool any; /* something was ever received */
};

struct conn {
    struct loop *loop;
    const struct client_config *config;
    struct stream *stream;
    conn_fn *fn;
    void *arg;
    char *peer; /* "host:port" as the cluster names it */
    int32_t broker_id;
    enum conn_state { CONN_OPENING, CONN_HELLO, CONN_UP, CONN_BROKEN } state;
    bool ready_due;     /* CONN_READY has still to be told */
    struct task work;   /* writes, tells CONN_READY */
    struct task broken; /* tells CONN_FAILED */
    bool broken_once;

    struct list_node out, sent, spare;
    size_t spares_n, in_flight;
    int32_t last_correlation_id;
    bool blocked; /* STREAM_WRITABLE will come */
    struct conn_input in;

    struct {
        int16_t min, max;
    } offered[CONN_KEYS]; /* by API key; max < min: not offered */
    struct {
        char name[CONN_FEATURE_NAME];
        int level;
    } features[CONN_FEATURES];
    size_t features_n;
    struct call hello;
    struct kafka_api_versions_request hello_request;
    int hello_tried; /* version */

    int64_t throttled_until_ms, last_used_ms, rtt_us;
    int64_t opened_ms;
    int64_t answered_ms; /* when bytes of an answer last came */
    enum err error;
    char text[CALL_TEXT_MAX];
};

/* conn.c: every call gets this outcome, then CONN_FAILED comes. conn_fail puts the peer before the text. */
void conn_break(struct conn *c, enum err e, const char *text);
void conn_fail(struct conn *c, enum err e, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* conn_hello.c */
void conn_hello_start(struct conn *c);

/* conn_write.c: encodes at this version and puts the call in line. */
enum err conn_put(struct conn *c, struct call *call, const struct api *api,
                  int version) WARN_UNUSED;
void conn_write(struct conn *c);
void conn_recycle(struct conn *c, struct flight *f); /* off its list already */
void conn_flight_free(struct flight *f);

/* conn_read.c */
void conn_read(struct conn *c);
/* The stream gave e: says what the bytes so far and the moment tell about the peer. */
void conn_read_failed(struct conn *c, enum err e);
void conn_read_fini(struct conn *c);

#endif
