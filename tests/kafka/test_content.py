"""Records of every shape and codec arrive equal in every part, and none of their batches is decompressed."""
import pytest

from lab import compare, feed
from lab.heliostat import Heliostat


@pytest.mark.fc("FC-030")
@pytest.mark.long
def test_mixed_records_of_all_codecs(build, flow, full):
    count = 1_000_000 if full else 20_000 if build == "asan" else 60_000
    big = 0.0005 if full else 0.002
    feed.create_topic(flow.source, flow.name, 12)
    feed.mixed(flow.source, flow.name, count // 2, 12, seed=1, big=big)
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        feed.mixed(flow.source, flow.name, count - count // 2, 12, seed=2, big=big)
        h.wait_copied(flow.source, [flow.name], limit=900)
        parts = h.partitions(flow.name)
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        print("\n%s; %d batches relayed" % (result, sum(p["relayed_batches"] for p in parts)))
        assert result.equal and result.records == count, str(result)
        assert sum(p["decoded_batches"] for p in parts) == 0
        assert sum(p["dropped_batches"] for p in parts) == 0
        assert sum(p["records"] for p in parts) == count


def test_offsets_need_not_begin_at_zero(flow):
    """Records that the source has deleted are not missed, and nothing stands in for them."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(200)], codec="lz4")
    feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(200, 400)], codec="zstd")
    feed.delete_records(flow.source, flow.name, 0, 150)  # in the middle of a batch
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == 250, str(result)
