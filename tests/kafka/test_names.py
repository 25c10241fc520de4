"""Which topics are copied where the lists of the file alone do not tell, and what is said of it."""
import re

import pytest

from lab import feed, heliostat
from lab.heliostat import Heliostat


def fill(flow, names):
    for name in names:
        feed.create_topic(flow.source, name)
        feed.write(flow.source, name, [(None, b"1")])


def said(h, event):
    """{topic: why} of the lines of an event; each topic has one."""
    rows = re.findall(r' %s flow=\S+ topic=(\S+) why="?(.*?)"?\n' % re.escape(event), h.log.read_text())
    assert len(dict(rows)) == len(rows), rows
    return dict(rows)


@pytest.mark.fc("FC-018")
def test_names_that_look_like_heartbeats(flow):
    """They are copied whatever topics says, as with MirrorMaker 2, unless that is switched off; and the log says so."""
    dot, dash, orders = names = [flow.name + end for end in (".heartbeats", "-heartbeats", "-orders")]
    fill(flow, names)
    for i, (lines, extra) in enumerate([({}, {dot}), ({"replication.policy.separator": "-"}, {dash}),
                                        ({"heartbeats.replication.enabled": "false"}, set())]):
        alias = "%s%d" % (flow.a, i)
        own = alias + lines.get("replication.policy.separator", ".")
        with Heliostat(heliostat.config(flow.source, flow.target, alias, flow.b, orders, **lines)) as h:
            h.wait_copied(flow.source, [orders, *extra])
            here = {t[len(own):] for t in feed.topics_of(flow.target) if t.startswith(own + flow.name)}
            assert here == {orders, *extra}
            h.wait_ready()
            by_rule = {t: why for t, why in said(h, "topic.by-rule").items() if t.startswith(flow.name)}
            assert set(by_rule) == extra and all("heartbeats.replication.enabled" in why for why in by_rule.values())


@pytest.mark.fc("FC-020")
@pytest.mark.parametrize("exclude", [None, "nothing"])
def test_names_that_look_like_internal_topics(flow, exclude):
    """They are left out although topics accepts them, by the rules of MirrorMaker 2 4.0 and later; each is named once, with
    the rule."""
    plain, excluded = [flow.name + end for end in ("-orders.internal", "-pay-internal", "-internal.v2")], flow.name + "-x.replica"
    internal = [name % flow.name for name in (".%s-raw", "__%s-audit", "mm2-%s.internal", "%s-x.checkpoints.internal")]
    fill(flow, [*plain, excluded, *internal])
    lines = {} if exclude is None else {"topics.exclude": exclude}
    with Heliostat(flow.config(r"(\\.|__|mm2-|)%s[-.].*" % flow.name, **lines)) as h:
        wanted = plain if exclude is None else [*plain, excluded]
        h.wait_copied(flow.source, wanted)
        fill(flow, [flow.name + "-late"])  # is seen by another look
        h.wait_copied(flow.source, [flow.name + "-late"])
        copies = {t for t in feed.topics_of(flow.target) if t.startswith(flow.a + ".") and flow.name in t[len(flow.a):]}
        assert copies == {flow.remote(t) for t in [*wanted, flow.name + "-late"]}
        left = {t: why for t, why in said(h, "topic.left-out").items() if flow.name in t}
        assert set(left) == {*internal, *([excluded] if exclude is None else [])}, left
        assert all(left[t] == "an internal topic" for t in internal) and (exclude or "excluded by" in left[excluded]), left


FILES = [  # what stands in the file beside two clusters; exit code of `check --offline`; what it says
    ("clusters = a, b,", 0, ""),
    ("clusters = a, b\na ->b.enabled = true", 0, "a blank ends a key"),
    ("clusters = a, b\na->c.enabled = true", 0, "did you mean a->b.enabled?"),
    ("clusters =", 2, "clusters"),
    ("", 2, "clusters"),
    ("clusters = a, b, c\na->b.enabled = true\na->c.enabled = true", 2, "c.bootstrap.servers"),
    ("clusters = a, b\na->b.enabled = false", 0, ""),
    ("clusters = a, b\r\na->b.enabled = true\r", 0, ""),
    ("\ufeffclusters = a, b\na->b.enabled = true", 0, "flow a->b: exactly-once"),
    ("! a comment\nclusters = a, b\na->b.enabled = true", 0, ""),
    ("clusters: a, b\na->b.enabled: true", 0, ""),
    ("clusters = a, b\na->b.enabled = true\na->b.enabled = false", 0, "enabled"),
    ("clusters = a, b\na->b.enabled = true  \na->b.topics = t  ", 0, ""),
    ("clusters = a, b\na->b.enabled = maybe", 2, "maybe"),
    ("clusters = a, b\na->b.enabled = true\na->b.topics = [", 2, "topics"),
    ("clusters = a, b\nA->B.enabled = true", 0, "did you mean a->b.enabled?"),
    ("clusters = a, a\na->a.enabled = true", 2, "a"),
    ("clusters = a, b\na->b.enabled = true\noffset.flush.interval.ms = ten", 0, "write TARGET.offset.flush.interval.ms"),
    ("clusters = a, b\na->b.enabled = true\nreplication.factor = 99999", 2, "replication.factor"),
    ("clusters = a, b\na->b.enabled = true\ntopics = \\u12", 2, "four hexadecimal digits"),
]


@pytest.mark.fc("FC-038")
def test_small_mistakes_in_the_file(tmp_path):
    """Never a crash: read as MirrorMaker 2 reads it, or refused with the line or key."""
    wrong = []
    for i, (text, code, said_of) in enumerate(FILES):
        path = tmp_path / ("%d.properties" % i)
        path.write_bytes((text + "\na.bootstrap.servers = one:1\nb.bootstrap.servers = two:1\n").encode())
        got, out, error = heliostat.command("check", "--offline", str(path))
        if got != code or said_of not in out + error:
            wrong.append((text, got, out + error))
    assert not wrong, "\n".join(map(repr, wrong))
