"""ACLs follow those of the source by MirrorMaker 2's rules; what is refused holds up nothing else, and without ACLs there is
nothing to do."""
import re

import pytest

from conftest import Flow
from lab import acls, feed, heliostat, java, peers, ports
from lab.cluster import Cluster
from lab.heliostat import Heliostat

CREATE_ACLS, DELETE_ACLS = 30, 31
MIRROR = "127.0.0.9"  # the address from which the mirror comes to the watched cluster
SOURCE = ("ALLOW ALL User:all {t}", "ALLOW READ User:reader from 10.0.0.9 {t}", "ALLOW WRITE User:writer {t}",
          "ALLOW DESCRIBE User:all {t}", "DENY READ User:no from 10.0.0.9 {t}", "DENY ALL User:none {t}", "DENY WRITE User:no {t}",
          "ALLOW CREATE User:CN=Jörg,O=\"x\" {t}", "ALLOW READ User:all {t}-not-there", "ALLOW READ User:all {t}excluded",
          "ALLOW READ User:all on PREFIXED topic {t}", "ALLOW READ User:all on LITERAL group {t}",
          "ALLOW READ User:all on PREFIXED group {t}")
COPIED = ("ALLOW READ User:all {t}", "ALLOW READ User:reader from 10.0.0.9 {t}", "ALLOW DESCRIBE User:all {t}",
          "DENY READ User:no from 10.0.0.9 {t}", "DENY ALL User:none {t}", "DENY WRITE User:no {t}",
          "ALLOW CREATE User:CN=Jörg,O=\"x\" {t}", "ALLOW READ User:all {t}-not-there")
EVERY = {"sync.topic.acls.interval.seconds": 1}


def texts(lines, topic):
    """Rules about a topic."""
    return [line.format(t=topic) for line in lines]


def rules(lines, topic):
    """The same as acls.listed gives them."""
    return sorted(acls.rule(line) for line in texts(lines, topic))


def topics_of(flow):
    """The topics of a flow: all with its name but one."""
    return flow.config(flow.name + ".*", **{"topics.exclude": ".*excluded"}, **EVERY)


def status(h, flow):
    """What the status says of a flow."""
    return h.flow(flow.a, flow.b)


def at_target(flow):
    """The rules about copies and groups of a flow."""
    return [r for r in acls.listed(flow.target, flow.name) if r[6] == flow.name or r[6].startswith(flow.a + ".")]


def rounds(h, flow, n=2):
    """Waits until ACLs were compared N times more."""
    for _ in range(n):
        seen = status(h, flow)["acls_compared_ms"]
        h.wait(lambda h, seen=seen: status(h, flow)["acls_compared_ms"] > seen, what="another comparison of ACLs")


def settled(h, flow):
    """Rules made, once two comparisons in a row made none: a broker may not yet list what its controller has taken."""
    while True:
        made = status(h, flow)["acls_created"]
        rounds(h, flow)
        if status(h, flow)["acls_created"] == made:
            return made


def faults(h):
    """Codes and texts in force that speak of ACLs."""
    return [f["code"] + ": " + f["text"] for f in h.status()["faults"] if "ACL" in f["text"]]


@pytest.mark.fc("FC-028")
def test_rules_of_mm2(flow, tmp_path):
    feed.create_topic(flow.source, flow.name, 1)
    acls.put(flow.source, *texts(SOURCE, flow.name))
    want = rules(COPIED, flow.remote())
    conf = tmp_path / "mm2.properties"
    conf.write_text(heliostat.as_text(topics_of(flow)))
    code, out, error = heliostat.command("check", str(conf))
    assert code == 0 and "ACLs: 8 of %s are wanted at %s, 8 to be created" % (flow.a, flow.b) in out, out + error
    assert "ACL to be created: DENY READ for User:no from host 10.0.0.9 on topic %s\n" % flow.remote() in out, out
    assert acls.listed(flow.target, flow.a) == []
    with Heliostat(topics_of(flow)) as h:
        h.wait(lambda h: acls.listed(flow.target, flow.a) == want, what="the rules at the target")
        made = settled(h, flow)
        assert made >= len(want) == status(h, flow)["acls_wanted"]
        # What goes at the source stays; what somebody removes at the target comes again, as with MirrorMaker 2.
        acls.remove(flow.source, *texts(SOURCE[1:2], flow.name))
        acls.remove(flow.target, *texts(COPIED[3:4], flow.remote()))
        h.wait(lambda h: status(h, flow)["acls_created"] > made, what="the rule to come again")
        settled(h, flow)
        assert acls.listed(flow.target, flow.a) == want and status(h, flow)["acls_differ"] == 0, status(h, flow)
        assert not faults(h)
        assert h.stop() == 0
    code, out, _ = heliostat.command("check", str(conf))
    assert "ACLs: 7 of %s are wanted at %s, 0 to be created" % (flow.a, flow.b) in out, out


