/* test_kerr.c -- classes of Kafka's error codes, and the codes that mean another thing in one API.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/test.h"

#include "wire/api.h"
#include "wire/kerr.h"

TEST(classes)
{
    static const struct {
        int api, code;
        enum kerr_class want;
    } cases[] = {
        { API_FETCH, KERR_NONE, K_OK },
        { API_FETCH, KERR_OFFSET_OUT_OF_RANGE, K_RANGE },
        { API_FETCH, KERR_NOT_LEADER_OR_FOLLOWER, K_REFRESH },
        { API_FETCH, KERR_FENCED_LEADER_EPOCH, K_REFRESH },
        { API_FETCH, KERR_UNKNOWN_LEADER_EPOCH, K_AGAIN },
        { API_FETCH, KERR_OFFSET_NOT_AVAILABLE, K_AGAIN },
        { API_FETCH, KERR_FETCH_SESSION_ID_NOT_FOUND, K_SESSION },
        { API_FETCH, KERR_INVALID_FETCH_SESSION_EPOCH, K_SESSION },
        { API_FETCH, KERR_UNKNOWN_TOPIC_ID, K_GONE },
        { API_FETCH, KERR_CORRUPT_MESSAGE, K_RECORDS },
        { API_PRODUCE, KERR_CORRUPT_MESSAGE, K_RECORDS },
        { API_PRODUCE, KERR_REQUEST_TIMED_OUT, K_UNSURE },
        { API_FETCH, KERR_REQUEST_TIMED_OUT, K_AGAIN },
        { API_PRODUCE, KERR_NOT_ENOUGH_REPLICAS, K_AGAIN },
        { API_PRODUCE, KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, K_UNSURE },
        { API_PRODUCE, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, K_ORDER },
        { API_PRODUCE, KERR_UNKNOWN_PRODUCER_ID, K_ORDER },
        { API_PRODUCE, KERR_INVALID_PRODUCER_EPOCH, K_FENCED },
        { API_INIT_PRODUCER_ID, KERR_PRODUCER_FENCED, K_FENCED },
        { API_PRODUCE, KERR_MESSAGE_TOO_LARGE, K_SIZE },
        { API_PRODUCE, KERR_INVALID_RECORD, K_RECORDS },
        { API_PRODUCE, KERR_TOPIC_AUTHORIZATION_FAILED, K_DENIED },
        { API_PRODUCE, KERR_POLICY_VIOLATION, K_FATAL },
        { API_FIND_COORDINATOR, KERR_COORDINATOR_NOT_AVAILABLE, K_AGAIN },
        { API_OFFSET_COMMIT, KERR_COORDINATOR_NOT_AVAILABLE, K_REFRESH },
        { API_HEARTBEAT, KERR_REBALANCE_IN_PROGRESS, K_REJOIN },
        { API_CREATE_TOPICS, KERR_NOT_CONTROLLER, K_REFRESH },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_EQ(kerr_class(cases[i].api, cases[i].code), cases[i].want);
}

TEST(names_and_texts)
{
    CHECK_EQ(strcmp(kerr_name(6), "NOT_LEADER_OR_FOLLOWER"), 0);
    CHECK_EQ(strcmp(kerr_name(-1), "UNKNOWN_SERVER_ERROR"), 0);
    CHECK_EQ(strcmp(kerr_name(0), "NONE"), 0);
    for (int code = -1; code <= KERR_CONTROLLER_ID_NOT_REGISTERED; code++) {
        CHECK(strncmp(kerr_name(code), "ERROR_", 6) != 0); /* no gaps */
        CHECK(strlen(kerr_text(code)) > 5);
    }
}

/* What halts a partition or a topic comes with what a person can do. */
TEST(advice)
{
    static const int codes[] = {
        KERR_UNKNOWN_SERVER_ERROR, KERR_CORRUPT_MESSAGE, KERR_MESSAGE_TOO_LARGE, KERR_RECORD_LIST_TOO_LARGE,
        KERR_INVALID_TOPIC_EXCEPTION, KERR_NOT_ENOUGH_REPLICAS, KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KERR_INVALID_TIMESTAMP, KERR_INVALID_REPLICATION_FACTOR, KERR_INVALID_CONFIG, KERR_POLICY_VIOLATION,
        KERR_INVALID_PRODUCER_EPOCH, KERR_KAFKA_STORAGE_ERROR, KERR_UNSUPPORTED_COMPRESSION_TYPE,
        KERR_INVALID_RECORD, KERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, KERR_LEADER_NOT_AVAILABLE,
        KERR_UNSUPPORTED_VERSION, KERR_LISTENER_NOT_FOUND,
    };

    for (size_t i = 0; i < COUNT(codes); i++) {
        CHECK(strlen(kerr_advice(codes[i])) > 10);
        CHECK_EQ(strncmp(kerr_advice(codes[i]), "; ", 2), 0);
    }
    CHECK(strstr(kerr_advice(KERR_INVALID_TIMESTAMP), "message.timestamp.before.max.ms"));
    CHECK(strstr(kerr_advice(KERR_INVALID_TIMESTAMP), "message.timestamp.after.max.ms"));
    CHECK(strstr(kerr_advice(KERR_INVALID_TIMESTAMP), "message.timestamp.difference.max.ms"));
    CHECK_EQ(strcmp(kerr_advice(KERR_NONE), ""), 0);
    CHECK_EQ(strcmp(kerr_advice(12345), ""), 0);
}

TEST(unknown_codes)
{
    static const int codes[] = { -2, INT16_MIN, INT16_MAX, KERR_CONTROLLER_ID_NOT_REGISTERED + 1 };

    for (size_t i = 0; i < COUNT(codes); i++) {
        CHECK_EQ(kerr_class(API_FETCH, codes[i]), K_FATAL);
        CHECK_EQ(strncmp(kerr_name(codes[i]), "ERROR_", 6), 0);
        CHECK(kerr_text(codes[i]) != NULL);
    }
    CHECK_EQ(strcmp(kerr_name(-2), "ERROR_-2"), 0);
}

TESTS(RUN(classes), RUN(names_and_texts), RUN(advice), RUN(unknown_codes))
