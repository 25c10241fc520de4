"""Mirrors that were there before: what they copied beyond their stored position is found by comparing records."""
import json
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from conftest import Flow, soak
from lab import compare, feed, heliostat
from lab.heliostat import Heliostat
from lab.java import MirrorMaker

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
COPIED, STORED = 200, 150  # of the source's records
ROUNDS = 20


def source_records(flow):
    """Records with holes between their offsets: transactions of 50 records with their markers, one of them aborted."""
    feed.create_topic(flow.source, flow.name)
    producer = Producer({"bootstrap.servers": flow.source, "transactional.id": flow.name, "compression.type": "zstd"})
    producer.init_transactions(60)
    for t in range(6):
        producer.begin_transaction()
        for i in range(50):
            producer.produce(flow.name, b"value %d %d" % (t, i), b"key %d" % (i % 7), 0, headers=[("h", b"%d" % i)])
        producer.flush(60)
        if t == 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    return compare.read(flow.source, flow.name)


def die_behind(flow, copy, messages, **config):
    """What a mirror leaves that copied the first of them, in other batches and compressed in another way."""
    feed.create_topic(flow.target, copy, 1, config)
    producer = Producer({"bootstrap.servers": flow.target, "compression.type": "gzip", "batch.num.messages": 17})
    for m in messages[:COPIED]:
        producer.produce(copy, m.value(), m.key(), 0, headers=m.headers(), timestamp=m.timestamp()[1])
    assert producer.flush(60) == 0


def store(flow, topic, key, last):
    """A position as Connect stores it."""
    feed.create_topic(flow.target, topic, 1, {"cleanup.policy": "compact"})
    feed.write(flow.target, topic, [(json.dumps(key, separators=(",", ":")).encode(), b'{"offset":%d}' % last)])


def commit(flow, group, offset):
    """A position as a consumer group has it."""
    consumer = Consumer({"bootstrap.servers": flow.source, "group.id": group})
    end = time.monotonic() + 60
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(flow.name, 0, offset)], asynchronous=False)
            break
        except KafkaException:  # the coordinator may still be loading
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
    consumer.close()


def content(messages):
    """All of records but their time."""
    return [(m.key(), m.value(), m.headers()) for m in messages]


def run_to_the_end(flow, lines, copy, messages):
    """Nothing is missing, nothing there twice, and the events of the run."""
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [flow.name])
        assert h.stop() == 0
    assert content(compare.read(flow.target, copy)) == content(messages)


@pytest.mark.parametrize("kind", ["create-time", soak("append-time"), "no-position"])
def test_a_mirror_that_died(flow, kind):
    """`run` alone finds the end, through markers, aborted records, other batches, and times that the target sets."""
    messages = source_records(flow)
    die_behind(flow, flow.remote(), messages,
               **{"message.timestamp.type": "LogAppendTime" if kind == "append-time" else "CreateTime"})
    if kind != "no-position":
        store(flow, "mm2-offsets.%s.internal" % flow.a,
              ["MirrorSourceConnector", {"cluster": flow.a, "partition": 0, "topic": flow.name}], messages[STORED - 1].offset())
    run_to_the_end(flow, flow.config(), flow.remote(), messages)


def test_a_mirror_that_copied_after_our_death(flow):
    """We are killed, another mirror goes on and stores its position, and we come back: small batches, so that what we skip, what
    it has copied and what is new lie in one answer."""
    feed.create_topic(flow.source, flow.name)
    lines = flow.config(**{flow.b + "__offset__flush__interval__ms": 600000})
    producer = feed.Numbered(flow.source, flow.name, rate=200, options={"linger.ms": 5})
    producer.start()
    with Heliostat(lines) as h:
        h.wait_copied(flow.source, [flow.name])
        h.wait(lambda h: sum(p["records"] for p in h.partitions(flow.name)) > 500, what="records")
        h.kill9()
    ours = len(compare.read(flow.target, flow.remote()))
    while producer.sent < ours + 1500:
        time.sleep(0.1)
    producer.stop()
    messages = compare.read(flow.source, flow.name)
    mirror = Producer({"bootstrap.servers": flow.target})
    for m in messages[ours:ours + 1000]:
        mirror.produce(flow.remote(), m.value(), m.key(), 0, headers=m.headers(), timestamp=m.timestamp()[1])
    assert mirror.flush(60) == 0
    key = ["MirrorSourceConnector", {"cluster": flow.a, "partition": 0, "topic": flow.name}]
    feed.write(flow.target, "mm2-offsets.%s.internal" % flow.a,
               [(json.dumps(key, separators=(",", ":")).encode(), b'{"offset":%d}' % messages[ours + 999].offset())])
    run_to_the_end(flow, lines, flow.remote(), messages)


