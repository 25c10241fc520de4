/* test_topics.c -- the plan of topics: by tables, and against what MirrorMaker 2 4.3.0 made of a real cluster.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/topics.h"

#include "mirror/policy.h"
#include "unit/test.h"

#include <jansson.h>

#define ROOM 64
#define EXCLUDE                                                                                    \
    "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "             \
    "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, "                   \
    "log.message.timestamp.after.max.ms, message.timestamp.type, unclean.leader.election.enable, " \
    "min.insync.replicas"

static struct filter *filter_of(const char *include, const char *exclude)
{
    struct filter *f;
    struct str_list in, out;
    struct arena a;
    struct str why;

    arena_init(&a, 64 * KiB);
    in = opt_split(str_c(include), &a);
    out = opt_split(str_c(exclude), &a);
    CHECK_EQ(filter_new(&in, &out, &a, &f, &why), E_OK);
    arena_fini(&a);
    return f;
}

/* MM2-T081, T082; mm2-spec 4.4. */
#define WANT(name_, copy, n, bad) { .name = STR(name_), .target_name = STR(copy), .partitions = n, .unnameable = bad }

TEST(plan)
{
    static const struct topic_want wants[] = {
        WANT("new", "A.new", 3, false), WANT("grown", "A.grown", 4, false),
        WANT("same", "A.same", 2, false), WANT("fewer", "A.fewer", 1, false),
        WANT("a-new", "A.a-new", 1, false), WANT("unknown", "A.unknown", 0, false),
        WANT("x", "A/x", 1, true),
    };
    static const struct topic_have haves[] = {
        { STR("A.same"), 2, 1 },  { STR("A.fewer"), 5, 1 }, { STR("A.target-only"), 1, 1 },
        { STR("A.grown"), 1, 1 }, { STR("new"), 9, 1 },
    };
    struct topic_action out[COUNT(wants)];

    CHECK_EQ(topics_plan(wants, COUNT(wants), haves, COUNT(haves), out), 3);
    CHECK_EQ(out[0].kind, TOPIC_CREATE);
    CHECK_STR(out[0].want->target_name, "A.a-new");
    CHECK_EQ(out[1].kind, TOPIC_GROW);
    CHECK_STR(out[1].want->target_name, "A.grown");
    CHECK_EQ(out[1].was, 1);
    CHECK_EQ(out[2].kind, TOPIC_CREATE);
    CHECK_STR(out[2].want->target_name, "A.new");
    CHECK_EQ(topics_plan(wants, 0, haves, COUNT(haves), out), 0);
    CHECK_EQ(topics_plan(wants, 1, NULL, 0, out), 1);
}

/* MM2-T052, T077, T078, T079; the sources of mm2-spec 4.5. */
TEST(creation_configs)
{
    static const struct topic_config all[] = {
        { STR("name-1"), STR("v"), 1, false, false },
        { STR("name-2"), STR("v"), 5, false, false }, /* a default */
        { STR("static"), STR("v"), 4, false, false },
        { STR("dynamic"), STR("v"), 2, false, false },
        { STR("cluster-wide"), STR("v"), 3, false, false },
        { STR("read-only"), STR("v"), 1, true, false },
        { STR("sensitive"), { 0 }, 1, false, true },
        { STR("min.insync.replicas"), STR("2"), 1, false, false },
        { STR("exclude_param.param1"), STR("v"), 1, false, false },
    };
    const struct topic_config *out[COUNT(all)];
    struct filter *f = filter_of(EXCLUDE ", exclude_param.*", "");

    CHECK_EQ(topics_creation_configs(all, COUNT(all), f, false, out), 3);
    CHECK_STR(out[0]->name, "name-1");
    CHECK_STR(out[1]->name, "dynamic");
    CHECK_STR(out[2]->name, "cluster-wide");
    CHECK_EQ(topics_creation_configs(all, COUNT(all), f, true, out), 4);
    CHECK_STR(out[1]->name, "name-2");
    filter_free(&f);
}

