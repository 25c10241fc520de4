"""Names, prefixes and separators where it breaks for people who mirror Kafka."""
import json
import re
import struct

import pytest

from conftest import Flow
from lab import compare, feed, groups, heliostat, wire
from lab.heliostat import Heliostat
from lab.java import MirrorMaker
from test_checkpoints import QUICK
from test_group_cases import arrives, position, refusals, rounds, rows, seen_through  # noqa: F401 (the last is a fixture)

OFFSET_COMMIT = 8


def commit_as_nobody(bootstrap, topic, offset):
    """A position of the group with the empty name, which no client library lets through."""

    def text(s):
        return struct.pack(">h", len(s)) + s.encode()

    body = text("") + struct.pack(">i", -1) + text("") + struct.pack(">hi", -1, 1) + text(topic)
    answer = wire.ask(bootstrap, OFFSET_COMMIT, 7, body + struct.pack(">iiqi", 1, 0, offset, -1) + text(""), False)
    assert answer[-2:] == b"\0\0", answer


LABELS = r'(?:\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"(?:,(?!\})|(?=\})))*\})?'
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(" + LABELS + r") (NaN|[+-]Inf|-?[0-9.]+(?:e[+-]?[0-9]+)?)")


def strictly(page):
    """{name: {labels: value}} of a page of metrics: families are whole, have HELP and TYPE in front, and no sample is there twice."""
    out, current = {}, None
    assert page.endswith("\n")
    for line in page[:-1].split("\n"):
        comment = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if comment and comment[1] == "HELP":
            current = comment[2]
            assert current not in out, line
            out[current] = {}
        elif comment:
            assert comment[2] == current and not out[current] and comment[3] in ("counter", "gauge", "histogram"), line
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample and re.sub(r"_(bucket|sum|count)$", "", sample[1]) in (current, re.sub(r"_(bucket|sum|count)$", "", current)), line
            assert sample[1] + sample[2] not in out[current], line
            out[current][sample[1] + sample[2]] = float(sample[3])
    return out


@pytest.mark.fc("FC-022")
def test_odd_names(build, flow):
    """Of topics and groups: each is itself, in the copies, the positions and the metrics; also the group without a name, which brokers take
    for one as every other."""
    n = flow.name
    topics = {n: 2, n + "-1": 2, n + "-1-0": 1, n + "_B.c-d": 1, n + "-" + "x" * (239 - len(n)): 1}
    odd = [n + end for end in (" 1", "#1", "/1", ":1", "-grün", '"\\{}', "-" + "y" * 299)]
    for i, (topic, partitions) in enumerate(topics.items()):
        feed.create_topic(flow.source, topic, partitions)
        for p in range(partitions):
            feed.write(flow.source, topic, rows(0, 20 + i + 10 * p), p)
    for i, group in enumerate(odd):
        groups.commit(flow.source, group, {(topic, 0): i + 1 for topic in topics})
    commit_as_nobody(flow.source, n, 9)
    with Heliostat({**flow.config(n + ".*"), **QUICK}) as h:
        h.wait_copied(flow.source, topics)
        for topic in topics:
            result = compare.topics(flow.source, topic, flow.target, flow.remote(topic))
            assert result.equal, (topic, str(result))
        for i, group in enumerate(odd):
            for topic in topics:
                arrives(flow, group, flow.remote(topic), 0, i + 1)
        groups.wait(lambda: groups.checkpoints(flow.target, flow.a + ".checkpoints.internal")[0].get(("", flow.remote(n), 0)) == (9, 9, ""))
        rounds(h)
        assert not refusals(h)
        page = strictly(h.get("/metrics")[1])
        own = [s for s in page["heliostat_partition_records_total"] if 'source="%s"' % flow.a in s]
        want = {(t, p): 20 + i + 10 * p for i, (t, parts) in enumerate(topics.items()) for p in range(parts)}
        have = {}
        for s in own:
            topic, partition = re.search(r'topic="([^"]*)"', s)[1], int(re.search(r'partition="([^"]*)"', s)[1])
            have[topic, partition] = page["heliostat_partition_records_total"][s]
        assert {k: v for k, v in have.items() if k[0] in topics} == want
        assert json.loads(h.get("/v1/status")[1])


def fill(flow, topic, first, last):
    feed.write(flow.source, topic, rows(first, last))


