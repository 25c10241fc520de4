/* test_topic_reader.c -- whole topics, aborted and open transactions, topics that are not there, damage.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The log of the one partition is a list of batches; the fake broker gives them from the offset asked for,
 * one by one.
 */
#include "kafka/topic_reader.h"

#include "base/log.h"
#include "unit/kafka/fake_broker.h"
#include "unit/kafka/kafka_test.h"
#include "wire/batch_builder.h"

#define BATCHES 8

struct rig {
    struct loop *l;
    struct fake fake;
    struct kafka_metadata_response_broker broker;
    struct fake_topic topic;
    struct client_endpoint bootstrap;
    struct client_config config;
    struct cluster *cl;
    struct topic_reader *reader;
    /* The log. */
    struct buf batches[BATCHES];
    int64_t base[BATCHES];
    int batches_n;
    int64_t start, end, stable;                  /* as the broker tells them */
    struct kafka_fetch_response_aborted aborted; /* one transaction, if any */
    int64_t marker;                              /* its end, -1: none */
    int damaged;                                 /* so many answers are damaged first */
    int fetch_error;                             /* the next fetch answers this */
    /* What was told. */
    char keys[200];
    bool done;
    enum err error;
    int32_t kerr;
    struct fault fault;
};

static void add_batch(struct rig *r, const char *keys, int64_t producer_id, int16_t attributes)
{
    struct batch_builder b;
    struct batch_stamp stamp = { .producer_id = producer_id };
    struct batch head;
    struct str bytes;
    unsigned char sealed[BATCH_HEADER_SIZE];
    struct buf *to = &r->batches[r->batches_n];

    batch_builder_init(&b, MiB);
    for (const char *k = keys; *k; k++)
        CHECK_EQ(batch_builder_add(&b, str_of(k, 1), STR("value"), 1000), E_OK);
    if (attributes & BATCH_CONTROL) /* version 0, type: 0 aborts */
        CHECK_EQ(batch_builder_add(&b, str_of("\0\0\0\0", 4), STR("value!"), 1000), E_OK);
    bytes = batch_builder_finish(&b, producer_id < 0 ? NULL : &stamp);
    CHECK_EQ(batch_peek(bytes, &head), BATCH_V2);
    head.base_offset = r->base[r->batches_n] = r->end;
    head.attributes = (int16_t)(head.attributes | attributes);
    r->end += head.last_offset_delta + 1;
    r->stable = r->end;
    batch_seal(&head, str_part(bytes, BATCH_HEADER_SIZE, bytes.n), sealed);
    buf_init(to, MiB);
    buf_put(to, sealed, sizeof(sealed));
    buf_put(to, bytes.p + BATCH_HEADER_SIZE, bytes.n - BATCH_HEADER_SIZE);
    batch_builder_fini(&b);
    r->batches_n++;
}

static void answer_offsets(struct rig *r, struct fake_request *q)
{
    const struct kafka_list_offsets_request *asked = q->body;
    struct kafka_list_offsets_response a;
    struct kafka_list_offsets_response_topic t;
    struct kafka_list_offsets_response_partition p;

    codec_init(&kafka_list_offsets_response_msg, &a);
    codec_init(&kafka_list_offsets_response_topic_msg, &t);
    codec_init(&kafka_list_offsets_response_partition_msg, &p);
    a.topics.at = &t;
    a.topics.n = 1;
    t.name = asked->topics.at[0].name;
    t.partitions.at = &p;
    t.partitions.n = 1;
    p.offset = asked->topics.at[0].partitions.at[0].timestamp == -2 ? r->start : r->end;
    fake_answer(q, q->version, &a);
}

/* The first batch that reaches to the offset; without one, nothing. */
static struct str log_from(const struct rig *r, int64_t offset)
{
    for (int i = 0; i < r->batches_n; i++) {
        int64_t next = i + 1 < r->batches_n ? r->base[i + 1] : r->end;

        if (next > offset && r->base[i] < r->stable)
            return buf_str(&r->batches[i]);
    }
    return STR("");
}

