/* test_config_problems.c -- what is said about each mistake in a file, and what is never said.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/daemon/config_case.h"

/* The lines behind TWO begin at 4; want is one line of the problems, or "" for none. */
static const struct {
    const char *text, *want;
} cases[] = {
    { "A->B.enabled = true", "" },
    /* comments behind values, as in Kafka's own pages */
    { "A->B.enabled = true     # disabled by default",
      "f:4: A->B.enabled: warning: taken as \"true\": a comment behind a value is part of it for "
      "MirrorMaker 2; give the comment a line of its own" },
    { "A->B.topics = foo.*  # only some",
      "f:4: A->B.topics: warning: taken as \"foo.*\": a comment" },
    { "A->B.groups = g # 1", "f:4: A->B.groups: warning: the text behind # is part of the value" },
    { "A->B.topics = a#b", "" },
    /* unknown keys */
    { "A->B.topisc = x", "f:4: A->B.topisc: warning: no such option; did you mean A->B.topics?" },
    { "topisc = x", "f:4: topisc: warning: no such option; did you mean topics?" },
    { "A->B.enable = true",
      "f:4: A->B.enable: warning: no such option; did you mean A->B.enabled?" },
    { "A->B.emit.heartbeats = false", "f:4: A->B.emit.heartbeats: warning: no such option; did you "
                                      "mean A->B.emit.heartbeats.enabled?" },
    { "A.consumer.fetch.min.byte = 1", "f:4: A.consumer.fetch.min.byte: warning: no such option; "
                                       "did you mean A.consumer.fetch.min.bytes?" },
    { "A.consumer.acks = 1", "f:4: A.consumer.acks: warning: no such option of MirrorMaker 2" },
    { "A.bootstrap.server = x:1",
      "f:4: A.bootstrap.server: warning: no such option; did you mean A.bootstrap.servers?" },
    { "some.unknown.key = canary",
      "f:4: some.unknown.key: warning: no such option of MirrorMaker 2, Kafka's "
      "clients or Heliostat; remove it or mend the name" },
    { "heliostat.worker = 1",
      "f:4: heliostat.worker: warning: no such option; did you mean heliostat.workers?" },
    /* wrong aliases */
    { "a->B.enabled = true",
      "f:4: a->B.enabled: warning: no such option; did you mean A->B.enabled?" },
    { "Foo->Bar.enabled = true",
      "f:4: Foo->Bar.enabled: warning: names a cluster that is not in clusters" },
    { "A -> B.enabled = true", "f:4: A: warning: no such option: a blank ends a key" },
    { "A->A.enabled = true",
      "f:4: A->A.enabled: warning: has no effect here: a cluster is not mirrored to itself" },
    /* known keys at the wrong place */
    { "use.defaults.from = source",
      "f:4: use.defaults.from: warning: has no effect here: MirrorMaker 2 reads it "
      "for a single flow only; write SOURCE->TARGET.use.defaults.from" },
    { "offset.flush.interval.ms = 5",
      "f:4: offset.flush.interval.ms: warning: has no effect here: MirrorMaker 2 "
      "reads it for a target cluster only; write TARGET.offset.flush.interval.ms" },
    { "A->B.offset.flush.interval.ms = 5",
      "f:4: A->B.offset.flush.interval.ms: warning: has no effect here: an option of the worker, "
      "which MirrorMaker 2 "
      "reads for a target only; write B.offset.flush.interval.ms" },
    { "B.offset.storage.replication.factor = 3\noffset.storage.replication.factor = 1",
      "f:4: B.offset.storage.replication.factor: warning: has no effect: offset.storage.replication.factor without an "
      "alias counts for every cluster, as in MirrorMaker 2" },
    { "B.offset.storage.replication.factor = 3", "" },
    { "consumer.fetch.max.bytes = 1",
      "f:4: consumer.fetch.max.bytes: warning: has no effect here: MirrorMaker 2 does "
      "not read it without a cluster either; write CLUSTER.consumer.fetch.max.bytes" },
    { "A.fetch.max.bytes = 1",
      "f:4: A.fetch.max.bytes: warning: has no effect here: no client reads it there; write "
      "A.consumer.fetch.max.bytes" },
    { "A.topics = x",
      "f:4: A.topics: warning: has no effect here: an option of flows, not of clusters; write "
      "SOURCE->TARGET.topics" },
    { "A->B.target.consumer.client.id = x",
      "f:4: A->B.target.consumer.client.id: warning: has no effect here: topics of the mirror's own are read by its admin "
      "client; what that client needs stands behind target.admin" },
    { "A->B.heliostat.workers = 1",
      "f:4: A->B.heliostat.workers: warning: has no effect here: an option of the whole "
      "process; write heliostat.workers" },
    { "A->B.ssl.protocol = x",
      "f:4: A->B.ssl.protocol: warning: has no effect here: clients do not read it there" },
    /* keys without effect */
    { "tasks.max = 5", "f:4: tasks.max: warning: has no effect: partitions are spread over "
                       "heliostat.workers threads" },
    { "B.producer.linger.ms = 5",
      "f:4: B.producer.linger.ms: warning: has no effect: a batch is sent on" },
    { "B.config.storage.topic = x",
      "f:4: B.config.storage.topic: warning: has no effect: no Connect worker runs" },
    { "dedicated.mode.enable.internal.rest = true",
      "f:4: dedicated.mode.enable.internal.rest: warning: has no effect" },
    { "A->B.topic.creation.default.partitions = 1",
      "f:4: A->B.topic.creation.default.partitions: warning: has no effect" },
    { "ssl.truststore.password = canary",
      "f:4: ssl.truststore.password: warning: has no effect: it counts only with" },
    { "B.exactly.once.source.support = enabled", "" },
    { "B.exactly.once.source.support = enabled\nheliostat.delivery = at-least-once",
      "f:5: heliostat.delivery: warning: this is weaker than exactly.once.source.support = enabled" },
    /* values */
    { "A->B.replication.factor = canarx", "f:4: A->B.replication.factor: \"canarx\" is not a whole "
                                          "number; write a whole number from -1 to 32767" },
    { "refresh.topics.interval.seconds = 0",
      "f:4: refresh.topics.interval.seconds: 0 is no period; write" },
    { "emit.heartbeats.interval.seconds = 0",
      "f:4: emit.heartbeats.interval.seconds: warning: 0 would never rest" },
    { "A->B.enabled = yes",
      "f:4: A->B.enabled: \"yes\" is neither true nor false; write one of the two" },
    { "offset-syncs.topic.location = Source",
      "f:4: offset-syncs.topic.location: \"Source\" is not one of the known words" },
    { "topics = a,, b", "f:4: topics: warning: an empty element was dropped; remove the comma" },
    { "topics = a, b, a",
      "f:4: topics: warning: \"a\" stands in the list twice and counts once; remove one" },
    { "topics = a\ntopics = b",
      "f:5: topics: warning: given before in line 4, and the last one counts" },
    { "topics.blacklist = a",
      "f:4: topics.blacklist: warning: an older name, read where the new one is absent; write "
      "topics.exclude" },
    { "A.consumer.auto.offset.reset = first",
      "f:4: A.consumer.auto.offset.reset: the value is not known; write" },
    /* patterns */
    { "A->B.topics = st-a{1,2}, st-b", "f:4: A->B.topics: element `st-a{1`: " },
    { "groups = [", "f:4: groups: element `[`: " },
    { "config.properties.exclude = (", "f:4: config.properties.exclude: element `(`: " },
    /* classes */
    { "replication.policy.class = com.x.Mine",
      "f:4: replication.policy.class: the Java class \"com.x.Mine\" cannot run "
      "here; of these classes" },
    { "value.converter = org.apache.kafka.connect.json.JsonConverter",
      "f:4: value.converter: the Java class" },
    { "replication.policy.class = com.x.PrefixlessReplicationPolicy",
      "one that keeps all names is IdentityReplicationPolicy, names by other rules are made with heliostat.topic.map" },
    { "topic.filter.class = com.x.Mine", "what it accepts can be said with topics and topics.exclude" },
    { "group.filter.class = com.x.Mine", "what it accepts can be said with groups and groups.exclude" },
    { "config.property.filter.class = com.x.Mine", "what it leaves out can be said with config.properties.exclude" },
    { "replication.policy.class = io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy", "" },
    { "value.converter = io.confluent.connect.replicator.util.ByteArrayConverter", "" },
    { "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter", "" },
    /* transforms */
    { "A->B.enabled = true\ntransforms = x",
      "f:5: transforms: missing: transforms names \"x\"; write A->B.transforms.x.type" },
    { "A->B.enabled = true\ntransforms = x\nA->B.transforms.x.type = com.x.Mine",
      "f:6: A->B.transforms.x.type: the transform \"com.x.Mine\" cannot run here" },
    { "A->B.enabled = true\nA->B.transforms = x\ntransforms.x.type = com.x.Mine",
      "f:6: transforms.x.type: warning: has no effect here: MirrorMaker 2 reads it for a single flow only" },
    { "A->B.transforms.y.type = com.x.Mine",
      "f:4: A->B.transforms.y.type: warning: has no effect: its name does not stand in transforms" },
    { "A->B.enabled = true\nA->B.transforms = x\nA->B.transforms.x.type = "
      "org.apache.kafka.connect.transforms.Filter\nA->B.transforms.x.predicate = p\nA->B.predicates = p\n"
      "A->B.predicates.p.type = org.apache.kafka.connect.transforms.predicates.RecordIsTombstone", "" },
    /* names by rules */
    { "heliostat.topic.map = orders-(.*) -> $1", "" },
    { "A->B.heliostat.topic.map = orders", "f:4: A->B.heliostat.topic.map: rule `orders` is not PATTERN -> NAME" },
    { "heliostat.topic.map = (a) -> $2", "f:4: heliostat.topic.map: rule `(a) -> $2`: in the name, it names a group" },
    { "A->B.enabled = true\nB->A.enabled = true\nA->B.heliostat.topic.map = a -> b",
      "f:6: A->B.heliostat.topic.map: warning: a copy that a rule has named does not tell where it is from" },
    /* what Connect's own clients get */
    { "A->B.consumer.override.fetch.min.bytes = 1",
      "f:4: A->B.consumer.override.fetch.min.bytes: warning: has no effect here: Connect gives it to its own client for "
      "positions, not to what mirrors; write it as source.consumer.fetch.min.bytes behind the flow" },
    { "A->B.admin.override.retries = 1", "f:4: A->B.admin.override.retries: warning: has no effect here: Connect" },
    { "B.producer.override.acks = all",
      "f:4: B.producer.override.acks: warning: has no effect here: MirrorMaker 2 reads it for a single flow only; write "
      "SOURCE->TARGET.producer.override.acks" },
    { "source.consumer.fetch.min.bytes = 1",
      "f:4: source.consumer.fetch.min.bytes: warning: has no effect here: MirrorMaker 2 reads it for a single flow only" },
    /* addresses */
    { "B.bootstrap.servers = b",
      "f:4: B.bootstrap.servers: \"b\" is not host:port; write host:port, or" },
    { "B.bootstrap.servers = b:0", "f:4: B.bootstrap.servers: \"b:0\" is not host:port" },
    { "B.bootstrap.servers = ...", "f:4: B.bootstrap.servers: \"...\" is not host:port" },
    { "B.bootstrap.servers =",
      "f: B.bootstrap.servers: missing; write B.bootstrap.servers = host:port" },
    { "A->B.enabled = true\nB.bootstrap.servers = A:1\nA.bootstrap.servers = a:1",
      "f:5: B.bootstrap.servers: source and target of the flow A->B have the same addresses" },
    /* security */
    { "security.protocol = abc",
      "f:4: security.protocol: \"abc\" is not one of the known words; write one of: "
      "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL" },
    { "B.security.protocol = sasl_ssl",
      "f:4: B.security.protocol: sasl_ssl cannot be spoken yet: TLS and SASL come "
      "with a later release; only PLAINTEXT listeners can be reached" },
    { "security.protocol = plaintext", "" },
    /* delivery */
    { "B.producer.acks = 1",
      "f:4: B.producer.acks: warning: exactly-once delivery needs all, and all is used" },
    { "B.producer.acks = 1\nheliostat.delivery = at-least-once", "" },
    { "B.producer.max.in.flight.requests.per.connection = 6",
      "f:4: B.producer.max.in.flight.requests.per.connection: warning: more than 5" },
    /* names */
    { "replication.policy.separator = /",
      "f:4: replication.policy.separator: warning: Kafka takes only letters" },
    { "A->B.enabled=true\nB->A.enabled=true\nreplication.policy.class=IdentityReplicationPolicy",
      "f:6: replication.policy.class: warning: flows in both directions keep the names of topics" },
    /* syntax */
    { "x = \\u12", "f:4: (syntax): a \\u must be followed by four hexadecimal digits" },
    { "k\\u001b = 1", "f:4: k?: warning: no such option" },
};

