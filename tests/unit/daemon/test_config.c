/* test_config.c -- flows and effective options against what MirrorMaker 2 makes of the same file.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Cases marked Q are quirks of MirrorMaker 2 that are kept; the text says which.
 */
#include "unit/daemon/config_case.h"

/* Which flows a file makes: "A->B" copies, "(A->B)" only writes heartbeats. */
static void flows_of(const struct config *c, struct buf *out)
{
    buf_clear(out);
    for (size_t i = 0; i < c->flow_count; i++)
        buf_fmt(out, c->flows[i].enabled ? "%.*s " : "(%.*s) ", STR_ARG(c->flows[i].name));
}

#define THREE                                                                                      \
    "clusters = a, b, c\na.bootstrap.servers = a:1\nb.bootstrap.servers = "                        \
    "b:1\nc.bootstrap.servers = c:1\n"
#define SIX                                                                                        \
    "clusters = a, b, c, d, e, f\nbootstrap.servers = x:1\nemit.heartbeats.enabled = false\n"

TEST(flows)
{
    static const struct {
        const char *text, *clusters, *want;
    } cases[] = {
        { THREE, NULL, "(a->b) (a->c) (b->a) (b->c) (c->a) (c->b) " },
        { THREE "emit.heartbeats.enabled = false\n", NULL, "" },
        { THREE "a->b.emit.heartbeats.enabled=false\na->c.emit.heartbeats.enabled=false", NULL,
          "(b->a) (b->c) (c->a) (c->b) " },
        { SIX "a->b.enabled=true\na->c.enabled=true\na->d.enabled=true\na->e.enabled=false\na->f."
              "enabled=false",
          NULL, "a->b a->c a->d " },
        { SIX "a->b.enabled=true\na->c.enabled=true\nd->a.emit.heartbeats.enabled=true", NULL,
          "a->b a->c (d->a) " },
        { TWO "A->B.enabled = TRUE", NULL, "A->B (B->A) " },
        { TWO "A->B.enabled = true", "B", "A->B " },
        { TWO "A->B.enabled = true", "A B", "A->B (B->A) " },
        { TWO "A->B.enabled = true", "A,B", "A->B (B->A) " },
        { TWO "A->B.enabled = true", "C", "" },
        /* Q: the bare `enabled` is an option of every flow that exists for its heartbeats. */
        { TWO "enabled = true", NULL, "A->B B->A " },
        { TWO "enabled = true\nemit.heartbeats.enabled = false", NULL, "" },
        /* Q: the driver does not trim, so the blank makes it false there, yet the connector reads true. */
        { TWO "A->B.enabled = true \nemit.heartbeats.enabled = false", NULL, "" },
        { TWO "A->B.enabled = true \n", NULL, "A->B (B->A) " },
        { "clusters = A, A, B\nbootstrap.servers = x:1\nA->B.enabled=true", NULL, "A->B (B->A) " },
        { "clusters = A, B,\nbootstrap.servers = x:1\nA->B.enabled=true", NULL, "A->B (B->A) " },
        { "clusters: A B", NULL, "" },
        { TWO "A->A.enabled = true\nemit.heartbeats.enabled = false", NULL, "" },
        { TWO "a->b.enabled = true", NULL, "(A->B) (B->A) " },
        { TWO "A ->B.enabled = true", NULL, "(A->B) (B->A) " },
        { "clusters=A.b,A\nbootstrap.servers=x:1\nA.b->A.enabled=true\n", NULL,
          "A.b->A (A->A.b) " },
    };
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct config *c = case_parse(cases[i].text, cases[i].clusters);

        flows_of(c, &out);
        check_str(buf_str(&out), str_c(cases[i].want), __FILE__, (int)i);
        config_free(&c);
    }
    buf_fini(&out);
}

