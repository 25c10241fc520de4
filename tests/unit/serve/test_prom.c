/* test_prom.c -- /metrics follows the text format: a small reader of it, written from its description.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/metric.h"
#include "unit/serve/view_case.h"

#include <ctype.h>
#include <stdlib.h>

/* One line of samples taken apart; values of labels are unescaped. */
struct sample {
    char name[100];
    char labels[8][2][200];
    int labels_n;
    double value;
};

static const char *read_name(const char *p, char *to, size_t room)
{
    size_t n = 0;

    CHECK(isalpha((unsigned char)*p) || *p == '_');
    while (isalnum((unsigned char)*p) || *p == '_') {
        CHECK(n + 1 < room);
        to[n++] = *p++;
    }
    to[n] = '\0';
    return p;
}

static const char *read_value(const char *p, char *to, size_t room)
{
    size_t n = 0;

    CHECK_EQ(*p, '"');
    for (p++; *p != '"'; p++) {
        CHECK(*p && *p != '\n' && n + 1 < room);
        if (*p == '\\') {
            p++;
            CHECK(*p == '\\' || *p == '"' || *p == 'n');
            to[n++] = *p == 'n' ? '\n' : *p;
        } else {
            to[n++] = *p;
        }
    }
    to[n] = '\0';
    return p + 1;
}

static void read_sample(const char *line, struct sample *s)
{
    const char *p = read_name(line, s->name, sizeof(s->name));
    char *end;

    s->labels_n = 0;
    if (*p == '{') {
        do {
            CHECK(s->labels_n < 8);
            p = read_name(p + 1, s->labels[s->labels_n][0], sizeof(s->labels[0][0]));
            CHECK_EQ(*p, '=');
            p = read_value(p + 1, s->labels[s->labels_n++][1], sizeof(s->labels[0][1]));
        } while (*p == ',');
        CHECK_EQ(*p++, '}');
    }
    CHECK_EQ(*p, ' ');
    s->value = strtod(p + 1, &end);
    CHECK(end > p + 1 && *end == '\0');
}

struct page {
    struct said said;
    struct sample *samples;
    size_t n;
    int heads;
};

/* Reads it all; a sample must follow the HELP and TYPE of its own metric, and no metric comes twice. */
static struct page read_page(const struct view *v, const char *query)
{
    struct page page = { .said = view_case_ask(v, "/metrics", query) };
    struct str rest = buf_str(&page.said.text), line;
    char helped[100] = "", typed[100] = "", text[1000];
    bool seen[METRIC_COUNT] = { false };

    CHECK_EQ(page.said.status, 200);
    CHECK_EQ(page.said.text.p[page.said.text.n - 1], '\n');
    page.samples = mem_array(page.said.text.n / 20 + 1, sizeof(*page.samples));
    while (rest.n && str_next(&rest, '\n', &line)) {
        if (!line.n)
            continue;
        CHECK(line.n < sizeof(text));
        snprintf(text, sizeof(text), "%.*s", STR_ARG(line));
        if (str_starts(line, STR("# HELP "))) {
            read_name(text + 7, helped, sizeof(helped));
            for (int m = 0; m < METRIC_COUNT; m++) {
                if (strcmp(metric_get((enum metric)m)->name, helped) != 0)
                    continue;
                CHECK(!seen[m]);
                seen[m] = true;
            }
            page.heads++;
        } else if (str_starts(line, STR("# TYPE "))) {
            const char *kind = read_name(text + 7, typed, sizeof(typed));

            assert_string_equal(typed, helped);
            CHECK(!strcmp(kind, " gauge") || !strcmp(kind, " counter"));
        } else {
            read_sample(text, &page.samples[page.n]);
            assert_string_equal(page.samples[page.n++].name, typed);
        }
    }
    return page;
}

static void free_page(struct page *p)
{
    buf_fini(&p->said.text);
    mem_free(p->samples);
}

static size_t count(const struct page *p, const char *name, double *last)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->samples[i].name, name) != 0)
            continue;
        n++;
        *last = p->samples[i].value;
    }
    return n;
}