@pytest.mark.fc("FC-044")
@pytest.mark.parametrize("switch", [None, "false"])
@pytest.mark.parametrize("separator", ["_", "__"])
def test_names_with_a_separator(build, flow, separator, switch):
    """Names of internal topics as MirrorMaker 2 has them; those in the other spelling, of other releases, are no data."""
    sep, other = (separator, ".") if switch is None else (".", separator)
    lines = {**flow.config("(mm2.*)?%s([^0-9].*)?" % flow.name), **QUICK, "replication.policy.separator": separator, "topics.exclude": "nothing",
             "groups": flow.name + ".*"}
    if switch:
        lines["replication.policy.internal.topic.separator.enabled"] = switch
    old = ["mm2-offset-syncs%s%sx%sinternal" % (other, flow.name, other), "%sx%scheckpoints%sinternal" % (flow.name, other, other)]
    copy, group = flow.a + separator + flow.name, flow.name + "-g"
    for topic in (flow.name, *old):
        feed.create_topic(flow.source, topic)
        fill(flow, topic, 0, 100)
    groups.commit(flow.source, group, {(flow.name, 0): 40})
    syncs, told = sep.join(("mm2-offset-syncs", flow.b, "internal")), sep.join((flow.a, "checkpoints", "internal"))
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [flow.name])
        groups.wait(lambda: position(flow, group, copy) == 40)
        groups.wait(lambda: groups.checkpoints(flow.target, told)[0].get((group, copy, 0)) == (40, 40, ""))
        groups.wait(lambda: any(s[0] == flow.name for s in groups.syncs(flow.source, syncs)))
        h.wait_ready()
        here = {side: {t for t in feed.topics_of(b) if flow.a in t or flow.b in t} for side, b in
                (("source", flow.source), ("target", flow.target))}
        assert here["source"] == {syncs} | {t for t in here["source"] if t.startswith("mm2-") and t.endswith(".%s.internal" % flow.b)}
        extra = here["target"] - {copy, told} - {"mm2-%s.%s.internal" % (kind, flow.a) for kind in ("offsets", "heliostat")}
        assert all(t == flow.a + separator + "heartbeats" for t in extra), extra
        log = h.log.read_text()
        assert all('topic=%s why="an internal topic"' % t in log for t in old)


@pytest.mark.java
@pytest.mark.fc("FC-044")
@pytest.mark.parametrize("switch", [None, "false"])
def test_what_mm2_left_with_a_separator(flow, switch):
    """Its state is found under its names, nothing is copied again, and no topic is made beside them."""
    lines = {**flow.config(), **QUICK, "replication.policy.separator": "_", "emit.heartbeats.enabled": "false",
             flow.b + ".offset.flush.interval.ms": 1000}
    if switch:
        lines["replication.policy.internal.topic.separator.enabled"] = switch
    copy, group = flow.a + "_" + flow.name, flow.name + "-g"
    feed.create_topic(flow.source, flow.name)
    fill(flow, flow.name, 0, 200)
    groups.commit(flow.source, group, {(flow.name, 0): 200})
    with MirrorMaker(heliostat.as_text({**lines, "groups": flow.name + ".*"})) as mm2:
        mm2.wait(lambda: copy in feed.topics_of(flow.target) and len(compare.read(flow.target, copy)) == 200, what="records")
        mm2.wait(lambda: position(flow, group, copy) is not None, what="the group")
        mm2.terminate()
    before = {side: {t for t in feed.topics_of(b) if flow.a in t or flow.b in t} for side, b in
              (("source", flow.source), ("target", flow.target))}
    fill(flow, flow.name, 200, 250)
    with Heliostat({**lines, "groups": flow.name + ".*"}) as h:
        h.wait_copied(flow.source, [flow.name])
        groups.commit(flow.source, group, {(flow.name, 0): 220})
        groups.wait(lambda: position(flow, group, copy) == 220)
        after = {side: {t for t in feed.topics_of(b) if flow.a in t or flow.b in t} for side, b in
                 (("source", flow.source), ("target", flow.target))}
        assert after["source"] == before["source"]
        assert after["target"] - before["target"] == {"mm2-heliostat.%s.internal" % flow.a}
    assert [m.value() for m in compare.read(flow.target, copy)] == [v for _, v in rows(0, 250)]


# Where the id of a client may stand, strongest first; what follows it there.
PLACES = {
    "source": {
        "|MirrorSourceConnector-0|replication-consumer": ("{f}.source.consumer", "{a}.consumer", "{f}.consumer"),
        "|MirrorSourceConnector-0|offset-syncs-source-producer": ("{f}.source.producer", "{a}.producer", "{f}.producer"),
        "|MirrorSourceConnector|replication-source-admin": ("{f}.source.admin", "{a}.admin", "{f}.admin"),
    },
    "target": {
        None: ("{f}.producer.override", "{b}.producer"),
        "|MirrorSourceConnector|replication-target-admin": ("{f}.target.admin", "{b}.admin", "{f}.admin"),
    },
}
NOWHERE = ("consumer", "producer", "admin", "source.consumer", "target.producer", "producer.override")  # that MirrorMaker 2 does not read
ONE_BY_ONE = {"{f}.source.consumer": "fsc", "{a}.consumer": "ac", "{f}.consumer": "fc", "{f}.source.producer": "fsp", "{a}.producer": "ap",
              "{f}.producer": "fp", "{f}.source.admin": "fsa", "{a}.admin": "aa", "{f}.admin": "fa", "{f}.producer.override": "fpo",
              "{b}.producer": "bp", "{f}.target.admin": "fta", "{b}.admin": "ba"}


