"""What breaks for people who mirror Kafka, case by case, as far as no other file has it: ./test -k FC-012 runs one."""
import pathlib
import random
import re
import signal
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from conftest import Flow
from lab import compare, feed, heliostat, java, offsets, ports
from lab.cluster import Cluster
from lab.heliostat import Heliostat
from lab.pace import most
from test_crash import no_damage
from test_rounds import THREE, behind_proxy, part, rounds, wait_in_sync  # noqa: F401 (rounds is a fixture)
from test_shapes import transactional


CASES = [*range(1, 37), 38, 40, 41, 44, 45, 46]  # numbers of the field cases that have a test


def test_every_case_has_a_test():
    """The table of cases and tests, from the marks."""
    table = {}
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        for marks, test in re.findall(r"^((?:@.*\n)*)def (test_\w+)\(", path.read_text(), re.M):
            for case in re.findall(r"FC-\d+", marks):
                table.setdefault(case, []).append("%s::%s" % (path.stem, test))
    for case, tests in sorted(table.items()):
        print("%s  %s" % (case, "  ".join(tests)))
    assert sorted(table) == ["FC-%03d" % n for n in CASES]


def rows(first, last):
    """Records with the numbers [first, last)."""
    return [(b"%d" % i, b"v%d" % i) for i in range(first, last)]


@pytest.mark.long
@pytest.mark.fc("FC-001")
def test_killed_with_much_on_its_way(pool, name, full):
    """A line of 100 ms each way, so that many batches are never acknowledged yet."""
    dice = random.Random(1)
    with behind_proxy(delay=0.1) as (target, _):
        flow = Flow(name, pool.get("4.3.0", "source"), target)
        feed.create_topic(flow.source, name, 6)
        producer = feed.Numbered(flow.source, name, 6, rate=6000 if full else 2000)
        producer.start()
        with Heliostat(flow.config()) as h:
            for _ in range(20 if full else 2):
                h.wait(lambda h: sum(p["records"] for p in h.partitions(name)) > 500, what="records to flow")
                time.sleep(dice.random())
                h.kill9()
                h.restart()
            counts = producer.stop()
            h.wait_copied(flow.source, [name])
            no_damage(flow, counts)


@pytest.mark.fc("FC-003")
@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_retention_overtook_one_partition(flow, reset):
    """The others are not affected, whatever auto.offset.reset says; the lost range is told exactly."""
    feed.create_topic(flow.source, flow.name, 4)
    for p in range(4):
        feed.write(flow.source, flow.name, rows(0, 100), p)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        assert h.stop() == 0
    for p in range(4):
        feed.write(flow.source, flow.name, rows(100, 200), p)
    feed.delete_records(flow.source, flow.name, 2, 150)
    with Heliostat({**flow.config(), flow.a + ".consumer.auto.offset.reset": reset}) as h:
        h.wait(lambda h: all(part(h, flow.name, p)["next_offset"] == 200 for p in (0, 1, 3)), what="the other partitions")
        if reset == "none":
            h.wait(lambda h: part(h, flow.name, 2)["state"] == "halted", what="the halt")
            fault = part(h, flow.name, 2)["fault"]
            assert fault["code"] == "OFFSET_OUT_OF_RANGE" and "150" in fault["text"], fault
        else:
            h.wait(lambda h: part(h, flow.name, 2)["next_offset"] == 200, what="partition 2")
            last = 149 if reset == "earliest" else 199
            h.wait(lambda h: [(x["topic"], x["partition"], x["from_offset"], x["to_offset"]) for x in h.status()["losses"]] ==
                   [(flow.name, 2, 100, last)], what="the loss")
            assert h.metrics()["heliostat_losses"] == 1 and "from_offset=100 to_offset=%d" % last in h.log.read_text()
        copies = {0: 200, 1: 200, 2: {"earliest": 150, "latest": 100, "none": 100}[reset], 3: 200}
        assert {p: high for p, (_, high) in compare.ends(flow.target, flow.remote()).items()} == copies


