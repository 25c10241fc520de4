"""The internal topics, byte for byte as MirrorMaker 2 writes them (tests/kafka/golden holds what it wrote)."""
import json
import pathlib

import pytest

from lab import compare, feed, heliostat
from lab.cluster import Cluster
from lab.heliostat import Heliostat

GOLDEN = pathlib.Path(__file__).parent / "golden"


def golden(name):
    """The records of one golden file."""
    rows = [json.loads(line) for line in (GOLDEN / name).read_text().splitlines()]
    return [dict(r, key=bytes.fromhex(r["key_hex"]), value=bytes.fromhex(r["value_hex"])) for r in rows]


@pytest.fixture(scope="module")
def written():
    """The clusters A and B of the golden run: three partitions of "orders" with 1000, 250 and 50 records."""
    with Cluster("4.3.0", name="A") as a, Cluster("4.3.0", name="B") as b:
        feed.create_topic(a.bootstrap, "orders", 3)
        for partition, count in enumerate((1000, 250, 50)):
            feed.write(a.bootstrap, "orders", [(b"k%d" % i, b"v%d" % i) for i in range(count)], partition)
        lines = heliostat.config(a.bootstrap, b.bootstrap, "A", "B", "orders",
                                 **{"B->A.enabled": "true", "emit.heartbeats.interval.seconds": 1})
        with Heliostat(lines) as h:
            h.wait_copied(a.bootstrap, ["orders"])
            h.wait(lambda h: all("heartbeats" in feed.topics_of(c.bootstrap) for c in (a, b)), what="heartbeats")
            h.wait(lambda h: "B.heartbeats" in feed.topics_of(a.bootstrap), what="mirrored heartbeats")
            h.wait(lambda h: compare.read(a.bootstrap, "B.heartbeats") and compare.read(b.bootstrap, "A.heartbeats"),
                   what="heartbeat records")
            assert h.stop() == 0
        yield a, b


def test_positions(written):
    topic = "mm2-offsets.A.internal"
    assert feed.describe(written[1].bootstrap, [topic])[topic] == {
        "partitions": 25, "replication": 1, "configs": {"cleanup.policy": "compact"}}
    last = {}
    for m in compare.read(written[1].bootstrap, topic):
        last[m.key()] = (m.partition(), m.value(), m.headers() or [])
    for row in golden("mm2-4.3.0-offsets.jsonl"):
        assert last[row["key"]] == (row["partition"], row["value"], row["headers"])


def test_heartbeats(written):
    """Key, length and version of the value; the time in it is now."""
    for row in golden("mm2-4.3.0-heartbeats.jsonl"):
        side, _, topic = row["topic"].partition(".")
        found = compare.read(written[side == "B"].bootstrap, topic)
        mine = [m for m in found if m.key() == row["key"]]
        assert mine, "no record of %s on %s has the key %s" % (topic, side, row["key"])
        for m in mine:
            assert len(m.value()) == len(row["value"]) and m.value()[:2] == row["value"][:2]
            assert abs(int.from_bytes(m.value()[2:], "big") - m.timestamp()[1]) < 10000
            assert not m.headers() and m.partition() == row["partition"]


def test_heartbeats_topic(written):
    for side in written:
        topic = feed.describe(side.bootstrap, ["heartbeats"])["heartbeats"]
        assert topic["partitions"] == 1 and topic["configs"].get("cleanup.policy") == "compact"
