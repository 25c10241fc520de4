/* null_broker.c -- a Kafka broker that costs next to nothing, as either end of a bench.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     null_broker --id=ID [--port=N] [--topic=NAME --partitions=N --bytes=N --batch-bytes=N
 *                 --record-bytes=N --codec=none|gzip|snappy|lz4|zstd] [--watch=NAME --until=RECORDS] [--check]
 *
 * As a source it serves a topic of about so many bytes from one batch in memory. As a target it takes what is
 * written and forgets it; --check verifies checksums. Lines of output: one with the port and what the topic
 * holds; `begin` and `done` when the first and the last record of the watched topic have come; at the end (SIGTERM)
 * what was counted.
 */
#include "null_api.h"

#include "wire/batch.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    const char *id, *topic, *watch;
    int port;
    int32_t partitions;
    int64_t bytes, until;
    struct null_batch_options batch;
    bool check;
};

static int codec_of(const char *name)
{
    static const char *const names[] = { "none", "gzip", "snappy", "lz4", "zstd" };

    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(name, names[i]))
            return (int)i;
    return -1;
}

static bool parse(int argc, char **argv, struct arguments *a)
{
    static const struct option options[] = {
        { "id", required_argument, NULL, 'i' },          { "port", required_argument, NULL, 'p' },
        { "topic", required_argument, NULL, 't' },       { "partitions", required_argument, NULL, 'n' },
        { "bytes", required_argument, NULL, 'b' },       { "batch-bytes", required_argument, NULL, 's' },
        { "record-bytes", required_argument, NULL, 'r' }, { "codec", required_argument, NULL, 'c' },
        { "watch", required_argument, NULL, 'w' },       { "until", required_argument, NULL, 'u' },
        { "check", no_argument, NULL, 'k' },             { 0 },
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int64_t number = optarg ? strtoll(optarg, NULL, 10) : 0;

        switch (c) {
        case 'i': a->id = optarg; break;
        case 'p': a->port = (int)number; break;
        case 't': a->topic = optarg; break;
        case 'n': a->partitions = (int32_t)number; break;
        case 'b': a->bytes = number; break;
        case 's': a->batch.batch_bytes = (size_t)number; break;
        case 'r': a->batch.record_bytes = (size_t)number; break;
        case 'c': a->batch.codec = codec_of(optarg); break;
        case 'w': a->watch = optarg; break;
        case 'u': a->until = number; break;
        case 'k': a->check = true; break;
        default: return false;
        }
    }
    return optind == argc && a->id && a->partitions > 0 && a->batch.codec >= 0 &&
           a->batch.batch_bytes > 2 * BATCH_HEADER_SIZE && a->batch.batch_bytes <= 16 * MiB;
}

static void tell_counts(const struct null_api *a)
{
    printf("requests=%" PRId64 " fetches=%" PRId64 " produces=%" PRId64 " batches=%" PRId64
           " bad_batches=%" PRId64 " records=%" PRId64 " bytes=%" PRId64 "\n",
           a->counts.requests, a->counts.fetches, a->counts.produces, a->counts.batches,
           a->counts.bad_batches, a->counts.records, a->counts.bytes);
}

static int serve(const struct arguments *a, struct null_api *api)
{
    struct null_log *log = api->log;
    int64_t share = a->partitions * (int64_t)log->batch.size;
    int64_t batches = MAX(a->bytes / share, 1);
    struct null_net *net = null_net_new(a->port, &log->batch, null_api_answer, api);

    if (!net) {
        perror("null_broker");
        return 1;
    }
    if (a->topic)
        (void)null_log_add_full(log, str_c(a->topic), a->partitions, batches);
    api->cluster_id = str_c(a->id);
    api->port = null_net_port(net);
    api->check = a->check;
    api->watched = str_c(a->watch);
    api->watched_until = a->until;
    printf("port=%d bytes=%" PRId64 " batch_bytes=%zu records=%" PRId64 "\n", api->port,
           a->topic ? batches * share : 0, log->batch.size,
           a->topic ? batches * a->partitions * log->batch.records : 0);
    fflush(stdout);
    null_net_run(net);
    null_net_free(&net);
    tell_counts(api);
    return 0;
}

int main(int argc, char **argv)
{
    static struct null_log log;
    static struct null_api api;
    struct arguments a = { .partitions = 1,
                           .batch = { .batch_bytes = 64 * KiB, .record_bytes = KiB } };
    int code;

    if (!parse(argc, argv, &a)) {
        fprintf(stderr, "null_broker: see the head of bench/null_broker.c for the options\n");
        return 2;
    }
    null_log_init(&log, &a.batch);
    null_api_init(&api, &log);
    code = serve(&a, &api);
    null_api_fini(&api);
    null_log_fini(&log);
    return code;
}
