/* test_transforms.c -- chains of transforms: reading them, where records go, what becomes of them and of their offsets.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/transforms.h"

#include "base/rand.h"
#include "mirror/record_path.h"
#include "unit/test.h"
#include "wire/prim.h"

#include <stdio.h>
#include <stdlib.h>

#define T "org.apache.kafka.connect.transforms."
#define P T "predicates."

static struct arena a;

static int set_up(void **state)
{
    (void)state;
    arena_init(&a, 64 * MiB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&a);
    return 0;
}

/* lists: "a,b" and "p"; settings: lines "key=value". */
static struct flow_config config_of(const char *transforms, const char *predicates, const char *settings)
{
    struct flow_config c = { .name = STR("A->B"), .transforms = opt_split(str_c(transforms), &a),
                             .predicates = opt_split(str_c(predicates), &a) };
    struct str_pair *all = arena_array(&a, 50, sizeof(*all));
    struct str rest = str_c(settings), line, key;

    while (str_next(&rest, '\n', &line)) {
        (void)str_next(&line, '=', &key);
        all[c.transform_settings_n++] = (struct str_pair){ key, line };
    }
    c.transform_settings = all;
    return c;
}

static struct transforms *chain(const char *transforms, const char *predicates, const char *settings)
{
    struct flow_config c = config_of(transforms, predicates, settings);
    struct transforms_fault f;
    struct transforms *t;

    if (transforms_new(&c, &a, &t, &f) != E_OK) {
        print_error("%.*s: %.*s\n", STR_ARG(f.key), STR_ARG(f.why));
        CHECK(false);
    }
    return t;
}

