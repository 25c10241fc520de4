"""Consumer groups: checkpoints and positions at the target are exact, and Java's own tools read what we write.

librdkafka ends metadata with a NUL, which belongs to it as every other byte.
"""
import random

import pytest
from test_shapes import transactional

from lab import feed, groups, java, offsets
from lab.heliostat import Heliostat

QUICK = {"emit.checkpoints.interval.seconds": 1, "sync.group.offsets.enabled": "true",
         "sync.group.offsets.interval.seconds": 1, "refresh.groups.interval.seconds": 1}


def config(flow, **more):
    """One flow that follows the groups of its own test only."""
    return {**flow.config(), **QUICK, "groups": flow.name + r"-.*",
            **{k.replace("__", "."): v for k, v in more.items()}}


def seen(h):
    """The groups of the status, once a round has been made."""
    found = h.status()["flows"][0]["groups"]
    return found if found and found["rounds"] else None


def synced(h, n, flow, group, place, offset):
    """The target's group gets this position."""
    groups.wait(lambda: groups.committed(flow.target, group, [place]).get(place, (None,))[0] == offset, n)
    assert seen(h)["refused"] == 0


def test_exact_with_transactions(flow):
    """40 groups at random offsets of 4 partitions: all 160 translations are the record that the group would read next."""
    dice = random.Random(11)
    transactional(flow.source, flow.name, 4)
    with Heliostat({**config(flow), flow.a + ".consumer.isolation.level": "read_committed"}) as h:
        h.wait_copied(flow.source, [flow.name])
        source = offsets.by_offset(flow.source, flow.name, "read_committed")
        target = offsets.by_offset(flow.target, flow.remote(), "read_committed")
        ends = {p: max(source[p]) + 2 for p in range(4)}
        want = {}
        for i in range(40):
            group = "%s-%d" % (flow.name, i)
            at = {p: 0 if i == 0 else dice.randrange(ends[p]) for p in range(4)}
            groups.commit(flow.source, group, {(flow.name, p): (at[p], "m%d-%d" % (i, p)) for p in at})
            for p in at:
                want[group, flow.remote(), p] = (at[p], groups.expected(source[p], target[p])(at[p]), "m%d-%d\0" % (i, p))
        topic = flow.a + ".checkpoints.internal"
        groups.wait(lambda: len(groups.checkpoints(flow.target, topic)[0]) == 160)
        have, written = groups.checkpoints(flow.target, topic)
        exact = sum(have[k] == want[k] for k in want)
        print("\n%d of 160 checkpoints exact, %d records written" % (exact, written))
        assert exact == 160, [(k, have[k], want[k]) for k in want if have[k] != want[k]][:5]
        groups.wait(lambda: seen(h)["synced"] == 160)
        for i in range(40):
            group = "%s-%d" % (flow.name, i)
            found = groups.committed(flow.target, group, [(flow.remote(), p) for p in range(4)])
            assert {k: (o, m.rstrip("\0")) for k, (o, m) in found.items()} == {
                (flow.remote(), p): (want[group, flow.remote(), p][1], "m%d-%d" % (i, p)) for p in range(4)}
        s = seen(h)
        assert (s["followed"], s["positions"], s["exact"], s["refused"]) == (40, 160, 160, 0), s
        rounds = s["rounds"]
        groups.wait(lambda: seen(h)["rounds"] > rounds + 1)
        assert groups.checkpoints(flow.target, topic)[1] == written, "nothing moved, so nothing is written"
        assert h.stop() == 0
        h.restart().wait_ready()
        groups.wait(lambda: (seen(h) or {}).get("synced") == 160)
        assert groups.checkpoints(flow.target, topic)[1] == written, "nor after a restart"
        syncs = [s for s in groups.syncs(flow.source, "mm2-offset-syncs.%s.internal" % flow.b) if s[0] == flow.name]
        for _, p, up, down in syncs:
            assert source[p][up] == target[p][down]
        for p in range(4):  # the tail too, with the positions
            assert max(up for _, q, up, _ in syncs if q == p) == max(source[p])


