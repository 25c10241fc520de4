/* test_acls.c -- which access rules are copied, under which name and operation, and what is missing at the target.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mirror/acls.h"

#include "base/arena.h"
#include "wire/kerr.h"
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#define CREATE       5
#define UNKNOWN_TYPE 9
#define CLUSTER      4

struct rule {
    int type, pattern;
    const char *resource, *principal, *host;
    int operation, permission;
};

static struct arena arena;

/* The rules as DescribeAcls tells them, one resource each: brokers bring them together, but nobody relies on that. */
static struct kafka_describe_acls_response *told(const struct rule *rules, size_t n)
{
    struct kafka_describe_acls_response *r = arena_alloc(&arena, sizeof(*r));

    codec_init(&kafka_describe_acls_response_msg, r);
    r->resources.at = arena_array(&arena, n, sizeof(*r->resources.at));
    r->resources.n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct kafka_describe_acls_response_resource *to = &r->resources.at[i];

        to->resource_type = (int8_t)rules[i].type;
        to->pattern_type = (int8_t)rules[i].pattern;
        to->resource_name = str_c(rules[i].resource);
        to->acls.at = arena_alloc(&arena, sizeof(*to->acls.at));
        to->acls.n = 1;
        *to->acls.at = (struct kafka_describe_acls_response_acl){ str_c(rules[i].principal), str_c(rules[i].host),
                                                                  (int8_t)rules[i].operation, (int8_t)rules[i].permission };
    }
    return r;
}

struct flow {
    struct flow_config config;
    struct policy *policy;
    struct filter *topics, *groups;
    struct acl_rules rules;
};

static struct filter *filter(const char *include, const char *exclude)
{
    struct str in = str_c(include), ex = str_c(exclude);
    struct str_list yes = { .at = &in, .n = 1 }, no = { .at = &ex, .n = 1 };
    struct filter *f = NULL;
    struct str why;

    CHECK_EQ(filter_new(&yes, &no, &arena, &f, &why), E_OK);
    return f;
}

static void begin(struct flow *f, enum flow_policy policy, const char *topics)
{
    arena_init(&arena, 64 * MiB);
    *f = (struct flow){ .config = { .source_alias = STR("A"), .target_alias = STR("B"), .policy = policy,
                                    .replication_policy_separator = STR("."), .heartbeats_replication_enabled = true } };
    f->policy = policy_new(&f->config);
    f->topics = filter(topics, "secret.*");
    f->groups = filter("g.*", "gx");
    f->rules = (struct acl_rules){ .policy = f->policy, .topics = f->topics };
}

static void end(struct flow *f)
{
    policy_free(&f->policy);
    filter_free(&f->topics);
    filter_free(&f->groups);
    arena_fini(&arena);
}

/* What is due, one line each. */
static const char *due(const struct acls *s)
{
    static char text[4000];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < s->n; i++) {
        enum acl_due d = acls_due(&s->at[i]);
        struct str t = acls_text(&s->at[i].acl, &arena);

        if (d != ACL_NOTHING)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%c %.*s\n", d == ACL_CREATE ? '+' : '-', STR_ARG(t));
    }
    return text;
}

static struct acls plan(const struct flow *f, const struct rule *source, size_t n)
{
    struct acls s;

    acls_plan(&s, &arena, &f->rules, told(source, n), NULL);
    return s;
}

#define RULE(resource, principal, host, operation, permission) \
    { ACL_TOPIC, ACL_LITERAL, resource, principal, host, operation, permission }

TEST(the_rules_of_mm2)
{
    static const struct rule source[] = {
        RULE("t", "User:all", "*", ACL_ALL, ACL_ALLOW),
        RULE("t", "User:reader", "10.0.0.9", ACL_READ, ACL_ALLOW),
        RULE("t", "User:writer", "*", ACL_WRITE, ACL_ALLOW), /* the copy is written by the mirror alone */
        RULE("t", "User:no", "*", ACL_WRITE, ACL_DENY),
        RULE("t", "User:no", "*", ACL_ALL, ACL_DENY),
        RULE("t", "User:CN=x, O=\"y\"", "*", CREATE, ACL_ALLOW),
        RULE("secret", "User:all", "*", ACL_READ, ACL_ALLOW),    /* not mirrored */
        RULE("B.t", "User:all", "*", ACL_READ, ACL_ALLOW),       /* comes from there */
        RULE("mm2-offsets.B.internal", "User:all", "*", ACL_READ, ACL_ALLOW),
        RULE("not-there", "User:all", "*", ACL_DESCRIBE, ACL_ALLOW), /* the topic need not exist */
        RULE("*", "User:all", "*", ACL_READ, ACL_ALLOW),             /* as MirrorMaker 2 has it */
        { ACL_TOPIC, ACL_PREFIXED, "t", "User:all", "*", ACL_READ, ACL_ALLOW },
        { ACL_GROUP, ACL_LITERAL, "g", "User:all", "*", ACL_READ, ACL_ALLOW },
        { CLUSTER, ACL_LITERAL, "kafka-cluster", "User:all", "*", ACL_ALL, ACL_ALLOW },
        { UNKNOWN_TYPE, ACL_LITERAL, "t", "User:all", "*", ACL_READ, ACL_ALLOW },
    };
    struct flow f;
    struct acls s;

    begin(&f, FLOW_POLICY_DEFAULT, ".*");
    s = plan(&f, source, COUNT(source));
    assert_string_equal(due(&s), "+ ALLOW READ for User:all from host * on topic A.*\n"
                                 "+ ALLOW DESCRIBE for User:all from host * on topic A.not-there\n"
                                 "+ ALLOW CREATE for User:CN=x, O=\"y\" from host * on topic A.t\n"
                                 "+ ALLOW READ for User:all from host * on topic A.t\n"
                                 "+ DENY ALL for User:no from host * on topic A.t\n"
                                 "+ DENY WRITE for User:no from host * on topic A.t\n"
                                 "+ ALLOW READ for User:reader from host 10.0.0.9 on topic A.t\n");
    CHECK_EQ(s.wanted, 7);
    CHECK_EQ(s.left_out, 0);
    end(&f);
}