/* MM2-T076, T175; the sources of mm2-spec 4.5, column "periodic sync". */
TEST(changes)
{
    static const struct topic_config source[] = {
        { STR("set"), STR("2"), 1, false, false },          /* another value at the copy */
        { STR("equal"), STR("v"), 1, false, false },        /* nothing to do */
        { STR("inherited"), STR("v"), 1, false, false },    /* the same, but only by the broker's default */
        { STR("removed"), STR("d"), 5, false, false },      /* the copy has a setting of its own */
        { STR("default"), STR("d"), 5, false, false },      /* neither has */
        { STR("static"), STR("v"), 4, false, false },
        { STR("cluster-wide"), STR("v"), 3, false, false },
        { STR("read-only"), STR("v"), 1, true, false },
        { STR("sensitive"), { 0 }, 1, false, true },
        { STR("min.insync.replicas"), STR("2"), 1, false, false }, /* excluded */
        { STR("unknown-there"), STR("v"), 1, false, false },
        { STR("max.message.bytes"), STR("100"), 1, false, false },
    };
    static const struct topic_config copy[] = {
        { STR("set"), STR("1"), 1, false, false },
        { STR("equal"), STR("v"), 1, false, false },
        { STR("inherited"), STR("v"), 5, false, false },
        { STR("removed"), STR("x"), 1, false, false },
        { STR("default"), STR("e"), 5, false, false },
        { STR("static"), STR("x"), 1, false, false },
        { STR("cluster-wide"), STR("v"), 5, false, false },
        { STR("read-only"), STR("x"), 1, false, false },
        { STR("sensitive"), STR("x"), 1, false, false },
        { STR("min.insync.replicas"), STR("1"), 1, false, false },
        { STR("max.message.bytes"), STR("200"), 1, false, false },
        { STR("own"), STR("x"), 1, false, false }, /* the source does not speak of it */
    };
    const struct topic_sides sides = { .source = source, .source_n = COUNT(source), .target = copy,
                                       .target_n = COUNT(copy) };
    struct topic_change out[COUNT(source)];
    struct filter *f = filter_of(EXCLUDE, "");

    CHECK_EQ(topics_changes(&sides, f, false, false, out), 5);
    CHECK_STR(out[0].name, "set");
    CHECK_STR(out[0].value, "2");
    CHECK_STR(out[0].was, "1");
    CHECK_STR(out[1].name, "inherited");
    CHECK_STR(out[2].name, "removed");
    CHECK(str_is_null(out[2].value));
    CHECK_STR(out[3].name, "cluster-wide");
    CHECK_STR(out[4].name, "max.message.bytes");
    CHECK_EQ(topics_changes(&sides, f, false, true, out), 4); /* a raised limit is not lowered */
    CHECK_EQ(topics_changes(&sides, f, true, true, out), 5);  /* defaults of the source are values */
    CHECK_STR(out[2].value, "d");
    CHECK_STR(out[3].name, "default");
    filter_free(&f);
}

TEST(unknown_configs)
{
    CHECK_STR(
        topics_unknown_config(STR("Unknown topic config name: message.timestamp.after.max.ms")),
        "message.timestamp.after.max.ms");
    CHECK_STR(topics_unknown_config(STR("x: Unknown topic config name: a.b, more")), "a.b");
    CHECK(str_is_null(
        topics_unknown_config(STR("Invalid value -1 for configuration retention.bytes"))));
    CHECK(str_is_null(topics_unknown_config(STR("Unknown topic config name: "))));
    CHECK(str_is_null(topics_unknown_config(STR_NULL)));
}

