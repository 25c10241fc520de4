"""What each delivery mode promises, under kill -9 and foreign hands: exactly once, transactions, at least once, at most once."""
import collections
import contextlib
import json
import random
import re
import signal
import time

import pytest
from confluent_kafka import KafkaException, Producer

from conftest import Flow
from lab import compare, feed, groups, java, offsets
from lab.heliostat import Heliostat

def transactional(flow, **more):
    """A flow that writes in transactions."""
    return flow.config(**{flow.b + ".exactly.once.source.support": "enabled", **more})


@contextlib.contextmanager
def under_kills(flow, lines, kills, seed, partitions=4, rate=3000, after_kill=None):
    """Feeds and kills; gives the program, running and caught up, and the number of records fed."""
    dice = random.Random(seed)
    feed.create_topic(flow.source, flow.name, partitions)
    producer = feed.Numbered(flow.source, flow.name, partitions, rate=rate)
    producer.start()
    with Heliostat(lines) as h:
        h.wait_ready()
        for number in range(kills):
            time.sleep(0.4 + 1.6 * dice.random())
            h.kill9()
            if after_kill and number % (kills // 20 + 1) == 0:  # it reads all: not in every one of many rounds
                after_kill()
            time.sleep(0.3 * dice.random())
            h.restart()
            h.wait_copied(flow.source, [flow.name])  # the last crash is dealt with before the next
        counts = producer.stop()
        h.wait_copied(flow.source, [flow.name])
        yield h, sum(counts.values())


def places(flow, isolation="read_uncommitted"):
    """({(partition, offset): digest} of the source, {(partition, digest): how often} at the target)."""
    source = {(m.partition(), m.offset()): compare.digest(m)
              for m in compare.Reader(flow.source, flow.name).messages()}
    target = collections.Counter((m.partition(), compare.digest(m))
                                 for m in compare.Reader(flow.target, flow.remote(), isolation).messages())
    return source, target


def told(h, flow, kind):
    """How often each (partition, offset) lies in a range that the status tells: "repeats" or "losses", of all runs."""
    out = collections.Counter()
    for r in h.status()[kind]:
        if r["topic"] == flow.name:
            for offset in range(r["from_offset"], r["to_offset"] + 1):
                out[r["partition"], offset] += 1
    return out


def committed(flow):
    """({partition: stored position + 1}, {partition: records}) as a reader of committed records sees them."""
    stored, records = {}, collections.Counter()
    for m in compare.read(flow.target, "mm2-offsets.%s.internal" % flow.a, "read_committed"):
        key = json.loads(m.key())
        place = key[1] if isinstance(key, list) else {}  # else it is one that shuts a writer out
        if place.get("topic") == flow.name:
            stored[place["partition"]] = json.loads(m.value())["offset"] + 1
    for m in compare.Reader(flow.target, flow.remote(), "read_committed").messages():
        records[m.partition()] += 1
    return stored, dict(records)


def equal(flow, total, isolation="read_committed"):
    """Nothing missing, repeated, altered or out of order for a reader at the target."""
    result = compare.topics(flow.source, flow.name, flow.target, flow.remote(), target_isolation=isolation)
    print("\n%s" % result)
    assert result.equal and result.records == total, str(result)


def translated(h, flow):
    """Map and offset syncs name committed records only, and the right ones: markers and what was aborted lie between."""
    kinds = offsets.check(h, flow, 400, isolation="read_uncommitted")
    source = offsets.by_offset(flow.source, flow.name, "read_uncommitted")
    target = offsets.by_offset(flow.target, flow.remote(), "read_committed")
    syncs = [s for s in groups.syncs(flow.source, "mm2-offset-syncs.%s.internal" % flow.b) if s[0] == flow.name]
    print("offsets asked: %s; %d offset syncs" % (kinds, len(syncs)))
    assert set(kinds) <= {"exact", "next", "end"} and syncs, kinds
    for _, p, up, down in syncs:
        assert source[p][up] == target[p][down], (p, up, down)


RELEASES = pytest.mark.xdist_group("releases")


@pytest.mark.parametrize("version", ["4.3.0", *(pytest.param(v, marks=(RELEASES, pytest.mark.soak)) for v in ("3.9.1", "4.4.0"))])
def test_transactions_under_kill(pool, name, version, full):
    """Batches and positions are committed together: after each kill a reader finds as many as the position says."""
    flow = Flow(name, pool.get("4.3.0", "source"), pool.get(version, "target"))

    def look():
        if not feed.partitions_of(flow.target, flow.remote()):
            return
        end = time.monotonic() + 10
        while True:  # markers of a transaction that was decided may still be on their way
            stored, records = committed(flow)
            if stored == records:
                return
            assert time.monotonic() < end, (stored, records)
            time.sleep(0.2)

    with under_kills(flow, transactional(flow), 200 if full else 2, 11, rate=1000, after_kill=look) as (h, total):
        equal(flow, total)
        assert h.flow(flow.a, flow.b)["delivery"] == "transactions"
        translated(h, flow)
        assert h.stop() == 0
        assert "transaction.taken" in h.log.read_text()
        assert committed(flow)[0] == committed(flow)[1]


def test_at_least_once_tells_its_repeats(flow, full):
    """Nothing is missing, and what is there more than once is exactly what the status says."""
    with under_kills(flow, flow.config(**{"heliostat.delivery": "at-least-once"}), 50 if full else 2, 12, rate=1000) as (h, total):
        source, target = places(flow)
        more = sum(target.values()) - total
        h.wait(lambda h: sum(told(h, flow, "repeats").values()) >= more, 10, "all repeats to be told")
        repeats = told(h, flow, "repeats")
        print("\n%d records, %d written again, %d told" % (total, more, sum(repeats.values())))
        assert len(source) == total
        assert {p: target[p[0], d] for p, d in source.items()} == {p: 1 + repeats[p] for p in source}
        assert more == sum(repeats.values()) > 0
        assert not told(h, flow, "losses")
        assert h.stop() == 0


def test_at_most_once_tells_its_losses(flow, full):
    """Nothing is repeated, and what is missing is exactly what the status says."""
    with under_kills(flow, flow.config(**{"heliostat.delivery": "at-most-once"}), 50 if full else 3, 13, rate=1000) as (h, total):
        source, target = places(flow)
        missing = total - sum(target.values())
        h.wait(lambda h: len(told(h, flow, "losses")) >= missing, 10, "all losses to be told")
        losses = told(h, flow, "losses")
        print("\n%d records, %d missing, %d told" % (total, missing, len(losses)))
        assert len(source) == total
        assert {p: target[p[0], d] for p, d in source.items()} == {p: 0 if losses[p] else 1 for p in source}
        assert missing == len(losses) == sum(losses.values())
        assert not told(h, flow, "repeats")
        assert h.stop() == 0


@pytest.mark.soak
def test_modes_hand_over(flow, full):
    """From one mode to the next after kill -9, and again in the first moments of the new one: nothing missing, nothing repeated."""
    dice = random.Random(16)
    least, most = (flow.config(**{"heliostat.delivery": d}) for d in ("at-least-once", "at-most-once"))
    feed.create_topic(flow.source, flow.name, 2)
    producer = feed.Numbered(flow.source, flow.name, 2, rate=3000)
    producer.start()
    for lines in [flow.config(), transactional(flow), least, transactional(flow), most, flow.config()] * (5 if full else 1):
        if lines not in (least, most):  # these two repeat or lose when they are killed and go on themselves
            with Heliostat(lines) as h:
                h.wait(lambda h: h.partitions(flow.name), what="the partitions")
                time.sleep(0.6 * dice.random())
        with Heliostat(lines) as h:
            h.wait(lambda h: sum(p["records"] for p in h.partitions(flow.name)) > 1000, what="some records")
            time.sleep(0.5 * dice.random())
    total = sum(producer.stop().values())
    with Heliostat(transactional(flow)) as h:
        h.wait_copied(flow.source, [flow.name])
        equal(flow, total)
        assert not told(h, flow, "repeats") and not told(h, flow, "losses")
        assert h.stop() == 0


def take_ids(flow):
    """What a program does that uses the transactional ids of the flow's workers."""
    for worker in range(2):
        with contextlib.suppress(KafkaException):  # the mirror may have taken it back before this one had its answer
            Producer({"bootstrap.servers": flow.target, "log_level": 0,
                      "transactional.id": "%s-mm2-MirrorSourceConnector-%d" % (flow.a, worker)}).init_transactions(30)


def test_hanging_transaction_and_fencing(flow):
    """What an earlier holder of the transactional id left open is aborted at the start, and he is fenced."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.create_topic(flow.target, flow.remote(), 1)
    feed.write(flow.source, flow.name, [(b"k", b"v%d" % i) for i in range(100)])
    old = Producer({"bootstrap.servers": flow.target, "transactional.id": "%s-mm2-MirrorSourceConnector-0" % flow.a,
                    "transaction.timeout.ms": 600000, "log_level": 0})
    old.init_transactions(30)
    old.begin_transaction()
    old.produce(flow.remote(), b"left open", b"k", 0)
    old.flush(30)
    assert compare.ends(flow.target, flow.remote(), "read_committed")[0] == (0, 0)
    with Heliostat(transactional(flow, **{"heliostat.membership": "false"})) as h:
        h.wait_copied(flow.source, [flow.name])
        equal(flow, 100)
        with pytest.raises(KafkaException):
            old.commit_transaction(10)
        take_ids(flow)
        feed.write(flow.source, flow.name, [(b"k", b"w%d" % i) for i in range(100)])
        h.wait(lambda h: "PRODUCER_FENCED" in json.dumps(h.status()["faults"]), what="the mirror to be fenced")
        h.kill9()
        h.restart()
        h.wait_copied(flow.source, [flow.name])
        equal(flow, 200)
        low, high = compare.ends(flow.target, flow.remote())[0]
        assert compare.ends(flow.target, flow.remote(), "read_committed")[0] == (low, high)


def ends_well(h, flow, producer):
    """Everything that the producer wrote is there, once, and nothing is wrong any more."""
    total = sum(producer.stop().values())
    h.wait_copied(flow.source, [flow.name])
    equal(flow, total)
    h.wait(lambda h: not h.status()["faults"], what="the faults to be over")
    assert h.stop() == 0


@pytest.mark.soak
def test_fenced_flow_goes_on(flow):
    """A member of the group that holds the flow takes its transactional ids back, and goes on from what was committed."""
    feed.create_topic(flow.source, flow.name, 2)
    producer = feed.Numbered(flow.source, flow.name, 2, rate=1000)
    producer.start()
    with Heliostat(transactional(flow)) as h:
        h.wait(lambda h: sum(p["records"] for p in h.partitions(flow.name)) > 500, what="some records")
        take_ids(flow)
        h.wait(lambda h: "transaction.fenced" in h.log.read_text(), what="the mirror to be fenced")
        ends_well(h, flow, producer)


@pytest.mark.soak
def test_timed_out_transaction_goes_on(forgetful, pair, name):
    """The coordinator aborts what was open while the mirror stood still; it goes on by itself."""
    flow = Flow(name, pair[0], forgetful)
    feed.create_topic(flow.source, flow.name, 2)
    producer = feed.Numbered(flow.source, flow.name, 2, rate=1000)
    producer.start()
    with Heliostat(transactional(flow, **{flow.b + ".producer.transaction.timeout.ms": 5000,
                                          "heliostat.transaction.interval.ms": 500,
                                          "heliostat.session.timeout.ms": 30000})) as h:
        h.wait(lambda h: sum(p["records"] for p in h.partitions(flow.name)) > 500, what="some records")
        for _ in range(10):  # until it is stopped with a transaction open
            if "transaction.fenced" in h.log.read_text():
                break
            h.child.send_signal(signal.SIGSTOP)
            time.sleep(7)
            h.child.send_signal(signal.SIGCONT)
            h.wait(lambda h: h.status(), what="it to answer")
            time.sleep(0.7)
        assert "transaction.fenced" in h.log.read_text()
        ends_well(h, flow, producer)


@pytest.mark.soak
def test_transactions_through_broker_kills(three, pair, name):
    """Each broker of the target in turn, so the coordinator and leaders among them, is killed under load."""
    flow = Flow(name, pair[0], three)
    feed.create_topic(flow.source, flow.name, 6)
    feed.create_topic(flow.target, flow.remote(), 6, {"min.insync.replicas": 2}, replication=3)
    producer = feed.Numbered(flow.source, flow.name, 6, rate=3000)
    producer.start()
    with Heliostat(transactional(flow, **{"offset.storage.replication.factor": 3, "emit.heartbeats.enabled": "false"})) as h:
        h.wait_ready()
        for number in (1, 2, 3):
            flow.clusters[1].kill(number)
            h.wait_copied(flow.source, [flow.name], limit=60)
            flow.clusters[1].restart(number)
        total = sum(producer.stop().values())
        h.wait_copied(flow.source, [flow.name])
        equal(flow, total)
        translated(h, flow)
        h.wait(lambda h: not h.status()["faults"], what="the faults to be over")
        assert h.stop() == 0


@RELEASES
def test_transactions_are_refused_before_3_6(pool, name):
    flow = Flow(name, pool.get("4.3.0", "source"), pool.get("2.8.2", "target"))
    feed.create_topic(flow.source, flow.name, 1)
    with Heliostat(transactional(flow)) as h:
        h.wait(lambda h: h.flow(flow.a, flow.b) and h.flow(flow.a, flow.b)["state"] == "refused", what="the refusal")
        assert "NO_TRANSACTIONS" in json.dumps(h.status()["faults"])
        assert h.stop() == 0


def foreign(flow, number):
    """Somebody else writes to the copy."""
    feed.write(flow.target, flow.remote(), [(b"foreign", b"%d-%d" % (number, i)) for i in range(7)])


def with_foreign_records(flow, kills=3, pause=0.0):
    """Kills, each with foreign records behind ours and the mirror away for so long; compares, and gives the log."""
    feed.create_topic(flow.source, flow.name, 1)
    with Heliostat(flow.config()) as h:
        for number in range(kills):
            feed.write(flow.source, flow.name, [(b"k", b"%d-%d" % (number, i)) for i in range(200)])
            h.wait_copied(flow.source, [flow.name])
            foreign(flow, number)
            feed.write(flow.source, flow.name, [(b"k", b"more %d-%d" % (number, i)) for i in range(200)])
            h.wait_copied(flow.source, [flow.name])
            h.kill9()
            foreign(flow, 10 + number)
            feed.write(flow.source, flow.name, [(b"k", b"late %d" % number)])
            time.sleep(pause)
            h.restart()
            h.wait_copied(flow.source, [flow.name])
        mine = [m.value() for m in compare.read(flow.target, flow.remote()) if m.key() == b"k"]
        assert mine == [m.value() for m in compare.read(flow.source, flow.name)]
        assert h.stop() == 0
        return h.log.read_text()


@pytest.mark.soak
def test_foreign_writer_is_noticed(flow):
    """Offsets that are not ours are told; what is mirrored stays exactly once through kill -9."""
    assert re.search(r"relay\.foreign", with_foreign_records(flow))


def test_forgotten_producer_id(forgetful, pair, name):
    """The target forgets our id within a second, and somebody else writes: our batches at its end are counted."""
    with_foreign_records(Flow(name, pair[0], forgetful), 2, pause=2.0)


@pytest.mark.soak
def test_forgotten_producer_id_under_kill(forgetful, pair, name):
    flow = Flow(name, pair[0], forgetful)
    with under_kills(flow, flow.config(), 20, 14) as (h, total):
        equal(flow, total, "read_uncommitted")
        assert h.stop() == 0


@pytest.mark.soak
def test_copy_may_not_be_read(guarded, pair, name):
    """Without Read on the copy neither the last sequence nor batch headers can be asked for: offsets are counted."""
    flow = Flow(name, pair[0], guarded)
    denied = ("--deny-principal", "User:ANONYMOUS", "--operation", "Read", "--topic", flow.remote())
    allowed = ("--allow-principal", "User:ANONYMOUS", "--operation", "All", "--topic", flow.remote())
    for acl in (denied, allowed):
        java.tool(guarded, "acls", "--add", *acl)
    with under_kills(flow, flow.config(**{"sync.topic.acls.enabled": "false"}), 2, 15) as (h, total):
        assert h.stop() == 0
        java.tool(guarded, "acls", "--remove", "--force", *denied)
        equal(flow, total, "read_uncommitted")
        assert "counted by offsets" in h.log.read_text()
