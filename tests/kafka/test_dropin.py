"""Names by rules, transforms, and what of MirrorMaker 2's faults only real brokers can show."""
import json

from lab import compare, feed, groups, heliostat
from lab.heliostat import Heliostat

SMT = "org.apache.kafka.connect.transforms."
GROUPS = {"emit.checkpoints.interval.seconds": 1, "sync.group.offsets.enabled": "true",
          "sync.group.offsets.interval.seconds": 1, "refresh.groups.interval.seconds": 1}


def rows(n, start=0):
    """Numbered records; every fourth has a header `drop`, every tenth is a tombstone."""
    return [(b"k%d" % i, None if i % 10 == 9 else b"v%d" % i, [("drop", b"1")] if i % 4 == 3 else [("n", b"%d" % i)])
            for i in range(start, start + n)]


def values(bootstrap, topic):
    return [m.key() for m in compare.read(bootstrap, topic)]


def fault(h, topic):
    """The text of the fault of a source topic, by its code."""
    return next((f["text"] for f in h.status()["faults"] if f["code"] == "COLLISION" and f["topic"] == topic), None)


def test_names_by_rules(tmp_path, flow):
    """Copies, configs, checkpoints and groups go by the rules; a second topic for a copy that is taken stops only itself."""
    one, two, third = flow.name + "-one", flow.name + "-two", flow.name + "-third"
    all_in = flow.name + "-all"
    feed.create_topic(flow.source, one, 2, {"retention.ms": 7200000})
    feed.create_topic(flow.source, third, 1)
    for p in range(2):
        feed.write(flow.source, one, rows(50), p)
    feed.write(flow.source, third, rows(50))
    group = flow.name + "-g"
    groups.commit(flow.source, group, {(one, 0): 20})
    rules = "%s-(one|two) -> %s" % (flow.name, all_in)
    lines = {**flow.config("%s.*" % flow.name, heliostat__topic__map=rules), **GROUPS, "groups": group}
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [one, third])
        assert compare.topics(flow.source, one, flow.target, all_in).equal
        assert compare.topics(flow.source, third, flow.target, flow.remote(third)).equal
        assert flow.remote(one) not in feed.topics_of(flow.target)
        assert feed.describe(flow.target, [all_in])[all_in]["configs"]["retention.ms"] == "7200000"
        groups.wait(lambda: groups.committed(flow.target, group, [(all_in, 0)]).get((all_in, 0), (None,))[0] == 20)
        have, _ = groups.checkpoints(flow.target, flow.a + ".checkpoints.internal")
        assert (group, all_in, 0) in have
        feed.create_topic(flow.source, two, 1)
        feed.write(flow.source, two, rows(30))
        text = h.wait(lambda h: fault(h, two), what="the collision")
        assert all_in in text and one in text and "goes on" in text, text
        feed.write(flow.source, one, rows(10, 50), 1)
        h.wait_copied(flow.source, [one])
        assert compare.topics(flow.source, one, flow.target, all_in).equal
        path = tmp_path / "mm2.properties"
        path.write_text(heliostat.as_text(lines))
        code, out, error = heliostat.command("check", str(path))
        assert code == 1 and "COLLISION" in out and one in out and two in out, out + error
        assert h.stop() == 0
        # Other rules, the same process again: each goes on where it was, under its new name.
        h.conf.write_text(h.conf.read_text().replace(rules, "(.*) -> $1.copy"))
        h.restart().wait_ready()
        feed.write(flow.source, one, rows(5, 60), 0)
        h.wait_copied(flow.source, [one, two, third])
        assert values(flow.target, one + ".copy") == [b"k%d" % i for i in range(60, 65)]
        assert len(values(flow.target, two + ".copy")) == 30, "it has never been copied before"
        assert len(values(flow.target, all_in)) == 110


def test_transforms(flow):
    """Renamed, filtered and marked as MirrorMaker 2 would, each record once through a crash, offsets exact around the holes."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, rows(300), codec="lz4")
    name = "%s->%s." % (flow.a, flow.b)
    lines = {**flow.config(), "emit.offset-syncs.enabled": "false", name + "transforms": "strip, left, mark", name + "predicates": "drop",
             name + "transforms.strip.type": SMT + "RegexRouter", name + "transforms.strip.regex": r"%s\\.(%s)" % (flow.a, flow.name),
             name + "transforms.strip.replacement": "$1-here",
             name + "transforms.left.type": SMT + "Filter", name + "transforms.left.predicate": "drop",
             name + "transforms.mark.type": SMT + "InsertHeader", name + "transforms.mark.header": "from",
             name + "transforms.mark.value.literal": flow.a,
             name + "predicates.drop.type": SMT + "predicates.HasHeaderKey", name + "predicates.drop.name": "drop"}
    there = flow.name + "-here"
    with Heliostat(lines) as h:
        h.wait(lambda h: "create it with 1 partitions there" in str(h.status()["faults"]), what="the want of a topic")
        feed.create_topic(flow.target, there, 1)
        h.wait_copied(flow.source, [flow.name])
        assert feed.partitions_of(flow.target, flow.remote()) == 1, "the copy is made by the policy, as MirrorMaker 2 does"
        assert not values(flow.target, flow.remote())
        h.kill9()
        feed.write(flow.source, flow.name, rows(100, 300))
        h.restart()
        h.wait_copied(flow.source, [flow.name])
        stay = [i for i in range(400) if i % 4 != 3]
        got = compare.read(flow.target, there)
        assert [m.key() for m in got] == [b"k%d" % i for i in stay]
        assert all(m.headers() == [("n", b"%d" % i), ("from", flow.a.encode())] for i, m in zip(stay, got))
        assert all((m.value() is None) == (i % 10 == 9) for i, m in zip(stay, got))
        asked = ",".join(str(i) for i in range(400))
        code, body = h.get("/v1/offsets?flow=%s->%s&topic=%s&partition=0&offset=%s" % (flow.a, flow.b, flow.name, asked))
        assert code == 200
        for a in json.loads(body)["answers"]:
            i = a["offset"]
            want = ("exact", stay.index(i)) if i in stay else ("next", stay.index(i + 1)) if i + 1 < 400 else ("end", len(stay))
            assert (a["kind"], a["to"]) == want, a
        assert h.partitions(flow.name)[0]["target_topic"] == there
        assert "mm2-offset-syncs.%s.internal" % flow.b not in feed.topics_of(flow.source)


def test_syncs_that_cannot_be_written_hold_nothing_up(flow):
    """MirrorMaker 2 waits 60 s for each of them inside the acknowledgements of its data: 12 of 824 records in a minute."""
    feed.create_topic(flow.source, flow.name, 2)
    for p in range(2):
        feed.write(flow.source, flow.name, rows(500), p)
    lines = {**flow.config(), "offset-syncs.topic.replication.factor": 3}  # the source has one broker
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [flow.name], limit=60)
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal
        assert "mm2-offset-syncs.%s.internal" % flow.b not in feed.topics_of(flow.source)
        h.wait(lambda h: "mm2-offset-syncs" in str(h.status()["faults"]), what="its fault")
