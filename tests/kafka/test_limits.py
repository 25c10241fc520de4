"""Batches that the target does not take as they are: too large, too many and too small, with times out of its bounds."""
import os
import time

import pytest

from conftest import soak
from lab import compare, feed
from lab.heliostat import Heliostat

HOUR = 3600


def copied_equal(h, flow):
    h.wait_copied(flow.source, [flow.name])
    result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
    assert result.equal, str(result)
    return result.records


def values(bootstrap, topic, partition=0):
    return [m.value() for m in compare.read(bootstrap, topic) if m.partition() == partition]


ALONE = {"sync.topic.configs.enabled": "false"}  # else the copy would soon have the source's limits


def small_target(flow, partitions, **config):
    """Source and target topics, the target's takes 20,000 bytes."""
    feed.create_topic(flow.source, flow.name, partitions, {"max.message.bytes": 10_000_000, **config})
    feed.create_topic(flow.target, flow.remote(), partitions, {"max.message.bytes": 20_000})


def test_large_batches_are_split(flow):
    small_target(flow, 3)
    for partition, codec in enumerate(("none", "lz4", "zstd")):
        rows = [(b"%d" % i, os.urandom(700)) for i in range(900)]
        feed.write(flow.source, flow.name, rows, partition, codec, {"linger.ms": 50, "batch.size": 400_000})
    with Heliostat(flow.config(**ALONE)) as h:
        assert copied_equal(h, flow) == 2700
        assert sum(p["decoded_batches"] for p in h.partitions(flow.name)) > 60
        h.kill9()
        feed.write(flow.source, flow.name, [(b"k", os.urandom(900)) for i in range(300)], 0, "lz4",
                   {"linger.ms": 50, "batch.size": 400_000})
        h.restart()
        assert copied_equal(h, flow) == 3000
        assert h.status()["losses"] == []


def with_large_record(flow):
    """On partition 0 a record that the target does not take, among others; on partition 1 none."""
    small_target(flow, 2)
    rows = [(b"k", b"%d" % i) for i in range(300)]
    feed.write(flow.source, flow.name, rows[:150], 0)
    feed.write(flow.source, flow.name, [(b"large", os.urandom(50_000))] + rows[150:], 0, options={
        "linger.ms": 100, "message.max.bytes": 1_000_000, "batch.size": 900_000})
    feed.write(flow.source, flow.name, rows, 1)
    return rows


@pytest.mark.fc("FC-031")
def test_a_large_record_halts_its_partition_and_heals(flow):
    rows = with_large_record(flow)
    with Heliostat(flow.config(**ALONE)) as h:
        h.wait(lambda h: h.partitions(flow.name) and h.partitions(flow.name)[0]["state"] == "halted", what="the halt")
        text = h.partitions(flow.name)[0]["fault"]["text"]
        assert "source offset 150 " in text and "takes 20000;" in text and "50" in text, text
        h.wait(lambda h: len(values(flow.target, flow.remote(), 1)) == 300, what="the other partition")
        assert values(flow.target, flow.remote()) == [v for _, v in rows[:150]]
        feed.set_config(flow.target, flow.remote(), max_message_bytes=100_000)
        assert copied_equal(h, flow) == 601
        h.wait(lambda h: h.partitions(flow.name)[0]["fault"] is None, what="the end of the fault")


@pytest.mark.fc("FC-031")
def test_a_large_record_is_skipped(flow):
    """It is told as a loss; after kill -9 and with another limit nothing is repeated or missing."""
    rows = with_large_record(flow)
    with Heliostat(flow.config(**ALONE, **{"heliostat.oversize": "skip"})) as h:
        h.wait(lambda h: len(values(flow.target, flow.remote())) == 300, what="all but the large one")
        h.wait(lambda h: [(x["topic"], x["partition"], x["from_offset"], x["to_offset"]) for x in h.status()["losses"]] ==
               [(flow.name, 0, 150, 150)], what="the loss in the status")
        h.kill9()
        feed.set_config(flow.target, flow.remote(), max_message_bytes=100_000)
        h.restart()
        feed.write(flow.source, flow.name, [(b"k", b"after")], 0)
        h.wait_copied(flow.source, [flow.name])
        assert values(flow.target, flow.remote()) == [v for _, v in rows] + [b"after"]