/* The first three lines are TWO, so what follows begins at line 4. */
static const struct {
    const char *text, *scope, *key, *value, *origin;
} precedence[] = {
    /* options of a flow */
    { "replication.factor = 5", "A->B", "replication.factor", "5", "replication.factor:4" },
    { "replication.factor = 5\nA->B.replication.factor = 6", "A->B", "replication.factor", "6",
      "A->B.replication.factor:5" },
    { "A->B.replication.factor = 6", "B->A", "replication.factor", "2", ":0" },
    { "topics.blacklist = x", "A->B", "topics.exclude", "x", "topics.blacklist:4" },
    { "A->B.topics.blacklist = x\ntopics.exclude = y", "A->B", "topics.exclude", "y",
      "topics.exclude:5" },
    { "A->B.replication.policy.separator = _", "A->B", "replication.policy.separator", "_",
      "A->B.replication.policy.separator:4" },
    /* Q: only the form with the flow counts. */
    { "use.defaults.from = source", "A->B", "use.defaults.from", "target", ":0" },
    { "A->B.use.defaults.from = source", "A->B", "use.defaults.from", "source",
      "A->B.use.defaults.from:4" },
    { "offsets.storage.topic = x", "A->B", "offsets.storage.topic", "", ":0" },
    /* options of the worker */
    { "B.offset.flush.interval.ms = 7", "A->B", "offset.flush.interval.ms", "7",
      "B.offset.flush.interval.ms:4" },
    { "offset.flush.interval.ms = 7\nA->B.offset.flush.interval.ms = 8", "A->B",
      "offset.flush.interval.ms", "60000", ":0" },
    /* Q: a few bare prefixes are stronger than the cluster's key. */
    { "B.offset.storage.replication.factor = 7\noffset.storage.replication.factor = 8", "A->B",
      "offset.storage.replication.factor", "8", "offset.storage.replication.factor:5" },
    { "B.offset.storage.partitions = 7", "A->B", "offset.storage.partitions", "7",
      "B.offset.storage.partitions:4" },
    { "B.task.shutdown.graceful.timeout.ms = 1\ntask.shutdown.graceful.timeout.ms = 2", "A->B",
      "task.shutdown.graceful.timeout.ms", "2", "task.shutdown.graceful.timeout.ms:5" },
    { "B.exactly.once.source.support = Enabled", "A->B", "exactly.once.source.support", "enabled",
      "B.exactly.once.source.support:4" },
    { "B.exactly.once.source.support = enabled", "B->A", "exactly.once.source.support", "disabled",
      ":0" },
    /* the mirroring consumer */
    { "", "A->B source", "auto.offset.reset", "earliest", ":0" },
    { "A.consumer.auto.offset.reset = latest", "A->B source", "auto.offset.reset", "latest",
      "A.consumer.auto.offset.reset:4" },
    { "A.consumer.fetch.min.bytes = 9\nA->B.consumer.fetch.min.bytes = 8", "A->B source",
      "fetch.min.bytes", "9", "A.consumer.fetch.min.bytes:4" }, /* Q: the flow's is weaker */
    { "A->B.consumer.fetch.min.bytes = 8", "A->B source", "fetch.min.bytes", "8",
      "A->B.consumer.fetch.min.bytes:4" },
    { "A.consumer.fetch.min.bytes = 9\nA->B.source.consumer.fetch.min.bytes = 8", "A->B source",
      "fetch.min.bytes", "8", "A->B.source.consumer.fetch.min.bytes:5" },
    { "consumer.fetch.min.bytes = 9", "A->B source", "fetch.min.bytes", "1", ":0" }, /* Q */
    { "A.fetch.min.bytes = 9", "A->B source", "fetch.min.bytes", "1", ":0" },        /* Q */
    { "B.consumer.fetch.min.bytes = 9", "A->B source", "fetch.min.bytes", "1", ":0" },
    { "A.request.timeout.ms = 9", "A->B source", "request.timeout.ms", "30000", ":0" }, /* Q */
    { "A->B.source.consumer.override.fetch.min.bytes = 9", "A->B source", "fetch.min.bytes", "1",
      ":0" },
    /* security keys are inherited */
    { "A.consumer.bootstrap.servers = c:9", "A->B source", "bootstrap.servers", "c:9",
      "A.consumer.bootstrap.servers:4" },
    { "A.consumer.bootstrap.servers = c:9", "A->B source-admin", "bootstrap.servers", "a:1",
      "A.bootstrap.servers:2" },
    { "bootstrap.servers = t:9", "A->B source", "bootstrap.servers", "a:1",
      "A.bootstrap.servers:2" },
    { "A->B.source.cluster.bootstrap.servers = f:9", "A->B source", "bootstrap.servers", "a:1",
      "A.bootstrap.servers:2" }, /* Q: weaker than the cluster's own */
    { "A->B.source.admin.bootstrap.servers = f:9", "A->B source-admin", "bootstrap.servers", "f:9",
      "A->B.source.admin.bootstrap.servers:4" },
    /* the producer of records is Connect's */
    { "B.producer.max.request.size = 9", "A->B target", "max.request.size", "9",
      "B.producer.max.request.size:4" },
    { "B.producer.max.request.size = 9\nA->B.producer.override.max.request.size = 8", "A->B target",
      "max.request.size", "8", "A->B.producer.override.max.request.size:5" },
    { "A->B.producer.max.request.size = 9", "A->B target", "max.request.size", "1048576",
      ":0" }, /* Q */
    { "A->B.producer.max.request.size = 9", "A->B syncs-writer", "max.request.size", "9",
      "A->B.producer.max.request.size:4" },
    { "producer.max.request.size = 9", "A->B target", "max.request.size", "1048576", ":0" }, /* Q */
    { "A.producer.max.request.size = 9", "A->B syncs-writer", "max.request.size", "9",
      "A.producer.max.request.size:4" },
    { "B.producer.max.request.size = 9\noffset-syncs.topic.location = target", "A->B syncs-writer",
      "max.request.size", "9", "B.producer.max.request.size:4" },
    /* admin clients */
    { "A.admin.request.timeout.ms = 9", "A->B source-admin", "request.timeout.ms", "9",
      "A.admin.request.timeout.ms:4" },
    { "A->B.admin.request.timeout.ms = 9", "A->B target-admin", "request.timeout.ms", "9",
      "A->B.admin.request.timeout.ms:4" },
    { "A->B.target.admin.request.timeout.ms = 9\nB.admin.request.timeout.ms = 8",
      "A->B target-admin", "request.timeout.ms", "9", "A->B.target.admin.request.timeout.ms:4" },
    { "B.consumer.client.rack = r 1", "A->B target-reader", "client.rack", "r 1",
      "B.consumer.client.rack:4" },
    /* names of clients */
    { "", "A->B source", "client.id", "A->B|MirrorSourceConnector-0|replication-consumer", ":0" },
    { "A.consumer.client.id = me", "A->B source", "client.id",
      "me|A->B|MirrorSourceConnector-0|replication-consumer", "A.consumer.client.id:4" },
    { "", "A->B target", "client.id", "connector-producer-MirrorSourceConnector-0", ":0" },
    { "B.producer.client.id = me", "A->B target", "client.id", "me", "B.producer.client.id:4" },
    { "", "A->B source-admin", "client.id", "A->B|MirrorSourceConnector|replication-source-admin",
      ":0" },
    /* our own */
    { "heliostat.delivery = at-least-once", "A->B", "heliostat.delivery", "at-least-once",
      "heliostat.delivery:4" },
    { "heliostat.delivery = at-least-once\nA->B.heliostat.delivery = exactly-once", "A->B",
      "heliostat.delivery", "exactly-once", "A->B.heliostat.delivery:5" },
    { "heliostat.memory.max = 1 GiB", "process", "heliostat.memory.max", "1073741824",
      "heliostat.memory.max:4" },
    /* the last of several wins */
    { "topics = a\ntopics = b", "A->B", "topics", "b", "topics:5" },
};

