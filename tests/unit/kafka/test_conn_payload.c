/* test_conn_payload.c -- answers into pool blocks, requests by reference, budget that comes back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/kafka/conn_rig.h"

#define RECORDS_SIZE (3 * MiB)
static char *records;

static bool answer_fetch(struct fake *f, struct fake_request *q)
{
    struct kafka_fetch_response r;
    struct kafka_fetch_response_topic t;
    struct kafka_fetch_response_partition p;

    (void)f;
    if (q->api->key != API_FETCH)
        return false;
    codec_init(&kafka_fetch_response_msg, &r);
    codec_init(&kafka_fetch_response_topic_msg, &t);
    codec_init(&kafka_fetch_response_partition_msg, &p);
    r.throttle_time_ms = 1234;
    r.responses.at = &t;
    r.responses.n = 1;
    t.topic = STR("t");
    t.partitions.at = &p;
    t.partitions.n = 1;
    p.records.body = str_of(records, RECORDS_SIZE);
    fake_answer(q, q->version, &r);
    return true;
}

TEST(answers_go_into_pool_blocks)
{
    struct rig r;
    struct call c;
    struct kafka_fetch_request q;
    struct pool *pool = pool_new(1 * MiB, 64 * MiB);
    const struct kafka_fetch_response *got;
    struct slice kept;

    records = mem_new(RECORDS_SIZE);
    for (size_t i = 0; i < RECORDS_SIZE; i++)
        records[i] = (char)(i * 7 / 3);
    rig_start(&r);
    r.fake.on_request = answer_fetch;
    rig_connect(&r);
    codec_init(&kafka_fetch_request_msg, &q);
    call_init(&c, API_FETCH, &q, count_done);
    c.version_max = 12;
    c.pool = pool;
    for (int turn = 0; turn < 3; turn++) { /* once; canceled while it arrives; again */
        CHECK(pool_reserve(pool, MiB));
        c.reserved = MiB;
        r.fake.chunk = turn == 1 ? 64 * KiB : 0;
        CHECK_EQ(conn_send(r.conn, &c), E_OK);
        if (turn == 1) {
            while (pool_used(pool) <= MiB)
                test_run_ms(r.l, 0);
            call_cancel(&c);
            r.fake.chunk = 0;
        }
        CHECK(test_run_until(r.l, is_done, &c, 5000));
        CHECK_EQ(c.error, turn == 1 ? E_CANCELED : E_OK);
    }
    got = c.response;
    CHECK_EQ(c.throttle_ms, 1234);
    CHECK(conn_throttled_until_ms(r.conn) > loop_now_ms(r.l));
    CHECK(c.bytes.b != NULL);
    kept = slice_of(c.bytes.b, got->responses.at[0].partitions.at[0].records.body.p, RECORDS_SIZE);
    call_fini(&c);
    CHECK_EQ(c.reserved, 0);
    CHECK_MEM(kept.p, records, RECORDS_SIZE); /* outlives the call */
    slice_drop(&kept);
    CHECK_EQ(pool_used(pool), 0);
    rig_stop(&r);
    pool_free(&pool);
    mem_free(records);
}

TEST(a_failed_connection_gives_the_reservation_back)
{
    struct rig r;
    struct call c;
    struct kafka_fetch_request q;
    struct pool *pool = pool_new(1 * MiB, 64 * MiB);

    rig_start(&r);
    rig_connect(&r);
    codec_init(&kafka_fetch_request_msg, &q);
    call_init(&c, API_FETCH, &q, count_done);
    c.pool = pool;
    c.version_max = 0;
    CHECK(pool_reserve(pool, MiB));
    c.reserved = MiB;
    CHECK_EQ(conn_send(r.conn, &c), E_VERSION);
    CHECK_EQ(c.reserved, MiB); /* no start, nothing handed over */
    c.version_max = 12;
    CHECK_EQ(conn_send(r.conn, &c), E_OK);
    test_run_ms(r.l, 5);
    fake_die(&r.fake);
    CHECK(test_run_until(r.l, has_failed, &r, 5000));
    CHECK(c.error != E_OK);
    CHECK_EQ(pool_used(pool), 0);
    call_fini(&c);
    rig_stop(&r);
    pool_free(&pool);
}

#define PARTS 2000

static bool check_produce(struct fake *f, struct fake_request *q)
{
    const struct kafka_produce_request *p = q->body;
    struct kafka_produce_response r;

    if (q->api->key != API_PRODUCE)
        return false;
    CHECK_EQ(p->topic_data.n, 1);
    CHECK_EQ(p->topic_data.at[0].partition_data.n, PARTS);
    for (int32_t i = 0; i < PARTS; i++) {
        struct str got = p->topic_data.at[0].partition_data.at[i].records.body;

        CHECK_EQ(got.n, 61 + (size_t)i);
        CHECK_EQ(got.p[0], (char)i);
        CHECK_MEM(got.p + 61, f->arg, (size_t)i);
    }
    codec_init(&kafka_produce_response_msg, &r);
    r.throttle_time_ms = 5;
    fake_answer(q, q->version, &r);
    return true;
}

TEST(records_are_written_by_reference)
{
    struct rig r;
    struct call c;
    struct kafka_produce_request q;
    struct kafka_produce_request_topic t;
    struct kafka_produce_request_partition *parts = mem_array(PARTS, sizeof(*parts));
    char(*heads)[61] = mem_array(PARTS, 61);
    char *body = mem_new(PARTS);

    memset(body, 'b', PARTS);
    rig_start(&r);
    r.config.send_buffer_bytes = 16 * KiB; /* so that writes are partial */
    r.fake.on_request = check_produce;
    r.fake.arg = body;
    rig_connect(&r);
    codec_init(&kafka_produce_request_msg, &q);
    codec_init(&kafka_produce_request_topic_msg, &t);
    q.acks = -1;
    q.topic_data.at = &t;
    q.topic_data.n = 1;
    t.name = STR("t");
    t.partition_data.at = parts;
    t.partition_data.n = PARTS;
    for (int32_t i = 0; i < PARTS; i++) {
        codec_init(&kafka_produce_request_partition_msg, &parts[i]);
        heads[i][0] = (char)i;
        parts[i].records = (struct records){ str_of(heads[i], 61), str_of(body, (size_t)i) };
    }
    call_init(&c, API_PRODUCE, &q, count_done);
    c.version_max = 12;
    for (int turn = 0; turn < 3; turn++) {
        CHECK_EQ(conn_send(r.conn, &c), E_OK);
        CHECK(test_run_until(r.l, is_done, &c, 5000));
        CHECK_EQ(c.error, E_OK);
        CHECK_EQ(c.throttle_ms, 5);
    }
    call_fini(&c);
    rig_stop(&r);
    mem_free(parts);
    mem_free(heads);
    mem_free(body);
}

TESTS(RUN(answers_go_into_pool_blocks), RUN(a_failed_connection_gives_the_reservation_back),
      RUN(records_are_written_by_reference))