TEST(names_by_policy)
{
    static const struct rule source[] = {
        RULE("t", "User:x", "*", ACL_READ, ACL_ALLOW),
        RULE("u", "User:x", "*", ACL_READ, ACL_ALLOW),
        RULE("heartbeats", "User:x", "*", ACL_READ, ACL_ALLOW),
        RULE("*", "User:x", "*", ACL_READ, ACL_ALLOW),
    };
    struct flow f;
    struct acls s;

    begin(&f, FLOW_POLICY_IDENTITY, "t");
    s = plan(&f, source, COUNT(source));
    assert_string_equal(due(&s), "+ ALLOW READ for User:x from host * on topic A.heartbeats\n"
                                 "+ ALLOW READ for User:x from host * on topic t\n");
    end(&f);
    begin(&f, FLOW_POLICY_DEFAULT, "t");
    s = plan(&f, source, COUNT(source));
    assert_string_equal(due(&s), "+ ALLOW READ for User:x from host * on topic A.heartbeats\n"
                                 "+ ALLOW READ for User:x from host * on topic A.t\n");
    end(&f);
}

TEST(what_is_there_is_not_created_again)
{
    static const struct rule source[] = {
        RULE("t", "User:x", "*", ACL_ALL, ACL_ALLOW),
        RULE("t", "User:x", "*", ACL_READ, ACL_ALLOW), /* ALL is the same at the target */
        RULE("t", "User:y", "*", ACL_READ, ACL_ALLOW),
        RULE("t", "User:y", "h", ACL_READ, ACL_ALLOW),
    };
    static const struct rule target[] = {
        RULE("A.t", "User:x", "*", ACL_READ, ACL_ALLOW),
        RULE("A.t", "User:y", "*", ACL_READ, ACL_DENY),
        { ACL_TOPIC, ACL_PREFIXED, "A.t", "User:y", "*", ACL_READ, ACL_ALLOW },
        RULE("A.t", "User:y", "h", ACL_READ, ACL_ALLOW),
        RULE("A.t", "User:local", "*", ACL_ALL, ACL_ALLOW), /* somebody else's */
    };
    struct flow f;
    struct acls s;

    begin(&f, FLOW_POLICY_DEFAULT, ".*");
    s = plan(&f, source, COUNT(source));
    CHECK_EQ(s.wanted, 3);
    acls_mark(&s, told(target, COUNT(target)));
    assert_string_equal(due(&s), "+ ALLOW READ for User:y from host * on topic A.t\n");
    CHECK_EQ(acls_count(&s, ACL_CREATE), 1);
    CHECK_EQ(acls_count(&s, ACL_DELETE), 0);
    end(&f);
}

TEST(prefixes)
{
    static const struct rule source[] = {
        { ACL_TOPIC, ACL_PREFIXED, "ord", "User:x", "*", ACL_ALL, ACL_ALLOW },
        { ACL_TOPIC, ACL_PREFIXED, "ord", "User:x", "*", ACL_WRITE, ACL_ALLOW },
        { ACL_TOPIC, ACL_PREFIXED, "bill", "User:x", "*", ACL_READ, ACL_ALLOW }, /* no such topic is mirrored */
        RULE("*", "User:y", "*", ACL_READ, ACL_ALLOW),
    };
    static const struct str mirrored[] = { STR("a"), STR("orders"), STR("z") };
    struct flow f;
    struct acls s;

    begin(&f, FLOW_POLICY_DEFAULT, "orders|a|z");
    f.rules.prefixed = true;
    f.rules.mirrored = mirrored;
    f.rules.mirrored_n = COUNT(mirrored);
    s = plan(&f, source, COUNT(source));
    assert_string_equal(due(&s), "+ ALLOW READ for User:y from host * on topics that begin with A.\n"
                                 "+ ALLOW READ for User:x from host * on topics that begin with A.ord\n");
    CHECK_EQ(s.n, 3);
    CHECK_EQ(s.wanted, 2);
    end(&f);
    begin(&f, FLOW_POLICY_IDENTITY, "orders|a|z");
    f.rules.prefixed = true;
    f.rules.mirrored = mirrored;
    f.rules.mirrored_n = COUNT(mirrored);
    s = plan(&f, source, COUNT(source)); /* "*" would be about topics of others too */
    assert_string_equal(due(&s), "+ ALLOW READ for User:x from host * on topics that begin with ord\n");
    end(&f);
}

