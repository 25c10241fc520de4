"""Three flows at once under faults that come again and again: kill -9 and SIGSTOP of the mirror, kill -9 of brokers, leaders
that move, lines that are cut, too few replicas, a full disk. Afterwards nothing is missing, repeated, altered or out of order.

A few rounds of each kind; with HELIOSTAT_FULL=1 each kind by itself, in full numbers, and a million offsets through the map."""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest
from confluent_kafka.admin import NewTopic

from conftest import Flow, soak
from lab import compare, config, feed, java, offsets, peers, ports, wire
from lab.cluster import Cluster, LabError
from lab.heliostat import Heliostat

FULL = os.environ.get("HELIOSTAT_FULL", "") not in ("", "0")
KINDS = (("none", True, False), ("lz4", True, True), ("zstd", False, True))  # codec; idempotent, transactional writers
FORGETFUL = {"producer.id.expiration.ms": 3000, "producer.id.expiration.check.interval.ms": 500}
QUICK = {"group.min.session.timeout.ms": 500}
SESSION_MS = 6000  # brokers allow no shorter one unless told otherwise: QUICK
THREE = {"replication__factor": 3, "checkpoints__topic__replication__factor": 3, "heartbeats__topic__replication__factor": 3,
         "offset__storage__replication__factor": 3}


@pytest.fixture
def rounds(pool):
    """Three brokers that forget producer ids after three seconds."""
    return pool.get("4.3.0", "rounds", brokers=3, props={**FORGETFUL, **QUICK}).heal()


