/* test_options.c -- the option tables are whole: every key of MirrorMaker 2 and Kafka's clients is there.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "daemon/config.h"

#include "unit/test.h"

static const struct opt_table *const tables[] = { &config_opts, &flow_opts, &client_opts };

TEST(rows)
{
    for (size_t t = 0; t < COUNT(tables); t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            const struct opt_row *row = &tables[t]->rows[i];
            struct str doc = str_c(row->doc);

            CHECK(row->where != 0);
            CHECK(doc.n > 5);
            if (row->value) {
                CHECK_EQ(doc.p[doc.n - 1], '.');
                CHECK(row->secret == OPT_SECRET || !opt_key_is_secret(str_c(row->key)));
            }
            for (size_t j = 0; j < i; j++)
                if (strcmp(row->key, tables[t]->rows[j].key) == 0)
                    CHECK(!(row->where & tables[t]->rows[j].where));
        }
    }
}

/* The enums of the headers are in the order of the words. */
TEST(words)
{
    static const struct {
        const struct opt_table *t;
        const char *key, *word;
        int want;
    } cases[] = {
        { &client_opts, "client.dns.lookup", "use_all_dns_ips", CLIENT_DNS_ALL_IPS },
        { &client_opts, "client.dns.lookup", "resolve_canonical_bootstrap_servers_only",
          CLIENT_DNS_CANONICAL },
        { &client_opts, "metadata.recovery.strategy", "none", CLIENT_RECOVERY_NONE },
        { &client_opts, "metadata.recovery.strategy", "REBOOTSTRAP", CLIENT_RECOVERY_REBOOTSTRAP },
        { &client_opts, "security.protocol", "plaintext", CLIENT_PLAINTEXT },
        { &client_opts, "security.protocol", "SSL", CLIENT_SSL },
        { &client_opts, "security.protocol", "SASL_PLAINTEXT", CLIENT_SASL_PLAINTEXT },
        { &client_opts, "security.protocol", "SASL_SSL", CLIENT_SASL_SSL },
        { &client_opts, "isolation.level", "read_uncommitted", CLIENT_READ_UNCOMMITTED },
        { &client_opts, "isolation.level", "read_committed", CLIENT_READ_COMMITTED },
        { &client_opts, "acks", "0", CLIENT_ACKS_NONE },
        { &client_opts, "acks", "1", CLIENT_ACKS_LEADER },
        { &client_opts, "acks", "all", CLIENT_ACKS_ALL },
        { &client_opts, "acks", "-1", CLIENT_ACKS_ALL },
        { &flow_opts, "heliostat.delivery", "exactly-once", FLOW_EXACTLY_ONCE },
        { &flow_opts, "heliostat.delivery", "at-least-once", FLOW_AT_LEAST_ONCE },
        { &flow_opts, "offset-syncs.topic.location", "source", FLOW_SYNCS_AT_SOURCE },
        { &flow_opts, "offset-syncs.topic.location", "target", FLOW_SYNCS_AT_TARGET },
        { &flow_opts, "exactly.once.source.support", "Preparing", FLOW_EOS_PREPARING },
        { &flow_opts, "exactly.once.source.support", "enabled", FLOW_EOS_ENABLED },
        { &flow_opts, "replication.policy.class",
          "org.apache.kafka.connect.mirror.DefaultReplicationPolicy", FLOW_POLICY_DEFAULT },
        { &flow_opts, "replication.policy.class",
          "org.apache.kafka.connect.mirror.IdentityReplicationPolicy", FLOW_POLICY_IDENTITY },
        { &flow_opts, "replication.policy.class",
          "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy", FLOW_POLICY_IDENTITY },
    };
    struct arena a;

    arena_init(&a, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct opt_row row = *opt_find(cases[i].t, str_c(cases[i].key), ~0u);
        struct str why;
        int got = -1;

        row.at = 0;
        CHECK_EQ(opt_parse(&row, str_c(cases[i].word), &got, &a, &why), E_OK);
        CHECK_EQ(got, cases[i].want);
    }
    arena_fini(&a);
}