TEST(groups)
{
    static const struct rule source[] = {
        { ACL_GROUP, ACL_LITERAL, "g1", "User:x", "*", ACL_ALL, ACL_ALLOW },
        { ACL_GROUP, ACL_LITERAL, "gx", "User:x", "*", ACL_ALL, ACL_ALLOW },
        { ACL_GROUP, ACL_LITERAL, "h", "User:x", "*", ACL_ALL, ACL_ALLOW },
        { ACL_GROUP, ACL_PREFIXED, "g", "User:x", "*", ACL_READ, ACL_ALLOW },
    };
    struct flow f;
    struct acls s;

    begin(&f, FLOW_POLICY_DEFAULT, ".*");
    f.rules.groups = f.groups;
    s = plan(&f, source, COUNT(source));
    assert_string_equal(due(&s), "+ ALLOW ALL for User:x from host * on group g1\n");
    f.rules.prefixed = true;
    s = plan(&f, source, COUNT(source));
    assert_string_equal(due(&s), "+ ALLOW READ for User:x from host * on groups that begin with g\n"
                                 "+ ALLOW ALL for User:x from host * on group g1\n");
    end(&f);
}

TEST(what_the_source_has_no_more)
{
    static const struct rule first[] = {
        RULE("t", "User:x", "*", ACL_READ, ACL_ALLOW),
        RULE("t", "User:y", "*", ACL_READ, ACL_ALLOW),
        RULE("t", "User:z", "*", ACL_ALL, ACL_ALLOW),
        RULE("t", "User:z", "*", ACL_READ, ACL_ALLOW),
    };
    static const struct rule second[] = { RULE("t", "User:x", "*", ACL_READ, ACL_ALLOW), RULE("t", "User:z", "*", ACL_READ, ACL_ALLOW) };
    static const struct rule target[] = {
        RULE("A.t", "User:x", "*", ACL_READ, ACL_ALLOW),
        RULE("A.t", "User:y", "*", ACL_READ, ACL_ALLOW),
        RULE("A.t", "User:z", "*", ACL_READ, ACL_ALLOW),
        RULE("A.t", "User:local", "*", ACL_READ, ACL_ALLOW),
    };
    struct flow f;
    struct acls one, two, three;

    begin(&f, FLOW_POLICY_DEFAULT, ".*");
    one = plan(&f, first, COUNT(first));
    acls_plan(&two, &arena, &f.rules, told(second, COUNT(second)), &one);
    CHECK_EQ(two.wanted, 2);
    acls_mark(&two, told(target, COUNT(target)));
    assert_string_equal(due(&two), "- ALLOW READ for User:y from host * on topic A.t\n");
    /* As long as it is there it stays due; then, or when the source has it again, it is forgotten. */
    acls_plan(&three, &arena, &f.rules, told(second, COUNT(second)), &two);
    acls_mark(&three, told(target, COUNT(target)));
    assert_string_equal(due(&three), "- ALLOW READ for User:y from host * on topic A.t\n");
    acls_plan(&three, &arena, &f.rules, told(first, COUNT(first)), &two);
    acls_mark(&three, told(target, COUNT(target)));
    assert_string_equal(due(&three), "");
    end(&f);
}

TEST(too_many)
{
    size_t n = ACLS_MAX + 7;
    struct rule *source;
    struct flow f;
    struct acls s;

    begin(&f, FLOW_POLICY_DEFAULT, ".*");
    source = arena_array(&arena, n, sizeof(*source));
    for (size_t i = 0; i < n; i++)
        source[i] = (struct rule)RULE(arena_fmt(&arena, "t%zu", i).p, "User:x", "*", ACL_READ, ACL_ALLOW);
    s = plan(&f, source, n);
    CHECK_EQ(s.n, ACLS_MAX);
    CHECK_EQ(s.left_out, 7);
    end(&f);
}

TEST(words)
{
    struct str t;

    arena_init(&arena, 1 * MiB);
    t = acls_trouble(STR("A"), KERR_CLUSTER_AUTHORIZATION_FAILED, false, &arena);
    CHECK(str_find(t, STR("grant Describe on the cluster"), 0) > 0 && str_find(t, STR("cluster A"), 0) == 0);
    t = acls_trouble(STR("B"), KERR_CLUSTER_AUTHORIZATION_FAILED, true, &arena);
    CHECK(str_find(t, STR("grant Alter on the cluster"), 0) > 0 && str_find(t, STR("sync.topic.acls.enabled = false"), 0) > 0);
    arena_fini(&arena);
}

TESTS(RUN(the_rules_of_mm2), RUN(names_by_policy), RUN(what_is_there_is_not_created_again), RUN(prefixes), RUN(groups),
      RUN(what_the_source_has_no_more), RUN(too_many), RUN(words))
