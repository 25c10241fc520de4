"""Records of odd shapes, relayed and through the record path: nulls, empties, headers by the hundred thousand."""
import pytest
from confluent_kafka import Producer

from lab import compare, feed
from lab.heliostat import Heliostat

ODD = [
    (None, None), (b"", b""), (b"k", None), (None, b""), (b"", None),
    (b"twice", b"v", [("h", b"1"), ("h", b"2"), ("h", b"1"), ("h", None), ("", b""), ("g", b"")]),
    (b"many", b"v", [("h%d" % (i % 10), b"") for i in range(100_000)]),
    (b"\xff\x00", bytes(range(256)), [("\u00e4\u4e2d", b"\x00")]),
]


@pytest.mark.fc("FC-030")
@pytest.mark.parametrize("stamps", ["CreateTime", "LogAppendTime"])
def test_odd_records(flow, stamps):
    """LogAppendTime sends every batch through the record path."""
    feed.create_topic(flow.source, flow.name, 2, {"message.timestamp.type": stamps, "max.message.bytes": 4_000_000})
    for partition, codec in enumerate(("none", "zstd")):
        feed.write(flow.source, flow.name, ODD * 3, partition, codec, {"linger.ms": 50, "message.max.bytes": 3_000_000})
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote(), with_type=False)
        assert result.equal and result.records == 6 * len(ODD), str(result)
        decoded = sum(p["decoded_batches"] for p in h.partitions(flow.name))
        assert decoded == 0 if stamps == "CreateTime" else decoded > 0


@pytest.mark.fc("FC-010")
def test_nothing_but_aborted_records(flow):
    """The position moves over them, and what follows is copied."""
    feed.create_topic(flow.source, flow.name, 1)
    p = Producer({"bootstrap.servers": flow.source, "transactional.id": flow.name, "log_level": 0})
    p.init_transactions(30)
    for turn in range(3):
        p.begin_transaction()
        for i in range(50):
            feed.produce(p, flow.name, 0, None, b"%d" % i)
        p.flush(10)
        p.abort_transaction(30)
    with Heliostat({**flow.config(), flow.a + ".consumer.isolation.level": "read_committed"}) as h:
        h.wait(lambda h: h.partitions(flow.name) and h.partitions(flow.name)[0]["next_offset"] == 153, what="the end")
        assert compare.read(flow.target, flow.remote()) == []
        feed.write(flow.source, flow.name, [(None, b"after")])
        h.wait(lambda h: [m.value() for m in compare.read(flow.target, flow.remote())] == [b"after"], what="the record")
