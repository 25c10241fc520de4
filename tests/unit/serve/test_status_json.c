/* test_status_json.c -- /v1/status, /healthz, /readyz: members, unknown numbers, filters, pieces.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/serve/view_case.h"

#include <jansson.h>

static json_t *parse(struct said *s)
{
    json_error_t error;
    json_t *root = json_loadb(s->text.p, s->text.n, JSON_REJECT_DUPLICATES, &error);

    if (!root)
        print_error("%s at %d in %.*s\n", error.text, error.position, (int)s->text.n, s->text.p);
    CHECK(root);
    buf_fini(&s->text);
    return root;
}

static json_t *ask(const struct view *v, const char *query)
{
    struct said s = view_case_ask(v, "/v1/status", query);

    CHECK_EQ(s.status, 200);
    return parse(&s);
}

static json_t *at(json_t *root, const char *array, size_t i)
{
    return json_array_get(json_object_get(root, array), i);
}

static bool has_all(const json_t *o, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (json_object_get(o, names[i]))
            continue;
        print_error("no member %s\n", names[i]);
        return false;
    }
    return true;
}

TEST(members_of_the_contract)
{
    static const char *const top[] = { "version", "instance", "start_time_ms", "flows", "clusters",
                                       "faults",  "losses" };
    static const char *const flow[] = { "source",    "target", "state",     "delivery", "lag_records",
                                        "lag_bytes", "faults", "partitions" };
    static const char *const partition[] = { "topic",           "partition",       "target_topic",
                                             "state",           "next_offset",     "source_start",
                                             "source_end",      "target_end",      "lag_records",
                                             "lag_ms",          "relayed_batches", "decoded_batches",
                                             "dropped_batches", "records",         "bytes",
                                             "fault" };
    static const char *const cluster[] = { "alias", "cluster_id", "brokers" };
    static const char *const broker[] = { "id", "host", "port", "state", "rtt_ms" };
    static const char *const fault[] = { "code", "flow", "topic", "partition", "text", "since_ms", "count" };
    static const char *const loss[] = { "flow",      "topic", "partition", "from_offset",
                                        "to_offset", "cause", "time_ms" };
    struct view *v = view_case_new(3);
    json_t *root = ask(v, NULL);

    CHECK(has_all(root, top, COUNT(top)));
    CHECK(has_all(at(root, "flows", 0), flow, COUNT(flow)));
    CHECK(has_all(at(at(root, "flows", 0), "partitions", 1), partition, COUNT(partition)));
    CHECK(has_all(at(root, "clusters", 0), cluster, COUNT(cluster)));
    CHECK(has_all(at(at(root, "clusters", 0), "brokers", 0), broker, COUNT(broker)));
    CHECK(has_all(at(root, "faults", 0), fault, COUNT(fault)));
    CHECK(has_all(at(root, "losses", 0), loss, COUNT(loss)));
    CHECK_EQ(json_integer_value(json_object_get(at(root, "flows", 0), "records")), 12345678901234);
    CHECK_EQ(json_integer_value(json_object_get(at(root, "flows", 0), "faults")), 1);
    assert_string_equal(json_string_value(json_object_get(root, "instance")), "me\"1");
    json_decref(root);
    view_case_drop(v);
}

TEST(groups)
{
    struct view *v = view_case_new(3);
    json_t *root = ask(v, NULL);
    json_t *g = json_object_get(at(root, "flows", 0), "groups");

    CHECK_EQ(json_integer_value(json_object_get(g, "followed")), 3);
    CHECK_EQ(json_integer_value(json_object_get(g, "exact")), 11);
    CHECK_EQ(json_integer_value(json_object_get(g, "behind")), 1);
    CHECK_EQ(json_integer_value(json_object_get(g, "synced")), 10);
    CHECK_EQ(json_integer_value(json_object_get(g, "refused")), 1);
    assert_string_equal(json_string_value(json_object_get(at(g, "refused_groups", 0), "group")), "g\"1");
    assert_string_equal(json_string_value(json_object_get(at(g, "refused_groups", 0), "code")),
                        "GROUP_AUTHORIZATION_FAILED");
    CHECK(json_is_null(json_object_get(at(root, "flows", 1), "groups"))); /* none are followed */
    json_decref(root);
    view_case_drop(v);
}

TEST(what_is_not_known_is_minus_one)
{
    struct view *v = view_case_new(2);
    json_t *root = ask(v, NULL);
    json_t *bad = at(at(root, "flows", 0), "partitions", 0), *good = at(at(root, "flows", 0), "partitions", 1);

    CHECK_EQ(json_integer_value(json_object_get(bad, "lag_records")), -1);
    CHECK_EQ(json_integer_value(json_object_get(bad, "lag_ms")), -1);
    CHECK_EQ(json_integer_value(json_object_get(bad, "source_end")), -1);
    assert_string_equal(json_string_value(json_object_get(json_object_get(bad, "fault"), "text")),
                        "it says \"no\"\nand \\");
    CHECK(json_is_null(json_object_get(good, "fault")));
    CHECK_EQ(json_integer_value(json_object_get(good, "lag_ms")), 1500);
    CHECK(json_is_null(json_object_get(at(root, "clusters", 1), "cluster_id")));
    CHECK(json_real_value(json_object_get(at(at(root, "clusters", 0), "brokers", 0), "rtt_ms")) == 1.234);
    json_decref(root);
    view_case_drop(v);
}