static void answer_fetch(struct rig *r, struct fake_request *q)
{
    const struct kafka_fetch_request *asked = q->body;
    struct kafka_fetch_response a;
    struct kafka_fetch_response_topic t;
    struct kafka_fetch_response_partition p;
    char *copy;

    codec_init(&kafka_fetch_response_msg, &a);
    codec_init(&kafka_fetch_response_topic_msg, &t);
    codec_init(&kafka_fetch_response_partition_msg, &p);
    if (asked->topics.n < 1) {
        fake_answer(q, q->version, &a);
        return;
    }
    CHECK_EQ(asked->isolation_level, 1);
    a.responses.at = &t;
    a.responses.n = 1;
    t.topic = STR("t");
    t.topic_id = r->topic.id;
    t.partitions.at = &p;
    t.partitions.n = 1;
    p.high_watermark = r->end;
    p.last_stable_offset = r->stable;
    p.aborted_transactions.at = &r->aborted;
    /* Named for reads up to its marker, as brokers do. */
    p.aborted_transactions.n =
        asked->topics.at[0].partitions.at[0].fetch_offset <= r->marker ? 1 : 0;
    p.records.body = log_from(r, asked->topics.at[0].partitions.at[0].fetch_offset);
    p.error_code = (int16_t)r->fetch_error;
    r->fetch_error = 0;
    copy = mem_copy_str(p.records.body.p, p.records.body.n);
    if (r->damaged && p.records.body.n) {
        r->damaged--;
        copy[70]++;
    }
    p.records.body.p = copy;
    fake_answer(q, q->version, &a);
    mem_free(copy);
}

static bool on_request(struct fake *f, struct fake_request *q)
{
    struct rig *r = f->arg;

    if (q->api->key == API_LIST_OFFSETS)
        answer_offsets(r, q);
    else if (q->api->key == API_FETCH)
        answer_fetch(r, q);
    else
        return false;
    return true;
}

static void rig_start(struct rig *r)
{
    *r = (struct rig){ .l = loop_new("test"), .marker = -1 };
    log_setup(LOG_TEXT, LOG_ERROR, NULL, NULL);
    fake_start(&r->fake, r->l);
    r->broker = (struct kafka_metadata_response_broker){ .node_id = 1,
                                                         .host = STR("127.0.0.1"),
                                                         .port = r->fake.port };
    r->topic = (struct fake_topic){
        .name = "t", .id = { "one" }, .partitions = 1, .leader = 1, .leader_epoch = 3
    };
    r->fake.brokers = &r->broker;
    r->fake.brokers_n = 1;
    r->fake.topics = &r->topic;
    r->fake.topics_n = 1;
    r->fake.on_request = on_request;
    r->fake.arg = r;
    r->bootstrap =
        (struct client_endpoint){ .host = STR("127.0.0.1"), .port = (uint16_t)r->fake.port };
    r->config = test_config(&r->bootstrap, 1);
    r->config.fetch_max_bytes = r->config.max_partition_fetch_bytes = MiB;
    r->config.fetch_max_wait_ms = 10;
    r->config.fetch_min_bytes = 1;
    r->cl = cluster_new(r->l, &r->config, STR("A"));
}

static void on_record(void *arg, const struct topic_record *rec)
{
    struct rig *r = arg;

    CHECK_STR(rec->value, "value");
    CHECK_EQ(rec->timestamp_ms, 1000);
    CHECK_EQ(rec->key.n, 1);
    strncat(r->keys, rec->key.p, 1);
}

static void on_done(void *arg, enum err e, int32_t kerr)
{
    struct rig *r = arg;

    CHECK(!r->done);
    r->done = true;
    r->error = e;
    r->kerr = kerr;
    topic_reader_free(&r->reader);
}

static void on_fault(void *arg, const struct fault *f)
{
    ((struct rig *)arg)->fault = *f;
}

static bool is_done(void *arg)
{
    return ((struct rig *)arg)->done;
}

static void rig_read(struct rig *r)
{
    struct topic_reader_ops ops = { .on_record = on_record, .on_done = on_done, .on_fault = on_fault, .arg = r };

    r->reader = topic_reader_start(r->cl, STR("t"), &ops);
    if (!test_run_until(r->l, is_done, r, 10000))
        fail_msg("%s", r->fault.text);
}

static void rig_stop(struct rig *r)
{
    topic_reader_free(&r->reader);
    cluster_free(&r->cl);
    test_run_ms(r->l, 2);
    fake_stop(&r->fake);
    for (int i = 0; i < r->batches_n; i++)
        buf_fini(&r->batches[i]);
    loop_free(&r->l);
}

TEST(reads_to_the_end)
{
    struct rig r;

    rig_start(&r);
    add_batch(&r, "ab", -1, 0);
    add_batch(&r, "c", -1, 0);
    add_batch(&r, "def", -1, 0);
    rig_read(&r);
    CHECK_EQ(r.error, E_OK);
    CHECK_EQ(r.kerr, 0);
    CHECK(!strcmp(r.keys, "abcdef"));
    rig_stop(&r);
}

TEST(begins_at_the_first_offset)
{
    struct rig r;

    rig_start(&r);
    add_batch(&r, "abc", -1, 0);
    add_batch(&r, "d", -1, 0);
    r.start = 2; /* records were deleted up to the middle of a batch */
    rig_read(&r);
    CHECK(!strcmp(r.keys, "cd"));
    rig_stop(&r);
}

