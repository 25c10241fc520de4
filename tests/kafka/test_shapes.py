"""Topics with holes: compacted, transactional and stamped by the broker. The copy equals what a consumer sees."""
import time

import pytest
from confluent_kafka import Producer

from lab import compare, feed, java
from lab.heliostat import Heliostat

KEEP_ALL = {"config.properties.exclude": r"cleanup\\.policy, delete\\.retention\\.ms, segment\\.ms, "
                                         r"min\\.cleanable\\.dirty\\.ratio, min\\.compaction\\.lag\\.ms"}


def compacted(bootstrap, topic, tombstones_ms):
    """A topic that compaction has gone through and that nothing changes any more."""
    feed.create_topic(bootstrap, topic, 1, {
        "cleanup.policy": "compact", "segment.ms": 500, "min.cleanable.dirty.ratio": 0.001,
        "delete.retention.ms": tombstones_ms, "max.compaction.lag.ms": 1000})
    for codec in ("none", "lz4", "zstd", "gzip", "snappy"):
        rows = [(b"key%d" % (i % 40), None if i % 7 == 0 else b"%s value %d" % (codec.encode(), i)) for i in range(150)]
        rows += [(b"only-%s-%d" % (codec.encode(), i), b"stays") for i in range(10)]
        feed.write(bootstrap, topic, rows, codec=codec, options={"linger.ms": 20})
    written = 5 * 160
    end, seen = time.monotonic() + 60, written
    while time.monotonic() < end:  # every write rolls the segment, so that the cleaner may take the one before
        time.sleep(1)
        feed.write(bootstrap, topic, [(b"roll", b"%f" % time.monotonic())])
        now = len(compare.read(bootstrap, topic))
        if now == seen and now < written / 2:
            break
        seen = now
    feed.set_config(bootstrap, topic, min_compaction_lag_ms=10**12, max_compaction_lag_ms=10**13)
    time.sleep(1)
    assert seen < written / 2, "the cleaner has left %d of %d records" % (seen, written)


@pytest.mark.long
@pytest.mark.parametrize("tombstones_ms", [100, 86400000], ids=["tombstones-gone", "tombstones-kept"])
def test_compacted(flow, tombstones_ms):
    compacted(flow.source, flow.name, tombstones_ms)
    before = compare.digests(flow.source, flow.name)
    with Heliostat({**flow.config(), **KEEP_ALL}) as h:
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert before == compare.digests(flow.source, flow.name), "the source changed meanwhile"
        assert result.equal and result.records > 50, str(result)
        print("\n%s; decoded %d" % (result, sum(p["decoded_batches"] for p in h.partitions(flow.name))))
        feed.write(flow.source, flow.name, [(b"after", b"compaction")])
        h.wait_copied(flow.source, [flow.name])
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal


def transactional(bootstrap, topic, partitions):
    """Committed, aborted and interleaved transactions with plain records between them; all are ended."""
    feed.create_topic(bootstrap, topic, partitions)
    producers = []
    for i in range(3):
        p = Producer({"bootstrap.servers": bootstrap, "transactional.id": "%s-%d" % (topic, i), "log_level": 0,
                      "compression.type": ("none", "lz4", "zstd")[i]})
        p.init_transactions(30)
        producers.append(p)
    for turn in range(8):
        for i, p in enumerate(producers):
            p.begin_transaction()
            for n in range(20):
                feed.produce(p, topic, n % partitions, b"t%d" % i, b"turn %d record %d" % (turn, n))
            p.flush(30)
        feed.write(bootstrap, topic, [(b"plain", b"turn %d" % turn)], turn % partitions)
        for i, p in enumerate(producers[::-1] if turn % 2 else producers):
            for n in range(5):
                feed.produce(p, topic, n % partitions, b"t%d" % i, b"turn %d late %d" % (turn, n))
            p.flush(30)  # an abort forgets what was not sent
            (p.abort_transaction if (turn + i) % 3 == 0 else p.commit_transaction)(30)
    feed.write(bootstrap, topic, [(b"plain", b"end")], 0)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions(flow, isolation):
    transactional(flow.source, flow.name, 2)
    with Heliostat({**flow.config(), flow.a + ".consumer.isolation.level": isolation}) as h:
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote(), isolation,
                                target_isolation="read_committed")
        print("\n" + str(result))
        assert result.equal, str(result)
        assert result.records < 609 if isolation == "read_committed" else result.records == 609


def test_an_open_transaction_holds_back_read_committed(flow):
    feed.create_topic(flow.source, flow.name, 1)
    p = Producer({"bootstrap.servers": flow.source, "transactional.id": flow.name, "log_level": 0})
    p.init_transactions(30)
    feed.write(flow.source, flow.name, [(None, b"before")])
    with Heliostat({**flow.config(), flow.a + ".consumer.isolation.level": "read_committed"}) as h:
        p.begin_transaction()
        feed.produce(p, flow.name, 0, None, b"inside")
        p.flush(10)
        feed.write(flow.source, flow.name, [(None, b"after")])
        h.wait(lambda h: [m.value() for m in compare.read(flow.target, flow.remote())] == [b"before"],
               what="the record before the transaction")
        time.sleep(1)
        assert [m.value() for m in compare.read(flow.target, flow.remote())] == [b"before"]
        p.commit_transaction(30)
        h.wait(lambda h: len(compare.read(flow.target, flow.remote())) == 3, what="the rest")
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote(), "read_committed").equal


@pytest.mark.parametrize("target_type", ["CreateTime", "LogAppendTime"])
def test_log_append_time(flow, target_type):
    """The copy carries the source broker's time, unless the target's own topic says that it stamps."""
    feed.create_topic(flow.source, flow.name, 2, {"message.timestamp.type": "LogAppendTime"})
    if target_type == "LogAppendTime":
        feed.create_topic(flow.target, flow.remote(), 2, {"message.timestamp.type": target_type})
    feed.mixed(flow.source, flow.name, 2000, 2)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        if target_type == "CreateTime":
            result = compare.topics(flow.source, flow.name, flow.target, flow.remote(), with_type=False)
            assert result.equal and result.records == 2000, str(result)
        else:
            left, right = (compare.read(b, t) for b, t in ((flow.source, flow.name), (flow.target, flow.remote())))
            assert len(left) == len(right) == 2000
            for p in (0, 1):
                assert [m.value() for m in left if m.partition() == p] == [m.value() for m in right if m.partition() == p]


@pytest.mark.java
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_what_a_java_consumer_sees(flow, isolation):
    """The same question put to Java's own consumer on both sides, transactions and compaction in one topic."""
    transactional(flow.source, flow.name, 2)
    with Heliostat({**flow.config(), flow.a + ".consumer.isolation.level": isolation}) as h:
        h.wait_copied(flow.source, [flow.name])
        seen = [java.consume(c, topic, isolation) for c, topic in
                zip(flow.clusters, (flow.name, flow.remote()))]
        assert seen[0] == seen[1] and len(seen[0]) > 300
