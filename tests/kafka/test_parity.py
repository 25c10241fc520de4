"""The same file and the same life of a source, once under the real MirrorMaker 2 and once under Heliostat, on two equal pairs of
clusters: whatever either has written is compared, and every difference must be one of those that docs/parity.md explains."""
import collections
import contextlib
import json
import re
import time

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from lab import acls, compare, feed, groups, heliostat, java
from lab.cluster import Cluster
from lab.heliostat import Heliostat
from lab.java import MirrorMaker

NOW_MS = int(time.time() * 1000)  # of all records of both pairs, so that they can be compared
TOPICS = {"orders": (3, {"retention.ms": 3600000}), "growing": (2, {}), "leaving": (1, {}), "compacted": (2, {"cleanup.policy": "compact"}),
          "changing": (1, {"retention.ms": 7200000, "max.message.bytes": 500000}), "app.internal": (1, {}), "__under": (1, {}),
          "mm2-user": (1, {}), "B.fromb": (1, {}), "left.out": (1, {})}
RULES = ("ALLOW ALL User:all orders", "ALLOW READ User:reader from 10.0.0.9 orders", "ALLOW WRITE User:writer orders",
         "DENY READ User:no growing", "ALLOW READ User:p on PREFIXED topic orders", "ALLOW READ User:all on LITERAL group g1")
GROUPS = ["g%d" % i for i in range(30)]
LINES = {
    "clusters": "A, B", "A->B.enabled": "true", "B->A.enabled": "false", "topics": ".*", "topics.exclude": r".*[\-\.]internal, __.*, left.*",
    "groups": "g.*", "groups.exclude": "g29", "replication.factor": 1, "checkpoints.topic.replication.factor": 1,
    "heartbeats.topic.replication.factor": 1, "offset-syncs.topic.replication.factor": 1, "offset.storage.replication.factor": 1,
    "status.storage.replication.factor": 1, "config.storage.replication.factor": 1, "refresh.topics.interval.seconds": 2,
    "refresh.groups.interval.seconds": 2, "sync.topic.configs.interval.seconds": 2, "sync.topic.acls.interval.seconds": 2,
    "emit.checkpoints.interval.seconds": 1, "emit.heartbeats.interval.seconds": 1, "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": 1, "offset.lag.max": 10, "offset.flush.interval.ms": 1000, "tasks.max": 2,
}


def lines(pair):
    """The file; only the addresses differ."""
    return heliostat.as_text({**LINES, "A.bootstrap.servers": pair[0].bootstrap, "B.bootstrap.servers": pair[1].bootstrap})


def rows(topic, partition, part, n=100):
    """Records that both sources get alike."""
    return [(b"%s-%d-%d" % (topic.encode(), partition, i % 40), b"%d-%d" % (part, i)) for i in range(n)]


def write(source, topic, partitions, part):
    """A hundred records into each of the partitions, with the same times on both pairs."""
    for p in partitions:
        feed.write(source, topic, rows(topic, p, part), p, timestamp=NOW_MS + part)


def begin(source):
    """What is there before the mirror starts."""
    for topic, (partitions, config) in TOPICS.items():
        feed.create_topic(source, topic, partitions, config)
        write(source, topic, range(partitions), 1)
    acls.put(source, *RULES)
    for i, group in enumerate(GROUPS):
        groups.commit(source, group, {("orders", p): (3 * i + p, "of %s" % group) for p in range(3)})


def go_on(source):
    """Topics are made, grown, altered and deleted; rules come and go; groups advance, stall, are reset and vanish."""
    feed.create_topic(source, "late", 2, {"retention.ms": 1000000})
    write(source, "late", range(2), 2)
    feed.grow_topic(source, "growing", 4)
    write(source, "growing", range(4), 2)
    feed.set_config(source, "changing", retention_ms=9000000, max_message_bytes=None, segment_ms=600000)
    feed.delete_topics(source, ["leaving"])
    acls.put(source, "ALLOW READ User:new late")
    acls.remove(source, RULES[1])
    write(source, "orders", range(3), 2)
    for group in GROUPS[:10]:
        groups.commit(source, group, {("orders", p): 150 + p for p in range(3)})
    for group in GROUPS[10:15]:
        groups.commit(source, group, {("orders", p): 1 for p in range(3)})


