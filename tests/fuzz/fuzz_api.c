/* fuzz_api.c -- any bytes as any message: what decodes must encode, decode again and be the same.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Input: key of the API, version (counted from the API's first), half (0 request, 1 response), body.
 * Numbers that do not exist are taken modulo what there is, so that no input is wasted.
 */
#include "base/must.h"
#include "wire/api.h"

#define MEMORY_MAX (8 * MiB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Strings of the first decoding point into `body`, those of the second into `again`. */
static void check(const struct message *m, int version, struct str body)
{
    struct reader r = reader_of(body.p, body.n);
    struct buf again, text;
    struct encoding to = { .head = &again };
    struct arena a;
    void *one, *two;

    arena_init(&a, MEMORY_MAX);
    buf_init(&again, MEMORY_MAX);
    buf_init(&text, MEMORY_MAX);
    one = arena_alloc(&a, m->size);
    two = arena_alloc(&a, m->size);
    if (codec_decode(m, version, &r, &a, one) != E_OK)
        goto out;
    must(codec_encode(m, version, one, &to) == E_OK);
    r = reader_of(again.p, again.n);
    must(codec_decode(m, version, &r, &a, two) == E_OK);
    must(reader_left(&r) == 0);
    must(codec_equal(m, version, one, two));
    codec_print(m, version, one, &text);
out:
    buf_fini(&text);
    buf_fini(&again);
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct api *api;
    int version;

    if (size < 3)
        return 0;
    api = api_find(data[0]);
    if (!api)
        api = api_all[data[0] % api_count];
    version = api->min + data[1] % (api->max - api->min + 1);
    check(data[2] & 1 ? api->response : api->request, version,
          str_of((const char *)data + 3, size - 3));
    return 0;
}