@pytest.mark.fc("FC-004")
def test_source_topic_made_anew_under_the_running_mirror(flow):
    """Shorter than before: copied from its start, behind what is there; offsets mean the new one."""
    feed.create_topic(flow.source, flow.name, 3)
    for p in range(3):
        feed.write(flow.source, flow.name, rows(0, 500), p)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        feed.delete_topics(flow.source, [flow.name])
        feed.create_topic(flow.source, flow.name, 3)
        began = time.monotonic()
        for p in range(3):
            feed.write(flow.source, flow.name, rows(1000, 1050), p)
        h.wait(lambda h: compare.ends(flow.target, flow.remote()) == {p: (0, 550) for p in range(3)}, what="the new records")
        assert time.monotonic() - began < most(30) and "relay.anew" in h.log.read_text()
        for p in range(3):
            got = [m.value() for m in compare.read(flow.target, flow.remote()) if m.partition() == p]
            assert got == [v for _, v in rows(0, 500) + rows(1000, 1050)]
            assert [a["to"] for a in offsets.ask(h, flow, flow.name, p, [0, 25, 49])] == [500, 525, 549]


@pytest.mark.fc("FC-008")
def test_nothing_of_the_sources_producers_is_left(flow):
    """No foreign producer id, no transactional batch, no marker: the target's last stable offset is its end."""
    transactional(flow.source, flow.name, 2)
    feed.mixed(flow.source, flow.name, 500, 2, big=0)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        assert compare.ends(flow.target, flow.remote(), "read_committed") == compare.ends(flow.target, flow.remote())
        text = java.dump_log(flow.clusters[1], flow.remote())
        assert "isTransactional: false" in text and "isTransactional: true" not in text and "isControl: true" not in text
        ids = {line.split("producerId: ")[1].split()[0] for line in text.splitlines() if "producerId: " in line}
        assert len(ids) == 1, ids  # the flow's own
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote(), target_isolation="read_committed")
        assert result.equal, str(result)


@pytest.mark.fc("FC-009")
def test_times_far_apart_in_one_batch(flow):
    """More than 2^31 ms, in either direction."""
    now, day = int(time.time() * 1000), 86_400_000
    feed.create_topic(flow.source, flow.name, 2)
    for partition, codec in enumerate(("none", "zstd")):
        p = Producer({"bootstrap.servers": flow.source, "linger.ms": 200, "compression.type": codec, "log_level": 0})
        for i, stamp in enumerate((now, now - 400 * day, now + 60_000, 1, now - 25 * day) * 20):
            feed.produce(p, flow.name, partition, b"k", b"%d" % i, timestamp=stamp)
        p.flush(30)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == 200, str(result)
        assert {m.timestamp()[1] for m in compare.read(flow.target, flow.remote())} == {
            now, now - 400 * day, now + 60_000, 1, now - 25 * day}


def standing(h, flow):
    """{partition: where it stands} of those that have no lag."""
    return {q["partition"]: q["next_offset"] for q in h.partitions(flow.name) if q["lag_records"] == 0}


@pytest.mark.fc("FC-011")
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_no_lag_behind_a_marker(flow, isolation):
    """The log ends in a commit, then in an aborted transaction: lag 0, also after a restart, and nothing is sent for it."""
    transactional(flow.source, flow.name, 2)
    p = Producer({"bootstrap.servers": flow.source, "transactional.id": flow.name, "log_level": 0})
    p.init_transactions(30)
    with Heliostat({**flow.config(), flow.a + ".consumer.isolation.level": isolation}) as h:
        for commit in (True, False):
            p.begin_transaction()
            for partition in (0, 1):
                feed.produce(p, flow.name, partition, b"k", b"last")
            p.flush(30)
            (p.commit_transaction if commit else p.abort_transaction)(30)
            ends = {q: high for q, (_, high) in compare.ends(flow.source, flow.name).items()}
            h.wait(lambda h: standing(h, flow) == ends, what="the end, and no lag")
        before = compare.ends(flow.target, flow.remote())
        assert h.stop() == 0
        h.restart().wait_ready()
        h.wait(lambda h: standing(h, flow) == ends, what="the end, and no lag")
        assert all(q["records"] == 0 for q in h.partitions(flow.name))
        assert compare.ends(flow.target, flow.remote()) == before


