"""Consumer groups where it breaks for people who mirror Kafka: positions of nothing, restarts, live consumers, vanished copies."""
import itertools
import threading
import time

import pytest
from confluent_kafka import TopicPartition
from test_checkpoints import config, seen

from conftest import Flow
from lab import compare, feed, groups, peers, ports
from lab.cluster import Cluster
from lab.heliostat import Heliostat

OFFSET_COMMIT, OFFSET_FETCH, LIST_GROUPS = 8, 9, 16


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


@pytest.mark.fc("FC-014")
@pytest.mark.parametrize("translation", ["exact", "mm2"])
def test_a_group_that_lags_behind_a_restart(build, flow, translation, full):
    """Its checkpoints go on growing through clean and unclean ends, from where they were, and are as exact as before."""
    half, step, group, gone = (10000, 250, flow.name + "-g", 500) if full else (1500, 50, flow.name + "-g", 200)
    topic, place, numbers = flow.a + ".checkpoints.internal", (flow.name, 0), itertools.count(1)
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, rows(0, half), options={"batch.num.messages": 100})
    feed.delete_records(flow.source, flow.name, 0, gone)  # so that offsets of the two sides differ

    def told():
        return [row for key, row in groups.history(flow.target, topic) if key == (group, flow.remote(), 0)]

    def advance(first, last):
        """In steps; at least one in ten is told, with the exact translation all of those."""
        for at in range(first, last + 1, step):
            groups.commit(flow.source, group, {place: at})
            if next(numbers) % 10 and at + step <= last:
                time.sleep(0.1)
            elif translation == "exact":
                groups.wait(lambda at=at: (at, at - gone, "") in told())
            else:
                rounds(h, 1)

    with Heliostat(config(flow, heliostat__offset__translation=translation)) as h:
        h.wait_copied(flow.source, [flow.name])
        advance(gone + step, half // 3)
        assert h.stop() == 0
        feed.write(flow.source, flow.name, rows(half, 2 * half), options={"batch.num.messages": 100})
        h.restart()
        h.wait_copied(flow.source, [flow.name])
        before = len(told())
        advance(half // 3 + step, half * 2 // 3)  # all of it lies before the restart
        assert translation == "mm2" or len(told()) > before
        h.kill9()
        h.restart()
        h.wait_copied(flow.source, [flow.name])
        advance(half * 2 // 3 + step, 2 * half)
        rows_told = told()
        ups, downs = [up for up, _, _ in rows_told], [down for _, down, _ in rows_told]
        print("\n%s: %d checkpoints of %d commits" % (translation, len(downs), next(numbers) - 1))
        assert ups == sorted(ups) and downs == sorted(downs)
        assert all(0 <= down <= up - gone and (translation == "mm2" or down == up - gone) for up, down, _ in rows_told)
        groups.wait(lambda: position(flow, group, flow.remote()) == told()[-1][1])
        assert translation == "mm2" or told()[-1] == (2 * half, 2 * half - gone, "")


@pytest.fixture(scope="module")
def seen_through():
    """A target that the mirror reaches through a proxy which can hold requests back; others reach it directly: (direct, proxy)."""
    port = ports.free_port()
    with peers.Requests(port) as proxy:
        c = Cluster("4.3.0", port=port, name="seen-through", listeners={"DIRECT": "PLAINTEXT"})
        c.props["advertised.listeners"] = "PLAINTEXT://127.0.0.1:%d,DIRECT://127.0.0.1:%d" % (proxy.port, c.brokers[0].ports["DIRECT"])
        with c:
            yield c.bootstrap_of("DIRECT"), proxy


class Watch(threading.Thread):
    """Looks every tenth of a second where a group of the target stands."""

    def __init__(self, flow, group):
        super().__init__(daemon=True)
        self.flow, self.group, self.seen, self.over = flow, group, [], False
        self.start()

    def run(self):
        """The thread."""
        client, place = groups.client(self.flow.target, self.group), TopicPartition(self.flow.remote(), 0)
        while not self.over:
            self.seen.append(client.committed([place], timeout=60)[0].offset)
            time.sleep(0.1)
        client.close()

    def stop(self):
        """All it saw."""
        self.over = True
        self.join()
        return self.seen


def joined(flow, group):
    """A member of the group at the target that has read on to 90 and said so."""
    member = groups.client(flow.target, group, **{"enable.auto.offset.store": False})
    member.subscribe([flow.remote()])
    groups.wait(lambda: [m for m in member.consume(100, 1.0) if m.offset() == 89])
    member.commit(asynchronous=False, offsets=[TopicPartition(flow.remote(), 0, 90)])
    return member


@pytest.mark.fc("FC-015")
def test_a_live_consumer_at_the_target(build, pair, seen_through, name, full):
    """One that joins between the mirror's look and its commit keeps what it has; and nothing is committed for groups of which the
    target does not say whether they have members."""
    direct, proxy = seen_through
    flow = Flow(name, *pair)
    flow.target = direct
    feed.create_topic(flow.source, name, 1)
    feed.write(flow.source, name, rows(0, 100))
    lines = {**config(flow), flow.b + ".bootstrap.servers": "127.0.0.1:%d" % proxy.port}
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [name])
        for turn in range(20 if full else 3):
            group = "%s-%d" % (name, turn)
            groups.commit(flow.source, group, {(name, 0): 50})
            arrives(flow, group, flow.remote(), 0, 50)
            watch = Watch(flow, group)
            proxy.catch((OFFSET_COMMIT, OFFSET_FETCH)[turn % 2], group.encode())
            groups.commit(flow.source, group, {(name, 0): 80})
            groups.wait(lambda: proxy.caught)
            member = joined(flow, group)
            proxy.let_go()
            rounds(h)
            assert seen(h)["active_at_target"] == 1 and not refusals(h, "does not take")  # a held line may break
            member.close()
            groups.commit(flow.source, group, {(name, 0): 85})
            rounds(h)
            assert seen(h)["ahead_at_target"] == 1
            groups.commit(flow.source, group, {(name, 0): 95})
            arrives(flow, group, flow.remote(), 0, 95)
            places = watch.stop()
            assert places == sorted(places) and 90 in places, places
        proxy.catch(LIST_GROUPS)
        groups.commit(flow.source, group, {(name, 0): 97})
        h.wait(lambda h: "LOOKING" in str(seen(h)["fault"]), what="the look that brought no answer")
        assert position(flow, group, flow.remote()) == 95
        proxy.let_go()
        arrives(flow, group, flow.remote(), 0, 97)
        groups.wait(lambda: seen(h)["fault"] is None)
