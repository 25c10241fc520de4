"""Every supported release of Kafka as source and as target: all sixteen pairs."""
import pytest

from conftest import Flow
from lab import compare, feed, jars
from lab.heliostat import Heliostat

TOPIC, COUNT = "versions", 2000


@pytest.fixture(scope="module")
def sides(pool):
    """Source and target clusters of all releases; the sources hold the same topic of mixed records."""
    sources = pool.many(jars.VERSIONS, "source")
    targets = pool.many(jars.VERSIONS, "target")
    for c in sources:
        if not feed.partitions_of(c.bootstrap, TOPIC):
            feed.create_topic(c.bootstrap, TOPIC, 3)
            feed.mixed(c.bootstrap, TOPIC, COUNT, 3, big=0.005)
    return dict(zip(jars.VERSIONS, sources)), dict(zip(jars.VERSIONS, targets))


@pytest.mark.parametrize("target", jars.VERSIONS)
@pytest.mark.parametrize("source", jars.VERSIONS)
def test_pair(sides, source, target):
    flow = Flow("v%s-%s" % (source[:3].replace(".", ""), target[:3].replace(".", "")), sides[0][source], sides[1][target])
    with Heliostat(flow.config(TOPIC)) as h:
        h.wait_copied(flow.source, [TOPIC])
        result = compare.topics(flow.source, TOPIC, flow.target, flow.remote(TOPIC))
        assert result.equal and result.records == COUNT, str(result)
        assert sum(p["decoded_batches"] for p in h.partitions(TOPIC)) == 0
        assert h.stop() == 0