TEST(every_row_of_the_table_is_shown)
{
    struct view *v = view_case_new(12);
    struct page p = read_page(v, NULL);

    CHECK_EQ(p.heads, METRIC_COUNT);
    free_page(&p);
    view_case_drop(v);
}

/* A view in which everything is known and everything is wrong has a sample for each row. */
TEST(every_row_has_a_sample)
{
    struct view *v = view_case_new(2);
    struct page p;

    fault_set(&v->flows[0].fault, 1, "X", "y");
    fault_set(&v->clusters[0].fault, 1, "X", "y");
    v->flows[0].last_refresh_ms = v->flows[0].configs_compared_ms = v->flows[0].positions_stored_ms = 1700000000000;
    v->flows[0].acls_compared_ms = 1700000000000;
    p = read_page(v, NULL);
    for (int m = 0; m < METRIC_COUNT; m++) {
        double value;

        if (!count(&p, metric_get((enum metric)m)->name, &value))
            print_error("%s has no sample\n", metric_get((enum metric)m)->name);
        CHECK(count(&p, metric_get((enum metric)m)->name, &value) > 0);
    }
    free_page(&p);
    view_case_drop(v);
}

TEST(figures)
{
    struct view *v = view_case_new(12);
    struct page p = read_page(v, NULL);
    double x = -1;

    CHECK_EQ(count(&p, "heliostat_flow_records_total", &x), 2);
    CHECK_EQ(count(&p, "heliostat_partition_records_total", &x), 12);
    CHECK(x == 111);
    CHECK_EQ(count(&p, "heliostat_partition_lag_records", &x), 11); /* one is not known */
    CHECK_EQ(count(&p, "heliostat_partition_lag_seconds", &x), 11);
    CHECK(x == 1.5);
    CHECK_EQ(count(&p, "heliostat_partition_fault", &x), 1);
    CHECK_EQ(count(&p, "heliostat_broker_rtt_seconds", &x), 1);
    CHECK(x == 0.001234);
    CHECK_EQ(count(&p, "heliostat_ready", &x), 1);
    CHECK(x == 1);
    CHECK_EQ(count(&p, "heliostat_faults", &x), 1);
    CHECK_EQ(count(&p, "process_resident_memory_bytes", &x), 1);
    CHECK(x > 100000);
    CHECK_EQ(count(&p, "process_open_fds", &x), 1);
    CHECK(x >= 3);
    free_page(&p);
    p = read_page(v, "partitions=false");
    CHECK_EQ(count(&p, "heliostat_partition_records_total", &x), 0);
    free_page(&p);
    p = read_page(v, "flow=b->a");
    CHECK_EQ(count(&p, "heliostat_partition_records_total", &x), 0);
    CHECK_EQ(count(&p, "heliostat_flow_records_total", &x), 1);
    free_page(&p);
    view_case_drop(v);
}

TEST(labels_are_escaped)
{
    struct view *v = view_case_new(2);
    struct page p;
    bool found = false;

    v->flows[0].partitions[1].topic = STR("a\"b\\c\nd");
    p = read_page(v, NULL);
    for (size_t i = 0; i < p.n; i++)
        for (int k = 0; k < p.samples[i].labels_n; k++)
            found = found || !strcmp(p.samples[i].labels[k][1], "a\"b\\c\nd");
    CHECK(found);
    free_page(&p);
    view_case_drop(v);
}

TEST(many_partitions_come_in_pieces)
{
    struct view *v = view_case_new(20000);
    struct said s = view_case_ask(v, "/metrics", NULL);

    CHECK(s.pieces > 100);
    CHECK(s.largest < ANSWER_PIECE + 4 * KiB);
    buf_fini(&s.text);
    view_case_drop(v);
}

TESTS(RUN(every_row_of_the_table_is_shown), RUN(every_row_has_a_sample), RUN(figures), RUN(labels_are_escaped),
      RUN(many_partitions_come_in_pieces))
