"""Every supported release of Kafka as source and as target: all sixteen pairs."""
import pytest

from conftest import Flow, soak
from lab import compare, feed, jars
from lab.heliostat import Heliostat
from test_group import two, wait_holder, written

TOPIC, COUNT = "versions", 2000
pytestmark = pytest.mark.xdist_group("releases")


@pytest.fixture
def sides(pool, source, target):
    """A source and a target cluster; all sources hold the same topic of mixed records."""
    sides = pool.many([(source, "source"), (target, "target")])
    if not feed.partitions_of(sides[0].bootstrap, TOPIC):
        feed.create_topic(sides[0].bootstrap, TOPIC, 3)
        feed.mixed(sides[0].bootstrap, TOPIC, COUNT, 3, big=0.005)
    return sides


@pytest.mark.parametrize("target", jars.VERSIONS)
@pytest.mark.parametrize("source", jars.VERSIONS)
def test_pair(sides, source, target):
    flow = Flow("v%s-%s" % (source[:3].replace(".", ""), target[:3].replace(".", "")), *sides)
    with Heliostat(flow.config(TOPIC)) as h:
        h.wait_copied(flow.source, [TOPIC])
        result = compare.topics(flow.source, TOPIC, flow.target, flow.remote(TOPIC))
        assert result.equal and result.records == COUNT, str(result)
        assert sum(p["decoded_batches"] for p in h.partitions(TOPIC)) == 0
        assert h.stop() == 0


@pytest.mark.parametrize("version", [v if v.startswith("2.") else soak(v) for v in jars.VERSIONS])
def test_two_processes(pool, name, version):
    """Every release's group protocol: a second process stands by and takes over at once when the first is stopped."""
    flow = Flow(name, *pool.many([("4.3.0", "source"), (version, "target")]))
    feed.create_topic(flow.source, flow.name, 2)
    feed.mixed(flow.source, flow.name, 400, 2)
    with two(flow, flow.config()) as (first, second):
        first.wait_copied(flow.source, [flow.name])
        since = written(second)
        assert first.stop() == 0
        wait_holder(second, flow, since)
        feed.mixed(flow.source, flow.name, 400, 2, seed=2)
        second.wait_copied(flow.source, [flow.name])
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal
        assert second.stop() == 0