TEST(precedence)
{
    for (size_t i = 0; i < COUNT(precedence); i++) {
        char text[1000];
        struct config *c;
        struct case_setting s;

        snprintf(text, sizeof(text), TWO "%s\n", precedence[i].text);
        c = case_parse(text, NULL);
        s = case_ask(c, precedence[i].scope, precedence[i].key);
        check_str(str_c(s.value), str_c(precedence[i].value), precedence[i].text, (int)i);
        check_str(str_c(s.origin), str_c(precedence[i].origin), precedence[i].text, (int)i);
        config_free(&c);
    }
}

TEST(typed)
{
    struct config *c = case_parse(
        "clusters = east, west\n"
        "east.bootstrap.servers = e1:9092, [::1]:9093, PLAINTEXT://e3.x:1\n"
        "west.bootstrap.servers = w1:9092\n"
        "east->west.enabled = true\n"
        "east->west.topics = foo\\\\d+, bar\n"
        "east->west.emit.checkpoints.interval.seconds = -3\n"
        "replication.policy.class = io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy\n"
        "east->west.source.cluster.alias = old-east\n"
        "west.offset.storage.min.insync.replicas = 2\noffset.storage.segment.bytes = 1000\n"
        "west.offset.storage.segment.bytes = 2000\n"
        "east.consumer.auto.offset.reset = by_duration:P1DT2H3S\n"
        "heliostat.log.format = JSON\n",
        NULL);
    const struct flow_config *f = case_flow(c, "east->west");

    CHECK_EQ(c->error_count, 0);
    CHECK_EQ(f->source.bootstrap_count, 3);
    CHECK_STR(f->source.bootstrap[1].host, "::1");
    CHECK_EQ(f->source.bootstrap[1].port, 9093);
    CHECK_STR(f->source.bootstrap[2].host, "e3.x");
    CHECK_STR(f->source.cluster, "east");
    CHECK_STR(f->target.cluster, "west");
    CHECK_STR(f->source_alias, "old-east");
    CHECK_STR(f->target_alias, "west");
    CHECK_STR(f->topics.at[0], "foo\\d+");
    CHECK_EQ(f->emit_checkpoints_interval_ms, -1);
    CHECK_EQ(f->refresh_topics_interval_ms, 600000);
    CHECK_EQ(f->policy, FLOW_POLICY_IDENTITY);
    CHECK_EQ(f->delivery, FLOW_EXACTLY_ONCE);
    CHECK_STR(f->offsets_topic, "mm2-offsets.east.internal");
    CHECK_EQ(f->offsets_config_count, 2);
    CHECK_STR(f->offsets_configs[0].key, "min.insync.replicas");
    CHECK_STR(f->offsets_configs[1].value, "1000"); /* the bare key is stronger */
    CHECK_EQ(f->source.reset, CLIENT_RESET_BY_DURATION);
    CHECK_EQ(f->source.reset_back_ms, 26 * 3600000 + 3000);
    CHECK_EQ(f->source.fetch_max_bytes, 50 * MiB);
    CHECK_EQ(f->target.acks, CLIENT_ACKS_ALL);
    CHECK_EQ(f->source.metadata_recovery_strategy, CLIENT_RECOVERY_REBOOTSTRAP);
    CHECK_EQ(f->source.security_protocol, CLIENT_PLAINTEXT);
    CHECK_EQ(c->process.log_format, 1);
    CHECK_EQ(c->process.memory_max, 256 * MiB);
    CHECK_STR(c->process.http_listen, "127.0.0.1:8380");
    config_free(&c);
}