/* Defaults that MirrorMaker 2 4.3.0 has, as its option definitions print them. */
TEST(defaults)
{
    static const struct {
        const char *key, *value;
    } cases[] = {
        { "topics", ".*" },
        { "topics.exclude", "mm2.*\\.internal, .*\\.replica, __.*" },
        { "groups", ".*" },
        { "groups.exclude", "console-consumer-.*, connect-.*, __.*" },
        { "replication.factor", "2" },
        { "replication.policy.separator", "." },
        { "refresh.topics.interval.seconds", "600" },
        { "sync.topic.configs.interval.seconds", "600" },
        { "sync.topic.acls.interval.seconds", "600" },
        { "refresh.groups.interval.seconds", "600" },
        { "emit.checkpoints.interval.seconds", "60" },
        { "sync.group.offsets.interval.seconds", "60" },
        { "emit.heartbeats.interval.seconds", "1" },
        { "sync.group.offsets.enabled", "false" },
        { "emit.heartbeats.enabled", "true" },
        { "emit.offset-syncs.enabled", "true" },
        { "offset-syncs.topic.replication.factor", "3" },
        { "offset-syncs.topic.location", "source" },
        { "checkpoints.topic.replication.factor", "3" },
        { "heartbeats.topic.replication.factor", "3" },
        { "offset.lag.max", "100" },
        { "offset.flush.interval.ms", "60000" },
        { "offset.flush.timeout.ms", "5000" },
        { "offset.storage.partitions", "25" },
        { "offset.storage.replication.factor", "3" },
        { "exactly.once.source.support", "disabled" },
        { "use.defaults.from", "target" },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(opt_find(&flow_opts, str_c(cases[i].key), ~0u)->value, cases[i].value);
}

/* Keys that a file written for MirrorMaker 2 may hold; each is honoured or has a reason. */
TEST(known)
{
    static const char flow_keys[] =
        "name connector.class tasks.max tasks.max.enforce enabled source.cluster.alias "
        "target.cluster.alias "
        "admin.timeout.ms replication.policy.class replication.policy.separator "
        "replication.policy.internal.topic.separator.enabled metric.reporters key.converter "
        "value.converter "
        "header.converter transforms predicates config.action.reload errors.retry.timeout "
        "errors.retry.delay.max.ms "
        "errors.tolerance errors.log.enable errors.log.include.messages exactly.once.support "
        "transaction.boundary "
        "transaction.boundary.interval.ms metric.names.formats connector.plugin.version "
        "key.converter.plugin.version "
        "offsets.storage.topic topic.creation.groups topic.creation.default.partitions "
        "topic.filter.class "
        "group.filter.class config.property.filter.class config.properties.exclude "
        "consumer.poll.timeout.ms "
        "refresh.topics.enabled sync.topic.configs.enabled sync.topic.acls.enabled "
        "heartbeats.replication.enabled "
        "refresh.groups.enabled emit.checkpoints.enabled forwarding.admin.class topics.blacklist "
        "groups.blacklist "
        "config.properties.blacklist add.source.alias.to.metrics use.incremental.alter.configs "
        "group.id "
        "offset.storage.topic config.storage.topic status.storage.topic "
        "config.storage.replication.factor "
        "status.storage.partitions session.timeout.ms heartbeat.interval.ms rebalance.timeout.ms "
        "worker.sync.timeout.ms worker.unsync.backoff.ms connect.protocol "
        "scheduled.rebalance.max.delay.ms "
        "inter.worker.key.generation.algorithm inter.worker.key.ttl.ms "
        "task.shutdown.graceful.timeout.ms "
        "topic.creation.enable topic.tracking.enable connector.client.config.override.policy "
        "plugin.path "
        "plugin.discovery";
    static const char client_keys[] =
        "bootstrap.servers client.id client.rack client.dns.lookup metadata.max.age.ms "
        "metadata.recovery.strategy "
        "metadata.recovery.rebootstrap.trigger.ms reconnect.backoff.ms reconnect.backoff.max.ms "
        "retry.backoff.ms "
        "retry.backoff.max.ms request.timeout.ms connections.max.idle.ms "
        "socket.connection.setup.timeout.ms "
        "socket.connection.setup.timeout.max.ms send.buffer.bytes receive.buffer.bytes "
        "fetch.min.bytes "
        "fetch.max.bytes fetch.max.wait.ms max.partition.fetch.bytes check.crcs isolation.level "
        "auto.offset.reset "
        "max.poll.records max.poll.interval.ms group.id enable.auto.commit acks compression.type "
        "linger.ms batch.size "
        "buffer.memory max.block.ms max.request.size delivery.timeout.ms "
        "max.in.flight.requests.per.connection "
        "enable.idempotence retries transactional.id transaction.timeout.ms security.protocol "
        "ssl.truststore.location "
        "sasl.jaas.config sasl.mechanism interceptor.classes default.api.timeout.ms";
    const struct {
        const char *keys;
        const struct opt_table *t;
    } cases[] = { { flow_keys, &flow_opts }, { client_keys, &client_opts } };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str rest = str_c(cases[i].keys);
        struct str key;

        while (str_next(&rest, ' ', &key))
            if (!opt_find(cases[i].t, key, ~0u)) {
                print_error("no row for %.*s\n", STR_ARG(key));
                CHECK(false);
            }
    }
}

TESTS(RUN(rows), RUN(words), RUN(defaults), RUN(known))
