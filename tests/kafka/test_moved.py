"""The source or the target moved under the mirror: records deleted, topics made anew, unclean elections, refusals."""
import json
import time

import pytest
from confluent_kafka.admin import NewTopic

from conftest import Flow, soak
from lab import compare, config, feed, java, offsets, ports
from lab.cluster import Cluster
from lab.heliostat import Heliostat
from test_shapes import transactional


def numbers(first, last):
    """Records with the numbers [first, last)."""
    return [(b"%d" % i, b"v%d" % i) for i in range(first, last)]


def values(bootstrap, topic):
    """All values of a topic of one partition, in order."""
    return [m.value() for m in compare.read(bootstrap, topic)]


@pytest.mark.fc("FC-003")
def test_lost_ranges_are_kept_in_the_ledger(flow):
    """Deleted before they were copied: told in log, status and metrics, and still known after two restarts."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, numbers(0, 50))
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        assert h.stop() == 0
        feed.write(flow.source, flow.name, numbers(50, 200))
        feed.delete_records(flow.source, flow.name, 0, 120)
        for start in range(3):
            h.restart().wait_ready()
            h.wait(lambda h: h.status()["losses"], what="the loss")
            losses = h.status()["losses"]
            assert [(x["topic"], x["partition"], x["from_offset"], x["to_offset"]) for x in losses] == [
                (flow.name, 0, 50, 119)], losses
            assert "deleted" in losses[0]["cause"] and abs(losses[0]["time_ms"] / 1000 - time.time()) < 600
            assert "heliostat_losses 1" in h.get("/metrics")[1]
            h.wait(lambda h: compare.ends(flow.target, flow.remote()) == {0: (0, 130)}, what="130 records")
            assert h.log.read_text().count("relay.loss") == 1  # it happened once; the log goes on
            h.kill9() if start else h.stop()
        assert values(flow.target, flow.remote()) == [v for _, v in numbers(0, 50) + numbers(120, 200)]


@pytest.mark.fc("FC-004")
@pytest.mark.parametrize("policy", ["halt", "ignore"])
def test_source_topic_made_anew(flow, policy):
    """The policy `restart` is in test_topics.py."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, numbers(0, 100))
    with Heliostat(flow.config(heliostat__source__recreated=policy)) as h:
        h.wait_copied(flow.source, [flow.name])
        assert h.stop() == 0
        feed.delete_topics(flow.source, [flow.name])
        feed.create_topic(flow.source, flow.name, 1)
        feed.write(flow.source, flow.name, numbers(1000, 1150))
        h.restart()
        if policy == "halt":
            h.wait(lambda h: any(p["state"] == "halted" for p in h.partitions(flow.name)), what="the partition to halt")
            fault = h.partitions(flow.name)[0]["fault"]
            assert fault["code"] == "SOURCE_RECREATED" and "heliostat.source.recreated" in fault["text"]
            assert compare.ends(flow.target, flow.remote()) == {0: (0, 100)}
        else:
            h.wait(lambda h: compare.ends(flow.target, flow.remote()) == {0: (0, 150)}, what="what lies behind")
            assert values(flow.target, flow.remote())[100:] == [v for _, v in numbers(1100, 1150)]


def test_records_deleted_at_the_target(flow):
    """The copy's own retention takes nothing from what is copied later, and the map says what is gone."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, numbers(0, 100))
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        feed.delete_records(flow.target, flow.remote(), 0, 100)
        feed.write(flow.source, flow.name, numbers(100, 150))
        h.wait(lambda h: compare.ends(flow.target, flow.remote()) == {0: (100, 150)}, what="50 more records")
        h.kill9()
        h.restart()
        feed.write(flow.source, flow.name, numbers(150, 200))
        h.wait(lambda h: compare.ends(flow.target, flow.remote()) == {0: (100, 200)}, what="50 more records")
        assert values(flow.target, flow.remote()) == [v for _, v in numbers(100, 200)]
        assert [a["to"] for a in offsets.ask(h, flow, flow.name, 0, [100, 199])] == [100, 199]


@pytest.fixture
def quick_then_slow(pair, name):
    """A flow to a cluster of its own: a quota there is for all clients."""
    with Cluster("4.3.0", name="quota") as target:
        yield Flow(name, pair[0], target)


def test_a_quota_slows_and_loses_nothing(quick_then_slow):
    """The target's quota for all clients, 40 KB/s for some seconds."""
    flow = quick_then_slow
    feed.create_topic(flow.source, flow.name, 2)
    quota = ("--alter", "--entity-type", "clients", "--entity-default")
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        java.tool(flow.clusters[1], "configs", *quota, "--add-config", "producer_byte_rate=40000")
        try:
            feed.mixed(flow.source, flow.name, 1500, 2)
            h.wait(lambda h: sum(p["records"] for p in h.partitions(flow.name)) > 0, what="some records")
        finally:
            java.tool(flow.clusters[1], "configs", *quota, "--delete-config", "producer_byte_rate")
        h.wait_copied(flow.source, [flow.name])
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal
        assert not h.status()["faults"] and not h.status()["losses"]