@pytest.mark.parametrize("kind", ["mm1", soak("replicator")])
def test_other_mirrors(flow, tmp_path, kind):
    """Positions from elsewhere, taken over with --apply."""
    messages = source_records(flow)
    die_behind(flow, flow.name, messages)
    lines = flow.config(replication__policy__class=IDENTITY)
    path = tmp_path / "mm2.properties"
    path.write_text(heliostat.as_text(lines))
    if kind == "mm1":
        commit(flow, flow.name + "-mirror", messages[STORED].offset())
        args = ["--from", "mm1:%s-mirror" % flow.name]
    else:
        store(flow, flow.name + "-connect", ["rep", {"topic": flow.name, "partition": 0}], messages[STORED].offset())
        args = ["--from", "replicator", "--connect-offsets", flow.name + "-connect"]
    for more in ([], ["--apply"]):
        code, out, error = heliostat.command("takeover", str(path), "--json", *args, *more, limit=120)
        assert code == 0, out + error
        (told,) = json.loads(out)["flows"]
        assert told["running"] is None
        (part,) = [p for p in told["partitions"] if p["topic"] == flow.name]
        assert part["stored"] == messages[STORED].offset() and part["in_target"] == COPIED - STORED, part
        assert part["goes_on_at"] == messages[COPIED - 1].offset() + 1 and (told["written"] > 0) == bool(more), told
    code, out, error = heliostat.command("takeover", str(path), *args, limit=120)
    assert code == 0 and "%d records beyond" % (COPIED - STORED) in out and "is not known" in out, out + error
    run_to_the_end(flow, lines, flow.name, messages)


