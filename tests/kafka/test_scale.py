"""Thousands of topics and groups: how long the first plan takes, what a refresh costs, and that the copy does not wait for either.

Both clusters are reached through proxies that count requests, and take none beyond LIMIT."""
import collections
import contextlib
import threading
import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from lab import cpu, feed, heliostat, peers, ports, wire
from lab.cluster import Cluster
from lab.heliostat import Heliostat
from lab.pace import most

Size = collections.namedtuple("Size", "topics partitions groups interval rounds churn heap")
SMALL = Size(300, 3, 200, 1, 4, 3, "512m")
ALL = Size(5000, 4, 2000, 10, 6, 30, "3g")
NAMES = {0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch", 10: "FindCoordinator",
         12: "Heartbeat", 16: "ListGroups", 18: "ApiVersions", 19: "CreateTopics", 22: "InitProducerId", 29: "DescribeAcls",
         32: "DescribeConfigs", 37: "CreatePartitions", 44: "IncrementalAlterConfigs", 61: "DescribeProducers"}
LIMIT = 4 << 20  # bytes of a request; the default is 100 MiB
PROPS = {"socket.request.max.bytes": LIMIT, "log.retention.check.interval.ms": 300000, "log.cleaner.backoff.ms": 15000,
         "log.index.size.max.bytes": 65536, "num.io.threads": 4,
         "broker.session.timeout.ms": 60000, "controller.quorum.fetch.timeout.ms": 30000}
PROBE = "probe"


@contextlib.contextmanager
def counted(name, heap):
    """A cluster of one broker: (proxy, address for the mirror, address for the test)."""
    port = ports.free_port()
    with peers.Requests(port) as proxy:
        c = Cluster("4.3.0", port=port, name=name, listeners={"DIRECT": "PLAINTEXT"}, props=PROPS, heap=heap)
        c.props["advertised.listeners"] = "PLAINTEXT://127.0.0.1:%d,DIRECT://127.0.0.1:%d" % (proxy.port, c.brokers[0].ports["DIRECT"])
        try:
            c.launch()
            yield c, proxy, "127.0.0.1:%d" % proxy.port, c.bootstrap_of("DIRECT")
        finally:
            c.stop()