def on_two(cluster, topic):
    """A topic of one partition on brokers 1 and 2, led by 1."""
    a = feed.admin(cluster.bootstrap)
    new = NewTopic(topic, 1, replica_assignment=[[1, 2]],
                   config={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
    a.create_topics([new])[topic].result(15)
    feed.wait_partitions(cluster.bootstrap, topic, 1)


def leader(cluster, topic):
    """The id of the leader; -1: none."""
    return feed.admin(cluster.bootstrap).list_topics(topic, timeout=60).topics[topic].partitions[0].leader


def elect_without(cluster, topic, then):
    """Broker 2 is left behind while `then` runs; afterwards it leads, and broker 1 has to cut its log."""
    cluster.kill(2)
    then()
    cluster.kill(1)
    cluster.restart(2)
    end = time.monotonic() + 60
    while leader(cluster, topic) != 2:
        assert time.monotonic() < end, "broker 2 does not lead"
        time.sleep(0.2)
    cluster.restart(1)


@pytest.mark.fc("FC-005")
def test_unclean_election_at_the_source(pair, three, name):
    """What the source lost was copied before: it stays, it is in the ledger, and what came instead is copied after it."""
    flow = Flow(name, three, pair[1])
    on_two(three, flow.name)
    with Heliostat(flow.config()) as h:
        feed.write(flow.source, flow.name, numbers(0, 100), options={"acks": "all"})
        h.wait_copied(flow.source, [flow.name])

        def more():
            feed.write(flow.source, flow.name, numbers(100, 160))
            h.wait(lambda h: compare.ends(flow.target, flow.remote()) == {0: (0, 160)}, what="160 records")

        elect_without(three, flow.name, more)
        feed.write(flow.source, flow.name, numbers(1000, 1090))
        h.wait(lambda h: compare.ends(flow.target, flow.remote()) == {0: (0, 250)}, what="90 more records")
        assert values(flow.target, flow.remote()) == [v for _, v in numbers(0, 160) + numbers(1000, 1090)]
        h.wait(lambda h: h.status()["losses"], what="the loss")
        loss = h.status()["losses"][0]
        assert (loss["from_offset"], loss["to_offset"], loss["records"]) == (100, 159, 60), loss
        answers = offsets.ask(h, flow, flow.name, 0, [99, 100, 189])
        assert [a["to"] for a in answers] == [99, 160, 249] and {a["kind"] for a in answers} == {"exact"}


def test_unclean_election_at_the_target(pair, three, name):
    """Acknowledged records are gone there: they are sent again, exactly, though the source has holes."""
    flow = Flow(name, pair[0], three)
    on_two(three, flow.remote())
    feed.create_topic(flow.source, flow.name, 1)
    with Heliostat({**flow.config(), flow.a + ".consumer.isolation.level": "read_committed"}) as h:
        transactional(flow.source, flow.name, 1, create=False)
        h.wait_copied(flow.source, [flow.name], isolation="read_committed")

        def more():
            transactional(flow.source, flow.name, 1, create=False)
            h.wait_copied(flow.source, [flow.name], isolation="read_committed")

        elect_without(three, flow.remote(), more)
        feed.write(flow.source, flow.name, numbers(0, 10))
        h.wait(lambda h: compare.topics(flow.source, flow.name, flow.target, flow.remote(), "read_committed").equal,
               what="every record once")
        counts = offsets.check(h, flow, 2000)
        assert counts["exact"] and counts["next"], counts
        assert "copying again from source offset" in h.log.read_text() and "relay.duplicates" not in h.log.read_text()


@pytest.mark.parametrize("side", [soak("source"), "target"])
def test_partition_reassigned_and_broker_at_another_address(pair, three, name, side, tmp_path):
    """Under load a partition moves to broker 3, and then broker 3 comes back under another port."""
    flow = Flow(name, *((three, pair[1]) if side == "source" else (pair[0], three)))
    topic = flow.name if side == "source" else flow.remote()
    on_two(three, topic)
    if side == "target":
        feed.create_topic(flow.source, flow.name, 1)
    producer = feed.Numbered(flow.source, flow.name, 1, rate=500)
    producer.start()
    with Heliostat(flow.config()) as h:
        h.wait(lambda h: sum(p["records"] for p in h.partitions(flow.name)) > 100, what="the first records")
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [3]}]}))
        java.tool(three, "reassign", "--reassignment-json-file", str(plan), "--execute")
        h.wait(lambda h: leader(three, topic) == 3, what="broker 3 to lead")
        three.kill(3)
        node = three.node(3)
        node.ports["PLAINTEXT"] = ports.free_port()
        config.write(node.conf, config.broker(node, three.brokers, three.listeners, three.host, None, three.props))
        three.restart(3)
        had = sum(p["records"] for p in h.partitions(flow.name))
        h.wait(lambda h: sum(p["records"] for p in h.partitions(flow.name)) > had + 100, what="records to flow again")
        count = sum(producer.stop().values())
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == count, str(result)
