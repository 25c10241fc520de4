/* test_log.c -- lines of the log: both formats, quoting, limits.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/log.h"

#include "unit/test.h"

static char last[LOG_LINE_MAX + 1];
static char all[64 * KiB];
static int lines;
static int64_t clock_ms;

static void keep(const char *line, size_t n)
{
    size_t at = strlen(all);

    memcpy(last, line, n);
    last[n] = '\0';
    if (at + n < sizeof(all)) {
        memcpy(all + at, line, n);
        all[at + n] = '\0';
    }
    lines++;
}

static int64_t now(void)
{
    return clock_ms;
}

static void begin(enum log_format format, enum log_level least)
{
    clock_ms = 1700000000123;
    lines = 0;
    last[0] = all[0] = '\0';
    log_setup(format, least, now, keep);
}

TEST(text)
{
    begin(LOG_TEXT, LOG_DEBUG);
    log_event(EV_RELAY_FAULT, kv_c("relay", "A->B t-3"), kv_c("code", "TIMEOUT"),
              kv_c("text", "say \"what\"\n"), kv_int("n", -5), kv_bool("b", true),
              kv_str("none", STR_NULL), kv_c("empty", ""), kv_c("dash", "-"), kv_err("why", E_IO));
    CHECK_STR(str_c(last), "2023-11-14T22:13:20.123Z WARN  relay.fault relay=\"A->B t-3\" code=TIMEOUT "
                           "text=\"say \\\"what\\\"\\n\" n=-5 b=true none=- empty=\"\" dash=\"-\" why=IO\n");
}

TEST(json)
{
    begin(LOG_JSON, LOG_DEBUG);
    log_event(EV_RELAY_HALTED, kv_c("relay", "gr\xc3\xbcn \xff\x01"), kv_int("n", INT64_MIN),
              kv_bool("b", false), kv_str("none", STR_NULL));
    CHECK_STR(str_c(last),
              "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"ERROR\",\"event\":\"relay.halted\","
              "\"relay\":\"gr\xc3\xbcn \xef\xbf\xbd\\u0001\",\"n\":-9223372036854775808,\"b\":false,"
              "\"none\":null}\n");
}

TEST(time)
{
    static const struct {
        int64_t ms;
        const char *want;
    } cases[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { -1, "1969-12-31T23:59:59.999Z" },
        { 951782400000, "2000-02-29T00:00:00.000Z" },
        { 4107542399999, "2100-02-28T23:59:59.999Z" },
        { 4107542400000, "2100-03-01T00:00:00.000Z" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        begin(LOG_TEXT, LOG_INFO);
        clock_ms = cases[i].ms;
        log_event(EV_START, kv_c("version", "1"));
        last[24] = '\0';
        assert_string_equal(last, cases[i].want);
    }
}

TEST(level)
{
    begin(LOG_TEXT, LOG_WARN);
    log_event(EV_START, kv_c("version", "1"));
    CHECK_EQ(lines, 0);
    log_event(EV_LOSS, kv_c("relay", "r"));
    CHECK_EQ(lines, 1);
}

TEST(burst)
{
    begin(LOG_TEXT, LOG_INFO);
    for (int i = 0; i < 25; i++)
        log_event(EV_FLOW_FAULT, kv_c("flow", "A->B"), kv_c("code", "TIMEOUT"), kv_int("n", i));
    CHECK_EQ(lines, LOG_BURST);
    /* Another who is not held back. */
    log_event(EV_FLOW_FAULT, kv_c("flow", "A->B"), kv_c("code", "IO"));
    log_event(EV_TOPIC_FAULT, kv_c("flow", "A->B"), kv_c("topic", "TIMEOUT"));
    CHECK_EQ(lines, LOG_BURST + 2);
    log_tick(false);
    CHECK_EQ(lines, LOG_BURST + 2);
    clock_ms += LOG_BURST_WINDOW_MS;
    log_event(EV_FLOW_FAULT, kv_c("flow", "A->B"), kv_c("code", "TIMEOUT"), kv_int("n", 99));
    CHECK(strstr(last, " n=99 suppressed=15\n"));
    log_tick(true);
    CHECK_EQ(lines, LOG_BURST + 3);
}

TEST(tick)
{
    begin(LOG_TEXT, LOG_INFO);
    for (int i = 0; i < 12; i++)
        log_event(EV_FLOW_FAULT, kv_c("flow", "A->B"), kv_int("code", 7));
    clock_ms += LOG_BURST_WINDOW_MS;
    log_tick(false);
    CHECK(strstr(last, "log.suppressed event=flow.fault who=\"A->B 7\" suppressed=2\n"));
}

/* More different events than the table has places: each is heard of, or its count is. */
TEST(crowd)
{
    begin(LOG_TEXT, LOG_INFO);
    for (int i = 0; i < 5000; i++)
        log_event(EV_TOPIC_CREATED, kv_c("flow", "f"), kv_int("topic", i));
    CHECK_EQ(lines, 5000);
}

TEST(long_values)
{
    static char big[20000];
    struct kv kvs[40];

    memset(big, 1, sizeof(big)); /* each byte takes six in quotes */
    for (size_t i = 0; i < COUNT(kvs); i++)
        kvs[i] = kv_str("k", str_of(big, sizeof(big)));
    for (int f = LOG_TEXT; f <= LOG_JSON; f++) {
        begin((enum log_format)f, LOG_INFO);
        log_write(EV_FLOW_FAULT, kvs, COUNT(kvs));
        CHECK(strlen(last) <= LOG_LINE_MAX);
        CHECK_EQ(last[strlen(last) - 1], '\n');
        CHECK(strstr(last, "...\""));
        CHECK_EQ(last[strlen(last) - 2], f == LOG_JSON ? '}' : '"');
    }
}

TESTS(RUN(text), RUN(json), RUN(time), RUN(level), RUN(burst), RUN(tick), RUN(crowd), RUN(long_values))
