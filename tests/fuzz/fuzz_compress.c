/* fuzz_compress.c -- any bytes unpacked by any codec within a limit; what unpacks packs again.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The first byte names the codec, the rest is packed data.
 */
#include "base/must.h"
#include "wire/compress.h"

#define UNPACKED_MAX (256 * KiB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct compress *context; /* one for all inputs, as a worker has it */

static void check_round_trip(int codec, struct str plain)
{
    struct buf packed, again;

    buf_init(&packed, 2 * MiB);
    buf_init(&again, plain.n);
    must(compress_pack(context, codec, COMPRESS_LEVEL_DEFAULT, plain, &packed) == E_OK);
    must(compress_unpack(context, codec, buf_str(&packed), &again) == E_OK);
    must(str_eq(buf_str(&again), plain));
    buf_fini(&again);
    buf_fini(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out;
    int codec;
    enum err e;

    if (size == 0)
        return 0;
    if (!context)
        context = compress_new();
    codec = data[0] % 6;
    buf_init(&out, UNPACKED_MAX);
    e = compress_unpack(context, codec, str_of((const char *)data + 1, size - 1), &out);
    must(out.n <= UNPACKED_MAX && !out.bad);
    if (e)
        must(out.n == 0);
    else
        check_round_trip(codec, buf_str(&out));
    buf_fini(&out);
    return 0;
}