TEST(faults)
{
    static const struct {
        const char *transforms, *predicates, *settings, *key, *why;
    } cases[] = {
        { "a", "", "", "transforms.a.type", "missing: transforms names \"a\"; write A->B.transforms.a.type" },
        { "a", "", "transforms.a.type=com.x.Mine", "transforms.a.type", "Java classes cannot" },
        { "a", "", "transforms.a.type=" T "HeaderFrom$Value", "transforms.a.type", "bytes without fields" },
        { "a", "", "transforms.a.type=" T "InsertField$Key", "transforms.a.type", "bytes without fields" },
        { "a", "", "transforms.a.type=" T "TimestampRouter", "transforms.a.type", "one copy here" },
        { "a", "", "transforms.a.type=io.confluent.connect.transforms.Filter$Value", "transforms.a.type", "Confluent" },
        { "a", "", "transforms.a.type=" T "RegexRouter", "transforms.a.regex", "missing" },
        { "a", "", "transforms.a.type=" T "RegexRouter\ntransforms.a.regex=(\ntransforms.a.replacement=x",
          "transforms.a.regex", "mend the pattern" },
        { "a", "", "transforms.a.type=" T "RegexRouter\ntransforms.a.regex=x\ntransforms.a.replacement=$1",
          "transforms.a.replacement", "a group that the pattern does not have" },
        { "a", "p", "transforms.a.type=" T "Filter\npredicates.p.type=" P "Mine", "predicates.p.type", "RecordIsTombstone" },
        { "a", "", "transforms.a.type=" T "Filter\ntransforms.a.predicate=p", "transforms.a.predicate",
          "\"p\" does not stand in predicates" },
        { "a", "p", "transforms.a.type=" T "Filter\npredicates.p.type=" P "HasHeaderKey", "predicates.p.name", "missing" },
        { "a", "p", "transforms.a.type=" T "RegexRouter\ntransforms.a.predicate=p\npredicates.p.type=" P "RecordIsTombstone",
          "transforms.a.predicate", "only TopicNameMatches" },
        { "a", "", "transforms.a.type=" T "Filter\ntransforms.a.negate=true", "transforms.a.negate", "no predicate" },
        { "a", "", "transforms.a.type=" T "Filter\ntransforms.a.negate=maybe", "transforms.a.negate", "neither true nor" },
        { "a", "", "transforms.a.type=" T "InsertHeader\ntransforms.a.header=h", "transforms.a.value.literal", "missing" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct flow_config c = config_of(cases[i].transforms, cases[i].predicates, cases[i].settings);
        struct transforms_fault f = { 0 };
        struct transforms *t;

        CHECK_EQ(transforms_new(&c, &a, &t, &f), E_INVALID);
        CHECK(!t);
        check_str(f.key, str_c(cases[i].key), cases[i].settings, (int)i);
        if (str_find(f.why, str_c(cases[i].why), 0) < 0) {
            print_error("case %zu: %.*s\n", i, STR_ARG(f.why));
            CHECK(false);
        }
    }
}

TEST(routes)
{
    struct transforms *t = chain("strip,odd,filter", "other,header",
                                 "transforms.strip.type=" T "RegexRouter\ntransforms.strip.regex=A\\.(.*)\n"
                                 "transforms.strip.replacement=$1\n"
                                 "transforms.odd.type=" T "RegexRouter\ntransforms.odd.regex=(.*)\n"
                                 "transforms.odd.replacement=$1-odd\ntransforms.odd.predicate=other\ntransforms.odd.negate=true\n"
                                 "transforms.filter.type=" T "Filter\ntransforms.filter.predicate=header\n"
                                 "predicates.other.type=" P "TopicNameMatches\npredicates.other.pattern=orders|pay.*\n"
                                 "predicates.header.type=" P "HasHeaderKey\npredicates.header.name=drop");

    CHECK_STR(transforms_route(t, STR("A.orders"), &a), "orders"); /* the predicate sees the name as it is by then */
    CHECK_STR(transforms_route(t, STR("A.payments"), &a), "payments");
    CHECK_STR(transforms_route(t, STR("A.x"), &a), "x-odd");
    CHECK_STR(transforms_route(t, STR("B.x"), &a), "B.x-odd");
    CHECK_STR(transforms_route(NULL, STR("A.x"), &a), "A.x");
    transforms_free(&t);
}

/* What the name alone decides needs no batch to be opened. */
TEST(plans_by_name)
{
    struct transforms *t = chain("drop,mark", "secret,open",
                                 "transforms.drop.type=" T "Filter\ntransforms.drop.predicate=secret\n"
                                 "transforms.mark.type=" T "InsertHeader\ntransforms.mark.header=from\n"
                                 "transforms.mark.value.literal=A\ntransforms.mark.predicate=open\n"
                                 "predicates.secret.type=" P "TopicNameMatches\npredicates.secret.pattern=.*secret\n"
                                 "predicates.open.type=" P "TopicNameMatches\npredicates.open.pattern=.*open");
    struct transforms_plan *secret = transforms_plan_new(t, STR("A.secret"));
    struct transforms_plan *open = transforms_plan_new(t, STR("A.open"));

    CHECK(transforms_drop_all(secret));
    CHECK(transforms_filter_id(secret) != 0);
    CHECK(open && !transforms_drop_all(open));
    CHECK_EQ(transforms_filter_id(open), 0);
    CHECK(!transforms_plan_new(t, STR("A.other")));
    CHECK(!transforms_drop_all(NULL));
    CHECK_EQ(transforms_filter_id(NULL), 0);
    transforms_plan_free(&secret);
    transforms_plan_free(&open);
    transforms_free(&t);
}

/* --- records --- */

static struct str headers_of(const char *names, struct buf *b, int32_t *count)
{
    struct str rest = str_c(names), name;

    buf_clear(b);
    *count = 0;
    while (*names && str_next(&rest, ',', &name)) {
        struct record_header h = { name, STR("v") };

        record_put_header(b, &h);
        ++*count;
    }
    return buf_str(b);
}

static const char *show(const struct record *r, struct buf *b)
{
    struct str rest = r->headers;
    struct record_header h;

    buf_clear(b);
    while (record_header_next(&rest, &h))
        buf_fmt(b, "%s%.*s=%.*s", b->n ? "," : "", STR_ARG(h.key), STR_ARG(h.value));
    return buf_cstr(b);
}

TEST(records)
{
    static const char settings[] =
        "transforms.in.type=" T "InsertHeader\ntransforms.in.header=from\ntransforms.in.value.literal=A\n"
        "transforms.out.type=" T "DropHeaders\ntransforms.out.headers=x, y\n"
        "transforms.tomb.type=" T "Filter\ntransforms.tomb.predicate=tombstone\n"
        "transforms.only.type=" T "Filter\ntransforms.only.predicate=keep\ntransforms.only.negate=true\n"
        "predicates.tombstone.type=" P "RecordIsTombstone\n"
        "predicates.keep.type=" P "HasHeaderKey\npredicates.keep.name=keep";
    static const struct {
        const char *chain, *headers;
        bool tombstone;
        const char *want; /* NULL: left out */
    } cases[] = {
        { "in", "", false, "from=A" },
        { "in", "from", false, "from=v,from=A" }, /* added, whatever is there */
        { "out", "x,a,y,x,b", false, "a=v,b=v" },
        { "out,in", "x,a", false, "a=v,from=A" },
        { "in,out", "x,a", false, "a=v,from=A" },
        { "tomb", "a", false, "a=v" },
        { "tomb", "a", true, NULL },
        { "only", "a", false, NULL },
        { "only", "a,keep", false, "a=v,keep=v" },
        { "only,out", "x,keep", true, "keep=v" },
        { "out", "", false, "" },
    };
    struct buf headers, scratch, text;

    buf_init(&headers, KiB);
    buf_init(&scratch, KiB);
    buf_init(&text, KiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct transforms *t = chain(cases[i].chain, "tombstone,keep", settings);
        struct transforms_plan *p = transforms_plan_new(t, STR("A.t"));
        struct record r = { .key = STR("k"), .value = cases[i].tombstone ? STR_NULL : STR("v") };
        bool kept, stays;

        r.headers = headers_of(cases[i].headers, &headers, &r.header_count);
        kept = transforms_keeps(p, &r, &scratch);
        stays = transforms_apply(p, &r, &scratch);
        CHECK_EQ(kept, stays);
        CHECK_EQ(stays, cases[i].want != NULL);
        if (stays)
            check_str(str_c(show(&r, &text)), str_c(cases[i].want), cases[i].chain, (int)i);
        transforms_plan_free(&p);
        transforms_free(&t);
    }
    buf_fini(&headers);
    buf_fini(&scratch);
    buf_fini(&text);
}

/* --- the record path: what is left out is a hole, and counts for nothing --- */

#define RECORDS 200

struct seen {
    int64_t offset[RECORDS];
    int32_t n, next_sequence;
    int64_t last;
    int64_t skipped_to;
};

static void on_made(void *arg, const struct record_path_batch *b)
{
    struct seen *s = arg;
    struct record_reader r = record_reader_of(b->payload, b->count);
    struct record rec;
    struct batch h;
    struct buf whole;

    buf_init(&whole, MiB);
    buf_put(&whole, b->header, sizeof(b->header));
    buf_put_str(&whole, b->payload);
    CHECK_EQ(batch_peek(buf_str(&whole), &h), BATCH_V2);
    CHECK_EQ(h.base_sequence, s->next_sequence);
    CHECK_EQ(h.last_offset_delta, b->count - 1);
    s->next_sequence += b->count;
    for (int32_t i = 0; i < b->runs_n; i++)
        for (int32_t k = 0; k < b->runs[i].count; k++) {
            CHECK(record_next(&r, &rec));
            CHECK_EQ(rec.offset_delta, b->runs[i].index + k);
            CHECK_EQ(rec.header_count, 1); /* the marker that was put in */
            s->offset[s->n++] = b->runs[i].source + k;
            CHECK_EQ(strtol(rec.key.p, NULL, 10), b->runs[i].source + k);
        }
    CHECK_EQ(record_reader_end(&r), E_OK);
    s->last = b->source_last;
    buf_fini(&whole);
}

static void on_skipped(void *arg, const struct record_run *runs, int32_t n)
{
    struct seen *s = arg;

    s->skipped_to = runs[n - 1].source + runs[n - 1].count;
}

/* Records [from, from + n); which are tombstones says the seed. */
static void build(struct buf *out, int64_t from, int32_t n, const bool *tombstone)
{
    struct batch h = { .base_offset = from, .leader_epoch = 1, .count = n, .last_offset_delta = n - 1,
                       .base_timestamp = 1700000000000, .max_timestamp = 1700000000000, .producer_id = -1,
                       .base_sequence = -1 };
    unsigned char header[BATCH_HEADER_SIZE];
    struct buf area;

    buf_init(&area, MiB);
    for (int32_t i = 0; i < n; i++) {
        char key[20];
        struct record r = { .offset_delta = i, .value = tombstone[from + i] ? STR_NULL : STR("value") };

        snprintf(key, sizeof(key), "%d.", (int)(from + i));
        r.key = str_c(key);
        record_put(&area, &r);
    }
    batch_seal(&h, buf_str(&area), header);
    buf_init(out, MiB);
    buf_put(out, header, sizeof(header));
    buf_put_str(out, buf_str(&area));
    buf_fini(&area);
}

TEST(record_path_leaves_out_and_counts)
{
    struct transforms *t = chain("f,m", "p", "transforms.f.type=" T "Filter\ntransforms.f.predicate=p\n"
                                 "predicates.p.type=" P "RecordIsTombstone\n"
                                 "transforms.m.type=" T "InsertHeader\ntransforms.m.header=h\ntransforms.m.value.literal=1");
    struct transforms_plan *plan = transforms_plan_new(t, STR("A.t"));
    struct record_path *rp = record_path_new();

    for (uint64_t seed = 0; seed < 300; seed++) {
        struct rand rand;
        bool tombstone[RECORDS];
        struct buf bytes[4];
        struct str sources[4];
        int32_t per = RECORDS / 4;
        struct seen seen = { .next_sequence = 40 }, want = { 0 };
        int64_t start, skip;
        struct record_path_result res;

        rand_init(&rand, seed);
        start = (int64_t)rand_below(&rand, RECORDS / 4);
        skip = (int64_t)rand_below(&rand, 60);
        for (int i = 0; i < RECORDS; i++)
            tombstone[i] = rand_below(&rand, 1 + seed % 4) == 0;
        for (int i = 0; i < 4; i++) {
            build(&bytes[i], (int64_t)i * per, per, tombstone);
            sources[i] = buf_str(&bytes[i]);
        }
        {
            const struct record_path_options o = { .start = start, .transforms = plan, .skip_records = skip,
                                                   .size_max = seed % 3 ? 600 : 0,
                                                   .stamp = { .producer_id = 7, .base_sequence = 40 },
                                                   .skipped = on_skipped, .emit = on_made, .arg = &seen };

            CHECK_EQ(record_path_merge(rp, sources, 4, &o, &res), E_OK);
        }
        for (int64_t i = start, met = 0; i < RECORDS; i++) {
            if (tombstone[i])
                continue;
            if (met++ < skip)
                want.skipped_to = i + 1;
            else
                want.offset[want.n++] = i;
        }
        CHECK_EQ(seen.n, want.n);
        CHECK_EQ(seen.skipped_to, want.skipped_to);
        for (int32_t i = 0; i < want.n; i++)
            CHECK_EQ(seen.offset[i], want.offset[i]);
        CHECK_EQ(seen.next_sequence, 40 + want.n);
        CHECK(want.n == 0 || seen.last == RECORDS - 1); /* holes at the end are covered */
        CHECK_EQ(res.trimmed, start);
        for (int i = 0; i < 4; i++)
            buf_fini(&bytes[i]);
    }
    record_path_free(&rp);
    transforms_plan_free(&plan);
    transforms_free(&t);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

TESTS(CASE(faults), CASE(routes), CASE(plans_by_name), CASE(records), CASE(record_path_leaves_out_and_counts))
