"""One bad thing stops one thing, says so by name, and heals by itself when the cause is gone."""
import json
import re
import time

import pytest

from conftest import Flow, soak
from lab import compare, feed, heliostat, peers, ports
from lab.cluster import Cluster
from lab.heliostat import Heliostat, as_text
from lab.pace import most


def reasons(h):
    """Everything that /readyz and the status say about what is wrong."""
    return h.ready()[1] + json.dumps(h.status()["faults"])


def halted(h, topic):
    """{partition: fault text} of the partitions of a topic that do not move."""
    return {p["partition"]: p["fault"] for p in h.partitions(topic) if p["state"] in ("halted", "retrying")}


def fault_text(h, topic):
    """All faults of a topic as text."""
    return json.dumps([f for f in h.status()["faults"] if f.get("topic") == topic] + list(halted(h, topic).values()))


def check(tmp_path, lines, *args):
    """`heliostat check` of a configuration: (exit code, all it printed)."""
    path = tmp_path / "mm2.properties"
    path.write_text(as_text(lines))
    code, out, error = heliostat.command("check", str(path), *args)
    return code, out + error


def test_unknown_key_is_named_with_the_nearest(tmp_path, flow):
    lines = {**flow.config(), "refresh.topic.interval.seconds": 5, "replication.polcy.class": "x",
             "%s->%s.topic" % (flow.a, flow.b): "y"}
    code, text = check(tmp_path, lines, "--offline")
    assert code == 0, text
    for wrong, right in (("refresh.topic.interval.seconds", "refresh.topics.interval.seconds"),
                         ("replication.polcy.class", "replication.policy.class"),
                         ("%s->%s.topic" % (flow.a, flow.b), "topics")):
        assert any(wrong in line and right in line for line in text.splitlines()), (wrong, text)


def test_all_problems_of_a_file_in_one_go(tmp_path):
    """Each with its line; nothing is touched."""
    path = tmp_path / "bad.properties"
    path.write_text("clusters = a, b\na.bootstrap.servers = h:notaport\nb.bootstrap.servers = h:9092\n"
                    "a->b.enabled = true\na->b.topics = orders(\nreplication.factor = many\n"
                    "heliostat.http.listen = nowhere\n")
    code, out, error = heliostat.command("check", str(path), "--offline")
    assert code == 2, out + error
    for line in (2, 5, 6, 7):
        assert re.search(r"bad\.properties:%d: " % line, error), (line, error)
    code, _, again = heliostat.command("run", str(path))
    assert code == 2 and "bad.properties:6: " in again


@pytest.mark.fc("FC-019")
def test_two_aliases_of_one_cluster_are_refused(tmp_path, flow):
    lines = heliostat.config(flow.source, flow.source, flow.a, flow.b, flow.name)
    feed.create_topic(flow.source, flow.name)
    feed.write(flow.source, flow.name, [(b"k", b"v")])
    code, text = check(tmp_path, lines)
    assert code in (1, 2) and flow.a in text and flow.b in text, text
    with Heliostat(lines) as h:
        time.sleep(3)
        if h.running():
            assert not h.ready()[0] and flow.a in reasons(h) and flow.b in reasons(h)
        else:
            assert h.child.returncode in (1, 2)
    assert flow.remote() not in feed.topics_of(flow.source)


def test_two_aliases_of_one_cluster_without_a_flow_are_fine(flow):
    feed.create_topic(flow.source, flow.name)
    feed.write(flow.source, flow.name, [(b"k", b"v")])
    other = flow.name + "u"
    lines = {**flow.config(), "clusters": "%s, %s, %s" % (flow.a, flow.b, other), other + ".bootstrap.servers": flow.source,
             "emit.heartbeats.enabled": "false"}
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [flow.name])
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal


@pytest.mark.long
def test_unreachable_cluster_at_the_start(flow):
    """Keeps trying and says why, while the other flow runs; joins in when the cluster appears."""
    feed.create_topic(flow.source, flow.name, 2)
    feed.mixed(flow.source, flow.name, 500, 2)
    port, late = ports.free_port(), flow.name + "late"
    lines = {**flow.config(), "clusters": "%s, %s, %s" % (flow.a, flow.b, late),
             late + ".bootstrap.servers": "127.0.0.1:%d" % port,
             "%s->%s.enabled" % (flow.a, late): "true", "%s->%s.topics" % (flow.a, late): flow.name,
             "%s->%s.enabled" % (late, flow.b): "true", "%s->%s.topics" % (late, flow.b): flow.name}
    with Heliostat(lines) as h:
        h.wait(lambda h: h.flow(flow.a, flow.b) and sum(p["records"] for p in h.flow(flow.a, flow.b)["partitions"]
                                                        if p["topic"] == flow.name) == 500, what="the good flow")
        ready, text = h.ready()
        assert not ready and h.get("/readyz")[0] == 503
        assert late in json.dumps(json.loads(text)) and str(port) in reasons(h)
        with Cluster("4.3.0", port=port, name="late") as c:
            h.wait_ready(60)
            h.wait(lambda h: feed.partitions_of(c.bootstrap, flow.remote()), what="the late copy")
            h.wait(lambda h: compare.topics(flow.source, flow.name, c.bootstrap, flow.remote()).equal, what="its records")
            # As a source it is as good as any, and has its offset syncs: MirrorMaker 2 would never make their topic.
            feed.create_topic(c.bootstrap, flow.name)
            feed.write(c.bootstrap, flow.name, [(b"k", b"%d" % i) for i in range(20)])
            h.wait(lambda h: compare.topics(c.bootstrap, flow.name, flow.target, late + "." + flow.name).equal, what="20 more")
            assert "mm2-offset-syncs.%s.internal" % flow.b in feed.topics_of(c.bootstrap)
            assert h.stop() == 0


@pytest.mark.fc("FC-031")
def test_too_large_record_stops_only_its_partition(flow):
    feed.create_topic(flow.source, flow.name, 3)
    feed.create_topic(flow.target, flow.remote(), 3, {"max.message.bytes": 20000})
    feed.write(flow.source, flow.name, [(b"k", b"before")], 0)
    feed.write(flow.source, flow.name, [(b"k", b"x" * 60000)], 0)
    feed.write(flow.source, flow.name, [(b"k", b"after")], 0)
    for partition in (1, 2):
        feed.write(flow.source, flow.name, [(b"k", b"v%d" % i) for i in range(100)], partition)
    with Heliostat(flow.config(**{"sync.topic.configs.enabled": "false"})) as h:
        h.wait(lambda h: halted(h, flow.name), what="the partition to stop")
        h.wait(lambda h: len(compare.read(flow.target, flow.remote())) == 201, what="everything else")
        assert list(halted(h, flow.name)) == [0]
        text = fault_text(h, flow.name)
        assert re.search("MESSAGE_TOO_LARGE|RECORD_LIST_TOO_LARGE", text) and "max.message.bytes" in text, text
        feed.write(flow.source, flow.name, [(b"k", b"more")], 2)
        h.wait(lambda h: len(compare.read(flow.target, flow.remote())) == 202, what="the other partitions to go on")
        feed.set_config(flow.target, flow.remote(), max_message_bytes=100000)
        h.wait_copied(flow.source, [flow.name])
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal
        h.wait(lambda h: not halted(h, flow.name), what="the fault to be over")


@pytest.mark.fc("FC-036")
def test_denied_topic_stops_only_itself(flow, guarded):
    flow = Flow(flow.name, flow.clusters[0], guarded)
    good, bad = flow.name + "-good", flow.name + "-bad"
    for topic in (good, bad):
        feed.create_topic(flow.source, topic, 2)
        feed.mixed(flow.source, topic, 200, 2)
    feed.create_topic(flow.target, flow.remote(bad), 2)
    acl = (guarded.bootstrap, "DENY", ["WRITE"], "TOPIC", flow.remote(bad))
    feed.acl(*acl)
    with Heliostat(flow.config(flow.name + ".*", **{"sync.topic.acls.enabled": "false"})) as h:
        h.wait_copied(flow.source, [good])
        h.wait(lambda h: set(halted(h, bad)) == {0, 1} and "TOPIC_AUTHORIZATION_FAILED" in fault_text(h, bad),
               what="the denied topic to stop for that reason")
        assert not halted(h, good) and compare.topics(flow.source, good, flow.target, flow.remote(good)).equal
        feed.acl(*acl, remove=True)
        h.wait_copied(flow.source, [good, bad])
        assert compare.topics(flow.source, bad, flow.target, flow.remote(bad)).equal