@pytest.mark.fc("FC-031")
def test_a_large_record_raises_the_limit(flow):
    with_large_record(flow)
    with Heliostat(flow.config(**ALONE, **{"heliostat.oversize": "raise"})) as h:
        assert copied_equal(h, flow) == 601
        assert int(feed.describe(flow.target, [flow.remote()])[flow.remote()]["configs"]["max.message.bytes"]) >= 50_000


@pytest.mark.fc("FC-029")
@pytest.mark.parametrize("policy", ["halt", "log-append", "clamp"])
def test_times_out_of_bounds(flow, policy):
    """Brokers of 4.x take no record that is more than an hour ahead; the source was told to."""
    feed.create_topic(flow.source, flow.name, 1, {"message.timestamp.after.max.ms": 10**15})
    now = int(time.time() * 1000)
    ahead = now + 3 * HOUR * 1000
    with Heliostat(flow.config(**{"heliostat.timestamp": policy, "config.properties.exclude":
                                  r"message\\.timestamp\\.after\\.max\\.ms"})) as h:
        h.wait(lambda h: flow.remote() in feed.topics_of(flow.target), what="the copy")
        p = feed.Producer({"bootstrap.servers": flow.source, "linger.ms": 100})
        for i in range(90):
            p.produce(flow.name, b"%d" % i, partition=0, timestamp=ahead + i if i % 3 == 1 else now)
        p.flush(30)
        if policy == "halt":
            h.wait(lambda h: [p["state"] for p in h.partitions(flow.name)] == ["halted"], what="the halt")
            assert "heliostat.timestamp" in h.partitions(flow.name)[0]["fault"]["text"]
            feed.set_config(flow.target, flow.remote(), message_timestamp_after_max_ms=10**15)
            assert copied_equal(h, flow) == 90
            return
        h.wait_copied(flow.source, [flow.name])
        got = compare.read(flow.target, flow.remote())
        assert [m.value() for m in got] == [b"%d" % i for i in range(90)]
        late = [m.timestamp()[1] for m in got if int(m.value()) % 3 == 1]
        assert all(m.timestamp()[1] == now for m in got if int(m.value()) % 3 != 1)
        if policy == "clamp":
            assert all(now + HOUR * 500 < t <= now + HOUR * 1000 + 120_000 for t in late)
        else:
            assert all(now - 60_000 < t < now + 120_000 for t in late)
        assert h.partitions(flow.name)[0]["retimed_records"] == 30


@pytest.mark.parametrize("codec", ["none", soak("lz4")])
def test_small_batches_leave_as_large_ones(flow, codec):
    """A backlog of one-record batches, and kill -9 in the middle of it."""
    feed.create_topic(flow.source, flow.name, 2)
    one = {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight.requests.per.connection": 5}
    for partition in (0, 1):
        feed.write(flow.source, flow.name, [(b"k%d" % i, b"%0100d" % i) for i in range(4000)], partition, codec, one)
    with Heliostat(flow.config()) as h:
        assert copied_equal(h, flow) == 8000
        parts = h.partitions(flow.name)
        print("\n%s relayed %s coalesced" % tuple([p[k] for p in parts] for k in ("relayed_batches", "coalesced_batches")))
        assert all(p["decoded_batches"] == 0 for p in parts) and sum(p["coalesced_batches"] for p in parts) > 0
        h.kill9()
        feed.write(flow.source, flow.name, [(b"k%d" % i, b"then %d" % i) for i in range(2000)], 0, codec, one)
        h.restart()
        h.wait(lambda h: h.partitions(flow.name), what="the start")
        h.kill9()
        h.restart()
        assert copied_equal(h, flow) == 10000
    with Heliostat(flow.config(**{"heliostat.coalesce": "false"})) as h:
        feed.write(flow.source, flow.name, [(b"k%d" % i, b"again %d" % i) for i in range(500)], 0, codec, one)
        assert copied_equal(h, flow) == 10500
        assert sum(p["coalesced_batches"] for p in h.partitions(flow.name)) == 0