TEST(warnings)
{
    static const struct topic_config source[] = {
        { STR("max.message.bytes"), STR("2000000"), 1, false, false },
        { STR("message.timestamp.after.max.ms"), STR("9223372036854775807"), 5, false, false },
        { STR("retention.ms"), STR("-1"), 5, false, false },
    };
    static const struct topic_config compacted[] = {
        { STR("cleanup.policy"), STR("compact"), 1, false, false },
        { STR("retention.ms"), STR("1000"), 1, false, false },
    };
    static const struct topic_config good[] = {
        { STR("compression.type"), STR("producer"), 5, false, false },
        { STR("max.message.bytes"), STR("2000000"), 1, false, false },
        { STR("message.timestamp.type"), STR("CreateTime"), 5, false, false },
        { STR("message.timestamp.after.max.ms"), STR("9223372036854775807"), 5, false, false },
        { STR("segment.bytes"), STR("1073741824"), 5, false, false },
        { STR("retention.ms"), STR("-1"), 5, false, false },
        { STR("min.insync.replicas"), STR("2"), 5, false, false },
    };
    static const struct topic_config bad[] = {
        { STR("compression.type"), STR("lz4"), 1, false, false },
        { STR("max.message.bytes"), STR("1048588"), 5, false, false },
        { STR("message.timestamp.type"), STR("LogAppendTime"), 1, false, false },
        { STR("message.timestamp.after.max.ms"), STR("3600000"), 5, false, false },
        { STR("message.timestamp.before.max.ms"), STR("1000"), 5, false, false },
        { STR("segment.bytes"), STR("1048576"), 5, false, false },
        { STR("message.timestamp.difference.max.ms"), STR("1000"), 5, false, false },
        { STR("retention.ms"), STR("86400000"), 5, false, false },
        { STR("retention.bytes"), STR("1000"), 5, false, false },
        { STR("min.insync.replicas"), STR("2"), 5, false, false },
        { STR("cleanup.policy"), STR("compact,delete"), 5, false, false },
    };
    const struct topic_sides with_good = { source, good, COUNT(source), COUNT(good), 3 };
    const struct topic_sides with_bad = { source, bad, COUNT(source), COUNT(bad), 1 };
    const struct topic_sides with_compacted = { source, compacted, COUNT(source), COUNT(compacted), 0 };
    struct topic_warning out[TOPIC_WARNINGS_MAX];
    struct arena a;

    arena_init(&a, 64 * KiB);
    CHECK_EQ(topics_warnings(&with_good, &a, out), 0);
    CHECK_EQ(topics_warnings(&with_bad, &a, out), TOPIC_WARNINGS_MAX);
    CHECK_STR(out[0].text, "min.insync.replicas of the copy is 2 and it has 1 replica: nothing can be written; lower "
                           "it, or give the copy more replicas");
    CHECK_STR(out[1].text, "the target recompresses every batch that is not `lz4`");
    CHECK_STR(str_c(out[2].config), "message.timestamp.type");
    CHECK_STR(out[3].text, "the copy takes batches of 1048588 bytes, the source 2000000; a larger one would halt its "
                           "partition: raise max.message.bytes at the target");
    CHECK_STR(str_c(out[4].config), "segment.bytes");
    CHECK_STR(str_c(out[5].config), "message.timestamp.after.max.ms");
    CHECK_STR(str_c(out[6].config), "message.timestamp.before.max.ms");
    CHECK_STR(str_c(out[7].config), "message.timestamp.difference.max.ms");
    CHECK_STR(out[8].text, "the copy keeps records for 86400000 ms, the source without limit: older ones are deleted "
                           "soon after they were copied");
    CHECK_STR(str_c(out[9].config), "retention.bytes");
    CHECK_EQ(topics_warnings(&with_compacted, &a, out), 0);
    arena_fini(&a);
}

/* What Kafka takes as a name, and what is said of what it does not. */
TEST(names)
{
    static const char *const good[] = { "orders", "A.orders_1-x", "...", "a" };
    static const struct {
        const char *name, *says;
    } bad[] = {
        { "A/orders", "the copy would be named \"A/orders\", and Kafka takes only letters, digits, '.', '_' and '-' in "
                      "names of topics: mend replication.policy.separator, the alias of the source or heliostat.topic.map" },
        { "", "leave the topic out" },
        { ".", "leave the topic out" },
        { "..", "leave the topic out" },
    };
    char name[300];
    struct arena a;
    struct str why;

    arena_init(&a, 64 * KiB);
    memset(name, 'x', sizeof(name));
    for (size_t i = 0; i < COUNT(good); i++)
        CHECK(str_is_null(topics_name_fault(str_c(good[i]), &a)));
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(str_find(topics_name_fault(str_c(bad[i].name), &a), str_c(bad[i].says), 0) >= 0);
    CHECK(str_is_null(topics_name_fault(str_of(name, 249), &a)));
    why = topics_name_fault(str_of(name, 250), &a);
    CHECK(str_find(why, STR("would have 250 characters and Kafka takes 249 at most"), 0) >= 0);
    CHECK(str_find(why, STR("shorter alias"), 0) > 0);
    arena_fini(&a);
}