@pytest.mark.parametrize("args, code, word", [
    ([], 0, None),
    (["--connect-configs", "NAME-nothing"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    (["--connect-configs", "NAME-hidden"], 1, "TOPIC_AUTHORIZATION_FAILED"),
], ids=["none", "wrong", "hidden"])
def test_who_is_to_be_fenced(pair, guarded, name, tmp_path, args, code, word):
    """A topic of Connect's configs that cannot be read, or was named and is not there, ends --fence: whose transactional ids
    are to be taken would be a guess. A MirrorMaker 2 without such a topic has none."""
    flow = Flow(name, pair[0], guarded)
    feed.create_topic(flow.source, flow.name)
    feed.create_topic(flow.target, flow.name + "-hidden", 1, {"cleanup.policy": "compact"})
    feed.write(flow.target, flow.name + "-hidden", [(b"tasks-fencing-MirrorSourceConnector", b'{"task-count":1}')])
    feed.acl(flow.target, "ALLOW", ["DESCRIBE"], "TOPIC", flow.name + "-hidden")
    path = tmp_path / "mm2.properties"
    path.write_text(heliostat.as_text(flow.config()))
    args = [a.replace("NAME", flow.name) for a in args]
    got, out, error = heliostat.command("takeover", str(path), "--apply", "--fence", "--json", *args, limit=120)
    assert got == code, (got, out, error)
    (told,) = json.loads(out)["flows"]
    assert (told["fault"] and told["fault"]["code"]) == word and (not word or args[1] in told["fault"]["text"]), told


def test_usage(tmp_path):
    """Wrong words are refused by name, and nothing is asked."""
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = a, b\na.bootstrap.servers = 127.0.0.1:1\nb.bootstrap.servers = 127.0.0.1:1\na->b.enabled = true\n")
    for args, word in ((["--fence"], "--apply"), (["--from", "mm1"], "mm1:GROUP"), (["--from", "replicator"], "--connect-offsets"),
                       (["--back", "--from", "mm1:g"], "--back"), (["--timeout", "0"], "seconds"), (["--nothing"], "--nothing")):
        code, out, error = heliostat.command("takeover", str(path), *args)
        assert code == 2 and word in error and not out, (args, out, error)
    assert heliostat.command("takeover", "--help")[0] == 0


@pytest.mark.java
@pytest.mark.soak
def test_fences_a_mirrormaker_that_is_alive(flow, tmp_path):
    """It is put out of its group, and does not come back while we have it."""
    feed.create_topic(flow.source, flow.name, 3)
    lines = flow.config()
    path = tmp_path / "mm2.properties"
    path.write_text(heliostat.as_text(lines))
    producer = feed.Numbered(flow.source, flow.name, 3, rate=1000)
    producer.start()
    with MirrorMaker(heliostat.as_text(lines)) as mm2:
        mm2.wait(lambda: feed.partitions_of(flow.target, flow.remote()) == 3 and
                 len(compare.read(flow.target, flow.remote())) > 1000, what="records")
        code, out, error = heliostat.command("takeover", str(path), "--apply", "--fence", "--json", limit=300)
        assert code == 0, out + error
        with Heliostat(lines) as h:
            producer.stop()
            h.wait_copied(flow.source, [flow.name])
            time.sleep(10)  # whatever is left of it would copy by now
            assert h.stop() == 0
    result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
    assert result.equal, str(result)


def repeated(flow):
    """How many records of the copy are there twice."""
    return compare.topics(flow.source, flow.name, flow.target, flow.remote()).repeated


def takeover(lines, path, *args, code=0):
    """The one flow of what `heliostat takeover` says."""
    path.write_text(heliostat.as_text(lines))
    got, out, error = heliostat.command("takeover", str(path), "--json", *args, limit=300)
    assert got == code, (got, out, error)
    return json.loads(out)["flows"][0]


def announcement(lines, path):
    """What MirrorMaker 2 would write again, once nobody is in the group any more."""
    end = time.monotonic() + 120
    while True:
        told = takeover(lines, path, "--back")
        if not told["members"]:
            return told
        assert time.monotonic() < end, told["members"]
        time.sleep(0.5)


def has_copied(flow, had, more):
    """A condition: each partition of the copy has so many records more."""
    def check(*_):
        if feed.partitions_of(flow.target, flow.remote()) != 3:
            return False
        return all(end >= had.get(p, 0) + more.get(p, 0) + 300 for p, (_, end) in compare.ends(flow.target, flow.remote()).items())
    return check


def ends(flow):
    """The end of each partition of the copy."""
    return {p: end for p, (_, end) in compare.ends(flow.target, flow.remote()).items()}


def in_turn(flow, path):
    """MirrorMaker 2 is killed at full speed, we go on; we are killed, and it goes on and is killed. Gives how many records were in
    the target at our start, how many were announced for its own, and how many were there twice behind both."""
    feed.create_topic(flow.source, flow.name, 3)
    producer = feed.Numbered(flow.source, flow.name, 3, rate=5000, calm=None)
    producer.start()
    lines = flow.config(**{flow.b + "__session__timeout__ms": 6000, flow.b + "__offset__flush__interval__ms": 5000})
    with MirrorMaker(heliostat.as_text(lines)) as mm2:
        mm2.wait(has_copied(flow, {}, {}), what="records")
        alive = takeover(lines, path, "--apply", code=1)
        assert alive["fault"]["code"] == "ALIVE" and alive["members"][0]["host"] == "127.0.0.1", alive
    found = takeover(lines, path)["in_target"]
    with Heliostat(lines) as h:
        h.wait(has_copied(flow, ends(flow), {}), what="more records")
        h.kill9()
    assert repeated(flow) == 0, found
    told = announcement(lines, path)
    again = {p["partition"]: p["in_target"] for p in told["partitions"] if p["topic"] == flow.name}
    had = ends(flow)
    with MirrorMaker(heliostat.as_text(lines)) as mm2:
        mm2.wait(has_copied(flow, had, again), what="more records")
        total = sum(producer.stop().values()) + sum(again.values())
        mm2.wait(lambda: sum(ends(flow).values()) >= total, what="all records")
    result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
    assert not (result.missing or result.altered or result.foreign or result.disorder), str(result)
    return found, sum(again.values()), result.repeated


@pytest.mark.java
@pytest.mark.soak
def test_mirrormaker_and_we_in_turn(pair, name, tmp_path):
    """Nothing comes twice by our hand, and by MirrorMaker 2's exactly as many records as were announced."""
    rounds = [in_turn(Flow("%sr%d" % (name, i), *pair), tmp_path / "mm2.properties") for i in range(ROUNDS)]
    print("\n(in the target at our start, announced for MirrorMaker 2's, twice behind it): %s" % rounds)
    assert all(announced == twice for _, announced, twice in rounds)
