/* null_log.c -- makes the batch and keeps the table of topics.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "null_log.h"

#include "base/alloc.h"
#include "base/must.h"
#include "base/rand.h"
#include "wire/batch_builder.h"
#include "wire/compress.h"
#include "wire/prim.h"

#include <string.h>

#define RECORD_OVERHEAD 12 /* of a record without key and headers, at most */
#define BATCH_BYTES_MAX (64 * MiB)
#define TIME_MS         INT64_C(1700000000000)

/* Text that compresses to about a third, as log lines do. */
static char *make_text(size_t n)
{
    static const char *const words[] = { "order",  "payment", "shipped", "status=ok ", "customer=",
                                         "amount", "retry",   "warn ",   "latency_ms=" };
    struct rand r;
    char *p = mem_new(n + 64);
    size_t at = 0;

    rand_init(&r, 7);
    while (at < n) {
        const char *w = words[rand_below(&r, COUNT(words))];
        uint64_t number = rand_next(&r);

        memcpy(p + at, w, strlen(w));
        at += strlen(w);
        for (int i = 0; i < 6 && at < n; i++, number /= 10)
            p[at++] = (char)('0' + number % 10);
    }
    return p;
}

/* Records up to the wanted size, the last one cut to fit. */
static void fill(struct batch_builder *b, const struct null_batch_options *o)
{
    char *text = make_text(o->batch_bytes + o->record_bytes);
    size_t record = MAX(o->record_bytes, 1);

    do {
        size_t left = o->batch_bytes - MIN(o->batch_bytes, b->bytes.n);
        size_t room = left - MIN(left, RECORD_OVERHEAD);

        if (b->count && !room)
            break;
        must(batch_builder_add(b, STR_NULL, str_of(text + b->bytes.n, MIN(record, room)),
                               TIME_MS + b->count) == E_OK);
    } while (b->bytes.n < o->batch_bytes);
    mem_free(text);
}

static struct str compressed(struct batch_builder *b, int codec)
{
    struct str whole = batch_builder_finish(b, NULL);
    struct compress *c = compress_new();
    struct batch header;
    struct buf out;

    must(batch_peek(whole, &header) == BATCH_V2);
    buf_init(&out, BATCH_BYTES_MAX);
    must(buf_grow(&out, BATCH_HEADER_SIZE));
    must(compress_pack(c, codec, COMPRESS_LEVEL_DEFAULT, str_part(whole, BATCH_HEADER_SIZE, whole.n),
                       &out) == E_OK);
    header.attributes = (int16_t)codec;
    batch_seal(&header, str_part(buf_str(&out), BATCH_HEADER_SIZE, out.n), (unsigned char *)out.p);
    compress_free(&c);
    return buf_str(&out);
}

void null_log_init(struct null_log *log, const struct null_batch_options *o)
{
    struct batch_builder b;
    struct str whole;

    memset(log, 0, sizeof(*log));
    batch_builder_init(&b, BATCH_BYTES_MAX);
    fill(&b, o);
    if (o->codec == CODEC_NONE) {
        whole = batch_builder_finish(&b, NULL);
        whole.p = mem_copy_str(whole.p, whole.n);
    } else {
        whole = compressed(&b, o->codec);
    }
    log->batch = (struct null_batch){ .bytes = whole.p, .size = whole.n, .records = b.count };
    batch_builder_fini(&b);
}

void null_log_fini(struct null_log *log)
{
    for (int32_t i = 0; i < log->topics_n; i++) {
        mem_free(log->topics[i].parts);
        mem_free((char *)(uintptr_t)log->topics[i].name.p);
    }
    mem_free((char *)(uintptr_t)log->batch.bytes);
}

struct null_topic *null_log_add(struct null_log *log, struct str name, int32_t parts_n)
{
    struct null_topic *t = &log->topics[log->topics_n];

    if (log->topics_n == NULL_TOPICS_MAX || parts_n <= 0)
        return NULL;
    *t = (struct null_topic){ .name = str_of(mem_copy_str(name.p, name.n), name.n),
                              .parts_n = parts_n,
                              .parts = mem_array((size_t)parts_n, sizeof(*t->parts)) };
    memset(t->id.b, 0x5e, sizeof(t->id.b));
    store_u32(t->id.b, (uint32_t)++log->topics_n);
    return t;
}

struct null_topic *null_log_add_full(struct null_log *log, struct str name, int32_t parts_n,
                                     int64_t batches)
{
    struct null_topic *t = null_log_add(log, name, parts_n);

    if (!t)
        return NULL;
    t->full = true;
    for (int32_t i = 0; i < parts_n; i++)
        t->parts[i].end = batches * log->batch.records;
    return t;
}

struct null_topic *null_log_find(struct null_log *log, struct str name, const struct uuid *id)
{
    for (int32_t i = 0; i < log->topics_n; i++) {
        struct null_topic *t = &log->topics[i];

        if (name.n ? str_eq(t->name, name) : !memcmp(&t->id, id, sizeof(*id)))
            return t;
    }
    return NULL;
}

struct null_part *null_topic_part(struct null_topic *t, int32_t partition)
{
    return t && partition >= 0 && partition < t->parts_n ? &t->parts[partition] : NULL;
}
