"""Messages of the formats v0 and v1, written by a broker of 2.8 that was told to, read as every later broker gives them."""
import pytest

from conftest import Flow
from lab import compare, feed, offsets
from lab.heliostat import Heliostat
from test_shapes import KEEP_ALL, compacted

pytestmark = pytest.mark.xdist_group("releases")
CODECS = ("none", "gzip", "snappy", "lz4")
FORMATS = {"v0": "0.9.0", "v1": "0.10.2"}
ROWS = 400


@pytest.fixture
def old_flow(pool, name):
    """From a 2.8 to a 4.3."""
    return Flow(name, pool.get("2.8.2", "source"), pool.get("4.3.0", "target"))


def rows(codec, count=ROWS):
    """Keys and values that are null, empty, short and longer than a block of snappy's."""
    for i in range(count):
        key = None if i % 5 == 0 else b"" if i % 7 == 0 else b"key %d" % i
        value = None if i % 11 == 0 else b"" if i % 13 == 0 else b"%s %d " % (codec.encode(), i) * (1 + i % 40)
        yield key, value
    yield b"large", bytes(range(256)) * 300


def write_old(flow, topic_format, more=None):
    """A topic with a partition per codec, all in one old format; then some of v2 behind it."""
    feed.create_topic(flow.source, flow.name, len(CODECS), {"message.format.version": FORMATS[topic_format], **(more or {})})
    for partition, codec in enumerate(CODECS):
        options = {"enable.idempotence": False, "linger.ms": 50, "batch.num.messages": 90}
        feed.write(flow.source, flow.name, rows(codec), partition, codec, options)
        feed.write(flow.source, flow.name, rows(codec, 20), partition, codec, {**options, "linger.ms": 0,
                                                                               "batch.num.messages": 1})


def seen(bootstrap, topic):
    """What a consumer sees, by partition; a v0 message has no time."""
    out = {}
    for m in compare.read(bootstrap, topic):
        kind, time_ms = m.timestamp()
        out.setdefault(m.partition(), []).append((m.key(), m.value(), time_ms if kind and time_ms > 0 else None, m.headers()))
    return out


def value_of(message):
    """What of a message tells it from the others; a copy's time may be of another type."""
    return message.key(), message.value()


def first_difference(a, b):
    """For people: where two answers of seen() part."""
    for p in sorted(a):
        for i, (x, y) in enumerate(zip(a[p], b.get(p, []))):
            if x != y:
                return "partition %d record %d: %.200r is %.200r" % (p, i, x, y)
    return "%s records are %s" % ({p: len(a[p]) for p in a}, {p: len(b[p]) for p in b})


def check(flow, before=None):
    """The copy is what a consumer of the source sees."""
    a, b = before or seen(flow.source, flow.name), seen(flow.target, flow.remote())
    assert a == b, first_difference(a, b)


@pytest.mark.parametrize("topic_format", sorted(FORMATS))
def test_old_formats(old_flow, topic_format):
    flow = old_flow
    write_old(flow, topic_format)
    before = seen(flow.source, flow.name)
    assert sum(map(len, before.values())) == len(CODECS) * (ROWS + 22)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        check(flow, before)
        assert sum(p["decoded_batches"] for p in h.partitions(flow.name)) > 0
        h.kill9()
        feed.set_config(flow.source, flow.name, message_format_version="2.8")
        feed.mixed(flow.source, flow.name, 400, len(CODECS))
        h.restart()
        h.wait_copied(flow.source, [flow.name])
        check(flow)


@pytest.mark.fc("FC-006")
def test_compacted_v1(old_flow):
    """Wrappers of which compaction has left some messages: offsets inside them have holes."""
    flow = old_flow
    compacted(flow.source, flow.name, 100, CODECS, {"message.format.version": FORMATS["v1"]}, {"enable.idempotence": False})
    before = seen(flow.source, flow.name)
    with Heliostat({**flow.config(), **KEEP_ALL}) as h:
        h.wait_copied(flow.source, [flow.name])
        assert before == seen(flow.source, flow.name), "the source changed meanwhile"
        check(flow, before)
        assert sum(p["decoded_batches"] for p in h.partitions(flow.name)) > 0
        counts = offsets.check(h, flow, 400, digest=value_of)
        assert counts["exact"] and counts["next"], counts


def test_append_time_of_v1(old_flow):
    """Consumers see the broker's time; so they do at the target."""
    flow = old_flow
    write_old(flow, "v1", {"message.timestamp.type": "LogAppendTime"})
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        check(flow)


def test_killed_in_the_middle_of_wrappers(old_flow):
    """The position may lie inside a wrapper; nothing is lost or repeated."""
    flow = old_flow
    feed.create_topic(flow.source, flow.name, 1, {"message.format.version": FORMATS["v1"]})
    options = {"enable.idempotence": False, "linger.ms": 20, "batch.num.messages": 300}
    config = flow.config(**{flow.b + ".producer.max.request.size": 20000})
    with Heliostat(config) as h:
        h.wait_ready()
        for turn in range(4):
            values = [(b"%d" % turn, b"%d-%d" % (turn, i)) for i in range(3000)]
            feed.write(flow.source, flow.name, values, 0, CODECS[turn], options)
            h.kill9()
            h.restart()
        h.wait_copied(flow.source, [flow.name])
        check(flow)