def test_without_the_right_to_the_group_nothing_is_copied(flow, guarded):
    """Nothing would keep a second process away. The right is named; with it, or with membership switched off, it copies."""
    flow = Flow(flow.name, flow.clusters[0], guarded)
    feed.create_topic(flow.source, flow.name, 1)
    feed.mixed(flow.source, flow.name, 100, 1)
    group = flow.a + "-mm2"
    acl = (guarded.bootstrap, "DENY", ["READ"], "GROUP", group)
    feed.acl(*acl)
    with Heliostat(flow.config()) as h:
        h.wait(lambda h: "GROUP_AUTHORIZATION_FAILED" in reasons(h), what="the reason")
        ready, text = h.ready()
        assert not ready and "Read on group " + group in text and "heliostat.membership" in text, text
        assert flow.remote() not in feed.topics_of(flow.target)
        with Heliostat(flow.config(heliostat__membership="false")) as alone:
            alone.wait_copied(flow.source, [flow.name])
            assert alone.stop() == 0
        feed.acl(*acl, remove=True)
        h.wait_copied(flow.source, [flow.name])
        h.wait_ready()
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal


@pytest.mark.fc("FC-036")
def test_rights_withdrawn_and_given_back(flow, guarded):
    """Write on one copy, then Read on a source topic: it pauses with the cause, the other topic flows, nothing is lost. A topic
    with any ACL at all allows nothing that no ACL allows."""
    good, bad = flow.name + "-good", flow.name + "-bad"
    for source, target in ((flow.clusters[0], guarded), (guarded, flow.clusters[1])):
        way = Flow(flow.name + ("to" if target is guarded else "from"), source, target)
        for topic in (good, bad):
            feed.create_topic(way.source, topic, 2)
        topic, left = (way.remote(bad), ["DESCRIBE"]) if target is guarded else (bad, ["DESCRIBE", "WRITE", "DESCRIBE_CONFIGS"])
        acl = (guarded.bootstrap, "ALLOW", left, "TOPIC", topic)
        producers = [feed.Numbered(way.source, t, 2, rate=300) for t in (good, bad)]
        for p in producers:
            p.start()
        with Heliostat(way.config(flow.name + "-.*", **{"sync.topic.acls.enabled": "false"})) as h:
            h.wait(lambda h: all(p["records"] > 50 for t in (good, bad) for p in h.partitions(t)) and len(h.partitions(bad)) == 2,
                   what="both topics to flow")
            feed.acl(*acl)
            h.wait(lambda h: set(halted(h, bad)) == {0, 1} and "TOPIC_AUTHORIZATION_FAILED" in fault_text(h, bad) and
                   topic in fault_text(h, bad), what="the denied topic to stop for that reason")
            had = sum(p["next_offset"] for p in h.partitions(good))
            h.wait(lambda h: sum(p["next_offset"] for p in h.partitions(good)) > had + 300, what="the other topic to flow")
            assert not halted(h, good)
            feed.acl(*acl, remove=True)
            counts = [sum(p.stop().values()) for p in producers]
            h.wait_copied(way.source, [good, bad])
            for t, count in zip((good, bad), counts):
                result = compare.topics(way.source, t, way.target, way.remote(t))
                assert result.equal and result.records == count, (t, str(result))
            h.wait(lambda h: not halted(h, bad) and not h.status()["losses"], what="the fault to be over")