@pytest.mark.fc("FC-017")
def test_the_target_is_rebuilt_under_its_name(pool, name):
    """Another cluster at the same address, empty: copied from the source's start, and offsets mean the new copy."""
    source, port = pool.get("4.3.0", "source"), ports.free_port()
    feed.create_topic(source.bootstrap, name, 2)
    for p in range(2):
        feed.write(source.bootstrap, name, rows(0, 300), p)
    feed.delete_records(source.bootstrap, name, 1, 100)
    for turn in range(2):
        with Cluster("4.3.0", port=port, name="rebuilt") as target:
            flow = Flow(name, source, target)
            with Heliostat(flow.config()) as h:
                h.wait_copied(flow.source, [name])
                result = compare.topics(flow.source, name, flow.target, flow.remote())
                assert result.equal and result.records == 500 + 20 * turn, str(result)
                assert [a["to"] for a in offsets.ask(h, flow, name, 1, [100, 299])] == [0, 199]
                high = compare.ends(flow.target, flow.remote())[0][1]
                assert all(a["to"] <= high for a in offsets.ask(h, flow, name, 0, list(range(0, 300, 7))))
                assert h.stop() == 0
        feed.write(source.bootstrap, name, rows(300, 320), 0)


@pytest.mark.fc("FC-023")
def test_new_partitions_begin_at_their_start(flow):
    """auto.offset.reset = latest is for what was there at the first start; the rest is copied whole."""
    fresh = flow.name + "-fresh"
    feed.create_topic(flow.source, flow.name, 2)
    feed.write(flow.source, flow.name, rows(0, 50), 0)
    lines = {**flow.config(flow.name + "(-.*)?", refresh__topics__interval__seconds=3), flow.a + ".consumer.auto.offset.reset": "latest"}
    with Heliostat(lines) as h:
        h.wait(lambda h: sorted(p["state"] for p in h.partitions(flow.name)) == ["caught-up"] * 2, what="both partitions")
        feed.grow_topic(flow.source, flow.name, 6)
        feed.create_topic(flow.source, fresh, 2)
        for p in range(2, 6):
            feed.write(flow.source, flow.name, rows(0, 200), p)
        for p in range(2):
            feed.write(flow.source, fresh, rows(0, 200), p)
        want = {0: (0, 0), 1: (0, 0), **{p: (0, 200) for p in range(2, 6)}}
        h.wait(lambda h: compare.ends(flow.target, flow.remote()) == want, what="the new partitions")
        h.wait(lambda h: compare.ends(flow.target, flow.remote(fresh)) == {0: (0, 200), 1: (0, 200)}, what="the new topic")
        h.kill9()
        h.restart().wait_ready()
        h.wait(lambda h: len(h.partitions(flow.name)) == 6 and all(p["next_offset"] is not None for p in h.partitions()),
               what="all partitions")
        assert compare.ends(flow.target, flow.remote()) == want
        by_partition = {}
        for m in compare.read(flow.target, flow.remote()):
            by_partition.setdefault(m.partition(), []).append(m.value())
        assert by_partition == {p: [v for _, v in rows(0, 200)] for p in range(2, 6)}