def test_wider_by_option(flow):
    """Prefixes, groups and deletions, each by its own key; with a dry run nothing is done."""
    t, more = flow.name, {"heliostat.sync.acls.prefixed": "true", "heliostat.sync.acls.groups": "true",
                          "heliostat.sync.acls.deletions": "true", "groups": flow.name + ".*"}
    want = sorted([*rules(COPIED[:-1], flow.remote()), acls.rule("ALLOW READ User:all on PREFIXED topic " + flow.remote()),
                   acls.rule("ALLOW READ User:all on LITERAL group " + t), acls.rule("ALLOW READ User:all on PREFIXED group " + t)])
    local = "ALLOW READ User:local " + flow.remote()
    feed.create_topic(flow.source, t, 1)
    acls.put(flow.source, *(x for x in texts(SOURCE, t) if "not-there" not in x))
    acls.put(flow.source, "ALLOW READ User:all on PREFIXED topic x" + t)  # no topic of the flow begins so
    acls.put(flow.target, local)
    with Heliostat(flow.config(**more, **EVERY, **{"heliostat.sync.dry.run": "true"})) as h:
        h.wait(lambda h: status(h, flow)["acls_differ"] == len(want), what="the differences to be told")
        assert at_target(flow) == [acls.rule(local)] and status(h, flow)["acls_created"] == 0
        assert "acl.differs" in h.log.read_text()
        assert h.stop() == 0
    with Heliostat(flow.config(**more, **EVERY)) as h:
        h.wait(lambda h: at_target(flow) == sorted([*want, acls.rule(local)]), what="the rules at the target")
        made = settled(h, flow)
        assert made >= len(want) and status(h, flow)["acls_deleted"] == 0
        acls.remove(flow.source, *texts(("ALLOW ALL User:all {t}", "DENY WRITE User:no {t}",
                                         "ALLOW READ User:all on PREFIXED topic {t}", "ALLOW READ User:all on LITERAL group {t}"), t))
        kept = [r for r in want if r not in rules(("ALLOW READ User:all {t}", "DENY WRITE User:no {t}",
                                                   "ALLOW READ User:all on PREFIXED topic {t}"), flow.remote())
                and r != acls.rule("ALLOW READ User:all on LITERAL group " + t)]
        h.wait(lambda h: at_target(flow) == sorted([*kept, acls.rule(local)]), what="the deletions")
        rounds(h, flow)
        assert settled(h, flow) == made and status(h, flow)["acls_deleted"] >= 4
        assert acls.rule(local) in at_target(flow) and not faults(h)
        assert h.stop() == 0


@pytest.fixture(scope="module")
def watched():
    """A cluster of Kafka 3.9 that the mirror reaches from an address of its own, through a proxy that counts its requests and spoils one
    principal on the way to the broker; nobody is a super user."""
    port = ports.free_port()
    with peers.Requests(port, {b"User:spoiled": b"User.spoiled"}, MIRROR) as proxy:
        c = Cluster("3.9.1", port=port, name="watched", listeners={"DIRECT": "PLAINTEXT"}, props={"super.users": "User:nobody"})
        c.props["advertised.listeners"] = "PLAINTEXT://127.0.0.1:%d,DIRECT://127.0.0.1:%d" % (
            proxy.port, c.brokers[0].ports["DIRECT"])
        with c:
            acls.put(c.bootstrap_of("DIRECT"), "ALLOW ALL User:* on LITERAL broker kafka-cluster")
            yield c, proxy, "127.0.0.1:%d" % proxy.port, c.bootstrap_of("DIRECT")


def watched_flow(flow, watched, side):
    """A flow whose one side is the watched cluster."""
    lines = topics_of(flow)
    lines[(flow.b if side == "target" else flow.a) + ".bootstrap.servers"] = watched[2]
    return lines


def own_right(bootstrap, topic):
    """A topic with any rule allows nothing that no rule allows: the mirror needs one too. Its text."""
    text = "ALLOW ALL User:ANONYMOUS " + topic
    acls.put(bootstrap, text)
    return text


def test_a_refused_rule_holds_up_no_other(flow, watched):
    """And when nothing is missing, nothing is sent."""
    _, proxy, _, direct = watched
    feed.create_topic(flow.source, flow.name, 1)
    own = acls.rule(own_right(direct, flow.remote()))
    acls.put(flow.source, *texts(SOURCE, flow.name))
    want = rules(COPIED, flow.remote())
    with Heliostat(watched_flow(flow, watched, "target")) as h:
        h.wait(lambda h: acls.listed(direct, flow.a) == sorted([*want, own]), what="the rules at the target")
        made = settled(h, flow)
        sent = proxy.counts[CREATE_ACLS]
        rounds(h, flow)
        assert proxy.counts[CREATE_ACLS] == sent >= 1 and proxy.counts[DELETE_ACLS] == 0, proxy.counts
        acls.put(flow.source, "ALLOW READ User:spoiled " + flow.name, "ALLOW READ User:zoe " + flow.name)
        h.wait(lambda h: acls.rule("ALLOW READ User:zoe " + flow.remote()) in acls.listed(direct, flow.a), what="the other rule")
        h.wait(lambda h: status(h, flow)["acls_differ"] == 1, what="the refusal to be counted")
        text = "".join(faults(h))
        assert "INVALID_REQUEST: cluster %s refuses an ACL: ALLOW READ for User:spoiled" % flow.b in text and "parse" in text, text
        acls.remove(flow.source, "ALLOW READ User:spoiled " + flow.name)
        h.wait(lambda h: not faults(h), what="the fault to be over")
        assert settled(h, flow) > made
        assert h.stop() == 0


