/* loop_rdkafka.c -- what a program of a few lines over librdkafka costs that copies one topic: consume, produce.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     loop_rdkafka SOURCE TARGET TOPIC TARGET_TOPIC PARTITIONS CODEC
 *
 * Idempotent, with lingering of 5 ms, so that its batches are large; runs until it is killed. A yardstick for
 * bench/small; built only where librdkafka's headers are.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

#define TAKE_MAX 10000

static char text[512];

static void set(rd_kafka_conf_t *c, const char *name, const char *value)
{
    if (rd_kafka_conf_set(c, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "loop_rdkafka: %s\n", text);
        exit(2);
    }
}

static rd_kafka_t *make(rd_kafka_type_t type, rd_kafka_conf_t *c)
{
    rd_kafka_t *k = rd_kafka_new(type, c, text, sizeof(text));

    if (!k) {
        fprintf(stderr, "loop_rdkafka: %s\n", text);
        exit(1);
    }
    return k;
}

static rd_kafka_t *consumer(const char *bootstrap, const char *topic, int partitions)
{
    rd_kafka_conf_t *c = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    rd_kafka_t *k;

    set(c, "bootstrap.servers", bootstrap);
    set(c, "group.id", "loop");
    set(c, "enable.auto.commit", "false");
    set(c, "check.crcs", "true");
    k = make(RD_KAFKA_CONSUMER, c);
    (void)rd_kafka_poll_set_consumer(k);
    for (int i = 0; i < partitions; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = 0;
    (void)rd_kafka_assign(k, list);
    rd_kafka_topic_partition_list_destroy(list);
    return k;
}

static rd_kafka_t *producer(const char *bootstrap, const char *codec)
{
    rd_kafka_conf_t *c = rd_kafka_conf_new();

    set(c, "bootstrap.servers", bootstrap);
    set(c, "enable.idempotence", "true");
    set(c, "linger.ms", "5");
    set(c, "compression.codec", codec);
    set(c, "queue.buffering.max.messages", "1000000");
    return make(RD_KAFKA_PRODUCER, c);
}

static void pass_on(rd_kafka_t *p, rd_kafka_topic_t *to, const rd_kafka_message_t *m)
{
    while (rd_kafka_produce(to, m->partition, RD_KAFKA_MSG_F_COPY, m->payload, m->len, m->key, m->key_len, NULL) &&
           rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL)
        (void)rd_kafka_poll(p, 10);
}

int main(int argc, char **argv)
{
    static rd_kafka_message_t *taken[TAKE_MAX];
    rd_kafka_t *c, *p;
    rd_kafka_topic_t *to;
    rd_kafka_queue_t *q;

    if (argc != 7)
        return 2;
    c = consumer(argv[1], argv[3], (int)strtol(argv[5], NULL, 10));
    p = producer(argv[2], argv[6]);
    to = rd_kafka_topic_new(p, argv[4], NULL);
    q = rd_kafka_queue_get_consumer(c);
    for (;;) {
        ssize_t n = rd_kafka_consume_batch_queue(q, 100, taken, TAKE_MAX);

        for (ssize_t i = 0; i < n; i++) {
            if (!taken[i]->err)
                pass_on(p, to, taken[i]);
            rd_kafka_message_destroy(taken[i]);
        }
        (void)rd_kafka_poll(p, 0);
    }
}
