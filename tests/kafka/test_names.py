"""Which topics are copied where the lists of the file alone do not tell, and what is said of it."""
import json
import re

import pytest

from lab import feed, heliostat, java
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


NAMES = ["t", "t1", "t2", "t12", "T1", "t.1", "t-1", "ta", "tb", "a", "b", "ab", "a.b", "orders", "orders.eu", "orders-eu", "x1", "x22",
         "grill", "t1.replica"]
LISTS = [  # lines of the file, "@" is what all names begin with; which of the names are taken, or what is said of the file
    ("topics = @t1", "t1"),
    ("topics = @t{1,2}", "the list is split at commas first"),
    ("topics = @t{2}", ""),  # tt
    ("topics = *", "a quantifier with nothing before it at byte 0"),
    ("topics = @t*", "t"),
    ("topics = @t", "t"),
    ("topics = @t.", "t1 t2 ta tb"),
    ("topics = @t.*", "t t1 t2 t12 t.1 t-1 ta tb"),
    ("topics = @t\\.1", "t-1 t.1"),  # the file takes one backslash away
    ("topics = @t\\\\.1", "t.1"),
    ("topics = @t\\1", "t1"),
    ("topics = @t\\\\1", ""),  # a group that is not there never matches
    ("topics =   @t1 , @t2 ", "t1 t2"),
    ("topics = @a|@b", "a b"),
    ("topics = @a|b", "a"),
    ("topics = (?i)@T1", "t1 T1"),
    ("topics = (?i)@T1, @TA", "t1 T1 ta"),  # the flag goes on in the next element
    ("topics = @t1, (?i)@TA", "t1 ta"),
    ("topics = [", "unclosed character class"),
    ("topics = @t[12", "unclosed character class"),
    ("topics = @(a", "unclosed group"),
    ("topics = @a)", "topics"),
    ("topics =", ""),
    ("topics = @t1,\\\n    @t2", "t1 t2"),  # a line goes on
    ("topics = @\\u0074\\u0031", "t1"),
    ("topics = @t[^a-z]", "t1 t2"),
    ("topics = @(?:t|x)\\\\d+", "t1 t2 t12 x1 x22"),
    ("topics = @\\\\Qt.1\\\\E", "t.1"),
    ("topics = @t(?!1).*", "t t2 t.1 t-1 ta tb"),
    ("topics = @orders[._-]eu", "orders.eu orders-eu"),
    ("topics = @orders, orders.*", "orders"),
    ("topics = @.*\ntopics.exclude = @t.*, @[a-z]+", "T1 a.b orders.eu orders-eu x1 x22"),
    ("topics = @t1.*", "t1 t12"),  # the default topics.exclude has .replica
    ("topics = @t1.*\ntopics.exclude =", "t1 t12 t1.replica"),
    ("topics = @t1.*\ntopics.exclude = nothing", "t1 t12 t1.replica"),
    ("topics.exclude = [", "topics.exclude"),
    ("topics = @x1\na->b.topics = @x22", "x22"),
    ("topics = @x1\na.topics = @x22", "x1"),
    ("topics = @x1\ntopics : @x22", "x22"),
    ("groups = @g{1,2}", "groups"),
    ("groups.exclude = *", "groups.exclude"),
]


def list_files(folder, prefix, source="one:1", target="two:1"):
    """The files of the table."""
    paths = [folder / ("%02d.properties" % i) for i in range(len(LISTS))]
    for path, (text, _) in zip(paths, LISTS):
        path.write_text("clusters = a, b\na.bootstrap.servers = %s\nb.bootstrap.servers = %s\na->b.enabled = true\n"
                        "replication.factor = 1\n%s\n" % (source, target, text.replace("@", prefix)))
    return paths


def refused(want):
    """Whether the table has a text instead of names."""
    return any(word not in NAMES for word in want.split())


def taken(path, prefix):
    """Those of the names that `check` says are copied."""
    code, out, error = heliostat.command("check", "--json", str(path))
    assert out, (code, error)
    flow = next(f for f in json.loads(out)["flows"] if f["name"] == "a->b")
    return {t["topic"][len(prefix):] for t in flow["topics"] if t["topic"].startswith(prefix)}, out


@pytest.mark.fc("FC-021")
def test_lists_of_topics(flow, tmp_path):
    """The file, the list and Java's expressions are three layers: the same set as MirrorMaker 2 takes, or the key and the place of
    the mistake; and lists that take nothing are warned of."""
    prefix = flow.name + "-"
    for name in NAMES:
        feed.create_topic(flow.source, prefix + name)
    for path, (text, want) in zip(list_files(tmp_path, prefix, flow.source, flow.target), LISTS):
        if refused(want):
            for verb in (["check", "--offline"], ["run"]):
                code, out, error = heliostat.command(*verb, str(path))
                assert code == 2 and want in out + error, (text, code, out + error)
                assert re.search(r":\d+: (topics|groups)(\.exclude)?: ", out + error), (text, out + error)
            continue
        got, out = taken(path, prefix)
        assert got == set(want.split()), (text, got)
        assert ("accept no topic" in out) == (not got), (text, out)
    with Heliostat(flow.config(prefix + "tt+")) as h:
        h.wait(lambda h: " topics.none flow=%s->%s" % (flow.a, flow.b) in h.log.read_text(), what="the warning")


@pytest.mark.java
@pytest.mark.fc("FC-021")
def test_lists_of_topics_in_mm2(tmp_path):
    """The table is what MirrorMaker 2's own classes say."""
    names, wrong = ["p-" + n for n in NAMES], []
    for (text, want), got in zip(LISTS, java.topic_lists(names, list_files(tmp_path, "p-"))):
        if "groups" in text:
            continue
        if refused(want) != isinstance(got, str) or not refused(want) and {n[2:] for n in got} != set(want.split()):
            wrong.append((text, want, got))
    assert not wrong, "\n".join(map(repr, wrong))


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
