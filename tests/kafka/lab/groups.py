"""Consumer groups: their positions, and the records that MirrorMaker 2 and we keep about them."""
import bisect
import struct
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from . import compare


def client(bootstrap, group, **more):
    """A consumer of the group that commits nothing by itself."""
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False,
                     "auto.offset.reset": "earliest", "log_level": 0, **more})


def _patiently(ask, tries=60):
    """The coordinator of a cluster that has just started may be moving, or reading, for a while."""
    for left in reversed(range(tries)):
        try:
            return ask()
        except KafkaException as e:
            if not left or "oordinator" not in str(e):
                raise
            time.sleep(0.5)


def commit(bootstrap, group, places):
    """Sets positions, {(topic, partition): offset or (offset, metadata)}, as a group without members."""
    consumer = client(bootstrap, group)
    try:
        for kind, rows in ((False, {k: v for k, v in places.items() if not isinstance(v, tuple)}),
                           (True, {k: v for k, v in places.items() if isinstance(v, tuple)})):
            if rows:
                _patiently(lambda rows=rows, kind=kind: consumer.commit(asynchronous=False, offsets=[
                    TopicPartition(t, p, v[0], metadata=v[1]) if kind else TopicPartition(t, p, v)
                    for (t, p), v in rows.items()]))
    finally:
        consumer.close()


def committed(bootstrap, group, places):
    """{(topic, partition): (offset, metadata)} of those (topic, partition) that have a position."""
    consumer = client(bootstrap, group)
    try:
        found = consumer.committed([TopicPartition(t, p) for t, p in places], timeout=30)
        return {(f.topic, f.partition): (f.offset, f.metadata) for f in found if f.offset >= 0}
    finally:
        consumer.close()


def _string(data, at):
    size, = struct.unpack_from(">h", data, at)
    return data[at + 2:at + 2 + size].decode(), at + 2 + size


def history(bootstrap, topic):
    """[((group, topic, partition), (upstream, downstream, metadata))] of all checkpoints, in the order they were written."""
    out = []
    for m in compare.read(bootstrap, topic):
        group, at = _string(m.key(), 0)
        name, at = _string(m.key(), at)
        partition, = struct.unpack_from(">i", m.key(), at)
        version, up, down = struct.unpack_from(">hqq", m.value(), 0)
        metadata, _ = _string(m.value(), 18)
        assert version == 0
        out.append(((group, name, partition), (up, down, metadata)))
    return out


def checkpoints(bootstrap, topic):
    """{(group, topic, partition): (upstream, downstream, metadata)}, the last of each key; and how many records."""
    rows = history(bootstrap, topic)
    return dict(rows), len(rows)


def syncs(bootstrap, topic):
    """[(topic, partition, upstream, downstream)] in the order they were written."""
    out = []
    for m in compare.read(bootstrap, topic):
        name, at = _string(m.key(), 0)
        out.append((name, *struct.unpack_from(">i", m.key(), at), *struct.unpack(">qq", m.value())))
        assert m.partition() == 0 and not m.headers()
    return out


def expected(source, target):
    """A function offset -> the target's offset of the record that a consumer at this offset of the source reads next.
    Both are {offset: digest}; the copy holds the same records in the same order."""
    ours, theirs = sorted(source), sorted(target)
    assert [source[o] for o in ours] == [target[o] for o in theirs]
    return lambda offset: (theirs + [theirs[-1] + 1 if theirs else 0])[bisect.bisect_left(ours, offset)]


def wait(condition, limit=120):
    """Until the condition gives something true, which is returned."""
    end = time.monotonic() + limit
    while True:
        found = condition()
        if found or time.monotonic() > end:
            assert found, "waited %d s in vain" % limit
            return found
        time.sleep(0.2)