def test_without_the_right_to_describe_configs(flow, guarded):
    """A copy is not made with configs that nobody could read; it is said which right is missing, and others go on."""
    flow = Flow(flow.name, guarded, flow.clusters[1])
    good, bad, there = (flow.name + x for x in ("-good", "-bad", "-there"))
    for topic in (good, bad, there):
        feed.create_topic(flow.source, topic, 1)
        feed.write(flow.source, topic, [(b"k", b"v%d" % i) for i in range(100)])
    feed.create_topic(flow.target, flow.remote(there), 1)
    acls = [(guarded.bootstrap, "ALLOW", ["READ", "WRITE"], "TOPIC", t) for t in (bad, there)]
    for acl in acls:
        feed.acl(*acl)
    with Heliostat(flow.config(flow.name + "-.*", **{"sync.topic.acls.enabled": "false"})) as h:
        h.wait_copied(flow.source, [good, there])
        h.wait(lambda h: "TOPIC_AUTHORIZATION_FAILED" in fault_text(h, bad), what="the reason")
        assert "DescribeConfigs" in fault_text(h, bad) and flow.remote(bad) not in feed.topics_of(flow.target)
        assert not halted(h, good) and not halted(h, there)
        for acl in acls:
            feed.acl(*acl, remove=True)
        h.wait_copied(flow.source, [good, bad, there])
        for topic in (good, bad, there):
            assert compare.topics(flow.source, topic, flow.target, flow.remote(topic)).equal


@pytest.mark.fc("FC-024")
def test_topic_that_cannot_be_created(flow, guarded):
    flow = Flow(flow.name, flow.clusters[0], guarded)
    good, bad = flow.name + "-good", flow.name + "-bad"
    for topic in (good, bad):
        feed.create_topic(flow.source, topic, 1)
        feed.mixed(flow.source, topic, 100, 1)
    acl = (guarded.bootstrap, "DENY", ["CREATE"], "TOPIC", flow.remote(bad))
    feed.acl(*acl)
    with Heliostat(flow.config(flow.name + ".*", **{"sync.topic.acls.enabled": "false"})) as h:
        h.wait_copied(flow.source, [good])
        h.wait(lambda h: "TOPIC_AUTHORIZATION_FAILED" in fault_text(h, bad), what="the reason")
        assert flow.remote(bad) not in feed.topics_of(flow.target)
        feed.acl(*acl, remove=True)
        h.wait_copied(flow.source, [good, bad])


@pytest.mark.parametrize("kind", ["http", "tls", "absurd", "silent"])
def test_an_answer_that_is_not_kafka_is_named(flow, tmp_path, kind):
    treat = peers.tls(tmp_path) if kind == "tls" else getattr(peers, kind)
    expected = {"http": "HTTP", "tls": "TLS|SSL", "absurd": "2147483632|frame|not Kafka", "silent": "time|answer"}[kind]
    with peers.Server(treat) as server:
        lines = heliostat.config(flow.source, server.address, flow.a, flow.b, flow.name, request__timeout__ms=3000,
                                 **{flow.b + ".request.timeout.ms": 3000})
        with Heliostat(lines) as h:
            h.wait(lambda h: re.search(expected, reasons(h), re.I), what="the fault to be named")
            assert not h.ready()[0] and flow.b in reasons(h) and str(server.port) in reasons(h)
            time.sleep(2)
            assert server.connections < 60, "connects without pause"
            began = time.monotonic()
            assert h.stop() == 0 and time.monotonic() - began < most(5)


@pytest.mark.long
@pytest.mark.parametrize("side", ["source", "target"])
def test_connections_cut_inside_a_frame(pool, name, side):
    port = ports.free_port()
    with peers.Proxy(port) as proxy, \
            Cluster("4.3.0", port=port, name="cut", props={"advertised.listeners": "PLAINTEXT://127.0.0.1:%d" % proxy.port}) as c:
        other = pool.get("4.3.0", "source" if side == "target" else "target")
        flow = Flow(name, *((c, other) if side == "source" else (other, c)))
        feed.create_topic(flow.source, name, 4)
        producer = feed.Numbered(flow.source, name, 4, rate=1000)
        producer.start()
        with Heliostat(flow.config()) as h:
            h.wait_ready()
            for _ in range(8):
                time.sleep(0.7)
                proxy.cut()
            counts = producer.stop()
            h.wait_copied(flow.source, [name])
            assert proxy.cuts > 8
            result = compare.topics(flow.source, name, flow.target, flow.remote())
            assert result.equal and result.records == sum(counts.values()), str(result)


