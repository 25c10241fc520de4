"""Fixtures: clusters that are started once for all tests of a run, and names that no two tests share."""
import itertools
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lab import heliostat, jars  # noqa: E402
from lab.cluster import Cluster  # noqa: E402

_numbers = itertools.count(1)


def pytest_configure(config):
    """The marks that ./test selects by."""
    config.addinivalue_line("markers", "java: compares with the real MirrorMaker 2 or other Java programs")
    config.addinivalue_line("markers", "sanitize: runs once more with the program built with sanitizers")


class Pool:
    """Clusters by (version, name), started when first asked for."""

    def __init__(self):
        self.clusters = {}

    def get(self, version, name="", **options):
        """A running cluster; the same one for the same version and name."""
        return self.many((version,), name, **options)[0]

    def many(self, versions, name="", **options):
        """Several, started at the same time."""
        keys = [(jars.short(v), name) for v in versions]
        fresh = []
        for key in keys:
            if key not in self.clusters:
                c = Cluster(key[0], name="%s%s" % (name or "kafka-", key[0]), **options)
                self.clusters[key] = c
                c.launch()
                fresh.append(c)
        for c in fresh:
            c.wait_ready()
        return [self.clusters[k] for k in keys]

    def stop(self):
        """Ends them all."""
        for c in self.clusters.values():
            c.stop()


@pytest.fixture(scope="session")
def pool():
    """All shared clusters of the run."""
    p = Pool()
    yield p
    p.stop()


@pytest.fixture(scope="session")
def pair(pool):
    """Two Kafka 4.3 clusters that tests share; a test that kills brokers starts its own."""
    return [pool.get("4.3.0", "source"), pool.get("4.3.0", "target")]


class Flow:
    """One flow between two clusters with names of its own: a topic NAME, aliases NAMEs and NAMEt."""

    def __init__(self, name, source, target):
        self.name, self.clusters = name, (source, target)
        self.source, self.target = source.bootstrap, target.bootstrap
        self.a, self.b = name + "s", name + "t"

    def config(self, topics=None, **more):
        """The lines of the properties file; further keys with "__" for a dot."""
        return heliostat.config(self.source, self.target, self.a, self.b, topics or self.name, **more)

    def remote(self, topic=None):
        """The name of the copy."""
        return "%s.%s" % (self.a, topic or self.name)


@pytest.fixture
def flow(pair, name):
    """A flow between the shared clusters."""
    return Flow(name, *pair)


@pytest.fixture
def own_flow(pool, name):
    """A flow between clusters that tests may kill."""
    return Flow(name, *pool.many(("4.3.0",), "own-source"), *pool.many(("4.3.0",), "own-target"))


@pytest.fixture
def name():
    """A topic and alias part that no other test uses."""
    return "t%d" % next(_numbers)


@pytest.fixture(scope="session")
def full():
    """True when the full volumes of the acceptance tests were asked for."""
    return os.environ.get("HELIOSTAT_FULL", "") not in ("", "0")