TEST(sentences)
{
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[1000];
        struct config *c;
        const char *got;

        snprintf(text, sizeof(text), TWO "%s\n", cases[i].text);
        c = case_parse(text, NULL);
        got = case_problems(c, &out);
        if (*cases[i].want ? !strstr(got, cases[i].want) : *got) {
            print_error("case %zu: %s\n  want: %s\n  got: %s\n", i, cases[i].text, cases[i].want,
                        got);
            CHECK(false);
        }
        CHECK(!strstr(got, "canary"));
        config_free(&c);
    }
    buf_fini(&out);
}

/* Every key of Connect's distributed worker and of its source connectors, wherever a file for MirrorMaker 2 may have it,
 * is honoured, or it is said why it is not: none is unknown. */
TEST(connect_keys)
{
    static const char worker[] =
        "bootstrap.servers client.dns.lookup client.id group.id key.converter value.converter header.converter "
        "key.converter.schemas.enable header.converter.plugin.version internal.key.converter internal.value.converter "
        "internal.key.converter.schemas.enable task.shutdown.graceful.timeout.ms offset.flush.interval.ms "
        "offset.flush.timeout.ms listeners rest.advertised.host.name rest.advertised.port rest.advertised.listener rest.port "
        "rest.host.name access.control.allow.origin access.control.allow.methods admin.listeners plugin.path plugin.discovery "
        "metric.reporters metrics.num.samples metrics.sample.window.ms metrics.recording.level auto.include.jmx.reporter "
        "metrics.context.connect.group.id config.providers config.providers.file.class rest.extension.classes ssl.client.auth "
        "connector.client.config.override.policy topic.creation.enable topic.tracking.enable response.http.headers.config "
        "session.timeout.ms heartbeat.interval.ms rebalance.timeout.ms metadata.max.age.ms send.buffer.bytes "
        "receive.buffer.bytes reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms "
        "request.timeout.ms connections.max.idle.ms socket.connection.setup.timeout.ms "
        "socket.connection.setup.timeout.max.ms security.protocol worker.sync.timeout.ms worker.unsync.backoff.ms "
        "offset.storage.topic offset.storage.partitions offset.storage.replication.factor offset.storage.segment.bytes "
        "config.storage.topic config.storage.replication.factor status.storage.topic status.storage.partitions "
        "status.storage.replication.factor connect.protocol scheduled.rebalance.max.delay.ms "
        "inter.worker.key.generation.algorithm inter.worker.key.size inter.worker.key.ttl.ms "
        "inter.worker.signature.algorithm inter.worker.verification.algorithms exactly.once.source.support "
        "metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms ssl.truststore.location sasl.mechanism "
        "producer.acks consumer.isolation.level admin.retries tasks.max";
    static const char connector[] =
        "name connector.class connector.plugin.version tasks.max tasks.max.enforce key.converter value.converter "
        "header.converter key.converter.plugin.version transforms predicates config.action.reload errors.retry.timeout "
        "errors.retry.delay.max.ms errors.tolerance errors.log.enable errors.log.include.messages "
        "errors.deadletterqueue.topic.name topic.creation.groups topic.creation.default.partitions exactly.once.support "
        "transaction.boundary transaction.boundary.interval.ms offsets.storage.topic producer.override.acks "
        "consumer.override.isolation.level admin.override.retries source.consumer.fetch.min.bytes source.producer.acks "
        "source.admin.retries target.consumer.fetch.min.bytes target.producer.acks target.admin.retries "
        "source.cluster.bootstrap.servers target.cluster.bootstrap.servers source.cluster.alias target.cluster.alias "
        "metric.names.formats forwarding.admin.class";
    static const struct {
        const char *keys, *prefix;
    } forms[] = { { worker, "B." }, { worker, "" }, { connector, "A->B." } };
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct str rest = str_c(forms[i].keys), key;

        while (str_next(&rest, ' ', &key)) {
            bool only_with_alias = !*forms[i].prefix && (str_starts(key, STR("internal.")) || str_starts(key, STR("key.conv")));
            char text[1000];
            struct config *c;

            snprintf(text, sizeof(text), TWO "%s%.*s = 1\n", forms[i].prefix, STR_ARG(key));
            c = case_parse(text, NULL);
            if (!only_with_alias && strstr(case_problems(c, &out), "no such option")) {
                print_error("%s%.*s: %s\n", forms[i].prefix, STR_ARG(key), case_problems(c, &out));
                CHECK(false);
            }
            config_free(&c);
        }
    }
    buf_fini(&out);
}

