/* metric.h -- the table of metrics, and its lines in the text format of Prometheus.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Metrics are rows of base/metric.def; nothing else can be shown. Whoever renders begins a metric once
 * and puts one sample per set of label values, in the order of the row's labels:
 *
 *     metric_begin(out, METRIC_BROKER_UP);
 *     metric_put_int(out, METRIC_BROKER_UP, (const struct str[]){ alias, id }, 1);
 *
 * Any thread; nothing here keeps state.
 */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include "base/buf.h"

enum metric {
#define METRIC(id, name, kind, unit, labels, doc) METRIC_##id,
#include "base/metric.def"
#undef METRIC
    METRIC_COUNT
};

enum metric_kind { METRIC_KIND_GAUGE, METRIC_KIND_COUNTER, METRIC_KIND_HISTOGRAM };

struct metric_row {
    const char *name, *unit, *labels, *doc; /* labels separated by blanks */
    enum metric_kind kind;
};

const struct metric_row *metric_get(enum metric m);
const char *metric_kind_name(enum metric_kind kind);

/* The HELP and TYPE lines. */
void metric_begin(struct buf *out, enum metric m);

/* One sample of a gauge or counter; values in the order of the row's labels, NULL when it has none. */
void metric_put_int(struct buf *out, enum metric m, const struct str *values, int64_t value);
void metric_put_double(struct buf *out, enum metric m, const struct str *values, double value);

struct metric_histogram {
    const double *bounds;   /* upper ends, ascending; +Inf is added */
    const uint64_t *counts; /* each bucket by itself, one more than bounds */
    size_t bounds_n;
    double sum;
};

/* The buckets, sum and count of a histogram. */
void metric_put_histogram(struct buf *out, enum metric m, const struct str *values,
                          const struct metric_histogram *h);

/* All rows as a Markdown page. */
void metric_page(struct buf *out);

#endif