def vanish(source):
    """Five groups are deleted; the rest of the records comes."""
    a = feed.admin(source)  # the client must outlive its futures
    for future in a.delete_consumer_groups(GROUPS[20:25]).values():
        future.result(60)
    for topic in ("orders", "late"):
        write(source, topic, range(2), 3)
    for group in GROUPS[:5]:
        groups.commit(source, group, {("orders", p): (180, "further on") for p in range(3)})


def copied(target):
    """The copies hold what was written last."""
    counts = {"A.orders": 800, "A.growing": 600, "A.changing": 100, "A.late": 400, "A.compacted": 200, "A.mm2-user": 100, "A.leaving": 100}
    there = feed.topics_of(target)
    return all(t in there and sum(1 for _ in compare.Reader(target, t).messages()) >= n for t, n in counts.items())


def positions(target):
    """{(topic, partition): offset} as the last records of the topic of positions say."""
    out = {}
    for m in compare.read(target, "mm2-offsets.A.internal"):
        key = json.loads(m.key())
        if key[0] == "MirrorSourceConnector" and m.value():
            out[key[1]["topic"], key[1]["partition"]] = json.loads(m.value())["offset"]
    return out


def all_offsets(bootstrap):
    """{(group, topic, partition): offset} of all groups of a cluster."""
    a = feed.admin(bootstrap)
    out = {}
    for group in a.list_consumer_groups().result(60).valid:
        if group.group_id.startswith("g"):
            found = a.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group.group_id)])[group.group_id].result(60)
            out.update({(group.group_id, t.topic, t.partition): t.offset for t in found.topic_partitions if t.offset >= 0})
    return out


def dump(pair):
    """{what: value} of all that a mirror may have written on a pair."""
    out = {}
    for side, c in zip("AB", pair):
        names = [t for t in feed.topics_of(c.bootstrap) if not t.startswith("__") or t == "__under"]
        for topic, d in feed.describe(c.bootstrap, names).items():
            out.update({"%s topic %s %s" % (side, topic, k): v for k, v in d.items()})
        for rule in acls.listed(c.bootstrap):
            out["%s rule %s" % (side, " ".join(rule))] = True
    target = pair[1].bootstrap
    for topic in sorted(feed.topics_of(target)):
        if topic.startswith("A.") and not topic.endswith("internal"):
            content = collections.Counter(compare.digest(m) for m in compare.Reader(target, topic).messages())
            out["B records %s" % topic] = (sum(content.values()), hash(frozenset(content.items())))
    out.update({"position %s-%d" % k: v for k, v in positions(target).items()})
    told = {}
    for topic, p, up, down in groups.syncs(pair[0].bootstrap, "mm2-offset-syncs.B.internal"):
        told[topic, p] = (up, down)
    out.update({"last sync %s-%d" % k: v for k, v in told.items()})
    for (group, topic, p), (up, down, metadata) in groups.checkpoints(target, "A.checkpoints.internal")[0].items():
        out["checkpoint %s %s-%d" % (group, topic, p)] = (up, metadata)
        out["translation %s %s-%d" % (group, topic, p)] = down
    out.update({"offset %s %s-%d" % k: v for k, v in all_offsets(target).items()})
    beats = {(m.key(), len(m.value() or b"")) for m in compare.read(target, "heartbeats")}
    out["B heartbeats"] = sorted(beats)
    return out


def client(pair):
    """{what: value} of all that Java's MirrorClient and RemoteClusterUtils say."""
    says = java.mirror_client(pair[1].bootstrap, "A", GROUPS[0])
    out = {}
    for method, answer in says.items():
        if method == "translateOffsetsOfPattern":
            found = answer.items()
        elif method in ("translateOffsets", "remoteConsumerOffsets"):
            found = [(GROUPS[0], answer)]
        else:
            out["client " + method] = answer
            continue
        for group, offsets in found:
            out.update({"translation %s %s-%d by %s" % (group, o["topic"], o["partition"], method): o["offset"] for o in offsets})
    return out


MISSING = "(nothing)"


def is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)


