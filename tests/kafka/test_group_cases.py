"""Consumer groups where it breaks for people who mirror Kafka: positions of nothing, restarts, live consumers, vanished copies."""
import pytest
from test_checkpoints import config, seen

from lab import compare, feed, groups
from lab.heliostat import Heliostat


def rows(first, last):
    """Records with the numbers [first, last)."""
    return [(b"k", b"%d" % i) for i in range(first, last)]


def position(flow, group, topic, partition=0):
    """Where the target's group stands in a copy; None: nowhere."""
    return groups.committed(flow.target, group, [(topic, partition)]).get((topic, partition), (None,))[0]


def arrives(flow, group, topic, partition, offset):
    """Waits until the target's group has this position."""
    groups.wait(lambda: position(flow, group, topic, partition) == offset)


def refusals(h, word=""):
    """The lines of the log by which something of a group was refused."""
    return [line for line in h.log.read_text().splitlines() if " group.refused " in line and word in line]


def rounds(h, n=3):
    """Waits for N whole rounds."""
    began = groups.wait(lambda: seen(h))["rounds"]
    groups.wait(lambda: seen(h)["rounds"] > began + n)


@pytest.mark.fc("FC-013")
@pytest.mark.parametrize("translation", ["exact", "mm2"])
def test_positions_at_nothing(build, flow, translation):
    """0 is a position, at the start of a log and in one that is empty; only mm2, which knows of no empty log, has none there."""
    feed.create_topic(flow.source, flow.name, 4)
    for p in range(3):
        feed.write(flow.source, flow.name, rows(0, 100), p)
    group, exact = flow.name + "-g", translation == "exact"
    groups.commit(flow.source, group, {(flow.name, p): at for p, at in enumerate((0, 50, 100, 0))})
    places = [(flow.remote(), p) for p in range(4)]
    with Heliostat(config(flow, heliostat__offset__translation=translation)) as h:
        h.wait_copied(flow.source, [flow.name])
        groups.wait(lambda: len(groups.committed(flow.target, group, places)) == 3 + exact)
        rounds(h)
        at = {p: offset for (_, p), (offset, _) in groups.committed(flow.target, group, places).items()}
        assert at == {0: 0, 1: 50, 2: 100, 3: 0} if exact else set(at) == {0, 1, 2} and at[0] == 0 and 0 < at[1] <= 50, at
        told, _ = groups.checkpoints(flow.target, flow.a + ".checkpoints.internal")
        assert {p: down for (g, t, p), (_, down, _) in told.items() if (g, t) == (group, flow.remote())} == at
        assert not refusals(h)
        feed.write(flow.source, flow.name, rows(0, 10), 3)
        h.wait_copied(flow.source, [flow.name])
        groups.wait(lambda: position(flow, group, flow.remote(), 3) == 0)  # of mm2 as well: there is a sync by now
        assert h.stop() == 0
    # Who moves over starts where the group stands, not at the end as its reset rule says.
    member, got = groups.client(flow.target, group, **{"auto.offset.reset": "latest"}), {}
    try:
        member.subscribe([flow.remote()])
        want = {p: n for p, n in ((0, 100), (1, 100 - at[1]), (2, 100 - at[2]), (3, 10)) if n}
        groups.wait(lambda: got == want or [got.update({m.partition(): got.get(m.partition(), 0) + 1})
                                            for m in member.consume(500, 1.0)] and got == want)
        assert not member.consume(1, 1.0)
    finally:
        member.close()


@pytest.mark.fc("FC-016")
def test_a_copy_that_vanished(build, flow):
    """Deleted at the target and not wanted any more: the group's other topics go on without a word; wanted again, it is synced again."""
    one, two, group = flow.name + "-one", flow.name + "-two", flow.name + "-g"
    for topic in (one, two):
        feed.create_topic(flow.source, topic, 2)
        feed.write(flow.source, topic, rows(0, 100), 1)
    groups.commit(flow.source, group, {(one, 1): 10, (two, 1): 10})
    both, only = config(flow), config(flow)
    both["%s->%s.topics" % (flow.a, flow.b)], only["%s->%s.topics" % (flow.a, flow.b)] = one + "," + two, one
    with Heliostat(both) as h:
        h.wait_copied(flow.source, [one, two])
        for topic in (one, two):
            arrives(flow, group, flow.remote(topic), 1, 10)
        assert h.stop() == 0
        feed.delete_topics(flow.target, [flow.remote(two)])
        text = h.conf.read_text()
        h.conf.write_text(text.replace(both["%s->%s.topics" % (flow.a, flow.b)] + "\n", one + "\n"))
        h.restart()
        groups.commit(flow.source, group, {(one, 1): 60, (two, 1): 60})
        arrives(flow, group, flow.remote(one), 1, 60)
        rounds(h)
        assert not refusals(h) and flow.remote(two) not in feed.topics_of(flow.target)
        assert h.stop() == 0
        h.conf.write_text(text)
        h.restart()
        h.wait(lambda h: compare.topics(flow.source, two, flow.target, flow.remote(two)).equal, what="the copy made anew")
        arrives(flow, group, flow.remote(two), 1, 60)
        rounds(h)
        assert not refusals(h)


@pytest.mark.fc("FC-016")
def test_a_copy_that_is_missing(build, flow):
    """Deleted at the target and still wanted, or back with fewer partitions: one warning, whatever the number of rounds; the group's
    other topics go on, and the partition too once it is there."""
    one, two, group = flow.name + "-one", flow.name + "-two", flow.name + "-g"
    for topic in (one, two):
        feed.create_topic(flow.source, topic, 2)
        for p in range(2):
            feed.write(flow.source, topic, rows(0, 100), p)
    groups.commit(flow.source, group, {(t, p): 10 for t in (one, two) for p in range(2)})
    # Nothing makes it anew by itself; and there are rounds that tell checkpoints only.
    lines = config(flow, refresh__topics__interval__seconds=3600, sync__group__offsets__interval__seconds=3)
    lines["%s->%s.topics" % (flow.a, flow.b)] = one + "," + two
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [one, two])
        for topic in (one, two):
            for p in range(2):
                arrives(flow, group, flow.remote(topic), p, 10)
        feed.delete_topics(flow.target, [flow.remote(two)])
        for at in (30, 40, 50):
            groups.commit(flow.source, group, {(t, p): at for t in (one, two) for p in range(2)})
            arrives(flow, group, flow.remote(one), 1, at)
            rounds(h)
        assert len(refusals(h)) <= 1, refusals(h)
        feed.create_topic(flow.target, flow.remote(two), 1)
        for at in (60, 70):
            groups.commit(flow.source, group, {(t, p): at for t in (one, two) for p in range(2)})
            arrives(flow, group, flow.remote(one), 1, at)
            rounds(h)
        assert len(refusals(h)) <= 2, refusals(h)
        feed.grow_topic(flow.target, flow.remote(two), 2)
        for p in range(2):
            feed.write(flow.source, two, rows(100, 110), p)
        h.wait(lambda h: compare.topics(flow.source, two, flow.target, flow.remote(two)).equal, what="the copy made anew")
        for p in range(2):
            arrives(flow, group, flow.remote(two), p, 70)
        groups.wait(lambda: seen(h)["refused"] == 0)
