/* test_metric.c -- lines of Prometheus text, and rules that every row keeps.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/metric.h"

#include <math.h>

#include "unit/test.h"

TEST(lines)
{
    const struct str flow[] = { STR("A\"\\"), STR("B\n\xc3\xbc") };
    struct buf out;

    buf_init(&out, MiB);
    metric_begin(&out, METRIC_FLOW_RECORDS);
    metric_put_int(&out, METRIC_FLOW_RECORDS, flow, INT64_MAX);
    metric_put_int(&out, METRIC_MEMORY_USED, NULL, -1);
    metric_put_double(&out, METRIC_BROKER_RTT, flow, 0.00125);
    metric_put_double(&out, METRIC_START, NULL, 1700000000.123);
    metric_put_double(&out, METRIC_START, NULL, NAN);
    metric_put_double(&out, METRIC_START, NULL, -INFINITY);
    CHECK_STR(buf_str(&out),
              "# HELP heliostat_flow_records_total Records acknowledged by the target.\n"
              "# TYPE heliostat_flow_records_total counter\n"
              "heliostat_flow_records_total{source=\"A\\\"\\\\\",target=\"B\\n\xc3\xbc\"} 9223372036854775807\n"
              "heliostat_memory_used_bytes -1\n"
              "heliostat_broker_rtt_seconds{cluster=\"A\\\"\\\\\",broker=\"B\\n\xc3\xbc\"} 0.00125\n"
              "heliostat_start_time_seconds 1700000000.123\n"
              "heliostat_start_time_seconds NaN\n"
              "heliostat_start_time_seconds -Inf\n");
    buf_fini(&out);
}

TEST(histogram)
{
    static const double bounds[] = { 0.01, 0.5 };
    static const uint64_t counts[] = { 1, 2, 3 };
    const struct metric_histogram h = { bounds, counts, COUNT(bounds), 7.25 };
    const struct str broker[] = { STR("A"), STR("1") };
    struct buf out;

    buf_init(&out, MiB);
    metric_put_histogram(&out, METRIC_BROKER_RTT, broker, &h);
    metric_put_histogram(&out, METRIC_WORKERS, NULL, &h);
    CHECK_STR(buf_str(&out), "heliostat_broker_rtt_seconds_bucket{cluster=\"A\",broker=\"1\",le=\"0.01\"} 1\n"
                             "heliostat_broker_rtt_seconds_bucket{cluster=\"A\",broker=\"1\",le=\"0.5\"} 3\n"
                             "heliostat_broker_rtt_seconds_bucket{cluster=\"A\",broker=\"1\",le=\"+Inf\"} 6\n"
                             "heliostat_broker_rtt_seconds_sum{cluster=\"A\",broker=\"1\"} 7.25\n"
                             "heliostat_broker_rtt_seconds_count{cluster=\"A\",broker=\"1\"} 6\n"
                             "heliostat_workers_bucket{le=\"0.01\"} 1\n"
                             "heliostat_workers_bucket{le=\"0.5\"} 3\n"
                             "heliostat_workers_bucket{le=\"+Inf\"} 6\n"
                             "heliostat_workers_sum 7.25\n"
                             "heliostat_workers_count 6\n");
    buf_fini(&out);
}

/* Names as Prometheus wants them: the unit is in the name, counters end in _total, none stands twice. */
TEST(rows)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_row *row = metric_get((enum metric)i);
        struct str name = str_c(row->name);

        /* process_* are the names that every Prometheus client library gives these */
        CHECK(str_starts(name, STR("heliostat_")) || str_starts(name, STR("process_")));
        CHECK_EQ(str_ends(name, STR("_total")), row->kind == METRIC_KIND_COUNTER);
        CHECK(str_ends(str_c(row->doc), STR(".")));
        CHECK(str_find(name, str_c(row->unit), 0) >= 0);
        for (size_t c = 0; c < name.n; c++)
            CHECK((name.p[c] >= 'a' && name.p[c] <= 'z') || name.p[c] == '_');
        for (int j = 0; j < i; j++)
            CHECK(strcmp(row->name, metric_get((enum metric)j)->name) != 0);
    }
}

TESTS(RUN(lines), RUN(histogram), RUN(rows))
