/* frame.c -- the headers of requests and responses.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/frame.h"

static bool has_response_tags(const struct api *api, int version)
{
    return version >= api->flexible && api->key != API_API_VERSIONS;
}

void frame_request_header(struct buf *b, const struct api *api, int version, int32_t correlation_id,
                          struct str client_id)
{
    put_i16(b, api->key);
    put_i16(b, (int16_t)version);
    put_i32(b, correlation_id);
    put_string(b, client_id, false); /* keeps the old form of length in flexible headers too */
    if (version >= api->flexible)
        put_uvarint(b, 0);
}

enum err frame_response_header(struct reader *r, const struct api *api, int version,
                               int32_t *correlation_id)
{
    int32_t id = read_i32(r);

    if (has_response_tags(api, version))
        read_tags(r);
    if (r->bad)
        return E_MALFORMED;
    *correlation_id = id;
    return E_OK;
}

enum err frame_request_read(struct reader *r, struct frame_request *out)
{
    struct frame_request f = { .key = read_i16(r),
                               .version = read_i16(r),
                               .correlation_id = read_i32(r) };
    const struct api *api = api_find(f.key);

    if (r->bad)
        return E_MALFORMED;
    if (!api || f.version < api->min || f.version > api->max) {
        *out = f;
        return E_VERSION;
    }
    f.client_id = read_string(r, false);
    if (f.version >= api->flexible)
        read_tags(r);
    if (r->bad)
        return E_MALFORMED;
    *out = f;
    return E_OK;
}

void frame_response_write(struct buf *b, const struct api *api, int version, int32_t correlation_id)
{
    put_i32(b, correlation_id);
    if (has_response_tags(api, version))
        put_uvarint(b, 0);
}