TEST(filters)
{
    struct view *v = view_case_new(5);
    json_t *root = ask(v, "partitions=false");

    CHECK_EQ(json_array_size(json_object_get(at(root, "flows", 0), "partitions")), 0);
    CHECK_EQ(json_integer_value(json_object_get(at(root, "flows", 0), "partitions_count")), 5);
    json_decref(root);
    root = ask(v, "flow=b-%3Ea");
    CHECK_EQ(json_array_size(json_object_get(root, "flows")), 1);
    assert_string_equal(json_string_value(json_object_get(at(root, "flows", 0), "source")), "b");
    CHECK_EQ(json_array_size(json_object_get(root, "faults")), 0);
    CHECK_EQ(json_array_size(json_object_get(root, "losses")), 0);
    json_decref(root);
    root = ask(v, "flow=a->b&partitions=true");
    CHECK_EQ(json_array_size(json_object_get(at(root, "flows", 0), "partitions")), 5);
    CHECK_EQ(json_array_size(json_object_get(root, "losses")), 1);
    json_decref(root);
    view_case_drop(v);
}

TEST(refusals_are_json)
{
    static const struct {
        const char *path, *query;
        int status;
    } cases[] = {
        { "/nothing", NULL, 404 },
        { "/v1/status/", NULL, 404 },
        { "/v1/status", "flow=x", 404 },
        { "/v1/status", "flow=", 404 },
        { "/v1/status", "partitions=maybe", 400 },
        { "/v1/status", "colour=red", 400 },
        { "/v1/status", "&&&=", 400 },
        { "/metrics", "colour=red", 400 },
    };
    struct view *v = view_case_new(1);

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct said s = view_case_ask(v, cases[i].path, cases[i].query);
        json_t *root;

        CHECK_EQ(s.status, cases[i].status);
        root = parse(&s);
        CHECK(json_is_string(json_object_get(root, "error")));
        json_decref(root);
    }
    view_case_drop(v);
}

TEST(no_view_yet)
{
    struct said s = view_case_ask(NULL, "/v1/status", NULL);

    CHECK_EQ(s.status, 503);
    json_decref(parse(&s));
    s = view_case_ask(NULL, "/readyz", NULL);
    CHECK_EQ(s.status, 503);
    json_decref(parse(&s));
    s = view_case_ask(NULL, "/healthz", NULL);
    CHECK_EQ(s.status, 200);
    json_decref(parse(&s));
}

TEST(ready_says_why_not)
{
    struct view *v = view_case_new(1);
    struct said s = view_case_ask(v, "/readyz", NULL);
    json_t *root;

    CHECK_EQ(s.status, 200);
    json_decref(parse(&s));
    v->flows[0].ready = false;
    v->flows[0].state = "waiting";
    fault_set(&v->clusters[1].fault, 1, "REFUSED", "nobody is there");
    s = view_case_ask(v, "/readyz", NULL);
    CHECK_EQ(s.status, 503);
    root = parse(&s);
    CHECK(json_is_false(json_object_get(root, "ready")));
    assert_string_equal(json_string_value(at(root, "reasons", 0)),
                        "a->b: waiting: cluster b: nobody is there");
    json_decref(root);
    /* a flow that only writes heartbeats is no reason, unless there is none but such */
    v->flows[0].ready = true;
    v->flows[1].ready = false;
    s = view_case_ask(v, "/readyz", NULL);
    CHECK_EQ(s.status, 200);
    json_decref(parse(&s));
    v->flows[0].enabled = false;
    s = view_case_ask(v, "/readyz", NULL);
    CHECK_EQ(s.status, 503);
    json_decref(parse(&s));
    view_case_drop(v);
}

TEST(many_partitions_come_in_pieces)
{
    const int32_t n = 100000;
    struct view *v = view_case_new(n);
    struct said s = view_case_ask(v, "/v1/status", NULL);

    CHECK(s.pieces > 100);
    CHECK(s.largest < ANSWER_PIECE + 4 * KiB);
    CHECK_EQ(s.text.p[0], '{');
    CHECK_EQ(s.text.p[s.text.n - 2], '}');
    buf_fini(&s.text);
    view_case_drop(v);
}

TEST(page_needs_nothing_from_elsewhere)
{
    struct view *v = view_case_new(1);
    struct said s = view_case_ask(v, "/", NULL);
    struct str text = buf_str(&s.text);

    CHECK_EQ(s.status, 200);
    CHECK(str_starts(str_c(s.type), STR("text/html")));
    CHECK(str_find(text, STR("://"), 0) < 0);
    CHECK(str_find(text, STR("innerHTML"), 0) < 0);
    CHECK(str_find(text, STR("v1/status"), 0) > 0);
    buf_fini(&s.text);
    view_case_drop(v);
}

TESTS(RUN(members_of_the_contract), RUN(groups), RUN(what_is_not_known_is_minus_one), RUN(filters), RUN(refusals_are_json),
      RUN(no_view_yet), RUN(ready_says_why_not), RUN(many_partitions_come_in_pieces),
      RUN(page_needs_nothing_from_elsewhere))