TEST(whole_file)
{
    static const struct {
        const char *text, *want;
    } whole[] = {
        { "", "f: clusters: missing; write clusters = A, B and A.bootstrap.servers, "
              "B.bootstrap.servers\n" },
        { "clusters = A",
          "f: clusters: there is no flow to run; enable one with A->B.enabled = true\n" },
        { "clusters = A, B\nA.bootstrap.servers = a:1\nA->B.enabled = true\n",
          "f: B.bootstrap.servers: missing; write B.bootstrap.servers = host:port\n" },
        { "clusters = A, B\r\nbootstrap.servers : a:1\r\nA->B.enabled=true\r\n",
          "f:2: bootstrap.servers: source and target of the flow A->B have the same addresses; a "
          "cluster cannot "
          "be mirrored into itself\n" },
        { "\xef\xbb\xbf" TWO "A->B.enabled = true\n", "" },
        { "! note\n" TWO "A->B.enabled : true\n", "" },
    };
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(whole); i++) {
        struct config *c = case_parse(whole[i].text, NULL);

        check_str(str_c(case_problems(c, &out)), str_c(whole[i].want), __FILE__, (int)i);
        config_free(&c);
    }
    buf_fini(&out);
}

/* Examples of the page about geo-replication of Apache Kafka, with their comments and slips. */
TEST(kafka_pages)
{
    static const char *const pages[] = {
        "clusters = us-west, us-east   # defines cluster aliases\n"
        "us-west.bootstrap.servers = broker3-west:9092\nus-east.bootstrap.servers = "
        "broker5-east:9092\n"
        "topics = .*   # all topics\n"
        "us-west->us-east.enabled = true\n"
        "us-west->us.east.topics = foo.*, bar.*  # override the default above\n",
        "clusters = us-west, us-east\n"
        "us-west.bootstrap.servers = a:9092\nus-east.bootstrap.servers = b:9092\n"
        "tasks.max = 5\nus-west.offset.storage.topic = my-mirrormaker-offsets\n"
        "us-west.consumer.isolation.level = read_committed\nus-west.admin.bootstrap.servers = "
        "c:9092\n"
        "us-east.producer.compression.type = gzip\nus-east.producer.buffer.memory = 32768\n"
        "us-east.admin.bootstrap.servers = d:9092\nus-east.exactly.once.source.support = enabled\n"
        "dedicated.mode.enable.internal.rest = true\nlisteners = http://localhost:8080\n"
        "groups = consumer-group1, consumer-group2\nus-west->us-east.enabled = true\n"
        "us-west->us-east.topics = foo.*\nus-west->us-east.groups = bar.*\n"
        "us-west->us-east.emit.heartbeats = false\nus-west->us-east.replication.policy.separator = "
        "_\n",
        "clusters = A, B\nA.bootstrap.servers = A_host1:9092, A_host2:9092, A_host3:9092\n"
        "B.bootstrap.servers = B_host1:9092, B_host2:9092, B_host3:9092\nA->B.enabled = "
        "true\nA->B.topics = .*\n"
        "B->A.enabled = true\nB->A.topics = "
        ".*\nreplication.factor=1\ncheckpoints.topic.replication.factor=1\n"
        "heartbeats.topic.replication.factor=1\noffset-syncs.topic.replication.factor=1\n"
        "offset.storage.replication.factor=1\nstatus.storage.replication.factor=1\n"
        "config.storage.replication.factor=1\n",
    };
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(pages); i++) {
        struct config *c = case_parse(pages[i], NULL);

        if (c->error_count)
            print_error("%s", case_problems(c, &out));
        CHECK_EQ(c->error_count, 0);
        CHECK(c->flows[0].enabled);
        config_free(&c);
    }
    buf_fini(&out);
}

