"""Files written for MirrorMaker 2 run unchanged, and what comes out equals what MirrorMaker 2 makes of them."""
import contextlib
import pathlib
import re
import time

import pytest

from lab import compare, feed, heliostat
from lab.cluster import Cluster
from lab.heliostat import Heliostat
from lab.java import MirrorMaker

GOLDEN = pathlib.Path(__file__).parent / "golden"
FILES = sorted(p.name for p in GOLDEN.glob("*.properties"))
TWO_CLUSTERS = [f for f in FILES if f != "docs-sites.properties"]
TOPICS = {  # name: (partitions, configs); each golden file finds some of its own among them
    "orders": (3, {"retention.ms": 3600000, "max.message.bytes": 2000000}),
    "compacted": (2, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.1, "message.timestamp.type": "LogAppendTime"}),
    "tiny": (1, {"compression.type": "lz4", "retention.bytes": 1048576, "flush.messages": 100}),
    "empty": (2, {}), "app.internal": (1, {}), "app-internal": (1, {}), "x.replica": (1, {}), "x.heartbeats": (1, {}),
    "__under": (1, {}), ".hidden": (1, {}), "mm2-user": (1, {}), "B.fromb": (1, {}), "C.fromc": (1, {}),
    "eos-plain": (3, {}), "eos-txn": (1, {}), "id-plain": (3, {"retention.bytes": 10**8}), "v28-plain": (2, {"segment.bytes": 2097152}),
}


def fitted(name, first, second):
    """A file with the addresses of two lab clusters in the place of those it was written for; nothing else changes."""
    text = (GOLDEN / name).read_text()
    aliases = re.findall(r"^(\S+)\.bootstrap\.servers\s*=", text, re.M)
    for alias, address in zip(aliases, (first, second)):
        text = re.sub(r"^(%s\.bootstrap\.servers\s*=).*$" % re.escape(alias), r"\1 " + address, text, flags=re.M)
    return text, aliases


def fill(bootstrap):
    """The topics that the files are about."""
    for topic, (partitions, config) in TOPICS.items():
        feed.create_topic(bootstrap, topic, partitions, config)
        if topic != "empty":
            rows = [(b"k%d" % i, b"v%d" % i) for i in range(50)]
            for partition in range(partitions):
                feed.write(bootstrap, topic, rows, partition)


@pytest.fixture(scope="module")
def filled():
    """A source with the topics of the files and an empty target, both for this module only."""
    with Cluster("4.3.0", name="files-source") as source, Cluster("4.3.0", name="files-target") as target:
        fill(source.bootstrap)
        yield source, target


@pytest.mark.parametrize("name", FILES)
def test_check_without_network(tmp_path, name):
    """Every file is read without an error; keys that mean nothing are named."""
    code, out, error = heliostat.command("check", str(GOLDEN / name), "--offline")
    assert code == 0, error
    text = out + error
    for flow in re.findall(r"^([\w-]+->[\w-]+)\.enabled\s*=\s*true$", (GOLDEN / name).read_text(), re.M):
        assert flow in text.replace(" ", "")
    if "alo" in name:
        for key in ("some.unknown.key", "another.unknown.key", "unknown.client.key"):
            assert key in text


def test_check_names_the_traps_of_the_documentation():
    code, out, error = heliostat.command("check", str(GOLDEN / "docs-override.properties"), "--offline")
    text = out + error
    assert code == 0, text
    assert "us-west->us-east.enabled" in text, "a comment behind the value makes it something else than true"
    assert "emit.heartbeats.enabled" in text, "the nearest known name of emit.heartbeats"
    assert "sync.group.offsets.enabled" in text, "the nearest known name of sync.group.offsets"


@pytest.mark.parametrize("name", TWO_CLUSTERS)
def test_check_prints_the_plan(tmp_path, filled, name):
    text, aliases = fitted(name, *(c.bootstrap for c in filled))
    path = tmp_path / name
    path.write_text(text)
    before = feed.topics_of(filled[1].bootstrap)
    code, out, error = heliostat.command("check", str(path))
    assert code == 0, out + error
    expected = {"mm2-4.3.0-eos": "%s.eos-plain", "mm2-4.3.0-identity": "id-plain", "mm2-2.8.2-alo": "%s.v28-plain",
                "docs-override": None}.get(path.stem, "%s.orders")
    if expected:
        assert (expected % aliases[0] if "%s" in expected else expected) in out
    assert feed.topics_of(filled[1].bootstrap) == before, "check has changed something"


