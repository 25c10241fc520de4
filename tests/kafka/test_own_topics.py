"""The topics that a flow keeps its books in: how they are made, and what is said of those that were there before."""
import re

import pytest

from conftest import Flow
from lab import compare, feed, heliostat
from lab.heliostat import Heliostat

FORGETS = {"cleanup.policy": "delete", "retention.ms": "10000"}


def own_topics(flow):
    """{kind: (cluster, name)}"""
    return {"positions": (flow.target, "mm2-offsets.%s.internal" % flow.a),
            "pairs": (flow.target, "mm2-heliostat.%s.internal" % flow.a),
            "checkpoints": (flow.target, "%s.checkpoints.internal" % flow.a),
            "syncs": (flow.source, "mm2-offset-syncs.%s.internal" % flow.b)}


def faults(h, code):
    return [f["text"] for f in h.status()["faults"] if f["code"] == code]


def said(h):
    """{topic: text} of what the log says of own topics; each is named once."""
    rows = re.findall(r' topic\.own flow=\S+ topic=(\S+) text="(.*?)"\n', h.log.read_text())
    assert len(dict(rows)) == len(rows), rows
    return dict(rows)


@pytest.mark.fc("FC-045")
def test_as_they_are_made(flow):
    """Compacted and nothing else, of as many partitions as MirrorMaker 2 gives them, and of the replicas that were asked for."""
    feed.create_topic(flow.source, flow.name)
    with Heliostat(flow.config(**{"offset.storage.partitions": "7"})) as h:
        h.wait_ready()
        for kind, (cluster, name) in own_topics(flow).items():
            made = feed.describe(cluster, [name])[name]
            assert made["configs"]["cleanup.policy"] == "compact" and made["replication"] == 1
            assert made["partitions"] == (7 if kind == "positions" else 1)
        assert said(h) == {}


@pytest.mark.fc("FC-045")
def test_that_forget(flow, tmp_path):
    """Positions and pairs are not trusted to a topic that forgets, also by half: the flow says what to do and waits, and goes on
    by itself when it is done. The others are used as they are, and that is said."""
    topics = own_topics(flow)
    for kind, (cluster, name) in topics.items():
        feed.create_topic(cluster, name, 1 if kind == "pairs" else 5,
                          {**FORGETS, "cleanup.policy": "compact,delete"} if kind == "pairs" else FORGETS)
    feed.create_topic(flow.source, flow.name)
    feed.write(flow.source, flow.name, [(None, b"%d" % i) for i in range(100)])
    names = {kind: name for kind, (_, name) in topics.items()}
    path = tmp_path / "mm2.properties"
    config = flow.config()
    path.write_text(heliostat.as_text(config))
    code, out, error = heliostat.command("check", str(path))
    assert code == 1, out + error
    for kind, name in names.items():
        word = "ERROR" if kind in ("positions", "pairs") else "warning"
        assert re.search(r"%s: topic %s at .*cleanup\.policy" % (word, re.escape(name)), out), out
    with Heliostat(config) as h:
        h.wait(lambda h: faults(h, "OWN_TOPIC_FORGETS"), what="the fault")
        assert any("cleanup.policy=compact" in text for text in faults(h, "OWN_TOPIC_FORGETS"))
        assert not h.partitions(flow.name) and flow.remote() not in feed.topics_of(flow.target)
        feed.set_config(flow.target, names["positions"], cleanup_policy="compact")
        h.wait(lambda h: any(names["pairs"] in text for text in faults(h, "OWN_TOPIC_FORGETS")), what="the other one")
        feed.set_config(flow.target, names["pairs"], cleanup_policy="compact")
        h.wait_copied(flow.source, [flow.name])
        h.wait(lambda h: not faults(h, "OWN_TOPIC_FORGETS"), what="the fault's end")
        told = said(h)
        assert set(told) == set(names.values())
        assert all("5 partitions, of which only the first is used" in told[names[kind]] for kind in ("checkpoints", "syncs"))
        assert "compact,delete" in told[names["pairs"]]
        assert h.stop() == 0
        h.restart()
        feed.write(flow.source, flow.name, [(None, b"more")])
        h.wait_copied(flow.source, [flow.name])


def test_whose_configs_are_hidden(guarded, pair, name):
    """Who may not read their configs is not held up, as with Connect, and it is said."""
    flow = Flow(name, pair[0], guarded)
    positions = own_topics(flow)["positions"][1]
    feed.create_topic(flow.target, positions, 25, {"cleanup.policy": "compact"})
    feed.acl(flow.target, "ALLOW", ["READ", "WRITE"], "TOPIC", positions)
    feed.create_topic(flow.source, flow.name)
    feed.write(flow.source, flow.name, [(None, b"1")])
    with Heliostat(flow.config(**{"sync.topic.acls.enabled": "false"})) as h:
        h.wait_copied(flow.source, [flow.name])
        assert "grant DescribeConfigs" in said(h)[positions] and "TOPIC_AUTHORIZATION_FAILED" in said(h)[positions]


def test_deleted_while_running(flow):
    """They are made again at the next look for topics, and what is stored from then on is found by the next process."""
    feed.create_topic(flow.source, flow.name)
    feed.write(flow.source, flow.name, [(None, b"%d" % i) for i in range(100)])
    topics = own_topics(flow)
    with Heliostat(flow.config(**{"refresh.topics.interval.seconds": "2"})) as h:
        h.wait_copied(flow.source, [flow.name])
        for cluster, name in topics.values():
            feed.delete_topics(cluster, [name])
        for cluster, name in topics.values():
            feed.wait_partitions(cluster, name, 1)
            assert feed.describe(cluster, [name])[name]["configs"]["cleanup.policy"] == "compact"
        for part in range(2):
            feed.write(flow.source, flow.name, [(None, b"%d-%d" % (part, i)) for i in range(100)])
            h.wait_copied(flow.source, [flow.name])
            assert h.stop() == 0
            h.restart()
        h.wait_ready()
        assert [m.value() for m in compare.read(flow.target, flow.remote())] == [m.value() for m in compare.read(flow.source, flow.name)]