class Load:
    """Three flows from one source into one target, and those who write to the source."""

    def __init__(self, name, source, target, rate=300, partitions=2, session_ms=SESSION_MS, **more):
        self.source, self.target, self.partitions, self.more = source, target, partitions, more
        self.session_ms = session_ms
        self.flows, self.writers = [], []
        for codec, idempotent, transactional in KINDS:
            flow = Flow(name + codec, source, target)
            flow.b, flow.isolation = name + "t", "read_committed" if transactional else "read_uncommitted"
            self.flows.append(flow)
            feed.create_topic(flow.source, flow.name, partitions, replication=min(len(source.brokers), 3))
            if idempotent:
                self.writers.append(feed.Numbered(flow.source, flow.name, partitions, rate, codec=codec))
            if transactional:
                self.writers.append(feed.Transactional(flow.source, flow.name, partitions, rate, codec=codec))

    def start(self):
        """Begins to write."""
        for w in self.writers:
            w.start()
        return self

    def config(self):
        """One file with all flows."""
        out = {}
        for f in self.flows:
            out.update(f.config(**self.more))
            out.update({f.a + ".consumer.isolation.level": f.isolation,
                        "%s->%s.emit.heartbeats.enabled" % (f.a, f.b): "true"})
        session = {"heliostat.session.timeout.ms": self.session_ms, "heliostat.heartbeat.interval.ms": self.session_ms // 4}
        return {**out, "clusters": ", ".join([*(f.a for f in self.flows), self.flows[0].b]),
                "emit.heartbeats.enabled": "false", **session}

    def reached(self, h):
        """The sum of all positions: it grows while records flow, over restarts too."""
        return sum(p["next_offset"] or 0 for f in self.flows for p in h.partitions(f.name))

    def wait_flowing(self, h):
        """Until every flow has its partitions and the next records have come; how long that took."""
        began = time.monotonic()
        h.wait(lambda h: all(len(h.partitions(f.name)) == self.partitions for f in self.flows), what="all partitions")
        had = self.reached(h)
        h.wait(lambda h: self.reached(h) > had, what="records to flow")
        return time.monotonic() - began

    def stop(self):
        """Ends the writers."""
        for w in self.writers:
            w.stop()

    def check(self, h, what, n):
        """Everything that was written has arrived, once, unchanged and in order; n offsets are asked either way."""
        self.stop()
        total = compare.Result()
        for f in self.flows:
            h.wait_copied(f.source, [f.name], limit=900 if FULL else 180, isolation=f.isolation)
            r = compare.topics(f.source, f.name, f.target, f.remote(), f.isolation, target_isolation="read_uncommitted")
            for key in ("records", "missing", "repeated", "altered", "foreign", "disorder"):
                setattr(total, key, getattr(total, key) + getattr(r, key))
            total.notes += r.notes
        print("\n%s: %d records, %d missing, %d repeated, %d altered, %d foreign, %d out of order" % (
            what, total.records, total.missing, total.repeated, total.altered, total.foreign, total.disorder))
        assert total.equal and total.records > 500, total.notes
        kinds = {}
        for f in self.flows:
            for kind, count in offsets.check(h, f, n // len(self.flows), seed=len(what)).items():
                kinds[kind] = kinds.get(kind, 0) + count
        print("offsets asked: %s" % ", ".join("%d %s" % (c, k) for k, c in sorted(kinds.items())))
        assert set(kinds) <= {"exact", "next", "end"} and kinds["exact"], kinds


def wait_in_sync(c, limit=180):
    """Until every replica is in sync, so that the next broker that is killed is not the only one with the data."""
    end = time.monotonic() + limit
    while True:
        topics = feed.admin(c.bootstrap).list_topics(timeout=60).topics
        behind = [t for t, m in topics.items() for p in m.partitions.values() if set(p.replicas) - set(p.isrs)]
        if not behind:
            return
        if time.monotonic() > end:
            raise TimeoutError("not in sync: %s" % ", ".join(sorted(behind)[:5]))
        time.sleep(0.1)


def kill_rounds(load, h, n, dice):
    """kill -9 of the mirror: mostly while records flow, else somewhere in its start."""
    for _ in range(n):
        if dice.random() < 0.6:
            load.wait_flowing(h)
        time.sleep(1.5 * dice.random())
        h.kill9()
        time.sleep(0.2 * dice.random())
        h.restart()
    begun = h.log.read_text().count("relay.start ")
    return "%d times kill -9 of the mirror; partitions began to copy %d times" % (n, begun)


def states(load, pair):
    """Of each flow: what the two processes do."""
    return [[(h.flow(f.a, f.b) or {}).get("state") for h in pair] for f in load.flows]


def wait_roles(load, pair):
    """Until one process copies each flow, and the other stands by."""
    pair[0].wait(lambda _: all(sorted(map(str, s)) == ["copying", "standby"] for s in states(load, pair)),
                 what="one to copy each flow and one to stand by")


def stop_rounds(load, h, n, dice):
    """SIGSTOP of one of two processes until the other has all flows, and SIGCONT."""
    with Heliostat(load.config()) as other:
        pair = [h, other]
        for turn in range(n):
            wait_roles(load, pair)
            time.sleep(dice.random())
            held, free = pair if turn % 2 == 0 else pair[::-1]
            held.child.send_signal(signal.SIGSTOP)
            try:
                free.wait(lambda x: all((x.flow(f.a, f.b) or {}).get("state") == "copying" for f in load.flows),
                          what="the other to take all over")
                time.sleep(0.6 * dice.random())
            finally:
                held.child.send_signal(signal.SIGCONT)
        wait_roles(load, pair)
        lost = sum(x.log.read_text().count("flow.lost") for x in pair)
        assert other.stop() in (0, 1)  # 1: a busy machine may not store all in time
    h.wait(lambda x: all((x.flow(f.a, f.b) or {}).get("state") == "copying" for f in load.flows), what="the first to go on")
    return "%d times SIGSTOP and SIGCONT of one of two, %d turns ended by force" % (n, lost)


def broker_rounds(load, h, n, dice, side="target", clean=()):
    """kill -9 of one broker of three, SIGTERM in the turns named in clean."""
    cluster, worst = load.target if side == "target" else load.source, 0.0
    for turn in range(n):
        wait_in_sync(cluster)
        victim = dice.randint(1, 3)
        if turn in clean:
            cluster.terminate(victim)
        else:
            cluster.kill(victim)
        time.sleep(2 * dice.random())
        cluster.restart(victim)
        worst = max(worst, load.wait_flowing(h))
    wait_in_sync(cluster)
    return "%d times kill -9 (%d SIGTERM) of one broker of three at the %s, flowing again after %.1f s at most" % (
        n - len(clean), len(clean), side, worst)


def leader_rounds(load, h, n, dice, side="target"):
    """Reassignments and preferred elections: the leader of some partition moves."""
    cluster = load.target if side == "target" else load.source
    for _ in range(n):
        flow = dice.choice(load.flows)
        topic = flow.remote() if side == "target" else flow.name
        partition = dice.randrange(2)
        h.wait(lambda _: feed.partitions_of(cluster.bootstrap, topic) == 2, what="the topic")
        leader = wire.place(cluster.bootstrap, topic, partition)[0]
        first = dice.choice([b for b in (1, 2, 3) if b != leader])
        rest = [b for b in (1, 2, 3) if b != first]
        wire.move_leader(cluster.bootstrap, topic, partition, [first] + rest[:dice.randint(1, 2)])
        time.sleep(0.3 * dice.random())
    return "%d leaders moved at the %s" % (n, side)


ROUNDS = {"kill": (kill_rounds, 200, 3, 400_000), "stop": (stop_rounds, 50, 1, 200_000),
          "brokers": (broker_rounds, 30, 2, 200_000), "leaders": (leader_rounds, 15, 2, 100_000)}


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.fc("FC-001", "FC-002", "FC-035")
@pytest.mark.parametrize("kinds", [[k] for k in ROUNDS] if FULL else [list(ROUNDS)], ids="+".join)
def test_rounds(pair, rounds, name, kinds):
    """The target forgets producer ids after three seconds."""
    dice = random.Random(name)
    load = Load(name, pair[0], rounds, session_ms=2500, **THREE)
    with Heliostat(load.config()) as h:
        load.start().wait_flowing(h)
        for kind in kinds:
            run, full, few, _ = ROUNDS[kind]
            print("\n" + run(load, h, full if FULL else few, dice))
        load.check(h, "after " + "+".join(kinds), ROUNDS[kinds[0]][3] if FULL else 1200)
        h.wait(lambda h: not h.status()["faults"], what="the faults to be over")
        assert h.status()["losses"] == [] and h.stop() in (0, 1)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.fc("FC-035")
def test_the_sources_leaders_move_and_its_brokers_restart(pair, three, name):
    dice = random.Random(4)
    load = Load(name, three, pair[1])
    with Heliostat(load.config()) as h:
        load.start().wait_flowing(h)
        print("\n" + leader_rounds(load, h, 15 if FULL else 2, dice, "source"))
        print("\n" + broker_rounds(load, h, 9 if FULL else 2, dice, "source", range(0, 9, 2) if FULL else [0]))
        load.check(h, "after moves and restarts at the source", 100_000 if FULL else 600)
        assert h.status()["losses"] == []


@pytest.mark.soak
@pytest.mark.fc("FC-035")
def test_both_clusters_are_rolled(pool, rounds, name):
    """Each broker of the source, each of the target, then one of either at once; three rounds."""
    load = Load(name, pool.get("4.3.0", "rolled", brokers=3), rounds, **THREE)
    with Heliostat(load.config()) as h:
        load.start().wait_flowing(h)
        child = h.child.pid
        for turn in range(3):
            for c in (load.source, load.target):
                for number in (1, 2, 3):
                    wait_in_sync(c)
                    c.kill(number) if (turn + number) % 2 else c.terminate(number)
                    c.restart(number)
            for c in (load.source, load.target):
                wait_in_sync(c)
                c.kill(turn + 1)
            for c in (load.source, load.target):
                c.restart(turn + 1)
            load.wait_flowing(h)
        load.check(h, "after three rolling restarts of both clusters", 30_000)
        assert h.child.pid == child and h.running() and h.status()["losses"] == []


@contextlib.contextmanager
def behind_proxy(props=None, **how):
    """A cluster of one broker that can be reached through a proxy only: (cluster, proxy)."""
    port = ports.free_port()
    with peers.Proxy(port, **how) as proxy, Cluster("4.3.0", port=port, name="cut", props={
            **(props or {}), **QUICK, "advertised.listeners": "PLAINTEXT://127.0.0.1:%d" % proxy.port}) as c:
        yield c, proxy


@pytest.mark.long
@pytest.mark.parametrize("side", [soak("source"), "target"])
def test_the_line_is_cut(pool, name, side):
    """Connections refused, or held without a word; longer than a session, and much longer."""
    other = pool.get("4.3.0", "source" if side == "target" else "target")
    cuts = [60] * 5 + [600] * (side == "target") if FULL else [2, 4]
    with behind_proxy(FORGETFUL if side == "target" else None) as (c, proxy):
        load = Load(name, *((other, c) if side == "target" else (c, other)))
        with Heliostat(load.config()) as h:
            load.start().wait_flowing(h)
            worst = 0.0
            for turn, seconds in enumerate(cuts):
                (proxy.close if turn % 2 else proxy.hold)()
                time.sleep(seconds)
                proxy.opened()
                worst = max(worst, load.wait_flowing(h))
                time.sleep(0.5)
            load.check(h, "after cuts of %s s towards the %s, flowing again after %.1f s at most" % (
                "+".join(map(str, cuts)), side, worst), 100_000 if FULL else 600)
            assert worst < 60 and h.status()["losses"] == []
            h.wait(lambda h: not h.status()["faults"], what="the faults to be over")


def values(bootstrap, topic):
    return [m.value() for m in compare.read(bootstrap, topic)]


def test_too_few_replicas_at_the_target(pair, rounds, name):
    """One of the two replicas that min.insync.replicas asks for is away: told by name, and over by itself. The broker that is
    killed neither coordinates the flow's group nor leads a topic of the mirror's own."""
    flow = Flow(name, pair[0], rounds)
    calm = name + "-calm"
    wait_in_sync(rounds)
    feed.create_topic(flow.source, calm, 1)
    feed.write(flow.source, calm, [(b"k", b"first")])
    lines = flow.config(name + "(-.*)?", offset__storage__partitions=1, **THREE, **{"emit.heartbeats.enabled": "false"})
    del lines["offset.storage.replication.factor"]
    lines[flow.b + ".offset.storage.replication.factor"] = 3
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [calm])
        keeper = wire.coordinator(rounds.bootstrap, flow.a + "-mm2")
        others = [b for b in (1, 2, 3) if b != keeper]
        for topic in ("mm2-offsets.%s.internal" % flow.a, "mm2-heliostat.%s.internal" % flow.a, flow.remote(calm)):
            assert len(wire.place(rounds.bootstrap, topic, 0)[1]) == 3
            wire.move_leader(rounds.bootstrap, topic, 0, [keeper, *others])
        victim, a = others[0], feed.admin(rounds.bootstrap)
        new = NewTopic(flow.remote(), 1, replica_assignment=[[keeper, victim]], config={"min.insync.replicas": "2"})
        a.create_topics([new])[flow.remote()].result(15)
        feed.wait_partitions(flow.target, flow.remote(), 1)
        feed.create_topic(flow.source, flow.name, 1)
        feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(50)])
        h.wait_copied(flow.source, [flow.name])
        rounds.kill(victim)
        h.wait(lambda _: wire.place(rounds.bootstrap, flow.remote(), 0)[2] == {keeper}, what="the replica to be out of sync")
        feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(50, 150)])
        h.wait(lambda h: any(p["fault"] and "NOT_ENOUGH_REPLICAS" in p["fault"]["code"] for p in h.partitions(flow.name)),
               what="the fault")
        feed.write(flow.source, calm, [(b"k", b"second")])
        h.wait(lambda _: values(flow.target, flow.remote(calm)) == [b"first", b"second"], what="the other topic")
        assert compare.ends(flow.target, flow.remote()) == {0: (0, 50)}
        rounds.restart(victim)
        h.wait_copied(flow.source, [flow.name])
        h.wait(lambda h: not h.status()["faults"], what="the fault to be over")
        assert values(flow.target, flow.remote()) == [b"%d" % i for i in range(150)]
        assert h.status()["losses"] == []


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of that many bytes; skips where none may be mounted. Gives a function that makes it larger."""
    folder.mkdir(parents=True)
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]

    def mount(*words):
        return subprocess.run([*root, "mount", *words], capture_output=True, text=True)

    done = mount("-t", "tmpfs", "-o", "size=%d,mode=777" % size, "tmpfs", str(folder))
    if done.returncode:
        pytest.skip("no small file system can be mounted here: %s" % done.stderr.strip())
    try:
        yield lambda more: mount("-o", "remount,size=%d" % more, str(folder))
    finally:
        subprocess.run([*root, "umount", "-l", str(folder)], check=False)


def test_the_targets_disk_is_full(pair, name, tmp_path):
    """The disk of one partition of the copy: its cause is told, the other goes on; with room and a broker that is started
    again (Kafka gives up a full disk until then) it goes on by itself, and nothing is lost."""
    disk = tmp_path / "small"
    with small_disk(disk, 6 << 20) as grow:
        c = Cluster("4.3.0", name="disk")
        c.props.update({"log.dirs": "%s,%s" % (c.brokers[0].folder / "data", disk), "log.index.interval.bytes": 1 << 30,
                        "log.index.size.max.bytes": 4096, "metadata.log.dir": c.brokers[0].folder / "data"})
        config.write(disk / "meta.properties", {"version": 1, "cluster.id": c.cluster_id, "node.id": 1,
                                                "directory.id": config.new_id()})
        with c:
            flow = Flow(name, pair[0], c)
            feed.create_topic(flow.source, flow.name, 2)
            with Heliostat(flow.config(offset__storage__partitions=1)) as h:
                h.wait(lambda h: len(h.partitions(flow.name)) == 2, what="the flow")
                to_disks(c, flow.remote(), tmp_path, disk)
                rows = [(b"%d" % i, os.urandom(2000)) for i in range(1000)]
                for _ in range(8):  # 16 MB for the small disk
                    feed.write(flow.source, flow.name, rows, 1)
                feed.write(flow.source, flow.name, rows[:100], 0)
                h.wait(lambda h: part(h, flow.name, 1)["fault"], what="the cause")
                told = part(h, flow.name, 1)["fault"]
                assert re.search("KAFKA_STORAGE_ERROR|LEADER_NOT_AVAILABLE|NOT_LEADER", told["code"]), told
                h.wait(lambda h: part(h, flow.name, 0)["next_offset"] == 100, what="the other partition")
                assert part(h, flow.name, 1)["next_offset"] < 8000 and h.running()
                c.kill()
                assert grow(64 << 20).returncode == 0
                c.restart()
                h.wait_copied(flow.source, [flow.name])
                result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
                print("\ntold as %s; %s" % (told["code"], result))
                assert result.equal and result.records == 8100, str(result)
                h.wait(lambda h: not h.status()["faults"], what="the fault to be over")
                assert h.status()["losses"] == []


def part(h, topic, partition):
    """The status of one partition; LabError while it is not there, as a wait wants it."""
    for p in h.partitions(topic):
        if p["partition"] == partition:
            return p
    raise LabError("partition %d of %s is not in the status" % (partition, topic))


def to_disks(c, copy, tmp_path, small):
    """Partition 1 of the copy to the small disk, all others to the large one."""
    large = c.brokers[0].folder / "data"
    topics = feed.admin(c.bootstrap).list_topics(timeout=60).topics
    plan = [{"topic": t, "partition": p, "replicas": [1], "log_dirs": [str(small if (t, p) == (copy, 1) else large)]}
            for t, m in topics.items() for p in m.partitions]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": plan}))
    java.tool(c, "reassign", "--reassignment-json-file", str(path), "--execute")
    end = time.monotonic() + 60
    while [p.name for p in small.glob("*-*") if p.is_dir()] != [copy + "-1"]:
        assert time.monotonic() < end, sorted(p.name for p in small.iterdir())
        time.sleep(0.1)