/* ------------------------------------------------- against a real MirrorMaker 2 */

static json_t *load(const char *cluster)
{
    char path[512];
    json_t *j;

    snprintf(path, sizeof(path), "%s/golden/topics-%s-4.3.0.json", TEST_DATA, cluster);
    j = json_load_file(path, 0, NULL);
    CHECK(j);
    return j;
}

static struct str text(const json_t *j)
{
    return str_of(json_string_value(j), json_string_length(j));
}

static int8_t source_code(const char *name)
{
    static const char *const names[] = { "",
                                         "DYNAMIC_TOPIC_CONFIG",
                                         "DYNAMIC_BROKER_CONFIG",
                                         "DYNAMIC_DEFAULT_BROKER_CONFIG",
                                         "STATIC_BROKER_CONFIG",
                                         "DEFAULT_CONFIG" };

    for (int8_t i = 1; i < (int8_t)COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    fail_msg("no config source is called %s", name);
    return 0;
}

static size_t configs_of(json_t *topic, struct topic_config *out)
{
    const char *name;
    json_t *entry;
    size_t n = 0;

    json_object_foreach(json_object_get(topic, "configs"), name, entry)
    {
        CHECK(n < ROOM);
        out[n++] =
            (struct topic_config){ str_c(name), text(json_object_get(entry, "value")),
                                   source_code(json_string_value(json_object_get(entry, "source"))),
                                   false, false };
    }
    return n;
}

/* The copy that MirrorMaker 2 made has our partitions, and as its own configs just those that we choose. */
static void compare_copy(json_t *original, json_t *copy, struct filter *exclude)
{
    struct topic_config before[ROOM], after[ROOM];
    const struct topic_config *chosen[ROOM];
    size_t n =
        topics_creation_configs(before, configs_of(original, before), exclude, false, chosen);
    size_t have_n = configs_of(copy, after), own = 0;

    CHECK_EQ(json_integer_value(json_object_get(original, "partitions")),
             json_integer_value(json_object_get(copy, "partitions")));
    for (size_t i = 0; i < have_n; i++) {
        bool found = false;

        if (after[i].source != 1)
            continue;
        own++;
        for (size_t k = 0; k < n; k++)
            found |=
                str_eq(chosen[k]->name, after[i].name) && str_eq(chosen[k]->value, after[i].value);
        CHECK(found);
    }
    CHECK_EQ(own, n);
}

/* Every topic that we would copy is there under our name, and none that we would not. */
static void compare_clusters(const char *source, const char *target, int copies)
{
    struct flow_config c = { .replication_policy_separator = STR("."),
                             .replication_policy_internal_separator = true,
                             .source_alias = str_c(source),
                             .target_alias = str_c(target),
                             .heartbeats_replication_enabled = true };
    json_t *from = load(source), *to = load(target), *topic;
    struct filter *topics = filter_of(".*", "mm2.*\\.internal, .*\\.replica, __.*");
    struct filter *exclude = filter_of(EXCLUDE, "");
    struct policy *p = policy_new(&c);
    struct arena a;
    const char *name;

    arena_init(&a, 64 * KiB);
    json_object_foreach(from, name, topic)
    {
        json_t *copy = json_object_get(to, policy_remote(p, str_c(name), &a).p);
        bool mirrored = policy_verdict_is_yes(policy_mirrors(p, topics, str_c(name)));

        if (mirrored != (copy != NULL))
            print_error("%s: %d\n", name, mirrored);
        CHECK_EQ(mirrored, copy != NULL);
        copies -= mirrored;
        if (mirrored)
            compare_copy(topic, copy, exclude);
    }
    CHECK_EQ(copies, 0);
    arena_fini(&a);
    policy_free(&p);
    filter_free(&topics);
    filter_free(&exclude);
    json_decref(from);
    json_decref(to);
}

TEST(as_mirror_maker)
{
    compare_clusters("A", "B", 13);
    compare_clusters("B", "A", 2);
}

TESTS(RUN(plan), RUN(creation_configs), RUN(changes), RUN(unknown_configs), RUN(warnings), RUN(names), RUN(as_mirror_maker))
