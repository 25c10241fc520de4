/* topic_reader.h -- reads a small (internal) topic from its start to its end, record by record.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Read committed; control and aborted batches are skipped; compressed batches are read. Every partition up to the
 * end offset seen at the start. One activity; one loop.
 */
#ifndef KAFKA_TOPIC_READER_H
#define KAFKA_TOPIC_READER_H

#include "base/fault.h"
#include "kafka/cluster.h"

struct topic_reader;

struct topic_record {
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms;
    struct str key, value; /* null: .p == NULL */
};

struct topic_reader_ops {
    /* Bytes are valid during the call. The reader must not be freed here. */
    void (*on_record)(void *arg, const struct topic_record *r);
    /* Once, from the loop; the reader may be freed there. kerr != 0: Kafka's refusal (UNKNOWN_TOPIC_OR_PARTITION when the topic is not there). Temporary
     * trouble is retried for ever with back-off, and told by on_fault only. */
    void (*on_done)(void *arg, enum err e, int32_t kerr);
    /* May be NULL. Whenever something is in the way: the last of it. The reader must not be freed here. */
    void (*on_fault)(void *arg, const struct fault *f);
    void *arg;
};

struct topic_reader *topic_reader_start(struct cluster *cl, struct str topic,
                                        const struct topic_reader_ops *ops);
void topic_reader_free(struct topic_reader **r); /* no callback after this */

#endif