TEST(reset)
{
    static const struct {
        struct str text;
        bool good;
        enum client_reset reset;
        int64_t ms;
    } cases[] = {
        { STR("earliest"), true, CLIENT_RESET_EARLIEST, 0 },
        { STR("LATEST"), true, CLIENT_RESET_LATEST, 0 },
        { STR("none"), true, CLIENT_RESET_NONE, 0 },
        { STR("by_duration:PT1H"), true, CLIENT_RESET_BY_DURATION, 3600000 },
        { STR("by_duration:p2dt-1h5m"), true, CLIENT_RESET_BY_DURATION, 47 * 3600000 + 300000 },
        { STR("by_duration:"), false, 0, 0 },
        { STR("by_duration:P"), false, 0, 0 },
        { STR("by_duration:PT"), false, 0, 0 },
        { STR("by_duration:P1H"), false, 0, 0 },
        { STR("by_duration:PT1"), false, 0, 0 },
        { STR("by_duration:-PT1H"), false, 0, 0 },
        { STR("by_duration:PT-1H"), false, 0, 0 },
        { STR("by_duration:PT9999999999999999H"), false, 0, 0 },
        { STR("smallest"), false, 0, 0 },
        { STR(""), false, 0, 0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum client_reset reset = CLIENT_RESET_NONE;
        int64_t ms = -1;

        CHECK_EQ(client_reset_parse(cases[i].text, &reset, &ms), cases[i].good ? E_OK : E_INVALID);
        if (cases[i].good) {
            CHECK_EQ(reset, cases[i].reset);
            CHECK_EQ(ms, cases[i].ms);
        }
    }
}

/* The files whose results stand in the golden data of MirrorMaker 2 4.3.0, 3.9.1 and 2.8.2. */
TEST(golden)
{
    static const struct {
        const char *name, *flows;
    } cases[] = {
        { "mm2-4.3.0-alo", "A->B B->A " }, { "mm2-4.3.0-eos", "E->F " },
        { "mm2-4.3.0-identity", "I->J " }, { "mm2-3.9.1-alo", "A->B B->A " },
        { "mm2-2.8.2-alo", "G->H H->G " },
    };
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[512];
        struct config_args args = { .sets = NULL };
        struct config *c;

        snprintf(path, sizeof(path), TEST_DATA "/mm2/%s.properties", cases[i].name);
        args.path = str_c(path);
        CHECK_EQ(config_load(&args, &c), E_OK);
        flows_of(c, &out);
        check_str(buf_str(&out), str_c(cases[i].flows), cases[i].name, 0);
        CHECK_EQ(c->flows[0].replication_factor, 1);
        CHECK_EQ(c->flows[0].emit_heartbeats_interval_ms, 5000);
        CHECK_EQ(c->flows[0].offset_storage_replication_factor, 1);
        CHECK_EQ(c->flows[0].offset_flush_interval_ms, 5000);
        CHECK_EQ(c->flows[0].defaults_from_source, false); /* Q: bare use.defaults.from */
        config_free(&c);
    }
    buf_fini(&out);
}

