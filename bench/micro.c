/* micro.c -- what one batch costs: checksum verified, header restamped, records opened and closed.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Prints one line per figure. Each is the best of several rounds, because on a shared machine the
 * others measure the neighbours.
 */
#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/must.h"
#include "base/rand.h"
#include "wire/batch.h"
#include "wire/compress.h"
#include "wire/record.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUNDS   7
#define ROUND_NS 20e6

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t); /* allowed: a bench measures the real world */
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct work {
    char *batch;
    size_t size;
    struct compress *compress;
    int codec;
    struct buf packed, plain;
};

/* ns per call of one piece of work. */
static double measure(void (*run)(struct work *w), struct work *w)
{
    double best = 1e18, start = now_ns();
    int calls = 0;

    do {
        run(w);
        calls++;
    } while (now_ns() - start < ROUND_NS);
    for (int round = 0; round < ROUNDS; round++) {
        start = now_ns();
        for (int i = 0; i < calls; i++)
            run(w);
        best = MIN(best, (now_ns() - start) / calls);
    }
    return best;
}

static void run_restamp(struct work *w)
{
    static struct batch_stamp stamp = { 1, 2, 0, false };
    unsigned char header[BATCH_HEADER_SIZE];

    stamp.base_sequence++;
    batch_restamp(w->batch, w->size, &stamp, header);
    __asm__ volatile("" : : "r"(header) : "memory"); /* the header is used */
}

static void run_verify(struct work *w)
{
    must(batch_crc_ok(w->batch, w->size));
}

static void run_unpack(struct work *w)
{
    buf_clear(&w->plain);
    must(!compress_unpack(w->compress, w->codec, buf_str(&w->packed), &w->plain));
}

static void run_pack(struct work *w)
{
    buf_clear(&w->packed);
    must(!compress_pack(w->compress, w->codec, COMPRESS_LEVEL_DEFAULT, buf_str(&w->plain),
                        &w->packed));
}

static void run_records(struct work *w)
{
    struct record_reader r = record_reader_of(buf_str(&w->plain), INT32_MAX);
    struct record rec;

    while (record_next(&r, &rec))
        ;
}

static void bench_batches(void)
{
    static const size_t sizes[] = { 1 * KiB, 64 * KiB, 1 * MiB };
    struct rand rand;

    rand_init(&rand, 1);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct work w = { .batch = mem_new(sizes[i]), .size = sizes[i] };
        struct batch h = { .count = 1 };
        double ns;

        for (size_t k = BATCH_HEADER_SIZE; k < w.size; k++)
            w.batch[k] = (char)rand_next(&rand);
        batch_seal(&h, str_of(w.batch + BATCH_HEADER_SIZE, w.size - BATCH_HEADER_SIZE),
                   (unsigned char *)w.batch);
        printf("restamp %7zu bytes: %8.1f ns\n", w.size, measure(run_restamp, &w));
        ns = measure(run_verify, &w);
        printf("verify  %7zu bytes: %8.1f ns  %5.2f GB/s\n", w.size, ns, (double)w.size / ns);
        mem_free(w.batch);
    }
}

/* 1 KiB records of words, which pack about as well as logs do. */
static void fill_records(struct buf *out)
{
    struct rand rand;

    rand_init(&rand, 2);
    for (int i = 0; i < 1000; i++) {
        char value[1024];
        struct record r = { .offset_delta = i,
                            .key = STR("some-key"),
                            .value = str_of(value, sizeof(value)) };

        for (size_t k = 0; k < sizeof(value); k++)
            value[k] = k % 16 < 10 ? "connection"[k % 16] : (char)('0' + rand_below(&rand, 10));
        record_put(out, &r);
    }
}

static void bench_codecs(void)
{
    static const char *const names[] = { "none", "gzip", "snappy", "lz4", "zstd" };
    struct work w = { .compress = compress_new() };

    buf_init(&w.plain, 4 * MiB);
    buf_init(&w.packed, 4 * MiB);
    fill_records(&w.plain);
    printf("read 1000 records of 1 KiB: %8.1f ns\n", measure(run_records, &w));
    for (w.codec = CODEC_NONE; w.codec <= CODEC_ZSTD; w.codec++) {
        double pack = measure(run_pack, &w), unpack = measure(run_unpack, &w);

        printf("%-6s to %4.1f %%: pack %6.0f MB/s, unpack %6.0f MB/s\n", names[w.codec],
               100.0 * (double)w.packed.n / (double)w.plain.n, (double)w.plain.n / pack * 1e3,
               (double)w.plain.n / unpack * 1e3);
    }
    buf_fini(&w.packed);
    buf_fini(&w.plain);
    compress_free(&w.compress);
}

int main(void)
{
    bench_batches();
    bench_codecs();
    return 0;
}
