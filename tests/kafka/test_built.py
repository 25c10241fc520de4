"""What no client produces, in log segments built by hand: the copy is what Java's consumer sees of the source."""
import time

import pytest

from lab import compare, feed, java, offsets
from lab.heliostat import Heliostat
from lab.segments import GZIP, TRANSACTIONAL, batch, marker, record, replace

DAY_MS = 86_400_000
LEAP = 1_000_000_000


def log_of(now):
    """The batches; what is in them at either isolation level as (offset, value)."""
    plain = [record(i, i, b"k", b"plain %d" % i) for i in range(3)]
    holes = [record(d, d, b"k", b"hole %d" % d, [("h", None), ("h", b"")]) for d in (3, 4, 7)]
    leap = [record(d, 0, None, b"leap %d" % d) for d in (1, LEAP - 1)]
    times = [record(0, 0, b"t", b"now"), record(1, -400 * DAY_MS, b"t", b"old"), record(2, -now, b"t", b"zero"),
             record(3, -1, None, None)]
    gone = [record(i, 0, b"a", b"aborted %d" % i) for i in range(4)]
    at = 21 + LEAP
    batches = [
        batch(0, plain, time_ms=now),
        marker(3, 7, time_ms=now),                                                  # of a type that nobody knows
        batch(4, [], last_delta=5, producer=77, epoch=0, sequence=0, time_ms=now),  # all of it compacted away
        batch(10, holes, last_delta=9, time_ms=now),                                # its first and last records are gone
        batch(20, leap, last_delta=LEAP, time_ms=now),
        batch(at, times, time_ms=now),
        batch(at + 4, holes, last_delta=9, time_ms=now, attributes=GZIP),
        batch(at + 14, gone, time_ms=now, attributes=TRANSACTIONAL, producer=78, epoch=0, sequence=0),
        marker(at + 18, 0, producer=78, epoch=0, time_ms=now),
        batch(at + 19, [record(0, 0, b"k", b"last")], time_ms=now),
    ]
    seen = [(i, b"plain %d" % i) for i in range(3)] + [(10 + d, b"hole %d" % d) for d in (3, 4, 7)]
    seen += [(20 + d, b"leap %d" % d) for d in (1, LEAP - 1)]
    seen += [(at, b"now"), (at + 1, b"old"), (at + 2, b"zero"), (at + 3, None)]
    seen += [(at + 4 + d, b"hole %d" % d) for d in (3, 4, 7)]
    aborted = [(at + 14 + i, b"aborted %d" % i) for i in range(4)]
    last = [(at + 19, b"last")]
    return batches, seen + last, seen + aborted + last


@pytest.mark.fc("FC-006", "FC-007", "FC-009", "FC-010")
def test_built_segments(own_flow):
    """Control batches of an unknown type, batches without records, holes at either end, leaps of a thousand million offsets,
    times four hundred days apart and at zero, a batch whose records are all aborted."""
    flow = own_flow
    now = int(time.time() * 1000)
    batches, committed, everything = log_of(now)
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, [(b"k", b"its folder is there")])
    replace(flow.clusters[0], flow.name, batches)
    end = everything[-1][0] + 1
    assert compare.ends(flow.source, flow.name) == {0: (0, end)}
    for isolation in ("read_committed", "read_uncommitted"):
        wanted = committed if isolation == "read_committed" else everything
        lines = {**flow.config(), flow.a + ".consumer.isolation.level": isolation}
        with Heliostat(lines) as h:
            h.wait(lambda h: [p["next_offset"] for p in h.partitions(flow.name)] == [end], what="the end")
            source, copy = java.consume((flow.source, flow.name, isolation), (flow.target, flow.remote(), "read_uncommitted"))
            assert source == copy
            assert [None if v == "-" else bytes.fromhex(v) for _, _, _, _, v, _ in copy] == [v for _, v in wanted]
            check_map(h, flow, wanted)
            h.kill9()
            h.restart()
            feed.write(flow.source, flow.name, [(b"k", b"more")])
            end += 1
            committed, everything = committed + [(end - 1, b"more")], everything + [(end - 1, b"more")]
            h.wait(lambda h: [p["next_offset"] for p in h.partitions(flow.name)] == [end], what="one more")
            assert compare.ends(flow.target, flow.remote())[0][1] == len(wanted) + 1
            assert h.status()["losses"] == [] and h.stop() == 0
        flow.a += "u"  # the other level under another name


def check_map(h, flow, wanted):
    """Every record, and the offset behind it: the next record that exists."""
    asked = sorted({o + d for o, _ in wanted[:-1] for d in (0, 1)})
    for answer in offsets.ask(h, flow, flow.name, 0, asked):
        place = next(i for i, (o, _) in enumerate(wanted) if o >= answer["offset"])
        kind = "exact" if wanted[place][0] == answer["offset"] else "next"
        assert (answer["kind"], answer["to"]) == (kind, place), answer
    back = offsets.ask(h, flow, flow.name, 0, list(range(len(wanted))), to_source=True)
    assert [(a["kind"], a["to"]) for a in back] == [("exact", o) for o, _ in wanted]


@pytest.mark.fc("FC-030")
def test_the_codec_of_the_copy(flow):
    """Whatever compression.type the copy has, its records are the source's; the broker sees to the codec."""
    types = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
    for kind in types:
        topic = "%s-%s" % (flow.name, kind)
        feed.create_topic(flow.source, topic, 2)
        feed.create_topic(flow.target, flow.remote(topic), 2, {"compression.type": kind})
        feed.mixed(flow.source, topic, 400, 2, seed=len(kind), big=0)
    topics = ["%s-%s" % (flow.name, kind) for kind in types]
    with Heliostat(flow.config(flow.name + "-.*", **{"sync.topic.configs.enabled": "false"})) as h:
        h.wait_copied(flow.source, topics)
        h.kill9()
        for topic in topics:
            feed.mixed(flow.source, topic, 100, 2, seed=99, big=0)
        h.restart()
        h.wait_copied(flow.source, topics)
        for topic in topics:
            result = compare.topics(flow.source, topic, flow.target, flow.remote(topic))
            assert result.equal and result.records == 500, (topic, str(result))
        assert sum(p["decoded_batches"] for p in h.partitions()) == 0
    for kind, codecs in (("zstd", {"zstd"}), ("uncompressed", {"none"})):
        found = set(java.dump_log(flow.clusters[1], flow.remote("%s-%s" % (flow.name, kind))).lower().split("compresscodec: ")[1:])
        assert {f.split()[0] for f in found} == codecs
