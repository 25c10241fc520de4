/* metric.c -- writes metrics in the text format of Prometheus.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/metric.h"

#include <math.h>

static const struct metric_row rows[] = {
#define METRIC(id, name_, kind_, unit_, labels_, doc_)                                             \
    [METRIC_##id] = {                                                                              \
        .name = name_, .kind = METRIC_KIND_##kind_, .unit = unit_, .labels = labels_, .doc = doc_  \
    },
#include "base/metric.def"
#undef METRIC
};

const struct metric_row *metric_get(enum metric m)
{
    return &rows[m];
}

const char *metric_kind_name(enum metric_kind kind)
{
    static const char *const names[] = { "gauge", "counter", "histogram" };

    return names[kind];
}

void metric_begin(struct buf *out, enum metric m)
{
    buf_fmt(out, "# HELP %s ", rows[m].name);
    for (const char *p = rows[m].doc; *p; p++) {
        if (*p == '\\')
            buf_put_char(out, '\\');
        buf_put_char(out, *p);
    }
    buf_fmt(out, "\n# TYPE %s %s\n", rows[m].name, metric_kind_name(rows[m].kind));
}

static void put_label_value(struct buf *out, struct str v)
{
    buf_put_char(out, '"');
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] == '\n') {
            buf_put_str(out, STR("\\n"));
            continue;
        }
        if (v.p[i] == '"' || v.p[i] == '\\')
            buf_put_char(out, '\\');
        buf_put_char(out, v.p[i]);
    }
    buf_put_char(out, '"');
}

/* name_suffix{a="x",le="bound"}; le may be null. */
static void put_name(struct buf *out, enum metric m, const char *suffix, const struct str *values,
                     struct str le)
{
    struct str rest = str_c(rows[m].labels);
    struct str label;
    bool any = false;

    buf_fmt(out, "%s%s", rows[m].name, suffix);
    while (rest.n && str_next(&rest, ' ', &label)) {
        buf_fmt(out, "%s%.*s=", any ? "," : "{", STR_ARG(label));
        put_label_value(out, *values++);
        any = true;
    }
    if (!str_is_null(le)) {
        buf_put_str(out, any ? STR(",le=") : STR("{le="));
        put_label_value(out, le);
        any = true;
    }
    buf_put_str(out, any ? STR("} ") : STR(" "));
}

static void put_double(struct buf *out, double v)
{
    if (isnan(v))
        buf_put_str(out, STR("NaN"));
    else if (isinf(v))
        buf_put_str(out, v > 0 ? STR("+Inf") : STR("-Inf"));
    else
        buf_fmt(out, "%.15g", v);
}

void metric_put_int(struct buf *out, enum metric m, const struct str *values, int64_t value)
{
    put_name(out, m, "", values, STR_NULL);
    buf_fmt(out, "%lld\n", (long long)value);
}

void metric_put_double(struct buf *out, enum metric m, const struct str *values, double value)
{
    put_name(out, m, "", values, STR_NULL);
    put_double(out, value);
    buf_put_char(out, '\n');
}

void metric_put_histogram(struct buf *out, enum metric m, const struct str *values,
                          const struct metric_histogram *h)
{
    uint64_t total = 0;
    struct buf bound;

    buf_init(&bound, KiB);
    for (size_t i = 0; i <= h->bounds_n; i++) {
        total += h->counts[i];
        buf_clear(&bound);
        put_double(&bound, i < h->bounds_n ? h->bounds[i] : INFINITY);
        put_name(out, m, "_bucket", values, buf_str(&bound));
        buf_fmt(out, "%llu\n", (unsigned long long)total);
    }
    buf_fini(&bound);
    put_name(out, m, "_sum", values, STR_NULL);
    put_double(out, h->sum);
    buf_put_char(out, '\n');
    put_name(out, m, "_count", values, STR_NULL);
    buf_fmt(out, "%llu\n", (unsigned long long)total);
}

void metric_page(struct buf *out)
{
    buf_put_str(out, STR("| name | kind | unit | labels | meaning |\n|---|---|---|---|---|\n"));
    for (size_t i = 0; i < COUNT(rows); i++)
        buf_fmt(out, "| `%s` | %s | %s | %s | %s |\n", rows[i].name, metric_kind_name(rows[i].kind),
                rows[i].unit, rows[i].labels, rows[i].doc);
}