@pytest.mark.parametrize("name", TWO_CLUSTERS)
def test_file_runs(filled, name):
    text, aliases = fitted(name, *(c.bootstrap for c in filled))
    topics = {"mm2-4.3.0-eos": ["eos-plain", "eos-txn"], "mm2-4.3.0-identity": ["id-plain"],
              "mm2-2.8.2-alo": ["v28-plain"], "docs-override": []}.get(name[:-len(".properties")], ["orders", "tiny"])
    with Heliostat(text) as h:
        h.wait_ready()
        if topics:
            h.wait_copied(filled[0].bootstrap, topics)
        for topic in topics:
            copy = topic if "identity" in name else "%s.%s" % (aliases[0], topic)
            assert compare.topics(filled[0].bootstrap, topic, filled[1].bootstrap, copy).equal
        assert h.stop() == 0


OWN_NAMES = re.compile(r"mm2-.*\.internal|__.*|.*\.checkpoints\.internal")


def settled(theirs, ours, copies, quiet=5, limit=240):
    """Waits until both pairs have had the same topics for a while (their own internal ones aside), the copies among them, and
    describes all."""
    end, last, since = time.monotonic() + limit, None, time.monotonic()
    while time.monotonic() < end:
        now = [feed.topics_of(c.bootstrap) for c in (*theirs, *ours)]
        names = [{t for t in topics if not OWN_NAMES.fullmatch(t)} for topics in now]
        if now != last or names[:2] != names[2:] or not copies <= names[1]:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > quiet:
            break
        time.sleep(0.5)
    described = [feed.describe(c.bootstrap, topics) for c, topics in zip((*theirs, *ours), last)]
    return [{side + " " + t: d for side, topics in zip(("source", "target"), described[i:i + 2]) for t, d in topics.items()}
            for i in (0, 2)]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.parametrize("name, copies", [
    ("mm2-4.3.0-alo.properties", {"A.orders", "A.compacted", "A.tiny", "A.empty"}),
    ("mm2-4.3.0-identity.properties", {"id-plain"}),
], ids=["alo", "identity"])
def test_topics_equal_those_of_mirrormaker(name, copies):
    """Two identical pairs, one for MirrorMaker 2 and one for us: names, partitions and configs of all topics."""
    clusters = [Cluster("4.3.0", name="parity-" + side) for _ in range(2) for side in ("source", "target")]
    with contextlib.ExitStack() as stack:
        for c in clusters:
            stack.callback(c.stop)
            c.launch()
        for c in clusters:
            c.wait_ready()
        for source in clusters[::2]:
            fill(source.bootstrap)
        for runner, pair in ((MirrorMaker, clusters[:2]), (Heliostat, clusters[2:])):
            stack.enter_context(runner(fitted(name, *(c.bootstrap for c in pair))[0]))
        theirs, ours = settled(clusters[:2], clusters[2:], copies)
    different = {t: (theirs.get(t), ours.get(t)) for t in sorted(theirs.keys() | ours.keys()) if theirs.get(t) != ours.get(t)}
    for topic, (a, b) in different.items():
        print("\n%s\n  MirrorMaker 2: %s\n  Heliostat:     %s" % (topic, a, b))
    assert {"target " + t for t in copies} <= theirs.keys() and len(theirs) > len(TOPICS)
    assert not [t for t in different if not OWN_NAMES.fullmatch(t.partition(" ")[2])]


@pytest.mark.long
@pytest.mark.java
def test_takes_over_from_mirrormaker(flow):
    """MirrorMaker 2 copies, is stopped; the same file goes on here: nothing twice, nothing left out."""
    feed.create_topic(flow.source, flow.name, 3)
    feed.mixed(flow.source, flow.name, 1000, 3)
    lines = flow.config()
    with MirrorMaker(heliostat.as_text(lines)) as mm2:
        mm2.wait(lambda: feed.partitions_of(flow.target, flow.remote()) == 3 and
                 len(compare.read(flow.target, flow.remote())) == 1000, what="1000 records")
        with Heliostat(lines) as early:  # the two are never at it together: they share a group
            early.wait(lambda h: "INCONSISTENT_GROUP_PROTOCOL" in str(h.status()["faults"]) and "MirrorMaker 2" in h.ready()[1],
                       what="the refusal")
            assert early.flow(flow.a, flow.b)["state"] == "waiting" and early.stop() == 0
        mm2.terminate()
    feed.mixed(flow.source, flow.name, 1000, 3, seed=2)
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == 2000, str(result)
        assert sum(p["records"] for p in h.partitions(flow.name)) == 1000
        assert h.stop() == 0
    feed.mixed(flow.source, flow.name, 500, 3, seed=3)
    with MirrorMaker(heliostat.as_text(lines)) as mm2:  # and back
        mm2.wait(lambda: len(compare.read(flow.target, flow.remote())) >= 2500, what="2500 records")
        time.sleep(1)
    result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
    assert result.equal and result.records == 2500, str(result)
