"""Share groups: their start offsets at the target are exact, never set under members, and a share consumer goes on there."""
import signal

import pytest
from test_checkpoints import config, seen

from conftest import Flow
from lab import feed, groups, java, offsets, procs
from lab.heliostat import Heliostat

TOOLS = "org.apache.kafka.tools.consumer."


def share_tool(cluster, *args, check=True):
    return java.run_class(cluster.version, TOOLS + "group.ShareGroupCommand", "--bootstrap-server", cluster.bootstrap,
                          *args, check=check)


def from_earliest(cluster, group):
    """A group that has not begun starts at the first record."""
    java.tool(cluster, "configs", "--alter", "--entity-type", "groups", "--entity-name", group,
              "--add-config", "share.auto.offset.reset=earliest")


def consumer(cluster, group, topic, *more):
    return ["--bootstrap-server", cluster.bootstrap, "--topic", topic, "--group", group, *more]


def consume(cluster, group, topic, number):
    """Reads and accepts so many records; their values."""
    out = java.run_class(cluster.version, TOOLS + "ConsoleShareConsumer",
                         *consumer(cluster, group, topic, "--max-messages", str(number), "--timeout-ms", "60000"))
    return [line.split(":")[1] for line in out.splitlines() if line.startswith("v:")]


def starts(cluster, group, topic):
    """{partition: start offset} as the group's own tool tells it; {}: no such group, or nothing begun."""
    rows = [line.split() for line in share_tool(cluster, "--describe", "--group", group, check=False).splitlines()]
    head = next((r for r in rows if "START-OFFSET" in r), None)
    if not head:
        return {}
    topic_at, part_at, start_at = (head.index(k) for k in ("TOPIC", "PARTITION", "START-OFFSET"))
    return {int(r[part_at]): int(r[start_at]) for r in rows
            if len(r) > start_at and r[topic_at] == topic and r[start_at].isdigit()}


def write(flow, partitions=2, number=200):
    feed.create_topic(flow.source, flow.name, partitions)
    for p in range(partitions):
        feed.write(flow.source, flow.name, [(b"k", b"v:%d-%d" % (p, i)) for i in range(number)], p)
    feed.delete_records(flow.source, flow.name, 0, 30)  # so that offsets of the two sides differ


def translated(flow, at):
    """{partition: offset} of the source, as offsets of the target by the digest of the record that is next."""
    source = offsets.by_offset(flow.source, flow.name, "read_uncommitted")
    target = offsets.by_offset(flow.target, flow.remote(), "read_uncommitted")
    return {p: groups.expected(source[p], target[p])(o) for p, o in at.items()}


def rest_of(flow, at):
    """The values from these start offsets of the source on."""
    gone = {0: 30}
    return sorted("%d-%d" % (p, i) for p in range(2) for i in range(at.get(p, gone.get(p, 0)), 200))


def rounds_pass(h, number=3):
    begun = seen(h)["rounds"]
    groups.wait(lambda: seen(h)["rounds"] > begun + number)


@pytest.mark.java
def test_a_share_group_moves_over(flow):
    source, target = flow.clusters
    group, still = flow.name + "-share", flow.name + "-still"
    write(flow)
    for g, number in ((group, 90), (still, 110)):
        from_earliest(source, g)
        from_earliest(target, g)
        assert len(consume(source, g, flow.name, number)) == number
    begun = {g: groups.wait(lambda g=g: starts(source, g, flow.name)) for g in (group, still)}
    assert any(o > 30 for o in begun[group].values()), begun  # a part is done with, a part is not
    with Heliostat(config(flow)) as h:
        h.wait_copied(flow.source, [flow.name])
        for g in (group, still):
            want = translated(flow, begun[g])
            groups.wait(lambda g=g, want=want: starts(target, g, flow.remote()) == want)
        state = groups.wait(lambda: (lambda s: s if s["synced"] == sum(map(len, begun.values())) else None)(seen(h)))
        assert state["followed"] == 2 and state["refused"] == 0 and state["checkpoints"] == 0, state

        for to, there in (("--to-latest", {0: 170, 1: 200}), ("--to-earliest", {0: 170, 1: 200})):  # forward only
            share_tool(source, "--reset-offsets", "--group", still, "--topic", flow.name, to, "--execute")
            groups.wait(lambda there=there: starts(target, still, flow.remote()) == there)
            rounds_pass(h)
            assert starts(target, still, flow.remote()) == there
        assert starts(source, still, flow.name)[0] == 30, "it was set back there"

        rest = rest_of(flow, begun[group])
        assert sorted(consume(target, group, flow.remote(), len(rest))) == rest
        out = h.folder / "member.log"
        member = procs.spawn(java.command(target.version, TOOLS + "ConsoleShareConsumer",
                                          *consumer(target, group, flow.remote())), out)
        try:
            groups.wait(lambda: seen(h)["active_at_target"] == 1)
            there = starts(target, group, flow.remote())
            share_tool(source, "--reset-offsets", "--group", group, "--topic", flow.name, "--to-earliest", "--execute")
            rounds_pass(h)
            assert starts(target, group, flow.remote()) == there
        finally:
            procs.kill(member, signal.SIGTERM)
        groups.wait(lambda: seen(h)["active_at_target"] == 0)
        rounds_pass(h)
        assert starts(target, group, flow.remote()) == there, "others have read on there: never taken back"
        assert not [k for k in groups.checkpoints(flow.target, flow.a + ".checkpoints.internal")[0] if k[0] == group]


@pytest.mark.java
@pytest.mark.parametrize("why", ["target", "off"])
def test_share_groups_that_cannot_be_followed(pool, name, why):
    """Named, with the cluster or the option that is the reason; a consumer group beside it goes on."""
    flow = Flow(name, pool.get("4.3.0", "source"), pool.get("3.9.1", "target") if why == "target" else
                pool.get("4.3.0", "target"))
    group, beside = name + "-share", name + "-beside"
    write(flow)
    from_earliest(flow.clusters[0], group)
    assert len(consume(flow.clusters[0], group, name, 50)) == 50
    groups.commit(flow.source, beside, {(name, 1): 70})
    with Heliostat(config(flow, **({} if why == "target" else {"sync.group.offsets.enabled": "false"}))) as h:
        h.wait_copied(flow.source, [name])
        state = groups.wait(lambda: (lambda s: s if s and s["refused"] == 1 and s["exact"] else None)(seen(h)))
        refused, = state["refused_groups"]
        assert refused["group"] == group and refused["code"] == "SHARE_GROUP", refused
        assert ("the target, %s" % flow.b if why == "target" else "sync.group.offsets.enabled") in refused["text"], refused
        if why == "target":
            groups.wait(lambda: groups.committed(flow.target, beside, [(flow.remote(), 1)])
                        .get((flow.remote(), 1), (None,))[0] == 70)
        rounds_pass(h)
        assert h.log.read_text().count("group.refused") == 1, "told once"
