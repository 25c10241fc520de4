"""Fixtures: clusters that are started once for all tests of a run, and names that no two tests share."""
import itertools
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lab import jars  # noqa: E402
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


@pytest.fixture
def name():
    """A topic and alias part that no other test uses."""
    return "t%d" % next(_numbers)


@pytest.fixture(scope="session")
def full():
    """True when the full volumes of the acceptance tests were asked for."""
    return os.environ.get("HELIOSTAT_FULL", "") not in ("", "0")