class Probe(threading.Thread):
    """Reads one partition of a copy and notes how old each record is when it comes, and how long none came."""

    def __init__(self, bootstrap, topic):
        super().__init__(daemon=True)
        self.ages, self.gaps, self.ended = [], [], threading.Event()
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "probe", "enable.auto.commit": False,
                                  "auto.offset.reset": "latest", "fetch.wait.max.ms": 50, "log_level": 0})
        self.consumer.assign([TopicPartition(topic, 0)])

    def run(self):
        last = None
        while not self.ended.is_set():
            m = self.consumer.poll(0.1)
            if m is None or m.error():
                continue
            now = time.monotonic()
            self.ages.append(time.time() - m.timestamp()[1] / 1000)
            if last:
                self.gaps.append(now - last)
            last = now
        self.consumer.close()

    def stop(self):
        """(99 of 100 ages are below this, the longest time without a record)"""
        self.ended.set()
        self.join()
        assert len(self.ages) > 20
        return sorted(self.ages)[len(self.ages) * 99 // 100], max(self.gaps)


def make(size, source):
    """Topics and groups of the source; every group has a position in two of the topics."""
    address = source.split(",")[0]
    wire.coordinator(source, "g0", 300)  # its topic is made now: behind thousands of others that would take minutes
    began = time.monotonic()
    wire.create_topics(address, [PROBE] + ["t%d" % i for i in range(size.topics - 1)], size.partitions)
    feed.wait_partitions(source, PROBE, size.partitions)
    made = time.monotonic()
    with wire.Line(address) as line:
        for i in range(size.groups):
            wire.commit(line, "g%d" % i, {("t%d" % ((i + k) % (size.topics - 1)), i % size.partitions): 0 for k in (0, 7)})
    print("\n%d topics in %.1f s, %d groups in %.1f s" % (size.topics, made - began, size.groups, time.monotonic() - made))


class Counts:
    """Requests and CPU time since a moment."""

    def __init__(self, h, proxies):
        self.h, self.proxies = h, proxies
        self.cpu, self.at = cpu.stats()[h.child.pid][1], time.monotonic()
        self.counts = [collections.Counter(p.counts) for p in proxies]

    def told(self, what, intervals=1):
        """CPU seconds, per interval."""
        spent = (cpu.stats()[self.h.child.pid][1] - self.cpu) / intervals
        print("%s: %.2f s of CPU in %.1f s" % (what, spent, (time.monotonic() - self.at) / intervals))
        for side, proxy, before in zip(("source", "target"), self.proxies, self.counts):
            print("  %s: %s" % (side, ", ".join("%s %g" % (NAMES.get(k, k), round(n / intervals, 1))
                                               for k, n in sorted((proxy.counts - before).items()))))
        return spent


def end_of(bootstrap, topic, partition):
    """The end offset, -1 while the partition is not there."""
    c = Consumer({"bootstrap.servers": bootstrap, "group.id": "probe", "log_level": 0})
    try:
        return c.get_watermark_offsets(TopicPartition(topic, partition), timeout=2)[1]
    except Exception:  # pylint: disable=broad-except; it is being made
        return -1
    finally:
        c.close()


def churn(size, address, ended):
    """Ten new groups in a second that no flow follows."""
    with wire.Line(address) as line:
        i, began = 0, time.monotonic()
        while not ended.is_set():
            while i < (time.monotonic() - began) * 10:
                wire.commit(line, "other-%d" % i, {("t%d" % (i % (size.topics - 1)), 0): 0})
                i += 1
            time.sleep(0.02)


def wait_round(h, size):
    """All groups are followed and in place at the target."""
    def done(h):
        time.sleep(size.interval / 2)  # the status names every partition
        g = h.status()["flows"][0]["groups"]
        return g and g["synced"] == 2 * size.groups
    h.wait(done, 180, "all groups to be in place")


@pytest.mark.long
@pytest.mark.fc("FC-041")
def test_thousands_of_topics_and_groups(full):
    size = ALL if full else SMALL
    with counted("scale-source", size.heap) as (a, a_proxy, a_mirror, a_direct), \
            counted("scale-target", size.heap) as (b, b_proxy, b_mirror, b_direct):
        a.wait_ready()
        b.wait_ready()
        make(size, a_direct)
        wire.coordinator(b_direct, "g0", 300)
        steady = feed.Numbered(a_direct, PROBE, 1, rate=50)
        steady.start()
        every = {k: size.interval for k in ("refresh.topics.interval.seconds", "refresh.groups.interval.seconds",
                 "emit.checkpoints.interval.seconds", "sync.group.offsets.interval.seconds")}
        lines = heliostat.config(a_mirror, b_mirror, **every, **{"groups": "g.*", "sync.group.offsets.enabled": "true"})
        proxies = (a_proxy, b_proxy)
        with Heliostat(lines) as h:
            counts, began = Counts(h, proxies), time.monotonic()
            h.wait(lambda h: h.ready()[0], 600, "the first plan")
            print("first plan, with %d partitions made at the target: %.1f s" % (size.topics * size.partitions, time.monotonic() - began))
            counts.told("first plan")
            wait_round(h, size)
            counts.told("with all groups in place")
            assert h.stop() == 0
            h.restart()
            counts, began = Counts(h, proxies), time.monotonic()
            h.wait(lambda h: h.ready()[0], 600, "the plan")
            took = time.monotonic() - began
            counts.told("started again: plan after %.1f s" % took)
            assert took < most(30)
            wait_round(h, size)
            time.sleep(2 * size.interval)
            counts = Counts(h, proxies)
            time.sleep(size.rounds * size.interval)
            assert counts.told("an interval of %d s" % size.interval, size.rounds) < 1
            probe, ended = Probe(b_direct, "a." + PROBE), threading.Event()
            maker = threading.Thread(target=churn, args=(size, a_direct, ended), daemon=True)
            probe.start()
            maker.start()
            counts = Counts(h, proxies)
            time.sleep(size.churn)
            counts.told("an interval with new groups", size.churn / size.interval)
            age, gap = probe.stop()
            print("while groups are made: 99 %% of records within %.2f s, none for %.2f s at most" % (age, gap))
            assert age < most(2) and gap < most(3)
            feed.create_topic(a_direct, "late", 1)
            feed.write(a_direct, "late", [(b"k", b"v")])
            feed.grow_topic(a_direct, "t1", size.partitions + 1)
            feed.write(a_direct, "t1", [(b"k", b"v")], size.partitions)
            began = time.monotonic()
            for topic, partition in (("a.late", 0), ("a.t1", size.partitions)):
                h.wait(lambda h, t=topic, p=partition: end_of(b_direct, t, p) == 1, 60 + 2 * size.interval, topic)
                print("%s flows after %.1f s" % (topic, time.monotonic() - began))
            assert time.monotonic() - began < most(2 * size.interval + 2)
            ended.set()
            maker.join()
            steady.stop()
            h.wait_copied(a_direct, [PROBE])
            assert not h.status()["faults"]
            for side, proxy in zip(("source", "target"), proxies):
                print("largest requests of the %s: %s" % (side, ", ".join(
                    "%s %d" % (NAMES.get(k, k), n) for k, n in proxy.largest.most_common(4))))
                assert max(proxy.largest.values()) < LIMIT