def stands(h, topic, number):
    """True when a partition that is written to all the time does not move for a second."""
    before = part(h, topic, number)["next_offset"]
    time.sleep(1)
    return part(h, topic, number)["next_offset"] == before


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.fc("FC-032")
def test_one_target_broker_is_down(pair, rounds, name, full):  # noqa: F811
    """Partitions on the others flow all the time; a copy made meanwhile, of which a replica is to be there, is filled."""
    flow = Flow(name, pair[0], rounds)
    alone, late = name + "-alone", name + "-late"
    wait_in_sync(rounds)
    a = feed.admin(rounds.bootstrap)
    a.create_topics([NewTopic(flow.remote(alone), 3, replica_assignment=[[1], [2], [3]])])[flow.remote(alone)].result(15)
    for topic in (name, alone):
        feed.create_topic(flow.source, topic, 3)
    producers = [feed.Numbered(flow.source, t, 3, rate=300) for t in (name, alone)]
    for p in producers:
        p.start()
    lines = flow.config(name + "(-.*)?", **THREE, **{"emit.heartbeats.enabled": "false"})
    with Heliostat(lines) as h:
        h.wait(lambda h: len(h.partitions()) >= 6 and all(p["records"] for t in (name, alone) for p in h.partitions(t)), what="all")
        rounds.kill(3)
        feed.create_topic(flow.source, late, 1)
        feed.write(flow.source, late, rows(0, 100))
        end = time.monotonic() + (60 if full else 4)
        stalls = {0: 0.0, 1: 0.0}  # of the partitions on live brokers
        seen = {p: (part(h, alone, p)["next_offset"], time.monotonic()) for p in stalls}
        while time.monotonic() < end:
            for p in stalls:
                now = part(h, alone, p)["next_offset"]
                if now != seen[p][0]:
                    seen[p] = now, time.monotonic()
                stalls[p] = max(stalls[p], time.monotonic() - seen[p][1])
            time.sleep(0.05)
        print("\nlongest pause of a partition on a live broker: %.1f s" % max(stalls.values()))
        assert max(stalls.values()) < most(15)
        h.wait(lambda h: stands(h, alone, 2), what="the partition on the dead broker to stand")
        h.wait(lambda h: part(h, late, 0)["next_offset"] == 100, what="the copy made meanwhile")
        rounds.restart(3)
        counts = {t: sum(p.stop().values()) for t, p in zip((name, alone), producers)}
        h.wait_copied(flow.source, [name, alone, late])
        for topic, count in {**counts, late: 100}.items():
            result = compare.topics(flow.source, topic, flow.target, flow.remote(topic))
            assert result.equal and result.records == count, (topic, str(result))
        h.wait(lambda h: not h.status()["faults"], what="the faults to be over")


@pytest.mark.fc("FC-025")
def test_a_topic_deleted_at_the_source_disturbs_no_other(pool, name):
    """Its copy stays, it is not made again at a source that makes what is asked for, and the others do not pause."""
    with Cluster("4.3.0", name="making", props={"auto.create.topics.enable": "true"}) as source:
        flow = Flow(name, source, pool.get("4.3.0", "target"))
        topics = ["%s-%d" % (name, i) for i in range(4)]
        for t in topics:
            feed.create_topic(flow.source, t, 2)
        feed.write(flow.source, topics[0], rows(0, 100))
        producers = [feed.Numbered(flow.source, t, 2, rate=500) for t in topics[1:]]
        for p in producers:
            p.start()
        with Heliostat(flow.config(name + "-.*")) as h:
            h.wait(lambda h: part(h, topics[0], 0)["next_offset"] == 100 and all(part(h, t, 0)["records"] for t in topics[1:]),
                   what="all topics to flow")
            feed.delete_topics(flow.source, [topics[0]])
            worst, seen, end = 0.0, {}, time.monotonic() + 6
            while time.monotonic() < end or h.partitions(topics[0]):
                for t in topics[1:]:
                    now = part(h, t, 0)["next_offset"]
                    if seen.get(t, (None,))[0] != now:
                        seen[t] = now, time.monotonic()
                    worst = max(worst, time.monotonic() - seen[t][1])
                assert time.monotonic() < end + 30, "the deleted topic is still shown"
                time.sleep(0.05)
            print("\nlongest pause of another topic: %.1f s" % worst)
            assert worst < most(5) and topics[0] not in feed.topics_of(flow.source)
            assert compare.ends(flow.target, flow.remote(topics[0]))[0] == (0, 100)
            counts = {t: sum(p.stop().values()) for t, p in zip(topics[1:], producers)}
            h.wait_copied(flow.source, topics[1:])
            for t, count in counts.items():
                result = compare.topics(flow.source, t, flow.target, flow.remote(t))
                assert result.equal and result.records == count, (t, str(result))
            assert h.stop() == 0