TEST(limits)
{
    struct buf text;
    struct config *c;

    buf_init(&text, 4 * MiB);
    buf_put_str(&text, STR("clusters = x"));
    for (int i = 0; i < 200; i++)
        buf_fmt(&text, ", c%d", i);
    c = case_parse(buf_cstr(&text), NULL);
    CHECK_EQ(c->error_count, 1);
    config_free(&c);
    /* As many clusters and problems as there may be; one long list shared by many flows. */
    buf_clear(&text);
    buf_put_str(&text,
                STR("bootstrap.servers = x:1\nemit.heartbeats.enabled = false\nclusters = x"));
    for (int i = 1; i < CONFIG_CLUSTERS_MAX; i++)
        buf_fmt(&text, ", c%d", i);
    buf_put_str(&text, STR("\ntopics = "));
    for (int i = 0; i < 9000; i++)
        buf_fmt(&text, "topic-%d,", i);
    for (int i = 1; i < CONFIG_CLUSTERS_MAX; i++)
        buf_fmt(&text, "\nx->c%d.emit.heartbeats.enabled = true", i);
    for (int i = 0; i < CONFIG_PROBLEMS_MAX + 10; i++)
        buf_fmt(&text, "\nunknown.%d = 1", i);
    c = case_parse(buf_cstr(&text), NULL);
    CHECK_EQ(c->flow_count, CONFIG_CLUSTERS_MAX - 1);
    CHECK_EQ(c->flows[90].topics.n, 9000);
    CHECK_EQ(c->problem_count, CONFIG_PROBLEMS_MAX);
    config_free(&c);
    buf_fini(&text);
}

TEST(unreadable)
{
    struct config_args args = { .path = STR("/nonexistent/mm2.properties") };
    struct config *c;
    struct buf out;

    buf_init(&out, MiB);
    CHECK_EQ(config_load(&args, &c), E_INVALID);
    check_str(str_c(case_problems(c, &out)),
              STR("/nonexistent/mm2.properties: (file): No such file or directory; give a readable "
                  "file\n"),
              "", 0);
    config_free(&c);
    args.path = STR("/");
    CHECK_EQ(config_load(&args, &c), E_INVALID);
    config_free(&c);
    buf_fini(&out);
}

TESTS(RUN(sentences), RUN(connect_keys), RUN(whole_file), RUN(kafka_pages), RUN(limits), RUN(unreadable))