def prefixed(flow, left):
    """The lines with an id in all places but the strongest ones, of which only so many of each client are left."""
    gone = {p for clients in PLACES.values() for places in clients.values() for p in places[:max(len(places) - left, 0)]}
    names = {p: p.format(a=flow.a, b=flow.b, f="%s->%s" % (flow.a, flow.b)) for p in ONE_BY_ONE}
    return {**{names[p] + ".client.id": label for p, label in ONE_BY_ONE.items() if p not in gone},
            **{n + ".client.id": "nowhere" for n in NOWHERE}}


def expected(flow, side, left):
    """The ids that a broker of this side sees of the clients of PLACES."""
    out = set()
    for tail, places in PLACES[side].items():
        there = places[max(len(places) - left, 0):]
        label = ONE_BY_ONE[there[0]] if there else ""
        if tail is None:
            out.add(label or "connector-producer-MirrorSourceConnector-0")
        else:
            out.add("%s%s%s->%s%s" % (label, "|" if label else "", flow.a, flow.b, tail))
    return out


def between(pair, seen_through, side, name):
    """A flow whose source or target is seen, and the lines that lead the mirror through the proxy."""
    direct, proxy = seen_through
    flow = Flow(name, *pair)
    if side == "source":
        flow.source = direct
    else:
        flow.target = direct
    lines = {**flow.config(), **QUICK, "groups": name + ".*",
             (flow.a if side == "source" else flow.b) + ".bootstrap.servers": "127.0.0.1:%d" % proxy.port}
    feed.create_topic(flow.source, name)
    fill(flow, name, 0, 10)
    groups.commit(flow.source, name + "-g", {(name, 0): 5})
    proxy.clients.clear()
    return flow, lines


def seen_ids(proxy):
    """All ids of clients."""
    return {client for (_, client) in list(proxy.clients)}


@pytest.mark.fc("FC-040")
@pytest.mark.parametrize("left", [3, 2, 1, 0])
@pytest.mark.parametrize("side", ["source", "target"])
def test_which_prefix_wins(pair, seen_through, name, side, left, tmp_path):  # noqa: F811
    """The brokers see the id of the strongest place, as of MirrorMaker 2; keys under prefixes that nobody reads are named."""
    flow, lines = between(pair, seen_through, side, name)
    lines.update(prefixed(flow, left))
    lines[flow.b + ".producer.compression.type"] = "gzip"
    lines["%s->%s.target.consumer.client.id" % (flow.a, flow.b)] = "nowhere"
    path = tmp_path / "mm2.properties"
    path.write_text(heliostat.as_text(lines))
    code, out, error = heliostat.command("check", "--offline", str(path))
    said = out + error
    assert code == 0 and all(re.search(r":\d+: %s\.client\.id: warning: " % re.escape(n), said) for n in NOWHERE), said
    assert "target.consumer.client.id: warning: has no effect here" in said, said
    assert "%s.producer.compression.type: warning: has no effect: batches keep the compression" % flow.b in said, said
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [name])
        want = expected(flow, side, left)
        h.wait(lambda h: want <= seen_ids(seen_through[1]), what="clients named %s" % want)
        rounds(h)
        ids = seen_ids(seen_through[1])
        tails = [t for t in PLACES[side] if t]
        assert {i for i in ids if i.endswith(tuple(tails))} == {i for i in want if i.endswith(tuple(tails))}, ids
        assert not any("nowhere" in i for i in ids), ids


@pytest.mark.java
@pytest.mark.fc("FC-040")
@pytest.mark.parametrize("left", [3, 2, 1])
def test_which_prefix_wins_in_mm2(pair, seen_through, name, left):  # noqa: F811
    """The same table holds for MirrorMaker 2 itself, as its source sees it."""
    side = "source"
    flow, lines = between(pair, seen_through, side, name)
    lines.update(prefixed(flow, left))
    with MirrorMaker(heliostat.as_text(lines)) as mm2:
        want = expected(flow, side, left)
        mm2.wait(lambda: want <= seen_ids(seen_through[1]), what="%s; there are %s" % (want, seen_ids(seen_through[1])))
        assert not any("nowhere" in i for i in seen_ids(seen_through[1]))