# (name of the difference, of what, when it is this difference): theirs, ours
EXPLAINED = (
    ("Connect's own topics", r"[AB] topic mm2-(configs|status|offsets)\.[AB]\.internal ", lambda t, o: o == MISSING),
    ("state of our own", r"B topic mm2-heliostat\.A\.internal ", lambda t, o: t == MISSING),
    ("translation is exact", r"(translation|offset) g", lambda t, o: is_number(o) and (t == MISSING or t < o)),
    ("checkpoints that MirrorMaker 2 leaves out or behind", r"checkpoint g", lambda t, o: o != MISSING and (t == MISSING or t[0] < o[0])),
    ("a reset at the source is followed", r"(checkpoint|translation|offset) g1[0-4] A.orders-\d", lambda t, o: MISSING not in (t, o) and t > o),
    ("the tail is told", r"last sync ", lambda t, o: MISSING not in (t, o) and t < o),
    ("how long either ran", r"(B records A\.heartbeats|last sync heartbeats-0|position heartbeats-0)$", lambda t, o: MISSING not in (t, o)),
)


def differences(theirs, ours):
    """[(what, theirs, ours, the name of what explains it or None)]"""
    out = []
    for what in sorted(theirs.keys() | ours.keys()):
        t, o = theirs.get(what, MISSING), ours.get(what, MISSING)
        if t != o:
            out.append((what, t, o, next((n for n, pattern, holds in EXPLAINED if re.match(pattern, what) and holds(t, o)), None)))
    return out


def right(ours):
    """Whatever MirrorMaker 2 says: of the groups that are there, ours stand at the records that they would read next."""
    want = {}
    for i, group in enumerate(GROUPS[:29]):
        for p in range(3):
            at = 180 if i < 5 else 150 + p if i < 10 else 1 if i < 15 else 3 * i + p
            want["offset %s A.orders-%d" % (group, p)] = at
    return {k: (v, ours.get(k)) for k, v in want.items() if ours.get(k) != v}


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.parametrize("version", ["4.3.0", "3.9.1", "2.8.2"])
def test_what_both_write(version):
    clusters = [Cluster(version, name="%s-%s" % (who, side)) for who in ("mm2", "ours") for side in ("source", "target")]
    with contextlib.ExitStack() as stack:
        for c in clusters:
            stack.callback(c.stop)
            c.launch()
        for c in clusters:
            c.wait_ready()
        theirs, ours = clusters[:2], clusters[2:]
        for c in (theirs[0], ours[0]):
            begin(c.bootstrap)
        mm2 = stack.enter_context(MirrorMaker(lines(theirs), version))
        h = stack.enter_context(Heliostat(lines(ours)))
        for pair in (theirs, ours):
            groups.wait(lambda pair=pair: "A.leaving" in feed.topics_of(pair[1].bootstrap), 240)
            groups.wait(lambda pair=pair: sum(1 for _ in compare.Reader(pair[1].bootstrap, "A.leaving").messages()) == 100, 240)
            go_on(pair[0].bootstrap)
        groups.wait(lambda: all(feed.partitions_of(p[1].bootstrap, "A.late") and feed.partitions_of(p[1].bootstrap, "A.growing") == 4
                                for p in (theirs, ours)), 240)
        mm2.terminate()
        assert h.stop() == 0
        for pair in (theirs, ours):
            vanish(pair[0].bootstrap)
        stack.enter_context(MirrorMaker(lines(theirs), version))
        h.restart()
        for pair in (theirs, ours):
            groups.wait(lambda pair=pair: copied(pair[1].bootstrap), 240)
        end, left, wrong = time.monotonic() + 120, None, None
        while time.monotonic() < end:  # rounds of configs, rules, checkpoints and positions come in their own time
            ours_now = {**dump(ours), **client(ours)}
            found, wrong = differences({**dump(theirs), **client(theirs)}, ours_now), right(ours_now)
            left = [d for d in found if not d[3]]
            if not left and not wrong:
                break
            time.sleep(3)
        for name, n in collections.Counter(d[3] or "NOT EXPLAINED" for d in found).items():
            print("\n%s: %d" % (name, n), end="")
        print()
        for what, t, o, _ in left:
            print("%s\n  MirrorMaker 2: %s\n  Heliostat:     %s" % (what, t, o))
        assert not left and not wrong, (len(left), wrong)
        assert h.stop() == 0