@pytest.mark.fc("FC-033")
def test_idle_connections_dropped_without_a_word(pool, name, full):
    """A line that forgets connections that are silent for a while: each burst arrives soon, and once."""
    idle, bursts = (60, 10) if full else (2.5, 2)
    source = pool.get("4.3.0", "source")
    with behind_proxy(idle=idle) as (target, proxy):
        flow = Flow(name, source, target)
        feed.create_topic(flow.source, name, 2)
        timeout = 30 if full else 4
        lines = {**flow.config(), flow.b + ".producer.request.timeout.ms": timeout * 1000, "emit.heartbeats.enabled": "false",
                 "heliostat.heartbeat.interval.ms": 500}
        with Heliostat(lines) as h:
            feed.write(flow.source, name, rows(0, 10))
            h.wait_copied(flow.source, [name])
            worst = 0.0
            for turn in range(bursts):
                time.sleep(idle * 1.5)
                feed.write(flow.source, name, rows(0, 1000), turn % 2)
                began = time.monotonic()
                h.wait_copied(flow.source, [name])
                worst = max(worst, time.monotonic() - began)
            print("\n%d connections were swallowed; the slowest burst took %.1f s" % (proxy.swallowed, worst))
            result = compare.topics(flow.source, name, flow.target, flow.remote())
            assert result.equal and result.records == 10 + 1000 * bursts, str(result)
            assert proxy.swallowed and worst < most(timeout + 8)


def fill(flow, megabytes, partitions=12):
    """Records of 1 KB over all partitions."""
    feed.create_topic(flow.source, flow.name, partitions)
    p = Producer({**feed.RETRY, "bootstrap.servers": flow.source, "linger.ms": 20})
    value = bytes(range(250)) * 4
    for i in range(megabytes * 1000):
        feed.produce(p, flow.name, i % partitions, None, value)
    p.flush(120)
    return megabytes * 1000


def seconds_of_copy(flow, mirror, count, limit=300):
    """From the first record at the target to the last."""
    def have():
        try:
            return sum(high for _, high in compare.ends(flow.target, flow.remote()).values())
        except Exception:  # pylint: disable=broad-except; the copy is being made
            return 0

    began, end = None, time.monotonic() + limit
    with mirror:
        while True:
            n = have()
            if n and not began:
                began = time.monotonic()
            if n >= count:
                return time.monotonic() - began
            assert time.monotonic() < end, "%d of %d records" % (n, count)
            time.sleep(0.02)


@pytest.mark.fc("FC-034")
def test_throughput_over_a_long_line(pool, name, full):
    """100 ms of round trip to the target, default settings; with HELIOSTAT_FULL=1 beside the real MirrorMaker 2."""
    megabytes = 200 if full else 30
    with behind_proxy(delay=0.05) as (target, _):
        flow = Flow(name, pool.get("4.3.0", "source"), target)
        count = fill(flow, megabytes)
        ours = seconds_of_copy(flow, Heliostat(flow.config()), count)
        print("\n%.1f MB/s" % (megabytes / ours))
        assert megabytes / ours > 3
        if full:
            flow.a += "m"
            theirs = seconds_of_copy(flow, java.MirrorMaker(heliostat.as_text(flow.config())), count)
            print("MirrorMaker 2: %.1f MB/s" % (megabytes / theirs))
            assert ours <= theirs