def test_positions_follow_the_source(flow):
    """Forwards and backwards; never under members, never against what others gave the group."""
    feed.create_topic(flow.source, flow.name, 2)
    for p in range(2):
        feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(100)], p)
    place, there, group = (flow.name, 0), (flow.remote(), 0), flow.name + "-moves"
    groups.commit(flow.source, group, {place: 40})
    groups.commit(flow.source, "other-" + flow.name, {place: 40})
    with Heliostat(config(flow)) as h:
        h.wait_copied(flow.source, [flow.name])
        synced(h, 60, flow, group, there, 40)
        groups.commit(flow.source, group, {place: 70})
        synced(h, 60, flow, group, there, 70)
        groups.commit(flow.source, group, {place: 10})  # reset
        synced(h, 60, flow, group, there, 10)
        groups.commit(flow.target, group, {there: 90})  # somebody has moved over and read on
        rounds = seen(h)["rounds"]
        groups.wait(lambda: seen(h)["rounds"] > rounds + 2 and seen(h)["ahead_at_target"] == 1)
        assert groups.committed(flow.target, group, [there])[there][0] == 90
        groups.commit(flow.source, group, {place: 95})
        synced(h, 60, flow, group, there, 95)
        groups.commit(flow.source, group, {place: 500})  # beyond the end: never past what was copied
        synced(h, 60, flow, group, there, 100)
        groups.wait(lambda: seen(h)["behind"] == 1)
        assert groups.committed(flow.target, "other-" + flow.name, [there]) == {}, "groups= leaves it out"

        member = groups.client(flow.target, group, **{"session.timeout.ms": 6000})
        member.subscribe([flow.remote()])
        groups.wait(lambda: member.poll(0.2) is None and member.assignment() or None, 60)
        groups.commit(flow.source, group, {place: 20, (flow.name, 1): 30})
        groups.wait(lambda: seen(h)["active_at_target"] == 1)
        rounds = seen(h)["rounds"]
        groups.wait(lambda: seen(h)["rounds"] > rounds + 1)
        assert (flow.remote(), 1) not in groups.committed(flow.target, group, [(flow.remote(), 1)])
        member.close()
        synced(h, 60, flow, group, (flow.remote(), 1), 30)


@pytest.mark.parametrize("location", ["source", "target"])
def test_as_mirror_maker_does(flow, location):
    """heliostat.offset.translation = mm2: by the syncs, one too early or not at all."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(1000)], options={"batch.num.messages": 1000})
    group, topic = flow.name + "-coarse", flow.a + ".checkpoints.internal"

    def told():
        """The source offsets that have a sync."""
        place = ((flow.source, "mm2-offset-syncs.%s.internal" % flow.b) if location == "source" else
                 (flow.target, "mm2-offset-syncs.%s.internal" % flow.a))
        return {up for name, _, up, _ in groups.syncs(*place) if name == flow.name}

    with Heliostat({**config(flow), "heliostat.offset.translation": "mm2",
                    "offset-syncs.topic.location": location, flow.b + ".offset.flush.interval.ms": 500}) as h:
        h.wait_copied(flow.source, [flow.name])
        groups.wait(lambda: 999 in told())
        for at in (999, 995, 3, 1000):
            groups.commit(flow.source, group, {(flow.name, 0): at})
            near = max(up for up in told() if up <= at)
            want = (at, near + (near != at), "")
            groups.wait(lambda: groups.checkpoints(flow.target, topic)[0].get((group, flow.remote(), 0)) == want)
        synced(h, 60, flow, group, (flow.remote(), 0), 1000)


@pytest.mark.java
def test_java_reads_it(flow):
    """MirrorClient and RemoteClusterUtils give the same positions as the target's group has."""
    feed.create_topic(flow.source, flow.name, 2)
    for p in range(2):
        feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(300)], p)
    group = flow.name + "-java"
    groups.commit(flow.source, group, {(flow.name, 0): (123, "half way"), (flow.name, 1): 0})
    with Heliostat(config(flow)) as h:
        h.wait_copied(flow.source, [flow.name])
        groups.wait(lambda: (seen(h) or {}).get("synced") == 2)
        says = java.mirror_client(flow.target, flow.a, group)
        want = [{"topic": flow.remote(), "partition": 0, "offset": 123, "metadata": "half way\0"},
                {"topic": flow.remote(), "partition": 1, "offset": 0, "metadata": ""}]
        assert says["translateOffsets"] == want, says
        assert says["translateOffsetsOfPattern"] == {group: want}
        assert flow.a + ".checkpoints.internal" in says["checkpointTopics"]
