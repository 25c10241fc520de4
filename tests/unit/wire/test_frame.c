/* test_frame.c -- headers of requests and responses against hand-made bytes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "wire/frame.h"

TEST(request_headers)
{
    struct frame_request got;
    struct reader r;
    struct buf b;

    buf_init(&b, 64);
    frame_request_header(&b, api_find(API_FETCH), 11, 7, STR("me"));
    CHECK_EQ(b.n, 12);
    CHECK_MEM(b.p, "\0\1\0\x0b\0\0\0\7\0\2me", 12);
    buf_clear(&b);
    frame_request_header(&b, api_find(API_FETCH), 12, 7, STR_NULL);
    CHECK_EQ(b.n, 11);
    CHECK_MEM(b.p, "\0\1\0\x0c\0\0\0\7\xff\xff\0", 11);
    r = reader_of(b.p, b.n);
    CHECK_EQ(frame_request_read(&r, &got), E_OK);
    CHECK(got.key == 1 && got.version == 12 && got.correlation_id == 7 &&
          str_is_null(got.client_id));
    CHECK_EQ(reader_left(&r), 0);
    store_u16(b.p + 2, 99);
    r = reader_of(b.p, b.n);
    CHECK_EQ(frame_request_read(&r, &got), E_VERSION);
    CHECK(got.version == 99 && got.correlation_id == 7);
    r = reader_of(b.p, 7);
    CHECK_EQ(frame_request_read(&r, &got), E_MALFORMED);
    buf_fini(&b);
}

TEST(response_headers)
{
    static const struct {
        int key, version;
        const char *bytes;
        size_t n, left;
        enum err err;
    } cases[] = {
        { API_FETCH, 11, "\0\0\0\7\0", 5, 1, E_OK },
        { API_FETCH, 12, "\0\0\0\7\0", 5, 0, E_OK },
        { API_FETCH, 12, "\0\0\0\7\1\0\1x", 8, 0, E_OK },
        { API_FETCH, 12, "\0\0\0\7", 4, 0, E_MALFORMED },
        { API_API_VERSIONS, 3, "\0\0\0\7\0", 5, 1, E_OK }, /* never flexible */
        { API_SASL_HANDSHAKE, 1, "\0\0\0\7\0", 5, 1, E_OK },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reader r = reader_of(cases[i].bytes, cases[i].n);
        int32_t id = 0;

        CHECK_EQ(frame_response_header(&r, api_find(cases[i].key), cases[i].version, &id),
                 cases[i].err);
        CHECK_EQ(id, cases[i].err ? 0 : 7);
        CHECK_EQ(reader_left(&r), cases[i].left);
    }
}

TESTS(RUN(request_headers), RUN(response_headers))