TEST(an_empty_topic_is_read_at_once)
{
    struct rig r;

    rig_start(&r);
    rig_read(&r);
    CHECK_EQ(r.error, E_OK);
    CHECK_EQ(r.fake.asked[API_FETCH], 0);
    rig_stop(&r);
}

TEST(skips_what_was_aborted)
{
    struct rig r;

    rig_start(&r);
    add_batch(&r, "a", 5, BATCH_TRANSACTIONAL); /* committed earlier */
    add_batch(&r, "x", 5, BATCH_TRANSACTIONAL);
    add_batch(&r, "b", 6, BATCH_TRANSACTIONAL);
    add_batch(&r, "", 5, BATCH_TRANSACTIONAL | BATCH_CONTROL);
    add_batch(&r, "c", 5, BATCH_TRANSACTIONAL);
    r.aborted = (struct kafka_fetch_response_aborted){ .producer_id = 5, .first_offset = 1 };
    r.marker = 3;
    rig_read(&r);
    CHECK(!strcmp(r.keys, "abc"));
    rig_stop(&r);
}

TEST(does_not_wait_for_open_transactions)
{
    struct rig r;

    rig_start(&r);
    add_batch(&r, "ab", -1, 0);
    add_batch(&r, "open", 5, BATCH_TRANSACTIONAL);
    r.stable = 2;
    rig_read(&r);
    CHECK(!strcmp(r.keys, "ab"));
    rig_stop(&r);
}

TEST(a_missing_topic_is_told)
{
    struct rig r;

    rig_start(&r);
    r.fake.topics_n = 0;
    rig_read(&r);
    CHECK_EQ(r.kerr, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    rig_stop(&r);
}

TEST(a_denied_topic_is_told)
{
    struct rig r;

    rig_start(&r);
    r.topic.error = KERR_TOPIC_AUTHORIZATION_FAILED;
    rig_read(&r);
    CHECK_EQ(r.kerr, KERR_TOPIC_AUTHORIZATION_FAILED);
    rig_stop(&r);
}

TEST(damage_is_fetched_again)
{
    struct rig r;

    rig_start(&r);
    add_batch(&r, "ab", -1, 0);
    add_batch(&r, "c", -1, 0);
    r.damaged = 2;
    rig_read(&r);
    CHECK_EQ(r.error, E_OK);
    CHECK(!strcmp(r.keys, "abc"));
    rig_stop(&r);
}

TEST(moved_ends_are_asked_again)
{
    struct rig r;

    rig_start(&r);
    add_batch(&r, "ab", -1, 0);
    r.fetch_error = KERR_OFFSET_OUT_OF_RANGE;
    rig_read(&r);
    CHECK_EQ(r.fake.asked[API_LIST_OFFSETS], 4);
    CHECK(!strcmp(r.keys, "ab"));
    rig_stop(&r);
}

static bool is_in_trouble(void *arg)
{
    return fault_is_set(&((struct rig *)arg)->fault);
}

TEST(a_partition_without_a_leader_is_told)
{
    struct rig r;
    struct topic_reader_ops ops = { .on_record = on_record, .on_done = on_done, .on_fault = on_fault, .arg = &r };

    rig_start(&r);
    add_batch(&r, "ab", -1, 0);
    r.topic.leader = -1;
    r.reader = topic_reader_start(r.cl, STR("t"), &ops);
    CHECK(test_run_until(r.l, is_in_trouble, &r, 10000));
    CHECK(!strcmp(r.fault.code, "LEADER_NOT_AVAILABLE"));
    CHECK(strstr(r.fault.text, "partition 0 of topic t: ") == r.fault.text);
    r.topic.leader = 1;
    CHECK(test_run_until(r.l, is_done, &r, 10000));
    CHECK(!strcmp(r.keys, "ab"));
    rig_stop(&r);
}

TEST(freed_in_the_middle)
{
    struct rig r;
    struct topic_reader_ops ops = { .on_record = on_record, .on_done = on_done, .arg = &r };

    rig_start(&r);
    add_batch(&r, "ab", -1, 0);
    for (int ms = 0; ms < 20; ms++) {
        r.reader = topic_reader_start(r.cl, STR("t"), &ops);
        test_run_ms(r.l, ms);
        topic_reader_free(&r.reader);
        r.keys[0] = '\0';
        r.done = false;
    }
    rig_stop(&r);
}

TESTS(RUN(reads_to_the_end), RUN(begins_at_the_first_offset), RUN(an_empty_topic_is_read_at_once),
      RUN(skips_what_was_aborted), RUN(does_not_wait_for_open_transactions),
      RUN(a_missing_topic_is_told), RUN(a_denied_topic_is_told), RUN(damage_is_fetched_again),
      RUN(moved_ends_are_asked_again), RUN(a_partition_without_a_leader_is_told), RUN(freed_in_the_middle))