TEST(identity)
{
    struct config_args args = { .path = STR(TEST_DATA "/mm2/mm2-4.3.0-identity.properties") };
    struct config *c;
    const struct flow_config *f;

    CHECK_EQ(config_load(&args, &c), E_OK);
    f = case_flow(c, "I->J");
    CHECK_EQ(f->policy, FLOW_POLICY_IDENTITY);
    CHECK_EQ(f->offset_lag_max, 0);
    CHECK_EQ(f->offset_syncs_location, FLOW_SYNCS_AT_TARGET);
    CHECK_STR(f->config_properties_exclude.at[0], "retention\\.bytes");
    CHECK_STR(f->topics.at[0], "id-.*");
    CHECK_STR(f->syncs_writer.cluster, "J");
    config_free(&c);
}

TEST(sets)
{
    static const struct str sets[] = { STR("topics=x=y"), STR("A->B.replication.factor = 4"),
                                       STR("nothing") };
    struct config_args args = { .path = STR("f"), .sets = sets, .set_count = 2 };
    struct case_setting s;
    struct config *c;

    CHECK_EQ(config_parse(&args, STR(TWO "topics = a\nA->B.enabled = true"), &c), E_OK);
    s = case_ask(c, "A->B", "topics");
    CHECK_STR(str_c(s.value), "x=y");
    CHECK_STR(str_c(s.origin), "topics:0");
    CHECK_EQ(case_flow(c, "A->B")->replication_factor, 4);
    config_free(&c);
    args.set_count = 3;
    CHECK_EQ(config_parse(&args, STR(TWO), &c), E_INVALID);
    config_free(&c);
}

TESTS(RUN(flows), RUN(precedence), RUN(typed), RUN(reset), RUN(golden), RUN(identity), RUN(sets))