def test_denied_holds_up_nothing(flow, watched):
    """The right that the mirror lacks is named, at either side; records flow, and with the right the rules come."""
    cluster, _, _, direct = watched
    for side, operation, grant in (("source", "DESCRIBE", "Describe"), ("target", "ALTER", "Alter")):
        way = Flow(flow.name + side, *((cluster, flow.clusters[1]) if side == "source" else (flow.clusters[0], cluster)))
        source = direct if side == "source" else way.source
        target = direct if side == "target" else way.target
        deny = "DENY %s User:ANONYMOUS from %s on LITERAL broker kafka-cluster" % (operation, MIRROR)
        feed.create_topic(source, way.name, 1)
        feed.write(source, way.name, [(b"k", b"v")])
        acls.put(source, "ALLOW DESCRIBE User:bob " + way.name)
        own_right(direct, way.name if side == "source" else way.remote())
        acls.put(direct, deny)
        with Heliostat(watched_flow(way, watched, side)) as h:
            h.wait(lambda h: "CLUSTER_AUTHORIZATION_FAILED" in "".join(faults(h)), what="the reason")
            text = "".join(faults(h))
            assert "grant %s on the cluster" % grant in text and "sync.topic.acls.enabled" in text, text
            h.wait(lambda h: any(p["next_offset"] == 1 for p in h.partitions(way.name)), what="the record")
            wanted = acls.rule("ALLOW DESCRIBE User:bob " + way.remote())
            assert wanted not in acls.listed(target, way.remote())
            acls.remove(direct, deny)
            h.wait(lambda h: wanted in acls.listed(target, way.remote()), what="the rule")
            h.wait(lambda h: not faults(h), what="the fault to be over")
            assert h.log.read_text().count("CLUSTER_AUTHORIZATION_FAILED") == 1  # not in every round
            assert h.stop() == 0


@pytest.fixture(scope="module")
def bare():
    """A cluster without an authorizer."""
    with Cluster("4.3.0", name="bare", props={"authorizer.class.name": ""}) as c:
        yield c


def test_without_an_authorizer(flow, bare, tmp_path):
    """One line, no fault, nothing sent."""
    for side in ("source", "target"):
        way = Flow(flow.name + side, *((bare, flow.clusters[1]) if side == "source" else (flow.clusters[0], bare)))
        feed.create_topic(way.source, way.name, 1)
        feed.write(way.source, way.name, [(b"k", b"v")])
        if side == "target":
            acls.put(way.source, "ALLOW READ User:x " + way.name)
        with Heliostat(way.config(**EVERY, heliostat__log__level="debug")) as h:
            h.wait(lambda h: status(h, way)["acls_none"] == (way.a if side == "source" else way.b), what="what is known of ACLs")
            h.wait_copied(way.source, [way.name])
            h.wait_ready()
            h.wait(lambda h: len(re.findall(r"acls\.state .*was=resting now=source", h.log.read_text())) >= 3, what="two more rounds")
            log = h.log.read_text()
            assert log.count("acls.none") == 1 and "SECURITY_DISABLED" not in log and not faults(h), log
            s = status(h, way)
            assert s["acls_created"] == 0 and s["acls_compared_ms"] == 0 and s["ready"], s
            assert h.stop() == 0
        conf = tmp_path / "mm2.properties"
        conf.write_text(heliostat.as_text(way.config()))
        code, out, _ = heliostat.command("check", str(conf))
        assert code == 0 and "ACLs: none are copied, cluster %s keeps none" % (way.a if side == "source" else way.b) in out, out


@pytest.mark.java
@pytest.mark.soak
@pytest.mark.fc("FC-028")
def test_the_same_set_as_mm2(flow):
    """The real MirrorMaker 2 makes the same rules of the same source, "*" included."""
    feed.create_topic(flow.source, flow.name, 1)
    everything = "ALLOW READ User:%s *" % flow.name
    acls.put(flow.source, *texts(SOURCE, flow.name), everything)
    theirs, ours = Flow(flow.name + "m", *flow.clusters), Flow(flow.name + "h", *flow.clusters)

    def config(f):
        return f.config("%s.*,[*]" % flow.name, **{"topics.exclude": ".*excluded", "sync.topic.acls.interval.seconds": 1})

    def made(f):
        return [(*r[:6], r[6].replace(f.a + ".", "")) for r in acls.listed(flow.target, f.a + ".")]

    try:
        with Heliostat(config(ours)) as h:
            h.wait(lambda h: len(made(ours)) == len(COPIED) + 1, what="our rules")
            rounds(h, ours)
            assert h.stop() == 0
        with java.MirrorMaker(heliostat.as_text(config(theirs))) as mm2:
            mm2.wait(lambda: len(made(theirs)) >= len(COPIED) + 1, what="its rules")
        assert made(ours) == made(theirs)
    finally:
        acls.remove(flow.source, everything)