@pytest.mark.fc("FC-032", "FC-035")
@pytest.mark.parametrize("side", [soak("source"), "target"])
def test_leader_moves(pool, three, name, side):
    """The leader of a partition is killed under load in a cluster of three; later it leads again."""
    other = pool.get("4.3.0", "target" if side == "source" else "source")
    flow = Flow(name, *((three, other) if side == "source" else (other, three)))
    feed.create_topic(flow.source, name, 3, replication=3 if side == "source" else 1)
    producer = feed.Numbered(flow.source, name, 3, rate=1000)
    producer.start()
    with Heliostat(flow.config(replication__factor=3 if side == "target" else 1)) as h:
        h.wait_ready()
        time.sleep(1)
        three.kill(2)
        time.sleep(5)
        three.restart(2)
        feed.elect_preferred(three.bootstrap)
        time.sleep(2)
        counts = producer.stop()
        h.wait_copied(flow.source, [name])
        result = compare.topics(flow.source, name, flow.target, flow.remote())
        assert result.equal and result.records == sum(counts.values()), str(result)
        h.wait(lambda h: not h.status()["faults"], what="the faults to be over")


def test_a_heartbeats_topic_that_cannot_be_made_holds_nothing_up(own_flow):
    flow = own_flow
    for cluster in (flow.source, flow.target):  # other flows made it before
        if "heartbeats" in feed.topics_of(cluster):
            feed.delete_topics(cluster, ["heartbeats"])
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, [(b"%d" % i, b"v%d" % i) for i in range(50)])
    with Heliostat(flow.config(heartbeats__topic__replication__factor=3)) as h:
        h.wait_copied(flow.source, [flow.name])
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal
        log = h.log.read_text()
        assert re.search(r"topic\.fault.*topic=heartbeats .*INVALID_REPLICATION_FACTOR.*heartbeats\.topic\.replication\.factor", log), log


@pytest.mark.fc("FC-029")
def test_a_record_of_a_time_that_the_copy_does_not_take(flow, tmp_path):
    """The config to raise is named, with the copy; raised, it goes on."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.create_topic(flow.target, flow.remote(), 1, {"message.timestamp.before.max.ms": 3600000})
    feed.write(flow.source, flow.name, [(b"k", b"old")], timestamp=int(time.time() * 1000) - 7200000)
    code, text = check(tmp_path, flow.config())
    assert code == 0 and "raise message.timestamp.before.max.ms" in text, text
    with Heliostat(flow.config(**{"sync.topic.configs.enabled": "false"})) as h:
        h.wait(lambda h: halted(h, flow.name), what="the partition to stop")
        text = fault_text(h, flow.name)
        for word in ("INVALID_TIMESTAMP", flow.remote() + "-0", "message.timestamp.before.max.ms"):
            assert word in text, (word, text)
        feed.set_config(flow.target, flow.remote(), message_timestamp_before_max_ms=None)
        h.wait_copied(flow.source, [flow.name])


def test_copies_whose_name_kafka_does_not_take(flow, tmp_path):
    """Said before any broker is asked, with the time since when; the others are copied."""
    long_name = flow.name + "-" + "x" * (248 - len(flow.name))
    for topic in (flow.name, long_name):
        feed.create_topic(flow.source, topic, 1)
        feed.write(flow.source, topic, [(b"k", b"v")])
    lines = flow.config(flow.name + ".*")
    code, text = check(tmp_path, lines)
    assert code == 1 and "%d characters" % len(flow.remote(long_name)) in text, text
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [flow.name])
        h.wait(lambda h: fault_text(h, long_name) != "[]", what="the fault")
        fault, = [f for f in h.status()["faults"] if f.get("topic") == long_name]
        assert "249 at most" in fault["text"], fault
        assert abs(fault["since_ms"] / 1000 - time.time()) < 300, fault


def test_check_of_heartbeats_only(flow, tmp_path):
    """It asks the clusters as for any other file."""
    lines = {**flow.config(), "%s->%s.enabled" % (flow.a, flow.b): "false"}
    code, text = check(tmp_path, lines)
    assert code == 0, text
    assert text.count("\ncluster ") == 2 and "own topic: heartbeats" in text, text
    lines["%s.bootstrap.servers" % flow.b] = "127.0.0.1:%d" % ports.free_port()
    code, text = check(tmp_path, lines)
    assert code == 3 and "cluster %s cannot be reached" % flow.b in text, text
