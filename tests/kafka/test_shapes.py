"""Topics with holes: compacted, transactional and stamped by the broker. The copy equals what Java's consumer sees."""
import re
import time

import pytest
from confluent_kafka import Producer

from conftest import soak
from lab import compare, feed, java
from lab.heliostat import Heliostat

KEEP_ALL = {"config.properties.exclude": r"cleanup\\.policy, delete\\.retention\\.ms, segment\\.ms, "
                                         r"min\\.cleanable\\.dirty\\.ratio, min\\.compaction\\.lag\\.ms"}


def same_for_java(flow, isolation="read_uncommitted"):
    """Java's consumer sees the same in the copy, at either isolation level, as at ISOLATION in the source: partition, timestamp
    and its type, key, value, headers in their order. Returns how many records."""
    source, *copies = java.consume((flow.source, flow.name, isolation), (flow.target, flow.remote(), "read_committed"),
                                   (flow.target, flow.remote(), "read_uncommitted"))
    assert copies == [source, source]
    return len(source)


def compacted(bootstrap, topic, tombstones_ms, codecs=("none", "lz4", "zstd", "gzip", "snappy"), config=None, options=None):
    """A topic that compaction has gone through and that nothing changes any more."""
    feed.create_topic(bootstrap, topic, 1, {
        "cleanup.policy": "compact", "segment.ms": 500, "min.cleanable.dirty.ratio": 0.001,
        "delete.retention.ms": tombstones_ms, "max.compaction.lag.ms": 1000, **(config or {})})
    for codec in codecs:
        rows = [(b"key%d" % (i % 40), None if i % 7 == 0 else b"%s value %d" % (codec.encode(), i)) for i in range(150)]
        rows += [(b"only-%s-%d" % (codec.encode(), i), b"stays") for i in range(10)]
        feed.write(bootstrap, topic, rows, codec=codec, options={"linger.ms": 20, **(options or {})})
    written = len(codecs) * 160
    end, seen = time.monotonic() + 60, written
    while time.monotonic() < end:  # every write rolls the segment, so that the cleaner may take the one before
        time.sleep(1)
        feed.write(bootstrap, topic, [(b"roll", b"%f" % time.monotonic())], options=options)
        now = len(compare.read(bootstrap, topic))
        if now == seen and now < written / 2:
            break
        seen = now
    feed.set_config(bootstrap, topic, min_compaction_lag_ms=10**12, max_compaction_lag_ms=10**13)
    time.sleep(1)
    assert seen < written / 2, "the cleaner has left %d of %d records" % (seen, written)


def delete_horizons(cluster, topic):
    """When the tombstones of a topic may go, batch by batch, in ms since 1970."""
    return [int(x) for x in re.findall(r"deleteHorizonMs: OptionalLong\[(\d+)\]", java.dump_log(cluster, topic))]


@pytest.mark.fc("FC-006", "FC-007")
@pytest.mark.long
@pytest.mark.parametrize("tombstones_ms", [soak(100), 20000, 86400000], ids=["tombstones-gone", "horizon-expired", "tombstones-kept"])
def test_compacted(flow, tombstones_ms):
    compacted(flow.source, flow.name, tombstones_ms)
    horizons = delete_horizons(flow.clusters[0], flow.name)
    assert horizons
    if tombstones_ms == 20000:  # past, but no cleaner came by any more
        time.sleep(max(0, max(horizons) / 1000 - time.time()))
    before = compare.digests(flow.source, flow.name)
    with Heliostat({**flow.config(), **KEEP_ALL}) as h:
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert before == compare.digests(flow.source, flow.name), "the source changed meanwhile"
        assert result.equal and same_for_java(flow) == result.records > 50, str(result)
        print("\n%s; decoded %d" % (result, sum(p["decoded_batches"] for p in h.partitions(flow.name))))
        feed.write(flow.source, flow.name, [(b"after", b"compaction")])
        h.wait_copied(flow.source, [flow.name])
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal


def transactional(bootstrap, topic, partitions, create=True):
    """Committed, aborted and interleaved transactions with plain records between them; all are ended."""
    if create:
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


@pytest.mark.fc("FC-010")
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions(flow, isolation):
    transactional(flow.source, flow.name, 2)
    with Heliostat({**flow.config(), flow.a + ".consumer.isolation.level": isolation}) as h:
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote(), isolation,
                                target_isolation="read_committed")
        print("\n" + str(result))
        assert result.equal, str(result)
        assert 300 < result.records < 609 if isolation == "read_committed" else result.records == 609
        assert same_for_java(flow, isolation) == result.records


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
        assert same_for_java(flow, "read_committed") == 3


@pytest.mark.parametrize("target_type", ["CreateTime", "LogAppendTime"])
def test_log_append_time(flow, target_type):
    """The copy carries the source broker's time, unless the target's own topic says that it stamps."""
    feed.create_topic(flow.source, flow.name, 2, {"message.timestamp.type": "LogAppendTime"})
    if target_type == "LogAppendTime":
        feed.create_topic(flow.target, flow.remote(), 2, {"message.timestamp.type": target_type})
    feed.mixed(flow.source, flow.name, 2000, 2)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        source, copy = java.consume((flow.source, flow.name, "read_uncommitted"), (flow.target, flow.remote(), "read_uncommitted"))
        assert len(source) == 2000 and {r[1] for r in source} == {"LogAppendTime"} and {r[1] for r in copy} == {target_type}
        if target_type == "CreateTime":
            result = compare.topics(flow.source, flow.name, flow.target, flow.remote(), with_type=False)
            assert result.equal and result.records == 2000, str(result)
            assert [(p, *rest) for p, _, *rest in source] == [(p, *rest) for p, _, *rest in copy]
        else:
            assert [(p, *rest) for p, _, _, *rest in source] == [(p, *rest) for p, _, _, *rest in copy]