@pytest.mark.fc("FC-046")
@pytest.mark.parametrize("sides", [(1,), (0, 1)], ids=["target", "both"])
def test_a_second_sigterm_ends_at_once(own_flow, sides):
    """While clusters hang; and what was acknowledged is not copied again."""
    flow = own_flow
    feed.create_topic(flow.source, flow.name, 2)
    feed.mixed(flow.source, flow.name, 1000, 2, big=0)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        for side in sides:
            flow.clusters[side].kill(1, signal.SIGSTOP)
        try:
            time.sleep(0.5)
            h.child.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            began = time.monotonic()
            h.child.send_signal(signal.SIGTERM)
            code = h.child.wait(10)
            took = time.monotonic() - began
        finally:
            for side in sides:
                flow.clusters[side].kill(1, signal.SIGCONT)
        assert code == 1 and took < most(2), (code, took)
        h.restart()
        feed.mixed(flow.source, flow.name, 500, 2, seed=2, big=0)
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == 1500, str(result)


@pytest.mark.fc("FC-046")
def test_sigterm_right_behind_the_start(flow):
    """Whatever it is at: it ends soon, and nothing is lost or repeated."""
    feed.create_topic(flow.source, flow.name, 2)
    feed.mixed(flow.source, flow.name, 1000, 2, big=0)
    with Heliostat(flow.config()) as h:
        for wait in (0.1, 0.25, 0.5, 0.9):
            time.sleep(wait)
            began = time.monotonic()
            assert h.stop() in (0, 1) and time.monotonic() - began < most(5.5)
            h.restart()
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == 1000, str(result)


@pytest.mark.soak
def test_positions_on_a_dead_broker_are_named(pair, rounds, name):  # noqa: F811
    """One replica, and its broker is away: the flow cannot begin, and says which partition it waits for."""
    flow = Flow(name, pair[0], rounds)
    wait_in_sync(rounds)
    topic = "mm2-offsets.%s.internal" % flow.a
    a = feed.admin(rounds.bootstrap)
    new = NewTopic(topic, 2, replica_assignment=[[1], [3]], config={"cleanup.policy": "compact"})
    a.create_topics([new])[topic].result(15)
    feed.wait_partitions(flow.target, topic, 2)
    feed.create_topic(flow.source, name, 1)
    feed.write(flow.source, name, rows(0, 100))
    lines = flow.config(**THREE, **{"emit.heartbeats.enabled": "false"})
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [name])
        assert h.stop() == 0
        rounds.kill(3)
        feed.write(flow.source, name, rows(100, 200))
        h.restart()
        h.wait(lambda h: "LEADER_NOT_AVAILABLE" in str(h.status()["faults"]), what="the cause")
        text = str(h.status()["faults"])
        assert "partition 1" in text and topic in text, text
        rounds.restart(3)
        began = time.monotonic()
        h.wait_copied(flow.source, [name])
        took = time.monotonic() - began
        print("\ncopied %.1f s after the broker was back" % took)
        assert took < most(40) and compare.topics(flow.source, name, flow.target, flow.remote()).equal
        h.wait(lambda h: not h.status()["faults"], what="the fault to be over")


def test_internal_topics_have_the_replicas_of_their_cluster(pair, rounds, name):  # noqa: F811
    """<alias>.offset.storage.replication.factor counts for the topics on that cluster; a flow that only writes heartbeats
    does not need the topic of positions, and a factor that its cluster cannot give holds nothing up."""
    flow = Flow(name, pair[0], rounds)
    wait_in_sync(rounds)
    feed.create_topic(flow.source, name, 1)
    feed.write(flow.source, name, rows(0, 100))
    lines = flow.config(**{"heartbeats.topic.replication.factor": 1})
    del lines["offset.storage.replication.factor"]
    lines[flow.b + ".offset.storage.replication.factor"] = 3  # the way back takes the default, 3, of one broker
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [name])
        for topic in ("mm2-offsets.%s.internal" % flow.a, "mm2-heliostat.%s.internal" % flow.a):
            assert feed.describe(flow.target, [topic])[topic]["replication"] == 3
        h.wait_ready()
        h.wait(lambda h: not h.status()["faults"], what="no fault")
        assert "mm2-offsets.%s.internal" % flow.b not in feed.topics_of(flow.source)
        h.wait(lambda h: h.flow(flow.b, flow.a)["state"] == "disabled", what="the way back to write heartbeats")
