/* frame.h -- the headers of requests and responses, in front of their bodies.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The int32 size that goes before each frame is the caller's: it is known last. A header is
 * flexible (has a tagged section) where the body is, except that answers to ApiVersions never are:
 * a client must read them before it knows what the broker speaks. Any thread.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include "wire/api.h"

struct frame_request {
    int16_t key;
    int16_t version;
    int32_t correlation_id;
    struct str client_id; /* points into the input; may be null */
};

/* What a client writes and reads. */
void frame_request_header(struct buf *b, const struct api *api, int version, int32_t correlation_id,
                          struct str client_id);
enum err frame_response_header(struct reader *r, const struct api *api, int version,
                               int32_t *correlation_id) WARN_UNUSED;

/* What a broker reads and writes (for tests and the simulator). Reading a header of an API or
 * version that we do not speak gives E_VERSION and fills *out up to the correlation id. */
enum err frame_request_read(struct reader *r, struct frame_request *out) WARN_UNUSED;
void frame_response_write(struct buf *b, const struct api *api, int version,
                          int32_t correlation_id);

#endif
